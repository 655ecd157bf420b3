//! What one set would add to a pod, or why it cannot.

use std::collections::BTreeMap;

use pillion_api::{AnnotationPatch, PatchPolicy, Placement, Reason, Sidecar, Template};
use serde_json::{Map, Value, json};

use crate::claims::Claims;
use crate::decision::{Size, Warning};
use crate::pod::{Container, Pod, items, text};
use crate::pod_security;
use crate::security::Security;
use crate::sidecar::{build, one_spelling, place};

/// Why a set cannot be applied to a pod.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// What a set adds to a pod.
pub(crate) struct Additions<'a> {
    pub(crate) template: &'a Template,
    pub(crate) init_containers: Vec<Addition<'a>>,
    pub(crate) containers: Vec<Addition<'a>>,
    pub(crate) volumes: Vec<&'a Map<String, Value>>,
    pub(crate) mounts: Vec<AppMount<'a>>,
    /// Annotations whose values change.
    pub(crate) annotations: BTreeMap<&'a str, String>,
    pub(crate) sizes: Vec<Size<'a>>,
    pub(crate) warnings: Vec<Warning>,
}

/// A container to add.
pub(crate) struct Addition<'a> {
    pub(crate) name: &'a str,
    pub(crate) placement: Placement,
    /// `None` where the pod has it already.
    pub(crate) container: Option<Value>,
}

/// A volume of the set in one of the pod's own containers.
#[derive(Clone)]
pub(crate) struct AppMount<'a> {
    pub(crate) list: &'static str,
    pub(crate) container: &'a str,
    pub(crate) volume: &'a str,
    pub(crate) path: &'a str,
    pub(crate) place: String,
    pub(crate) read_only: bool,
    pub(crate) is_there: bool,
}

impl AppMount<'_> {
    pub(crate) fn json(&self) -> Value {
        let mut mount = json!({"name": self.volume, "mountPath": self.path});
        if self.read_only {
            mount["readOnly"] = json!(true);
        }
        mount
    }
}

/// What a set is asked about.
pub(crate) struct Question<'a, 'q> {
    pub(crate) pod: &'q Pod<'a>,
    pub(crate) template: &'a Template,
    pub(crate) claims: &'q Claims<'a>,
    /// Annotations as the sets before it leave them, where they change them.
    pub(crate) annotations: &'q BTreeMap<&'a str, String>,
    /// Whether the pod says that this set was applied before.
    pub(crate) was_applied: bool,
    /// Whether it only observes, so that what others added before is not in its way.
    pub(crate) observes: bool,
    pub(crate) security: Security,
}

