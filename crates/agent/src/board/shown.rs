//! What the pod shows, and who made it so: read from an answer of the API server.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use pillion_agent_api::names;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::{Content, Place, PodFacts};

/// What our writes are called in `managedFields`.
pub(crate) const FIELD_MANAGER: &str = "pillion-agent";

/// The parts of a pod that the agent knows; everything else is not even kept while it is read.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Shown {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    #[serde(default)]
    managed_fields: Vec<Managed>,
}

#[derive(Debug, Default, Deserialize)]
struct Spec {
    #[serde(default)]
    containers: Vec<Container>,
    #[serde(default, rename = "initContainers")]
    init_containers: Vec<Container>,
}

#[derive(Debug, Deserialize)]
struct Container {
    name: String,
    #[serde(default)]
    ports: Vec<Port>,
    #[serde(default)]
    env: Vec<Variable>,
}

/// A variable; those whose value stands elsewhere have none here.
#[derive(Debug, Deserialize)]
struct Variable {
    name: String,
    value: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Port {
    #[serde(default)]
    name: String,
    container_port: u16,
}

#[derive(Debug, Default, Deserialize)]
struct Status {
    #[serde(default)]
    conditions: Vec<ShownCondition>,
    #[serde(default, rename = "podIP")]
    pod_ip: Option<String>,
}

/// A condition as it is in the pod.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShownCondition {
    #[serde(rename = "type")]
    kind: String,
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) reason: Option<String>,
    #[serde(default)]
    pub(crate) message: Option<String>,
    #[serde(default)]
    pub(crate) last_probe_time: Option<String>,
    #[serde(default)]
    pub(crate) last_transition_time: Option<String>,
}

/// What one writer has written last.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Managed {
    #[serde(default)]
    manager: String,
    #[serde(default)]
    time: String,
    #[serde(default)]
    fields_v1: Fields,
}

#[derive(Debug, Default, Deserialize)]
struct Fields {
    #[serde(default, rename = "f:metadata")]
    metadata: MetadataFields,
    #[serde(default, rename = "f:status")]
    status: StatusFields,
}

#[derive(Debug, Default, Deserialize)]
struct MetadataFields {
    #[serde(default, rename = "f:labels")]
    labels: Keys,
    #[serde(default, rename = "f:annotations")]
    annotations: Keys,
}

#[derive(Debug, Default, Deserialize)]
struct StatusFields {
    #[serde(default, rename = "f:conditions")]
    conditions: Keys,
}

/// The keys of a map, whatever its values are.
#[derive(Debug, Default)]
struct Keys(BTreeSet<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfMap;
        impl<'de> Visitor<'de> for OfMap {
            type Value = Keys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut keys = BTreeSet::new();
                while let Some((key, IgnoredAny)) = map.next_entry()? {
                    keys.insert(key);
                }
                Ok(Keys(keys))
            }
        }
        deserializer.deserialize_map(OfMap)
    }
}

impl Shown {
    /// Whether a place holds this.
    pub(crate) fn holds(&self, place: &Place, content: Option<&Content>) -> bool {
        let text = |shown: Option<&String>| match content {
            Some(Content::Text(wanted)) => shown == Some(wanted),
            _ => shown.is_none(),
        };
        match place {
            Place::Label(key) => text(self.metadata.labels.get(key)),
            Place::Annotation(key) => text(self.metadata.annotations.get(key)),
            Place::Condition(kind) => match (self.condition(kind), content) {
                (Some(shown), Some(Content::Condition(wanted))) => {
                    shown.status == wanted.status.as_str()
                        && shown.reason.as_deref().unwrap_or_default() == wanted.reason
                        && shown.message.as_deref().unwrap_or_default() == wanted.message
                }
                (shown, _) => shown.is_none(),
            },
        }
    }

