//! `pillion render` and the cluster say the same: of what the webhook answers, byte for byte, and of what is stored.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::ByteString;
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, PostParams};
use pillion_api::{Meaning, SidecarSet, clashes, validate_write};
use pillion_e2e::finishing::AGENT;
use pillion_e2e::{Caller, Connection, Manager, programs};
use pillion_generators::{Form, Shape, admission_of, sidecar_sets_of};
use pillion_inject::fill_in;
use pillion_testbed::{Bed, Config, Look, apply, until};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config as RunnerConfig, RngSeed, TestRunner};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(30);

/// Render shows sidecars as with this gate on.
const FLAGS: [&str; 4] = ["--feature-gates", "SidecarFinish=true", "--agent-image", AGENT];

/// Sets, and pods with their namespaces.
struct Batch {
    sets: Vec<Value>,
    namespaces: BTreeMap<String, Value>,
    pods: Vec<Value>,
}

fn runner(seed: u64) -> TestRunner {
    TestRunner::new(RunnerConfig { rng_seed: RngSeed::Fixed(seed), ..RunnerConfig::default() })
}

fn drawn<S>(runner: &mut TestRunner, strategy: &S) -> Result<S::Value>
where
    S: Strategy,
    S::Value: Serialize + DeserializeOwned,
{
    let drawn = strategy.new_tree(runner).map_err(|reason| anyhow::anyhow!("nothing drawn: {reason}"))?.current();
    // YAML knows no difference between a whole number and one with a zero behind its point.
    Ok(serde_json::from_str(&json!(drawn).to_string().replace("1000000000.0", "1000000000"))?)
}

/// Leaves out the sets that the webhook rejects when they are written one after the other.
fn accepted(sets: Vec<Value>) -> Vec<Value> {
    let mut stored: Vec<Meaning> = Vec::new();
    let mut is_accepted = |set: &Value| {
        let validation = validate_write(set);
        let is_valid = validation.errors().next().is_none();
        let Some(meaning) = validation.meaning.filter(|_| is_valid) else { return false };
        let conflicts = clashes(&meaning, &stored).iter().any(|clash| clash.problem.is_error());
        if !conflicts {
            stored.push(meaning);
        }
        !conflicts
    };
    sets.into_iter().filter(|set| is_accepted(set)).collect()
}

impl Batch {
    fn draw(runner: &mut TestRunner, shape: Shape, sets: usize, pods: usize) -> Result<Self> {
        let mut sets = drawn(runner, &sidecar_sets_of(shape, sets))?;
        for set in &mut sets {
            // There are no revisions yet to pin.
            for strategy in ["injectStrategy", "injectionStrategy"] {
                set["spec"].as_object_mut().context("a set has a spec")?.remove(strategy);
            }
        }
        let sets = accepted(sets);
        let mut batch = Self { sets, namespaces: BTreeMap::new(), pods: Vec::new() };
        while batch.pods.len() < pods {
            let mut admission = drawn(runner, &admission_of(shape, 0))?;
            let namespace = admission.namespace;
            // The one the cluster has itself is not for us to change.
            if namespace.name == "kube-system" {
                continue;
            }
            let name = format!("pod-{}", batch.pods.len());
            admission.pod["metadata"]["name"] = name.into();
            admission.pod["metadata"]["namespace"] = namespace.name.clone().into();
            let object = json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": namespace.name, "labels": namespace.labels}});
            batch.namespaces.entry(namespace.name).or_insert(object);
            batch.pods.push(admission.pod);
        }
        Ok(batch)
    }

    /// What `pillion render` says about each pod.
    fn render(&self, folder: &Path) -> Result<Vec<Value>> {
        let file = |name: &str, objects: &mut dyn Iterator<Item = &Value>| -> Result<_> {
            let path = folder.join(name);
            let documents: Vec<String> = objects.map(ToString::to_string).collect();
            fs::write(&path, documents.join("\n---\n"))?;
            Ok(path)
        };
        let pods = file("pods.yaml", &mut self.pods.iter())?;
        let surroundings = file("sets.yaml", &mut self.sets.iter().chain(self.namespaces.values()))?;
        let output = Command::new(programs::path("pillion")?)
            .arg("render")
            .arg("-f")
            .arg(pods)
            .arg("-s")
            .arg(surroundings)
            .args(["-o", "json", "--agent-image", AGENT])
            .output()?;
        let rendered: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("render failed: {}", String::from_utf8_lossy(&output.stderr)))?;
        Ok(rendered["objects"].as_array().context("objects")?.clone())
    }

    /// Puts sets and namespaces into the cluster.
    async fn apply(&self, client: &Client) -> Result<()> {
        for object in self.namespaces.values().chain(&self.sets) {
            apply(client, "e2e", object).await?;
        }
        Ok(())
    }
}

fn review(pod: &Value) -> Vec<u8> {
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "00000000-0000-0000-0000-000000000001", "operation": "CREATE",
        "namespace": pod["metadata"]["namespace"], "resource": {"group": "", "version": "v1", "resource": "pods"},
        "object": pod}});
    review.to_string().into_bytes()
}

