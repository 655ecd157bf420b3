//! Which edits of a set pause, resume, promote and undo a rollout; or why there is nothing to do.

use pillion_api::{CUSTOM_VERSION_LABEL, Meaning, PodCount, UpdateType, revision};
use pillion_rollout::history::Revision;
use pillion_rollout::pinned_target;
use serde_json::{Value, json};

use super::patch::Patch;
use super::revisions::Revisions;

const PAUSED: [&str; 3] = ["spec", "updateStrategy", "paused"];
const PARTITION: [&str; 3] = ["spec", "updateStrategy", "partition"];
/// Where a set may name the revision of new pods, in both spellings.
const PINS: [[&str; 3]; 3] = [
    ["spec", "injectStrategy", "controllerRevision"],
    ["spec", "injectStrategy", "revision"],
    ["spec", "injectionStrategy", "revision"],
];

/// A set that is to be changed.
pub(super) struct Edited<'a> {
    /// As it is stored.
    pub(super) set: &'a Value,
    /// What that means.
    pub(super) meaning: &'a Meaning,
    /// How many pods carry it.
    pub(super) pods: usize,
}

/// What is written, and what is to be known of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Edit {
    pub(super) patch: Patch,
    pub(super) notes: Vec<String>,
}

/// Why nothing is written, with the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused(pub(super) String);

