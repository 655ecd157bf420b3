//! Sight of a pod: what matching reads from its bytes, and what injecting reads from its JSON.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use pillion_api::{PodRevisions, REVISIONS};
use pillion_pod::{Unreadable, list, object};

use crate::marks;
use crate::record::Record;

/// What of a pod decides which sets match it, read from its bytes without reading the rest.
#[derive(Debug, Default, Deserialize)]
pub struct PodHead<'a> {
    #[serde(borrow, default)]
    metadata: Option<Metadata<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, default)]
    labels: Option<Labels<'a>>,
    #[serde(default)]
    annotations: Option<OwnAnnotations>,
}

impl<'a> PodHead<'a> {
    /// Reads the head of a pod's JSON.
    pub fn parse(pod: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(pod)
    }

    /// The labels.
    pub fn labels(&self) -> &[(Cow<'a, str>, Cow<'a, str>)] {
        self.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref()).map_or(&[], |labels| &labels.0)
    }

    /// Whether it carries marks only we may write. They must be judged even if no set matches.
    pub fn is_marked(&self) -> bool {
        self.annotations().is_some_and(|own| own.is_marked)
            || self.labels().iter().any(|(key, _)| key == marks::INJECTED_LABEL)
    }

    /// Whether it names containers of its own that are sidecars.
    pub fn names_sidecars(&self) -> bool {
        self.annotations().is_some_and(|own| own.names_sidecars)
    }

    /// What was decided when the pod was reviewed before.
    pub(crate) fn record(&self) -> Option<Record> {
        Record::parse(self.annotations()?.decision.as_deref()?)
    }

    /// The names of the sets that were applied before.
    pub(crate) fn applied_sets(&self) -> BTreeSet<String> {
        marks::names(self.annotations().and_then(|own| own.applied.as_deref()))
    }

    /// The revisions it was given when it was reviewed before, of the sets that were applied: it keeps them.
    pub fn revisions(&self) -> PodRevisions {
        let text = self.annotations().and_then(|own| own.revisions.as_deref());
        let mut revisions = text.and_then(PodRevisions::parse).unwrap_or_default();
        let applied = self.applied_sets();
        revisions.0.retain(|set, _| applied.contains(set));
        revisions
    }

    fn annotations(&self) -> Option<&OwnAnnotations> {
        self.metadata.as_ref()?.annotations.as_ref()
    }
}

#[derive(Debug, Default)]
struct Labels<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

/// A text that is borrowed where it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Labels<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Labels<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("labels")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut labels = Vec::new();
                while let Some((Text(key), Text(value))) = map.next_entry()? {
                    labels.push((key, value));
                }
                Ok(Labels(labels))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// What of the annotations is ours.
#[derive(Debug, Default)]
struct OwnAnnotations {
    is_marked: bool,
    names_sidecars: bool,
    decision: Option<String>,
    applied: Option<String>,
    revisions: Option<String>,
}

impl<'de> Deserialize<'de> for OwnAnnotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Seen;
        impl<'de> Visitor<'de> for Seen {
            type Value = OwnAnnotations;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("annotations")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut own = OwnAnnotations::default();
                let text = |value: Value| value.as_str().map(str::to_owned);
                while let Some(Text(key)) = map.next_key()? {
                    own.is_marked |= key == marks::DECISION || key == marks::CONTAINERS || key == REVISIONS;
                    own.names_sidecars |= key == marks::SIDECARS;
                    match &*key {
                        marks::DECISION => own.decision = text(map.next_value()?),
                        marks::INJECTED_SETS => own.applied = text(map.next_value()?),
                        REVISIONS => own.revisions = text(map.next_value()?),
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(own)
            }
        }
        deserializer.deserialize_map(Seen)
    }
}

/// A pod that has the form of one.
pub(crate) struct Pod<'a> {
    pub(crate) json: &'a Value,
    pub(crate) name: Option<&'a str>,
    pub(crate) labels: BTreeMap<&'a str, &'a str>,
    pub(crate) annotations: BTreeMap<&'a str, &'a str>,
    pub(crate) spec: &'a Map<String, Value>,
    pub(crate) containers: Vec<Container<'a>>,
    pub(crate) init_containers: Vec<Container<'a>>,
    pub(crate) volumes: BTreeMap<&'a str, &'a Map<String, Value>>,
}