impl<'a> Question<'a, '_> {
    /// Whether all sidecars of the set are in the pod from an earlier review.
    pub(crate) fn is_already_there(&self) -> bool {
        let mut sidecars = self.sidecars();
        self.was_applied
            && sidecars.all(|sidecar| {
                !self.claims.has_container(&sidecar.name)
                    && self.container(&sidecar.name).is_some_and(|container| container.is_injected)
            })
    }

    /// Every check is made before anything is added: a set is applied whole or not at all.
    pub(crate) fn evaluate(&self) -> Result<Additions<'a>, Refusal> {
        for sidecar in self.sidecars() {
            if self.container(&sidecar.name).is_some_and(|container| !container.is_injected) {
                let message = format!("the pod has a container {} of its own", sidecar.name);
                return Err(Refusal::new(Reason::ContainerClash, message));
            }
        }
        let mounts = self.app_mounts()?;
        self.claims.check(self.template, &mounts)?;
        let volumes = self.volumes()?;
        self.labels()?;
        self.service_account()?;
        self.process_namespace()?;
        let annotations = self.annotations()?;
        let mut additions = Additions {
            template: self.template,
            init_containers: Vec::new(),
            containers: Vec::new(),
            volumes,
            mounts,
            annotations,
            sizes: Vec::new(),
            warnings: Vec::new(),
        };
        additions.init_containers = self.build(&self.template.init_containers, &mut additions)?;
        additions.containers = self.build(&self.template.containers, &mut additions)?;
        self.foreign_containers()?;
        additions.warnings.extend(self.lowers_security(&additions));
        Ok(additions)
    }

    /// Judges only what the set adds.
    fn lowers_security(&self, additions: &Additions<'a>) -> Option<Warning> {
        let added = || additions.init_containers.iter().chain(&additions.containers);
        let containers = added().filter_map(|addition| addition.container.as_ref());
        let volumes: Vec<Value> = additions.volumes.iter().map(|volume| Value::Object((*volume).clone())).collect();
        let mut found = pod_security::judge(&self.pod.json["spec"], containers, &volumes);
        let annotations = additions.annotations.iter().map(|(key, value)| (*key, value.as_str()));
        found.extend(pod_security::judge_annotations(annotations));
        self.security.warning(&found)
    }

    fn sidecars(&self) -> impl Iterator<Item = &'a Sidecar> + use<'a> {
        self.template.init_containers.iter().chain(&self.template.containers)
    }

    fn container(&self, name: &str) -> Option<&Container<'a>> {
        self.pod.all().find(|container| container.name == name)
    }

    fn build(&self, sidecars: &'a [Sidecar], additions: &mut Additions<'a>) -> Result<Vec<Addition<'a>>, Refusal> {
        let mut built = Vec::new();
        for sidecar in sidecars {
            let (name, placement) = (sidecar.name.as_str(), sidecar.placement);
            if self.was_applied && self.container(name).is_some() {
                built.push(Addition { name, placement, container: None });
                continue;
            }
            let container = build(self.pod, sidecar)?;
            additions.sizes.extend(container.sizes);
            additions.warnings.extend(container.warnings);
            built.push(Addition { name, placement, container: Some(container.container) });
        }
        Ok(built)
    }

    /// The last check, so that a pod that is reviewed again gives the reason it gave the first time.
    fn foreign_containers(&self) -> Result<(), Refusal> {
        if self.was_applied || self.observes {
            return Ok(());
        }
        match self.sidecars().find(|sidecar| self.container(&sidecar.name).is_some()) {
            None => Ok(()),
            Some(sidecar) => {
                let message =
                    format!("the pod has a container {} that was injected, but not by this set", sidecar.name);
                Err(Refusal::new(Reason::ContainerClash, message))
            }
        }
    }

    /// The volumes that something mounts and the pod lacks.
    fn volumes(&self) -> Result<Vec<&'a Map<String, Value>>, Refusal> {
        for sidecar in self.sidecars() {
            for name in mounted(&sidecar.container) {
                let is_somewhere = self.template.volumes.iter().any(|volume| volume.name == name)
                    || self.pod.volumes.contains_key(name)
                    || self.claims.has_volume(name);
                if !is_somewhere {
                    let message = format!(
                        "container {} mounts volume {name}, which neither the set nor the pod has",
                        sidecar.name
                    );
                    return Err(Refusal::new(Reason::VolumeMissing, message));
                }
            }
        }
        let mut missing = Vec::new();
        for volume in &self.template.volumes {
            let is_mounted = self.sidecars().any(|sidecar| mounted(&sidecar.container).any(|name| name == volume.name))
                || self.template.app_volume_mounts.iter().any(|mount| mount.volume == volume.name);
            if !is_mounted || self.claims.has_volume(&volume.name) {
                continue;
            }
            match self.pod.volumes.get(volume.name.as_str()) {
                None => missing.push(&volume.volume),
                // The API server may have filled in defaults and rewritten quantities since it was added.
                Some(_) if self.was_applied => {}
                Some(present) if is_same_volume(&volume.volume, present) => {}
                Some(_) => {
                    let message = format!("the pod has another volume {}", volume.name);
                    return Err(Refusal::new(Reason::VolumeClash, message));
                }
            }
        }
        Ok(missing)
    }

    /// The volumes of the set in the pod's own containers.
    pub(crate) fn app_mounts(&self) -> Result<Vec<AppMount<'a>>, Refusal> {
        let mut found: Vec<AppMount<'a>> = Vec::new();
        for mount in &self.template.app_volume_mounts {
            let mut targets =
                self.pod.own_running().filter(|(_, container)| mount.targets.is_match(container.name)).peekable();
            if targets.peek().is_none() {
                let names: Vec<&str> = self.pod.own_running().map(|(_, container)| container.name).collect();
                let (pattern, names) = (mount.targets.as_str(), names.join(", "));
                let message = format!("appVolumeMounts: no container matches {pattern:?} (there are: {names})");
                return Err(Refusal::new(Reason::NoTarget, message));
            }
            for (list, container) in targets {
                let (place, volume, read_only) = (one_spelling(&mount.path), mount.volume.as_str(), mount.read_only);
                let earlier =
                    found.iter().find(|earlier| earlier.container == container.name && earlier.place == place);
                let is_there = match (earlier, mount_at(container, &place)) {
                    (Some(earlier), _) if (earlier.volume, earlier.read_only) == (volume, read_only) => continue,
                    (None, None) => false,
                    (None, Some(present)) if is_same_mount(present, volume, read_only) => true,
                    _ => {
                        let message = format!("container {} has something mounted at {}", container.name, mount.path);
                        return Err(Refusal::new(Reason::MountClash, message));
                    }
                };
                let (container, path) = (container.name, mount.path.as_str());
                found.push(AppMount { list, container, volume, path, place, read_only, is_there });
            }
        }
        Ok(found)
    }

    fn labels(&self) -> Result<(), Refusal> {
        for (key, value) in &self.template.labels {
            match self.pod.labels.get(key.as_str()) {
                Some(own) if own != value => {
                    let message = format!("the pod has label {key}={own}, the set wants {value}");
                    return Err(Refusal::new(Reason::LabelClash, message));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn service_account(&self) -> Result<(), Refusal> {
        let Some(wanted) = &self.template.service_account_name else { return Ok(()) };
        match service_account(self.pod) {
            None | Some("default") => Ok(()),
            Some(own) if own == wanted => Ok(()),
            Some(own) => {
                let message = format!("the pod runs as {own}, the set wants {wanted}");
                Err(Refusal::new(Reason::ServiceAccountClash, message))
            }
        }
    }

    fn process_namespace(&self) -> Result<(), Refusal> {
        let Some(wanted) = self.template.share_process_namespace else { return Ok(()) };
        let flag = |name: &str| self.pod.spec.get(name).and_then(Value::as_bool);
        let message = match flag("shareProcessNamespace") {
            Some(own) if own != wanted => {
                format!("the pod has shareProcessNamespace: {own}, the set wants {wanted}")
            }
            _ if wanted && flag("hostPID") == Some(true) => {
                "the pod has hostPID: true, which excludes shareProcessNamespace".to_owned()
            }
            _ => return Ok(()),
        };
        Err(Refusal::new(Reason::ProcessNamespaceClash, message))
    }

    fn annotations(&self) -> Result<BTreeMap<&'a str, String>, Refusal> {
        let mut changed = BTreeMap::new();
        for patch in &self.template.annotations {
            let key = patch.key.as_str();
            let present = self.annotations.get(key).map(String::as_str).or(self.pod.annotations.get(key).copied());
            let value = patched(patch, present)?;
            if let Some(value) = value.filter(|value| Some(value.as_str()) != present) {
                changed.insert(key, value);
            }
        }
        Ok(changed)
    }
}

/// The account a pod names, in the present or the old field.
pub(crate) fn service_account<'a>(pod: &Pod<'a>) -> Option<&'a str> {
    let field = |name: &str| text(pod.spec, name).filter(|account| !account.is_empty());
    field("serviceAccountName").or_else(|| field("serviceAccount"))
}

