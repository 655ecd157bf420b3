//! What the API server fills in before it asks a webhook, as far as injection or its effect depend on it.
//!
//! First the pod's own defaults: requests from limits, and the service account. Then the `LimitRange`s of the namespace:
//! limits, and requests that are still missing. The API server does the same again with what a webhook has added, so
//! applying this to an injected pod gives the resources it will have. The rest (tokens, tolerations, pod-level resources,
//! policies of images) is left as it is.

use std::fmt;

use pillion_api::FieldPath;
use serde_json::{Map, Value, json};

use crate::pod::text;
use pillion_pod::{Unreadable, list, object};

const DEFAULT_ACCOUNT: &str = "default";
const CONTAINER_LISTS: [&str; 2] = ["containers", "initContainers"];

/// A field the API server fills in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filled {
    /// The field. Containers are named, not counted.
    pub path: FieldPath,
    /// What it gets.
    pub value: String,
    /// Why.
    pub by: FilledBy,
}

/// Why the API server fills in a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilledBy {
    /// The pod does not name its namespace.
    Namespace,
    /// The pod names no account.
    Account,
    /// There is a limit and no request.
    Limit,
    /// The `LimitRange` of this name has a value for containers without one.
    LimitRange(String),
}

impl fmt::Display for FilledBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Namespace => f.pad("the namespace it is created in"),
            Self::Account => f.pad("no account is named"),
            Self::Limit => f.pad("copied from the limit"),
            Self::LimitRange(name) => write!(f, "LimitRange {name}"),
        }
    }
}

/// What a `LimitRange` gives containers that do not say it themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitRange {
    /// Its name.
    pub name: String,
    /// Its namespace, where it says so.
    pub namespace: Option<String>,
    limits: Map<String, Value>,
    requests: Map<String, Value>,
}

impl LimitRange {
    /// Reads one, with the defaults it has itself: the limit is `max` where there is no `default`, the request is the limit
    /// where there is no `defaultRequest`, and else `min`.
    pub fn read(limit_range: &Value) -> Result<Self, Unreadable> {
        let metadata = object(limit_range.get("metadata"), "metadata")?;
        let metadata = |field: &str| metadata.and_then(|metadata| text(metadata, field));
        let mut found = Self {
            name: metadata("name").unwrap_or_default().to_owned(),
            namespace: metadata("namespace").map(str::to_owned),
            limits: Map::new(),
            requests: Map::new(),
        };
        let place = "spec.limits";
        for (at, item) in list(limit_range.pointer("/spec/limits"), place)?.iter().enumerate() {
            let place = format!("{place}[{at}]");
            let item = object(Some(item), &place)?.ok_or_else(|| Unreadable(format!("{place} is no object")))?;
            if text(item, "type") != Some("Container") {
                continue;
            }
            let amounts = |field: &str| -> Result<Map<String, Value>, Unreadable> {
                Ok(object(item.get(field), &format!("{place}.{field}"))?.cloned().unwrap_or_default())
            };
            let mut limits = amounts("default")?;
            add_missing(&mut limits, &amounts("max")?);
            let mut requests = amounts("defaultRequest")?;
            add_missing(&mut requests, &limits);
            add_missing(&mut requests, &amounts("min")?);
            (found.limits, found.requests) = (limits, requests);
        }
        Ok(found)
    }
}

fn add_missing(amounts: &mut Map<String, Value>, others: &Map<String, Value>) {
    for (resource, amount) in others {
        amounts.entry(resource).or_insert_with(|| amount.clone());
    }
}

