//! What the containers of a pod ask for, as sizing looks at it, whether the pod is being created or runs.

use pillion_plan::List;
use pillion_pod::{Unreadable, list};
use pillion_quantity::Resource;
use serde_json::{Map, Value, json};

use crate::amounts::Amounts;

/// What a container asks for, and what it may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContainerResources {
    /// Asked for.
    pub requests: Amounts,
    /// May be used.
    pub limits: Amounts,
}

/// What a container is in its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerKind {
    /// One of `spec.containers`.
    App,
    /// One of `spec.initContainers` that goes on running: `restartPolicy: Always`.
    NativeSidecar,
    /// One of `spec.initContainers` that ends before the others start. It is never sized.
    PlainInit,
}

/// A container with what it asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Held<'a> {
    pub list: List,
    pub index: u16,
    pub name: &'a str,
    pub kind: ContainerKind,
    pub has: ContainerResources,
}

impl ContainerResources {
    /// Reads `resources` of a container; what is no amount is not said.
    pub fn read(resources: Option<&Value>) -> Self {
        let side =
            |side: &str| resources.and_then(|resources| amounts(resources.get(side)?.as_object()?)).unwrap_or_default();
        Self { requests: side("requests"), limits: side("limits") }
    }

    /// As `resources` of a container.
    pub fn to_json(self) -> Value {
        let side = |amounts: Amounts| -> Map<String, Value> {
            let texts = amounts.iter().map(|(resource, amount)| (resource, Amounts::write(resource, amount)));
            texts.map(|(resource, text)| (resource.name().to_owned(), Value::String(text))).collect()
        };
        json!({"limits": side(self.limits), "requests": side(self.requests)})
    }
}

fn amounts(written: &Map<String, Value>) -> Option<Amounts> {
    let mut amounts = Amounts::default();
    for resource in Amounts::RESOURCES {
        let text = match written.get(resource.name()) {
            Some(Value::String(text)) => Amounts::read(resource, text),
            Some(Value::Number(number)) => Amounts::read(resource, &number.to_string()),
            _ => None,
        };
        amounts.set(resource, text);
    }
    (!amounts.is_empty()).then_some(amounts)
}

impl ContainerKind {
    /// Of a container in a list with this `restartPolicy`.
    pub fn of(list: List, restart_policy: Option<&str>) -> Self {
        match (list, restart_policy) {
            (List::Main, _) => Self::App,
            (List::Init, Some("Always")) => Self::NativeSidecar,
            (List::Init, _) => Self::PlainInit,
        }
    }
}

impl Held<'_> {
    /// A request or else, as the API server fills it in, the limit.
    pub(crate) fn request(&self, resource: Resource) -> Option<i64> {
        self.has.requests.get(resource).or_else(|| self.has.limits.get(resource))
    }
}

/// The containers of a pod: init containers first, as they start.
pub(crate) fn read(pod: &Value) -> Result<Vec<Held<'_>>, Unreadable> {
    let mut found = Vec::new();
    for of in [List::Init, List::Main] {
        let containers = pod.get("spec").and_then(|spec| spec.get(of.field()));
        for (index, container) in list(containers, &format!("spec.{}", of.field()))?.iter().enumerate() {
            let text = |key: &str| container.get(key).and_then(Value::as_str);
            found.push(Held {
                list: of,
                index: u16::try_from(index).unwrap_or(u16::MAX),
                name: text("name").unwrap_or_default(),
                kind: ContainerKind::of(of, text("restartPolicy")),
                has: ContainerResources::read(container.get("resources")),
            });
        }
    }
    Ok(found)
}

/// A pod with these containers and nothing else, to ask the rules of Kubernetes about.
pub(crate) fn skeleton(containers: &[Held<'_>]) -> Value {
    let of = |list: List| -> Vec<Value> {
        let own = containers.iter().filter(|container| container.list == list);
        let write = |container: &Held<'_>| {
            let policy = (container.kind == ContainerKind::NativeSidecar).then_some("Always");
            json!({"name": container.name, "restartPolicy": policy, "resources": container.has.to_json()})
        };
        own.map(write).collect()
    };
    json!({"spec": {"initContainers": of(List::Init), "containers": of(List::Main)}})
}
