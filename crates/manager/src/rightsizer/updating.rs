//! The loop that applies what is recommended to running pods: gathers what is known, asks the planner, checks its plan and
//! carries it out.
//!
//! A pod is evicted only where the one in its place would be sized: its namespace is reviewed, reviews are not switched off,
//! and a webhook that sizes pods is alive. Elsewhere pods are resized in place only, and a condition says why.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::{Api, Client};
use parking_lot::Mutex;
use pillion_api::{LabelSelector, Selector, SetMode};
use pillion_rightsize::{
    Autoscaler, DisruptionBudget, Gates, Ground, Mode, Pod, SizeAction, Sizing, Tries, UpdatePlan, UpdaterSettings,
    check, plan,
};
use pillion_runtime::watch::{Freshness, Key, Selection, Store, WatchMetrics, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tracing::{debug, error, warn};

use super::executing::Outcome;
use super::learn::Learner;
use super::statuses::Hindrance;
use super::targets::Scales;
use super::workloads::Workloads;
use super::{AT_ONCE, Context};
use crate::autoscalers::Claimed;
use crate::limit_ranges::NamespaceLimits;
use crate::names;
use crate::upstream::{Upstream, is_fresh};

/// A webhook that sizes pods renews its lease more often.
const ALIVE: SignedDuration = SignedDuration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(5);

/// Why things are not applied as objects say, by object.
pub(super) type Board = Arc<Mutex<BTreeMap<Key, Hindrance>>>;

/// What the loop works with.
pub(super) struct Updater<'a> {
    pub(super) context: &'a Context,
    pub(super) autoscalers: Store<Arc<Claimed>>,
    pub(super) pods: Store<Arc<Pod>>,
    pub(super) workloads: Workloads,
    pub(super) scales: Scales,
    pub(super) limits: NamespaceLimits,
    pub(super) budgets: Store<Arc<Budget>>,
    pub(super) upstream: Upstream,
    pub(super) learner: Arc<Mutex<Learner>>,
    pub(super) board: Board,
    pub(super) settings: UpdaterSettings,
    pub(super) tries: Tries,
}

/// A `PodDisruptionBudget`, as far as it is looked at.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Budget {
    /// `None` selects all pods of the namespace.
    selector: Option<Selector>,
    allowed: u32,
}

/// An autoscaler that applies something, with the pods that are its own.
struct Applying {
    key: Key,
    meaning: Autoscaler,
    mode: Mode,
    pods: Vec<Arc<Pod>>,
}

/// Namespace, kind and name of a target.
type Target = (Box<str>, String, String);

/// Something to be done, and for whom.
type Task = (Arc<Key>, SizeAction);

/// Watches budgets while the future runs.
pub(super) fn watch_budgets(
    client: &Client,
    metrics: &WatchMetrics,
) -> (Store<Arc<Budget>>, impl Future<Output = ()> + Send + use<>) {
    let selection = Selection { freshness: Freshness::Latest, ..Selection::default() };
    let api = Api::<PodDisruptionBudget>::all(client.clone());
    watch("sized_disruption_budgets", api, selection, metrics, |budget| read_budget(budget).map(Arc::new))
}

/// `None` for one that selects nothing.
fn read_budget(budget: PodDisruptionBudget) -> Option<Budget> {
    let selector = serde_json::to_value(budget.spec?.selector?).ok()?;
    let allowed = budget.status.map_or(0, |status| status.disruptions_allowed);
    let selector = Selector::compile(&serde_json::from_value::<LabelSelector>(selector).ok()?);
    Some(Budget { selector, allowed: allowed.try_into().unwrap_or_default() })
}

