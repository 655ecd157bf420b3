//! A cluster, a set, and a manager as short as can be: it plans, checks, writes, and remembers what it wrote.

use std::collections::BTreeMap;
use std::sync::Arc;

use pillion_api::{Meaning, PodRevision, PodRevisions, Template, review};
use pillion_plan::{Action, Facts, Ground, Ours, Plan, check};
use pillion_rollout::{
    Fleet, OwnWrites, Pod, Progress, RawPod, Sizers, effective_max_unavailable, ground, pinned_target, plan,
};
use pillion_sim::{Cluster, Habits};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::script::{Event, Script};

pub(crate) struct World {
    pub(crate) cluster: Cluster,
    object: Value,
    pub(crate) set: Meaning,
    templates: BTreeMap<String, Arc<Template>>,
    native: bool,
    workloads: u32,
    habits: Habits,
    created: u32,
    /// Pods come and go by themselves: what the watch does not show yet cannot be known.
    is_restless: bool,
    manager: Manager,
    pub(crate) writes: usize,
    pub(crate) refused: usize,
    lag: i64,
    crash_after: Option<u32>,
    lost_answer: Option<bool>,
    /// A wrong manager, which counts only what the watch shows.
    pub(crate) forgets: bool,
}

/// What a manager has in its memory, and loses when it ends.
#[derive(Default)]
struct Manager {
    own_writes: OwnWrites,
    seen_at: i64,
    troubles: BTreeMap<Box<str>, String>,
    /// What was read of what the watch showed last: most of it is the same again.
    pods: BTreeMap<String, (Arc<Value>, Arc<Pod>)>,
}

const START: i64 = 1_800_000_000;

impl World {
    pub(crate) fn new(script: &Script, is_restless: bool) -> Self {
        let count = |text: &str| text.parse::<u32>().map_or_else(|_| json!(text), |number| json!(number));
        let container = if script.native {
            json!({"initContainers": [{"name": "proxy", "image": "proxy:0", "restartPolicy": "Always"}]})
        } else {
            json!({"containers": [{"name": "proxy", "image": "proxy:0"}]})
        };
        let mut object = json!({
            "metadata": {"name": "mesh"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "updateStrategy": {
                    "maxUnavailable": count(&script.max_unavailable), "partition": count(&script.partition),
                    "probe": script.probe, "healthGate": {"rollback": script.rollback},
                },
            },
        });
        object["spec"].as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
        let set = review(&object).meaning.unwrap();
        let [stop, start, ready] = script.habits;
        let mut world = Self {
            cluster: Cluster::at(START),
            object,
            templates: BTreeMap::from([(set.revision.clone(), Arc::new(set.template.clone()))]),
            set,
            native: script.native,
            workloads: script.workloads,
            habits: Habits { stop, start, ready },
            created: 0,
            is_restless,
            manager: Manager { seen_at: START, ..Manager::default() },
            writes: 0,
            refused: 0,
            lag: script.lag,
            crash_after: None,
            lost_answer: None,
            forgets: false,
        };
        (0..script.pods).for_each(|_| world.create());
        world
    }

