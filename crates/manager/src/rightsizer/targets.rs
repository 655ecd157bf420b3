//! Whose pods an autoscaler sizes: the selector behind its target.
//!
//! Workloads of the kinds every cluster has are watched. Of any other kind the API server is asked for the scale of the
//! object, now and then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use parking_lot::Mutex;
use pillion_api::{LabelSelector, LabelSelectorRequirement, Selector, SelectorOperator};
use pillion_rightsize::{ContainerType, Target};
use pillion_runtime::watch::Key;
use serde::Deserialize;
use tokio::time::{Instant, timeout};

use super::workloads::Workloads;

/// The scale of an object is asked for again after this long.
const AGAIN: Duration = Duration::from_mins(5);
/// What could not be found is looked for again after this long.
const RETRY: Duration = Duration::from_mins(1);
const PATIENCE: Duration = Duration::from_secs(5);

/// What stands behind a target.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Behind {
    pub(super) selector: Selector,
    /// The containers of its template, where it has one that is known.
    pub(super) containers: Box<[(Box<str>, ContainerType)]>,
}

/// Finds what stands behind targets, and remembers what was found last.
pub(super) struct Targets {
    client: Client,
    workloads: Workloads,
    scales: Scales,
}

/// What the API server said of scales, by the autoscaler that asked. Clones see the same.
#[derive(Clone, Default)]
pub(super) struct Scales(Arc<Mutex<BTreeMap<Key, Asked>>>);

struct Asked {
    target: Target,
    until: Instant,
    found: Result<Scaled, String>,
}

#[derive(Clone)]
struct Scaled {
    selector: Selector,
    replicas: Option<u32>,
}

#[derive(Deserialize)]
struct Scale {
    #[serde(default)]
    spec: ScaleSpec,
    #[serde(default)]
    status: ScaleStatus,
}

#[derive(Default, Deserialize)]
struct ScaleSpec {
    replicas: Option<u32>,
}

#[derive(Default, Deserialize)]
struct ScaleStatus {
    selector: Option<String>,
}

#[derive(Deserialize)]
struct Resources {
    resources: Vec<ListedResource>,
}

#[derive(Deserialize)]
struct ListedResource {
    name: String,
    kind: String,
}

impl Scales {
    /// How many pods the target of an autoscaler should have, where it is of a kind that is not watched.
    pub(super) fn replicas(&self, autoscaler: &Key) -> Option<u32> {
        self.0.lock().get(autoscaler)?.found.as_ref().ok()?.replicas
    }

    fn found(&self, autoscaler: &Key, target: &Target) -> Option<Result<Scaled, String>> {
        let scales = self.0.lock();
        let asked = scales.get(autoscaler).filter(|asked| asked.target == *target && Instant::now() < asked.until)?;
        Some(asked.found.clone())
    }
}

impl Targets {
    pub(super) fn new(client: Client, workloads: Workloads, scales: Scales) -> Self {
        Self { client, workloads, scales }
    }

    /// What stands behind the target of an autoscaler; else why nothing does.
    pub(super) async fn find(&self, autoscaler: &Key, target: &Target) -> Result<Behind, String> {
        let namespace = &*autoscaler.namespace;
        if Workloads::knows(&target.kind) {
            self.scales.0.lock().remove(autoscaler);
            return self.known(namespace, target);
        }
        if let Some(found) = self.scales.found(autoscaler, target) {
            return found.map(bare);
        }
        let found = self.scaled(namespace, target).await;
        let until = Instant::now() + if found.is_ok() { AGAIN } else { RETRY };
        let asked = Asked { target: target.clone(), until, found: found.clone() };
        self.scales.0.lock().insert(autoscaler.clone(), asked);
        found.map(bare)
    }

    /// Forgets all but these autoscalers.
    pub(super) fn keep(&self, is_there: impl Fn(&Key) -> bool) {
        self.scales.0.lock().retain(|key, _| is_there(key));
    }

    fn known(&self, namespace: &str, target: &Target) -> Result<Behind, String> {
        let Target { kind, name, .. } = target;
        let Some(workload) = self.workloads.get(namespace, kind, name) else {
            return Err(format!("{kind} {namespace}/{name} does not exist: create it, or change spec.targetRef"));
        };
        if let Some((above_kind, above)) = &workload.above {
            return Err(format!(
                "{kind} {namespace}/{name} belongs to {above_kind} {above}: name that in spec.targetRef"
            ));
        }
        let selector = workload.selector.clone();
        let selector = selector.ok_or_else(|| format!("{kind} {namespace}/{name} has no selector that can be read"))?;
        Ok(Behind { selector, containers: workload.containers.clone() })
    }

