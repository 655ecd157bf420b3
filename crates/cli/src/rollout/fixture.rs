//! A cluster with a rollout, made by the functions that make one: what the webhook gives to pods, and what the controller
//! writes down.
#![expect(clippy::needless_pass_by_value, reason = "tests, in which JSON is written where it is used")]

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use pillion_api::revision::CUSTOM_VERSIONS;
use pillion_api::{PodRevision, PodRevisions, REVISIONS, review};
use pillion_inject::{Candidate, Installation, Namespace, inject};
use pillion_rollout::history::{Step, steps};
use serde_json::{Value, json};

use super::gather::{Rollout, Unusable};
use crate::installation::Facts;
use crate::live::World;

pub(super) fn now() -> Timestamp {
    "2026-03-04T12:00:00Z".parse().unwrap()
}

/// So long before [`now`].
pub(super) fn ago(minutes: i64) -> Timestamp {
    now() - SignedDuration::from_mins(minutes)
}

/// A set with this image, and more in its spec.
pub(super) fn set(image: &str, more: Value) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"mesh": "on"}}, "initContainers": [{"name": "proxy", "image": image,
        "restartPolicy": "Always", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}]});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet",
        "metadata": {"name": "mesh", "uid": "u-mesh", "generation": 3}, "spec": spec, "status": {"observedGeneration": 3}})
}

/// The name of the revision of a set.
pub(super) fn revision(set: &Value) -> String {
    review(set).meaning.unwrap().revision
}

/// What the controller keeps of a set.
pub(super) fn stored(set: &Value, number: i64, versions: &[&str], created: Timestamp) -> Value {
    let meaning = review(set).meaning.unwrap();
    let spec = set["spec"].as_object().unwrap();
    let mut steps = steps(&meaning, "u-mesh", "pillion-system", spec, &[], &BTreeSet::new());
    let Some(Step::Create(mut object)) = steps.pop() else { panic!("nothing is stored: {steps:?}") };
    object["revision"] = json!(number);
    object["metadata"]["annotations"][CUSTOM_VERSIONS] = json!(json!(versions).to_string());
    object["metadata"]["creationTimestamp"] = json!(created.to_string());
    object
}

/// A pod of a Deployment, as the webhook made it with a set; ready.
pub(super) fn pod(set: &Value, namespace: &str, deployment: &str, at: usize) -> Value {
    let hash = "6d4b75cb6d";
    let replica_set = format!("{deployment}-{hash}");
    let name = format!("{replica_set}-{at:05}");
    let bare = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": format!("u-{namespace}-{name}"),
            "creationTimestamp": ago(60).to_string(), "labels": {"mesh": "on", "app": deployment, "pod-template-hash": hash},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": replica_set,
                "uid": format!("u-{replica_set}"), "controller": true}]},
        "spec": {"nodeName": "node-1", "containers": [{"name": "app", "image": "registry.example/app:1"}]}});
    let meaning = review(set).meaning.unwrap();
    let namespace = Namespace { name: namespace.to_owned(), ..Namespace::default() };
    let decision = inject(&bare, &namespace, [Candidate::latest(&meaning)], Installation::default());
    with_status(decision.pod.unwrap(), true, json!({"running": {"startedAt": ago(60).to_string()}}), 0)
}

/// The same pod with another state of the sidecar.
pub(super) fn with_status(mut pod: Value, is_ready: bool, state: Value, restarts: u32) -> Value {
    let ready = if is_ready { "True" } else { "False" };
    pod["status"] = json!({"phase": "Running",
        "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": ago(50).to_string()}],
        "initContainerStatuses": [{"name": "proxy", "restartCount": restarts, "ready": is_ready,
            "containerID": format!("containerd://{:012}", restarts), "state": state}]});
    pod
}

/// A pod that was updated in place from one set to another, at this time.
pub(super) fn updated(from: &Value, to: &Value, mut pod: Value, since: Timestamp) -> Value {
    let record = PodRevision {
        is: revision(to),
        since: Some(since.as_second()),
        from: Some(revision(from)),
        was: [("proxy".to_owned(), format!("0 {:012}", 0))].into(),
        ..PodRevision::default()
    };
    pod["metadata"]["annotations"][REVISIONS] = json!(PodRevisions([("mesh".to_owned(), record)].into()).render());
    pod["spec"]["initContainers"][0]["image"] = to["spec"]["initContainers"][0]["image"].clone();
    pod
}

/// What a cluster with these objects has.
pub(super) fn rollout(set: &Value, revisions: &[Value], pods: &[Value]) -> Rollout {
    rollout_with_budgets(set, revisions, pods, &[])
}

/// The same with budgets.
pub(super) fn rollout_with_budgets(set: &Value, revisions: &[Value], pods: &[Value], budgets: &[Value]) -> Rollout {
    let facts = Facts { namespace: "pillion-system".to_owned(), ..Facts::default() };
    let world = World::read(std::slice::from_ref(set), &[], &[], facts);
    let mut rollout = match Rollout::read(set.clone(), world, revisions, budgets) {
        Ok(rollout) => rollout,
        Err(Unusable::Invalid(error)) => panic!("{error}"),
        Err(Unusable::Failed(failure)) => panic!("{failure}"),
    };
    for pod in pods {
        rollout.take(pod.clone());
    }
    rollout.sort();
    rollout
}

pub(super) const V1: &str = "registry.example/mesh:1.9.1";
pub(super) const V2: &str = "registry.example/mesh:1.9.2";
pub(super) const V3: &str = "registry.example/mesh:1.9.3";

/// The third revision under way: the second is pinned, and half of the pods stay.
pub(super) fn canary() -> Rollout {
    let first = set(V1, json!({}));
    let second = set(V2, json!({}));
    let strategy = json!({"injectStrategy": {"revision": revision(&second)},
        "updateStrategy": {"partition": "50%", "maxUnavailable": "20%"}});
    let mut third = set(V3, strategy);
    third["metadata"]["labels"] = json!({"apps.kruise.io/sidecarset-custom-version": "spring"});
    let running = json!({"running": {"startedAt": ago(9).to_string()}});
    let mut pods = Vec::new();
    for at in 0..6 {
        let pod = pod(&second, "shop", "web", at);
        pods.push(if at < 2 {
            with_status(updated(&second, &third, pod, ago(10)), true, running.clone(), 1)
        } else {
            pod
        });
    }
    pods.extend((0..3).map(|at| pod(&second, "search", "api", at)));
    pods.push(pod(&set("registry.example/mesh:1.8.0", json!({})), "search", "old", 0));
    // Pods that do not count: of another set, ended, on their way out.
    let mut ended = pod(&second, "shop", "ended", 0);
    ended["status"]["phase"] = json!("Succeeded");
    let mut leaving = pod(&second, "shop", "leaving", 0);
    leaving["metadata"]["deletionTimestamp"] = json!(now().to_string());
    let mut other = pod(&second, "shop", "other", 0);
    other["metadata"]["labels"]["mesh"] = json!("off");
    pods.extend([ended, leaving, other]);
    let revisions = [
        stored(&first, 1, &[], ago(60 * 24 * 12)),
        stored(&third, 3, &["spring"], ago(14)),
        stored(&second, 2, &["autumn", "winter"], ago(60 * 5)),
    ];
    rollout(&third, &revisions, &pods)
}

/// A set whose controller has never run.
pub(super) fn without_revisions() -> Rollout {
    let mut set = set(V1, json!({}));
    set["status"] = json!({});
    rollout(&set, &[], &[pod(&set, "shop", "web", 0)])
}