impl Updater<'_> {
    /// Applies while it runs.
    pub(super) async fn run(&mut self) {
        self.upstream.completed().await;
        self.limits.completed().await;
        self.budgets.completed().await;
        self.context.view.completed().await;
        self.context.switch.store().completed().await;
        let mut ticks = interval(self.context.settings.sizing.updater_interval.max(Duration::from_millis(100)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            self.pass().await;
        }
    }

    async fn pass(&mut self) {
        let begun = Instant::now();
        let is_alive = self.is_webhook_alive().await;
        let mut hindrances = BTreeMap::new();
        let applying = self.applying(&mut hindrances);
        let now = Timestamp::now();
        let mut tasks: Vec<Task> = Vec::new();
        let mut controlled = 0;
        for own in &applying {
            controlled += own.pods.len();
            self.tries.observe(&own.pods, now);
            let can_evict = self.can_evict(&own.key.namespace, is_alive);
            let planned = self.plan(own, can_evict.as_ref().copied().map_err(|why| why.message.as_str()), now);
            if let Some(why) = hindrance(&planned, own.mode, can_evict.err()) {
                hindrances.insert(own.key.clone(), why);
            }
            let key = Arc::new(own.key.clone());
            tasks.extend(planned.actions.into_iter().map(|action| (Arc::clone(&key), action)));
        }
        *self.board.lock() = hindrances;
        let metrics = &self.context.metrics;
        metrics.controlled_pods.set(i64::try_from(controlled).unwrap_or(i64::MAX));
        self.carry_out(tasks).await;
        self.forget(&applying);
        metrics.updated(begun.elapsed().as_secs_f64());
        debug!(autoscalers = applying.len(), pods = controlled, took = ?begun.elapsed(), "an updating pass");
    }

    /// The autoscalers that apply something, each with its pods. Of several with one target the oldest holds.
    fn applying(&self, hindrances: &mut BTreeMap<Key, Hindrance>) -> Vec<Applying> {
        let is_beside = self.upstream.is_beside();
        let is_observing = self.context.settings.mode == SetMode::Observe;
        let mut by_target: BTreeMap<Target, Vec<(Key, Autoscaler, Mode)>> = BTreeMap::new();
        for (key, claimed) in self.autoscalers.snapshot() {
            let Ok(meaning) = &claimed.meaning else { continue };
            let alone = meaning.effective_mode(false);
            let mode = meaning.effective_mode(is_beside);
            if mode != alone {
                hindrances.insert(key, beside_upstream());
                continue;
            }
            if is_observing && mode != Mode::Off {
                hindrances.insert(key, observing());
                continue;
            }
            let has_boost = self.context.startup_boost && has_boost(meaning);
            if matches!(mode, Mode::Off | Mode::Initial) && !has_boost {
                continue;
            }
            let target = (key.namespace.clone(), meaning.target.kind.clone(), meaning.target.name.clone());
            by_target.entry(target).or_default().push((key, meaning.clone(), mode));
        }
        let mut applying: BTreeMap<Target, Applying> = BTreeMap::new();
        for (target, mut all) in by_target {
            all.sort_by(|(one, first, _), (other, second, _)| {
                first.created.cmp(&second.created).then_with(|| one.name.cmp(&other.name))
            });
            let mut all = all.into_iter();
            let Some((key, meaning, mode)) = all.next() else { continue };
            for (later, ..) in all {
                let message = format!("VerticalPodAutoscaler {} has the same target and is older", key.name);
                hindrances.insert(later, Hindrance { reason: "AnotherAutoscaler", message });
            }
            applying.insert(target, Applying { key, meaning, mode, pods: Vec::new() });
        }
        self.give_pods(&mut applying);
        applying.into_values().collect()
    }

    fn give_pods(&self, applying: &mut BTreeMap<Target, Applying>) {
        let namespaces: std::collections::BTreeSet<Box<str>> =
            applying.keys().map(|(namespace, ..)| namespace.clone()).collect();
        let mut owners: BTreeMap<Box<str>, (String, String)> = BTreeMap::new();
        for namespace in namespaces {
            self.pods.read(|pods| {
                for (_, pod) in pods.in_namespace(&namespace) {
                    let Some(owner) = &pod.owner else { continue };
                    let top = owners.entry(owner.uid.clone()).or_insert_with(|| {
                        let (kind, name) = self.workloads.topmost(&namespace, &owner.kind, &owner.name);
                        (kind.into(), name.into())
                    });
                    let target = (namespace.clone(), top.0.clone(), top.1.clone());
                    if let Some(own) = applying.get_mut(&target) {
                        own.pods.push(Arc::clone(pod));
                    }
                }
            });
        }
    }

    fn plan(&self, own: &Applying, can_evict: Result<(), &str>, now: Timestamp) -> UpdatePlan {
        let limits = self.limits.of(&own.key.namespace);
        let mut configured: BTreeMap<Box<str>, u32> = BTreeMap::new();
        for owner in own.pods.iter().filter_map(|pod| pod.owner.as_ref()) {
            if configured.contains_key(&owner.uid) {
                continue;
            }
            let workload = self.workloads.get(&own.key.namespace, &owner.kind, &owner.name);
            let workload = workload.filter(|workload| workload.uid == owner.uid);
            let target = &own.meaning.target;
            let is_target = (&*owner.kind, &*owner.name) == (target.kind.as_str(), target.name.as_str());
            let scaled = || self.scales.replicas(&own.key).filter(|_| is_target);
            if let Some(replicas) = workload.and_then(|workload| workload.replicas).or_else(scaled) {
                configured.insert(owner.uid.clone(), replicas);
            }
        }
        let names: BTreeMap<&str, &str> = own.pods.iter().map(|pod| (&*pod.uid, &*pod.name)).collect();
        let learner = self.learner.lock();
        let memory_used =
            |uid: &str, container: &str| learner.memory_used(&own.key.namespace, names.get(uid)?, container);
        let ground = Ground {
            sizing: Sizing {
                autoscaler: &own.meaning,
                mode: own.mode,
                limits: &limits,
                gates: Gates {
                    native_sidecar: self.context.native_sidecars,
                    startup_boost: self.context.startup_boost,
                },
                max_boost: self.context.settings.sizing.max_allowed_cpu_boost,
            },
            configured: &configured,
            budgets: &self.budgets_of(own),
            can_evict,
            tries: &self.tries,
            settings: &self.settings,
            memory_used: &memory_used,
            now,
        };
        let planned = plan(&own.pods, &ground);
        match check(&planned, &own.pods, &ground) {
            Ok(()) => planned,
            Err(violations) => {
                self.context.metrics.violations.inc();
                for violation in violations {
                    error!(autoscaler = %own.key, %violation, "the plan breaks a rule and is not carried out");
                }
                UpdatePlan::default()
            }
        }
    }

    fn budgets_of(&self, own: &Applying) -> Vec<DisruptionBudget> {
        self.budgets.read(|budgets| {
            let read = budgets.in_namespace(&own.key.namespace).map(|(key, budget)| {
                let selects = |pod: &&Arc<Pod>| {
                    let label = |key: &str| pod.labels.iter().find(|(own, _)| **own == *key).map(|(_, value)| &**value);
                    budget.selector.as_ref().is_none_or(|selector| selector.matches(label))
                };
                let pods = own.pods.iter().filter(selects).map(|pod| pod.uid.clone()).collect();
                DisruptionBudget { name: key.name.clone(), allowed: budget.allowed, pods }
            });
            read.collect()
        })
    }

    /// Whether a pod that comes anew in a namespace would be sized.
    fn can_evict(&self, namespace: &str, is_alive: bool) -> Result<(), Hindrance> {
        let no = |reason, message: String| Err(Hindrance { reason, message });
        if namespace == names::NEVER_REVIEWED || namespace == self.context.settings.namespace {
            let message = format!("pods of namespace {namespace} are never reviewed, so a new one would not be sized");
            return no("NamespaceNotReviewed", message);
        }
        if !self.context.reviews_pods {
            return no("NotReviewed", "the feature gate PodWebhook is off, so a new pod would not be sized".to_owned());
        }
        if self.context.switch.is_off() {
            return no("SwitchedOff", "pillion is switched off, so a new pod would not be sized".to_owned());
        }
        if !is_alive {
            let lease = names::WEBHOOK_ALIVE_LEASE;
            let message = format!(
                "no webhook that sizes pods has renewed lease {}/{lease} for a minute, so a new pod would not be sized",
                self.context.settings.namespace
            );
            return no("WebhookDown", message);
        }
        Ok(())
    }

    async fn is_webhook_alive(&self) -> bool {
        let api = Api::<Lease>::namespaced(self.context.client.clone(), &self.context.settings.namespace);
        match timeout(PATIENCE, api.get_opt(names::WEBHOOK_ALIVE_LEASE)).await {
            Ok(Ok(lease)) => lease.is_some_and(|lease| is_fresh(&lease, Timestamp::now(), ALIVE)),
            Ok(Err(error)) => {
                warn!(%error, "cannot tell whether a webhook is alive: no pod is evicted");
                false
            }
            Err(_) => false,
        }
    }

    async fn carry_out(&mut self, tasks: Vec<Task>) {
        let (context, settings) = (self.context, &self.settings);
        let autoscalers = self.autoscalers.clone();
        let pace = Arc::new(Mutex::new(Pace::new(settings)));
        let writes = tasks.into_iter().map(|(key, action)| {
            let uid = autoscalers.get(&key).map(|claimed| claimed.uid.clone());
            let pace = Arc::clone(&pace);
            async move {
                if let SizeAction::Evict(_) = &action {
                    let at = pace.lock().next(Instant::now());
                    tokio::time::sleep_until(at).await;
                }
                let outcome = context.carry_out(&key, uid, &action).await;
                (action, outcome)
            }
            .boxed()
        });
        let writes: Vec<_> = writes.collect();
        let mut writes = futures::stream::iter(writes).buffer_unordered(AT_ONCE);
        while let Some((action, outcome)) = writes.next().await {
            match (&action, outcome) {
                (SizeAction::Resize(resize) | SizeAction::Unboost(resize), Outcome::Done) => self.tries.resized(resize),
                (SizeAction::Resize(resize) | SizeAction::Unboost(resize), Outcome::NoRoom) => {
                    self.tries.refused(resize);
                }
                (SizeAction::Evict(eviction), Outcome::Done) => self.tries.evicted(eviction, Timestamp::now()),
                (_, Outcome::NoRoom | Outcome::NotDone) => {}
            }
        }
    }

    fn forget(&mut self, applying: &[Applying]) {
        let pods = || applying.iter().flat_map(|own| &own.pods);
        let uids: std::collections::BTreeSet<&str> = pods().map(|pod| &*pod.uid).collect();
        let owners: std::collections::BTreeSet<&str> =
            pods().filter_map(|pod| pod.owner.as_ref()).map(|owner| &*owner.uid).collect();
        self.tries.retain(|uid| uids.contains(uid), |uid| owners.contains(uid));
    }
}

