//! Sets that cannot both be applied to one pod.
//!
//! Only sets some pod can match both of are compared. Whatever is shared by both and means the same is no clash. A conflict
//! is certain, and an error, if one of the two selects every pod that the other selects.

use std::collections::BTreeMap;

use crate::meaning::{Meaning, NAMESPACE_NAME_LABEL, Namespaces, Sidecar, Template};
use crate::pod_changes::PatchPolicy;
use crate::problem::{FieldPath, Problem};
use crate::sidecar_set::SetMode;
use crate::{AnnotationPatch, Reason, Selector};

/// Something that a set and another one would give to one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    /// What is to be said about the set that was asked about.
    pub problem: Problem,
    /// Name of the other set.
    pub other: String,
    /// Where its half is, in the other set.
    pub path_in_other: FieldPath,
}

/// What a set has that others have too. A set of the same name is another state of this one, and not compared.
pub fn clashes<'a>(set: &Meaning, others: impl IntoIterator<Item = &'a Meaning>) -> Vec<Clash> {
    let compared = others.into_iter().filter(|other| other.name != set.name && may_meet(set, other));
    compared.flat_map(|other| between(set, other)).collect()
}

/// Whether some pod can get something from both.
fn may_meet(one: &Meaning, other: &Meaning) -> bool {
    // What only observes gives nothing.
    let both_inject = [one, other].iter().all(|set| set.mode == SetMode::Inject);
    both_inject && one.selector.overlaps(&other.selector) && share_a_namespace(&one.namespaces, &other.namespaces)
}

/// The relation of two SidecarSets that some pod can match.
enum Meeting<'a> {
    /// Some pods may match both.
    Possible,
    /// Every pod that `inner` selects is selected by `outer` as well.
    Certain { inner: &'a str, outer: &'a str },
}

impl<'a> Meeting<'a> {
    fn of(one: &'a Meaning, other: &'a Meaning) -> Self {
        // A paused SidecarSet adds nothing to new pods until another write resumes it.
        let is_paused = [one, other].iter().any(|set| set.injection.paused);
        if !is_paused && selects_all_of(one, other) {
            Self::Certain { inner: &other.name, outer: &one.name }
        } else if !is_paused && selects_all_of(other, one) {
            Self::Certain { inner: &one.name, outer: &other.name }
        } else {
            Self::Possible
        }
    }
}

/// Returns true if `outer` selects every pod that `inner` selects. Some such pairs are not recognized: a namespace by its
/// name may have labels that only the cluster knows.
fn selects_all_of(outer: &Meaning, inner: &Meaning) -> bool {
    let namespaces = match (&inner.namespaces, &outer.namespaces) {
        (_, Namespaces::All) => true,
        (Namespaces::All, _) => false,
        (Namespaces::Named(inner), Namespaces::Named(outer)) => inner == outer,
        (Namespaces::Named(name), Namespaces::Selected(selector)) => {
            Selector::of_label(NAMESPACE_NAME_LABEL, name).implies(selector)
        }
        (Namespaces::Selected(selector), Namespaces::Named(name)) => {
            selector.implies(&Selector::of_label(NAMESPACE_NAME_LABEL, name))
        }
        (Namespaces::Selected(inner), Namespaces::Selected(outer)) => inner.implies(outer),
    };
    namespaces && inner.selector.implies(&outer.selector)
}

fn share_a_namespace(one: &Namespaces, other: &Namespaces) -> bool {
    match (one, other) {
        (Namespaces::All, Namespaces::Selected(selector)) | (Namespaces::Selected(selector), Namespaces::All) => {
            selector.contradiction().is_none()
        }
        (Namespaces::All, _) | (_, Namespaces::All) => true,
        (Namespaces::Named(one), Namespaces::Named(other)) => one == other,
        (Namespaces::Named(name), Namespaces::Selected(selector))
        | (Namespaces::Selected(selector), Namespaces::Named(name)) => {
            selector.can_match_with(NAMESPACE_NAME_LABEL, name)
        }
        (Namespaces::Selected(one), Namespaces::Selected(other)) => one.overlaps(other),
    }
}

