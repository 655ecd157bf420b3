//! The pods that workloads would create, as far as their manifests tell.
//!
//! Of what the controllers add, the labels, names and volumes that can be known before there is a cluster are here; what
//! is a hash, a random name, an owner's uid or book-keeping of the controllers is left out. [`WorkloadPod::unknown_labels`]
//! names the labels that are missing.

use serde_json::{Map, Value, json};

use crate::pod::text;
use pillion_pod::{Unreadable, list, object};

const JOB_NAME: &str = "batch.kubernetes.io/job-name";
const JOB_NAME_BEFORE: &str = "job-name";
const JOB_UID: &str = "batch.kubernetes.io/controller-uid";
const JOB_UID_BEFORE: &str = "controller-uid";
const JOB_INDEX: &str = "batch.kubernetes.io/job-completion-index";
const JOB_INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";
const REVISION: &str = "controller-revision-hash";
/// A `CloneSet` gives each of its pods an id of five random characters, which its claims are named with.
const UNKNOWN_ID: &str = "xxxxx";

/// A pod that an object would create.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadPod {
    /// The object.
    pub origin: Origin,
    /// The pod.
    pub pod: Value,
    /// Labels the pod will have with values that only a cluster can tell.
    pub unknown_labels: &'static [&'static str],
}

/// Where a pod comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Kind of the object.
    pub kind: String,
    /// Its name; its `generateName` where it has no other.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
}

impl Origin {
    /// Whether the object makes pods, and is none itself.
    pub fn is_template(&self) -> bool {
        self.kind != "Pod"
    }
}

/// The pod an object would create; `None` for kinds that create none, or are not known here.
///
/// An object that does not name its namespace is taken to be in the one given.
pub fn pod_of(workload: &Value, namespace: &str) -> Result<Option<WorkloadPod>, Unreadable> {
    let api_version = workload.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let kind = workload.get("kind").and_then(Value::as_str).unwrap_or_default();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let metadata = object(workload.get("metadata"), "metadata")?;
    let metadata = |field: &str| metadata.and_then(|metadata| text(metadata, field)).filter(|value| !value.is_empty());
    let origin = Origin {
        kind: kind.to_owned(),
        name: metadata("name").or_else(|| metadata("generateName")).unwrap_or_default().to_owned(),
        namespace: metadata("namespace").unwrap_or(namespace).to_owned(),
    };
    let (pod, unknown_labels): (Value, &'static [&'static str]) = match (group, kind) {
        ("", "Pod") => (workload.clone(), &[]),
        ("", "ReplicationController") | ("apps", "ReplicaSet") => (made(workload, "spec", &origin)?, &[]),
        ("apps", "Deployment") => (made(workload, "spec", &origin)?, &["pod-template-hash"]),
        ("apps", "DaemonSet") => (made(workload, "spec", &origin)?, &[REVISION, "pod-template-generation"]),
        ("apps", "StatefulSet") => (of_stateful_set(workload, &origin)?, &[REVISION]),
        ("batch", "Job") => (of_job(workload, &origin)?, &[JOB_UID, JOB_UID_BEFORE]),
        // A CronJob names its Jobs by the minute.
        ("batch", "CronJob") => {
            (made(workload, "spec.jobTemplate.spec", &origin)?, &[JOB_NAME, JOB_NAME_BEFORE, JOB_UID, JOB_UID_BEFORE])
        }
        ("apps.kruise.io", "CloneSet") => {
            let mut pod = made(workload, "spec", &origin)?;
            add_claims(&mut pod, workload, &format!("{}-{UNKNOWN_ID}", origin.name))?;
            // It is the one owner whose pods are decided about by who owns them.
            let owner = json!({"apiVersion": api_version, "kind": kind, "name": origin.name, "controller": true});
            pod["metadata"]["ownerReferences"] = json!([owner]);
            (pod, &[REVISION, "apps.kruise.io/cloneset-instance-id"])
        }
        _ => return Ok(None),
    };
    Ok(Some(WorkloadPod { origin, pod, unknown_labels }))
}

/// The pod of the template below a spec. Of the template's metadata only what controllers take over is taken over.
fn made(workload: &Value, spec: &str, origin: &Origin) -> Result<Value, Unreadable> {
    let place = format!("{spec}.template");
    let template = place.split('.').try_fold(workload, |value, field| value.get(field));
    let template = object(template, &place)?.ok_or_else(|| Unreadable(format!("{place} is missing")))?;
    let own = object(template.get("metadata"), &format!("{place}.metadata"))?;
    let mut metadata = Map::new();
    metadata.insert("generateName".to_owned(), json!(format!("{}-", origin.name)));
    metadata.insert("namespace".to_owned(), json!(origin.namespace));
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = own.and_then(|own| own.get(field)).filter(|value| !value.is_null()) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let spec = template.get("spec").cloned().unwrap_or_default();
    Ok(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}))
}

