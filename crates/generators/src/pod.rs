//! Pods: as people write them, and as the API server hands them to a webhook.

mod container;
mod metadata;
mod volume;

use std::collections::BTreeSet;

use proptest::strategy::Strategy;
use serde_json::{Map, Value, json};

use crate::draw::Draw;
use crate::drawn::Drawn;
use crate::json::{given, items, object};
use crate::random::Random;
use crate::shape::Shape;
use crate::{namespace, pool};
use container::Kind;

/// Pods of the default shape.
pub fn pod() -> impl Strategy<Value = Value> + Clone {
    pod_of(Shape::default())
}

/// Pods of a shape. Their namespace, where they name one, is one of those [`crate::namespace()`] gives.
pub fn pod_of(shape: Shape) -> impl Strategy<Value = Value> + Clone {
    Drawn::new(
        move |random| {
            let namespace = namespace::name(random);
            draw(random, shape, namespace)
        },
        is_whole,
    )
}

/// A pod of a namespace.
pub(crate) fn draw(random: &mut Random, shape: Shape, namespace: &str) -> Value {
    let mut draw = Draw::new(random, shape);
    let names = Names::draw(&mut draw);
    let metadata = draw.metadata(&names, namespace);
    let spec = draw.spec(&names);
    let pod = object([
        given("apiVersion", "v1"),
        given("kind", "Pod"),
        given("metadata", metadata),
        given("spec", spec),
        ("status", draw.served.then(|| json!({}))),
    ]);
    draw.with_unknown(pod)
}

/// The names of a pod's parts, chosen first because the parts name one another.
struct Names {
    containers: Vec<&'static str>,
    plain_init: Vec<&'static str>,
    native: Vec<&'static str>,
    volumes: Vec<&'static str>,
    devices: Vec<&'static str>,
}

impl Names {
    fn draw(draw: &mut Draw<'_>) -> Self {
        let shape = draw.shape;
        let mut choose = |pool: &[&'static str], least: usize, most: usize| {
            let count = least + draw.random.up_to(most.max(least) - least);
            draw.random.some_of(pool, count)
        };
        let containers = choose(&pool::CONTAINERS, 1, shape.containers);
        let plain_init = choose(&pool::INIT_CONTAINERS, 0, shape.init_containers);
        let native = choose(&pool::NATIVE_SIDECARS, 0, shape.native_sidecars);
        let volumes = choose(&pool::VOLUMES, 0, 3);
        let devices = choose(&pool::DEVICES, 0, 1);
        Self { containers, plain_init, native, volumes, devices }
    }
}

