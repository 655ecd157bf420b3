//! Which workloads a pod belongs to, by what it says of itself.

use pillion_api::HotUpdateSpec;
use serde_json::Value;

/// Label of the pods of a Deployment, which ends the name of their `ReplicaSet`.
const TEMPLATE_HASH: &str = "pod-template-hash";
/// Label of the pods of a `GameServerSet`, which are owned by a workload that it makes.
const GAME_SERVER_SET: &str = "game.kruise.io/owner-gss";

/// A `CronJob` names its Jobs by the minute since 1970, which has had so many digits since 1989.
const MINUTE_DIGITS: usize = 8;

/// A workload, of whichever version of its group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Workload {
    group: String,
    kind: String,
    name: String,
}

/// What is read of a pod to find its workload.
#[derive(Clone, Copy, Debug)]
pub struct Origins<'a> {
    /// `apiVersion`, kind and name of its controlling owner.
    pub owner: Option<(&'a str, &'a str, &'a str)>,
    /// Its label `pod-template-hash`.
    pub template_hash: Option<&'a str>,
    /// Its label `game.kruise.io/owner-gss`.
    pub game_server_set: Option<&'a str>,
}

impl Workload {
    /// The workload of a record.
    pub fn of_record(spec: &HotUpdateSpec) -> Self {
        Self::new(spec.workload.group(), &spec.workload.kind, &spec.workload.name)
    }

    /// A workload by its names.
    pub fn new(group: &str, kind: &str, name: &str) -> Self {
        Self { group: group.to_owned(), kind: kind.to_owned(), name: name.to_owned() }
    }

    /// Its group; empty for the core.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Its kind, such as Deployment.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<'a> Origins<'a> {
    /// What a pod says of itself.
    pub fn of_pod(pod: &'a Value) -> Self {
        let metadata = &pod["metadata"];
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let owner = owners.into_iter().find(|owner| owner["controller"] == true);
        let owner = owner
            .and_then(|owner| Some((owner["apiVersion"].as_str()?, owner["kind"].as_str()?, owner["name"].as_str()?)));
        let label = |key: &str| metadata["labels"][key].as_str();
        Self { owner, template_hash: label(TEMPLATE_HASH), game_server_set: label(GAME_SERVER_SET) }
    }

    /// The same, from its labels and its controlling owner.
    pub fn new(owner: Option<(&'a str, &'a str, &'a str)>, label: impl Fn(&str) -> Option<&'a str>) -> Self {
        Self { owner, template_hash: label(TEMPLATE_HASH), game_server_set: label(GAME_SERVER_SET) }
    }

    /// The workloads a pod belongs to, the nearest first.
    pub fn workloads(self) -> Vec<Workload> {
        let mut found = Vec::new();
        if let Some((api_version, kind, name)) = self.owner {
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            found.push(Workload::new(group, kind, name));
            let hash = self.template_hash.filter(|_| (group, kind) == ("apps", "ReplicaSet"));
            let deployment = hash.and_then(|hash| name.strip_suffix(hash)?.strip_suffix('-'));
            found.extend(deployment.map(|name| Workload::new("apps", "Deployment", name)));
            let cron_job = name.rsplit_once('-').filter(|(_, minute)| {
                (group, kind) == ("batch", "Job") && minute.len() >= MINUTE_DIGITS && is_number(minute)
            });
            found.extend(cron_job.map(|(name, _)| Workload::new("batch", "CronJob", name)));
        }
        found.extend(self.game_server_set.map(|name| Workload::new("game.kruise.io", "GameServerSet", name)));
        found
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(owner: (&str, &str, &str), hash: Option<&str>) -> Vec<String> {
        let origins = Origins { owner: Some(owner), template_hash: hash, game_server_set: None };
        origins.workloads().iter().map(|it| format!("{} {}", it.kind(), it.name())).collect()
    }

    #[test]
    fn the_workload_behind_the_owner_is_known_by_its_names() {
        assert_eq!(of(("apps/v1", "ReplicaSet", "web-5d"), Some("5d")), ["ReplicaSet web-5d", "Deployment web"]);
        assert_eq!(of(("apps/v1", "ReplicaSet", "web-5d"), None), ["ReplicaSet web-5d"]);
        assert_eq!(of(("batch/v1", "Job", "nightly-29384720"), None), ["Job nightly-29384720", "CronJob nightly"]);
        assert_eq!(of(("batch/v1", "Job", "import-2"), None), ["Job import-2"]);
        assert_eq!(of(("apps/v1", "StatefulSet", "db-29384720"), None), ["StatefulSet db-29384720"]);
    }
}
