//! The controller of agents on a real API server, with the rights of the chart: what namespaces get and lose, and how a
//! version that was asked for a workload reaches its pods. The agents are played by the test, with the tokens of their pods.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use http::Method;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use pillion_api::{HotUpdate, HotUpdateStatus};
use pillion_e2e::agents::{
    self, ACCOUNT, GAME, PATIENCE, client_of_pod, config, controller, install, namespace, seen, send,
};
use pillion_e2e::{Manager, pods};
use pillion_testbed::{Bed, Cluster, Config, Fleet, Look, apply, until};
use serde_json::{Value, json};

const GAMES: &str = "games";

fn copy(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps/sidecar-config")
}

fn places(namespace: &str) -> [String; 4] {
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
    [
        copy(namespace),
        format!("/api/v1/namespaces/{namespace}/serviceaccounts/{ACCOUNT}"),
        format!("{rbac}/roles/{ACCOUNT}"),
        format!("{rbac}/rolebindings/{ACCOUNT}"),
    ]
}

async fn has_all(client: &Client, namespace: &str) -> Result<()> {
    for place in places(namespace) {
        seen(client, &place, &format!("{place} to be there"), |found| found.map(|_| ())).await?;
    }
    Ok(())
}

async fn has_none(client: &Client, namespace: &str) -> Result<()> {
    for place in places(namespace) {
        let is_gone = |found: Option<&Value>| found.is_none_or(|it| it["metadata"].get("deletionTimestamp").is_some());
        seen(client, &place, &format!("{place} to be gone"), |found| is_gone(found).then_some(())).await?;
    }
    Ok(())
}

async fn patch(client: &Client, path: &str, body: Value) -> Result<Value> {
    send(client, Method::PATCH, path, &body).await?.map_err(anyhow::Error::msg)
}

async fn copied(client: &Client, text: &str) -> Result<()> {
    let data = json!({"config.yaml": text});
    seen(client, &copy(GAMES), "the copy to be the central one", |found| (found?["data"] == data).then_some(())).await
}