impl Draw<'_> {
    fn spec(&mut self, names: &Names) -> Value {
        let account = self.account();
        let token = self.token(&account);
        let containers = self.containers(names, &names.containers, Kind::Plain, token.as_deref());
        let init = self.init_containers(names, token.as_deref());
        let volumes = self.volumes(names, token.as_deref());
        let secrets = self.secrets();
        let mut spec = object([
            given("containers", containers),
            ("initContainers", self.list(init)),
            ("volumes", self.list(volumes)),
            ("imagePullSecrets", self.list(secrets)),
            ("securityContext", self.pod_security()),
            ("restartPolicy", self.restart_policy()),
            ("nodeSelector", self.maybe(10, |_| json!({"kubernetes.io/os": "linux"}))),
            ("tolerations", self.maybe(10, |_| json!([{"key": "spot", "operator": "Exists"}]))),
            ("terminationGracePeriodSeconds", self.served.then(|| json!(30))),
            ("dnsPolicy", self.served.then(|| json!("ClusterFirst"))),
            ("schedulerName", self.served.then(|| json!("default-scheduler"))),
            ("enableServiceLinks", self.served.then_some(true.into())),
            ("priority", self.served.then(|| json!(0))),
            ("preemptionPolicy", self.served.then(|| json!("PreemptLowerPriority"))),
        ]);
        spec.extend(account);
        spec.extend(self.sharing());
        self.with_unknown(spec)
    }

    fn init_containers(&mut self, names: &Names, token: Option<&str>) -> Vec<Value> {
        let mut init = self.containers(names, &names.plain_init, Kind::PlainInit, token);
        for native in self.containers(names, &names.native, Kind::Native, token) {
            let at = self.random.up_to(init.len());
            init.insert(at, native);
        }
        init
    }

    /// The account in its present and its deprecated field; the API server fills in both.
    fn account(&mut self) -> Map<String, Value> {
        let name = match self.random.below(10) {
            0..=4 => None,
            5 | 6 => Some("default"),
            _ => Some(self.random.one_of(&pool::ACCOUNTS)),
        };
        let name = if self.served { name.or(Some("default")) } else { name };
        let deprecated = name.filter(|_| self.served || self.random.chance(25));
        object([
            ("serviceAccountName", name.map(Value::from)),
            ("serviceAccount", deprecated.map(Value::from)),
            ("automountServiceAccountToken", self.maybe(10, |draw| draw.random.chance(30).into())),
        ])
    }

    /// The name of the volume with the account's token, where the API server has added it.
    fn token(&mut self, account: &Map<String, Value>) -> Option<String> {
        let wanted = account.get("automountServiceAccountToken") != Some(&Value::Bool(false));
        // A person may have copied a living pod.
        let there = wanted && (self.served || self.random.chance(5));
        there.then(|| format!("kube-api-access-{}", self.random.one_of(&["x7k2p", "abcde", "9zt4m"])))
    }

    fn secrets(&mut self) -> Vec<Value> {
        let count = self.random.up_to(2);
        let names = self.random.some_of(&pool::SECRETS, count);
        names.into_iter().map(|name| self.with_unknown(object([given("name", name)]))).collect()
    }

    fn restart_policy(&mut self) -> Option<Value> {
        let policy = self.maybe(25, |draw| draw.random.one_of(&["Always", "OnFailure", "Never"]));
        policy.or(self.served.then_some("Always")).map(Value::from)
    }

    fn pod_security(&mut self) -> Option<Value> {
        let context = match self.random.below(6) {
            0..=2 => return self.served.then(|| json!({})),
            3 => object([]),
            4 => object([given("fsGroup", 2000), given("runAsUser", 1000)]),
            _ => object([given("runAsNonRoot", true), given("seccompProfile", json!({"type": "RuntimeDefault"}))]),
        };
        Some(self.with_unknown(context))
    }

    /// Which of the node's and of one another's processes the containers see; the two exclude each other.
    fn sharing(&mut self) -> Map<String, Value> {
        let (share, host) = match self.random.below(12) {
            0..=5 => (None, None),
            6 | 7 => (Some(true), None),
            8 => (Some(false), None),
            9 => (None, Some(true)),
            10 => (Some(false), Some(true)),
            _ => (None, Some(false)),
        };
        object([
            ("shareProcessNamespace", share.map(Value::from)),
            ("hostPID", host.map(Value::from)),
            ("hostNetwork", self.maybe(5, |_| json!(true))),
        ])
    }
}

/// Whether a pod is one that could run: its parts have names, none twice, and name only parts that exist.
pub(crate) fn is_whole(pod: &Value) -> bool {
    let (Some(spec), Some(_)) = (pod.get("spec"), pod.get("metadata").and_then(Value::as_object)) else { return false };
    let containers: Vec<&Value> = items(spec, "initContainers").chain(items(spec, "containers")).collect();
    let Some(volumes) = names(items(spec, "volumes")) else { return false };
    let uses_what_exists = |container: &Value, list: &str, path: &str| {
        let paths: BTreeSet<&str> = items(container, list).filter_map(|it| it.get(path)?.as_str()).collect();
        paths.len() == items(container, list).count()
            && items(container, list)
                .all(|it| it.get("name").and_then(Value::as_str).is_some_and(|name| volumes.contains(name)))
    };
    items(spec, "containers").next().is_some()
        && names(containers.iter().copied()).is_some()
        && containers.iter().all(|container| {
            container.get("image").is_some()
                && items(container, "env").all(|it| it.get("name").is_some())
                && uses_what_exists(container, "volumeMounts", "mountPath")
                && uses_what_exists(container, "volumeDevices", "devicePath")
        })
}

/// The names of parts; `None` where one has none, or two have the same.
fn names<'a>(parts: impl Iterator<Item = &'a Value>) -> Option<BTreeSet<&'a str>> {
    let mut names = BTreeSet::new();
    for part in parts {
        if !names.insert(part.get("name")?.as_str()?) {
            return None;
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests;
