//! The revisions a cluster keeps of a set: which are stored, which are let go, and which one a set pins.

use std::collections::BTreeSet;
use std::sync::Arc;

use pillion_api::revision::{CUSTOM_VERSIONS, SET_UID_LABEL, data, fields_of_data};
use pillion_api::{API_VERSION, Meaning, RevisionReference, Template, template};
use serde_json::{Map, Value, json};

/// A revision as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Revision {
    /// Its name.
    pub name: String,
    /// The uid of its set.
    pub set_uid: String,
    /// Larger is newer. One that becomes the newest again gets another number.
    pub number: i64,
    /// All custom versions it ever had, the oldest first.
    pub custom_versions: Vec<String>,
    /// What was written.
    pub fields: Map<String, Value>,
    /// What it means; `None` for one that this version cannot read.
    pub template: Option<Arc<Template>>,
}

/// The revision a set pins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pinned<'a> {
    /// None.
    Nothing,
    /// The set as it stands.
    Newest,
    /// A stored one.
    Stored(&'a Revision, &'a Arc<Template>),
    /// One by this name or custom version that is not there, or cannot be read.
    Missing(&'a str),
    /// One that belongs to another set.
    Foreign(&'a str),
}

/// What is to be done to the stored revisions of a set.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Store this object.
    Create(Value),
    /// Give a revision this number and these custom versions.
    Change {
        /// Its name.
        name: String,
        /// The number.
        number: i64,
        /// The custom versions.
        custom_versions: Vec<String>,
    },
    /// Let one go.
    Delete(String),
}

impl Revision {
    /// Reads a `ControllerRevision`; `None` for one that is not ours.
    pub fn read(object: &Value) -> Option<Self> {
        let metadata = object.get("metadata")?;
        let versions = metadata["annotations"][CUSTOM_VERSIONS].as_str();
        let fields = fields_of_data(object.get("data")?)?;
        Some(Self {
            name: metadata["name"].as_str()?.to_owned(),
            set_uid: metadata["labels"][SET_UID_LABEL].as_str()?.to_owned(),
            number: object["revision"].as_i64()?,
            custom_versions: versions.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default(),
            template: template(fields).ok().map(Arc::new),
            fields: fields.clone(),
        })
    }
}

/// The revision a set pins, of all there are. A name or custom version is of this set and no other.
pub fn pinned<'a>(set: &'a Meaning, uid: &str, all: impl Iterator<Item = &'a Revision>) -> Pinned<'a> {
    let Some(pin) = &set.injection.pin else { return Pinned::Nothing };
    let (word, is_meant): (&str, fn(&Revision, &str) -> bool) = match &pin.revision {
        RevisionReference::Name(name) if *name == set.revision => return Pinned::Newest,
        RevisionReference::Name(name) => (name, |revision, word| revision.name == word),
        RevisionReference::CustomVersion(version) => {
            (version, |revision, word| revision.custom_versions.iter().any(|own| own == word))
        }
    };
    let is_label = matches!(&pin.revision, RevisionReference::CustomVersion(_));
    let (mut found, mut is_foreign): (Option<&Revision>, bool) = (None, false);
    for revision in all.filter(|revision| is_meant(revision, word)) {
        if revision.set_uid != uid {
            is_foreign = true;
        } else if found.is_none_or(|found| found.number < revision.number) {
            found = Some(revision);
        }
    }
    // The label of the set names the set as it stands, also before that is stored.
    if is_label && set.custom_version.as_deref() == Some(word) {
        return Pinned::Newest;
    }
    match found {
        Some(revision) if revision.name == set.revision => Pinned::Newest,
        Some(revision) => revision.template.as_ref().map_or(Pinned::Missing(word), |it| Pinned::Stored(revision, it)),
        // Others may have given their sets the same version.
        None if is_foreign && !is_label => Pinned::Foreign(word),
        None => Pinned::Missing(word),
    }
}

/// What is to be done so that the newest revision of a set is stored, and no more than its limit besides those in use.
///
/// `stored` are those of this set. The one it pins is in use, and so are those `in_use` names.
pub fn steps(
    set: &Meaning,
    uid: &str,
    namespace: &str,
    spec: &Map<String, Value>,
    stored: &[&Revision],
    in_use: &BTreeSet<&str>,
) -> Vec<Step> {
    let last = stored.iter().map(|revision| revision.number).max().unwrap_or_default();
    let version = set.custom_version.as_ref();
    let mut steps = Vec::new();
    match stored.iter().find(|revision| revision.name == set.revision) {
        None => {
            let versions: Vec<&String> = version.into_iter().collect();
            let fields = pillion_api::revision::fields(spec);
            steps.push(Step::Create(object(set, uid, namespace, last + 1, &versions, &fields)));
        }
        Some(revision) => {
            let mut versions = revision.custom_versions.clone();
            if let Some(version) = version.filter(|version| revision.custom_versions.last() != Some(*version)) {
                versions.retain(|own| own != version);
                versions.push(version.clone());
            }
            let number = if revision.number == last { last } else { last + 1 };
            if number != revision.number || versions != revision.custom_versions {
                steps.push(Step::Change { name: revision.name.clone(), number, custom_versions: versions });
            }
        }
    }
    let kept = match pinned(set, uid, stored.iter().copied()) {
        Pinned::Stored(revision, _) => Some(revision.name.as_str()),
        Pinned::Nothing | Pinned::Newest | Pinned::Missing(_) | Pinned::Foreign(_) => None,
    };
    let is_new = stored.iter().all(|revision| revision.name != set.revision);
    let limit = usize::try_from(set.revision_history_limit).unwrap_or(usize::MAX);
    let too_many = (stored.len() + usize::from(is_new)).saturating_sub(limit);
    let is_free = |name: &str| name != set.revision && kept != Some(name) && !in_use.contains(name);
    let mut free: Vec<&&Revision> = stored.iter().filter(|revision| is_free(&revision.name)).collect();
    free.sort_by_key(|revision| revision.number);
    steps.extend(free.into_iter().take(too_many).map(|revision| Step::Delete(revision.name.clone())));
    steps
}

fn object(
    set: &Meaning,
    uid: &str,
    namespace: &str,
    number: i64,
    versions: &[&String],
    fields: &Map<String, Value>,
) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": set.revision,
            "namespace": namespace,
            "labels": {SET_UID_LABEL: uid, "app.kubernetes.io/part-of": "pillion"},
            "annotations": {CUSTOM_VERSIONS: json!(versions).to_string()},
            "ownerReferences": [{"apiVersion": API_VERSION, "kind": "SidecarSet", "name": set.name, "uid": uid, "controller": true}],
        },
        "revision": number,
        "data": data(fields),
    })
}

#[cfg(test)]
mod tests;
