//! What a cluster has of one rollout: the set, its revisions, and the pods that carry it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use pillion_api::revision::SET_UID_LABEL;
use pillion_api::{Condition, Meaning, review};
use pillion_inject::coverage::{LivingPod, Marks, Standing, standings};
use pillion_inject::marks;
use pillion_rollout::{DisruptionBudget, Pod, RawPod};
use serde::Deserialize as _;
use serde_json::Value;

use super::revisions::Revisions;
use crate::live::kinds::{DISRUPTION_BUDGET, POD, REVISION, SIDECAR_SET};
use crate::live::{Cluster, Connection, Failure, Progress, Query, World};
use crate::{Ending, Streams};

/// A set and all that follows it.
pub(super) struct Rollout {
    /// The set as it is stored.
    pub(super) set: Value,
    /// What it means.
    pub(super) meaning: Meaning,
    /// What the cluster keeps of it.
    pub(super) revisions: Revisions,
    /// The pods that live, match it and carry it, by namespace and name.
    pub(super) pods: Vec<Pod>,
    /// The budgets of the cluster.
    pub(super) budgets: Vec<DisruptionBudget>,
    /// One of the pods of each workload as it is stored: the first by name.
    pub(super) samples: BTreeMap<(String, String, String), Value>,
    /// What decides about pods besides.
    pub(super) world: World,
}

/// A pod, as far as a rollout looks at it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SeenPod {
    pub(super) pod: Pod,
    marks: Arc<Marks>,
}

impl SeenPod {
    /// Reads a pod; `None` for one that nothing can be done to.
    pub(super) fn read(object: &Value) -> Option<Self> {
        // What the API server has can be read.
        let pod = Pod::read(RawPod::deserialize(object).ok()?);
        let annotations = &object["metadata"]["annotations"];
        let annotation = |key: &str| annotations.get(key).and_then(Value::as_str);
        let is_labelled = pod.label(marks::INJECTED_LABEL) == Some("true");
        let marks = Marks::read(annotation, is_labelled, !pod.containers.is_empty())?;
        Some(Self { pod, marks: Arc::new(marks) })
    }
}

/// Why there is no rollout to speak of.
pub(super) enum Unusable {
    /// The cluster has no such set, or cannot be asked.
    Failed(Failure),
    /// The set has errors, so nobody follows it.
    Invalid(String),
}

impl From<Failure> for Unusable {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Rollout {
    /// Sorts out what the cluster has. Pods come later, a page at a time.
    pub(super) fn read(set: Value, mut world: World, revisions: &[Value], budgets: &[Value]) -> Result<Self, Unusable> {
        let meaning = meaning(&set)?;
        // The set that was read is the one that counts, should it have changed since the others were.
        world.given.sets.insert(meaning.clone());
        let revisions = Revisions::read(revisions, &meaning, uid(&set));
        let budgets = budgets.iter().filter_map(DisruptionBudget::read).collect();
        Ok(Self { set, meaning, revisions, pods: Vec::new(), budgets, samples: BTreeMap::new(), world })
    }

    /// Takes a pod if it carries the set.
    pub(super) fn take(&mut self, object: Value) {
        let Some(seen) = SeenPod::read(&object).filter(|seen| self.is_carried_by(seen)) else { return };
        let pod = seen.pod;
        let workload = pod.workload();
        let key = (workload.namespace.to_owned(), workload.kind.to_owned(), workload.name.to_owned());
        let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let earlier = self.samples.get(&key).map(name);
        if earlier.is_none_or(|earlier| *pod.name < *earlier) {
            self.samples.insert(key, object);
        }
        self.pods.push(pod);
    }

    /// Whether a pod counts, by the rule of the controller.
    pub(super) fn is_carried_by(&self, seen: &SeenPod) -> bool {
        let SeenPod { pod, marks } = seen;
        if pod.is_ended {
            return false;
        }
        let living = LivingPod {
            labels: pod.labels.clone(),
            created: pod.created,
            is_deleting: pod.is_deleting,
            is_ready: pod.is_ready,
            marks: Arc::clone(marks),
        };
        let given = &self.world.given;
        let namespace = given.namespace(&pod.namespace);
        let since = |_: &Meaning| -> Option<Timestamp> { None };
        let standings = standings(&living, &namespace, &given.sets, given.facts.installation(), since);
        standings.get(&self.meaning.name) == Some(&Standing::Carries)
    }