/// Fills in what the API server would, and says what that was.
///
/// The `LimitRange`s are those of the pod's namespace; of several the first has a say first, which a cluster does not promise.
/// What is not as Kubernetes has it stays as it is.
pub fn fill_in(pod: &mut Value, namespace: &str, limit_ranges: &[&LimitRange]) -> Vec<Filled> {
    let mut filled = Vec::new();
    if let Some(metadata) = object_mut(pod, "metadata")
        && text(metadata, "namespace").unwrap_or_default().is_empty()
    {
        metadata.insert("namespace".to_owned(), json!(namespace));
        let path = FieldPath::of("metadata.namespace");
        filled.push(Filled { path, value: namespace.to_owned(), by: FilledBy::Namespace });
    }
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return filled };
    filled.extend(fill_in_account(spec));
    for mut container in containers(spec) {
        let limits = container.amounts("limits");
        container.fill_in("requests", &limits, &FilledBy::Limit, &mut filled);
    }
    for limit_range in limit_ranges {
        let by = FilledBy::LimitRange(limit_range.name.clone());
        for mut container in containers(spec) {
            container.fill_in("limits", &limit_range.limits, &by, &mut filled);
            container.fill_in("requests", &limit_range.requests, &by, &mut filled);
        }
    }
    filled
}

/// Two fields hold the account, and the newer one decides. The older is not reported: it says nothing new.
fn fill_in_account(spec: &mut Map<String, Value>) -> Option<Filled> {
    let field = |name: &str| text(spec, name).filter(|account| !account.is_empty()).map(str::to_owned);
    let (present, before) = (field("serviceAccountName"), field("serviceAccount"));
    let account = present.clone().or(before.clone()).unwrap_or_else(|| DEFAULT_ACCOUNT.to_owned());
    for name in ["serviceAccountName", "serviceAccount"] {
        spec.insert(name.to_owned(), json!(account));
    }
    let is_named = present.is_some() || before.is_some();
    let path = FieldPath::of("spec.serviceAccountName");
    (!is_named).then_some(Filled { path, value: account, by: FilledBy::Account })
}

/// A container that can be filled in.
struct Container<'a> {
    path: FieldPath,
    json: &'a mut Map<String, Value>,
}

fn containers(spec: &mut Map<String, Value>) -> impl Iterator<Item = Container<'_>> {
    let lists = spec.iter_mut().filter(|(name, _)| CONTAINER_LISTS.contains(&name.as_str()));
    lists.flat_map(|(name, list)| {
        let path = FieldPath::of("spec").field(name);
        let items = list.as_array_mut().into_iter().flatten().enumerate();
        items.filter_map(move |(at, item)| {
            let json = item.as_object_mut()?;
            let path = text(json, "name").map_or_else(|| path.index(at), |name| path.key(name));
            Some(Container { path, json })
        })
    })
}

impl Container<'_> {
    fn amounts(&self, side: &str) -> Map<String, Value> {
        let amounts = self.json.get("resources").and_then(|resources| resources.get(side));
        amounts.and_then(Value::as_object).cloned().unwrap_or_default()
    }

    /// Gives one side of the resources what it lacks.
    fn fill_in(&mut self, side: &str, amounts: &Map<String, Value>, by: &FilledBy, filled: &mut Vec<Filled>) {
        let own = self.amounts(side);
        let is_missing = |resource: &String| own.get(resource).is_none_or(Value::is_null);
        let missing: Vec<_> = amounts.iter().filter(|(resource, _)| is_missing(resource)).collect();
        if missing.is_empty() {
            return;
        }
        let path = self.path.field("resources").field(side);
        let resources = field_mut(self.json, "resources");
        let Some(own) = resources.and_then(|resources| field_mut(resources, side)) else { return };
        for (resource, amount) in missing {
            own.insert(resource.clone(), amount.clone());
            let value = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
            filled.push(Filled { path: path.key(resource), value, by: by.clone() });
        }
    }
}

fn object_mut<'a>(value: &'a mut Value, field: &str) -> Option<&'a mut Map<String, Value>> {
    field_mut(value.as_object_mut()?, field)
}

/// An object below another, made where it is missing; `None` where something else is in its place.
fn field_mut<'a>(fields: &'a mut Map<String, Value>, field: &str) -> Option<&'a mut Map<String, Value>> {
    let value = fields.entry(field).or_insert(Value::Null);
    if value.is_null() {
        *value = json!({});
    }
    value.as_object_mut()
}

#[cfg(test)]
mod tests;