    /// A pod is created, with the newest revision, as the webhook would.
    fn create(&mut self) {
        let number = self.created;
        self.created += 1;
        let revisions = PodRevisions(BTreeMap::from([("mesh".to_owned(), PodRevision::new(&*self.set.revision))]));
        let proxy = json!({
            "name": "proxy", "image": self.image(), "env": [{"name": "IS_INJECTED", "value": "true"}],
        });
        let app = json!({"name": "app", "image": "app:1"});
        let spec = if self.native {
            json!({"nodeName": "n", "containers": [app], "initContainers": [proxy]})
        } else {
            json!({"nodeName": "n", "containers": [app, proxy]})
        };
        let pod = json!({
            "metadata": {
                "namespace": "shop", "name": format!("web-{number}"), "uid": format!("uid-{number}"),
                "creationTimestamp": self.cluster.now().to_string(),
                "labels": {"app": "web"},
                "annotations": {"pillion.dev/containers": "proxy", "pillion.dev/revisions": revisions.render()},
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "StatefulSet", "name": format!("s-{}", number % self.workloads),
                    "uid": format!("s-{}", number % self.workloads), "controller": true,
                }],
            },
            "spec": spec,
        });
        self.cluster.create(pod, &["proxy"], self.habits);
    }

    fn image(&self) -> String {
        let list = if self.native { "initContainers" } else { "containers" };
        self.object["spec"][list][0]["image"].as_str().unwrap().to_owned()
    }

    pub(crate) fn edit(&mut self, edit: impl FnOnce(&mut Value)) {
        edit(&mut self.object["spec"]);
        self.set = review(&self.object).meaning.unwrap();
        self.templates.insert(self.set.revision.clone(), Arc::new(self.set.template.clone()));
    }

    pub(crate) fn happens(&mut self, event: Event) {
        let uid = |number: u32| format!("uid-{number}");
        match event {
            Event::Image(tag) => {
                let list = if self.native { "initContainers" } else { "containers" };
                self.edit(|spec| spec[list][0]["image"] = json!(format!("proxy:{tag}")));
            }
            Event::Paused(paused) => self.edit(|spec| spec["updateStrategy"]["paused"] = json!(paused)),
            Event::Partition(pods) => self.edit(|spec| spec["updateStrategy"]["partition"] = json!(pods)),
            Event::MaxUnavailable(pods) => self.edit(|spec| spec["updateStrategy"]["maxUnavailable"] = json!(pods)),
            Event::Delete(number) => self.cluster.delete(&uid(number)),
            Event::Create => self.create(),
            Event::App(number, is_ready) => self.cluster.app_ready(&uid(number), is_ready),
            Event::Crash(writes) => self.crash_after = Some(writes),
            Event::LostAnswer { is_written } => self.lost_answer = Some(is_written),
            Event::Lag(lag) => self.lag = lag,
        }
    }

    /// So many seconds pass, with a plan in each.
    pub(crate) fn seconds_pass(&mut self, seconds: u32) -> Result<(), String> {
        for _ in 0..seconds {
            self.cluster.tick();
            self.pass()?;
        }
        Ok(())
    }

    /// What the watch shows.
    fn view(&mut self) -> Vec<Arc<Pod>> {
        let now = self.cluster.now().as_second();
        self.manager.seen_at = self.manager.seen_at.max(now - self.lag);
        let seen = self.cluster.seen(self.manager.seen_at);
        let known = std::mem::take(&mut self.manager.pods);
        let read = seen.into_iter().map(|(uid, object)| {
            let same = known.get(&uid).filter(|(known, _)| Arc::ptr_eq(known, &object)).map(|(_, pod)| pod.clone());
            let pod = same.unwrap_or_else(|| Arc::new(Pod::read(RawPod::deserialize(&*object).unwrap())));
            (uid, (object, pod))
        });
        self.manager.pods = read.collect();
        self.manager.pods.values().map(|(_, pod)| pod.clone()).collect()
    }

    /// One pass of the manager.
    pub(crate) fn pass(&mut self) -> Result<Progress, String> {
        let view = self.view();
        for pod in &view {
            self.manager.own_writes.saw(pod);
        }
        self.manager.own_writes.retain(|uid| view.iter().any(|pod| *pod.uid == *uid));
        let (plan, progress) = self.decide(&view)?;
        for action in &plan.actions {
            if self.crash_after == Some(0) {
                self.crash_after = None;
                // It lists all pods anew, as they are.
                self.manager = Manager { seen_at: self.cluster.now().as_second(), ..Manager::default() };
                return Ok(progress);
            }
            self.write(action, &view)?;
            self.crash_after = self.crash_after.map(|left| left - 1);
        }
        self.follow_up(&progress);
        Ok(progress)
    }

    fn decide(&self, view: &[Arc<Pod>]) -> Result<(Plan, Progress), String> {
        let pods: Vec<&Pod> = view.iter().map(|pod| &**pod).collect();
        let fleet = Fleet {
            set: &self.set,
            templates: &self.templates,
            pods: &pods,
            budgets: &[],
            troubles: &self.manager.troubles,
            own_writes: &self.manager.own_writes,
            sizers: &Sizers::default(),
            left_alone: &[],
            now: self.cluster.now(),
            is_off: false,
        };
        let (plan, progress) = plan(&fleet);
        check(&plan, &ground(&fleet, &plan)).map_err(|found| format!("{plan}\nby what the watch shows: {found:?}"))?;
        Ok((plan, progress))
    }

    fn write(&mut self, action: &Action, view: &[Arc<Pod>]) -> Result<(), String> {
        let update = action.update();
        let judged = self.judge(action, view);
        let before = self.cluster.get(&update.uid).cloned();
        let lost = self.lost_answer.take();
        let result = match lost {
            Some(false) => Ok(()),
            _ => self.cluster.patch(&update.namespace, &update.name, &update.patch()),
        };
        match result {
            Ok(()) if lost != Some(false) => {
                judged?;
                self.writes += 1;
                only_ours(before.as_ref(), self.cluster.get(&update.uid))?;
            }
            Ok(()) => {}
            Err(_) => self.refused += 1,
        }
        // Where no answer came, it may have been written.
        if (result.is_ok() || lost.is_some()) && !self.forgets {
            self.manager.own_writes.wrote(update, self.cluster.now());
            self.manager.troubles.remove(update.uid.as_str());
        }
        Ok(())
    }

    /// Reads the pods the watch should have shown, and the events of those that say nothing.
    fn follow_up(&mut self, progress: &Progress) {
        for uid in &progress.read_again {
            match self.cluster.get(uid).map(|pod| Pod::read(RawPod::deserialize(pod).unwrap())) {
                Some(pod) => self.manager.own_writes.read(&pod, self.cluster.now()),
                None => self.manager.own_writes.forget(uid),
            }
        }
        for uid in &progress.ask_events {
            if self.image().ends_with(":missing") {
                self.manager.troubles.insert(uid.clone(), "Failed to pull image: not found".to_owned());
            }
        }
    }

    /// Whether a write keeps every rule by what is really so, and not by what the watch shows.
    fn judge(&self, action: &Action, view: &[Arc<Pod>]) -> Result<(), String> {
        let objects: BTreeMap<&str, PodRevisions> = self.cluster.uids().map(|uid| (uid, self.revisions(uid))).collect();
        let records: BTreeMap<&str, String> = objects.keys().map(|uid| (*uid, self.record(uid))).collect();
        let update = &self.set.update;
        let mut facts = BTreeMap::new();
        let mut workloads: BTreeMap<usize, usize> = BTreeMap::new();
        let all: Vec<&str> =
            if self.is_restless { view.iter().map(|pod| &*pod.uid).collect() } else { self.cluster.uids().collect() };
        for uid in &all {
            let seen = view.iter().find(|pod| *pod.uid == **uid);
            let workload = usize::try_from(uid[4..].parse::<u32>().unwrap() % self.workloads).unwrap();
            *workloads.entry(workload).or_default() += 1;
            let given = objects.get(uid).and_then(|revisions| revisions.of("mesh"));
            let truth = self.cluster.truth(uid);
            // One that became unready, or ready, without us after what the watch shows cannot be known.
            let is_unknowable = self.is_restless || seen.is_some_and(|pod| *pod.uid == *action.update().uid);
            let is_ready = truth.is_none_or(|truth| truth.is_ready);
            let is_ready = match seen {
                Some(seen) if is_unknowable && *seen.uid == *action.update().uid => is_ready && seen.is_ready,
                Some(seen) if is_unknowable => is_ready || seen.is_ready,
                _ => is_ready,
            };
            facts.insert(
                *uid,
                Facts {
                    namespace: "shop",
                    name: seen.map_or("", |pod| &*pod.name),
                    is_excluded: false,
                    is_selected: true,
                    is_ready,
                    swaps_to: given.filter(|_| truth.is_some_and(|it| it.is_swapping)).map(|given| given.is.as_str()),
                    is_newest: given.is_some_and(|given| given.is == self.set.revision),
                    record: records.get(uid).map(String::as_str),
                    workload,
                },
            );
        }
        let max_of = |pods: usize| {
            let max = effective_max_unavailable(update.max_unavailable, pods);
            if update.max_unavailable == pillion_api::PodCount::Percent(100) || pods < 2 {
                max
            } else {
                max.min(pods - 1)
            }
        };
        let list = if self.native { pillion_plan::List::Init } else { pillion_plan::List::Main };
        let ours = view.iter().filter_map(|pod| {
            let image =
                self.cluster.get(&pod.uid)?["spec"][list.field()][usize::from(!self.native)]["image"].as_str()?;
            Some((&*pod.uid, vec![Ours { list, index: u16::from(!self.native), name: "proxy", image }]))
        });
        let ground = Ground {
            set: "mesh",
            newest: &self.set.revision,
            is_held: update.paused,
            may_restore: update.gate.rollback && !update.paused,
            max_unavailable: effective_max_unavailable(update.max_unavailable, all.len()),
            pinned: pinned_target(update.partition, all.len()),
            workloads: (0..usize::try_from(self.workloads).unwrap())
                .map(|place| max_of(workloads.get(&place).copied().unwrap_or_default()))
                .collect(),
            ours: ours.collect(),
            pods: facts,
            budgets: Vec::new(),
        };
        let plan = Plan { actions: vec![action.clone()] };
        check(&plan, &ground).map_err(|found| {
            let pods = ground.pods.iter().map(|(uid, facts)| format!("{uid}: {facts:?}")).collect::<Vec<_>>();
            format!("{plan}\nby what is so at {}: {found:?}\n{}", self.cluster.now(), pods.join("\n"))
        })
    }

    fn record(&self, uid: &str) -> String {
        let annotation = &self.cluster.get(uid).unwrap()["metadata"]["annotations"]["pillion.dev/revisions"];
        annotation.as_str().unwrap().to_owned()
    }

    pub(crate) fn revisions(&self, uid: &str) -> PodRevisions {
        PodRevisions::parse(&self.record(uid)).unwrap()
    }

    /// How many pods have the newest revision.
    pub(crate) fn newest(&self) -> usize {
        let has = |uid: &&str| self.revisions(uid).of("mesh").is_some_and(|given| given.is == self.set.revision);
        self.cluster.uids().filter(has).count()
    }
}

/// A write changes images of ours and the record, and nothing else.
fn only_ours(before: Option<&Value>, after: Option<&Value>) -> Result<(), String> {
    let without = |pod: Option<&Value>| {
        let mut pod = pod.cloned().unwrap_or_default();
        pod["metadata"]["annotations"]["pillion.dev/revisions"] = json!(null);
        for list in ["containers", "initContainers"] {
            for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
                if container["name"] == "proxy" {
                    container["image"] = json!(null);
                }
            }
        }
        pod
    };
    if without(before) == without(after) { Ok(()) } else { Err(format!("more than ours changed: {after:?}")) }
}