/// When evictions may be made.
struct Pace {
    apart: Option<Duration>,
    burst: u32,
    next: Option<Instant>,
}

impl Pace {
    fn new(settings: &UpdaterSettings) -> Self {
        let limit = settings.eviction_rate_limit;
        let apart = (limit > 0.0).then(|| Duration::from_secs_f64(1.0 / limit));
        Self { apart, burst: settings.eviction_rate_burst, next: None }
    }

    /// When the next one may be made.
    fn next(&mut self, now: Instant) -> Instant {
        let Some(apart) = self.apart else { return now };
        if self.burst > 0 {
            self.burst -= 1;
            return now;
        }
        let at = self.next.map_or(now, |last| last.max(now)) + apart;
        self.next = Some(at);
        at
    }
}

fn has_boost(meaning: &Autoscaler) -> bool {
    meaning.boost.is_some() || meaning.containers.iter().any(|(_, policy)| policy.boost.is_some())
}

fn beside_upstream() -> Hindrance {
    let message = format!(
        "upstream's autoscaler is in the cluster and would change what is applied here: remove it, or say updateMode Off \
         and annotation {}",
        pillion_rightsize::UPDATE_MODE
    );
    Hindrance { reason: "BesideUpstream", message }
}

fn observing() -> Hindrance {
    Hindrance { reason: "Observing", message: "this installation observes and changes no pod".to_owned() }
}

