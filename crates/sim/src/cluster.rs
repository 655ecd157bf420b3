//! Pods as the API server stores them, and as they really are.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use pillion_plan::List;
use serde_json::{Value, json};

use crate::node::{Habits, NodeContainer};

/// Pods, at one second.
#[derive(Clone, Debug)]
pub struct Cluster {
    now: i64,
    pods: BTreeMap<String, RealPod>,
    /// Every state of every pod that was stored.
    stored: BTreeMap<String, Vec<Stored>>,
}

/// What was stored at a second; `None` when the pod was deleted.
type Stored = (i64, Option<Arc<Value>>);

#[derive(Clone, Debug)]
struct RealPod {
    object: Value,
    containers: Vec<NodeContainer>,
    habits: Habits,
    /// Whether the pod's own containers are ready.
    app_is_ready: bool,
    ready_since: i64,
    /// Whether a write gave it an image that it has not served with since.
    is_swapping: bool,
}

/// What is so of a pod, whatever its status says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth {
    /// Whether it serves.
    pub is_ready: bool,
    /// Whether it was given an image that it has not served with since.
    pub is_swapping: bool,
}

/// A write that the API server does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no such pod.
    #[error("not found")]
    NotFound,
    /// The pod is not what the patch tests.
    #[error("the patch does not apply: {0}")]
    Test(String),
}

impl Cluster {
    /// Without pods, at this second.
    pub fn at(now: i64) -> Self {
        Self { now, pods: BTreeMap::new(), stored: BTreeMap::new() }
    }

    /// The second it is.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_second(self.now).unwrap_or_default()
    }

    /// A pod is created and runs. `ours`: which of its containers nodes are to be played for.
    pub fn create(&mut self, object: Value, ours: &[&str], habits: Habits) {
        let now = &self.now().to_string();
        let containers = [List::Init, List::Main].into_iter().flat_map(|list| {
            let all = object["spec"][list.field()].as_array().cloned().unwrap_or_default();
            let named = all.into_iter().filter_map(move |it| Some((it["name"].as_str()?.to_owned(), it)));
            let played = named.filter(|(name, _)| ours.contains(&&**name));
            let running = played.map(move |(name, it)| {
                NodeContainer::running(&name, list, it["image"].as_str().unwrap_or_default(), now)
            });
            running.collect::<Vec<_>>()
        });
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let containers = containers.collect();
        let pod = RealPod { object, containers, habits, app_is_ready: true, ready_since: self.now, is_swapping: false };
        self.pods.insert(uid.clone(), pod);
        self.store(&uid);
    }

    /// A pod is deleted.
    pub fn delete(&mut self, uid: &str) {
        if self.pods.remove(uid).is_some() {
            self.stored.entry(uid.to_owned()).or_default().push((self.now, None));
        }
    }

    /// The pod's own containers become ready, or cease to be.
    pub fn app_ready(&mut self, uid: &str, is_ready: bool) {
        if let Some(pod) = self.pods.get_mut(uid) {
            pod.app_is_ready = is_ready;
            self.store(uid);
        }
    }

    /// A second passes.
    pub fn tick(&mut self) {
        self.now += 1;
        let now = self.now().to_string();
        let changed: Vec<String> =
            self.pods.iter_mut().filter_map(|(uid, pod)| pod.tick(&now).then(|| uid.clone())).collect();
        for uid in changed {
            self.store(&uid);
        }
    }

    /// A JSON patch of a pod, as the API server takes it.
    pub fn patch(&mut self, namespace: &str, name: &str, patch: &Value) -> Result<(), Refused> {
        let is_it =
            |pod: &RealPod| pod.object["metadata"]["namespace"] == namespace && pod.object["metadata"]["name"] == name;
        let (uid, pod) = self.pods.iter_mut().find(|(_, pod)| is_it(pod)).ok_or(Refused::NotFound)?;
        let patch: json_patch::Patch =
            serde_json::from_value(patch.clone()).map_err(|error| Refused::Test(error.to_string()))?;
        let mut object = pod.object.clone();
        json_patch::patch(&mut object, &patch).map_err(|error| Refused::Test(error.to_string()))?;
        pod.is_swapping |= object["spec"] != pod.object["spec"];
        pod.object = object;
        let uid = uid.clone();
        self.store(&uid);
        Ok(())
    }

    /// A pod as it is stored now.
    pub fn get(&self, uid: &str) -> Option<&Value> {
        self.pods.get(uid).map(|pod| &pod.object)
    }

    /// The pods there are, by uid.
    pub fn uids(&self) -> impl Iterator<Item = &str> {
        self.pods.keys().map(String::as_str)
    }

    /// The pods as they were stored at a second: what a watch shows that is so far behind. By uid.
    pub fn seen(&self, at: i64) -> BTreeMap<String, Arc<Value>> {
        let last = |states: &[Stored]| {
            states.iter().rev().find(|(second, _)| *second <= at).and_then(|(_, state)| state.clone())
        };
        self.stored.iter().filter_map(|(uid, states)| Some((uid.clone(), last(states)?))).collect()
    }

    /// What is so of a pod.
    pub fn truth(&self, uid: &str) -> Option<Truth> {
        self.pods.get(uid).map(|pod| Truth { is_ready: pod.serves(), is_swapping: pod.is_swapping })
    }

    /// Whether every container that is played serves with the image its pod asks for.
    pub fn runs_what_is_stored(&self, uid: &str) -> bool {
        self.pods.get(uid).is_some_and(RealPod::runs_what_is_stored)
    }

    fn store(&mut self, uid: &str) {
        let Some(pod) = self.pods.get_mut(uid) else { return };
        pod.write_status(self.now);
        let states = self.stored.entry(uid.to_owned()).or_default();
        let is_same = states.last().and_then(|(_, state)| state.as_ref()).is_some_and(|state| **state == pod.object);
        if !is_same {
            states.push((self.now, Some(Arc::new(pod.object.clone()))));
        }
    }
}