    async fn scaled(&self, namespace: &str, target: &Target) -> Result<Scaled, String> {
        let Target { api_version, kind, name } = target;
        if api_version.is_empty() {
            return Err(format!("spec.targetRef has kind {kind} and no apiVersion: add it, such as apps/v1"));
        }
        let prefix = if api_version.contains('/') { "apis" } else { "api" };
        let listed: Resources = self.get(&format!("/{prefix}/{api_version}")).await?;
        let mut plurals = listed.resources.iter().filter(|it| it.kind == *kind && !it.name.contains('/'));
        let plural = plurals.next().map(|resource| resource.name.as_str());
        let plural = plural.ok_or_else(|| format!("{api_version} has no kind {kind}: change spec.targetRef"))?;
        let scale = format!("{plural}/scale");
        if !listed.resources.iter().any(|resource| resource.name == scale) {
            return Err(format!(
                "{kind} of {api_version} cannot be scaled, so its pods cannot be found: name another target"
            ));
        }
        let path = format!("/{prefix}/{api_version}/namespaces/{namespace}/{plural}/{name}/scale");
        let scale: Scale = self.get(&path).await?;
        let text = scale.status.selector.unwrap_or_default();
        let selector = parse(&text).ok_or_else(|| {
            format!("the scale of {kind} {namespace}/{name} has the selector {text:?}, which selects nothing")
        })?;
        Ok(Scaled { selector, replicas: scale.spec.replicas })
    }

    async fn get<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<T, String> {
        let request = http::Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
        let asked = timeout(PATIENCE, self.client.request::<T>(request)).await;
        asked.map_err(|_| format!("{path}: no answer in time"))?.map_err(|error| format!("{path}: {error}"))
    }
}

fn bare(scaled: Scaled) -> Behind {
    Behind { selector: scaled.selector, containers: Box::default() }
}

/// Reads a selector that is text: `a=b,c!=d,e in (f,g),h,!i`.
fn parse(text: &str) -> Option<Selector> {
    let mut parts = Vec::new();
    let mut depth = 0_u32;
    let mut part = String::new();
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(letter);
    }
    parts.push(part);
    let requirements: Option<Vec<_>> = parts.iter().map(|part| requirement(part.trim())).collect();
    Selector::compile(&LabelSelector { match_labels: None, match_expressions: Some(requirements?) })
}

fn requirement(part: &str) -> Option<LabelSelectorRequirement> {
    let made = |key: &str, operator, values: Option<Vec<String>>| {
        let key = key.trim();
        let is_name = !key.is_empty() && !key.contains([' ', '(', ')', '=', '!']);
        is_name.then(|| LabelSelectorRequirement { key: key.to_owned(), operator, values })
    };
    let one = |value: &str| Some(vec![value.trim().to_owned()]);
    if let Some((key, value)) = part.split_once("!=") {
        return made(key, SelectorOperator::NotIn, one(value));
    }
    if let Some((key, value)) = part.split_once('=') {
        return made(key, SelectorOperator::In, one(value.strip_prefix('=').unwrap_or(value)));
    }
    for (word, operator) in [(" notin ", SelectorOperator::NotIn), (" in ", SelectorOperator::In)] {
        if let Some((key, list)) = part.split_once(word) {
            let list = list.trim().strip_prefix('(')?.strip_suffix(')')?;
            return made(key, operator, Some(list.split(',').map(|value| value.trim().to_owned()).collect()));
        }
    }
    match part.strip_prefix('!') {
        Some(key) => made(key, SelectorOperator::DoesNotExist, None),
        None => made(part, SelectorOperator::Exists, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_that_is_text_is_read() {
        let matches = |text: &str, labels: &[(&str, &'static str)]| {
            let label = |key: &str| labels.iter().find(|(own, _)| *own == key).map(|(_, value)| *value);
            parse(text).unwrap().matches(label)
        };
        let text = "app=web,tier == front, env in (a, b),zone notin (x),has,!not,old!=1";
        let fits = [("app", "web"), ("tier", "front"), ("env", "b"), ("has", "")];
        assert!(matches(text, &fits));
        for wrong in [("app", "api"), ("env", "c"), ("zone", "x"), ("not", ""), ("old", "1")] {
            let mut labels = vec![wrong];
            labels.extend(fits);
            assert!(!matches(text, &labels), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_no_selector_selects_nothing() {
        for text in ["", ",", "a=b,", "a in b", "a in (b", "a)b(", "=b", "a b"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
