//! Reading an object that may not have the form Kubernetes gives it.

use serde_json::{Map, Value};

/// Something in an object that is not as Kubernetes has it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

/// An object; `None` where it is missing or null.
pub fn object<'a>(value: Option<&'a Value>, path: &str) -> Result<Option<&'a Map<String, Value>>, Unreadable> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(fields)) => Ok(Some(fields)),
        Some(_) => Err(Unreadable(format!("{path} is no object"))),
    }
}

/// A list; empty where it is missing or null.
pub fn list<'a>(value: Option<&'a Value>, path: &str) -> Result<&'a [Value], Unreadable> {
    match value {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(Unreadable(format!("{path} is no list"))),
    }
}
