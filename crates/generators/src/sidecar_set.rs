//! Sets without errors: every field, in both spellings, also those that have little to do with one another.

mod container;
mod selector;
mod strategy;

use pillion_api::{CUSTOM_VERSION_LABEL, review};
use proptest::strategy::Strategy;
use serde_json::{Map, Value, json};

use crate::draw::Draw;
use crate::drawn::Drawn;
use crate::json::{given, object};
use crate::pool;
use crate::random::Random;
use crate::shape::Shape;
use container::{Kind, Volumes};

/// Sets of the default shape.
pub fn sidecar_set() -> impl Strategy<Value = Value> + Clone {
    sidecar_set_of(Shape::default())
}

/// Sets of a shape.
pub fn sidecar_set_of(shape: Shape) -> impl Strategy<Value = Value> + Clone {
    Drawn::new(
        move |random| {
            let name = random.one_of(&pool::SETS);
            draw(random, shape, name)
        },
        is_whole,
    )
}

/// So many sets with different names, in any order.
pub fn sidecar_sets(count: usize) -> impl Strategy<Value = Vec<Value>> + Clone {
    sidecar_sets_of(Shape::default(), count)
}

/// So many sets of a shape with different names, in any order.
pub fn sidecar_sets_of(shape: Shape, count: usize) -> impl Strategy<Value = Vec<Value>> + Clone {
    let draw = move |random: &mut Random| draw_many(random, shape, count).into();
    Drawn::new(draw, |sets| sets.as_array().into_iter().flatten().all(is_whole)).prop_map(|sets| match sets {
        Value::Array(sets) => sets,
        other => vec![other],
    })
}

/// Sets with different names.
pub(crate) fn draw_many(random: &mut Random, shape: Shape, count: usize) -> Vec<Value> {
    let mut names: Vec<String> = random.some_of(&pool::SETS, count).into_iter().map(str::to_owned).collect();
    for number in names.len()..count {
        // Past the pool the order of names and of numbers differ, as they do for people.
        names.push(format!("{}-{number}", random.one_of(&["set", "extra"])));
    }
    names.iter().map(|name| draw(random, shape, name)).collect()
}

/// One set.
pub(crate) fn draw(random: &mut Random, shape: Shape, name: &str) -> Value {
    let mut draw = Draw { random, shape, served: false };
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "SidecarSet",
        "metadata": draw.set_metadata(name),
        "spec": draw.set_spec(),
    })
}

/// Whether a set has a name and no errors.
pub(crate) fn is_whole(set: &Value) -> bool {
    set.pointer("/metadata/name").is_some() && review(set).meaning.is_some()
}

