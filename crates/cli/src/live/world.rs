//! What of a cluster decides about its pods: sets, namespaces, limit ranges, and our own installation.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use pillion_api::names::SWITCH;
use pillion_api::review;
use pillion_inject::{LimitRange, SetIndex};
use serde_json::Value;

use super::Failure;
use super::cluster::{Cluster, Query};
use super::kinds::{CONFIG_MAP, DEPLOYMENT, LIMIT_RANGE, NAMESPACE, SIDECAR_SET};
use crate::installation::{DEPLOYMENTS, Facts};
use crate::preview::Given;

/// The surroundings of pods.
#[derive(Default)]
pub(crate) struct World {
    /// What can be used.
    pub(crate) given: Given,
    /// Sets that cannot, with the first thing that is wrong with each.
    pub(crate) invalid: BTreeMap<String, String>,
    /// When each set began to ask for the pods it asks for.
    pub(crate) observed: BTreeMap<String, Timestamp>,
    /// What could not be found out, and what that means.
    pub(crate) notes: Vec<String>,
}

impl World {
    /// Reads what the API server has.
    pub(crate) fn read(sets: &[Value], namespaces: &[Value], limit_ranges: &[Value], facts: Facts) -> Self {
        let mut world = Self::default();
        let mut index = SetIndex::default();
        for set in sets {
            let name = text(set, "/metadata/name").to_owned();
            let times = [text(set, "/status/selectorObservedTime"), text(set, "/metadata/creationTimestamp")];
            if let Some(time) = times.iter().find_map(|time| time.parse().ok()) {
                world.observed.insert(name.clone(), time);
            }
            let mut spec = set.clone();
            // A newer controller may tell more than is known here; it is no part of what the set means.
            spec.as_object_mut().map(|fields| fields.remove("status"));
            let review = review(&spec);
            let first_error = review.errors().next().map(ToString::to_string);
            if let Some(meaning) = review.meaning {
                index.insert(meaning);
            } else {
                world.invalid.insert(name, first_error.unwrap_or_default());
            }
        }
        let namespaces = namespaces.iter().map(|namespace| {
            let labels = namespace.pointer("/metadata/labels").and_then(Value::as_object);
            let labels = labels.into_iter().flatten();
            let labels = labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
            (text(namespace, "/metadata/name").to_owned(), labels.collect())
        });
        let mut ranges = Vec::new();
        for range in limit_ranges {
            match LimitRange::read(range) {
                Ok(range) => ranges.push(range),
                Err(what) => world.notes.push(format!(
                    "LimitRange {}/{} is left out: {what}",
                    text(range, "/metadata/namespace"),
                    text(range, "/metadata/name")
                )),
            }
        }
        world.given = Given::of_cluster(index, namespaces.collect(), ranges, facts);
        world
    }

    /// Whether the cluster has a set of this name, in order or not.
    pub(crate) fn has_set(&self, name: &str) -> bool {
        self.given.sets.get(name).is_some() || self.invalid.contains_key(name)
    }

    /// Asks the cluster; of these namespaces, or of all.
    pub(crate) async fn gather(
        cluster: &Cluster,
        namespaces: Option<&BTreeSet<String>>,
        own_namespace: &str,
    ) -> Result<Self, Failure> {
        let sets = cluster.list(SIDECAR_SET, Query::default()).await?;
        let mut found = Vec::new();
        let mut ranges = Vec::new();
        match namespaces {
            None => {
                found = cluster.list(NAMESPACE, Query::default()).await?;
                ranges = cluster.list(LIMIT_RANGE, Query::default()).await?;
            }
            Some(names) => {
                for name in names {
                    found.extend(cluster.get(NAMESPACE, None, name).await?);
                    let query = Query { namespace: Some(name), ..Query::default() };
                    ranges.extend(cluster.list(LIMIT_RANGE, query).await?);
                }
            }
        }
        let (facts, note) = facts(cluster, own_namespace).await;
        let mut world = Self::read(&sets, &found, &ranges, facts);
        world.notes.extend(note);
        Ok(world)
    }
}

/// People who may not read the product's own namespace get an answer all the same.
async fn facts(cluster: &Cluster, namespace: &str) -> (Facts, Option<String>) {
    let asked = async {
        let switch = cluster.get(CONFIG_MAP, Some(namespace), SWITCH).await?;
        let mut deployments = Vec::new();
        for name in DEPLOYMENTS {
            deployments.extend(cluster.get(DEPLOYMENT, Some(namespace), name).await?);
        }
        Ok::<_, Failure>(Facts::read(namespace, switch.as_ref(), &deployments))
    };
    match asked.await {
        Ok(facts) => (facts, None),
        Err(failure) => {
            let note = format!("{}: taken as switched on, with mode Inject", crate::chain(&failure));
            (Facts::read(namespace, None, &[]), Some(note))
        }
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