/// What `kubectl describe` shows of a set, once it shows these words.
async fn described(cluster: &Cluster, words: &str) -> Result<()> {
    until(&format!("the set to say {words}"), PATIENCE, || async {
        let output = cluster.kubectl(["describe", "sidecarset", "game"])?.output();
        let text = output.map(|it| String::from_utf8_lossy(&it.stdout).into_owned()).unwrap_or_default();
        Ok(if text.contains(words) { Look::Done(()) } else { Look::NotYet(text) })
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn ci_namespaces_get_and_lose_what_agents_need() -> Result<()> {
    let bed = Bed::start(Config::control_plane("agent-controller")).await?;
    let (cluster, client) = (bed.cluster(), install(&bed).await?);
    for object in [namespace(GAMES, "yes"), namespace("shop", "no"), config(GAME), agents::set("game")] {
        apply(&client, "e2e", &object).await?;
    }
    let manager = controller(cluster).await?;
    has_all(&client, GAMES).await?;
    has_none(&client, "shop").await?;
    let account = seen(&client, &places(GAMES)[1], "the account", |found| Some(found?.clone())).await?;
    assert_eq!(account["automountServiceAccountToken"], false);
    let role = seen(&client, &places(GAMES)[2], "the role", |found| Some(found?.clone())).await?;
    assert_eq!(
        role["rules"],
        json!([{"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},
            {"apiGroups": ["game.kruise.io"], "resources": ["gameservers"], "verbs": ["patch"]}])
    );
    assert_eq!(role["metadata"]["ownerReferences"][0]["name"], "pillion-agent-controller");
    let fence = "/api/v1/namespaces/pillion-system/configmaps/pillion-agent-policy-params";
    let lists = seen(&client, fence, "the lists of the fence", |found| found.map(|it| it["data"].clone())).await?;
    assert_eq!(lists["sidecar-config.values"], "Allocated\nNone");
    assert_eq!(lists["sidecar-config.target"], "game.kruise.io/gameservers");

    // A namespace that comes in, and goes out again.
    patch(&client, "/api/v1/namespaces/shop", json!({"metadata": {"labels": {"agents": "yes"}}})).await?;
    has_all(&client, "shop").await?;
    patch(&client, "/api/v1/namespaces/shop", json!({"metadata": {"labels": {"agents": "no"}}})).await?;
    has_none(&client, "shop").await?;

    // Whatever is done to it in the namespace is put right.
    patch(&client, &copy(GAMES), json!({"data": {"config.yaml": "plugins: []", "more": "x"}})).await?;
    patch(
        &client,
        &places(GAMES)[2],
        json!({"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]}),
    )
    .await?;
    send(&client, Method::DELETE, &places(GAMES)[1], &Value::Null).await?.map_err(anyhow::Error::msg)?;
    copied(&client, GAME).await?;
    let rules = role["rules"].clone();
    seen(&client, &places(GAMES)[2], "the role to be put right", |found| (found?["rules"] == rules).then_some(()))
        .await?;
    has_all(&client, GAMES).await?;
    patch(&client, &copy(GAMES), json!({"immutable": true})).await?;
    let other = GAME.replace("example.com/state", "example.com/phase");
    apply(&client, "e2e", &config(&other)).await?;
    copied(&client, &other).await?;

    // What cannot be given is told, and changes nothing.
    apply(&client, "e2e", &config("plugins: 1")).await?;
    described(cluster, "AgentConfigInvalid").await?;
    described(cluster, "PL502: configuration sidecar-config: line 1, column 10: plugins: must be a list").await?;
    copied(&client, &other).await?;
    apply(&client, "e2e", &config(&GAME.replace("/spec/opsState", "/spec/state"))).await?;
    described(cluster, "at /spec/state, which agent.targets does not list").await?;
    copied(&client, &other).await?;
    let kept = seen(&client, fence, "the lists of the fence", |found| found.map(|it| it["data"].clone())).await?;
    assert_eq!(kept["sidecar-config.labels"], "example.com/phase");
    apply(&client, "e2e", &config(GAME)).await?;
    copied(&client, GAME).await?;

    // A ConfigMap that a namespace has of its own stays, and the set says so.
    let own = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"mine": "1"},
        "metadata": {"name": "sidecar-config", "namespace": "shop"}});
    apply(&client, "e2e", &own).await?;
    patch(&client, "/api/v1/namespaces/shop", json!({"metadata": {"labels": {"agents": "yes"}}})).await?;
    described(cluster, "AgentObjectTaken").await?;
    let stays = seen(&client, &copy("shop"), "their own", |found| found.map(|it| it["data"].clone())).await?;
    assert_eq!(stays, json!({"mine": "1"}));

    send(&client, Method::DELETE, "/apis/apps.kruise.io/v1alpha1/sidecarsets/game", &Value::Null)
        .await?
        .map_err(anyhow::Error::msg)?;
    has_none(&client, GAMES).await?;
    seen(&client, fence, "the fence to forget", |found| found?.get("data").is_none().then_some(())).await?;
    manager.stop().await?;
    bed.stop().await?;
    Ok(())
}

fn deployment(name: &str, replicas: u32) -> Value {
    let template = pods::on_fleet(json!({"metadata": {"labels": {"agent": "yes", "of": name}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [pods::container("main", &[])]}}));
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": GAMES},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"of": name}}, "template": template}})
}

fn record(version: &str) -> Value {
    json!({"apiVersion": "pillion.dev/v1alpha1", "kind": "HotUpdate", "metadata": {"name": "deployment-arena", "namespace": GAMES},
        "spec": {"workload": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "arena"}, "version": version,
            "url": "https://files.example.com/rules", "sha256": "0".repeat(64)}})
}

/// The version a pod was asked for.
fn asked(pod: &Pod) -> Option<String> {
    let wanted: Value = serde_json::from_str(pod.annotations().get("pillion.dev/hot-update")?).ok()?;
    wanted["version"].as_str().map(str::to_owned)
}

/// Waits until the pods of a Deployment are as they should be.
async fn pods_until(
    client: &Client,
    of: &str,
    what: &str,
    holds: impl Fn(&BTreeMap<String, Pod>) -> bool,
) -> Result<BTreeMap<String, Pod>> {
    let api = Api::<Pod>::namespaced(client.clone(), GAMES);
    let waited = until(what, PATIENCE, || async {
        let pods = match api.list(&ListParams::default().labels(&format!("of={of}"))).await {
            Ok(pods) => pods.items,
            Err(error) => return Ok(Look::NotYet(error.to_string())),
        };
        let pods: BTreeMap<_, _> = pods.into_iter().map(|pod| (pod.name_any(), pod)).collect();
        let shown = || pods.iter().map(|(name, pod)| format!("{name}: {:?}", pod.annotations())).collect::<Vec<_>>();
        Ok(if holds(&pods) { Look::Done(pods.clone()) } else { Look::NotYet(shown().join("\n")) })
    });
    Ok(waited.await?)
}

fn told(pods: &BTreeMap<String, Pod>, version: &str) -> usize {
    pods.values().filter(|pod| asked(pod).as_deref() == Some(version)).count()
}

/// What the agent of a pod says, with its own token.
async fn says(cluster: &Cluster, pod: &Pod, version: &str, state: &str) -> Result<()> {
    let agent = client_of_pod(cluster, pod).await?;
    let result = json!({"version": version, "state": state, "message": "as told"}).to_string();
    let path = format!("/api/v1/namespaces/{GAMES}/pods/{}/status", pod.name_any());
    patch(&agent, &path, json!({"metadata": {"annotations": {"pillion.dev/hot-update-result": result}}})).await?;
    Ok(())
}

async fn status_until(
    client: &Client,
    what: &str,
    holds: impl Fn(&HotUpdateStatus) -> bool,
) -> Result<HotUpdateStatus> {
    let api = Api::<HotUpdate>::namespaced(client.clone(), GAMES);
    let waited = until(what, PATIENCE, || async {
        let status = api.get("deployment-arena").await.ok().and_then(|record| record.status).unwrap_or_default();
        Ok(if holds(&status) { Look::Done(status) } else { Look::NotYet(json!(status).to_string()) })
    });
    Ok(waited.await?)
}

/// Pods, done, failed, waiting.
fn counts(status: &HotUpdateStatus) -> [i32; 4] {
    [status.pods, status.done, status.failed, status.waiting].map(Option::unwrap_or_default)
}

/// In ci: `agent_update_own_bed` updates the pods of a workload on a real node.
#[tokio::test]
async fn nightly_what_is_asked_for_a_workload_reaches_its_pods_a_few_at_a_time() -> Result<()> {
    let bed = Bed::start(Config::control_plane("agent-update").with_fleet(Fleet::of(2))).await?;
    let (cluster, client) = (bed.cluster(), install(&bed).await?);
    for object in [namespace(GAMES, "yes"), config(GAME), agents::set("game")] {
        apply(&client, "e2e", &object).await?;
    }
    let webhook = Manager::ready(cluster, &["webhook"], &["--feature-gates=InPodAgent=true"]).await?;
    let manager = controller(cluster).await?;
    has_all(&client, GAMES).await?;
    for object in [deployment("arena", 5), deployment("lobby", 1)] {
        apply(&client, "e2e", &object).await?;
    }
    let is_agents = |pod: &Pod| {
        let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref());
        account == Some(ACCOUNT) && asked(pod).is_none()
    };
    pods_until(&client, "arena", "five pods with agents", |pods| pods.len() == 5 && pods.values().all(is_agents))
        .await?;

    // A quarter of five, rounded up, and the next ones when those are done.
    apply(&client, "e2e", &record("v1")).await?;
    let first = pods_until(&client, "arena", "two to be told", |pods| told(pods, "v1") == 2).await?;
    status_until(&client, "the record to count", |status| counts(status) == [5, 0, 0, 5]).await?;
    let (now, later): (Vec<_>, Vec<_>) = first.values().partition(|pod| asked(pod).is_some());
    says(cluster, now[0], "v1", "Working").await?;
    says(cluster, now[0], "v1", "Done").await?;
    pods_until(&client, "arena", "a third to be told", |pods| told(pods, "v1") == 3).await?;
    status_until(&client, "one to be done", |status| counts(status) == [5, 1, 0, 4]).await?;
    says(cluster, now[1], "v1", "Done").await?;
    let rest = pods_until(&client, "arena", "a fourth to be told", |pods| told(pods, "v1") == 4).await?;
    ensure!(later.iter().filter(|pod| asked(&rest[&pod.name_any()]).is_some()).count() == 2, "those that were not");

    // A new pod is told before it is, and others are left alone.
    apply(&client, "e2e", &deployment("arena", 6)).await?;
    let six = pods_until(&client, "arena", "a sixth pod", |pods| pods.len() == 6).await?;
    let new = six.values().find(|pod| !first.contains_key(&pod.name_any())).context("a sixth")?;
    assert_eq!(asked(new).as_deref(), Some("v1"));
    pods_until(&client, "lobby", "another workload to be left alone", |pods| told(pods, "v1") == 0).await?;

    // One that fails stops the rest, by name.
    let failing =
        rest.values().find(|pod| asked(pod).is_some() && !now.iter().any(|it| it.name_any() == pod.name_any()));
    let failing = failing.context("a pod that was told")?;
    says(cluster, failing, "v1", "Failed").await?;
    let stalled = status_until(&client, "the record to stall", |status| counts(status)[2] == 1).await?;
    let condition = stalled.conditions.iter().flatten().find(|it| it.type_ == "Stalled").context("a condition")?;
    let message = format!("PL513: pod {} failed: as told: ", failing.name_any());
    assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("True", "HotUpdateFailed"));
    ensure!(condition.message.starts_with(&message), "{}", condition.message);
    let results = format!("/api/v1/namespaces/{GAMES}/configmaps/sidecar-result");
    let said = |found: Option<&Value>, pod: &Pod| found?["data"][pod.name_any()].as_str().map(str::to_owned);
    let shown = seen(&client, &results, "the results", |found| {
        said(found, failing).filter(|text| text.contains("Failed")).and_then(|it| Some((it, said(found, now[0])?)))
    })
    .await?;
    assert_eq!(shown.0, r#"{"message":"as told","state":"Failed","version":"v1"}"#);
    assert_eq!(shown.1, r#"{"message":"as told","state":"Done","version":"v1"}"#);
    // For people to read: what they write there goes.
    patch(&client, &results, json!({"data": {"mine": "1"}})).await?;
    seen(&client, &results, "the results to be put right", |found| found?["data"].get("mine").is_none().then_some(()))
        .await?;

    // Another version begins anew, on all of them; when the pods are gone, so are their results.
    apply(&client, "e2e", &record("v2")).await?;
    let mut done = std::collections::BTreeSet::new();
    while done.len() < 6 {
        let is_next = |pod: &Pod| asked(pod).as_deref() == Some("v2") && !done.contains(&pod.name_any());
        let pods = pods_until(&client, "arena", "the next to be told", |pods| pods.values().any(is_next)).await?;
        let next: Vec<&Pod> = pods.values().filter(|pod| is_next(pod)).collect();
        ensure!(next.len() <= 2, "{} at a time", next.len());
        for pod in next {
            says(cluster, pod, "v2", "Done").await?;
            done.insert(pod.name_any());
        }
    }
    let status = status_until(&client, "all to be done", |status| counts(status) == [6, 6, 0, 0]).await?;
    let ready = status.conditions.iter().flatten().find(|it| it.type_ == "Ready").context("a condition")?;
    assert_eq!((ready.status.as_str(), ready.message.as_str()), ("True", "6 of 6 pods have the version"));
    apply(&client, "e2e", &deployment("arena", 0)).await?;
    seen(&client, &results, "the results to go with the pods", |found| found.is_none().then_some(())).await?;
    manager.stop().await?;
    webhook.stop().await?;
    bed.stop().await?;
    Ok(())
}
