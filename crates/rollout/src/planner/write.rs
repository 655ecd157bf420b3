//! The write that gives a pod another revision.

use std::collections::BTreeMap;

use pillion_api::{PodRevision, Template};
use pillion_plan::{Adoption, ImageChange, List, PodUpdate, ResourceChange};
use serde_json::{Value, json};

use super::roster::Member;
use crate::difference::{Difference, lasting};
use crate::fleet::Fleet;
use crate::pod::{Container, Pod, Status};
use crate::resources;
use crate::swap::{Swap, mark};

/// What has to be changed in pods of one revision.
pub(super) enum Change {
    /// The images and resources of these containers.
    Of { images: BTreeMap<String, String>, resources: BTreeMap<String, (Option<Value>, Value)> },
    /// Whatever images differ; nothing else is known.
    ByImages,
}

impl Change {
    /// What has to be changed in pods of an older revision that differs so from a newer one.
    pub(super) fn between(old: &Template, new: &Template, difference: &Difference) -> Self {
        let (before, after) = (lasting(old), lasting(new));
        let field = |of: &BTreeMap<&str, (List, &pillion_api::Sidecar)>, name: &str, key: &str| {
            of.get(name).and_then(|(_, sidecar)| sidecar.container.get(key)).cloned()
        };
        let images = difference.images.iter().map(|place| {
            let image = field(&after, &place.name, "image").unwrap_or_default();
            (place.name.clone(), image.as_str().unwrap_or_default().to_owned())
        });
        let resources = difference.resources.iter().map(|place| {
            let wanted = field(&after, &place.name, "resources").unwrap_or_else(|| json!({}));
            (place.name.clone(), (field(&before, &place.name, "resources"), wanted))
        });
        Self::Of { images: images.collect(), resources: resources.collect() }
    }
}

/// Whether a pod has the images of a template.
pub(super) fn has_images(pod: &Pod, template: &Template) -> bool {
    by_images(pod, template).is_empty()
}

/// What keeps the resources of a running pod from being changed so.
pub(super) fn wrong_resources(pod: &Pod, change: &Change) -> Option<String> {
    let Change::Of { resources: wanted, .. } = change else { return None };
    wanted.iter().find_map(|(name, (old, new))| {
        let container = pod.container(name)?;
        let given = resources::given(container.resources.as_deref(), old.as_ref(), new);
        let wrong = resources::cannot_become(container.resources.as_deref(), &given)?;
        Some(format!("resources of container {name}: {wrong}"))
    })
}

/// The write that gives a pod a revision. `failed`: the one it was not well with.
pub(super) fn update(
    fleet: &Fleet<'_>,
    member: &Member<'_>,
    to: (&str, &Template),
    change: &Change,
    failed: Option<&str>,
) -> PodUpdate {
    let pod = member.pod;
    let (images, resources) = match change {
        Change::ByImages => (by_images(pod, to.1), Vec::new()),
        Change::Of { images, resources } => (by_change(pod, images), resized(pod, resources)),
    };
    let entry = PodRevision {
        is: to.0.to_owned(),
        since: Some(fleet.now.as_second()),
        from: came_from(member, to.0, &images).map(str::to_owned),
        was: marks(member, &images),
        failed: failed.map(str::to_owned),
        altered: member.given.is_some_and(|given| given.altered),
    };
    let mut record = pod.revisions.clone();
    record.0.insert(fleet.set.name.clone(), entry);
    let adopted = || Adoption { containers: pod.containers.iter().map(|it| it.name.to_string()).collect() };
    PodUpdate {
        namespace: pod.namespace.to_string(),
        name: pod.name.to_string(),
        uid: pod.uid.to_string(),
        set: fleet.set.name.clone(),
        to: to.0.to_owned(),
        images,
        resources,
        record_before: pod.record.as_deref().map(str::to_owned),
        record_after: record.render(),
        adoption: (!pod.is_listed).then(adopted),
    }
}

/// The last revision the pod was well with, as far as that is known.
fn came_from<'a>(member: &Member<'a>, to: &str, images: &[ImageChange]) -> Option<&'a str> {
    let given = member.given?;
    let is_well = member.swap.is_done() && images.iter().all(|change| runs_well(member.pod, &change.name));
    if is_well { Some(&given.is) } else { given.from.as_deref().filter(|from| *from != to) }
}

/// How the containers are now that will not be so when the pod is done; those that were not done before stay among them.
fn marks(member: &Member<'_>, images: &[ImageChange]) -> BTreeMap<String, String> {
    let unfinished = member.given.into_iter().filter(|_| !member.swap.is_done()).flat_map(|given| &given.was);
    let mut marks: BTreeMap<String, String> = unfinished.map(|(name, was)| (name.clone(), was.clone())).collect();
    for change in images {
        let status = member.pod.container(&change.name).and_then(|container| container.status.as_ref());
        let is_moving = marks.contains_key(&change.name) || !runs_well(member.pod, &change.name);
        marks.insert(change.name.clone(), mark(status, is_moving));
    }
    marks
}

fn runs_well(pod: &Pod, name: &str) -> bool {
    pod.container(name).and_then(|it| it.status.as_ref()).is_some_and(Status::is_running_and_ready)
}

fn by_change(pod: &Pod, images: &BTreeMap<String, String>) -> Vec<ImageChange> {
    let wanted = images.iter().filter_map(|(name, image)| Some((pod.container(name)?, &**image)));
    wanted.filter_map(|(container, image)| image_change(container, image)).collect()
}

fn by_images(pod: &Pod, template: &Template) -> Vec<ImageChange> {
    let wanted = lasting(template).into_iter().filter_map(|(name, (_, sidecar))| {
        let image = sidecar.container.get("image").and_then(Value::as_str)?;
        image_change(pod.container(name)?, image)
    });
    wanted.collect()
}

fn image_change(container: &Container, image: &str) -> Option<ImageChange> {
    (*container.image != *image).then(|| ImageChange {
        list: container.list,
        index: container.index,
        name: container.name.to_string(),
        from: container.image.to_string(),
        to: image.to_owned(),
    })
}

fn resized(pod: &Pod, wanted: &BTreeMap<String, (Option<Value>, Value)>) -> Vec<ResourceChange> {
    let changes = wanted.iter().filter_map(|(name, (old, new))| {
        let container = pod.container(name)?;
        let to = resources::given(container.resources.as_deref(), old.as_ref(), new);
        (!resources::are_equal(container.resources.as_deref(), &to)).then(|| ResourceChange {
            list: container.list,
            index: container.index,
            name: name.clone(),
            from: container.resources.as_deref().cloned(),
            to,
        })
    });
    changes.collect()
}

/// Whether what a pod was given has failed, so that nothing is lost by giving it something else at once.
pub(super) fn has_failed(member: &Member<'_>) -> bool {
    matches!(member.swap, Swap::Failed(_))
}
