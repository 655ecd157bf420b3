//! A set, its pods, and a hand that does what a node would do to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use pillion_api::{Meaning, PodRevision, PodRevisions, Template, review};
use pillion_plan::{Action, List, Plan, check};
use pillion_rollout::{
    Container, DisruptionBudget, Fleet, OwnWrites, Owner, Pod, Progress, Sizers, State, Status, ground, plan,
};
use serde_json::{Value, json};

pub(crate) const NOW: i64 = 1_800_000_000;
/// No pod is written.
pub(crate) const NOBODY: [usize; 0] = [];

pub(crate) struct Scene {
    pub(crate) object: Value,
    pub(crate) set: Meaning,
    pub(crate) templates: BTreeMap<String, Arc<Template>>,
    pub(crate) pods: Vec<Pod>,
    pub(crate) budgets: Vec<DisruptionBudget>,
    pub(crate) troubles: BTreeMap<Box<str>, String>,
    pub(crate) own_writes: OwnWrites,
    pub(crate) sizers: Sizers,
    pub(crate) now: Timestamp,
    pub(crate) is_off: bool,
}

/// A set whose only container is `proxy`, of this image.
pub(crate) fn set(image: &str, strategy: Value) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "mesh"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "updateStrategy": strategy,
            "containers": [{"name": "proxy", "image": image}],
        },
    })
}

fn meaning(object: &Value) -> Meaning {
    let review = review(object);
    assert!(review.meaning.is_some(), "{:?}", review.problems);
    review.meaning.unwrap()
}

impl Scene {
    /// So many ready pods of one Deployment with `proxy:1`, which the set then changes to `proxy:2`.
    pub(crate) fn new(pods: usize, strategy: Value) -> Self {
        let mut scene = Self::settled(pods, strategy);
        scene.image("proxy:2");
        scene
    }

    /// So many ready pods of one Deployment with `proxy:1`, as the set says.
    pub(crate) fn settled(pods: usize, strategy: Value) -> Self {
        let object = set("proxy:1", strategy);
        let set = meaning(&object);
        let templates = BTreeMap::from([(set.revision.clone(), Arc::new(set.template.clone()))]);
        let now = Timestamp::from_second(NOW).unwrap();
        let mut scene = Self {
            object,
            set,
            templates,
            pods: Vec::new(),
            budgets: Vec::new(),
            troubles: BTreeMap::new(),
            own_writes: OwnWrites::default(),
            sizers: Sizers::default(),
            now,
            is_off: false,
        };
        for _ in 0..pods {
            scene.create();
        }
        scene
    }

    /// A new pod, as the webhook makes it, ready.
    pub(crate) fn create(&mut self) -> usize {
        let number = self.pods.len();
        let image = self.set.template.containers.iter().find(|it| it.name == "proxy");
        let image = image.and_then(|it| it.container["image"].as_str()).unwrap_or("proxy:0");
        let revisions = PodRevisions(BTreeMap::from([("mesh".to_owned(), PodRevision::new(&*self.set.revision))]));
        let created = Timestamp::from_second(NOW - 100_000 + i64::try_from(number).unwrap()).unwrap();
        self.pods.push(Pod {
            namespace: "shop".into(),
            name: format!("web-{number:05}").into(),
            uid: format!("uid-{number:05}").into(),
            labels: [("app".into(), "web".into()), ("pod-template-hash".into(), "5d".into())].into(),
            created,
            owner: Some(Owner {
                api_version: "apps/v1".into(),
                kind: "ReplicaSet".into(),
                name: "web-5d".into(),
                uid: "rs-1".into(),
            }),
            is_assigned: true,
            is_ready: true,
            ready_since: Some(created),
            record: Some(revisions.render().into()),
            revisions,
            is_listed: true,
            containers: Box::new([Container {
                list: List::Main,
                index: 1,
                name: "proxy".into(),
                image: image.into(),
                resources: None,
                has_startup_probe: false,
                status: Some(Status {
                    restarts: 0,
                    id: format!("id-{number}-0").into(),
                    state: State::Running(Some(created)),
                    is_ready: true,
                }),
            }]),
            ..Pod::default()
        });
        number
    }

    /// Changes the set; its old revision stays known.
    pub(crate) fn edit(&mut self, edit: impl FnOnce(&mut Value)) {
        edit(&mut self.object["spec"]);
        self.set = meaning(&self.object);
        self.templates.insert(self.set.revision.clone(), Arc::new(self.set.template.clone()));
    }

    pub(crate) fn image(&mut self, image: &str) {
        self.edit(|spec| spec["containers"][0]["image"] = json!(image));
    }

    pub(crate) fn strategy(&mut self, key: &str, value: Value) {
        self.edit(|spec| spec["updateStrategy"][key] = value);
    }

