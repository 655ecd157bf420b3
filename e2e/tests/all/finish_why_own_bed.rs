//! `pillion why job/x` on a cluster: what it says of a Job that does not finish, and that the command it gives mends it.

use std::env;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use pillion_e2e::finishing::{Finishing, Mode, container};
use pillion_e2e::{pods, programs};
use pillion_testbed::{Bed, Cluster, Config, Look};
use serde_json::{Value, json};

/// A shell that has our programs and those of the bed, and the cluster's kubeconfig.
fn shell(cluster: &Cluster, line: &str) -> Result<Output> {
    let kubectl = cluster.kubectl([""; 0])?;
    let folders = [Path::new(kubectl.get_program()), &programs::path("pillion")?]
        .map(|program| program.parent().map(Path::to_path_buf).unwrap_or_default());
    let path = env::join_paths(folders.into_iter().chain(env::split_paths(&env::var_os("PATH").unwrap_or_default())))?;
    let mut command = Command::new("sh");
    command.args(["-c", line]).env("PATH", path).env("KUBECONFIG", cluster.kubeconfig());
    Ok(command.output()?)
}

/// Runs the command that was given.
fn mend(cluster: &Cluster, said: &str) -> Result<()> {
    let fix = said.lines().find_map(|line| line.trim().strip_prefix("fix ")).context("a command")?.trim();
    let output = shell(cluster, fix)?;
    assert!(output.status.success(), "{fix}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn job(name: &str, containers: &[Value]) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": {"spec": {
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 2, "containers": containers}}}})
}

fn completed(job: &Job) -> Look<()> {
    let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut done = conditions.filter(|it| it.type_ == "Complete" && it.status == "True");
    if done.next().is_some() { Look::Done(()) } else { Look::NotYet(json!(job.status).to_string()) }
}

async fn until_pod(finishing: &Finishing, job: &str, what: &str, holds: impl Fn(&Pod) -> bool) -> Result<()> {
    let ours = ListParams::default().labels(&format!("job-name={job}"));
    let api = finishing.scene.api::<Pod>();
    let waited = pillion_testbed::until(what, std::time::Duration::from_mins(1), || async {
        Ok(match api.list(&ours).await {
            Ok(pods) if pods.items.first().is_some_and(&holds) => Look::Done(()),
            Ok(pods) => Look::NotYet(json!(pods.items.first().map(|pod| &pod.status)).to_string()),
            Err(error) => Look::NotYet(error.to_string()),
        })
    });
    Ok(waited.await?)
}

#[tokio::test]
async fn ci_a_job_that_does_not_finish_is_explained_and_the_command_mends_it() -> Result<()> {
    let bed = Bed::start(Config::control_plane("why-job").with_node()).await?;
    let finishing = Finishing::start(&bed, Mode::Native).await?;
    let cluster = bed.cluster();
    let why = |job: &str| -> Result<(Option<i32>, String)> {
        let output = shell(cluster, &format!("pillion why job/{job} -n {}", finishing.scene.namespace))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8(output.stdout)?;
        Ok((output.status.code(), said))
    };

    // A sidecar that nobody marked.
    let containers = [container("work", &["--exit-after=1s"]), container("logs", &[])];
    finishing.scene.apply(job("import", &containers)).await?;
    let worked = |pod: &Pod| {
        let state = pods::status(pod, "work").and_then(|status| status.state.as_ref());
        state.is_some_and(|state| state.terminated.is_some()) && pods::runs(pod, "logs")
    };
    until_pod(&finishing, "import", "its work to be done", worked).await?;
    let (code, said) = why("import")?;
    assert_eq!(code, Some(1), "a finding: {said}");
    assert!(said.contains("work has ended for good, and logs still runs"), "{said}");
    mend(cluster, &said)?;
    finishing.scene.until("import", "to complete", completed).await?;
    let (code, said) = why("import")?;
    assert_eq!(code, Some(0), "{said}");

    // A sidecar that is started before the container it waits for.
    let mut waiting = container("proxy", &["--port=8080", "--ready-after=1h"]);
    waiting["startupProbe"] =
        json!({"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1, "failureThreshold": 600});
    let mut circle = job("circle", &[waiting, container("work", &["--exit-after=1s"])]);
    circle["spec"]["template"]["metadata"] = json!({"annotations": {"pillion.dev/sidecars": "proxy"}});
    finishing.scene.apply(circle).await?;
    let stands =
        |pod: &Pod| pods::runs(pod, "proxy") && pods::waits_for(pod, "work").as_deref() == Some("PodInitializing");
    until_pod(&finishing, "circle", "both to wait", stands).await?;
    let (code, said) = why("circle")?;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("work waits until native sidecar proxy has started"), "{said}");
    mend(cluster, &said)?;
    finishing.scene.until("circle", "to complete", completed).await?;
    finishing.scene.close().await?;
    Ok(())
}
