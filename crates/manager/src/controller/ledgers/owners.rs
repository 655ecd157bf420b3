//! Which pods are leaving with their `ReplicaSet`: all of a Deployment's but those of its newest one.
//!
//! A Deployment that is paused between two of them keeps both.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::PartialObjectMeta;
use kube::{Api, Client, Resource};
use pillion_runtime::watch::{Changes, Selection, Store, WatchMetrics, watch};
use serde::Deserialize;

/// By this annotation a Deployment numbers its `ReplicaSets`; the highest is the one it wants.
const NUMBER: &str = "deployment.kubernetes.io/revision";

/// A `ReplicaSet` of a Deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    uid: Box<str>,
    deployment: Box<str>,
    number: u64,
}

/// All Deployments that are paused, by uid, and the `ReplicaSets` of all.
pub(super) struct Owners {
    parts: Store<Part>,
    paused: Store<Box<str>>,
}

impl Owners {
    /// Watches while the future runs.
    pub(super) fn watch(client: &Client, metrics: &WatchMetrics) -> (Self, BoxFuture<'static, ()>) {
        let api = Api::<PartialObjectMeta<ReplicaSet>>::all(client.clone());
        let selection = Selection::default;
        let (parts, parts_driver) =
            watch("replicasets", api, selection(), metrics, |set: PartialObjectMeta<ReplicaSet>| part(set.metadata));
        let api = Api::<SlimDeployment>::all(client.clone());
        let (paused, paused_driver) = watch("deployments", api, selection(), metrics, SlimDeployment::paused);
        let driver = async {
            tokio::join!(parts_driver, paused_driver);
        };
        (Self { parts, paused }, driver.boxed())
    }

    pub(super) async fn completed(&self) {
        self.parts.completed().await;
        self.paused.completed().await;
    }

    pub(super) fn changes(&self) -> (Changes, Changes) {
        (self.parts.changes(), self.paused.changes())
    }

    /// The uids of `ReplicaSets` whose pods are leaving.
    pub(super) fn leaving(&self) -> BTreeSet<Box<str>> {
        let paused: BTreeSet<Box<str>> =
            self.paused.read(|deployments| deployments.iter().map(|(_, uid)| uid.clone()).collect());
        self.parts.read(|parts| leaving(&parts.iter().map(|(_, part)| part).collect::<Vec<_>>(), &paused))
    }
}

fn leaving(parts: &[&Part], paused: &BTreeSet<Box<str>>) -> BTreeSet<Box<str>> {
    let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
    for part in parts {
        let number = newest.entry(&part.deployment).or_default();
        *number = part.number.max(*number);
    }
    let is_leaving = |part: &&&Part| newest[&*part.deployment] > part.number && !paused.contains(&part.deployment);
    parts.iter().filter(is_leaving).map(|part| part.uid.clone()).collect()
}

fn part(metadata: ObjectMeta) -> Option<Part> {
    let owner = metadata.owner_references?.into_iter().find(|owner| owner.controller == Some(true))?;
    let number = metadata.annotations?.get(NUMBER)?.parse().ok()?;
    let is_ours = owner.kind == "Deployment";
    is_ours.then(|| Part { uid: metadata.uid.unwrap_or_default().into(), deployment: owner.uid.into(), number })
}

/// A Deployment, read only as far as it is looked at here.
#[derive(Clone, Debug, Deserialize, Resource)]
#[resource(inherit = Deployment)]
struct SlimDeployment {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: SlimSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct SlimSpec {
    #[serde(default)]
    paused: bool,
}

impl SlimDeployment {
    fn paused(self) -> Option<Box<str>> {
        self.metadata.uid.filter(|_| self.spec.paused).map(Into::into)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn replica_set(uid: &str, number: &str, owner: &Value) -> Option<Part> {
        let metadata = json!({"uid": uid, "annotations": {NUMBER: number}, "ownerReferences": [owner]});
        part(serde_json::from_value(metadata).unwrap())
    }

    fn of(kind: &str, uid: &str) -> Value {
        json!({"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": uid, "controller": true})
    }

    #[test]
    fn only_the_newest_replica_set_of_a_deployment_stays() {
        let parts = [
            replica_set("a-9", "9", &of("Deployment", "a")),
            replica_set("a-10", "10", &of("Deployment", "a")),
            replica_set("b-1", "1", &of("Deployment", "b")),
            replica_set("c-1", "1", &of("Deployment", "c")),
            replica_set("c-2", "2", &of("Deployment", "c")),
            replica_set("x-1", "1", &of("Other", "x")),
            replica_set("y-1", "one", &of("Deployment", "y")),
        ];
        let parts: Vec<Part> = parts.into_iter().flatten().collect();
        assert_eq!(parts.len(), 5);
        let uids = |paused: &[&str]| {
            let paused = paused.iter().map(|uid| (*uid).into()).collect();
            leaving(&parts.iter().collect::<Vec<_>>(), &paused).into_iter().map(String::from).collect::<Vec<_>>()
        };
        assert_eq!(uids(&[]), ["a-9", "c-1"]);
        assert_eq!(uids(&["c"]), ["a-9"], "a paused Deployment keeps both");
    }

    #[test]
    fn only_paused_deployments_are_kept() {
        let read = |spec: Value| {
            let object = json!({"metadata": {"uid": "u"}, "spec": spec});
            serde_json::from_value::<SlimDeployment>(object).unwrap().paused()
        };
        assert_eq!(read(json!({"paused": true})), Some("u".into()));
        assert_eq!((read(json!({"paused": false})), read(json!({}))), (None, None));
    }
}
