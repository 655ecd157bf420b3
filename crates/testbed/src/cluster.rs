//! How to reach a running bed, from the process that started it or, by environment, from any other.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use pillion_tools::Cache;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::Error;
use crate::slot::Slot;
use crate::wait::Look;

/// A running bed, as its users see it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cluster {
    pub(crate) slot: Slot,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) logs: PathBuf,
    pub(crate) audit_log: PathBuf,
}

impl Cluster {
    /// The variable by which `bed run` tells tests about the bed they share.
    pub const VARIABLE: &'static str = "PILLION_BED";

    /// The bed that this process shares with others.
    pub fn from_environment() -> Result<Self, Error> {
        let missing = || Error::Lacking {
            what: format!("a shared bed ({})", Self::VARIABLE),
            way_out: "run the tests with \"just e2e\", which starts one",
        };
        let text = env::var(Self::VARIABLE).map_err(|_| missing())?;
        serde_json::from_str(&text).map_err(|_| missing())
    }

    /// The value of [`Self::VARIABLE`] for a child process.
    pub(crate) fn to_environment(&self) -> String {
        json!(self).to_string()
    }

    /// A client with all rights. Each call makes a new one, with connections of its own.
    pub async fn client(&self) -> Result<kube::Client, Error> {
        client(&self.kubeconfig, |_| {}).await
    }

    /// A client that has nothing but a token.
    pub async fn client_with_token(&self, token: &str) -> Result<kube::Client, Error> {
        client(&self.kubeconfig, |kubeconfig| kubeconfig["users"][0]["user"] = json!({"token": token})).await
    }

    /// A client that acts as another user, by impersonation: admission sees this user and these groups.
    pub async fn client_as(&self, user: &str, groups: &[&str]) -> Result<kube::Client, Error> {
        client(&self.kubeconfig, |kubeconfig| {
            kubeconfig["users"][0]["user"]["as"] = user.into();
            kubeconfig["users"][0]["user"]["as-groups"] = groups.into();
        })
        .await
    }

    /// Path of a kubeconfig with all rights.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The folder of all parts' logs.
    pub fn logs(&self) -> &Path {
        &self.logs
    }

    /// The API server's audit log: every write, those to pods with their bodies, in order.
    pub fn audit_log(&self) -> &Path {
        &self.audit_log
    }

    /// Address on which a test may serve a webhook; API server and pods reach it.
    pub fn host(&self) -> Ipv4Addr {
        self.slot.host()
    }

    /// kubectl with this cluster's kubeconfig.
    pub fn kubectl(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Command, Error> {
        let mut command = Command::new(Cache::of_user().program("kubectl")?);
        command.env("KUBECONFIG", &self.kubeconfig).args(arguments);
        Ok(command)
    }

    /// Helm with this cluster's kubeconfig, and with what it keeps on disk in the bed's folder.
    pub fn helm(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Command, Error> {
        let mut command = Command::new(Cache::of_user().program("helm")?);
        let home = self.slot.folder().join("helm");
        for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(variable, home.join(variable));
        }
        command.env("KUBECONFIG", &self.kubeconfig).args(arguments);
        Ok(command)
    }

    /// Names of all nodes, and of those that are Ready.
    pub async fn nodes(&self) -> Result<(Vec<String>, Vec<String>), Error> {
        let nodes = Api::<Node>::all(self.client().await?)
            .list(&ListParams::default())
            .await
            .map_err(Error::kubernetes("list nodes"))?;
        let name = |node: &Node| node.metadata.name.clone().unwrap_or_default();
        let ready = nodes.items.iter().filter(|node| is_ready(node)).map(name).collect();
        Ok((nodes.items.iter().map(name).collect(), ready))
    }
}

pub(crate) fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// A client for a kubeconfig of this crate's making, changed in memory by `edit`.
pub(crate) async fn client(kubeconfig: &Path, edit: impl FnOnce(&mut Value)) -> Result<kube::Client, Error> {
    let failed = |why: String| Error::Kubeconfig { path: kubeconfig.to_path_buf(), why };
    let text = fs::read(kubeconfig).map_err(Error::file(kubeconfig))?;
    let mut value: Value = serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))?;
    edit(&mut value);
    let parsed: Kubeconfig = serde_json::from_value(value).map_err(|error| failed(error.to_string()))?;
    let loaded = kube::Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await;
    let config = loaded.map_err(|error| failed(error.to_string()))?;
    kube::Client::try_from(config).map_err(|error| failed(error.to_string()))
}

/// Whether a GET of `path` succeeds now.
pub(crate) async fn looks_fine(client: &kube::Client, path: &str) -> Look<()> {
    let answer = match http::Request::get(path).body(Vec::new()) {
        Ok(request) => client.request_text(request).await.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    answer.map_or_else(Look::NotYet, |_| Look::Done(()))
}

/// Creates or updates an object given as JSON, under the name `manager`.
pub async fn apply(client: &kube::Client, manager: &str, object: &Value) -> Result<DynamicObject, Error> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api_version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
    let api: Api<DynamicObject> = match object.pointer("/metadata/namespace").and_then(Value::as_str) {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    api.patch(&name, &PatchParams::apply(manager).force(), &Patch::Apply(object))
        .await
        .map_err(Error::kubernetes(format!("apply {kind} {name}")))
}
