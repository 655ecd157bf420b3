//! What is known of an autoscaler: what it publishes, what was learned, and what its pods have.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use pillion_api::{AutoscalerCondition, VerticalPodAutoscaler, VerticalPodAutoscalerCheckpointStatus};
use pillion_inject::Origins;
use pillion_quantity::Resource;
use pillion_rightsize::{
    Aggregate, Amounts, Autoscaler, ContainerRecommendation, ContainerType, Explanation, Settings, count_of_apps,
    explain,
};
use serde::Deserialize as _;
use serde_json::Value;

/// An autoscaler, and what is known of its containers.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) autoscaler: Autoscaler,
    /// Pods of its target that live.
    pub(super) pods: usize,
    pub(super) conditions: Vec<AutoscalerCondition>,
    pub(super) settings: Settings,
    /// In the order of their names.
    pub(super) containers: Vec<Container>,
    pub(super) now: Timestamp,
}

/// What is known of one container.
#[derive(Debug)]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) kind: ContainerType,
    /// Whether a pod has it.
    pub(super) is_running: bool,
    /// How its numbers come about; else why that cannot be said.
    pub(super) learned: Result<Explanation, String>,
    /// When what was learned was written.
    pub(super) written: Option<Timestamp>,
    pub(super) published: Option<ContainerRecommendation>,
    /// What pods ask for, with the number of pods.
    requests: [BTreeMap<i64, usize>; 2],
    /// When it ran out of memory, and what it was allowed.
    pub(super) ooms: Vec<Oom>,
}

/// A container that ran out of memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Oom {
    pub(super) at: String,
    pub(super) pod: String,
    /// Its limit in bytes, else what it asked for.
    pub(super) memory: Option<i64>,
}

/// What pods say of a container.
#[derive(Default)]
struct Seen {
    is_native: bool,
    requests: [BTreeMap<i64, usize>; 2],
    ooms: Vec<Oom>,
}

impl Subject {
    /// Sorts out what the cluster has; else why the object cannot be used.
    pub(super) fn read(object: &Value, checkpoints: &[Value], pods: &[Value], now: Timestamp) -> Result<Self, String> {
        let object = VerticalPodAutoscaler::deserialize(object)
            .map_err(|error| format!("the VerticalPodAutoscaler cannot be read: {error}"))?;
        let autoscaler = Autoscaler::read(&object)?;
        // Whether the gate is on only the recommender knows; what it publishes is shown beside.
        let settings = Settings { native_sidecars: true, ..Settings::default() };
        let target = &autoscaler.target;
        let is_target = |pod: &&Value| {
            Origins::of_pod(pod).workloads().iter().any(|it| it.kind() == target.kind && it.name() == target.name)
        };
        let lives = |pod: &&Value| !["Succeeded", "Failed"].iter().any(|phase| pod["status"]["phase"] == **phase);
        let mut seen: BTreeMap<String, Seen> = BTreeMap::new();
        let mut count = 0;
        for pod in pods.iter().filter(is_target).filter(lives) {
            count += 1;
            look(pod, &mut seen);
        }
        let of_this = |object: &&Value| object["spec"]["vpaObjectName"] == *autoscaler.name;
        let saved = checkpoints.iter().filter(of_this).filter_map(|object| {
            let status = VerticalPodAutoscalerCheckpointStatus::deserialize(&object["status"]);
            Some((object["spec"]["containerName"].as_str()?.to_owned(), status.map_err(|error| error.to_string())))
        });
        let saved: BTreeMap<String, Result<VerticalPodAutoscalerCheckpointStatus, String>> = saved.collect();
        let published: BTreeMap<&str, &ContainerRecommendation> = autoscaler
            .recommendation
            .iter()
            .flat_map(|all| &all.containers)
            .map(|own| (own.container.as_str(), own))
            .collect();
        let kind = |name: &str| match seen.get(name) {
            Some(Seen { is_native: true, .. }) => ContainerType::NativeSidecar,
            _ => ContainerType::App,
        };
        let counted: Vec<&str> = if seen.is_empty() {
            saved.keys().map(String::as_str).collect()
        } else {
            seen.keys().map(String::as_str).collect()
        };
        let apps = count_of_apps(counted.into_iter().map(|name| (name, kind(name))), |name| autoscaler.policy(name));
        let names: BTreeSet<&str> =
            seen.keys().chain(saved.keys()).map(String::as_str).chain(published.keys().copied()).collect();
        let containers = names.into_iter().map(|name| {
            let checkpoint = saved.get(name).map(Result::as_ref);
            let wrong = |why: String| format!("its checkpoint cannot be read: {why}");
            let aggregate = match checkpoint {
                None => Err("there is no checkpoint of it".to_owned()),
                Some(Err(why)) => Err(wrong(why.clone())),
                Some(Ok(status)) => Aggregate::load(status, &settings).map_err(wrong),
            };
            let learned = aggregate
                .map(|aggregate| explain(name, kind(name), &aggregate, &autoscaler.policy(name), apps, &settings));
            let seen = seen.get(name);
            Container {
                name: name.to_owned(),
                kind: kind(name),
                is_running: seen.is_some(),
                learned,
                written: checkpoint.and_then(|status| status.ok()?.last_update_time.as_ref()).map(|time| time.0),
                published: published.get(name).map(|own| (*own).clone()),
                requests: seen.map(|seen| seen.requests.clone()).unwrap_or_default(),
                ooms: seen.map(|seen| seen.ooms.clone()).unwrap_or_default(),
            }
        });
        let containers = containers.collect();
        let conditions = object.status.and_then(|status| status.conditions).unwrap_or_default();
        Ok(Self { pods: count, conditions, settings, containers, autoscaler, now })
    }