impl RealPod {
    /// Whether something may have changed.
    fn tick(&mut self, now: &str) -> bool {
        if self.runs_what_is_stored() && !self.is_swapping {
            return false;
        }
        let wanted: Vec<String> = self.containers.iter().map(|it| self.wanted(it).to_owned()).collect();
        for (container, image) in self.containers.iter_mut().zip(wanted) {
            container.tick(&image, self.habits, now);
        }
        self.is_swapping &= !self.runs_what_is_stored();
        true
    }

    fn wanted(&self, container: &NodeContainer) -> &str {
        let all = self.object["spec"][container.list.field()].as_array();
        let found = all.into_iter().flatten().find(|it| it["name"] == *container.name);
        found.and_then(|it| it["image"].as_str()).unwrap_or_default()
    }

    fn serves(&self) -> bool {
        self.app_is_ready && self.containers.iter().all(|container| container.serves().is_some())
    }

    fn runs_what_is_stored(&self) -> bool {
        self.containers.iter().all(|container| container.serves() == Some(self.wanted(container)))
    }

    fn write_status(&mut self, now: i64) {
        let time = |second: i64| Timestamp::from_second(second).unwrap_or_default().to_string();
        let was_ready = self.object["status"]["conditions"][0]["status"] == "True";
        if self.serves() != was_ready {
            self.ready_since = now;
        }
        let statuses = |list: List| -> Vec<Value> {
            let pod = self.object["metadata"]["uid"].as_str().unwrap_or_default();
            let own = self.containers.iter().filter(|it| it.list == list);
            own.map(|it| it.status(pod)).collect()
        };
        let status = json!({
            "phase": "Running",
            "conditions": [{
                "type": "Ready",
                "status": if self.serves() { "True" } else { "False" },
                "lastTransitionTime": time(self.ready_since),
            }],
            "initContainerStatuses": statuses(List::Init),
            "containerStatuses": statuses(List::Main),
        });
        self.object["status"] = status;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Value {
        json!({
            "metadata": {"namespace": "shop", "name": "web", "uid": "u-1", "annotations": {}},
            "spec": {"containers": [{"name": "app", "image": "app:1"}, {"name": "proxy", "image": "proxy:1"}]},
        })
    }

    fn image(to: &str) -> Value {
        json!([
            {"op": "test", "path": "/metadata/uid", "value": "u-1"},
            {"op": "replace", "path": "/spec/containers/1/image", "value": to},
        ])
    }

    fn cluster(habits: Habits) -> Cluster {
        let mut cluster = Cluster::at(100);
        cluster.create(pod(), &["proxy"], habits);
        cluster
    }

    #[test]
    fn truth_is_ahead_of_the_status_and_the_status_ahead_of_the_watch() {
        let mut cluster = cluster(Habits { stop: 2, start: 0, ready: 0 });
        let truth = |cluster: &Cluster| cluster.truth("u-1").unwrap();
        assert_eq!(truth(&cluster), Truth { is_ready: true, is_swapping: false });
        cluster.patch("shop", "web", &image("proxy:2")).unwrap();
        assert_eq!(truth(&cluster), Truth { is_ready: true, is_swapping: true });
        cluster.tick();
        let ready = |pod: &Value| pod["status"]["conditions"][0]["status"] == "True";
        assert!(ready(cluster.get("u-1").unwrap()), "the old container does not end");
        assert!(truth(&cluster).is_swapping);
        cluster.tick();
        cluster.tick();
        assert_eq!(truth(&cluster), Truth { is_ready: true, is_swapping: false });
        let restarts = |at| cluster.seen(at)["u-1"]["status"]["containerStatuses"][0]["restartCount"].clone();
        assert_eq!((restarts(102), restarts(103)), (json!(0), json!(1)));
    }

    #[test]
    fn a_write_that_tests_what_is_no_longer_so_is_refused() {
        let mut cluster = cluster(Habits::default());
        let other = json!([{"op": "test", "path": "/metadata/uid", "value": "u-2"}]);
        assert!(matches!(cluster.patch("shop", "web", &other), Err(Refused::Test(_))));
        assert_eq!(cluster.patch("shop", "other", &image("proxy:2")), Err(Refused::NotFound));
        cluster.delete("u-1");
        assert_eq!(cluster.patch("shop", "web", &image("proxy:2")), Err(Refused::NotFound));
        cluster.tick();
        assert_eq!((cluster.seen(99).len(), cluster.seen(100).len()), (0, 0));
    }

    #[test]
    fn a_pod_is_ready_if_its_own_containers_are_too() {
        let mut cluster = cluster(Habits::default());
        cluster.tick();
        cluster.app_ready("u-1", false);
        assert_eq!(cluster.truth("u-1"), Some(Truth { is_ready: false, is_swapping: false }));
        assert!(cluster.runs_what_is_stored("u-1"));
        let condition = |at: i64| cluster.seen(at)["u-1"]["status"]["conditions"][0]["status"].clone();
        assert_eq!((condition(100), condition(101)), (json!("True"), json!("False")));
    }
}
