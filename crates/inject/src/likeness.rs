//! Comparison of a container of a pod that is being created with the one that a revision of a set gives.
//!
//! A pod is not believed: its author may have written the variable and the annotations of an injected pod. The container that the
//! revision gives is built again and compared. Sizes do not count, and neither does what the API server fills in. A change that
//! other admission plugins may make (the registry of the image, variables, mounts, the security context) makes a container
//! an altered one: it is kept as it is, so that a review after theirs does not undo their work.

use pillion_api::Sidecar;
use serde_json::{Map, Value};

use crate::apply::TOKEN_PATH;
use crate::finish::unwrap_container;
use crate::plain_form::plain;
use crate::pod::{Container, Pod, text};
use crate::sidecar::{build_alone, build_without_sizes};

/// Fields that are not compared: sizes, and the policy that the admission plugin `AlwaysPullImages` sets.
const NOT_COMPARED: [&str; 3] = ["resources", "resizePolicy", "imagePullPolicy"];
/// Fields that other admission plugins may change: the image and the security context within limits, the others as they like.
const OF_OTHERS: [&str; 6] = ["image", "securityContext", "env", "envFrom", "volumeMounts", "volumeDevices"];
/// Lists to which a sidecar may add what containers of the pod have.
const FROM_THE_POD: [&str; 3] = ["env", "volumeMounts", "volumeDevices"];

/// The likeness of a container to the one that a revision gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Likeness {
    /// It is that one.
    Equal,
    /// It is that one, with changes that other admission plugins make.
    Altered,
    /// It is another one.
    Different,
}

/// Compares a container of a pod with the one that a sidecar becomes in it.
pub(crate) fn likeness(pod: &Pod<'_>, sidecar: &Sidecar, present: &Container<'_>, finishes: bool) -> Likeness {
    let mut present = present.json.clone();
    // What ends sidecars comes after the sets, and is written again by each review.
    if finishes {
        unwrap_container(&mut present);
        if sidecar.ends_with_the_others && !sidecar.container.contains_key("restartPolicy") {
            present.remove("restartPolicy");
        }
    }
    let [given, present] = [build_alone(sidecar), present].map(|container| comparable(&container));
    if without(&given, &FROM_THE_POD) == without(&present, &FROM_THE_POD)
        && FROM_THE_POD.iter().all(|field| has_list(pod, sidecar, &given, &present, field))
    {
        return Likeness::Equal;
    }
    let image = |container: &Map<String, Value>| text(container, "image").unwrap_or_default().to_owned();
    let is_altered = is_image_of(&image(&present), &image(&given))
        && includes(present.get("securityContext"), given.get("securityContext"))
        && without(&given, &OF_OTHERS) == without(&present, &OF_OTHERS);
    if is_altered { Likeness::Altered } else { Likeness::Different }
}

fn without(container: &Map<String, Value>, left_out: &[&str]) -> Map<String, Value> {
    let fields = container.iter().filter(|(field, _)| !left_out.contains(&field.as_str()));
    fields.map(|(field, value)| (field.clone(), value.clone())).collect()
}

/// Returns true if a list has, in order, all that the sidecar gives, and else only what it may have from the pod. The containers of the pod
/// may have got more since the sidecar was added, so not everything that can be shared must be there.
fn has_list(
    pod: &Pod<'_>,
    sidecar: &Sidecar,
    given: &Map<String, Value>,
    present: &Map<String, Value>,
    field: &str,
) -> bool {
    let mut given = list(given, field).peekable();
    let others: Vec<&Value> = list(present, field).filter(|item| given.next_if_eq(item).is_none()).collect();
    if given.peek().is_some() {
        return false;
    }
    if others.is_empty() {
        return true;
    }
    let (built, _) = build_without_sizes(pod, sidecar);
    let built = comparable(&built);
    let may_have = |item: &Value| match field {
        "volumeMounts" => sidecar.shares_volumes,
        "volumeDevices" => sidecar.shares_devices,
        _ => item["name"].as_str().is_some_and(|name| {
            let is_transferred = sidecar.transfers.iter().any(|transfer| transfer.names.iter().any(|it| it == name));
            is_transferred || (sidecar.shares_volumes && refers_to(present, name))
        }),
    };
    // One of the pod's containers may have become a native sidecar meanwhile.
    let sources = pod.all().filter(|container| !container.is_injected);
    let sources: Vec<Map<String, Value>> = sources.map(|container| comparable(container.json)).collect();
    let is_of_the_pod =
        |item: &Value| sources.iter().flat_map(|source| list(source, field)).any(|source| source == item);
    others
        .into_iter()
        .all(|item| list(&built, field).any(|given| given == item) || (may_have(item) && is_of_the_pod(item)))
}

