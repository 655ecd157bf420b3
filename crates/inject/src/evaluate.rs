//! What one set would add to a pod, or why it cannot.

use std::collections::{BTreeMap, BTreeSet};

use pillion_api::{AnnotationPatch, NamedVolume, PatchPolicy, Placement, Reason, Sidecar, Template};
use serde_json::{Map, Value, json};

use crate::claims::Claims;
use crate::decision::{Refusal, Size, Warning};
use crate::pod::{Container, Pod, items, text};
use crate::pod_security;
use crate::security::Security;
use crate::sidecar::{build, one_spelling, place};
use crate::volume;

/// What a set adds to a pod.
pub(crate) struct Additions<'a> {
    /// Name of the set.
    pub(crate) set: &'a str,
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

impl<'a> Additions<'a> {
    /// Those of the containers to add in whose place another one is.
    pub(crate) fn replaced(&self, forged: &BTreeSet<&str>) -> impl Iterator<Item = &'a str> {
        let added = self.init_containers.iter().chain(&self.containers).filter(|addition| addition.container.is_some());
        added.map(|addition| addition.name).filter(|name| forged.contains(name))
    }
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
    /// Name of the set.
    pub(crate) set: &'a str,
    pub(crate) template: &'a Template,
    pub(crate) claims: &'q Claims<'a>,
    /// Annotations as the sets before it leave them, where they change them.
    pub(crate) annotations: &'q BTreeMap<&'a str, String>,
    /// Whether this set was applied before, at least in part.
    pub(crate) was_applied: bool,
    /// Whether it only observes, so that what others added before is not in its way.
    pub(crate) observes: bool,
    pub(crate) security: Security,
}

impl<'a> Question<'a, '_> {
    /// Whether all sidecars of the set are in the pod from an earlier review.
    pub(crate) fn is_already_there(&self) -> bool {
        self.was_applied
            && sidecars(self.template).all(|sidecar| {
                !self.claims.has_container(&sidecar.name)
                    && self.pod.container(&sidecar.name).is_some_and(|container| container.is_injected)
            })
    }

    /// Every check is made before anything is added: a set is applied whole or not at all.
    pub(crate) fn evaluate(&self) -> Result<Additions<'a>, Refusal> {
        for sidecar in sidecars(self.template) {
            if self.pod.container(&sidecar.name).is_some_and(|container| !container.is_injected) {
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
            set: self.set,
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

    fn build(&self, sidecars: &'a [Sidecar], additions: &mut Additions<'a>) -> Result<Vec<Addition<'a>>, Refusal> {
        let mut built = Vec::new();
        for sidecar in sidecars {
            let (name, placement) = (sidecar.name.as_str(), sidecar.placement);
            if self.was_applied && self.pod.container(name).is_some() {
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
        match sidecars(self.template).find(|sidecar| self.pod.container(&sidecar.name).is_some()) {
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
        for sidecar in sidecars(self.template) {
            for name in mounted(&sidecar.container) {
                if !self.is_somewhere(name) {
                    let message = format!(
                        "container {} mounts volume {name}, which neither the set nor the pod has",
                        sidecar.name
                    );
                    return Err(Refusal::new(Reason::VolumeMissing, message));
                }
            }
        }
        let mut missing = Vec::new();
        for wanted in used_volumes(self.template).filter(|wanted| self.claims.volume(&wanted.name).is_none()) {
            match self.pod.volumes.get(wanted.name.as_str()) {
                None => missing.push(&wanted.volume),
                // What the pod has of the set stays, also if the set has changed since.
                Some(_) if self.was_applied => {}
                Some(present) if volume::is_same(&wanted.volume, present) => {}
                Some(_) => {
                    let message = format!("the pod has another volume {}", wanted.name);
                    return Err(Refusal::new(Reason::VolumeClash, message));
                }
            }
        }
        Ok(missing)
    }

    fn is_somewhere(&self, volume: &str) -> bool {
        if self.template.volumes.iter().any(|own| own.name == volume) {
            return true;
        }
        match self.claims.volume(volume) {
            // What a later set has from an earlier review was not there when this one was asked first.
            Some(set) => set < self.set || self.was_applied,
            None => self.pod.volumes.contains_key(volume),
        }
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
                    // Another set mounts something there; whether that is the same is asked of the claims.
                    (None, _) if self.claims.has_mount(container.name, &place) => true,
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

/// The containers of a set, init containers first.
pub(crate) fn sidecars(template: &Template) -> impl Iterator<Item = &Sidecar> {
    template.init_containers.iter().chain(&template.containers)
}

/// The volumes of a set that something mounts; the others are not added.
pub(crate) fn used_volumes(template: &Template) -> impl Iterator<Item = &NamedVolume> {
    template.volumes.iter().filter(|volume| {
        sidecars(template).any(|sidecar| mounted(&sidecar.container).any(|name| name == volume.name))
            || template.app_volume_mounts.iter().any(|mount| mount.volume == volume.name)
    })
}

/// The account a pod names, in the present or the old field.
pub(crate) fn service_account<'a>(pod: &Pod<'a>) -> Option<&'a str> {
    let field = |name: &str| text(pod.spec, name).filter(|account| !account.is_empty());
    field("serviceAccountName").or_else(|| field("serviceAccount"))
}

/// The names of the volumes that a container mounts.
pub(crate) fn mounted(container: &Map<String, Value>) -> impl Iterator<Item = &str> {
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
