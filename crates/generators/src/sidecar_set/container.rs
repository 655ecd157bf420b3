//! Containers and volumes of a set.

use pillion_expr::{Field, Resource};
use serde_json::{Map, Value, json};

use crate::draw::Draw;
use crate::json::{given, object};
use crate::{amount, expression, pool};

/// The second is a path that containers of pods mount files at.
const SIDECAR_DEVICE_PATHS: [&str; 2] = ["/dev/xvda", "/scratch"];

/// How a container of the set runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Container,
    PlainInit,
    Native,
}

/// The volumes of a set.
pub(super) struct Volumes {
    /// Names of those with files.
    pub(super) files: Vec<&'static str>,
    /// Names of those without.
    devices: Vec<&'static str>,
    pub(super) objects: Vec<Value>,
}

impl Volumes {
    pub(super) fn draw(draw: &mut Draw<'_>) -> Self {
        // Names of its own are usual; the others may be those of a pod's volumes.
        let count = draw.random.up_to(2);
        let mut files = draw.random.some_of(&["sidecar-data", "sidecar-files"], count);
        files.extend(draw.maybe(20, |draw| draw.random.one_of(&pool::VOLUMES)));
        let devices: Vec<&str> = draw.maybe(10, |draw| draw.random.one_of(&pool::DEVICES)).into_iter().collect();
        let mut objects: Vec<Value> = files.iter().map(|name| draw.volume(name)).collect();
        objects.extend(devices.iter().map(|name| draw.device(name)));
        Self { files, devices, objects }
    }
}

