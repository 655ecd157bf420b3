//! The loop that recommends: samples into what is learned, and what is learned into statuses and checkpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use parking_lot::Mutex;
use pillion_rightsize::{Pod, Tries};
use pillion_runtime::watch::{Changes, Freshness, Key, Store};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tracing::{debug, info, warn};

use super::checkpoints::Checkpoints;
use super::learn::{Findings, Learner};
use super::metrics::PassStep;
use super::pods::watch_pods;
use super::source::{Kubelets, MetricsServer, Source};
use super::statuses::{Stands, status};
use super::targets::{Scales, Targets};
use super::updating::{Board, Updater, watch_budgets};
use super::workloads::{Namespaces, Workloads};
use super::{AT_ONCE, Context};
use crate::autoscalers::{Claimed, namespaces, watch_autoscalers};
use crate::limit_ranges::NamespaceLimits;
use crate::sizing_settings::MetricsSource;
use crate::upstream::Upstream;

/// A source that cannot be made is tried again after this long.
const RETRY: Duration = Duration::from_secs(10);
/// How long pods of a namespace that is new to us are waited for.
const LISTING: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(50);

/// Recommends while it runs.
pub(super) async fn run(context: &Context) {
    let sizing = &context.settings.sizing;
    let (autoscalers, autoscalers_driver) =
        watch_autoscalers(&context.client, sizing, Freshness::Latest, &context.watch_metrics);
    let work = async {
        autoscalers.completed().await;
        let wanted = Namespaces::default();
        wanted.store(Arc::new(namespaces(&autoscalers)));
        let (pods, pods_driver) = watch_pods(&context.client, &wanted, &context.watch_metrics);
        let (workloads, workloads_driver) = Workloads::watch(&context.client, &wanted, &context.watch_metrics);
        let (limits, limits_driver) = NamespaceLimits::watch(&context.client, &context.watch_metrics);
        let (budgets, budgets_driver) = watch_budgets(&context.client, &context.watch_metrics);
        let (upstream, upstream_driver) = Upstream::watch(&context.client);
        let (source, source_driver) = source(context).await;
        let learner = Arc::new(Mutex::new(Learner::new(sizing.estimation(context.native_sidecars))));
        let board = Board::default();
        let scales = Scales::default();
        let passes = async {
            tokio::join!(pods.completed(), workloads.completed());
            let mut recommender = Recommender {
                context,
                changed_pods: pods.changes(),
                autoscalers: autoscalers.clone(),
                wanted,
                pods: pods.clone(),
                targets: Targets::new(context.client.clone(), workloads.clone(), scales.clone()),
                workloads: workloads.clone(),
                source,
                learner: Arc::clone(&learner),
                checkpoints: Checkpoints::default(),
                board: Arc::clone(&board),
                collected: Instant::now(),
            };
            let mut updater = Updater {
                context,
                autoscalers: autoscalers.clone(),
                pods: pods.clone(),
                workloads: workloads.clone(),
                scales,
                limits,
                budgets,
                upstream,
                learner: Arc::clone(&learner),
                board: Arc::clone(&board),
                settings: sizing.updating(),
                tries: Tries::default(),
            };
            tokio::join!(recommender.run(), updater.run());
        };
        tokio::join!(
            pods_driver,
            workloads_driver,
            limits_driver,
            budgets_driver,
            upstream_driver,
            source_driver,
            passes.boxed()
        );
    };
    tokio::join!(autoscalers_driver, work.boxed());
}

async fn source(context: &Context) -> (Source, BoxFuture<'static, ()>) {
    let sizing = &context.settings.sizing;
    match sizing.metrics_source {
        MetricsSource::MetricsServer => {
            let server = MetricsServer { client: context.client.clone() };
            (Source::MetricsServer(server), std::future::pending().boxed())
        }
        MetricsSource::Kubelet => loop {
            match Kubelets::watch(&context.client, sizing.kubelet(), &context.watch_metrics) {
                Ok((kubelets, driver)) => break (Source::Kubelets(kubelets), driver),
                Err(why) => warn!(why, "kubelets cannot be asked"),
            }
            sleep(RETRY).await;
        },
    }
}