/// A set that tells when the webhook has heard of all that were written before it.
async fn until_heard(client: &Client, connection: &mut Connection, mark: &str) -> Result<()> {
    let set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "zz-heard"},
        "spec": {"selector": {"matchLabels": {"heard": mark}}, "containers": [{"name": "heard", "image": "heard:1"}]}});
    apply(client, "e2e", &set).await?;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "heard", "namespace": "default",
        "labels": {"heard": mark}}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}});
    let began = std::time::Instant::now();
    loop {
        let (_, answer) = connection.review_pod(review(&pod)).await?;
        // Other sets may want the pod as well, or refuse it.
        let audited = &serde_json::from_slice::<Value>(&answer)?["response"]["auditAnnotations"]["sets"];
        if audited.as_str().is_some_and(|sets| sets.contains("zz-heard=")) {
            return Ok(());
        }
        ensure!(began.elapsed() < PATIENCE, "the webhook does not hear of sets");
    }
}

/// What the handler must answer where render says this: the patch, or the refusal with every set that refused.
fn expected(rendered: &Value) -> Result<Value> {
    if rendered["admitted"] == true {
        let patch = rendered["patch"].as_array().context("patch")?;
        let patch = (!patch.is_empty()).then(|| ByteString(json!(patch).to_string().into_bytes()));
        return Ok(json!({"allowed": true, "patch": patch}));
    }
    Ok(json!({"allowed": false, "patch": null}))
}

/// In ci: `ci_render_and_the_cluster_say_the_same_of_thirty_pods`.
#[tokio::test]
async fn nightly_render_and_the_handler_say_the_same_of_thousands_of_pods() -> Result<()> {
    let bed = Bed::start(Config::control_plane("twin")).await?;
    let client = bed.client().await?;
    Manager::prepare(&client).await?;
    let manager = Manager::ready(bed.cluster(), &["webhook"], &FLAGS).await?;
    let caller = Caller::new(&client, manager.webhook()).await?;
    let folder = tempfile::tempdir()?;
    let mut counts = BTreeMap::<&str, usize>::new();
    let mut runner = runner(1);
    let batches: usize = env::var("PILLION_TWIN_BATCHES").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    for number in 0..batches {
        let batch = Batch::draw(&mut runner, Shape::default(), 20, 500)?;
        batch.apply(&client).await?;
        // The webhook closes a new connection on which nothing is asked within five seconds.
        let mut connection = caller.connect().await?;
        until_heard(&client, &mut connection, &number.to_string()).await?;
        let rendered = batch.render(folder.path())?;
        assert_eq!(rendered.len(), batch.pods.len());
        for (pod, rendered) in batch.pods.iter().zip(&rendered) {
            // Render says what the webhook does with what the API server makes of the pod first.
            let mut sent = pod.clone();
            fill_in(&mut sent, pod["metadata"]["namespace"].as_str().unwrap_or_default(), &[]);
            let (status, answer) = connection.review_pod(review(&sent)).await?;
            assert_eq!(status, 200, "{}", String::from_utf8_lossy(&answer));
            let answer: Value = serde_json::from_slice(&answer)?;
            let response = &answer["response"];
            let said = json!({"allowed": response["allowed"], "patch": response["patch"]});
            assert_eq!(said, expected(rendered)?, "of {pod}");
            let refusals = rendered["verdicts"].as_array().into_iter().flatten();
            for verdict in refusals.filter(|verdict| verdict["outcome"] == "refuse") {
                let part = format!(
                    "SidecarSet {}: {}: {}",
                    verdict["set"].as_str().unwrap_or_default(),
                    verdict["code"].as_str().unwrap_or_default(),
                    verdict["message"].as_str().unwrap_or_default()
                );
                let message = response["status"]["message"].as_str().unwrap_or_default();
                assert!(message.contains(&part) || message.ends_with('…'), "{message}\nlacks {part}");
            }
            let kind = match (&response["allowed"], &response["patch"]) {
                (Value::Bool(false), _) => "refused",
                (_, Value::String(_)) => "patched",
                _ => "untouched",
            };
            *counts.entry(kind).or_default() += 1;
        }
        let sets = Api::<DynamicObject>::all_with(client.clone(), &ApiResource::erase::<SidecarSet>(&()));
        sets.delete_collection(&DeleteParams::default(), &kube::api::ListParams::default()).await?;
    }
    // All three kinds of answers were met, often.
    let all = counts.values().sum::<usize>();
    assert_eq!(all, batches * 500);
    assert!(counts.len() == 3 && counts.values().all(|count| *count > all / 20), "{counts:?}");
    manager.stop().await?;
    bed.stop().await?;
    Ok(())
}

async fn create(client: &Client, pod: &Value) -> kube::Result<Value> {
    let kind = ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&());
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &kind);
    let object: DynamicObject = serde_json::from_value(pod.clone()).map_err(kube::Error::SerdeError)?;
    let parameters = PostParams { dry_run: true, ..PostParams::default() };
    let created = api.create(&parameters, &object).await?;
    serde_json::to_value(created).map_err(kube::Error::SerdeError)
}

