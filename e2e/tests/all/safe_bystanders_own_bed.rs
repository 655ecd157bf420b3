//! An installation with everything enabled, and everyone else: whatever happens to its objects, a cluster administrator, an
//! ordinary user and the node keep working. The tests read the policies and webhook configurations from the rendered chart
//! and from the cluster, so that a new one is included.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Method;
use kube::Client;
use pillion_api::harm_to_bystanders;
use pillion_e2e::agents::{self, seen, send};
use pillion_e2e::bystanders::Bystanders;
use pillion_e2e::chart::{helm, install_everything, render_everything, said};
use pillion_e2e::manager::NAMESPACE;
use pillion_e2e::programs;
use pillion_testbed::{Bed, Cluster, Config, Look, Signal, apply, until};
use serde_json::Value;

const PARAMS: &str = "/api/v1/namespaces/pillion-system/configmaps/pillion-agent-policy-params";
const WEBHOOKS: [&str; 2] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

fn is_webhook(object: &Value) -> bool {
    matches!(object["kind"].as_str(), Some("MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration"))
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Resources that policies and webhook configurations match, without their subresources.
fn matched_resources(objects: &[Value]) -> BTreeSet<String> {
    let policies = objects.iter().filter(|it| it["kind"] == "ValidatingAdmissionPolicy");
    let of_policies = policies.flat_map(|it| items(&it["spec"]["matchConstraints"]["resourceRules"]));
    let webhooks = objects.iter().filter(|it| is_webhook(it)).flat_map(|it| items(&it["webhooks"]));
    let rules = of_policies.chain(webhooks.flat_map(|it| items(&it["rules"])));
    let resources = rules.flat_map(|rule| items(&rule["resources"]));
    resources.map(|it| text(it).split('/').next().unwrap_or_default().to_owned()).collect()
}

/// The webhook configurations that the running webhook registered.
async fn registered(client: &Client) -> Result<Vec<Value>> {
    let mut registered = Vec::new();
    for resource in WEBHOOKS {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{resource}/pillion");
        let is_filled = |found: Option<&Value>| found.filter(|it| items(&it["webhooks"]).next().is_some()).cloned();
        registered.push(seen(client, &path, "the webhook to register itself", is_filled).await?);
    }
    Ok(registered)
}

/// Installs, and lets the bystanders work until Helm is done.
async fn install(cluster: &Cluster, bystanders: &mut Bystanders, resources: &BTreeSet<String>) -> Result<()> {
    let mut child = install_everything(cluster)?.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    while child.try_wait()?.is_none() {
        bystanders.work("while it is installed", resources).await?;
    }
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "helm install: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

async fn restart_api_server(bed: &mut Bed) -> Result<()> {
    bed.signal("kube-apiserver", Signal::Kill).await?;
    bed.start_again("kube-apiserver").await?;
    Ok(())
}

fn kubectl(cluster: &Cluster, arguments: &[&str]) -> Result<()> {
    let output = cluster.kubectl(arguments)?.output()?;
    ensure!(output.status.success(), "kubectl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Runs `pillion check` and compares what it says about bystanders.
fn checked(cluster: &Cluster, expected: &str) -> Result<()> {
    let output = Command::new(programs::path("pillion")?)
        .args(["check", "--output", "json"])
        .env("KUBECONFIG", cluster.kubeconfig())
        .output()?;
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    let line = items(&answer["checks"]).find(|it| it["check"] == "bystanders").context("a line about bystanders")?;
    ensure!(line["status"] == expected, "{line}");
    Ok(())
}

/// The data that the agent controller stored, for a configuration that a `SidecarSet` uses.
async fn filled_params(client: &Client) -> Result<Value> {
    for object in [agents::namespace("games", "yes"), agents::config(agents::GAME), agents::set("game")] {
        until("the object to be stored", Duration::from_mins(1), || async {
            Ok(match apply(client, "e2e", &object).await {
                Ok(_) => Look::Done(()),
                Err(error) => Look::NotYet(error.to_string()),
            })
        })
        .await?;
    }
    seen(client, PARAMS, "the parameters to be filled", |found| found?.get("data").cloned()).await
}

#[tokio::test]
async fn ci_bystanders_keep_working_whatever_happens_to_the_installation() -> Result<()> {
    let mut bed = Bed::start(Config::control_plane("bystanders").with_node()).await?;
    let (cluster, client) = (bed.cluster().clone(), bed.client().await?);
    let rendered = render_everything(&cluster, &[])?;
    let resources = matched_resources(&rendered);
    ensure!(resources.contains("pods") && resources.contains("gameservers"), "{resources:?}");
    let mut bystanders = Bystanders::arrive(&cluster).await?;

    install(&cluster, &mut bystanders, &resources).await?;
    let live = [rendered.clone(), registered(&client).await?].concat();
    let resources = matched_resources(&live);
    let data = filled_params(&client).await?;
    bystanders.work("installed", &resources).await?;
    checked(&cluster, "ok")?;
    restart_api_server(&mut bed).await?;
    bystanders.work("after a restart of the API server", &resources).await?;

    // The data is the agent controller's, and an upgrade leaves it.
    said(helm(&cluster, "upgrade", &[], &["--reuse-values", "--wait", "--timeout", "180s"])?)?;
    let kept = seen(&client, PARAMS, "the parameters to be there", |found| found?.get("data").cloned()).await?;
    assert_eq!(kept, data);
    // Deleted parameters come back.
    let deleted = send(&client, Method::DELETE, PARAMS, &Value::Null).await?.map_err(anyhow::Error::msg)?;
    let old = deleted["details"]["uid"].clone();
    let again = seen(&client, PARAMS, "the parameters to come back", |found| {
        found.filter(|it| it["metadata"]["uid"] != old)?.get("data").cloned()
    });
    assert_eq!(again.await?, data);

    // All pods of Pillion are gone.
    bystanders.require_injection().await?;
    kubectl(&cluster, &["--namespace", NAMESPACE, "scale", "deployment", "--all", "--replicas=0"])?;
    let selector = "--selector=app.kubernetes.io/name=pillion";
    kubectl(&cluster, &["--namespace", NAMESPACE, "wait", "--for=delete", "pod", selector, "--timeout=120s"])?;
    bystanders.work("without a pod of Pillion", &resources).await?;
    bystanders.work_where_injection_is_required().await?;

    // Parameters of every binding are gone for good, as nobody creates them again.
    let references = rendered.iter().map(|it| &it["spec"]["paramRef"]).filter(|it| !it.is_null());
    let params: BTreeSet<&str> = references.map(|it| text(&it["name"])).collect();
    assert_eq!(params, BTreeSet::from(["pillion-agent-policy-params"]));
    kubectl(&cluster, &["--namespace", NAMESPACE, "delete", "configmap", "pillion-agent-policy-params"])?;
    bystanders.work("without the parameters of policies", &resources).await?;
    restart_api_server(&mut bed).await?;
    bystanders.work("without parameters, after a restart of the API server", &resources).await?;

    kubectl(&cluster, &["delete", "namespace", NAMESPACE, "--wait", "--timeout=120s"])?;
    bystanders.work("without the namespace of Pillion", &resources).await?;
    restart_api_server(&mut bed).await?;
    bystanders.work("without the namespace, after a restart of the API server", &resources).await?;
    bed.stop().await?;
    Ok(())
}

#[tokio::test]
async fn ci_no_policy_of_the_chart_can_reject_everyone() -> Result<()> {
    let bed = Bed::start(Config::control_plane("harmless-chart")).await?;
    for layout in ["layout=Separate", "layout=OnePod"] {
        let mut rendered = render_everything(bed.cluster(), &[layout])?;
        assert_eq!(harm_to_bystanders(&rendered), Vec::<String>::new(), "{layout}");
        // The same with a policy that fails closed, or all this proves nothing.
        let policy = rendered.iter_mut().find(|it| !it["spec"]["paramKind"].is_null()).context("a policy")?;
        policy["spec"]["failurePolicy"] = "Fail".into();
        let harm = "ValidatingAdmissionPolicy pillion-agent-keys: it has parameters and fails closed: set failurePolicy to Ignore";
        assert_eq!(harm_to_bystanders(&rendered), [harm], "{layout}");
    }
    bed.stop().await?;
    Ok(())
}