/// Returns true if a mount of a container, or one of its variables, refers to a variable: it is shared with the mount.
fn refers_to(container: &Map<String, Value>, variable: &str) -> bool {
    let reference = format!("$({variable})");
    let paths = list(container, "volumeMounts").filter_map(|mount| mount["subPathExpr"].as_str());
    let values = list(container, "env").filter_map(|variable| variable["value"].as_str());
    paths.chain(values).any(|text| text.contains(&reference))
}

fn list<'c>(container: &'c Map<String, Value>, field: &str) -> impl Iterator<Item = &'c Value> {
    container.get(field).and_then(Value::as_array).into_iter().flatten()
}

fn comparable(container: &Map<String, Value>) -> Map<String, Value> {
    let mut compared = without(container, &NOT_COMPARED);
    if let Some(Value::Array(mounts)) = compared.get_mut("volumeMounts") {
        mounts.retain(|mount| mount["mountPath"] != TOKEN_PATH);
    }
    match plain("", &Value::Object(compared)) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Returns true if everything that is given is there.
fn includes(present: Option<&Value>, given: Option<&Value>) -> bool {
    match (present, given) {
        (_, None) => true,
        (Some(Value::Object(present)), Some(Value::Object(given))) => {
            given.iter().all(|(field, value)| includes(present.get(field), Some(value)))
        }
        (present, given) => present == given,
    }
}

/// An image by its parts.
#[derive(Debug, PartialEq, Eq)]
struct Image<'a> {
    /// Without the registry.
    repository: &'a str,
    tag: Option<&'a str>,
    digest: Option<&'a str>,
}

impl<'a> Image<'a> {
    fn parse(image: &'a str) -> Self {
        let (image, digest) = image.split_once('@').map_or((image, None), |(image, digest)| (image, Some(digest)));
        let path = match image.split_once('/') {
            Some((registry, path)) if registry.contains(['.', ':']) || registry == "localhost" => path,
            _ => image,
        };
        let (repository, tag) = match path.rsplit_once(':') {
            Some((repository, tag)) if !tag.contains('/') => (repository, Some(tag)),
            _ => (path, None),
        };
        let repository = repository.strip_prefix("library/").unwrap_or(repository);
        Self { repository, tag: tag.or(digest.is_none().then_some("latest")), digest }
    }
}

/// Returns true if an image is the given one from another registry, or with the digest that its tag has.
fn is_image_of(present: &str, given: &str) -> bool {
    let [present, given] = [present, given].map(Image::parse);
    let is_same_repository = present.repository == given.repository
        || present.repository.strip_suffix(given.repository).is_some_and(|mirror| mirror.ends_with('/'));
    let is_same_version = match given.digest {
        Some(_) => present.digest == given.digest,
        None => present.tag == given.tag || (present.tag.is_none() && present.digest.is_some()),
    };
    is_same_repository && is_same_version
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_may_come_from_another_registry_and_by_its_digest() {
        for (given, present) in [
            ("proxy:1", "proxy:1"),
            ("proxy", "proxy:latest"),
            ("proxy:1", "mirror.local/proxy:1"),
            ("docker.io/library/proxy:1", "mirror.local:5000/hub/library/proxy:1"),
            ("team/proxy:1", "mirror.local/quay/team/proxy:1"),
            ("proxy:1", "proxy:1@sha256:ab"),
            ("proxy:1", "proxy@sha256:ab"),
            ("proxy@sha256:ab", "mirror.local/proxy:1@sha256:ab"),
            ("localhost/proxy:1", "proxy:1"),
        ] {
            assert!(is_image_of(present, given), "{given} {present}");
        }
        for (given, present) in [
            ("proxy:1", "proxy:2"),
            ("proxy:1", "proxy"),
            ("proxy:1", "mirror.local/my-proxy:1"),
            ("team/proxy:1", "other/proxy:1"),
            ("proxy:1", "proxy:2@sha256:ab"),
            ("proxy@sha256:ab", "proxy@sha256:cd"),
            ("proxy@sha256:ab", "proxy:1"),
            ("proxy:1", ""),
        ] {
            assert!(!is_image_of(present, given), "{given} {present}");
        }
    }
}