/// The pod without what differs between two creations of the same one.
fn settled(mut pod: Value) -> Value {
    if let Some(metadata) = pod["metadata"].as_object_mut() {
        metadata.retain(|field, _| !["uid", "creationTimestamp", "managedFields"].contains(&field.as_str()));
    }
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let names =
        volumes.filter_map(|volume| volume["name"].as_str()).filter(|name| name.starts_with("kube-api-access-"));
    let names: BTreeSet<String> = names.map(str::to_owned).collect();
    let mut text = pod.to_string();
    for name in names {
        text = text.replace(&name, "kube-api-access-00000");
    }
    let mut pod: Value = serde_json::from_str(&text).expect("JSON with another name in it");
    // The API server mounts the token before it asks webhooks, so what they add comes after it.
    let spec = &mut pod["spec"];
    sort(&mut spec["volumes"], "name");
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            sort(&mut container["volumeMounts"], "mountPath");
        }
    }
    pod
}

fn sort(list: &mut Value, field: &str) {
    let key = |item: &Value| item[field].as_str().unwrap_or_default().to_owned();
    if let Some(list) = list.as_array_mut() {
        list.sort_by_key(key);
    }
}

#[tokio::test]
async fn ci_render_and_the_cluster_say_the_same_of_thirty_pods() -> Result<()> {
    render_and_the_cluster_say_the_same("stored-few", 5, 30).await
}

/// In ci: `ci_render_and_the_cluster_say_the_same_of_thirty_pods`, the first batches of the same draw.
#[tokio::test]
async fn nightly_render_and_the_cluster_say_the_same_of_two_hundred_pods() -> Result<()> {
    render_and_the_cluster_say_the_same("stored", 30, 200).await
}

/// Draws batches of pods and sets. At least so many pods must be stored by the API server as render shows them.
async fn render_and_the_cluster_say_the_same(name: &str, batches: usize, least: usize) -> Result<()> {
    let bed = Bed::start(Config::control_plane(name).with_controllers()).await?;
    let client = bed.client().await?;
    Manager::prepare(&client).await?;
    let manager = Manager::ready(bed.cluster(), &["webhook"], &FLAGS).await?;
    let caller = Caller::new(&client, manager.webhook()).await?;
    let folder = tempfile::tempdir()?;
    let shape = Shape { unknown_percent: 0, form: Form::Written, ..Shape::default() };
    let mut runner = runner(2);
    let mut compared = Vec::new();
    let mut refused_by_both = 0;
    // Most drawn pods are none that an API server takes.
    for number in 0..batches {
        let batch = Batch::draw(&mut runner, shape, 4, 60)?;
        batch.apply(&client).await?;
        for namespace in batch.namespaces.keys() {
            let accounts = Api::<k8s_openapi::api::core::v1::ServiceAccount>::namespaced(client.clone(), namespace);
            until("the default service account", PATIENCE, || async {
                Ok(match accounts.get_opt("default").await {
                    Ok(Some(_)) => Look::Done(()),
                    other => Look::NotYet(format!("{other:?}")),
                })
            })
            .await?;
        }
        until_heard(&client, &mut caller.connect().await?, &number.to_string()).await?;
        for (pod, rendered) in batch.pods.iter().zip(batch.render(folder.path())?) {
            match create(&client, pod).await {
                Ok(stored) => compared.push((pod.clone(), stored, rendered)),
                Err(kube::Error::Api(refusal)) if refusal.message.contains("pods.pillion.dev\" denied") => {
                    assert_eq!(rendered["admitted"], false, "{pod}: {}", refusal.message);
                    refused_by_both += 1;
                }
                // A pod, or what was added to it, that no API server takes.
                Err(kube::Error::Api(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let sets = Api::<DynamicObject>::all_with(client.clone(), &ApiResource::erase::<SidecarSet>(&()));
        sets.delete_collection(&DeleteParams::default(), &kube::api::ListParams::default()).await?;
    }
    // With nobody in between, the API server is given what render made. What it adds to any pod it adds to both.
    manager.stop().await?;
    let registrations =
        Api::<k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration>::all(client.clone());
    registrations.delete("pillion", &DeleteParams::default()).await?;
    let (mut same, mut injected) = (0, 0);
    for (pod, stored, rendered) in compared {
        assert_eq!(rendered["admitted"], true, "{pod}");
        let by_hand = until("the registration to be gone", PATIENCE, || async {
            Ok(match create(&client, &rendered["pod"]).await {
                Ok(created) => Look::Done(created),
                Err(error) => Look::NotYet(error.to_string()),
            })
        })
        .await?;
        assert_eq!(settled(stored.clone()), settled(by_hand), "of {pod}");
        same += 1;
        injected += usize::from(stored["metadata"]["labels"]["pillion.dev/injected"] == "true");
    }
    assert!(
        same >= least && injected >= least / 2,
        "compared {same}, {injected} of them injected, {refused_by_both} refused"
    );
    bed.stop().await?;
    Ok(())
}