/// A container of a pod.
#[derive(Clone, Copy)]
pub(crate) struct Container<'a> {
    pub(crate) name: &'a str,
    pub(crate) json: &'a Map<String, Value>,
    /// Whether some `SidecarSet` put it there.
    pub(crate) is_injected: bool,
}

impl Container<'_> {
    pub(crate) fn is_native_sidecar(&self) -> bool {
        self.json.get("restartPolicy").and_then(Value::as_str) == Some("Always")
    }
}

impl<'a> Pod<'a> {
    pub(crate) fn read(pod: &'a Value) -> Result<Self, Unreadable> {
        let metadata = object(pod.get("metadata"), "metadata")?;
        let metadata = |field: &str| metadata.and_then(|metadata| metadata.get(field));
        let spec = object(pod.get("spec"), "spec")?.ok_or_else(|| Unreadable("spec is missing".to_owned()))?;
        let mut volumes = BTreeMap::new();
        for (at, volume) in list(spec.get("volumes"), "spec.volumes")?.iter().enumerate() {
            let (name, volume) = named(volume, "spec.volumes", at)?;
            volumes.insert(name, volume);
        }
        Ok(Self {
            json: pod,
            name: metadata("name").and_then(Value::as_str),
            labels: texts(metadata("labels"), "metadata.labels")?,
            annotations: texts(metadata("annotations"), "metadata.annotations")?,
            spec,
            containers: containers(spec, "containers")?,
            init_containers: containers(spec, "initContainers")?,
            volumes,
        })
    }

    /// Reads the pod as if containers of these names were not there.
    pub(crate) fn forget(&mut self, names: &BTreeSet<&str>) {
        self.containers.retain(|container| !names.contains(container.name));
        self.init_containers.retain(|container| !names.contains(container.name));
    }

    /// Every container of the pod, whoever put it there.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Container<'a>> {
        self.init_containers.iter().chain(&self.containers)
    }

    /// The container of a name, plain or init.
    pub(crate) fn container(&self, name: &str) -> Option<&Container<'a>> {
        self.all().find(|container| container.name == name)
    }

    /// The pod's own containers that run with it: plain ones, and native sidecars. Each with its list.
    pub(crate) fn own_running(&self) -> impl Iterator<Item = (&'static str, &Container<'a>)> {
        let natives = self.init_containers.iter().filter(|container| container.is_native_sidecar());
        let natives = natives.map(|container| ("initContainers", container));
        let all = self.containers.iter().map(|container| ("containers", container)).chain(natives);
        all.filter(|(_, container)| !container.is_injected)
    }

    /// The pod's own plain containers.
    pub(crate) fn own_containers(&self) -> impl Iterator<Item = &Container<'a>> {
        self.containers.iter().filter(|container| !container.is_injected)
    }
}

fn containers<'a>(spec: &'a Map<String, Value>, field: &str) -> Result<Vec<Container<'a>>, Unreadable> {
    let path = format!("spec.{field}");
    let items = list(spec.get(field), &path)?;
    let read = |(at, item)| {
        let (name, json) = named(item, &path, at)?;
        Ok(Container { name, json, is_injected: marks::is_injected(json) })
    };
    items.iter().enumerate().map(read).collect()
}

fn named<'a>(item: &'a Value, path: &str, at: usize) -> Result<(&'a str, &'a Map<String, Value>), Unreadable> {
    let fields = item.as_object().ok_or_else(|| Unreadable(format!("{path}[{at}] is no object")))?;
    let name = fields.get("name").and_then(Value::as_str);
    Ok((name.ok_or_else(|| Unreadable(format!("{path}[{at}] has no name")))?, fields))
}

fn texts<'a>(value: Option<&'a Value>, path: &str) -> Result<BTreeMap<&'a str, &'a str>, Unreadable> {
    let Some(fields) = object(value, path)? else { return Ok(BTreeMap::new()) };
    let read = |(key, value): (&'a String, &'a Value)| {
        let text = value.as_str().ok_or_else(|| Unreadable(format!("{path}[{key}] is no text")))?;
        Ok((key.as_str(), text))
    };
    fields.iter().map(read).collect()
}

/// The objects of a list below a container; what is no object is left to the API server to refuse.
pub(crate) fn items<'a>(
    container: &'a Map<String, Value>,
    field: &str,
) -> impl Iterator<Item = &'a Map<String, Value>> {
    container.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

/// A text field.
pub(crate) fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    fields.get(name).and_then(Value::as_str)
}
