//! Labels and annotations for pods: what Kubernetes takes, and what is ours.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Reader;
use crate::Reason;
use crate::meaning::AnnotationPatch;
use crate::pod_changes::{PatchPodMetadata, PatchPolicy};
use crate::problem::{FieldPath, Problem};

/// Domains whose keys on pods are records; nobody but us may write them.
const RESERVED: [&str; 2] = ["pillion.dev", "kruise.io"];

impl Reader {
    pub(super) fn labels(
        &mut self,
        stored: Option<&BTreeMap<String, String>>,
        path: &FieldPath,
    ) -> BTreeMap<String, String> {
        for (key, value) in stored.into_iter().flatten() {
            self.key(key, &path.key(key));
            if let Some(message) = wrong_value(value) {
                self.error(Reason::InvalidMetadata, path.key(key), message, "write it as a label");
            }
        }
        stored.cloned().unwrap_or_default()
    }

    pub(super) fn annotations(
        &mut self,
        stored: Option<&Vec<PatchPodMetadata>>,
        path: &FieldPath,
    ) -> Vec<AnnotationPatch> {
        let mut patches: Vec<AnnotationPatch> = Vec::new();
        let mut first: BTreeMap<&str, FieldPath> = BTreeMap::new();
        for (at, entry) in stored.into_iter().flatten().enumerate() {
            let policy = entry.patch_policy.unwrap_or_default();
            for (key, value) in &entry.annotations {
                let place = path.index(at).field("annotations").key(key);
                self.key(key, &place);
                if policy == PatchPolicy::MergePatchJson && !is_json_object(value) {
                    let message = "the value is no JSON object and cannot be merged";
                    self.error(Reason::InvalidMetadata, place.clone(), message, "write it as {\"key\": \"value\"}");
                }
                patches.push(AnnotationPatch { key: key.clone(), value: value.clone(), policy });
                if let Some(first) = first.get(key.as_str()) {
                    let message = format!("annotation {key} is given twice");
                    let problem = Problem::error(Reason::DuplicateName, place, message, "keep one of them");
                    self.problems.push(problem.with_also(first.clone()));
                } else {
                    first.insert(key, place);
                }
            }
        }
        patches
    }

    fn key(&mut self, key: &str, path: &FieldPath) {
        if let Some(message) = wrong_key(key) {
            self.error(Reason::InvalidMetadata, path.clone(), message, "write it as domain/name or name");
        }
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        if RESERVED
            .iter()
            .any(|own| domain.strip_suffix(own).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
        {
            let message = format!("{key} is reserved: keys of {domain} on pods are our own records");
            self.error(Reason::ReservedKey, path.clone(), message, "use another key");
        }
    }
}

fn is_json_object(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object())
}

/// Returns true for the key of a label.
pub(crate) fn is_label_key(key: &str) -> bool {
    let (domain, name) = key.split_once('/').map_or((None, key), |(domain, name)| (Some(domain), name));
    let is_domain = |text: &str| {
        let part = |part: &str| is_framed(part, |c| c == '-', char::is_ascii_lowercase);
        text.len() <= 253 && text.split('.').all(part)
    };
    name.len() <= 63 && is_name(name) && domain.is_none_or(is_domain)
}

/// Returns true for the value of a label.
pub(crate) fn is_label_value(value: &str) -> bool {
    value.is_empty() || (value.len() <= 63 && is_name(value))
}

/// Returns the message about a text that cannot be the key of a label or annotation.
pub(super) fn wrong_key(key: &str) -> Option<String> {
    (!is_label_key(key)).then(|| format!("{key:?} is no key of a label or annotation"))
}

/// Returns the message about a text that cannot be the value of a label.
pub(super) fn wrong_value(value: &str) -> Option<String> {
    (!is_label_value(value)).then(|| format!("{value:?} is no value of a label"))
}

fn is_name(text: &str) -> bool {
    is_framed(text, |c| matches!(c, '-' | '_' | '.'), char::is_ascii_alphabetic)
}

/// Letters and digits at both ends, some other characters between them.
fn is_framed(text: &str, between: fn(char) -> bool, letter: fn(&char) -> bool) -> bool {
    let end = |c: char| letter(&c) || c.is_ascii_digit();
    text.starts_with(end) && text.ends_with(end) && text.chars().all(|c| end(c) || between(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_judged_as_kubernetes_does() {
        let long = "a".repeat(64);
        for good in ["a", "A_b.c-9", "example.com/a", "a.b-c/d"] {
            assert_eq!(wrong_key(good), None);
        }
        for bad in ["", "-a", "a/", "/a", "Example.com/a", "a/b/c", "a b", "ex..com/a", &long] {
            assert_eq!(wrong_key(bad), Some(format!("{bad:?} is no key of a label or annotation")));
        }
        assert_eq!([wrong_value(""), wrong_value("v1.2_x")], [None, None]);
        for bad in ["a b", "a/", &long] {
            assert_eq!(wrong_value(bad), Some(format!("{bad:?} is no value of a label")));
        }
    }
}
