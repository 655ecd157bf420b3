//! The chart of this repository, rendered and installed by Helm itself.

use std::path::{Path, PathBuf};
use std::process::Output;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, PostParams};
use pillion_testbed::Cluster;
use serde_json::Value;

/// Where the tests install it.
pub const NAMESPACE: &str = "pillion-system";
/// Name of the release.
pub const RELEASE: &str = "pillion";

/// The folder of the chart.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/pillion")
}

/// Runs Helm in the namespace of the chart.
pub fn helm(cluster: &Cluster, arguments: &[&str]) -> Result<Output> {
    Ok(cluster.helm(["--namespace", NAMESPACE])?.args(arguments).output()?)
}

/// Every object of the chart with these values (`layout=OnePod`), as Helm would install it.
pub fn render(cluster: &Cluster, values: &[&str]) -> Result<Vec<Value>> {
    let folder = folder();
    let mut command = cluster.helm(["--namespace", NAMESPACE, "template", RELEASE])?;
    command.arg(&folder);
    for value in values {
        command.args(["--set", value]);
    }
    let output = command.output()?;
    ensure!(output.status.success(), "helm template: {}", String::from_utf8_lossy(&output.stderr));
    let documents: Vec<Option<Value>> =
        serde_saphyr::from_multiple(&String::from_utf8(output.stdout)?).context("helm wrote no YAML")?;
    Ok(documents.into_iter().flatten().collect())
}

/// A client with a token of a service account, as a pod of it has, and as a thief would have.
pub async fn client_of(cluster: &Cluster, namespace: &str, account: &str) -> Result<Client> {
    let accounts = Api::<ServiceAccount>::namespaced(cluster.client().await?, namespace);
    let request = TokenRequest { spec: TokenRequestSpec::default(), ..TokenRequest::default() };
    let issued = accounts.create_token_request(account, &PostParams::default(), &request).await?;
    let token = issued.status.context("no token was issued")?.token;
    Ok(cluster.client_with_token(&token).await?)
}
