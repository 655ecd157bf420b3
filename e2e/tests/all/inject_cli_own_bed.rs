//! `pillion` against a real API server, with and without a manager.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use pillion_api::SidecarSet;
use pillion_e2e::manager::NAMESPACE;
use pillion_e2e::{Manager, pods, programs};
use pillion_testbed::{Bed, Cluster, Config, Look, apply, until};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(30);

/// What a call printed, and how it ended.
struct Said {
    status: i32,
    out: String,
    err: String,
}

impl Said {
    fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.out).with_context(|| format!("no JSON: {}{}", self.out, self.err))
    }

    /// Whether lines with these words, in this order, are in the output.
    fn has(&self, words: &str) -> bool {
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        flat(&self.out).contains(&flat(words))
    }
}

fn pillion(cluster: &Cluster, arguments: &[&str]) -> Result<Said> {
    let output = Command::new(programs::path("pillion")?)
        .args(arguments)
        .arg("--kubeconfig")
        .arg(cluster.kubeconfig())
        .env_remove("KUBECONFIG")
        .output()?;
    Ok(Said {
        status: output.status.code().context("it ends by itself")?,
        out: String::from_utf8(output.stdout)?,
        err: String::from_utf8(output.stderr)?,
    })
}

fn set(image: &str, container: &str) -> Value {
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "mesh"}, "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "containers": [{"name": container, "image": image, "resourcesPolicy": {"targetContainerMode": "sum",
            "resourceExpr": {"limits": {"cpu": "max(cpu*50%, 50m)"}, "requests": {"cpu": "cpu*10%"}}}}]}})
}

fn main_container(name: &str) -> Value {
    let mut container = pods::container(name, &[]);
    container["resources"] = json!({"limits": {"cpu": "400m"}});
    container
}

fn deployment(name: &str, containers: &[&str]) -> Value {
    let containers: Vec<Value> = containers.iter().map(|name| main_container(name)).collect();
    let mut template = pods::pod("", &[], &containers);
    template["metadata"] = json!({"labels": {"app": "web", "of": name}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"of": name}},
        "template": {"metadata": template["metadata"], "spec": template["spec"]}}})
}

async fn create_pod(client: &Client, name: &str, labels: Value) -> Result<Pod> {
    let mut pod = pods::pod(name, &[], &[main_container("main")]);
    pod["metadata"]["labels"] = labels;
    let api = Api::<Pod>::namespaced(client.clone(), "default");
    Ok(api.create(&PostParams::default(), &serde_json::from_value(pod)?).await?)
}

/// Pods can be made in a namespace once its account is there.
async fn until_usable(client: &Client) -> Result<()> {
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), "default");
    let waited = until("the default account", PATIENCE, || async {
        Ok(match accounts.get_opt("default").await {
            Ok(Some(_)) => Look::Done(()),
            other => Look::NotYet(format!("{other:?}")),
        })
    });
    Ok(waited.await?)
}

/// Waits until pods made by Deployments are there.
async fn until_made(client: &Client, count: usize) -> Result<()> {
    let api = Api::<Pod>::namespaced(client.clone(), "default");
    let waited = until("the pods of the Deployments", PATIENCE, || async {
        Ok(match api.list(&kube::api::ListParams::default().labels("of")).await {
            Ok(found) if found.items.len() == count => Look::Done(()),
            Ok(found) => Look::NotYet(format!("{} pods", found.items.len())),
            Err(error) => Look::NotYet(error.to_string()),
        })
    });
    Ok(waited.await?)
}

fn written(folder: &Path, set: &Value) -> Result<String> {
    let path = folder.join("set.json");
    fs::write(&path, set.to_string())?;
    Ok(path.display().to_string())
}