/// The first pod of the set.
fn of_stateful_set(workload: &Value, origin: &Origin) -> Result<Value, Unreadable> {
    let mut pod = made(workload, "spec", origin)?;
    let first = workload.pointer("/spec/ordinals/start").and_then(Value::as_u64).unwrap_or(0);
    let name = format!("{}-{first}", origin.name);
    set(&mut pod, &["metadata", "name"], &name);
    set(&mut pod, &["metadata", "labels", "statefulset.kubernetes.io/pod-name"], &name);
    set(&mut pod, &["metadata", "labels", "apps.kubernetes.io/pod-index"], &first.to_string());
    set(&mut pod, &["spec", "hostname"], &name);
    if let Some(service) = workload.pointer("/spec/serviceName").and_then(Value::as_str) {
        set(&mut pod, &["spec", "subdomain"], service);
    }
    add_claims(&mut pod, workload, &name)?;
    Ok(pod)
}

/// A pod of a Job; the first one where they are numbered.
fn of_job(workload: &Value, origin: &Origin) -> Result<Value, Unreadable> {
    let mut pod = made(workload, "spec", origin)?;
    let has_own_selector = workload.pointer("/spec/manualSelector").and_then(Value::as_bool) == Some(true);
    for label in [JOB_NAME, JOB_NAME_BEFORE].into_iter().filter(|_| !has_own_selector) {
        if pod["metadata"]["labels"].get(label).is_none() {
            set(&mut pod, &["metadata", "labels", label], &origin.name);
        }
    }
    if workload.pointer("/spec/completionMode").and_then(Value::as_str) == Some("Indexed") {
        let name = format!("{}-0", origin.name);
        set(&mut pod, &["metadata", "generateName"], &format!("{name}-"));
        set(&mut pod, &["metadata", "labels", JOB_INDEX], "0");
        set(&mut pod, &["metadata", "annotations", JOB_INDEX], "0");
        set(&mut pod, &["spec", "hostname"], &name);
        for field in ["initContainers", "containers"] {
            let containers = pod["spec"].get_mut(field).and_then(Value::as_array_mut).into_iter().flatten();
            containers.filter_map(Value::as_object_mut).for_each(add_index_variable);
        }
    }
    Ok(pod)
}

fn add_index_variable(container: &mut Map<String, Value>) {
    let variables = container.entry("env").or_insert(Value::Null);
    if variables.is_null() {
        *variables = json!([]);
    }
    if let Value::Array(variables) = variables
        && variables.iter().all(|variable| variable.get("name") != Some(&json!(JOB_INDEX_VARIABLE)))
    {
        let field = format!("metadata.labels['{JOB_INDEX}']");
        variables.push(json!({"name": JOB_INDEX_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": field}}}));
    }
}

/// Claims come before the template's own volumes, and in the place of those of their names.
fn add_claims(pod: &mut Value, workload: &Value, suffix: &str) -> Result<(), Unreadable> {
    let place = "spec.volumeClaimTemplates";
    let mut volumes = Vec::new();
    for (at, claim) in list(workload.pointer("/spec/volumeClaimTemplates"), place)?.iter().enumerate() {
        let name = claim.pointer("/metadata/name").and_then(Value::as_str);
        let name = name.ok_or_else(|| Unreadable(format!("{place}[{at}] has no name")))?;
        let claim = format!("{name}-{suffix}");
        volumes.push(json!({"name": name, "persistentVolumeClaim": {"claimName": claim}}));
    }
    if volumes.is_empty() {
        return Ok(());
    }
    let own = list(pod["spec"].get("volumes"), "spec.template.spec.volumes")?;
    let is_claimed = |own: &Value| volumes.iter().any(|claim| claim.get("name") == own.get("name"));
    let own: Vec<Value> = own.iter().filter(|own| !is_claimed(own)).cloned().collect();
    volumes.extend(own);
    if let Some(spec) = pod["spec"].as_object_mut() {
        spec.insert("volumes".to_owned(), Value::Array(volumes));
    }
    Ok(())
}

/// Writes a text. Objects are made where they are missing; where something else is in the way, the pod is left to be
/// found unreadable.
fn set(pod: &mut Value, path: &[&str], value: &str) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut place = pod;
    for field in parents {
        let Value::Object(fields) = place else { return };
        place = fields.entry(*field).or_insert(Value::Null);
        if place.is_null() {
            *place = json!({});
        }
    }
    if let Value::Object(fields) = place {
        fields.insert((*last).to_owned(), json!(value));
    }
}

#[cfg(test)]
mod tests;