    /// The same pods with another set; what is wrong with it where it has errors.
    pub(super) fn with_set(self, set: Value) -> Result<Self, Unusable> {
        let meaning = meaning(&set)?;
        let revisions = self.revisions.of(&meaning, uid(&set));
        Ok(Self { set, meaning, revisions, ..self })
    }

    /// The labels of the pods that may carry it: those with our label, and those that `OpenKruise` may have injected.
    pub(super) fn queries(&self) -> [String; 2] {
        let label = marks::INJECTED_LABEL;
        let listed = |values: &BTreeSet<String>| values.iter().cloned().collect::<Vec<_>>().join(",");
        let requirements = self.meaning.selector.requirements().iter().map(|requirement| {
            let key = &requirement.key;
            match &requirement.condition {
                Condition::In(values) => format!("{key} in ({})", listed(values)),
                Condition::NotIn(values) => format!("{key} notin ({})", listed(values)),
                Condition::Exists => key.clone(),
                Condition::DoesNotExist => format!("!{key}"),
            }
        });
        let theirs = requirements.chain([format!("{label}!=true")]).collect::<Vec<_>>().join(",");
        [format!("{label}=true"), theirs]
    }

    /// In the order in which they are told.
    pub(super) fn sort(&mut self) {
        self.pods.sort_by(|one, other| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)));
    }

    /// Asks the cluster for all but the pods.
    pub(super) async fn without_pods(cluster: &Cluster, connection: &Connection, name: &str) -> Result<Self, Unusable> {
        let set = cluster.get(SIDECAR_SET, None, name).await?;
        let set = set.ok_or_else(|| Failure::Usage(format!("there is no SidecarSet {name}")))?;
        let own_namespace = &connection.pillion_namespace;
        let labels = format!("{SET_UID_LABEL}={}", uid(&set));
        let query = Query { namespace: Some(own_namespace), labels: Some(&labels) };
        let revisions = cluster.list(REVISION, query).await?;
        let budgets = cluster.list(DISRUPTION_BUDGET, Query::default()).await?;
        let world = World::gather(cluster, None, own_namespace).await?;
        Self::read(set, world, &revisions, &budgets)
    }

    /// Asks the cluster.
    pub(super) async fn gather(
        cluster: &Cluster,
        connection: &Connection,
        name: &str,
        streams: &mut Streams<'_>,
    ) -> Result<Self, Unusable> {
        let mut rollout = Self::without_pods(cluster, connection, name).await?;
        let mut progress = Progress::new();
        let mut seen = 0;
        for labels in rollout.queries() {
            let query = Query { labels: Some(&labels), ..Query::default() };
            cluster
                .pages(POD, query, |page| {
                    seen += page.len();
                    for pod in page {
                        rollout.take(pod);
                    }
                    Ok(progress.tell(streams.err, || format!("{seen} pods so far"))?)
                })
                .await?;
        }
        progress.end(streams.err).map_err(Failure::from)?;
        rollout.sort();
        for note in &rollout.world.notes {
            writeln!(streams.err, "note: {note}").map_err(Failure::from)?;
        }
        Ok(rollout)
    }

    /// The same for a verb: what stands against it is said, and how it ends.
    pub(super) async fn gathered(
        cluster: &Cluster,
        connection: &Connection,
        name: &str,
        streams: &mut Streams<'_>,
    ) -> Result<Result<Self, Ending>, Failure> {
        let gathered = Self::gather(cluster, connection, name, streams).await;
        said(gathered, name, streams)
    }
}

fn uid(set: &Value) -> &str {
    set["metadata"]["uid"].as_str().unwrap_or_default()
}

fn meaning(set: &Value) -> Result<Meaning, Unusable> {
    let mut words = set.clone();
    // A newer controller may tell more than is known here; it is no part of what the set means.
    words.as_object_mut().map(|fields| fields.remove("status"));
    let review = review(&words);
    let first_error = review.errors().next().map(ToString::to_string);
    review.meaning.ok_or_else(|| Unusable::Invalid(first_error.unwrap_or_default()))
}

/// Says what stands against a rollout, and how the verb ends.
pub(super) fn said(
    gathered: Result<Rollout, Unusable>,
    name: &str,
    streams: &mut Streams<'_>,
) -> Result<Result<Rollout, Ending>, Failure> {
    match gathered {
        Ok(rollout) => Ok(Ok(rollout)),
        Err(Unusable::Failed(failure)) => Err(failure),
        Err(Unusable::Invalid(error)) => {
            writeln!(streams.err, "error: no pod follows set {name} until it is corrected: {error}")?;
            Ok(Err(Ending::Finding))
        }
    }
}
