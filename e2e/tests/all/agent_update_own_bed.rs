//! Files brought into running pods by an agent: story 2 of the proposal, on a real node.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams};
use pillion_e2e::agent_pods::{Agents, app_deployment};
use pillion_e2e::file_server::FileServer;
use pillion_e2e::pods;
use pillion_e2e::programs::pillion;
use pillion_testbed::{Bed, Config, Look, until};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const PATIENCE: Duration = Duration::from_mins(2);
/// Where the app reads its file.
const FILE: &str = "/game/level.txt";

fn config(files: &FileServer) -> String {
    format!(
        r#"
plugins:
  - name: hot_update
    config:
      fileDir: /game
      fileName: level.txt
      loadPatchType: signal
      signal: {{processName: "/testapp run --name app", signalName: SIGHUP}}
      check: {{url: "http://127.0.0.1:8080/state", contains: "level {{version}}", timeout: 5}}
      sources:
        - {{prefix: "{}", caFile: /etc/pillion/sources/ca.crt, allowPrivate: true}}
      storageConfig:
        type: InKube
        inKube: {{annotationKey: sidecar.example.com/hot-update-result}}
"#,
        files.url("/levels/")
    )
}

fn outcome(pod: &Pod) -> Value {
    let text = pod.annotations().get("pillion.dev/hot-update-result").map_or("null", String::as_str);
    serde_json::from_str(text).unwrap_or_default()
}

fn restarts(pod: &Pod) -> i32 {
    let count = |container: &str| pods::status(pod, container).map_or(-1, |status| status.restart_count);
    count("app") + count("pillion-agent")
}

#[tokio::test]
async fn ci_a_file_is_updated_in_running_pods_and_a_bad_one_is_taken_back() -> Result<()> {
    let bed = Bed::start(Config::control_plane("agent-update").with_node()).await?;
    let agents = Agents::start(&bed).await?;
    let scene = &agents.scene;
    let files = FileServer::serve(bed.cluster().host()).await?;
    scene
        .apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "level-source"},
            "stringData": {"ca.crt": files.certificate}}))
        .await?;
    agents.install(&config(&files), "game", &["--secret", "level-source=/etc/pillion/sources"]).await?;
    for app in ["game", "other"] {
        scene.apply(app_deployment(app, 2, &["--watch-file", FILE])).await?;
        agents.until_ready(app, 2).await?;
    }

    let ask = |version: &str, content: &str| -> Result<()> {
        let path = format!("/levels/{version}/level.txt");
        files.put(&path, content.to_owned());
        let digest = sha256(content);
        let kubeconfig = bed.cluster().kubeconfig().display().to_string();
        let url = files.url(&path);
        let flags = ["agent", "update", "deploy/game", "--namespace", &scene.namespace, "--kubeconfig", &kubeconfig];
        pillion(&[&flags[..], &["--version", version, "--url", &url, "--sha256", &digest]].concat(), "")?;
        Ok(())
    };
    let all_say = async |version: &str, state: &str, current: &str, count: usize| -> Result<Vec<Pod>> {
        let what = format!("{count} pods to be {state} with {version}");
        let found = until(&what, PATIENCE, || async {
            Ok(match agents.pods("game").await {
                Ok(pods)
                    if pods.len() == count
                        && pods.iter().all(|pod| {
                            let said = outcome(pod);
                            said["version"] == version && said["state"] == state && said["current"] == current
                        }) =>
                {
                    Look::Done(pods)
                }
                Ok(pods) => Look::NotYet(json!(pods.iter().map(outcome).collect::<Vec<_>>()).to_string()),
                Err(error) => Look::NotYet(error.to_string()),
            })
        });
        Ok(found.await?)
    };

    ask("v2", "level v2\n")?;
    let updated = all_say("v2", "Done", "v2", 2).await?;
    for pod in &updated {
        let state = scene.state(&pod.name_any(), "app", 8080)?;
        assert_eq!(
            (&state["file"], &state["reloads"], &state["signals"]),
            (&json!("level v2\n"), &json!(1), &json!(["HUP"]))
        );
        assert_eq!(restarts(pod), 0, "{}", pod.name_any());
        assert!(pod.annotations().contains_key("sidecar.example.com/hot-update-result"));
    }

    // The app shares user and processes with the agent, and still cannot reach its token.
    let name = updated.last().context("a pod")?.name_any();
    let look = |path: &str| scene.kubectl(&["exec", &name, "--container", "app", "--", "/testapp", "cat", path]);
    let token = "var/run/secrets/pillion.dev/agent/token";
    let processes = 1..64;
    let tried: Vec<String> = processes
        .map(|pid| Ok(String::from_utf8(look(&format!("/proc/{pid}/root/{token}"))?.stderr)?))
        .collect::<Result<_>>()?;
    assert!(tried.iter().any(|said| said.contains("Permission denied")), "the agent was not among them: {tried:?}");
    assert!(tried.iter().all(|said| said.contains("os error")), "a token was read: {tried:?}");

    // More pods, and one that is made again: the version is in place before they are Ready.
    let deployments = scene.api::<k8s_openapi::api::apps::v1::Deployment>();
    deployments.patch("game", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 4}}))).await?;
    let gone = updated.first().context("a pod")?.name_any();
    scene.api::<Pod>().delete(&gone, &DeleteParams::default()).await?;
    let ready = agents.until_ready("game", 4).await?;
    for pod in &ready {
        let name = pod.name_any();
        assert_eq!(scene.state(&name, "app", 8080)?["file"], "level v2\n", "{name}");
    }
    assert!(!ready.iter().any(|pod| pod.name_any() == gone));

    // The app does not take this one.
    ask("v3", "garbage\n")?;
    let stalled = until("an update to fail", PATIENCE, || async {
        Ok(match agents.pods("game").await {
            Ok(pods) => match pods.iter().find(|pod| outcome(pod)["state"] == "Failed") {
                Some(pod) => Look::Done(pod.clone()),
                None => Look::NotYet(json!(pods.iter().map(outcome).collect::<Vec<_>>()).to_string()),
            },
            Err(error) => Look::NotYet(error.to_string()),
        })
    })
    .await?;
    assert_eq!((&outcome(&stalled)["version"], &outcome(&stalled)["current"]), (&json!("v3"), &json!("v2")));
    assert_eq!(scene.state(&stalled.name_any(), "app", 8080)?["file"], "level v2\n");
    // The others were not asked.
    let asked = agents.pods("game").await?;
    assert_eq!(asked.iter().filter(|pod| outcome(pod)["version"] == "v3").count(), 1);

    ask("v4", "level v4\n")?;
    for pod in all_say("v4", "Done", "v4", 4).await? {
        assert_eq!(restarts(&pod), 0, "{}", pod.name_any());
    }
    // A workload that nobody asked for anything.
    for pod in agents.pods("other").await? {
        assert!(!pod.annotations().keys().any(|key| key.starts_with("pillion.dev/hot-update")), "{}", pod.name_any());
    }
    Ok(())
}

fn sha256(content: &str) -> String {
    format!("{:x}", Sha256::digest(content.as_bytes()))
}
