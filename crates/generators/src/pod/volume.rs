//! Volumes, of pods and of sets: the same names and kinds, so that some are equal and some clash.

use serde_json::{Value, json};

use super::Names;
use crate::draw::Draw;
use crate::json::{given, object};

/// Where the API server mounts the token of a pod's account.
pub(super) const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

impl Draw<'_> {
    pub(super) fn volumes(&mut self, names: &Names, token: Option<&str>) -> Vec<Value> {
        let mut volumes: Vec<Value> = names.volumes.iter().map(|name| self.volume(name)).collect();
        volumes.extend(names.devices.iter().map(|name| self.device(name)));
        volumes.extend(token.map(token_volume));
        volumes
    }

    /// A volume with files.
    pub(crate) fn volume(&mut self, name: &str) -> Value {
        let (kind, source) = match self.random.below(12) {
            0..=4 => ("emptyDir", json!({})),
            5 => ("emptyDir", json!({"sizeLimit": self.random.one_of(&["100Mi", "1Gi", "1e8"])})),
            6 => ("emptyDir", json!({"medium": "Memory"})),
            7 => ("configMap", json!({"name": name, "items": [{"key": "a", "path": "b"}]})),
            8 => ("secret", json!({"secretName": name, "defaultMode": 256})),
            9 => (
                "projected",
                json!({"sources": [{"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}}]}),
            ),
            10 => ("hostPath", json!({"path": "/var/lib/app", "type": "DirectoryOrCreate"})),
            _ => ("persistentVolumeClaim", json!({"claimName": "claim"})),
        };
        self.with_unknown(object([given("name", name), (kind, Some(source))]))
    }

    /// A volume without a file system.
    pub(crate) fn device(&mut self, name: &str) -> Value {
        self.with_unknown(object([given("name", name), given("persistentVolumeClaim", json!({"claimName": name}))]))
    }
}

/// The volume that the API server adds for a pod's account.
fn token_volume(name: &str) -> Value {
    let certificates = json!({"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]});
    let namespace = json!({"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}});
    let sources = json!([
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": certificates},
        {"downwardAPI": {"items": [namespace]}},
    ]);
    json!({"name": name, "projected": {"sources": sources, "defaultMode": 420}})
}
