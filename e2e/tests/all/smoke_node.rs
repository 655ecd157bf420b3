//! What the real node does with sidecars: order, image swap, resize, Jobs, logs, exec, shared processes, network.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Output;
use std::thread;

use anyhow::{Context, Result};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ListParams, Patch, PatchParams};
use pillion_e2e::{Scene, pods};
use pillion_testbed::Look;
use serde_json::{Value, json};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn ended(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), text(&output.stdout))
}

fn restarts(pod: &Pod, container: &str) -> Option<i32> {
    pods::status(pod, container).map(|status| status.restart_count)
}

fn container_id(pod: &Pod, container: &str) -> Option<String> {
    pods::status(pod, container)?.container_id.clone()
}

fn started_at(pod: &Pod, container: &str) -> Option<Timestamp> {
    Some(pods::status(pod, container)?.state.as_ref()?.running.as_ref()?.started_at.as_ref()?.0)
}

#[tokio::test]
async fn ci_a_native_sidecar_is_started_before_the_app_is() -> Result<()> {
    let scene = Scene::open("order").await?;
    let mut side = pods::sidecar("side", &["--port=8080", "--ready-after=2s"]);
    side["startupProbe"] = json!({"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1});
    scene.apply(pods::pod("ordered", &[side], &[pods::container("app", &[])])).await?;

    let early = scene.pod_until("ordered", "to run its sidecar", |pod| pods::runs(pod, "side")).await?;
    assert_eq!(pods::status(&early, "side").context("side")?.started, Some(false));
    assert_eq!(pods::waits_for(&early, "app").as_deref(), Some("PodInitializing"));
    assert!(!pods::is_ready(&early));

    let late = scene.pod_until("ordered", "to be Ready", pods::is_ready).await?;
    assert_eq!(pods::status(&late, "side").context("side")?.started, Some(true));
    let (side, app) = (started_at(&late, "side").context("side")?, started_at(&late, "app").context("app")?);
    // Times have whole seconds; the sidecar answers its probe two seconds after its start.
    assert!(app.duration_since(side).as_secs() >= 1, "app {app} did not wait for side {side}");
    scene.close().await?;
    Ok(())
}

#[tokio::test]
async fn ci_an_image_patch_restarts_only_the_sidecar() -> Result<()> {
    let scene = Scene::open("swap").await?;
    let containers = [pods::container("app", &["--port=8081"])];
    let before = scene.ready_pod(pods::pod("swapped", &[pods::sidecar("side", &["--port=8080"])], &containers)).await?;
    assert_eq!(scene.state("swapped", "side", 8080)?["version"], "v1");

    let patch: Value = json!([
        {"op": "test", "path": "/spec/initContainers/0/name", "value": "side"},
        {"op": "replace", "path": "/spec/initContainers/0/image", "value": pods::V2}]);
    let patch: Patch<()> = Patch::Json(serde_json::from_value(patch)?);
    scene.api::<Pod>().patch("swapped", &PatchParams::default(), &patch).await?;
    let after = scene
        .pod_until("swapped", "to run the new sidecar", |pod| {
            restarts(pod, "side") == Some(1) && pods::runs(pod, "side") && pods::is_ready(pod)
        })
        .await?;

    assert_eq!(restarts(&after, "app"), Some(0));
    assert_eq!(container_id(&after, "app"), container_id(&before, "app"));
    assert_ne!(container_id(&after, "side"), container_id(&before, "side"));
    assert_eq!(scene.state("swapped", "side", 8080)?["version"], "v2");
    assert_eq!(scene.state("swapped", "app", 8081)?["version"], "v1");
    scene.close().await?;
    Ok(())
}

#[tokio::test]
async fn ci_a_resize_changes_the_sidecars_cgroup_without_a_restart() -> Result<()> {
    let scene = Scene::open("resize").await?;
    let mut side = pods::sidecar("side", &["--port=8080"]);
    side["resources"] =
        json!({"requests": {"cpu": "50m", "memory": "32Mi"}, "limits": {"cpu": "100m", "memory": "64Mi"}});
    let before = scene.ready_pod(pods::pod("resized", &[side], &[pods::container("app", &[])])).await?;
    let cgroup = |memory: u64, cpu: u64| json!({"memoryLimitBytes": memory, "cpuQuotaMillicores": cpu});
    assert_eq!(scene.state("resized", "side", 8080)?["cgroup"], cgroup(64 << 20, 100));

    let patch = json!({"spec": {"initContainers": [
        {"name": "side", "resources": {"limits": {"cpu": "200m", "memory": "96Mi"}}}]}});
    let pods_api = scene.api::<Pod>();
    pods_api.patch_subresource("resize", "resized", &PatchParams::default(), &Patch::Strategic(patch)).await?;
    let after = scene
        .pod_until("resized", "to have its new limits", |pod| {
            let status = pods::status(pod, "side").and_then(|status| status.resources.as_ref());
            status.and_then(|resources| resources.limits.as_ref()).is_some_and(|limits| limits["memory"].0 == "96Mi")
        })
        .await?;

    assert_eq!(scene.state("resized", "side", 8080)?["cgroup"], cgroup(96 << 20, 200));
    assert_eq!((restarts(&after, "side"), restarts(&after, "app")), (Some(0), Some(0)));
    assert_eq!(container_id(&after, "side"), container_id(&before, "side"));
    scene.close().await?;
    Ok(())
}

#[tokio::test]
async fn ci_a_job_completes_with_a_native_sidecar_and_not_with_a_plain_second_container() -> Result<()> {
    let scene = Scene::open("jobs").await?;
    let job = |name: &str, sidecars: &[Value], containers: &[Value]| {
        let mut template = pods::pod(name, sidecars, containers);
        template["spec"]["restartPolicy"] = "Never".into();
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
               "spec": {"template": {"spec": template["spec"]}}})
    };
    let app = pods::container("app", &["--exit-after=1s"]);
    scene.apply(job("native", &[pods::sidecar("side", &[])], std::slice::from_ref(&app))).await?;
    scene.apply(job("plain", &[], &[app, pods::container("side", &[])])).await?;

    let complete = |job: &Job| {
        let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.into_iter().flatten().any(|condition| condition.type_ == "Complete" && condition.status == "True")
    };
    let look = |job: &Job| if complete(job) { Look::Done(()) } else { Look::NotYet(json!(job.status).to_string()) };
    scene.until("native", "to complete", look).await?;

    // The plain one has had its chance when its app has been over for longer than the other Job took to complete.
    let pods_of_job = ListParams::default().labels("job-name=plain");
    let plain = scene.api::<Pod>().list(&pods_of_job).await?.items.remove(0).metadata.name.context("name")?;
    let chance_seconds = 8;
    let pod = scene
        .pod_until(&plain, "to have had its chance", |pod| {
            let state = pods::status(pod, "app").and_then(|status| status.state.as_ref());
            let end = state.and_then(|state| state.terminated.as_ref()).and_then(|end| end.finished_at.as_ref());
            end.is_some_and(|end| Timestamp::now().duration_since(end.0).as_secs() >= chance_seconds)
        })
        .await?;
    assert_eq!(pod.status.context("status")?.phase.as_deref(), Some("Running"));
    let status = scene.api::<Job>().get("plain").await?.status.context("status")?;
    assert_eq!((status.active, status.ready, status.succeeded), (Some(1), Some(0), None));
    scene.close().await?;
    Ok(())
}

