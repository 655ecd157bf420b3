//! The revisions a cluster keeps of a set.

use jiff::Timestamp;
use pillion_api::revision::{CUSTOM_VERSIONS, fields_of_data};
use pillion_api::{Meaning, RevisionReference};
use serde_json::{Map, Value};

/// What a set gave to pods at some time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Revision {
    /// `mesh-n2b6j8xzfv`
    pub(super) name: String,
    /// Larger is newer.
    pub(super) number: i64,
    /// All custom versions it ever had, the oldest first.
    pub(super) custom_versions: Vec<String>,
    /// When it was first seen.
    pub(super) created: Option<Timestamp>,
    /// The words of the user.
    pub(super) fields: Map<String, Value>,
}

/// All revisions of one set.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Revisions {
    /// The newest first.
    all: Vec<Revision>,
    newest: String,
    pinned: Option<RevisionReference>,
}

impl Revision {
    /// Reads a `ControllerRevision`; `None` for one of others.
    fn read(object: &Value) -> Option<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let versions = object["metadata"]["annotations"][CUSTOM_VERSIONS].as_str();
        Some(Self {
            name: text("/metadata/name")?.to_owned(),
            number: object["revision"].as_i64()?,
            custom_versions: versions.and_then(|versions| serde_json::from_str(versions).ok()).unwrap_or_default(),
            created: text("/metadata/creationTimestamp").and_then(|time| time.parse().ok()),
            fields: fields_of_data(&object["data"])?.clone(),
        })
    }

    /// The image of every container, by name, in the order written; init containers first.
    pub(super) fn images(&self) -> Vec<(&str, &str)> {
        let lists = ["initContainers", "containers"].into_iter().filter_map(|list| self.fields.get(list)?.as_array());
        let images =
            lists.flatten().filter_map(|container| Some((container["name"].as_str()?, container["image"].as_str()?)));
        images.collect()
    }
}

impl Revisions {
    /// Of the objects that carry the uid of the set.
    pub(super) fn read(objects: &[Value], set: &Meaning) -> Self {
        let mut all: Vec<Revision> = objects.iter().filter_map(Revision::read).collect();
        all.sort_by(|one, other| (other.number, &other.name).cmp(&(one.number, &one.name)));
        Self { all, ..Self::default() }.of(set)
    }

    /// The same revisions, of a set that stands otherwise.
    pub(super) fn of(self, set: &Meaning) -> Self {
        let pinned = set.injection.pin.as_ref().map(|pin| pin.revision.clone());
        Self { all: self.all, newest: set.revision.clone(), pinned }
    }

    /// The newest first.
    pub(super) fn all(&self) -> &[Revision] {
        &self.all
    }

    /// The revision of the set as it stands; `None` where the controller has not stored it yet.
    pub(super) fn newest(&self) -> Option<&Revision> {
        self.named(&self.newest)
    }

    pub(super) fn is_newest(&self, revision: &Revision) -> bool {
        revision.name == self.newest
    }

    /// The one new pods are held at.
    pub(super) fn pinned(&self) -> Option<&Revision> {
        match self.pinned.as_ref()? {
            RevisionReference::Name(name) => self.named(name),
            RevisionReference::CustomVersion(version) => self.versioned(version),
        }
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
        let found = self.named(word).or_else(numbered).or_else(|| self.versioned(word));
        found.ok_or_else(|| format!("set {set} has no revision {word}: `pillion rollout history scs/{set}` lists them"))
    }

    /// The newest that had this custom version.
    fn versioned(&self, version: &str) -> Option<&Revision> {
        self.all.iter().find(|revision| revision.custom_versions.iter().any(|own| own == version))
    }
}