/// Why not all is applied: what stops pods from being sized comes first.
fn hindrance(plan: &UpdatePlan, mode: Mode, cannot_evict: Option<Hindrance>) -> Option<Hindrance> {
    let told = plan.hindrance().map(|(reason, message)| Hindrance { reason, message });
    told.or(cannot_evict.filter(|_| matches!(mode, Mode::Recreate | Mode::InPlaceOrRecreate)))
}

#[cfg(test)]
mod tests {
    use pillion_rightsize::{Waiting, Why};
    use serde_json::json;

    use super::*;

    #[test]
    fn without_a_limit_evictions_are_made_at_once_and_with_one_they_are_spread() {
        let now = Instant::now();
        let mut free = Pace::new(&UpdaterSettings::default());
        assert_eq!([free.next(now), free.next(now)], [now, now]);
        let settings =
            UpdaterSettings { eviction_rate_limit: 2.0, eviction_rate_burst: 1, ..UpdaterSettings::default() };
        let mut slow = Pace::new(&settings);
        let after = |milliseconds| now + Duration::from_millis(milliseconds);
        assert_eq!([slow.next(now), slow.next(now), slow.next(now)], [now, after(500), after(1000)]);
    }

    #[test]
    fn a_budget_without_a_selector_is_none() {
        let budget = |spec| read_budget(serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap());
        assert_eq!(budget(json!({"maxUnavailable": 1})), None);
        assert_eq!(budget(json!({"selector": {}})), Some(Budget { selector: None, allowed: 0 }));
        assert!(budget(json!({"selector": {"matchLabels": {"a": "b"}}})).unwrap().selector.is_some());
    }

    #[test]
    fn why_nothing_is_evicted_is_told_where_the_mode_would_evict() {
        let why = || Some(Hindrance { reason: "WebhookDown", message: "down".to_owned() });
        let quiet = UpdatePlan::default();
        assert_eq!(hindrance(&quiet, Mode::Recreate, why()), why());
        assert_eq!(hindrance(&quiet, Mode::InPlace, why()), None);
        let waits = Waiting {
            namespace: "shop".into(),
            name: "web-1".into(),
            uid: "u-1".into(),
            why: Why::DisruptionBudget("web".into()),
        };
        let stuck = UpdatePlan { waiting: vec![waits], ..UpdatePlan::default() };
        let told = hindrance(&stuck, Mode::Recreate, why()).unwrap();
        let message = "pod web-1 waits: PodDisruptionBudget web allows no more";
        assert_eq!(told, Hindrance { reason: "DisruptionBudget", message: message.to_owned() });
    }
}