fn mounted(container: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let lists = ["volumeMounts", "volumeDevices"].into_iter();
    lists.flat_map(|list| items(container, list)).filter_map(|item| text(item, "name"))
}

fn mount_at<'a>(container: &Container<'a>, wanted: &str) -> Option<&'a Map<String, Value>> {
    let lists = ["volumeMounts", "volumeDevices"].into_iter();
    lists.flat_map(|list| items(container.json, list)).find(|item| place(item).as_deref() == Some(wanted))
}

fn is_same_mount(present: &Map<String, Value>, volume: &str, read_only: bool) -> bool {
    let is_read_only = present.get("readOnly").and_then(Value::as_bool).unwrap_or_default();
    let plain =
        ["subPath", "subPathExpr", "devicePath"].iter().all(|field| text(present, field).is_none_or(str::is_empty));
    text(present, "name") == Some(volume) && is_read_only == read_only && plain
}

/// Whether the pod's volume is what the set asks for, with no more than defaults filled in.
fn is_same_volume(wanted: &Map<String, Value>, present: &Map<String, Value>) -> bool {
    // A volume of no kind is an empty folder.
    let kind = |volume: &Map<String, Value>| volume.keys().find(|key| *key != "name").cloned();
    let kinds = [wanted, present].map(|volume| kind(volume).unwrap_or_else(|| "emptyDir".to_owned()));
    let empty = json!({});
    kinds[0] == kinds[1] && wanted.iter().all(|(key, value)| is_within(value, present.get(key).unwrap_or(&empty)))
}

fn is_within(wanted: &Value, present: &Value) -> bool {
    match (wanted, present) {
        (Value::Object(wanted), Value::Object(present)) => {
            wanted.iter().all(|(key, value)| present.get(key).is_some_and(|own| is_within(value, own)))
        }
        (Value::Array(wanted), Value::Array(present)) => {
            wanted.len() == present.len() && wanted.iter().zip(present).all(|(one, other)| is_within(one, other))
        }
        _ => wanted == present,
    }
}

/// The value an annotation gets; `None` where it stays as it is.
fn patched(patch: &AnnotationPatch, present: Option<&str>) -> Result<Option<String>, Refusal> {
    match (patch.policy, present) {
        (PatchPolicy::Retain, Some(_)) => Ok(None),
        (PatchPolicy::Retain | PatchPolicy::Overwrite, _) | (PatchPolicy::MergePatchJson, None | Some("")) => {
            Ok(Some(patch.value.clone()))
        }
        (PatchPolicy::MergePatchJson, Some(present)) => {
            let not_json = |whose: &str, error: &serde_json::Error| {
                let message = format!("annotation {} of the {whose} is not JSON: {error}", patch.key);
                Refusal::new(Reason::MergeNotJson, message)
            };
            let own: Value = serde_json::from_str(present).map_err(|error| not_json("pod", &error))?;
            let wanted = serde_json::from_str(&patch.value).map_err(|error| not_json("set", &error))?;
            let mut merged = own.clone();
            merge(&mut merged, &wanted);
            // What says the same keeps its spelling.
            Ok((merged != own).then(|| merged.to_string()))
        }
    }
}

/// A JSON merge patch (RFC 7386).
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Value::Object(own) = target else { return };
    for (key, value) in fields {
        if value.is_null() {
            own.remove(key);
        } else {
            merge(own.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}