#[tokio::test]
async fn ci_a_cluster_without_a_manager_is_explained_and_surveyed() -> Result<()> {
    let bed = Bed::start(Config::control_plane("asked").with_controllers()).await?;
    let (client, cluster) = (bed.client().await?, bed.cluster());
    Manager::prepare(&client).await?;
    until_usable(&client).await?;
    create_pod(&client, "early", json!({"app": "web"})).await?;
    let made = apply(&client, "e2e", &set("registry.example/proxy:1", "proxy")).await?;
    let made = made.metadata.creation_timestamp.context("a set has an age")?.0;
    // Times of objects are whole seconds.
    until("the next second", PATIENCE, || async {
        let now = Timestamp::now();
        Ok(if now.as_second() > made.as_second() { Look::Done(()) } else { Look::NotYet(now.to_string()) })
    })
    .await?;
    create_pod(&client, "late", json!({"app": "web"})).await?;
    for (name, containers) in [("web", &["main"][..]), ("legacy", &["main", "agent"])] {
        apply(&client, "e2e", &deployment(name, containers)).await?;
    }
    until_made(&client, 4).await?;

    // A workload, decided as if its pods were created now.
    let said = pillion(cluster, &["why", "deploy/web"])?;
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    assert!(said.has("mesh inject PL201"), "{}", said.out);
    assert!(said.has("mesh/proxy limits.cpu = 200m max(cpu*50%, 50m) limits.cpu of main 400m"), "{}", said.out);
    // The API server copies the limit to the request before it asks us.
    assert!(said.has("mesh/proxy requests.cpu = 40m"), "{}", said.out);

    // Pods that are without: since before the set, or though it was there.
    for (name, status, words) in [("early", 0, "mesh predates PL411"), ("late", 1, "mesh missed PL213")] {
        let said = pillion(cluster, &["why", &format!("pod/{name}")])?;
        assert_eq!(said.status, status, "{}{}", said.out, said.err);
        assert!(said.has(words), "{}", said.out);
    }
    let said = pillion(cluster, &["why", "-l", "of", "-o", "json"])?;
    let objects = said.json()?["objects"].as_array().context("objects")?.clone();
    assert_eq!((said.status, objects.len()), (1, 4));
    assert!(objects.iter().all(|object| object["sets"][0]["code"] == "PL213"), "{}", said.out);
    let said = pillion(cluster, &["why", "pod/nobody"])?;
    assert_eq!((said.status, said.err.as_str()), (2, "error: there is no Pod default/nobody\n"));

    // What applying another image would do, and a container that one of the Deployments has.
    let folder = tempfile::tempdir()?;
    let file = written(folder.path(), &set("registry.example/proxy:2", "proxy"))?;
    let said = pillion(cluster, &["diff", "-f", &file, "-o", "json"])?;
    let found = said.json()?["sets"][0].clone();
    assert_eq!(said.status, 0, "{}", said.err);
    assert_eq!(found["state"], "changed");
    assert_eq!((&found["pods"]["changes"], &found["templates"]["changes"]), (&json!(6), &json!(2)), "{found}");
    let file = written(folder.path(), &set("registry.example/proxy:1", "agent"))?;
    let said = pillion(cluster, &["diff", "-f", &file])?;
    assert_eq!(said.status, 1, "{}{}", said.out, said.err);
    assert!(said.has("would be refused 2 1"), "{}", said.out);
    let refused = "Deployment default/legacy: the pod has a container agent of its own [PL306]";
    assert!(said.has(refused), "{}", said.out);

    switches(&client, cluster).await?;

    // Nobody answers, and that is what the check says.
    let said = pillion(cluster, &["check", "-o", "json"])?;
    assert_eq!(said.status, 1, "{}{}", said.out, said.err);
    let checks = said.json()?["checks"].as_array().context("checks")?.clone();
    let status = |name: &str| checks.iter().find(|check| check["check"] == name).map(|check| check["status"].clone());
    for (name, expected) in [
        ("kubernetes", "ok"),
        ("clock", "ok"),
        ("definition", "ok"),
        ("sets", "ok"),
        ("pod webhook", "fail"),
        ("reached", "fail"),
    ] {
        assert_eq!(status(name), Some(json!(expected)), "{name}: {}", said.out);
    }
    bed.stop().await?;
    Ok(())
}