impl Draw<'_> {
    pub(super) fn sidecar(&mut self, name: &str, kind: Kind, volumes: &Volumes) -> Value {
        let (resources, policy) = self.sidecar_resources(kind);
        let mut container = object([
            given("name", name),
            given("image", self.random.one_of(&pool::IMAGES)),
            ("restartPolicy", (kind == Kind::Native).then(|| json!("Always"))),
            ("command", self.maybe(15, |_| json!(["/sidecar"]))),
            ("env", self.maybe(40, Self::sidecar_env)),
            ("resources", resources),
            ("resourcesPolicy", policy),
            ("securityContext", self.maybe(20, Self::sidecar_security)),
            (
                "sidecar",
                (kind != Kind::PlainInit).then(|| self.maybe(15, |draw| draw.random.chance(70).into())).flatten(),
            ),
            (
                "podInjectPolicy",
                self.maybe(40, |draw| json!(draw.random.one_of(&["BeforeAppContainer", "AfterAppContainer"]))),
            ),
            ("shareVolumePolicy", self.maybe(35, Self::share_policy)),
            ("shareVolumeDevicePolicy", self.maybe(20, Self::share_policy)),
            ("transferEnv", self.maybe(35, Self::transfer_env)),
            ("upgradeStrategy", self.maybe(5, |_| json!({"upgradeType": "ColdUpgrade"}))),
        ]);
        container.extend(self.sidecar_mounts(volumes));
        self.with_unknown(container)
    }

    /// Fixed or computed resources, or none.
    fn sidecar_resources(&mut self, kind: Kind) -> (Option<Value>, Option<Value>) {
        if kind != Kind::PlainInit && self.random.chance(45) {
            let claims = self.maybe(5, |_| json!({"claims": [{"name": "gpu"}]}));
            return (claims, Some(self.resources_policy()));
        }
        let fixed = amount::resources(self.random, false);
        (fixed.map(|fixed| self.with_unknown(fixed)), None)
    }

    fn resources_policy(&mut self) -> Value {
        let mode = json!(self.random.one_of(&["sum", "max"]));
        let expressions = self.expressions();
        // Each pair of spellings is chosen for itself; a set may mix them.
        let mode_name = self.random.one_of(&["targetContainerMode", "targetContainersMode"]);
        let expression_name = self.random.one_of(&["resourceExpr", "resourcesExpr"]);
        let pattern = self.maybe(60, |draw| {
            // A pattern that matches nothing refuses the pod, so it is rare.
            let usual = &pool::PATTERNS[..4];
            json!(if draw.random.chance(75) { draw.random.one_of(usual) } else { draw.random.one_of(&pool::PATTERNS) })
        });
        object([(mode_name, Some(mode)), (expression_name, Some(expressions)), ("targetContainersNameRegex", pattern)])
            .into()
    }

    fn expressions(&mut self) -> Value {
        let (mut limits, mut requests) = (Map::new(), Map::new());
        for resource in [Resource::Cpu, Resource::Memory] {
            let (limit, request) = if self.random.chance(70) {
                expression::matching(self.random, resource)
            } else {
                let [limit, request] = [pillion_expr::Side::Limits, pillion_expr::Side::Requests]
                    .map(|side| expression::draw(self.random, Field::new(side, resource)));
                (limit, request)
            };
            for (side, text) in [(&mut limits, limit), (&mut requests, request)] {
                match self.random.below(10) {
                    0 => {}
                    1 => drop(side.insert(resource.name().to_owned(), json!(""))),
                    _ => drop(side.insert(resource.name().to_owned(), json!(text))),
                }
            }
        }
        if limits.is_empty() && requests.is_empty() {
            requests.insert("memory".to_owned(), json!("100Mi"));
        }
        let side = |side: Map<String, Value>| (!side.is_empty()).then(|| side.into());
        object([("limits", side(limits)), ("requests", side(requests))]).into()
    }

    fn sidecar_env(&mut self) -> Value {
        let count = 1 + self.random.up_to(1);
        let names = self.random.some_of(&pool::VARIABLES, count);
        names.into_iter().map(|name| json!({"name": name, "value": "of the sidecar"})).collect()
    }

    fn sidecar_security(&mut self) -> Value {
        let context = match self.random.below(3) {
            0 => object([given("privileged", true)]),
            1 => object([given("capabilities", json!({"add": ["NET_ADMIN"]}))]),
            _ => object([given("allowPrivilegeEscalation", false), given("capabilities", json!({"drop": ["ALL"]}))]),
        };
        self.with_unknown(context)
    }

    fn share_policy(&mut self) -> Value {
        let kind = self.maybe(95, |draw| json!(draw.random.one_of(&["enabled", "enabled", "disabled"])));
        object([("type", kind)]).into()
    }

    fn transfer_env(&mut self) -> Value {
        let count = 1 + self.random.up_to(1);
        (0..count).map(|_| self.transfer()).collect()
    }

    fn transfer(&mut self) -> Value {
        let (name, from) = if self.random.chance(50) {
            (Some(json!(self.random.one_of(&pool::CONTAINERS[..3]))), None)
        } else {
            let field = match self.random.below(5) {
                0 | 1 => format!("metadata.labels['{}']", pool::MAIN_CONTAINER),
                2 | 3 => format!("metadata.annotations['{}']", pool::MAIN_CONTAINER),
                _ => "metadata.name".to_owned(),
            };
            let reference = object([given("fieldPath", field), ("apiVersion", self.maybe(40, |_| json!("v1")))]);
            (None, Some(json!({"fieldRef": reference})))
        };
        let count = self.random.up_to(2);
        let names = self.random.some_of(&pool::VARIABLES, count);
        let several = (!names.is_empty()).then(|| json!(names));
        let one = (several.is_none() || self.random.chance(40)).then(|| json!(self.random.one_of(&pool::VARIABLES)));
        object([
            ("sourceContainerName", name),
            ("sourceContainerNameFrom", from),
            ("envName", one),
            ("envNames", several),
        ])
        .into()
    }

    /// Mounts of the set's own volumes, and now and then of one that only the pod can have.
    fn sidecar_mounts(&mut self, volumes: &Volumes) -> Map<String, Value> {
        let mut names: Vec<&str> = volumes.files.iter().copied().filter(|_| self.random.chance(70)).collect();
        names.extend(self.maybe(4, |draw| draw.random.one_of(&pool::VOLUMES)));
        let paths = self.random.some_of(&["/sidecar", "/data", "/var/log/app", "/certs"], names.len());
        let mounts: Vec<Value> =
            names.iter().zip(paths).map(|(name, path)| json!({"name": name, "mountPath": path})).collect();
        let mut devices = Vec::new();
        for name in &volumes.devices {
            if self.random.chance(70) {
                devices.push(json!({"name": name, "devicePath": self.random.one_of(&SIDECAR_DEVICE_PATHS)}));
            }
        }
        let list = |items: Vec<Value>| (!items.is_empty()).then(|| items.into());
        object([("volumeMounts", list(mounts)), ("volumeDevices", list(devices))])
    }
}
