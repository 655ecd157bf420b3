//! What was read of a cluster before anything is checked.

use jiff::Timestamp;
use pillion_api::names::REGISTRATION;
use serde_json::Value;

use crate::installation;

/// What was read, or why not.
pub(crate) type Asked<T> = Result<T, String>;

/// Everything that checks look at.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The namespace the product runs in.
    pub(crate) namespace: String,
    /// The time here.
    pub(crate) now: Timestamp,
    /// The API server's `/version`.
    pub(crate) version: Value,
    /// The time there, as the answer's header has it.
    pub(crate) date: Option<String>,
    pub(crate) definition: Asked<Option<Value>>,
    pub(crate) sets: Asked<Vec<Value>>,
    pub(crate) deployments: Asked<Vec<Value>>,
    pub(crate) switch: Asked<Option<Value>>,
    pub(crate) secret: Asked<Option<Value>>,
    pub(crate) mutating: Asked<Vec<Value>>,
    pub(crate) validating: Asked<Option<Value>>,
    pub(crate) policies: Asked<Vec<Value>>,
    pub(crate) bindings: Asked<Vec<Value>>,
    pub(crate) probe_namespace: Asked<Option<Value>>,
    /// The pod that the API server tried.
    pub(crate) probe: Asked<Value>,
}

impl Seen {
    /// Our registration for pods.
    pub(crate) fn registration(&self) -> Option<&Value> {
        self.mutating.as_ref().ok()?.iter().find(|found| name_of(found) == REGISTRATION)
    }

    /// Whether the switch is known to be off.
    pub(crate) fn is_off(&self) -> bool {
        self.switch.as_ref().is_ok_and(|switch| switch.as_ref().is_some_and(installation::is_off))
    }

    /// What a flag of the manager is, in any of its Deployments.
    pub(crate) fn flag(&self, name: &str) -> Option<&str> {
        self.deployments.as_ref().ok()?.iter().find_map(|deployment| installation::argument(deployment, name))
    }
}

pub(crate) fn name_of(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

/// The webhooks of a registration.
pub(crate) fn webhooks(registration: &Value) -> &[Value] {
    registration["webhooks"].as_array().map_or(&[], Vec::as_slice)
}