/// Off and on, with nothing that runs.
async fn switches(client: &Client, cluster: &Cluster) -> Result<()> {
    let switch = Api::<ConfigMap>::namespaced(client.clone(), NAMESPACE);
    let value = async || {
        let found = switch.get_opt("pillion-switch").await?;
        anyhow::Ok(found.and_then(|map| map.data?.get("injection").cloned()))
    };
    let said = pillion(cluster, &["off", "--dry-run"])?;
    assert_eq!((said.status, said.out.as_str()), (0, "configmap/pillion-switch created (dry run)\n"));
    assert_eq!(value().await?, None);
    let said = pillion(cluster, &["off"])?;
    assert_eq!((said.status, said.out.as_str()), (0, "configmap/pillion-switch created\n"));
    assert_eq!(value().await?.as_deref(), Some("off"));
    // What is switched off says so.
    let said = pillion(cluster, &["why", "deploy/web"])?;
    assert!(said.status == 0 && said.has("mesh skip PL210"), "{}", said.out);
    let said = pillion(cluster, &["off"])?;
    assert_eq!((said.status, said.out.as_str()), (0, ""));
    let said = pillion(cluster, &["on"])?;
    assert_eq!((said.status, said.out.as_str()), (0, "configmap/pillion-switch patched\n"));
    assert!(said.err.contains("the webhooks come back when one does"), "{}", said.err);
    assert_eq!(value().await?, None);

    let sets = Api::<SidecarSet>::all(client.clone());
    for (verb, paused) in [("off", true), ("on", false)] {
        let said = pillion(cluster, &[verb, "--set", "mesh"])?;
        assert_eq!((said.status, said.out.as_str()), (0, "sidecarset/mesh patched\n"), "{}", said.err);
        let spec = serde_json::to_value(sets.get("mesh").await?.spec)?;
        assert_eq!(spec["injectStrategy"]["paused"], paused);
        assert_eq!(spec["updateStrategy"]["paused"], paused);
        // The command that is printed does the same as the verb did: nothing is left to do.
        let line = said.err.lines().find(|line| line.trim_start().starts_with("kubectl")).context("a command")?;
        let words = line.trim().trim_start_matches("kubectl ").replace(" -p '", "\u{1}").replace('\'', "");
        let (flags, patch) = words.split_once('\u{1}').context("a patch")?;
        let output = cluster.kubectl(flags.split(' ').chain(["-p", patch]))?.output()?;
        ensure!(String::from_utf8_lossy(&output.stdout).contains("(no change)"), "{output:?}");
    }
    Ok(())
}

#[tokio::test]
async fn ci_a_cluster_with_a_manager_is_well_and_can_be_switched_off() -> Result<()> {
    let bed = Bed::start(Config::control_plane("checked").with_controllers()).await?;
    let (client, cluster) = (bed.client().await?, bed.cluster());
    Manager::prepare(&client).await?;
    until_usable(&client).await?;
    let manager = Manager::ready(cluster, &["webhook"], &[]).await?;
    apply(&client, "e2e", &set("registry.example/proxy:1", "proxy")).await?;
    let injected = until("a pod to be injected", PATIENCE, || async {
        let name = format!("web-{}", Timestamp::now().as_microsecond());
        Ok(match create_pod(&client, &name, json!({"app": "web"})).await {
            Ok(pod) if pod.labels().contains_key("pillion.dev/injected") => Look::Done(name),
            other => Look::NotYet(format!("{:?}", other.map(|pod| pod.labels().clone()))),
        })
    })
    .await?;

    // The record that the real webhook wrote, with its arithmetic.
    let said = pillion(cluster, &["why", &format!("pod/{injected}")])?;
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    assert!(said.has("decided at creation") && said.has("mesh inject PL201"), "{}", said.out);
    assert!(said.has("mesh/proxy limits.cpu = 200m max(cpu*50%, 50m) where the targets come to 400m"), "{}", said.out);

    let said = pillion(cluster, &["check"])?;
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    for words in ["ok pod webhook", "ok set webhook", "ok authority", "ok trust", "ok reached"] {
        assert!(said.has(words), "{words}: {}", said.out);
    }

    // Off stops it at once and for good; on brings it back.
    let mutating = Api::<MutatingWebhookConfiguration>::all(client.clone());
    let count = async || anyhow::Ok(mutating.get("pillion").await?.webhooks.map_or(0, |it| it.len()));
    let said = pillion(cluster, &["off"])?;
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    assert_eq!(count().await?, 0);
    let said = pillion(cluster, &["check"])?;
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    assert!(said.has("warn switch injection is switched off"), "{}", said.out);
    let said = pillion(cluster, &["on"])?;
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    until("the webhooks to come back", PATIENCE, || async {
        Ok(match count().await {
            Ok(2) => Look::Done(()),
            other => Look::NotYet(format!("{other:?}")),
        })
    })
    .await?;

    // A manager that is gone is noticed, though every object of it is there still.
    until("the API server to hear of them", PATIENCE, || async {
        let said = pillion(cluster, &["check"]);
        Ok(match said {
            Ok(said) if said.status == 0 => Look::Done(()),
            other => Look::NotYet(other.map_or_else(|error| error.to_string(), |said| said.out)),
        })
    })
    .await?;
    manager.kill()?;
    let said = pillion(cluster, &["check"])?;
    assert_eq!(said.status, 1, "{}{}", said.out, said.err);
    assert!(said.has("fail reached"), "{}", said.out);
    // A set cannot be changed unchecked, and the way out is told; all of it can be switched off.
    let said = pillion(cluster, &["off", "--set", "mesh"])?;
    assert_eq!(said.status, 3, "{}{}", said.out, said.err);
    assert!(said.err.contains("`pillion off` without --set does not need it"), "{}", said.err);
    let said = pillion(cluster, &["off"])?;
    assert_eq!(
        said.out, "configmap/pillion-switch patched\nmutatingwebhookconfiguration/pillion patched\n",
        "{}",
        said.err
    );
    assert_eq!(count().await?, 0);
    bed.stop().await?;
    Ok(())
}