    pub(crate) fn seconds_pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// The plan, which must keep every rule.
    pub(crate) fn plan(&self) -> (Plan, Progress) {
        let pods: Vec<&Pod> = self.pods.iter().filter(|pod| !pod.is_deleting).collect();
        let fleet = Fleet {
            set: &self.set,
            templates: &self.templates,
            pods: &pods,
            budgets: &self.budgets,
            troubles: &self.troubles,
            own_writes: &self.own_writes,
            sizers: &self.sizers,
            left_alone: &["kube-system"],
            now: self.now,
            is_off: self.is_off,
        };
        let (plan, progress) = plan(&fleet);
        assert_eq!(check(&plan, &ground(&fleet, &plan)), Ok(()));
        (plan, progress)
    }

    pub(crate) fn progress(&self) -> Progress {
        self.plan().1
    }

    /// The names of the pods that would be written, without what all have in common.
    pub(crate) fn planned(&self) -> Vec<usize> {
        let (plan, _) = self.plan();
        plan.actions.iter().map(|action| self.number(&action.update().uid)).collect()
    }

    pub(crate) fn number(&self, uid: &str) -> usize {
        self.pods.iter().position(|pod| *pod.uid == *uid).unwrap()
    }

    /// Carries out what is planned; nodes have not done anything yet.
    pub(crate) fn write(&mut self) -> Vec<usize> {
        let (plan, _) = self.plan();
        plan.actions.iter().map(|action| self.carry_out(action)).collect()
    }

    pub(crate) fn carry_out(&mut self, action: &Action) -> usize {
        let update = action.update();
        let number = self.number(&update.uid);
        let pod = &mut self.pods[number];
        assert_eq!(pod.record.as_deref(), update.record_before.as_deref());
        for change in &update.images {
            let container = pod.containers.iter_mut().find(|it| *it.name == *change.name).unwrap();
            assert_eq!(*container.image, *change.from);
            container.image = change.to.as_str().into();
        }
        for change in &update.resources {
            let container = pod.containers.iter_mut().find(|it| *it.name == *change.name).unwrap();
            container.resources = Some(Box::new(change.to.clone()));
        }
        pod.record = Some(update.record_after.as_str().into());
        pod.revisions = PodRevisions::parse(&update.record_after).unwrap();
        pod.is_listed |= update.adoption.is_some();
        number
    }

    /// The node has the new container of a pod running and ready.
    pub(crate) fn done(&mut self, number: usize) {
        let now = self.now;
        for container in &mut self.pods[number].containers {
            let status = container.status.as_mut().unwrap();
            status.restarts += 1;
            status.id = format!("id-{number}-{}", status.restarts).into();
            status.state = State::Running(Some(now));
            status.is_ready = true;
        }
        self.ready(number, true);
    }

    /// The container of a pod is like this and not ready.
    pub(crate) fn stuck(&mut self, number: usize, state: State) {
        for container in &mut self.pods[number].containers {
            let status = container.status.as_mut().unwrap();
            (status.state, status.is_ready) = (state.clone(), false);
        }
        self.ready(number, false);
    }

    pub(crate) fn ready(&mut self, number: usize, is_ready: bool) {
        let pod = &mut self.pods[number];
        (pod.is_ready, pod.ready_since) = (is_ready, Some(self.now));
    }

    /// As if the pod had been updated long ago, and was done.
    pub(crate) fn updated_long_ago(&mut self, number: usize) {
        let revision = PodRevision {
            since: Some(NOW - 5000),
            from: Some("mesh-before".to_owned()),
            was: BTreeMap::from([("proxy".to_owned(), "0 other".to_owned())]),
            ..PodRevision::new(&*self.set.revision)
        };
        let pod = &mut self.pods[number];
        pod.revisions.0.insert("mesh".to_owned(), revision);
        pod.record = Some(pod.revisions.render().into());
        pod.containers[0].image = self.set.template.containers[0].container["image"].as_str().unwrap().into();
    }

    pub(crate) fn label(&mut self, number: usize, key: &str, value: &str) {
        let pod = &mut self.pods[number];
        let mut labels = pod.labels.to_vec();
        labels.push((key.into(), value.into()));
        pod.labels = labels.into();
    }

    /// Which revision the record of a pod names, without the name of the set.
    pub(crate) fn given(&self, number: usize) -> &PodRevision {
        self.pods[number].revisions.of("mesh").unwrap()
    }

    /// Writes, lets nodes finish and the time pass, until nothing is written any more; how many pods at a time.
    pub(crate) fn run(&mut self) -> Vec<usize> {
        let mut waves = Vec::new();
        loop {
            assert!(waves.len() < 1000, "the update does not end");
            let written = self.write();
            if written.is_empty() {
                return waves;
            }
            self.seconds_pass(1);
            for number in &written {
                self.done(*number);
            }
            waves.push(written.len());
            // The first of them has to run for a while.
            self.seconds_pass(3);
        }
    }
}