impl Draw<'_> {
    fn set_metadata(&mut self, name: &str) -> Value {
        let labels = self.maybe(15, |draw| json!({CUSTOM_VERSION_LABEL: draw.random.one_of(&["v1", "2026.11"])}));
        let annotations = self.maybe(10, |_| json!({"example.com/owner": "platform"}));
        object([given("name", name), ("labels", labels), ("annotations", annotations)]).into()
    }

    fn set_spec(&mut self) -> Value {
        let volumes = Volumes::draw(self);
        let (containers, init) = self.sidecars(&volumes);
        let mut spec = object([
            given("selector", self.pod_selector()),
            ("containers", optional(containers)),
            ("initContainers", optional(init)),
            ("imagePullSecrets", self.maybe(25, Self::set_secrets)),
            ("patchPodMetadata", self.maybe(35, Self::patch_pod_metadata)),
            ("labels", self.maybe(20, Self::set_labels)),
            ("serviceAccountName", self.maybe(10, |draw| json!(draw.random.one_of(&pool::ACCOUNTS)))),
            ("shareProcessNamespace", self.maybe(15, |draw| draw.random.chance(80).into())),
            ("appVolumeMounts", self.maybe(25, |draw| draw.app_mounts(&volumes)).flatten()),
            ("failurePolicy", self.maybe(50, |draw| json!(draw.random.one_of(&["Fail", "Ignore"])))),
            ("mode", self.maybe(30, |draw| json!(draw.random.one_of(&["Inject", "Inject", "Observe"])))),
            ("finish", self.maybe(30, Self::finish)),
            ("allowOptOut", self.maybe(50, |draw| draw.random.chance(70).into())),
            ("updateStrategy", self.maybe(25, Self::update_strategy)),
            ("revisionHistoryLimit", self.maybe(10, |draw| json!(draw.random.below(20)))),
            ("volumes", optional(volumes.objects)),
        ]);
        spec.extend(self.namespaces());
        spec.extend(self.inject_strategy());
        spec.into()
    }

    /// Which namespaces: one, some by their labels, or all.
    fn namespaces(&mut self) -> Map<String, Value> {
        match self.random.below(100) {
            0..=14 => object([given("namespace", crate::namespace::name(self.random))]),
            15..=34 => object([given("namespaceSelector", self.namespace_selector())]),
            _ => Map::new(),
        }
    }

    fn finish(&mut self) -> Value {
        object([
            ("mode", self.maybe(80, |draw| json!(draw.random.one_of(&["Native", "Wrap", "Wrap"])))),
            ("watch", self.maybe(50, |draw| json!(draw.random.one_of(&["Locks", "Pod"])))),
        ])
        .into()
    }

    fn set_secrets(&mut self) -> Value {
        let count = 1 + self.random.up_to(1);
        self.random.some_of(&pool::SECRETS, count).into_iter().map(|name| json!({"name": name})).collect()
    }

    fn set_labels(&mut self) -> Value {
        let mut labels = Map::new();
        // Most add something new; some repeat what decides about selection.
        if self.random.chance(70) {
            labels.insert("example.com/injected-by".to_owned(), json!("platform"));
        }
        if labels.is_empty() || self.random.chance(20) {
            labels.extend([crate::json::pair(self.random, &pool::LABELS)]);
        }
        labels.into()
    }

    /// Annotations with all policies, no key twice.
    fn patch_pod_metadata(&mut self) -> Value {
        let mut entries = Vec::new();
        for (key, values) in pool::TEXT_ANNOTATIONS {
            if self.random.chance(40) {
                let policy = self.maybe(70, |draw| draw.random.one_of(&["Retain", "Overwrite"]));
                entries.push(patch(key, self.random.one_of(values), policy));
            }
        }
        for key in pool::JSON_ANNOTATIONS {
            if entries.is_empty() || self.random.chance(40) {
                let policy = self.random.one_of(&["MergePatchJson", "MergePatchJson", "Overwrite"]);
                entries.push(patch(key, self.random.one_of(&pool::MERGE_PATCHES), Some(policy)));
            }
        }
        entries.into()
    }

    fn app_mounts(&mut self, volumes: &Volumes) -> Option<Value> {
        if volumes.files.is_empty() {
            return None;
        }
        let count = 1 + self.random.up_to(1);
        let mount = |draw: &mut Self| {
            let mount = object([
                given("volume", draw.random.one_of(&volumes.files)),
                given("path", draw.random.one_of(&["/agent", "/shared/files", "/data"])),
                ("targetContainersNameRegex", draw.maybe(60, |draw| json!(draw.random.one_of(&pool::PATTERNS)))),
                ("readOnly", draw.maybe(50, |draw| draw.random.chance(70).into())),
            ]);
            Value::Object(mount)
        };
        Some((0..count).map(|_| mount(self)).collect())
    }

    /// Containers and init containers, at least one of them, no name twice.
    fn sidecars(&mut self, volumes: &Volumes) -> (Vec<Value>, Vec<Value>) {
        let most = self.shape.sidecars.max(1);
        let init = if self.random.chance(50) { 1 + self.random.up_to(most - 1) } else { 0 };
        let plain = if init > 0 && self.random.chance(20) { 0 } else { 1 + self.random.up_to(most - 1) };
        let mut names = self.sidecar_names(plain + init).into_iter();
        let containers: Vec<Value> =
            names.by_ref().take(plain).map(|name| self.sidecar(&name, Kind::Container, volumes)).collect();
        let mut inits = Vec::new();
        for name in names {
            let kind = if self.random.chance(60) { Kind::Native } else { Kind::PlainInit };
            inits.push(self.sidecar(&name, kind, volumes));
        }
        (containers, inits)
    }

    fn sidecar_names(&mut self, count: usize) -> Vec<String> {
        let mut names: Vec<String> =
            self.random.some_of(&pool::SIDECARS, count).into_iter().map(str::to_owned).collect();
        for number in names.len()..count {
            names.push(format!("sidecar-{number}"));
        }
        names
    }
}

fn patch(key: &str, value: &str, policy: Option<&str>) -> Value {
    object([given("annotations", json!({key: value})), ("patchPolicy", policy.map(Value::from))]).into()
}

fn optional(items: Vec<Value>) -> Option<Value> {
    (!items.is_empty()).then(|| items.into())
}
