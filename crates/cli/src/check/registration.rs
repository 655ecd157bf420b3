//! What the API server was told about us, and who else it asks about pods.

use pillion_api::names::{NEVER_REVIEWED, POD_WEBHOOK, REGISTRATION, REQUIRED_POD_WEBHOOK, SET_WEBHOOK};
use serde_json::{Value, json};

use super::Check;
use super::seen::{Seen, name_of, webhooks};

const HEALING: &str = "a manager that runs puts it right within seconds: look at its logs";

pub(super) fn checks(seen: &Seen) -> Vec<Check> {
    vec![pods(seen), sets(seen)]
}

fn pods(seen: &Seen) -> Check {
    let name = "pod webhook";
    if let Err(why) = &seen.mutating {
        return Check::unread(name, why);
    }
    let Some(found) = seen.registration() else {
        return Check::fail(name, format!("there is no MutatingWebhookConfiguration {REGISTRATION}"), HEALING);
    };
    if webhooks(found).is_empty() && seen.is_off() {
        return Check::ok(name, "taken away while injection is switched off");
    }
    if seen.flag("feature-gates").is_some_and(|gates| gates.contains("PodWebhook=false")) {
        return Check::warn(name, "the feature gate PodWebhook is off: no pod is reviewed", "switch the gate on");
    }
    for webhook in [POD_WEBHOOK, REQUIRED_POD_WEBHOOK] {
        let Some(found) = webhooks(found).iter().find(|found| found["name"] == webhook) else {
            return Check::fail(name, format!("webhook {webhook} is not registered"), HEALING);
        };
        // The check of bystanders covers the other one, which must fail open.
        let wrong = if webhook == REQUIRED_POD_WEBHOOK && found["failurePolicy"] != "Fail" {
            format!("has failurePolicy {}, not Fail", found["failurePolicy"])
        } else if !asks_about_pods(found) {
            "is not asked about new pods".to_owned()
        } else if let Some(missing) = [NEVER_REVIEWED, &seen.namespace].into_iter().find(|it| !leaves_out(found, it)) {
            format!("does not leave out namespace {missing}: a cluster might not start any more")
        } else {
            continue;
        };
        return Check::fail(name, format!("webhook {webhook} {wrong}"), HEALING);
    }
    Check::ok(name, "registered: open for all namespaces, closed for those that require injection")
}

fn leaves_out(webhook: &Value, namespace: &str) -> bool {
    let expressions = webhook.pointer("/namespaceSelector/matchExpressions").and_then(Value::as_array);
    expressions.into_iter().flatten().any(|expression| {
        expression["key"] == "kubernetes.io/metadata.name"
            && expression["operator"] == "NotIn"
            && expression["values"].as_array().is_some_and(|values| values.contains(&json!(namespace)))
    })
}

fn sets(seen: &Seen) -> Check {
    let name = "set webhook";
    match &seen.validating {
        Err(why) => Check::unread(name, why),
        Ok(Some(found)) if webhooks(found).iter().any(|found| found["name"] == SET_WEBHOOK) => {
            Check::ok(name, "registered: sets are checked before they are stored")
        }
        Ok(_) => Check::fail(name, "nobody checks sets before they are stored", HEALING),
    }
}

/// The API server asks in the order of names.
pub(super) fn neighbours(seen: &Seen) -> Check {
    let name = "neighbours";
    let all = match &seen.mutating {
        Err(why) => return Check::unread(name, why),
        Ok(all) => all,
    };
    let others =
        all.iter().filter(|found| name_of(found) != REGISTRATION && webhooks(found).iter().any(asks_about_pods));
    let (before, after): (Vec<&str>, Vec<&str>) = others.map(name_of).partition(|other| *other < REGISTRATION);
    let told = [("before us", before), ("after us", after)];
    let told = told.iter().filter(|(_, names)| !names.is_empty());
    let told: Vec<String> = told.map(|(place, names)| format!("{place}: {}", names.join(", "))).collect();
    if told.is_empty() {
        return Check::ok(name, "nobody else changes new pods");
    }
    let message =
        format!("others change new pods too, {}; what they change after us we are asked about again", told.join("; "));
    Check::ok(name, message)
}

/// Whether a webhook is asked when a pod is created.
fn asks_about_pods(webhook: &Value) -> bool {
    let has = |rule: &Value, field: &str, wanted: &[&str]| {
        rule[field].as_array().into_iter().flatten().filter_map(Value::as_str).any(|it| wanted.contains(&it))
    };
    webhook["rules"].as_array().into_iter().flatten().any(|rule| {
        has(rule, "apiGroups", &["", "*"])
            && has(rule, "operations", &["CREATE", "*"])
            && has(rule, "resources", &["pods", "*", "*/*"])
    })
}

pub(super) fn open_kruise(seen: &Seen) -> Check {
    let name = "openkruise";
    let all = match &seen.mutating {
        Err(why) => return Check::unread(name, why),
        Ok(all) => all,
    };
    let found =
        all.iter().find(|found| name_of(found).starts_with("kruise-") && webhooks(found).iter().any(asks_about_pods));
    match found {
        None => Check::ok(name, "not there"),
        Some(found) => Check::fail(
            name,
            format!("{} injects SidecarSets too", name_of(found)),
            "two products cannot own the same sets: switch its SidecarSet webhook off",
        ),
    }
}