#[tokio::test]
async fn ci_logs_and_exec_work_through_the_api_server() -> Result<()> {
    let scene = Scene::open("logs").await?;
    scene.ready_pod(pods::pod("talker", &[pods::sidecar("side", &[])], &[pods::container("app", &[])])).await?;
    let logs = scene.kubectl(&["logs", "talker", "--container=side"])?;
    assert_eq!(ended(&logs), (Some(0), "started name=side version=v1\n".to_owned()));
    let exec = scene.kubectl(&["exec", "talker", "--container=app", "--", "/testapp", "echo-exit", "7", "seven"])?;
    assert_eq!(ended(&exec), (Some(7), "seven\n".to_owned()));
    scene.close().await?;
    Ok(())
}

#[tokio::test]
async fn ci_with_shared_processes_a_sidecar_can_signal_its_neighbour() -> Result<()> {
    let scene = Scene::open("signal").await?;
    let app = pods::container("app", &["--port=8081", "--write=/tmp/watched=first", "--watch-file=/tmp/watched"]);
    let mut pod = pods::pod("shared", &[pods::sidecar("side", &[])], &[app]);
    pod["spec"]["shareProcessNamespace"] = true.into();
    scene.ready_pod(pod).await?;
    assert_eq!(scene.state("shared", "app", 8081)?["reloads"], 0);

    let signal = ["/testapp", "signal", "--name=--watch-file", "--signal=HUP"];
    let exec = scene.kubectl(&[&["exec", "shared", "--container=side", "--"], &signal[..]].concat())?;
    assert_eq!(exec.status.code(), Some(0), "{}", text(&exec.stderr));
    scene
        .until("shared", "to have reloaded", |_: &Pod| match scene.state("shared", "app", 8081) {
            Ok(state) if state["reloads"] == 1 => Look::Done(()),
            other => Look::NotYet(format!("{other:?}")),
        })
        .await?;
    assert_eq!(scene.state("shared", "app", 8081)?["signals"], json!(["HUP"]));
    scene.close().await?;
    Ok(())
}

#[tokio::test]
async fn ci_a_pod_reaches_the_api_server_and_the_hosts_side() -> Result<()> {
    let scene = Scene::open("network").await?;
    scene.ready_pod(pods::pod("caller", &[], &[pods::container("app", &[])])).await?;
    let probe = |url: &str| scene.kubectl(&["exec", "caller", "--", "/testapp", "probe", url]);

    // Plain HTTP to the TLS port: the API server's own refusal shows that the Service address leads to it.
    let api = probe("http://10.96.0.1:443/")?;
    assert!(text(&api.stdout).contains("Client sent an HTTP request to an HTTPS server"), "{api:?}");

    let listener = TcpListener::bind((scene.cluster.host(), 0))?;
    let address = listener.local_addr()?;
    let server = thread::spawn(move || -> Result<()> {
        let (mut connection, _) = listener.accept()?;
        // The whole request: closing with unread bytes would reset the connection and lose the answer.
        let request = BufReader::new(connection.try_clone()?).lines();
        for line in request {
            if line?.is_empty() {
                break;
            }
        }
        connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")?;
        Ok(())
    });
    assert_eq!(ended(&probe(&format!("http://{address}/"))?), (Some(0), "hello".to_owned()));
    server.join().expect("the server thread does not panic")?;
    scene.close().await?;
    Ok(())
}