fn between(set: &Meaning, other: &Meaning) -> Vec<Clash> {
    let (first, last) = if set.name < other.name { (set, other) } else { (other, set) };
    let mut clashes = Vec::new();
    let help = "rename or remove it in one of the sets, or make their selectors exclude each other";
    let possible = |what: &str, path: FieldPath| {
        let message = format!(
            "{what} in set {} too: a pod that matches both gets that of {}, and {} is refused",
            other.name, first.name, last.name
        );
        Problem::warning(Reason::MayClashWithSet, path, message, help)
    };
    let meeting = Meeting::of(set, other);
    let mut found = |what: String, path: FieldPath, path_in_other: FieldPath| {
        let problem = match meeting {
            Meeting::Possible => possible(&what, path),
            Meeting::Certain { inner, outer } => {
                let message = format!(
                    "{what} in set {} too: {outer} selects every pod that {inner} selects, and {} cannot be applied to them",
                    other.name, last.name
                );
                Problem::error(Reason::ConflictsWithSet, path, message, help)
            }
        };
        clashes.push(Clash { problem, other: other.name.clone(), path_in_other });
    };
    let spec = FieldPath::of("spec");
    let (ours, theirs) = (&set.template, &other.template);

    // By name, so that two large sets are compared in one pass.
    let by_name = places(containers(theirs).map(|(path, sidecar)| (sidecar.name.as_str(), path)));
    for (path, container) in containers(ours) {
        for path_in_other in by_name.get(container.name.as_str()).into_iter().flatten() {
            found(format!("a container {} is", container.name), path.clone(), path_in_other.clone());
        }
    }
    let by_name = places(theirs.volumes.iter().enumerate().map(|(at, volume)| (volume.name.as_str(), at)));
    for (at, volume) in ours.volumes.iter().enumerate() {
        let same_name = by_name.get(volume.name.as_str()).and_then(|found| found.first().copied());
        if let Some(of_other) = same_name.filter(|of_other| theirs.volumes[*of_other] != *volume) {
            let path = |at| spec.field("volumes").index(at);
            found(format!("a volume {} with other content is", volume.name), path(at), path(of_other));
        }
    }
    for (key, value) in &ours.labels {
        if theirs.labels.get(key).is_some_and(|theirs| theirs != value) {
            let path = spec.field("labels").key(key);
            found(format!("label {key} with another value is"), path.clone(), path);
        }
    }
    let by_key = places(theirs.annotations.iter().map(|annotation| (annotation.key.as_str(), annotation)));
    for annotation in &ours.annotations {
        let same_key = by_key.get(annotation.key.as_str()).into_iter().flatten();
        if same_key.into_iter().any(|theirs| fight(annotation, theirs)) {
            let path = spec.field("patchPodMetadata").key(&annotation.key);
            found(format!("annotation {} with another value is", annotation.key), path.clone(), path);
        }
    }
    if differ(ours.service_account_name.as_ref(), theirs.service_account_name.as_ref()) {
        let path = spec.field("serviceAccountName");
        found("another serviceAccountName is".to_owned(), path.clone(), path);
    }
    if differ(ours.share_process_namespace.as_ref(), theirs.share_process_namespace.as_ref()) {
        let path = spec.field("shareProcessNamespace");
        found("the opposite shareProcessNamespace is".to_owned(), path.clone(), path);
    }
    let by_path = places(theirs.app_volume_mounts.iter().enumerate().map(|(at, mount)| (mount.path.as_str(), at)));
    for (at, mount) in ours.app_volume_mounts.iter().enumerate() {
        let same_path = by_path.get(mount.path.as_str()).and_then(|found| found.first().copied());
        if let Some(of_other) = same_path.filter(|of_other| theirs.app_volume_mounts[*of_other] != *mount) {
            let path = |at| spec.field("appVolumeMounts").index(at).field("path");
            // Only the names of the pod's containers decide whether both mount into one of them.
            let problem = possible(&format!("another mount at {} is", mount.path), path(at));
            clashes.push(Clash { problem, other: other.name.clone(), path_in_other: path(of_other) });
        }
    }
    clashes
}

/// Items by their key.
fn places<'a, T>(all: impl Iterator<Item = (&'a str, T)>) -> BTreeMap<&'a str, Vec<T>> {
    let mut by_key: BTreeMap<&str, Vec<T>> = BTreeMap::new();
    for (key, item) in all {
        by_key.entry(key).or_default().push(item);
    }
    by_key
}

/// Both kinds, which share one space of names, each with the place of its name.
fn containers(template: &Template) -> impl Iterator<Item = (FieldPath, &Sidecar)> {
    let lists = [("initContainers", &template.init_containers), ("containers", &template.containers)];
    lists.into_iter().flat_map(|(field, list)| {
        let path = FieldPath::of("spec").field(field);
        list.iter().enumerate().map(move |(at, sidecar)| (path.index(at).field("name"), sidecar))
    })
}

/// Whether two annotations of one key cannot both be written. What retains gives way, and what merges finds a place beside
/// what merges.
fn fight(one: &AnnotationPatch, other: &AnnotationPatch) -> bool {
    use PatchPolicy::{MergePatchJson, Overwrite, Retain};
    one.key == other.key
        && match (one.policy, other.policy) {
            (Retain, _) | (_, Retain) | (MergePatchJson, MergePatchJson) => false,
            (Overwrite, Overwrite) => one.value != other.value,
            (Overwrite, MergePatchJson) | (MergePatchJson, Overwrite) => true,
        }
}

fn differ<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one != other)
}
