//! Which revisions a preview is about: where a set keeps a proportion between two, there are two pods to see.

use std::collections::BTreeMap;

use pillion_api::{Meaning, PodCount};
use pillion_inject::{Candidate, Choice};
use pillion_rollout::choice::{Choice as ByRule, choose};
use pillion_rollout::history::{Pinned, Revision, pinned};

/// One of the pods that may come of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Branch<'a> {
    /// The one with the revisions that sets pin, where they keep a proportion.
    Pinned,
    /// The one with the newest.
    Newest,
    /// The one with this revision of the set that has it.
    Asked(&'a str),
}

/// The revisions that are given, by the name of their set.
#[derive(Debug, Default)]
pub(crate) struct Revisions(BTreeMap<String, Vec<Revision>>);

impl Revisions {
    /// Takes one in. Its name is the set's, and the hash of what it covers.
    pub(super) fn insert(&mut self, revision: Revision) {
        if let Some((set, _)) = revision.name.rsplit_once('-') {
            self.0.entry(set.to_owned()).or_default().push(revision);
        }
    }

    fn of(&self, set: &str) -> &[Revision] {
        self.0.get(set).map_or(&[], Vec::as_slice)
    }

    /// Whether some set has a revision of this name.
    pub(crate) fn has<'s>(&self, name: &str, mut sets: impl Iterator<Item = &'s Meaning>) -> bool {
        sets.any(|set| set.revision == name || self.of(&set.name).iter().any(|revision| revision.name == name))
    }

    /// What a set pins, if it is given.
    fn pinned<'a>(&'a self, set: &'a Meaning) -> Pinned<'a> {
        let of = self.of(&set.name);
        pinned(set, of.first().map_or("", |revision| revision.set_uid.as_str()), of.iter())
    }

    /// Whether the revision a set pins is not among what is given.
    pub(super) fn lack_pin(&self, set: &Meaning) -> bool {
        matches!(self.pinned(set), Pinned::Missing(_) | Pinned::Foreign(_))
    }

    /// Whether a pod with these labels gets one of two revisions of a set.
    pub(super) fn splits<'l>(&self, set: &Meaning, label: impl Fn(&str) -> Option<&'l str>) -> bool {
        matches!(self.pinned(set), Pinned::Stored(..)) && choose(set, label) == ByRule::InProportion
    }

    /// What a pod with these labels gets of a set. A pin that is not given is left to the cluster: the set as it stands.
    pub(super) fn candidate<'a, 'l>(
        &'a self,
        set: &'a Meaning,
        branch: Branch<'_>,
        label: impl Fn(&str) -> Option<&'l str>,
    ) -> Candidate<'a> {
        let latest = Candidate::latest(set);
        if let Branch::Asked(name) = branch {
            let asked = self.of(&set.name).iter().find(|revision| revision.name == name && name != set.revision);
            if let Some((revision, template)) = asked.and_then(|it| Some((it, it.template.as_ref()?))) {
                return Candidate { choice: Choice::Revision { name: &revision.name, template }, ..latest };
            }
            if set.revision == name {
                return latest;
            }
        }
        let Pinned::Stored(revision, template) = self.pinned(set) else { return latest };
        let is_pinned = match choose(set, label) {
            ByRule::Latest => false,
            ByRule::Pinned => true,
            ByRule::InProportion => branch != Branch::Newest,
        };
        if !is_pinned {
            return latest;
        }
        Candidate { choice: Choice::Revision { name: &revision.name, template }, ..latest }
    }
}

/// How many pods are of a branch: `90 % of pods`.
pub(super) fn share(partition: PodCount, branch: Branch<'_>) -> String {
    match (partition, branch) {
        (PodCount::Percent(percent), Branch::Newest) => format!("{} % of pods", 100 - percent.min(100)),
        (PodCount::Percent(percent), _) => format!("{percent} % of pods"),
        (PodCount::Pods(_), Branch::Newest) => "all other pods".to_owned(),
        (PodCount::Pods(1), _) => "1 pod".to_owned(),
        (PodCount::Pods(pods), _) => format!("{pods} pods"),
    }
}