struct Recommender<'a> {
    context: &'a Context,
    autoscalers: Store<Arc<Claimed>>,
    /// Namespaces whose pods and workloads are kept.
    wanted: Namespaces,
    pods: Store<Arc<Pod>>,
    changed_pods: Changes,
    workloads: Workloads,
    targets: Targets,
    source: Source,
    learner: Arc<Mutex<Learner>>,
    board: Board,
    checkpoints: Checkpoints,
    /// When checkpoints of autoscalers that are gone were last looked for.
    collected: Instant,
}

/// Why autoscalers cannot be served.
type Unsupported = BTreeMap<Key, String>;

impl Recommender<'_> {
    async fn run(&mut self) {
        let mut ticks = interval(self.context.settings.sizing.recommender_interval.max(Duration::from_millis(100)));
        // A pass that takes longer than the time between two makes no others catch up.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            self.pass().await;
        }
    }

    async fn pass(&mut self) {
        let begun = Instant::now();
        let unsupported = self.take_autoscalers().await;
        let metrics = &self.context.metrics;
        metrics.took(PassStep::LoadVpas, begun.elapsed().as_secs_f64());
        let at = Instant::now();
        self.take_pods();
        metrics.took(PassStep::LoadPods, at.elapsed().as_secs_f64());
        let at = Instant::now();
        let answer = self.source.read(&mut self.learner).await;
        metrics.answered(answer.is_err());
        if let Err(why) = answer {
            // What is known stays as it is.
            warn!(why, "no samples");
        }
        metrics.took(PassStep::LoadMetrics, at.elapsed().as_secs_f64());
        let at = Instant::now();
        self.write_statuses(&unsupported).await;
        metrics.took(PassStep::UpdateVpas, at.elapsed().as_secs_f64());
        let at = Instant::now();
        self.keep().await;
        metrics.took(PassStep::MaintainCheckpoints, at.elapsed().as_secs_f64());
        let at = Instant::now();
        self.collect().await;
        metrics.took(PassStep::GarbageCollect, at.elapsed().as_secs_f64());
        metrics.took(PassStep::Total, begun.elapsed().as_secs_f64());
        let (autoscalers, aggregates) = self.learner.lock().counts();
        metrics.autoscalers.set(i64::try_from(autoscalers).unwrap_or(i64::MAX));
        metrics.aggregates.set(i64::try_from(aggregates).unwrap_or(i64::MAX));
        metrics.passes.inc();
        debug!(autoscalers, aggregates, took = ?begun.elapsed(), "a pass");
    }

    /// Takes in which autoscalers there are, and whose pods they mean.
    async fn take_autoscalers(&mut self) -> Unsupported {
        self.watch_namespaces().await;
        let autoscalers = self.autoscalers.snapshot();
        let gone: Vec<Key> =
            self.learner.lock().autoscalers().filter(|key| !autoscalers.contains_key(*key)).cloned().collect();
        for key in &gone {
            self.learner.lock().remove(key);
        }
        self.targets.keep(|key| autoscalers.contains_key(key));
        let mut unsupported = Unsupported::new();
        let mut new = BTreeSet::new();
        let mut again: BTreeSet<Box<str>> = BTreeSet::new();
        for (key, claimed) in &autoscalers {
            let meaning = match &claimed.meaning {
                Ok(meaning) => Arc::new(meaning.clone()),
                Err(why) => {
                    unsupported.insert(key.clone(), why.clone());
                    continue;
                }
            };
            let behind = self.targets.find(key, &meaning.target).await;
            if !self.learner.lock().knows(key) {
                new.insert(key.clone());
            }
            let behind = behind.map_err(|why| unsupported.insert(key.clone(), why)).ok();
            let behind = behind.as_ref().map(|behind| (&behind.selector, &*behind.containers));
            if self.learner.lock().set(key, meaning, behind) {
                again.insert(key.namespace.clone());
            }
        }
        // Nothing is learned or said of an autoscaler before what was known of it is read.
        if !new.is_empty()
            && let Err(why) = self.checkpoints.load(self.context, &new, &self.learner).await
        {
            warn!(why, "new autoscalers wait until their checkpoints can be read");
            for key in &new {
                self.learner.lock().remove(key);
            }
        }
        for namespace in &again {
            let mut learner = self.learner.lock();
            self.pods.read(|pods| {
                for (key, pod) in pods.in_namespace(namespace) {
                    learner.observe(key, Some(pod));
                }
            });
        }
        unsupported
    }

    /// Pods and workloads of a namespace that has an autoscaler only now were not kept.
    async fn watch_namespaces(&self) {
        let namespaces = namespaces(&self.autoscalers);
        let is_more = !namespaces.is_subset(&self.wanted.load());
        self.wanted.store(Arc::new(namespaces));
        if !is_more {
            return;
        }
        let pods = self.pods.list_again();
        let workloads = self.workloads.list_again();
        let begun = Instant::now();
        while !(self.pods.has_listed(pods) && self.workloads.has_listed(&workloads)) {
            if begun.elapsed() > LISTING {
                info!("pods of new namespaces are still being listed");
                return;
            }
            sleep(LOOK).await;
        }
    }

    /// Takes in the pods that changed.
    fn take_pods(&mut self) {
        let Some(changed) = self.changed_pods.next().now_or_never() else { return };
        let mut learner = self.learner.lock();
        self.pods.read(|pods| {
            for key in &changed {
                learner.observe(key, pods.get(key).map(|pod| &**pod));
            }
        });
    }

    async fn write_statuses(&self, unsupported: &Unsupported) {
        let now = Timestamp::now();
        let mut due = Vec::new();
        for (key, claimed) in self.autoscalers.snapshot() {
            let why = unsupported.get(&key);
            let findings: Option<Findings> = if why.is_some() { None } else { self.learner.lock().findings(&key) };
            if why.is_none() && findings.is_none() {
                continue;
            }
            let hindrance = self.board.lock().get(&key).cloned();
            let stands = Stands {
                generation: claimed.generation,
                meaning: claimed.meaning.as_ref().ok(),
                findings: findings.as_ref(),
                unsupported: why.map(String::as_str),
                problems: &claimed.problems,
                hindrance: hindrance.as_ref(),
            };
            let status = status(&stands, claimed.status.as_ref(), now);
            if claimed.status.as_ref() != Some(&status) {
                due.push((key, claimed, status));
            }
        }
        let writes = due.into_iter().map(|(key, claimed, status)| {
            async move { (self.context.write_status(&key, &claimed.uid, &status).await, key) }.boxed()
        });
        let writes: Vec<_> = writes.collect();
        let mut writes = futures::stream::iter(writes).buffer_unordered(AT_ONCE);
        while let Some((written, key)) = writes.next().await {
            match written {
                Ok(()) => drop(self.context.metrics.status_writes.inc()),
                Err(failed) if failed.is_gone() => {}
                Err(failed) => {
                    self.context.metrics.status_failures.inc();
                    warn!(autoscaler = %key, why = failed.message(), "its status cannot be written");
                }
            }
        }
    }

    async fn keep(&mut self) {
        let now = Timestamp::now();
        let due = self.learner.lock().due(now, self.context.settings.sizing.checkpoints_interval);
        for written in self.checkpoints.write(self.context, due, now).await {
            self.learner.lock().saved(&written, now);
        }
    }

    async fn collect(&mut self) {
        if self.collected.elapsed() < self.context.settings.sizing.checkpoints_gc_interval {
            return;
        }
        self.collected = Instant::now();
        self.learner.lock().expire(Timestamp::now());
        let autoscalers = self.autoscalers.clone();
        self.checkpoints.collect(self.context, |key| autoscalers.get(key).is_some()).await;
    }
}
