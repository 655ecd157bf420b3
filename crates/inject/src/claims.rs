//! What sets have claimed of a pod, so that no two of them give it different things of one name.
//!
//! Sets are asked in the order of their names, those that the pod has already before the others; the first that can be
//! applied has what it claims.

use std::collections::BTreeMap;

use pillion_api::{Meaning, PatchPolicy, Reason, Template};
use serde_json::{Map, Value};

use crate::decision::Refusal;
use crate::evaluate::{AppMount, sidecars, used_volumes};
use crate::volume;

/// Who has what. The first of each pair is the name of the set.
#[derive(Default)]
pub(crate) struct Claims<'a> {
    containers: BTreeMap<&'a str, &'a str>,
    volumes: BTreeMap<&'a str, (&'a str, &'a Map<String, Value>)>,
    labels: BTreeMap<&'a str, (&'a str, &'a str)>,
    annotations: BTreeMap<&'a str, (&'a str, PatchPolicy, &'a str)>,
    mounts: BTreeMap<(&'a str, String), (&'a str, &'a str, bool)>,
    service_account: Option<(&'a str, &'a str)>,
    process_namespace: Option<(&'a str, bool)>,
}

impl<'a> Claims<'a> {
    /// Whether a set has claimed a container of this name.
    pub(crate) fn has_container(&self, name: &str) -> bool {
        self.containers.contains_key(name)
    }

    /// The set that has claimed a volume of this name.
    pub(crate) fn volume(&self, name: &str) -> Option<&'a str> {
        self.volumes.get(name).map(|(set, _)| *set)
    }

    /// Whether a set has claimed a place in a container.
    pub(crate) fn has_mount(&self, container: &str, place: &str) -> bool {
        self.mounts.contains_key(&(container, place.to_owned()))
    }

    /// Says what of a set another has claimed before it.
    pub(crate) fn check(&self, template: &'a Template, mounts: &[AppMount<'a>]) -> Result<(), Refusal> {
        for sidecar in sidecars(template) {
            if let Some(set) = self.containers.get(sidecar.name.as_str()) {
                return Err(clash(&format!("container {}", sidecar.name), set));
            }
        }
        for wanted in used_volumes(template) {
            if let Some((set, claimed)) = self.volumes.get(wanted.name.as_str())
                && !volume::is_same(claimed, &wanted.volume)
            {
                return Err(clash(&format!("another volume {}", wanted.name), set));
            }
        }
        for mount in mounts {
            if let Some((set, volume, read_only)) = self.mounts.get(&(mount.container, mount.place.clone()))
                && (*volume, *read_only) != (mount.volume, mount.read_only)
            {
                return Err(clash(&format!("another mount at {} of container {}", mount.place, mount.container), set));
            }
        }
        for (key, value) in &template.labels {
            if let Some((set, claimed)) = self.labels.get(key.as_str())
                && claimed != value
            {
                return Err(clash(&format!("label {key}={claimed}"), set));
            }
        }
        for patch in template.annotations.iter().filter(|patch| patch.policy != PatchPolicy::Retain) {
            if let Some((set, policy, claimed)) = self.annotations.get(patch.key.as_str())
                && (PatchPolicy::MergePatchJson, PatchPolicy::MergePatchJson) != (*policy, patch.policy)
                && (*policy, *claimed) != (patch.policy, patch.value.as_str())
            {
                return Err(clash(&format!("another annotation {}", patch.key), set));
            }
        }
        match (self.service_account, template.service_account_name.as_deref()) {
            (Some((set, claimed)), Some(name)) if claimed != name => {
                return Err(clash(&format!("service account {claimed}"), set));
            }
            _ => {}
        }
        match (self.process_namespace, template.share_process_namespace) {
            (Some((set, claimed)), Some(share)) if claimed != share => {
                Err(clash(&format!("shareProcessNamespace {claimed}"), set))
            }
            _ => Ok(()),
        }
    }

    /// Gives a set what it adds.
    pub(crate) fn claim(&mut self, set: &'a Meaning, template: &'a Template, mounts: Vec<AppMount<'a>>) {
        let name = set.name.as_str();
        for sidecar in sidecars(template) {
            self.containers.entry(&sidecar.name).or_insert(name);
        }
        for volume in used_volumes(template) {
            self.volumes.entry(&volume.name).or_insert((name, &volume.volume));
        }
        for mount in mounts {
            let claim = (name, mount.volume, mount.read_only);
            self.mounts.entry((mount.container, mount.place)).or_insert(claim);
        }
        for (key, value) in &template.labels {
            self.labels.entry(key).or_insert((name, value));
        }
        for patch in template.annotations.iter().filter(|patch| patch.policy != PatchPolicy::Retain) {
            self.annotations.entry(&patch.key).or_insert((name, patch.policy, &patch.value));
        }
        self.service_account = self.service_account.or(template.service_account_name.as_deref().map(|it| (name, it)));
        self.process_namespace = self.process_namespace.or(template.share_process_namespace.map(|it| (name, it)));
    }
}

fn clash(what: &str, set: &str) -> Refusal {
    Refusal::new(Reason::SetsClash, format!("set {set} adds {what}"))
}
