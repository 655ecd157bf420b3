//! Mains that are not wrapped: how they are is read from the status of the pod, which the kubelet writes.

use std::env;
use std::io::Read;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::api_server::{ApiError, ApiServer, Patience};
use crate::arguments::RestartPolicy;
use crate::pause::spread;
use crate::talk::tell;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A sidecar is not kept from its start for long.
const AT_START: Patience = Patience { step: Duration::from_secs(1), silence: Some(Duration::from_secs(1)) };
/// A pod may stay as it is for days.
const WHILE_RUNNING: Patience = Patience { step: Duration::from_secs(5), silence: None };

/// The mains of one pod that are watched there.
#[derive(Debug)]
pub(super) struct PodStatus {
    pub(super) mains: Vec<String>,
    pub(super) restart_policy: RestartPolicy,
    pub(super) token_dir: PathBuf,
}

/// A line of a watch.
#[derive(Debug, Deserialize)]
struct Change {
    object: Pod,
}

#[derive(Debug, Deserialize)]
struct Pod {
    #[serde(default)]
    status: Status,
}

/// An error that the API server puts into a watch has a status too, which is a text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Status {
    OfPod {
        #[serde(rename = "containerStatuses", default)]
        containers: Vec<ContainerStatus>,
    },
    Other(IgnoredAny),
}

#[derive(Debug, Deserialize)]
struct ContainerStatus {
    name: String,
    #[serde(default)]
    state: ContainerState,
}

#[derive(Debug, Default, Deserialize)]
struct ContainerState {
    terminated: Option<Terminated>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Terminated {
    exit_code: i32,
}

impl Default for Status {
    fn default() -> Self {
        Self::Other(IgnoredAny)
    }
}

impl PodStatus {
    /// Whether all have permanently ended by now; not, if the API server cannot be asked.
    pub(super) fn have_ended(&self) -> bool {
        let now = || anyhow::Ok(self.changes(&AT_START)?.next().transpose()?);
        self.mains.is_empty() || now().is_ok_and(|pod| pod.is_some_and(|pod| self.are_over_in(&pod)))
    }

    /// Sleeps until all have permanently ended.
    pub(super) fn wait(&self) {
        if self.mains.is_empty() {
            return;
        }
        let (mut pause, mut has_told) = (FIRST_PAUSE, false);
        loop {
            let mut has_seen = false;
            let outcome = self.follow(&mut has_seen);
            if has_seen {
                (pause, has_told) = (FIRST_PAUSE, false);
            }
            match outcome {
                Ok(true) => return,
                Err(error) if !has_told => {
                    tell(format_args!("cannot watch the pod, will try again: {error:#}"));
                    has_told = true;
                }
                // The API server ends every watch after a while; and what has been said is not said again.
                _ => {}
            }
            thread::sleep(spread(pause));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Follows one watch: whether all have ended, or only the watch.
    fn follow(&self, has_seen: &mut bool) -> anyhow::Result<bool> {
        for change in self.changes(&WHILE_RUNNING)? {
            let change = change?;
            *has_seen = true;
            if self.are_over_in(&change) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The pod as it is now, then as it becomes.
    fn changes(&self, patience: &Patience) -> anyhow::Result<impl Iterator<Item = anyhow::Result<Change>>> {
        let pod = env::var("POD_NAME").context("POD_NAME does not name the pod")?;
        let server = ApiServer::of_environment(&self.token_dir)?;
        let namespace = server.namespace()?;
        let path = format!("/api/v1/namespaces/{namespace}/pods?fieldSelector=metadata.name%3D{pod}&watch=1");
        let body = server.get(&path, patience).map_err(|error| match error {
            ApiError::Refused { status: 403, .. } => {
                anyhow!("the API server answers 403: allow the pod's service account to watch pods in its namespace")
            }
            error => error.into(),
        })?;
        Ok(read_changes(body))
    }

    fn are_over_in(&self, change: &Change) -> bool {
        let Status::OfPod { containers } = &change.object.status else { return false };
        self.mains.iter().all(|main| {
            let container = containers.iter().find(|container| container.name == *main);
            let ended = container.and_then(|container| container.state.terminated.as_ref());
            // A code that no process can have is a failure.
            ended.is_some_and(|ended| self.restart_policy.is_permanent(u8::try_from(ended.exit_code).unwrap_or(1)))
        })
    }
}

fn read_changes(body: impl Read) -> impl Iterator<Item = anyhow::Result<Change>> {
    serde_json::Deserializer::from_reader(body)
        .into_iter()
        .map(|change| change.context("the API server sends something unexpected"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn are_over(policy: RestartPolicy, mains: &[&str], object: &serde_json::Value) -> bool {
        let status = PodStatus {
            mains: mains.iter().copied().map(str::to_owned).collect(),
            restart_policy: policy,
            token_dir: PathBuf::new(),
        };
        let line = json!({"type": "MODIFIED", "object": object}).to_string();
        status.are_over_in(&read_changes(line.as_bytes()).next().unwrap().unwrap())
    }

    fn ended(name: &str, code: i32) -> serde_json::Value {
        json!({"name": name, "state": {"terminated": {"exitCode": code, "reason": "Error"}}, "ready": false})
    }

    fn pod(containers: &[serde_json::Value]) -> serde_json::Value {
        json!({"kind": "Pod", "spec": {"containers": []}, "status": {"phase": "Running", "containerStatuses": containers}})
    }

    #[test]
    fn a_main_is_over_as_the_restart_policy_says() {
        use RestartPolicy::{Never, OnFailure};
        for (policy, code, over) in [
            (Never, 0, true),
            (Never, 1, true),
            (Never, 137, true),
            (OnFailure, 0, true),
            (OnFailure, 1, false),
            (OnFailure, -1, false),
            (OnFailure, 256, false),
        ] {
            assert_eq!(are_over(policy, &["app"], &pod(&[ended("app", code)])), over, "{policy:?} {code}");
        }
    }

    #[test]
    fn all_must_be_over_and_others_do_not_count() {
        let running = json!({"name": "b", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}});
        // Between two tries the end of the last one stands in another place.
        let waiting = json!({"name": "b", "state": {"waiting": {}}, "lastState": {"terminated": {"exitCode": 0}}});
        for (containers, over) in [
            (vec![ended("a", 0), ended("b", 0), running.clone()], true),
            (vec![ended("a", 0)], false),
            (vec![ended("a", 0), running], false),
            (vec![ended("a", 0), waiting], false),
            (vec![], false),
        ] {
            assert_eq!(are_over(RestartPolicy::Never, &["a", "b"], &pod(&containers)), over, "{containers:?}");
        }
    }

    #[test]
    fn an_error_in_a_watch_is_not_an_end() {
        let error = json!({"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410});
        assert!(!are_over(RestartPolicy::Never, &["app"], &error));
        assert!(!are_over(RestartPolicy::Never, &["app"], &json!({"kind": "Pod"})));
    }
}
