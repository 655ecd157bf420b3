//! What a cluster's objects say about the installation of the product itself.

use pillion_api::SetMode;
use pillion_api::names::{SWITCH_KEY, SWITCHED_OFF};
use pillion_inject::Installation;
use serde_json::Value;

/// The namespace the chart installs into.
pub(crate) const DEFAULT_NAMESPACE: &str = "pillion-system";
/// The namespace in which a pod is tried.
pub(crate) const DEFAULT_PROBE_NAMESPACE: &str = "default";
/// The Deployments of the roles; in the small layout one pod has all roles.
pub(crate) const DEPLOYMENTS: [&str; 3] = ["pillion-webhook", "pillion-controller", "pillion-manager"];

/// What decides about all pods of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The namespace the product runs in.
    pub(crate) namespace: String,
    /// Whether injection is switched off.
    pub(crate) is_off: bool,
    /// Whether pods are changed at all.
    pub(crate) mode: SetMode,
}

impl Facts {
    /// Reads the switch and the Deployments, where there are any.
    pub(crate) fn read(namespace: &str, switch: Option<&Value>, deployments: &[Value]) -> Self {
        let modes = deployments.iter().filter_map(|deployment| argument(deployment, "mode"));
        let observes = modes.into_iter().any(|mode| mode == "Observe");
        Self {
            namespace: namespace.to_owned(),
            is_off: switch.is_some_and(is_off),
            mode: if observes { SetMode::Observe } else { SetMode::Inject },
        }
    }

    /// The same for the deciding function.
    pub(crate) fn installation(&self) -> Installation<'_> {
        let own_namespace = Some(self.namespace.as_str()).filter(|name| !name.is_empty());
        Installation { mode: self.mode, is_off: self.is_off, own_namespace }
    }
}

/// Whether the switch says that injection is off.
pub(crate) fn is_off(switch: &Value) -> bool {
    switch["data"][SWITCH_KEY] == SWITCHED_OFF
}

/// What a Deployment gives a flag of the program, written `--flag=value` or `--flag value`.
pub(crate) fn argument<'a>(deployment: &'a Value, flag: &str) -> Option<&'a str> {
    let containers = deployment.pointer("/spec/template/spec/containers").and_then(Value::as_array);
    for container in containers.into_iter().flatten() {
        let words: Vec<&str> = container["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (at, word) in words.iter().enumerate() {
            match word.strip_prefix("--").and_then(|word| word.strip_prefix(flag)) {
                Some("") => return words.get(at + 1).copied(),
                Some(value) if value.starts_with('=') => return Some(&value[1..]),
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(arguments: &[&str]) -> Value {
        json!({"spec": {"template": {"spec": {"containers": [{"name": "manager", "args": arguments}]}}}})
    }

    #[test]
    fn flags_are_found_in_both_forms() {
        let one = deployment(&["webhook", "--mode=Observe", "--feature-gates", "A=true"]);
        assert_eq!(argument(&one, "mode"), Some("Observe"));
        assert_eq!(argument(&one, "feature-gates"), Some("A=true"));
        assert_eq!(argument(&one, "feature"), None);
        assert_eq!(argument(&json!({}), "mode"), None);
    }

    #[test]
    fn the_switch_is_off_where_it_says_so_and_nowhere_else() {
        for (switch, expected) in [
            (json!({"data": {"injection": "off"}}), true),
            (json!({"data": {"injection": "on"}}), false),
            (json!({"data": {"injection": "Off"}}), false),
            (json!({"data": null}), false),
            (json!({}), false),
        ] {
            assert_eq!(is_off(&switch), expected, "{switch}");
        }
        let facts = Facts::read("pillion-system", None, &[deployment(&["--mode", "Observe"])]);
        let expected = Facts { namespace: "pillion-system".to_owned(), is_off: false, mode: SetMode::Observe };
        assert_eq!(facts, expected);
        assert_eq!(facts.installation().own_namespace, Some("pillion-system"));
    }
}