impl Edited<'_> {
    pub(super) fn pause(&self) -> Result<Edit, Refused> {
        let name = &self.meaning.name;
        if self.meaning.update.paused {
            return Err(Refused(format!("set {name} is paused already: `pillion rollout resume scs/{name}` goes on")));
        }
        Ok(self.paused(true, "pods under way are finished, and no further one is started"))
    }

    pub(super) fn resume(&self) -> Result<Edit, Refused> {
        let name = &self.meaning.name;
        if !self.meaning.update.paused {
            return Err(Refused(format!(
                "set {name} is not paused: `pillion rollout status scs/{name}` tells what pods wait for"
            )));
        }
        Ok(self.paused(false, "pods are updated again"))
    }

    /// Lets more pods follow: so many stay at the old revision; without a number none do, and no revision is pinned.
    pub(super) fn promote(&self, to: Option<PodCount>) -> Result<Edit, Refused> {
        let (set, name, update) = (self.set, &self.meaning.name, &self.meaning.update);
        let mut patch = Patch::default();
        let mut notes = Vec::new();
        let partition = to.unwrap_or(PodCount::Pods(0));
        if update.partition != partition {
            if let Some(to) = to.filter(|to| !self.is_lower(*to)) {
                return Err(Refused(format!(
                    "partition is {}, and {} would keep as many pods at the old revision or more: promote only lowers it",
                    written(update.partition),
                    written(to)
                )));
            }
            patch.put(set, &PARTITION, json_of(partition));
        }
        if to.is_none() {
            for pin in PINS {
                patch.take(set, &pin);
            }
        } else if self.meaning.injection.pin.is_some() {
            notes.push(
                "new pods follow the pin and the partition; `promote` without --to takes the pin away".to_owned(),
            );
        }
        if patch.is_empty() {
            let why = match to {
                Some(to) => format!("partition of set {name} is {} already", written(to)),
                None => format!("set {name} holds no pod back: partition is 0 and no revision is pinned"),
            };
            return Err(Refused(format!("{why}; `pillion rollout status scs/{name}` tells what pods wait for")));
        }
        notes.extend(self.standing_still());
        Ok(Edit { patch, notes })
    }

    /// Gives the set the words of an earlier revision again: the one that is named, or the one before the newest.
    pub(super) fn undo(&self, revisions: &Revisions, to: Option<&Revision>) -> Result<Edit, Refused> {
        let name = &self.meaning.name;
        let Some(target) = to.or_else(|| revisions.previous()) else {
            let newest = &self.meaning.revision;
            return Err(Refused(format!("set {name} has no revision before {newest}: there is nothing to go back to")));
        };
        if revisions.is_newest(target) {
            return Err(Refused(format!(
                "revision {} is the newest of set {name} already: `pillion rollout history scs/{name}` lists the others",
                target.name
            )));
        }
        let mut patch = Patch::default();
        patch.test(self.set, &["metadata", "uid"]);
        patch.test(self.set, &["metadata", "generation"]);
        let now = self.set["spec"].as_object().map(revision::fields).unwrap_or_default();
        for (field, value) in &target.fields {
            if now.get(field) != Some(value) {
                patch.write(self.set, &["spec", field], value.clone());
            }
        }
        let mut notes = vec![format!(
            "revision {} becomes the newest again, with the next number; nothing else of the set changes",
            target.name
        )];
        let version = target.custom_versions.last();
        if version != self.meaning.custom_version.as_ref() {
            // Else the old revision would get the version of the one that is left.
            let value = version.map_or(Value::Null, |version| json!(version));
            patch.write(self.set, &["metadata", "labels", CUSTOM_VERSION_LABEL], value);
            notes.push(match version {
                Some(version) => format!("the custom version is {version} again"),
                None => "that revision has no custom version, so the set loses its label".to_owned(),
            });
        }
        notes.extend(self.standing_still());
        Ok(Edit { patch, notes })
    }

    fn paused(&self, paused: bool, note: &str) -> Edit {
        let mut patch = Patch::default();
        patch.put(self.set, &PAUSED, json!(paused));
        let mut notes = vec![note.to_owned()];
        if self.meaning.injection.pin.is_some() && paused {
            notes.push("new pods get the pinned revision".to_owned());
        }
        if self.meaning.update.kind == UpdateType::NotUpdate {
            notes.push(NOT_UPDATED.to_owned());
        }
        Edit { patch, notes }
    }

    /// What holds the pods all the same.
    fn standing_still(&self) -> Option<String> {
        let (name, update) = (&self.meaning.name, &self.meaning.update);
        match update.kind {
            UpdateType::NotUpdate => Some(NOT_UPDATED.to_owned()),
            UpdateType::RollingUpdate if update.paused => {
                Some(format!("the update is paused: pods follow after `pillion rollout resume scs/{name}`"))
            }
            UpdateType::RollingUpdate => None,
        }
    }

    fn is_lower(&self, to: PodCount) -> bool {
        match (to, self.meaning.update.partition) {
            (PodCount::Pods(to), PodCount::Pods(now)) => to < now,
            (PodCount::Percent(to), PodCount::Percent(now)) => to < now,
            // What cannot be compared for no pods may be written.
            (to, now) => self.pods == 0 || pinned_target(to, self.pods) < pinned_target(now, self.pods),
        }
    }
}

const NOT_UPDATED: &str = "updateStrategy.type is NotUpdate: running pods stay as they are";

/// As people write it: `50%`, `3`.
pub(super) fn count(text: &str) -> Result<PodCount, String> {
    let wrong = || "write a number of pods, or a percentage such as 50%".to_owned();
    match text.strip_suffix('%') {
        Some(percent) => {
            let percent = percent.parse().ok().filter(|percent| *percent <= 100).ok_or_else(wrong)?;
            Ok(PodCount::Percent(percent))
        }
        None => text.parse().map(PodCount::Pods).map_err(|_| wrong()),
    }
}

/// `50%`, `3`
pub(super) fn written(count: PodCount) -> String {
    match count {
        PodCount::Pods(pods) => pods.to_string(),
        PodCount::Percent(percent) => format!("{percent}%"),
    }
}

/// As it is stored.
pub(super) fn json_of(count: PodCount) -> Value {
    match count {
        PodCount::Pods(pods) => json!(pods),
        PodCount::Percent(_) => json!(written(count)),
    }
}

#[cfg(test)]
mod tests;