    pub(crate) fn condition(&self, kind: &str) -> Option<&ShownCondition> {
        self.status.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// The other writer that has a condition which is not ours.
    pub(crate) fn foreign_owner(&self, kind: &str) -> Option<&str> {
        self.condition(kind)?;
        let place = Place::Condition(kind.to_owned());
        let mut owners = self.metadata.managed_fields.iter().filter(|managed| managed.has(&place));
        let first = owners.next()?;
        let is_ours = first.manager == FIELD_MANAGER || owners.any(|managed| managed.manager == FIELD_MANAGER);
        if is_ours { None } else { Some(&first.manager) }
    }

    /// Who, other than us, has most likely changed a place: its owner, or who wrote last where it is empty now.
    pub(crate) fn who_changed(&self, place: &Place) -> &str {
        let others = || self.metadata.managed_fields.iter().filter(|managed| managed.manager != FIELD_MANAGER);
        let latest = |managed: &&Managed| managed.time.clone();
        let owner = others().filter(|managed| managed.has(place)).max_by_key(latest);
        owner.or_else(|| others().max_by_key(latest)).map_or("somebody", |managed| &managed.manager)
    }

    /// Plain values in the environment of the app, which is the first container that is not the agent.
    pub(crate) fn app_environment(&self) -> BTreeMap<String, String> {
        let app = self.spec.containers.iter().find(|container| container.name != names::CONTAINER);
        let variables = app.map(|app| app.env.as_slice()).unwrap_or_default();
        variables.iter().filter_map(|variable| Some((variable.name.clone(), variable.value.clone()?))).collect()
    }

    pub(crate) fn facts(&self) -> PodFacts {
        let Spec { containers, init_containers } = &self.spec;
        let ports = containers.iter().chain(init_containers).flat_map(|container| {
            let named = container.ports.iter().filter(|port| !port.name.is_empty());
            named.map(|port| ((container.name.clone(), port.name.clone()), port.container_port))
        });
        PodFacts { ip: self.status.pod_ip.clone().filter(|ip| !ip.is_empty()), ports: ports.collect() }
    }
}

impl Managed {
    fn has(&self, place: &Place) -> bool {
        let Fields { metadata, status } = &self.fields_v1;
        match place {
            Place::Label(key) => metadata.labels.0.contains(&format!("f:{key}")),
            Place::Annotation(key) => metadata.annotations.0.contains(&format!("f:{key}")),
            Place::Condition(kind) => status.conditions.0.contains(&format!("k:{{\"type\":\"{kind}\"}}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::board::{Condition, ConditionStatus};

    fn shown() -> Shown {
        serde_json::from_value(json!({
            "kind": "Pod",
            "metadata": {
                "name": "p",
                "labels": {"a": "1", "b": "2"},
                "managedFields": [
                    {"manager": "kubelet", "operation": "Update", "subresource": "status", "time": "2026-11-15T18:00:02Z",
                     "fieldsV1": {"f:status": {"f:conditions": {".": {}, "k:{\"type\":\"Ready\"}": {".": {}, "f:status": {}}}}}},
                    {"manager": "virtual-kubelet", "time": "2026-11-15T18:00:01Z",
                     "fieldsV1": {"f:metadata": {"f:labels": {"f:b": {}}},
                                  "f:status": {"f:conditions": {"k:{\"type\":\"Both\"}": {"f:status": {}}}}}},
                    {"manager": "pillion-agent", "time": "2026-11-15T18:00:03Z",
                     "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}},
                                  "f:status": {"f:conditions": {"k:{\"type\":\"Both\"}": {".": {}, "f:type": {}}}}}},
                ],
            },
            "spec": {
                "containers": [{"name": "pillion-agent", "env": [{"name": "A", "value": "no"}]}, {"name": "app",
                    "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {}}], "ports": [{"name": "web", "containerPort": 8080}, {"containerPort": 1}]}],
                "initContainers": [{"name": "side", "ports": [{"name": "web", "containerPort": 9090}]}],
            },
            "status": {"podIP": "10.0.0.7", "conditions": [
                {"type": "Ready", "status": "True", "lastProbeTime": null, "lastTransitionTime": "2026-11-15T18:00:00Z"},
                {"type": "Both", "status": "False", "reason": "R", "message": "m"},
            ]},
        }))
        .unwrap()
    }

    #[test]
    fn places_are_compared_with_what_is_wanted() {
        let label = |key: &str| Place::Label(key.to_owned());
        let text = |value: &str| Some(Content::Text(value.to_owned()));
        let shown = shown();
        for (place, content, is_held) in [
            (label("a"), text("1"), true),
            (label("a"), text("2"), false),
            (label("a"), None, false),
            (label("c"), None, true),
            (Place::Annotation("a".to_owned()), text("1"), false),
            (Place::Annotation("a".to_owned()), None, true),
            (Place::Condition("Gone".to_owned()), None, true),
            (Place::Condition("Both".to_owned()), None, false),
        ] {
            assert_eq!(shown.holds(&place, content.as_ref()), is_held, "{place:?} {content:?}");
        }
        let wanted = |status, reason: &str, message: &str| {
            Some(Content::Condition(Condition { status, reason: reason.to_owned(), message: message.to_owned() }))
        };
        let both = Place::Condition("Both".to_owned());
        assert!(shown.holds(&both, wanted(ConditionStatus::False, "R", "m").as_ref()));
        assert!(!shown.holds(&both, wanted(ConditionStatus::True, "R", "m").as_ref()));
        assert!(!shown.holds(&both, wanted(ConditionStatus::False, "S", "m").as_ref()));
        assert!(!shown.holds(&both, wanted(ConditionStatus::False, "R", "n").as_ref()));
        let ready = Place::Condition("Ready".to_owned());
        assert!(shown.holds(&ready, wanted(ConditionStatus::True, "", "").as_ref()));
    }

    #[test]
    fn owners_are_read_from_managed_fields() {
        let shown = shown();
        assert_eq!(shown.foreign_owner("Ready"), Some("kubelet"));
        assert_eq!(shown.foreign_owner("Both"), None);
        assert_eq!(shown.foreign_owner("Gone"), None);
        assert_eq!(shown.who_changed(&Place::Label("b".to_owned())), "virtual-kubelet");
        // It is gone, so nobody owns it: the one that wrote last.
        assert_eq!(shown.who_changed(&Place::Annotation("x".to_owned())), "kubelet");
        assert_eq!(Shown::default().who_changed(&Place::Label("b".to_owned())), "somebody");
    }

    #[test]
    fn the_environment_is_that_of_the_app() {
        assert_eq!(shown().app_environment(), BTreeMap::from([("A".to_owned(), "1".to_owned())]));
    }

    #[test]
    fn address_and_named_ports_are_told() {
        let port = |container: &str, number| ((container.to_owned(), "web".to_owned()), number);
        let ports = BTreeMap::from([port("app", 8080), port("side", 9090)]);
        assert_eq!(shown().facts(), PodFacts { ip: Some("10.0.0.7".to_owned()), ports });
    }
}
