//! Rules for the admission policies and webhook configurations of an installation: requests of other accounts neither fail nor
//! depend on anything of Pillion, except for the documented purposes.
//!
//! The documented purposes: Pillion's annotations and labels on pods ([`GUARDED`]), namespaces that require injection, and
//! Pillion's own kinds.

use serde_json::Value;

use crate::names;

/// Policies that limit every account, each by comparing a few keys of Pillion and nothing else.
const GUARDED: [&str; 3] = ["pillion-marks", "pillion-status-marks", "pillion-agent-copies"];
/// API groups of Pillion's own kinds.
const OWN_GROUPS: [&str; 2] = ["apps.kruise.io", "pillion.dev"];
/// The longest that a webhook may delay a request, in seconds.
const LONGEST_TIMEOUT: u64 = 5;
/// The timeout of a webhook that does not state one.
const DEFAULT_TIMEOUT: u64 = 10;

/// Every way in which these objects can harm the requests of others, with the name of the object and what to change. Objects of
/// other kinds, and those that are not Pillion's by name, are ignored.
pub fn harm_to_bystanders(objects: &[Value]) -> Vec<String> {
    let ours = objects.iter().filter(|object| is_ours(name_of(object)));
    ours.flat_map(|object| {
        let found = match object["kind"].as_str() {
            Some("ValidatingAdmissionPolicy") => policy(object),
            Some("ValidatingAdmissionPolicyBinding") => binding(object),
            Some("MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration") => webhooks(object),
            _ => Vec::new(),
        };
        let kind = object["kind"].as_str().unwrap_or_default();
        found.into_iter().map(move |harm| format!("{kind} {}: {harm}", name_of(object)))
    })
    .collect()
}

fn is_ours(name: &str) -> bool {
    name == names::REGISTRATION || name.starts_with("pillion-")
}

