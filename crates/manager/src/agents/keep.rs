//! Keeps namespaces, pods and records in step with what was asked.
//!
//! One pass at a time, a second apart: it takes in all that changed since the last, and writes what came out otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use pillion_agent_api::names::{CONFIG_KEY, POLICY_PARAMS, RESULTS};
use pillion_api::{API_VERSION, Meaning, Reason};
use pillion_inject::Workload;
use pillion_inject::hot_update::{HotUpdates, agent_config, wanted};
use pillion_inject::selects_namespace;
use pillion_runtime::watch::{Key, Store};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use tracing::warn;

use super::Context;
use super::hot_update::{Progress, step};
use super::objects::{Objects, Record};
use super::plan::{AgentSet, Kind, Place, Seen, Write, extra, plan};
use super::pods::{AgentPod, AgentSets, watch_pods};
use super::results::results;
use super::rights::Refused;
use super::write::Failed;
use crate::events::Note;
use crate::view::Known;

/// A pass begins no sooner after the end of the one before.
const PACE: Duration = Duration::from_secs(1);
/// Where nothing changes, all is looked at again after this long, so that what cannot be done is told again.
const AGAIN: Duration = Duration::from_mins(5);
/// What failed is tried again after this long.
const RETRY: Duration = Duration::from_secs(5);
/// The results of a namespace are not written more often.
const RESULTS_PACE: Duration = Duration::from_secs(5);
/// So many writes at a time.
const AT_ONCE: usize = 8;

/// Pods by name.
type NamedPods = Vec<(String, Arc<AgentPod>)>;

/// Whether another pass is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    /// When something changes.
    OnChange,
    /// In a while, as something failed.
    Retry,
    /// As soon as may be: something was left for the next pass.
    Soon,
}

/// Looks after agents while it runs.
pub(super) async fn run(context: &Context) {
    context.view.completed().await;
    let owner = loop {
        match context.owner().await {
            Ok(owner) => break owner,
            Err(why) => warn!(?why, "cannot read the role that owns what is made"),
        }
        sleep(RETRY).await;
    };
    let sets = AgentSets::default();
    sets.store(Arc::new(names(&agent_sets(context))));
    let (objects, objects_driver) = Objects::watch(context);
    let (pods, pods_driver) = watch_pods(&context.client, Arc::clone(&sets), &context.watch_metrics);
    let passes = async {
        objects.completed().await;
        pods.completed().await;
        Keeper { context, owner, sets, objects, pods, mirrored: BTreeMap::new() }.run().await;
    };
    tokio::join!(objects_driver, pods_driver, passes);
}

struct Keeper<'a> {
    context: &'a Context,
    owner: Option<Value>,
    sets: AgentSets,
    objects: Objects,
    pods: Store<Arc<AgentPod>>,
    /// When the results of a namespace were written.
    mirrored: BTreeMap<String, Instant>,
}

