//! The annotation of a pod that says which revision of each set it has, and since when.
//!
//! ```text
//! {"mesh":{"is":"mesh-n2b6j8xzfv","since":1763200000,"from":"mesh-hwkk58szq9","was":{"proxy":"0 1f2e3d4c5b6a"}}}
//! ```
//!
//! It is small and of its own, so that a write that updates a pod can test that it is still what it was planned from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The annotation.
pub const REVISIONS: &str = "pillion.dev/revisions";
/// One that is longer is not ours.
const MAX_LENGTH: usize = 64 << 10;

/// The revisions of a pod, by the name of the set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PodRevisions(pub BTreeMap<String, PodRevision>);

/// The revision a pod has of one set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodRevision {
    /// Its name.
    pub is: String,
    /// When the pod was updated to it, in seconds; absent where it was created with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    /// The one it was updated from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The containers that were changed, as they were then: restarts, the end of the id, and `again` where one did not run
    /// well with what it had. One that is still so runs with its old image.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub was: BTreeMap<String, String>,
    /// A revision the pod was updated to, was not well with, and was brought back from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// True if a container of the set was not exactly what the revision gives when the pod was created. Such a pod does not count
    /// for the health gate: whoever changed the container may have broken it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub altered: bool,
}

impl PodRevisions {
    /// Reads the annotation; `None` for what is none of ours.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_LENGTH {
            return None;
        }
        serde_json::from_str(text).ok()
    }

    /// The text of the annotation.
    pub fn render(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers can be written as JSON")
    }

    /// Of one set.
    pub fn of(&self, set: &str) -> Option<&PodRevision> {
        self.0.get(set)
    }
}

impl PodRevision {
    /// What a pod has that is created with a revision.
    pub fn new(is: impl Into<String>) -> Self {
        Self { is: is.into(), ..Self::default() }
    }

    /// The same of a pod whose containers were not exactly what the revision gives.
    pub fn altered(is: impl Into<String>) -> Self {
        Self { altered: true, ..Self::new(is) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_pod_says_little_and_an_updated_one_what_it_was() {
        let text = r#"{"mesh":{"is":"mesh-1"}}"#;
        let read = PodRevisions::parse(text).unwrap();
        assert_eq!(read.of("mesh"), Some(&PodRevision::new("mesh-1")));
        assert_eq!(read.render(), text);
        let text = r#"{"mesh":{"is":"mesh-2","since":5,"from":"mesh-1","was":{"proxy":"0 ab"},"failed":"mesh-3","altered":true}}"#;
        assert_eq!(PodRevisions::parse(text).unwrap().render(), text);
        for other in ["", "[]", r#"{"mesh":"mesh-1"}"#, r#"{"mesh":{}}"#, &" ".repeat(MAX_LENGTH + 1)] {
            assert_eq!(PodRevisions::parse(other), None, "{other:.20}");
        }
    }
}