fn name_of(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn policy(object: &Value) -> Vec<String> {
    let (name, spec) = (name_of(object), &object["spec"]);
    let fails_closed = spec["failurePolicy"] != "Ignore";
    let mut found = Vec::new();
    if fails_closed && !spec["paramKind"].is_null() {
        found.push("it has parameters and fails closed: set failurePolicy to Ignore".to_owned());
    }
    let is_about_an_account = items(&spec["matchConditions"])
        .any(|condition| condition["expression"].as_str().is_some_and(|it| it.contains("request.userInfo.username")));
    if fails_closed && !is_about_an_account && !GUARDED.contains(&name) {
        found.push("it fails closed for every account: add a matchCondition on request.userInfo.username".to_owned());
    }
    let rules = items(&spec["matchConstraints"]["resourceRules"]);
    found.extend(rules.filter(|rule| has_wildcard(rule)).map(|rule| {
        let resources: Vec<&str> = items(&rule["resources"]).filter_map(Value::as_str).collect();
        format!("it matches {} of every API group, or every resource: list groups and resources", resources.join(", "))
    }));
    found
}

/// Returns true if a rule matches resources that nobody listed. `pods/*` is a list of subresources of one resource.
fn has_wildcard(rule: &Value) -> bool {
    let has = |field: &str, wildcards: &[&str]| {
        items(&rule[field]).filter_map(Value::as_str).any(|it| wildcards.contains(&it))
    };
    has("apiGroups", &["*"]) || has("resources", &["*", "*/*"])
}

fn binding(object: &Value) -> Vec<String> {
    let reference = &object["spec"]["paramRef"];
    if reference.is_null() || reference["parameterNotFoundAction"] == "Allow" {
        return Vec::new();
    }
    vec!["it denies requests while its parameters are missing: set parameterNotFoundAction to Allow".to_owned()]
}

fn webhooks(object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for webhook in items(&object["webhooks"]) {
        let name = webhook["name"].as_str().unwrap_or_default();
        if webhook["failurePolicy"] != "Ignore" && !is_required(webhook) && !is_of_own_kinds(webhook) {
            found.push(format!("webhook {name} fails closed for every namespace: set failurePolicy to Ignore"));
        }
        let timeout = webhook["timeoutSeconds"].as_u64().unwrap_or(DEFAULT_TIMEOUT);
        if timeout > LONGEST_TIMEOUT {
            found.push(format!(
                "webhook {name} may delay a request by {timeout} s: set timeoutSeconds to {LONGEST_TIMEOUT} or less"
            ));
        }
    }
    found
}

/// Returns true if a webhook concerns only namespaces that require injection.
fn is_required(webhook: &Value) -> bool {
    let (label, required) = names::INJECTION_LABEL;
    let selector = &webhook["namespaceSelector"];
    let is_listed =
        |it: &Value| it["key"] == label && it["operator"] == "In" && it["values"] == Value::from(vec![required]);
    selector["matchLabels"][label] == required || items(&selector["matchExpressions"]).any(is_listed)
}

fn is_of_own_kinds(webhook: &Value) -> bool {
    let mut groups = items(&webhook["rules"]).flat_map(|rule| items(&rule["apiGroups"])).peekable();
    groups.peek().is_some() && groups.all(|group| group.as_str().is_some_and(|it| OWN_GROUPS.contains(&it)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(name: &str, change: impl FnOnce(&mut Value)) -> Value {
        let mut spec = json!({"failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "resources": ["pods", "pods/*"]}]},
            "matchConditions": [{"name": "controller", "expression": "request.userInfo.username == 'a'"}]});
        change(&mut spec);
        json!({"kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec})
    }

    fn binding(reference: &Value) -> Value {
        json!({"kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "pillion-agent-keys"},
            "spec": {"policyName": "pillion-agent-keys", "paramRef": reference}})
    }

    fn webhook(change: impl FnOnce(&mut Value)) -> Value {
        let mut webhook = json!({"name": "pods.pillion.dev", "failurePolicy": "Ignore", "timeoutSeconds": 3,
            "rules": [{"apiGroups": [""], "resources": ["pods"]}]});
        change(&mut webhook);
        json!({"kind": "MutatingWebhookConfiguration", "metadata": {"name": "pillion"}, "webhooks": [webhook]})
    }

    fn harm(object: Value) -> Vec<String> {
        harm_to_bystanders(&[object])
    }

    #[test]
    fn what_follows_the_rules_is_harmless() {
        let none = Vec::<String>::new();
        assert_eq!(harm(policy("pillion-controller-fence", |_| {})), none);
        assert_eq!(
            harm(policy("pillion-agent-keys", |it| {
                it["paramKind"] = json!({"kind": "ConfigMap"});
                it["failurePolicy"] = "Ignore".into();
            })),
            none
        );
        for name in GUARDED {
            assert_eq!(harm(policy(name, |it| it["matchConditions"] = Value::Null)), none, "{name}");
        }
        assert_eq!(harm(binding(&Value::Null)), none);
        assert_eq!(harm(binding(&json!({"name": "p", "parameterNotFoundAction": "Allow"}))), none);
        assert_eq!(harm(webhook(|_| {})), none);
        assert_eq!(harm(webhook(|it| it["timeoutSeconds"] = 5.into())), none);
        for selector in [
            json!({"matchLabels": {"pillion.dev/injection": "required"}}),
            json!({"matchExpressions": [{"key": "pillion.dev/injection", "operator": "In", "values": ["required"]}]}),
        ] {
            let closed = webhook(|it| {
                it["failurePolicy"] = "Fail".into();
                it["namespaceSelector"] = selector;
            });
            assert_eq!(harm(closed), none);
        }
        for group in OWN_GROUPS {
            let closed = webhook(|it| {
                it["failurePolicy"] = "Fail".into();
                it["rules"] = json!([{"apiGroups": [group]}]);
            });
            assert_eq!(harm(closed), none);
        }
    }

    #[test]
    fn everything_that_can_reject_or_delay_others_is_found() {
        let closed = "it fails closed for every account: add a matchCondition on request.userInfo.username";
        let cases = [
            (policy("pillion-x", |it| it["matchConditions"] = Value::Null), closed),
            // Any other condition can be true for everyone.
            (policy("pillion-x", |it| it["matchConditions"] = json!([{"expression": "request.name == 'a'"}])), closed),
            (
                policy("pillion-x", |it| it["paramKind"] = json!({"kind": "ConfigMap"})),
                "it has parameters and fails closed: set failurePolicy to Ignore",
            ),
            (
                policy("pillion-x", |it| it["matchConstraints"]["resourceRules"][0]["resources"] = json!(["*"])),
                "it matches * of every API group, or every resource: list groups and resources",
            ),
            (
                policy("pillion-x", |it| it["matchConstraints"]["resourceRules"][0]["apiGroups"] = json!(["*"])),
                "it matches pods, pods/* of every API group, or every resource: list groups and resources",
            ),
            (
                binding(&json!({"name": "p", "parameterNotFoundAction": "Deny"})),
                "it denies requests while its parameters are missing: set parameterNotFoundAction to Allow",
            ),
            (
                webhook(|it| it["failurePolicy"] = Value::Null),
                "webhook pods.pillion.dev fails closed for every namespace: set failurePolicy to Ignore",
            ),
            (
                webhook(|it| it["timeoutSeconds"] = 6.into()),
                "webhook pods.pillion.dev may delay a request by 6 s: set timeoutSeconds to 5 or less",
            ),
            (
                webhook(|it| it["timeoutSeconds"] = Value::Null),
                "webhook pods.pillion.dev may delay a request by 10 s: set timeoutSeconds to 5 or less",
            ),
        ];
        for (object, expected) in cases {
            let start = format!("{} {}: ", object["kind"].as_str().unwrap(), name_of(&object));
            assert_eq!(harm(object), [format!("{start}{expected}")]);
        }
    }

    #[test]
    fn a_selector_that_leaves_required_namespaces_out_does_not_excuse() {
        for selector in [
            json!({"matchExpressions": [{"key": "pillion.dev/injection", "operator": "NotIn", "values": ["required"]}]}),
            json!({"matchExpressions": [{"key": "pillion.dev/injection", "operator": "In", "values": ["required", "a"]}]}),
            json!({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["required"]}]}),
            json!({"matchLabels": {"pillion.dev/injection": "enabled"}}),
        ] {
            let closed = webhook(|it| {
                it["failurePolicy"] = "Fail".into();
                it["namespaceSelector"] = selector.clone();
            });
            assert_eq!(harm(closed).len(), 1, "{selector}");
        }
    }

    #[test]
    fn a_webhook_for_other_kinds_or_for_none_is_not_excused_by_ours() {
        for rules in [json!([]), json!([{"apiGroups": ["apps.kruise.io", ""]}]), json!([{"apiGroups": ["apps"]}])] {
            let closed = webhook(|it| {
                it["failurePolicy"] = "Fail".into();
                it["rules"] = rules.clone();
            });
            assert_eq!(harm(closed).len(), 1, "{rules}");
        }
    }

    #[test]
    fn objects_of_others_are_not_judged() {
        let mut other = policy("gatekeeper", |it| it["matchConditions"] = Value::Null);
        assert_eq!(harm(other.clone()), Vec::<String>::new());
        other["metadata"]["name"] = "pillions".into();
        assert_eq!(harm(other.clone()), Vec::<String>::new());
        other["kind"] = "ConfigMap".into();
        other["metadata"]["name"] = "pillion-x".into();
        assert_eq!(harm(other), Vec::<String>::new());
    }
}