    /// Leaves the others out.
    pub(super) fn keep(&mut self, container: &str) -> Result<(), String> {
        let names: Vec<String> = self.containers.iter().map(|own| own.name.clone()).collect();
        self.containers.retain(|own| own.name == container);
        if self.containers.is_empty() {
            let Autoscaler { namespace, name, .. } = &self.autoscaler;
            return Err(format!(
                "VerticalPodAutoscaler {namespace}/{name} knows no container {container}: it knows {}",
                if names.is_empty() { "none".to_owned() } else { names.join(", ") }
            ));
        }
        Ok(())
    }
}

impl Container {
    /// What pods ask for, the most common first, with the number of pods.
    pub(super) fn requests(&self, resource: Resource) -> Vec<(i64, usize)> {
        let mut all: Vec<(i64, usize)> =
            self.requests[place(resource)].iter().map(|(amount, pods)| (*amount, *pods)).collect();
        all.sort_by_key(|(_, pods)| std::cmp::Reverse(*pods));
        all
    }
}

const fn place(resource: Resource) -> usize {
    match resource {
        Resource::Cpu => 0,
        Resource::Memory => 1,
    }
}

fn look(pod: &Value, seen: &mut BTreeMap<String, Seen>) {
    let lists = [("initContainers", "initContainerStatuses"), ("containers", "containerStatuses")];
    for (list, statuses) in lists {
        let containers = pod["spec"][list].as_array().into_iter().flatten();
        for container in containers.filter(|it| list == "containers" || it["restartPolicy"] == "Always") {
            let Some(name) = container["name"].as_str() else { continue };
            let own = seen.entry(name.to_owned()).or_default();
            own.is_native |= list == "initContainers";
            let amount = |side: &str, resource: Resource| {
                Amounts::read(resource, container["resources"][side][resource.name()].as_str()?)
            };
            for resource in Amounts::RESOURCES {
                if let Some(amount) = amount("requests", resource) {
                    *own.requests[place(resource)].entry(amount).or_default() += 1;
                }
            }
            let memory = amount("limits", Resource::Memory).or_else(|| amount("requests", Resource::Memory));
            let statuses = pod["status"][statuses].as_array().into_iter().flatten();
            let status = statuses.into_iter().find(|status| status["name"] == name);
            for state in ["lastState", "state"] {
                let ended = status.map_or(&Value::Null, |status| &status[state]["terminated"]);
                if ended["reason"] == "OOMKilled" {
                    own.ooms.push(Oom {
                        at: ended["finishedAt"].as_str().unwrap_or_default().to_owned(),
                        pod: pod["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
                        memory,
                    });
                }
            }
            own.ooms.sort();
        }
    }
}