/// Set to write what commands print into the page, instead of comparing.
const UPDATE: &str = "UPDATE_FIXTURES";

/// Runs a command of the page as a reader would, in the root of the repository.
fn run_as_reader(cluster: &Cluster, root: &Path, command: &str) -> Result<String> {
    let kubectl = cluster.kubectl([""; 0])?;
    let folders = [programs::path("pillion")?, PathBuf::from(kubectl.get_program())];
    let folders = folders.iter().filter_map(|program| program.parent()).map(|folder| folder.display().to_string());
    let path = folders.chain(std::env::var("PATH")).collect::<Vec<_>>().join(":");
    let output = Command::new("sh")
        .args(["-c", &format!("{{ {command}\n}} 2>&1")])
        .current_dir(root)
        .env("PATH", path)
        .env("KUBECONFIG", cluster.kubeconfig())
        .output()?;
    Ok(String::from_utf8(output.stdout)?)
}

#[tokio::test]
async fn ci_the_page_shows_what_is_printed() -> Result<()> {
    let bed = Bed::start(Config::control_plane("page").with_controllers()).await?;
    let (client, cluster) = (bed.client().await?, bed.cluster());
    Manager::prepare(&client).await?;
    let manager = Manager::ready(cluster, &["webhook"], &[]).await?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let file = root.join("docs/ask-a-cluster.md");
    let page = fs::read_to_string(&file)?;

    let (mut written, mut commands) = (String::new(), 0);
    let mut inside = false;
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        written.extend([line, "\n"]);
        if line.starts_with("```") {
            inside = line == "```console";
        }
        let Some(command) = line.strip_prefix("$ ").filter(|_| inside) else { continue };
        commands += 1;
        let mut expected = String::new();
        while let Some(next) = lines.next_if(|next| !next.starts_with("$ ") && !next.starts_with("```")) {
            expected.extend([next, "\n"]);
        }
        // Controllers need a moment to make pods, and the webhook to hear of sets. What writes is written once.
        let is_repeatable = command.contains("pillion why") || command.contains("pillion diff");
        let is_update = std::env::var_os(UPDATE).is_some();
        let printed = until(command, PATIENCE, || async {
            Ok(match run_as_reader(cluster, &root, command) {
                Ok(printed) if is_update && !printed.starts_with("error: ") => Look::Done(printed),
                Ok(printed) if printed == expected || !is_repeatable => Look::Done(printed),
                Ok(printed) => Look::NotYet(printed),
                Err(error) => Look::NotYet(error.to_string()),
            })
        })
        .await?;
        assert!(is_update || printed == expected, "{command} printed\n{printed}");
        written.push_str(&printed);
    }
    assert_eq!(commands, 12, "commands on the page");
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&file, written)?;
    }
    manager.stop().await?;
    bed.stop().await?;
    Ok(())
}
