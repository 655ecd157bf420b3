//! The sets among some manifests.

use pillion_api::{API_VERSION, FieldPath, Problem, Reason, Review, review, validate_write};

use serde_json::Value;

use crate::manifest::Manifest;

const KIND: &str = "SidecarSet";

/// A set of a file, validated as if it were written to a cluster.
pub(crate) struct ReviewedSet<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) review: Review,
}

/// All sets as they would be written, in the order of the files, and how many other objects there are.
pub(crate) fn reviewed(manifests: &[Manifest]) -> (Vec<ReviewedSet<'_>>, usize) {
    let sets: Vec<_> = manifests
        .iter()
        .filter(|manifest| is_set(manifest))
        .map(|manifest| ReviewedSet { manifest, review: judged_by(manifest, validate_write).capped() })
        .collect();
    let others = manifests.len() - sets.len();
    (sets, others)
}

/// Kinds are free for everyone to take; this one is ours where its group is, or is forgotten.
pub(crate) fn is_set(manifest: &Manifest) -> bool {
    let group = |version: &str| version.split_once('/').map(|(group, _)| group.to_owned());
    let version = manifest.api_version();
    manifest.kind() == KIND && (version.is_empty() || group(version) == group(API_VERSION))
}

/// Reviews a set that a cluster has. Its templates are not validated, as those of stored sets are not.
pub(crate) fn judged(manifest: &Manifest) -> Review {
    judged_by(manifest, review)
}

fn judged_by(manifest: &Manifest, review: fn(&Value) -> Review) -> Review {
    let path = FieldPath::of("apiVersion");
    let refused = |problem| Review { meaning: None, problems: vec![problem] };
    match manifest.api_version() {
        API_VERSION => review(&manifest.value),
        "" => refused(Problem::error(
            Reason::SchemaViolation,
            path,
            "Required value",
            format!("write apiVersion: {API_VERSION}"),
        )),
        // Its fields are others, so it is not read any further.
        other => refused(Problem::error(
            Reason::NotSupported,
            path,
            format!("a SidecarSet of {other} is not supported"),
            format!("write it as {API_VERSION}"),
        )),
    }
}
