//! JSON of Kubernetes in one spelling: the API server fills in defaults, leaves out what is empty, and writes quantities in its
//! own way.

use pillion_quantity::Quantity;
use serde_json::{Value, json};

/// Fields that hold a quantity.
const QUANTITIES: [&str; 3] = ["divisor", "sizeLimit", "storage"];

/// The value of a field of this name, in one spelling, without what need not be written.
pub(crate) fn plain(key: &str, value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.clone(), plain(key, value)));
            Value::Object(fields.filter(|(key, value)| !goes_without_saying(key, value)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| plain(key, item)).collect()),
        Value::String(_) | Value::Number(_) if QUANTITIES.contains(&key) => {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.parse::<Quantity>().map_or_else(|_| value.clone(), |amount| json!(amount.to_string()))
        }
        other => other.clone(),
    }
}

fn goes_without_saying(key: &str, value: &Value) -> bool {
    let is_empty = match value {
        Value::Null => true,
        // Absent, it is allowed.
        Value::Bool(false) => key != "allowPrivilegeEscalation",
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    is_empty || is_default(key, value)
}

fn is_default(key: &str, value: &Value) -> bool {
    match key {
        // Of volumes.
        "apiVersion" => value == "v1",
        "defaultMode" => value == 0o644,
        "divisor" => value == "0",
        "expirationSeconds" => value == 3600,
        "volumeMode" => value == "Filesystem",
        // Of containers.
        "protocol" => value == "TCP",
        "scheme" => value == "HTTP",
        "path" => value == "/",
        "initialDelaySeconds" => value == 0,
        "timeoutSeconds" | "successThreshold" => value == 1,
        "periodSeconds" => value == 10,
        "failureThreshold" => value == 3,
        "terminationMessagePath" => value == "/dev/termination-log",
        "terminationMessagePolicy" => value == "File",
        "procMount" => value == "Default",
        _ => false,
    }
}
