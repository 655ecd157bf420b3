//! What a cluster's objects say about the installation of the product itself.

use pillion_api::SetMode;
use pillion_api::names::{SWITCH_KEY, SWITCHED_OFF};
use pillion_inject::{Agent, Finishing, Installation};
use serde_json::{Map, Value};

/// The namespace the chart installs into.
pub(crate) const DEFAULT_NAMESPACE: &str = "pillion-system";
/// The namespace in which a pod is tried.
pub(crate) const DEFAULT_PROBE_NAMESPACE: &str = "default";
/// What stands for the image of the agent where there is no cluster.
pub(crate) const AGENT_IMAGE: &str = "pillion-agent";
/// The Deployments of the roles; in the small layout one pod has all roles.
pub(crate) const DEPLOYMENTS: [&str; 3] = ["pillion-webhook", "pillion-controller", "pillion-manager"];

/// What decides about all pods of the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Facts {
    /// The namespace the product runs in.
    pub(crate) namespace: String,
    /// Whether injection is switched off.
    pub(crate) is_off: bool,
    /// Whether pods are changed at all.
    pub(crate) mode: SetMode,
    /// Whether sidecars are ended when all others have ended.
    pub(crate) finishes: bool,
    /// What ends those of mode Wrap.
    pub(crate) agent: Option<Agent>,
}

impl Facts {
    /// Reads the switch and the Deployments, where there are any.
    pub(crate) fn read(namespace: &str, switch: Option<&Value>, deployments: &[Value]) -> Self {
        let modes = deployments.iter().filter_map(|deployment| argument(deployment, "mode"));
        let observes = modes.into_iter().any(|mode| mode == "Observe");
        let gates = deployments.iter().filter_map(|deployment| argument(deployment, "feature-gates"));
        let mut gates = gates.flat_map(|gates| gates.split(','));
        let image = deployments.iter().find_map(|deployment| argument(deployment, "agent-image"));
        Self {
            namespace: namespace.to_owned(),
            is_off: switch.is_some_and(is_off),
            mode: if observes { SetMode::Observe } else { SetMode::Inject },
            finishes: gates.any(|gate| gate.trim() == "SidecarFinish=true"),
            agent: image.filter(|image| !image.is_empty()).map(agent),
        }
    }

    /// Where there is no cluster: what people write is shown as it is meant, so sidecars are ended.
    pub(crate) fn offline(agent_image: &str) -> Self {
        Self { finishes: true, agent: Some(agent(agent_image)), ..Self::default() }
    }

    /// How sidecars are ended.
    pub(crate) fn finishing(&self) -> Option<Finishing<'_>> {
        self.finishes.then_some(Finishing { agent: self.agent.as_ref() })
    }

    /// The same for the deciding function.
    pub(crate) fn installation(&self) -> Installation<'_> {
        let own_namespace = Some(self.namespace.as_str()).filter(|name| !name.is_empty());
        Installation {
            mode: self.mode,
            is_off: self.is_off,
            own_namespace,
            finish: self.finishing(),
            hot_updates: None,
            sizer: None,
        }
    }
}

/// The agent of an image. What its init container is given besides is not worth asking for.
fn agent(image: &str) -> Agent {
    Agent { image: image.to_owned(), pull_secrets: Vec::new(), resources: Map::new() }
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
    fn sidecars_are_ended_where_the_installation_says_so() {
        let flags = ["webhook", "--feature-gates=PodWebhook=true,SidecarFinish=true", "--agent-image=agent:1"];
        let facts = Facts::read("pillion-system", None, &[deployment(&flags)]);
        assert_eq!(facts.finishing().map(|it| it.agent.map(|agent| agent.image.as_str())), Some(Some("agent:1")));
        let facts = Facts::read("pillion-system", None, &[deployment(&["webhook", "--agent-image=agent:1"])]);
        assert!(facts.finishing().is_none());
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
        let expected = Facts { namespace: "pillion-system".to_owned(), mode: SetMode::Observe, ..Facts::default() };
        assert_eq!(facts, expected);
        assert_eq!(facts.installation().own_namespace, Some("pillion-system"));
    }
}
