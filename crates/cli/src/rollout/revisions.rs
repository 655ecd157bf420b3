//! The revisions a cluster keeps of a set, as people ask about them.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use pillion_api::{Meaning, Template};
use pillion_rollout::history::{Pinned, Revision, pinned};
use serde_json::Value;

/// All revisions of one set.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Revisions {
    /// The newest first.
    all: Vec<Revision>,
    /// When each was first seen, by name.
    created: BTreeMap<String, Timestamp>,
    /// The name of the set as it stands.
    newest: String,
    pin: Pin,
}

/// What new pods are held at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Pin {
    /// Nothing.
    #[default]
    None,
    /// The revision of this name.
    Revision(String),
    /// One that is not there, or not of this set.
    Unusable(String),
}

impl Revisions {
    /// Of the objects that carry the uid of the set.
    pub(super) fn read(objects: &[Value], set: &Meaning, uid: &str) -> Self {
        let mut all: Vec<Revision> = objects.iter().filter_map(Revision::read).collect();
        all.sort_by(|one, other| (other.number, &other.name).cmp(&(one.number, &one.name)));
        let created = objects.iter().filter_map(|object| {
            let text = |field: &str| object["metadata"][field].as_str();
            Some((text("name")?.to_owned(), text("creationTimestamp")?.parse().ok()?))
        });
        Self { created: created.collect(), all, ..Self::default() }.of(set, uid)
    }

    /// The same revisions, of a set that stands otherwise.
    pub(super) fn of(self, set: &Meaning, uid: &str) -> Self {
        let pin = match pinned(set, uid, self.all.iter()) {
            Pinned::Nothing => Pin::None,
            Pinned::Newest => Pin::Revision(set.revision.clone()),
            Pinned::Stored(revision, _) => Pin::Revision(revision.name.clone()),
            Pinned::Missing(word) | Pinned::Foreign(word) => Pin::Unusable(word.to_owned()),
        };
        Self { newest: set.revision.clone(), pin, ..self }
    }

    /// The newest first.
    pub(super) fn all(&self) -> &[Revision] {
        &self.all
    }

    /// When a revision was first seen.
    pub(super) fn created(&self, revision: &Revision) -> Option<Timestamp> {
        self.created.get(&revision.name).copied()
    }

    /// What they mean, by name; those that cannot be read are left out.
    pub(super) fn templates(&self) -> BTreeMap<String, Arc<Template>> {
        let templates = self.all.iter().filter_map(|it| Some((it.name.clone(), Arc::clone(it.template.as_ref()?))));
        templates.collect()
    }

    /// The revision of the set as it stands; `None` where the controller has not stored it yet.
    pub(super) fn newest(&self) -> Option<&Revision> {
        self.named(&self.newest)
    }

    pub(super) fn is_newest(&self, revision: &Revision) -> bool {
        revision.name == self.newest
    }

    pub(super) fn pin(&self) -> &Pin {
        &self.pin
    }

    /// The one before the newest.
    pub(super) fn previous(&self) -> Option<&Revision> {
        self.all.iter().find(|revision| !self.is_newest(revision))
    }

    pub(super) fn named(&self, name: &str) -> Option<&Revision> {
        self.all.iter().find(|revision| revision.name == name)
    }

    /// As people call it: by name, number, or custom version.
    pub(super) fn called(&self, set: &str, word: &str) -> Result<&Revision, String> {
        let number = word.parse().ok();
        let numbered = || self.all.iter().find(|revision| number == Some(revision.number));
        let versioned = || self.all.iter().find(|it| it.custom_versions.iter().any(|own| own == word));
        let found = self.named(word).or_else(numbered).or_else(versioned);
        found.ok_or_else(|| format!("set {set} has no revision {word}: `pillion rollout history scs/{set}` lists them"))
    }
}

/// The image of every container of a revision, by name, in the order written; init containers first.
pub(super) fn images(revision: &Revision) -> Vec<(&str, &str)> {
    let lists = ["initContainers", "containers"].into_iter().filter_map(|list| revision.fields.get(list)?.as_array());
    let images = lists.flatten().filter_map(|it| Some((it["name"].as_str()?, it["image"].as_str()?)));
    images.collect()
}
