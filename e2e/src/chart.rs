//! The chart of this repository, rendered and installed by Helm itself.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::Client;
use kube::api::{Api, PostParams};
use pillion_testbed::Cluster;
use serde_json::Value;

use crate::manager::NAMESPACE;

/// Name of the release.
pub const RELEASE: &str = "pillion";

/// The folder of the chart.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/pillion")
}

/// Flags of Helm for an installation with every feature gate and every part.
fn everything() -> [String; 2] {
    ["--values".to_owned(), folder().join("ci/everything-values.yaml").display().to_string()]
}

/// The command that installs the chart with everything and waits until it runs.
pub fn install_everything(cluster: &Cluster) -> Result<Command> {
    let mut command = cluster.helm(["--namespace", NAMESPACE, "install", RELEASE])?;
    command.arg(folder()).args(everything()).args(["--create-namespace", "--wait", "--timeout", "180s"]);
    Ok(command)
}

/// Runs a verb of Helm on the chart (`template`, `install`, …) in the manager's namespace, with these values
/// (`layout=OnePod`) and flags.
pub fn helm(cluster: &Cluster, verb: &str, values: &[&str], flags: &[&str]) -> Result<Output> {
    let mut command = cluster.helm(["--namespace", NAMESPACE, verb])?;
    if verb != "lint" {
        command.arg(RELEASE);
    }
    if !matches!(verb, "status" | "uninstall") {
        command.arg(folder());
    }
    for value in values {
        command.args(["--set", value]);
    }
    Ok(command.args(flags).output()?)
}

/// What Helm said, where it did what it was told.
pub fn said(output: Output) -> Result<String> {
    ensure!(output.status.success(), "helm: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// Every object of the chart with these values, as Helm would install it.
pub fn render(cluster: &Cluster, values: &[&str]) -> Result<Vec<Value>> {
    render_with(cluster, values, &[])
}

/// The same with everything enabled.
pub fn render_everything(cluster: &Cluster, values: &[&str]) -> Result<Vec<Value>> {
    let flags = everything();
    render_with(cluster, values, &[&flags[0], &flags[1]])
}

fn render_with(cluster: &Cluster, values: &[&str], flags: &[&str]) -> Result<Vec<Value>> {
    let text = said(helm(cluster, "template", values, flags)?)?;
    let documents: Vec<Option<Value>> = serde_saphyr::from_multiple(&text).context("helm wrote no YAML")?;
    Ok(documents.into_iter().flatten().collect())
}

/// A client with a token of a service account, as a pod of it has, and as a thief would have.
pub async fn client_of(cluster: &Cluster, namespace: &str, account: &str) -> Result<Client> {
    Ok(cluster.client_with_token(&token_of(cluster, namespace, account, None).await?).await?)
}

/// A token of a service account, bound to a pod if there is one, as the token is that a node mounts into it.
pub async fn token_of(cluster: &Cluster, namespace: &str, account: &str, pod: Option<&Pod>) -> Result<String> {
    let accounts = Api::<ServiceAccount>::namespaced(cluster.client().await?, namespace);
    let bound_object_ref = pod.map(|pod| BoundObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
    });
    let spec = TokenRequestSpec { bound_object_ref, ..TokenRequestSpec::default() };
    let request = TokenRequest { spec, ..TokenRequest::default() };
    let issued = accounts.create_token_request(account, &PostParams::default(), &request).await?;
    Ok(issued.status.context("no token was issued")?.token)
}