impl Keeper<'_> {
    async fn run(&mut self) {
        let view = &self.context.view;
        let (mut objects, mut pods) = (self.objects.changes(), self.pods.changes());
        let (mut sets, mut namespaces) = (view.set_changes(), view.namespace_changes());
        loop {
            let next = self.pass().await;
            sleep(PACE).await;
            let changed = async {
                tokio::select! {
                    () = objects.next() => {}
                    _ = pods.next() => {}
                    _ = namespaces.next() => {}
                    _ = sets.changed() => {}
                }
            };
            let patience = match next {
                Next::OnChange => AGAIN,
                Next::Retry => RETRY,
                Next::Soon => continue,
            };
            let _ = timeout(patience, changed).await;
        }
    }

    async fn pass(&mut self) -> Next {
        let sets = agent_sets(self.context);
        self.watch_pods_of(&sets);
        let needs = self.namespaces(sets).await;
        let updates = self.hot_updates().await;
        let mirror = self.mirror().await;
        needs.max(updates).max(mirror)
    }

    /// Pods of a set that adds agents only now were not kept.
    fn watch_pods_of(&self, sets: &[AgentSet]) {
        let names = names(sets);
        let is_more = !names.is_subset(&self.sets.load());
        self.sets.store(Arc::new(names));
        if is_more {
            self.pods.list_again();
        }
    }

    /// Gives namespaces what the agents in them need.
    async fn namespaces(&self, sets: Vec<AgentSet>) -> Next {
        let own_namespace = self.context.settings.namespace.clone();
        let configs = self.objects.configs.snapshot();
        let configs = configs.iter().filter(|(key, _)| *key.namespace == *own_namespace);
        let configs = configs.map(|(key, map)| (key.name.to_string(), map.1.get(CONFIG_KEY).cloned())).collect();
        let policy_params =
            self.objects.policy_params.get(&Key::new(&own_namespace, POLICY_PARAMS)).map(|map| map.1.clone());
        let targets = self.context.settings.agent_targets.clone();
        let objects = self.objects.stored(&own_namespace);
        let seen = Seen { own_namespace, targets, sets, configs, objects, policy_params };
        let plan = plan(&seen);
        for (set, refused) in &plan.refused {
            self.tell_set(set, refused);
        }
        let mut next = Next::OnChange;
        // One after the other: a binding needs its role, and few things change at a time.
        for write in &plan.writes {
            if let Err(Failed::Refused(why)) = self.context.write(write, self.owner.as_ref()).await {
                next = Next::Retry;
                self.tell_failure(&seen, write, &why);
            }
        }
        next
    }

    fn tell_failure(&self, seen: &Seen, write: &Write, why: &str) {
        let (Write::Apply { place, .. } | Write::Delete { place, .. }) = write;
        let Place { kind, namespace, name } = place;
        warn!(?kind, namespace, name, why, "cannot be written");
        let is_taken = *kind == Kind::ConfigMap && why.contains("is not Pillion's");
        let reason = if is_taken { Reason::AgentObjectTaken } else { Reason::AgentWriteRefused };
        let refused = Refused::new(reason, format!("namespace {namespace}: {why}"));
        let sets = seen.sets.iter().filter(|set| {
            set.configs.iter().any(|config| name.ends_with(config.as_str())) && set.namespaces.contains(namespace)
        });
        for set in sets {
            self.tell_set(&set.name, &refused);
        }
    }

    /// What `kubectl describe sidecarset` shows. The status of sets is another controller's.
    fn tell_set(&self, set: &str, refused: &Refused) {
        let Refused { reason, message } = refused;
        let uid = self.context.view.known().judged.get(set).map(|judged| judged.uid.clone());
        warn!(set, code = reason.code(), message, "the agents of a set cannot be given what they need");
        self.context.events.tell(Note {
            regarding: ObjectReference {
                api_version: Some(API_VERSION.to_owned()),
                kind: Some("SidecarSet".to_owned()),
                name: Some(set.to_owned()),
                uid,
                ..ObjectReference::default()
            },
            related: None,
            is_warning: true,
            reason: reason.name().to_owned(),
            action: "Configure",
            message: format!("{}: {message}: {}", reason.code(), reason.cure()),
        });
    }

    /// Tells running pods of what was asked for their workload.
    async fn hot_updates(&self) -> Next {
        let records = self.objects.records.snapshot();
        let mut table = HotUpdates::default();
        for (key, record) in &records {
            table.insert(&key.namespace, &key.name, record.created.as_second(), &record.spec);
        }
        let mut by_workload: BTreeMap<(String, Workload), NamedPods> = BTreeMap::new();
        for (key, pod) in self.pods.snapshot() {
            for workload in &pod.workloads {
                let pods = by_workload.entry((key.namespace.to_string(), workload.clone())).or_default();
                pods.push((key.name.to_string(), Arc::clone(&pod)));
            }
        }
        let mut room = usize::try_from(self.context.settings.agent_updates_per_second).unwrap_or(usize::MAX);
        let mut next = Next::OnChange;
        for (key, record) in &records {
            let (namespace, name) = (&*key.namespace, &*key.name);
            if !table.holds(namespace, name, &record.spec) {
                next = next.max(self.write_progress(namespace, name, record, &Progress::superseded()).await);
                continue;
            }
            let pods = by_workload.get(&(namespace.to_owned(), Workload::of_record(&record.spec)));
            let pods: BTreeMap<&str, &AgentPod> =
                pods.into_iter().flatten().map(|(name, pod)| (name.as_str(), &**pod)).collect();
            let wanted = wanted(&record.spec);
            let step = step(&record.spec, &wanted, pods.iter().map(|(name, pod)| (*name, *pod)));
            next = next.max(self.write_progress(namespace, name, record, &step.progress).await);
            let told = &step.tell[..step.tell.len().min(room)];
            if told.len() < step.tell.len() {
                next = Next::Soon;
            }
            room -= told.len();
            let told = told.iter().map(|pod| (pod.clone(), pods[pod.as_str()].uid.clone())).collect();
            next = next.max(self.tell(namespace, told, &wanted).await);
        }
        next
    }

    /// Tells pods, by name and uid.
    async fn tell(&self, namespace: &str, pods: Vec<(String, String)>, wanted: &str) -> Next {
        let tellings = pods.into_iter().map(|(name, uid)| {
            let (context, namespace, wanted) = (self.context, namespace.to_owned(), wanted.to_owned());
            async move { context.tell(&namespace, &name, &uid, &wanted).await }.boxed()
        });
        let tellings: Vec<_> = tellings.collect();
        let mut told = futures::stream::iter(tellings).buffer_unordered(AT_ONCE);
        let mut next = Next::OnChange;
        while let Some(told) = told.next().await {
            if let Err(Failed::Refused(why)) = told {
                warn!(namespace, why, "a pod cannot be told");
                next = Next::Retry;
            }
        }
        next
    }

    async fn write_progress(&self, namespace: &str, name: &str, record: &Record, progress: &Progress) -> Next {
        let status = progress.status(record.generation, record.status.as_ref(), Timestamp::now());
        if record.status.as_ref() == Some(&status) {
            return Next::OnChange;
        }
        match self.context.write_status(namespace, name, record, &status).await {
            Ok(()) | Err(Failed::Gone) => Next::OnChange,
            Err(Failed::Refused(why)) => {
                warn!(namespace, record = name, why, "its status cannot be written");
                Next::Retry
            }
        }
    }

    /// Shows people what became of it, in every namespace.
    async fn mirror(&mut self) -> Next {
        let mut by_namespace: BTreeMap<String, NamedPods> = BTreeMap::new();
        for (key, pod) in self.pods.snapshot() {
            by_namespace.entry(key.namespace.to_string()).or_default().push((key.name.to_string(), pod));
        }
        let stored = self.objects.results.snapshot();
        let with_map = stored.keys().map(|key| key.namespace.to_string());
        let namespaces: BTreeSet<String> = by_namespace.keys().cloned().chain(with_map).collect();
        let now = Instant::now();
        let mut next = Next::OnChange;
        for namespace in namespaces {
            let pods = by_namespace.get(&namespace).map(Vec::as_slice).unwrap_or_default();
            let wanted = results(pods.iter().map(|(name, pod)| (name.as_str(), &**pod)));
            let map = stored.get(&Key::new(&namespace, RESULTS));
            let place = Place { kind: Kind::ConfigMap, namespace: namespace.clone(), name: RESULTS.to_owned() };
            let write = match (wanted, map) {
                (None, None) => continue,
                (Some(wanted), Some(map)) if map.1 == wanted => continue,
                (Some(wanted), map) => {
                    let body = json!({"data": wanted});
                    let extra = map.map(|map| extra(&json!({"data": map.1}), &body)).unwrap_or_default();
                    Write::Apply { place, labels: json!({"app.kubernetes.io/part-of": "pillion"}), body, extra }
                }
                (None, Some(map)) => Write::Delete { place, uid: map.0.clone() },
            };
            if self.mirrored.get(&namespace).is_some_and(|last| now.duration_since(*last) < RESULTS_PACE) {
                next = next.max(Next::Retry);
                continue;
            }
            self.mirrored.insert(namespace.clone(), now);
            if let Err(Failed::Refused(why)) = self.context.write(&write, self.owner.as_ref()).await {
                warn!(namespace, why, "its results cannot be written");
                next = next.max(Next::Retry);
            }
        }
        self.mirrored.retain(|_, last| now.duration_since(*last) < RESULTS_PACE);
        next
    }
}

fn names(sets: &[AgentSet]) -> BTreeSet<String> {
    sets.iter().map(|set| set.name.clone()).collect()
}

/// The sets that add agents, as they stand or in a revision that pods may have.
fn agent_sets(context: &Context) -> Vec<AgentSet> {
    let known = context.view.known();
    let namespaces = context.view.namespaces();
    let own_namespace = Some(context.settings.namespace.as_str());
    let sets = known.sets.sets().filter_map(|set| {
        let configs = configs(set, &known);
        let meant = namespaces.values();
        let meant = meant.filter(|it| !it.is_excluded(own_namespace) && selects_namespace(&set.namespaces, it));
        let namespaces = meant.map(|it| it.name.clone()).collect();
        (!configs.is_empty()).then(|| AgentSet { name: set.name.clone(), configs, namespaces })
    });
    sets.collect()
}

fn configs(set: &Meaning, known: &Known) -> BTreeSet<String> {
    let revisions = known.revisions_of(&set.name).filter_map(|revision| revision.template.as_deref());
    std::iter::once(&set.template).chain(revisions).filter_map(agent_config).map(str::to_owned).collect()
}
