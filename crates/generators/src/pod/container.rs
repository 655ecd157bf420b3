//! Containers of a pod, of all three kinds.

use serde_json::{Map, Value, json};

use super::{Names, volume};
use crate::amount;
use crate::draw::Draw;
use crate::json::{given, object};
use crate::pool;

const PATH_EXPRESSIONS: [&str; 5] =
    ["$(POD_NAME)", "logs/$(SERVICE)/$(POD_NAME)", "$(TOKEN-FILE.1)", "$(MISSING)", "plain"];

/// How a container of the pod runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    PlainInit,
    Native,
}

impl Draw<'_> {
    pub(super) fn containers(&mut self, names: &Names, called: &[&str], kind: Kind, token: Option<&str>) -> Vec<Value> {
        called.iter().map(|name| self.container(names, name, kind, token)).collect()
    }

    fn container(&mut self, names: &Names, name: &str, kind: Kind, token: Option<&str>) -> Value {
        let resources = amount::resources(self.random, self.served);
        let (env, mounts) = (self.env(), self.mounts(names, token));
        let container = object([
            given("name", name),
            given("image", self.random.one_of(&pool::IMAGES)),
            ("restartPolicy", (kind == Kind::Native).then(|| json!("Always"))),
            ("command", self.maybe(20, |_| json!(["/bin/app", "--serve"]))),
            ("args", self.maybe(15, |_| json!(["$(LOG_LEVEL)"]))),
            ("ports", self.maybe(25, |_| json!([{"name": "http", "containerPort": 8080, "protocol": "TCP"}]))),
            ("env", self.list(env)),
            ("envFrom", self.maybe(5, |_| json!([{"configMapRef": {"name": "settings"}}]))),
            ("resources", resources.map(|resources| self.with_unknown(resources))),
            ("volumeMounts", self.list(mounts)),
            ("volumeDevices", self.devices(names)),
            ("securityContext", self.container_security()),
            ("livenessProbe", (kind != Kind::PlainInit).then(|| self.maybe(20, Self::probe)).flatten()),
            ("imagePullPolicy", self.served.then(|| json!("IfNotPresent"))),
            ("terminationMessagePath", self.served.then(|| json!("/dev/termination-log"))),
            ("terminationMessagePolicy", self.served.then(|| json!("File"))),
        ]);
        self.with_unknown(container)
    }

    fn probe(&mut self) -> Value {
        let probe = object([given("httpGet", json!({"path": "/", "port": 8080})), given("periodSeconds", 5)]);
        self.with_unknown(probe)
    }

    fn env(&mut self) -> Vec<Value> {
        let count = self.random.up_to(5);
        let mut chosen = self.random.some_of(&pool::VARIABLES, count);
        if self.random.chance(3) {
            chosen.push(pool::IS_INJECTED);
        }
        // The API server takes a name twice; the last one counts.
        if let Some(first) = chosen.first().copied().filter(|_| self.random.chance(3)) {
            chosen.push(first);
        }
        chosen.into_iter().map(|name| self.variable(name)).collect()
    }

    fn variable(&mut self, name: &str) -> Value {
        let name = given("name", name);
        let from = |source: Value| given("valueFrom", source);
        let variable = match self.random.below(10) {
            0 => object([name]),
            1 => object([name, from(json!({"secretKeyRef": {"name": "secret", "key": "k", "optional": true}}))]),
            2 => object([name, from(json!({"configMapKeyRef": {"name": "settings", "key": "k"}}))]),
            3 => object([name, from(json!({"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}))]),
            4 => object([name, from(json!({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}))]),
            5 => object([name, given("value", "$(REGION)-$(MISSING)")]),
            _ => object([name, given("value", self.random.one_of(&["debug", "eu-west", "", "true"]))]),
        };
        self.with_unknown(variable)
    }

    fn mounts(&mut self, names: &Names, token: Option<&str>) -> Vec<Value> {
        let paths = self.random.some_of(&pool::PATHS, names.volumes.len());
        let mut mounts = Vec::new();
        for (name, path) in names.volumes.iter().zip(paths) {
            if self.random.chance(55) {
                let mount = self.mount(name, path);
                mounts.push(self.with_unknown(mount));
            }
        }
        if let Some(token) = token {
            mounts.push(json!({"name": token, "mountPath": volume::TOKEN_PATH, "readOnly": true}));
        }
        mounts
    }

    fn mount(&mut self, name: &str, path: &str) -> Map<String, Value> {
        // One volume may be mounted in parts, by names that variables hold.
        let part = match self.random.below(8) {
            0 => given("subPath", "part"),
            1..=3 => given("subPathExpr", self.random.one_of(&PATH_EXPRESSIONS)),
            _ => ("subPath", None),
        };
        object([
            given("name", name),
            given("mountPath", path),
            part,
            ("readOnly", self.maybe(20, |draw| draw.random.chance(70).into())),
            ("mountPropagation", self.maybe(4, |_| json!("HostToContainer"))),
        ])
    }

    fn devices(&mut self, names: &Names) -> Option<Value> {
        let mut devices = Vec::new();
        for name in &names.devices {
            if self.random.chance(60) {
                let path = self.random.one_of(&pool::DEVICE_PATHS);
                devices.push(self.with_unknown(object([given("name", *name), given("devicePath", path)])));
            }
        }
        self.list(devices)
    }

    fn container_security(&mut self) -> Option<Value> {
        let context = match self.random.below(8) {
            0..=4 => return None,
            5 => object([]),
            6 => object([given("privileged", true), given("capabilities", json!({"add": ["NET_ADMIN"]}))]),
            _ => object([
                given("allowPrivilegeEscalation", false),
                given("runAsNonRoot", true),
                given("capabilities", json!({"drop": ["ALL"]})),
            ]),
        };
        Some(self.with_unknown(context))
    }
}
