//! Whether the API server reaches the webhook: it is asked to try a pod that carries a mark only we may write. The webhook
//! takes such a mark away; where it stays, nobody was asked.

use pillion_api::names::NEVER_REVIEWED;
use pillion_inject::marks;
use serde_json::{Value, json};

use super::Check;
use super::seen::{Seen, name_of, webhooks};

const NAME: &str = "reached";
const FORGED: &str = "forged by pillion check";
const UNREACHED: &str =
    "look at the manager's pods, its Service and network policies; pods are created without sidecars meanwhile";

/// A pod that no Pod Security level refuses. It is only tried, and its image does not exist.
pub(super) fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"generateName": "pillion-check-", "annotations": {marks::DECISION: FORGED}},
        "spec": {
            "restartPolicy": "Never",
            "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "check", "image": "pillion.invalid/check:none",
                "resources": {"limits": {"cpu": "10m", "memory": "16Mi"}},
                "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
            }],
        },
    })
}

pub(super) fn check(seen: &Seen) -> Check {
    let namespace = match &seen.probe_namespace {
        Ok(Some(namespace)) => name_of(namespace),
        _ => "the namespace",
    };
    if [NEVER_REVIEWED, seen.namespace.as_str()].contains(&namespace) {
        let hint = "give another one with --probe-namespace";
        return Check::warn(NAME, format!("pods of {namespace} are never reviewed, so trying one tells nothing"), hint);
    }
    if seen.registration().is_some_and(|found| webhooks(found).is_empty()) {
        return Check::warn(NAME, "no webhook is registered for pods", "see above");
    }
    let created = match &seen.probe {
        Ok(created) => created,
        Err(why) if why.contains(".pillion.dev") => {
            return Check::fail(NAME, format!("the API server does not reach the webhook: {why}"), UNREACHED);
        }
        Err(why) => {
            let hint = "somebody else refuses it: give another namespace with --probe-namespace";
            return Check::warn(NAME, format!("a pod could not be tried in {namespace}: {why}"), hint);
        }
    };
    let is_forged = created.pointer("/metadata/annotations").is_some_and(|all| all[marks::DECISION] == FORGED);
    if !is_forged {
        return Check::ok(NAME, format!("the API server asked the webhook about a pod it tried in {namespace}"));
    }
    if seen.flag("mode") == Some("Observe") {
        return Check::warn(
            NAME,
            "in mode Observe no pod is changed, so trying one tells nothing",
            "look at the metrics",
        );
    }
    Check::fail(
        NAME,
        format!("the API server did not reach the webhook about a pod it tried in {namespace}"),
        UNREACHED,
    )
}
