//! How a pod that exists stands to the sets, by the rule of the controller.

use std::collections::BTreeMap;

use jiff::Timestamp;
use pillion_api::Meaning;
use pillion_inject::Namespace;
use pillion_inject::coverage::{LivingPod, Marks, Standing, standings};
use pillion_inject::marks::{INJECTED_LABEL, is_injected_variable};
use serde_json::Value;

use crate::live::World;

/// What is missing on a pod, or excused, by the name of the set.
pub(super) fn standing_of(world: &World, pod: &Value, namespace: &Namespace) -> BTreeMap<String, Standing> {
    let texts = |field: &str| pod["metadata"][field].as_object().into_iter().flatten();
    let annotation = |key: &str| pod["metadata"]["annotations"].get(key).and_then(Value::as_str);
    let is_labelled = pod["metadata"]["labels"].get(INJECTED_LABEL).is_some();
    let Some(marks) = Marks::read(annotation, is_labelled, has_injected_container(pod)) else { return BTreeMap::new() };
    let labels = texts("labels").filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())));
    let created = pod["metadata"]["creationTimestamp"].as_str().and_then(|time| time.parse().ok());
    let living = LivingPod {
        labels: labels.collect(),
        created: created.unwrap_or(Timestamp::UNIX_EPOCH),
        is_deleting: false,
        is_ready: false,
        marks: marks.into(),
    };
    let since = |set: &Meaning| world.observed.get(&set.name).copied();
    standings(&living, namespace, &world.given.sets, world.given.facts.installation(), since)
}

fn has_injected_container(pod: &Value) -> bool {
    let lists = ["initContainers", "containers"].into_iter().filter_map(|list| pod["spec"][list].as_array());
    let mut variables = lists.flatten().filter_map(|container| container["env"].as_array()).flatten();
    variables.any(|variable| {
        variable["name"].as_str().is_some_and(|name| is_injected_variable(name, variable["value"].as_str()))
    })
}
