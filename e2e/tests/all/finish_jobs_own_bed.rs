//! Jobs complete though a sidecar never ends by itself: those of a set, those a user marked, and those `OpenKruise` marks.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::ListParams;
use pillion_e2e::finishing::{Finishing, Mode, container, how, phase};
use pillion_testbed::{Bed, Config, Look, apply};
use serde_json::{Value, json};

/// A set whose sidecar never ends by itself, for pods with this label.
fn set(mode: Mode) -> Value {
    let mut side = container("side", &[]);
    side["sidecar"] = json!(true);
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "helper"}, "spec": {
        "selector": {"matchLabels": {"help": "yes"}}, "finish": {"mode": format!("{mode:?}")}, "containers": [side]}})
}

fn job(name: &str, restart_policy: &str, main: &Value, more: &Value) -> Value {
    let mut job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {
        "backoffLimit": 1,
        "template": {"metadata": {"labels": {"help": "yes"}}, "spec": {
            "restartPolicy": restart_policy, "terminationGracePeriodSeconds": 2, "containers": [main]}}}});
    for (key, value) in more.as_object().into_iter().flatten() {
        job["spec"][key] = value.clone();
    }
    job
}

/// `Complete` or `Failed`.
async fn outcome(finishing: &Finishing, name: &str) -> Result<String> {
    finishing
        .scene
        .until(name, "to end", |job: &Job| {
            let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
            let ended =
                conditions.filter(|it| it.status == "True").find(|it| matches!(&*it.type_, "Complete" | "Failed"));
            ended.map_or_else(|| Look::NotYet(json!(job.status).to_string()), |it| Look::Done(it.type_.clone()))
        })
        .await
}

async fn pods_of(finishing: &Finishing, job: &str) -> Result<Vec<Pod>> {
    let ours = ListParams::default().labels(&format!("job-name={job}"));
    Ok(finishing.scene.api::<Pod>().list(&ours).await?.items)
}

async fn jobs_of_a_set(mode: Mode) -> Result<()> {
    let bed = Bed::start(Config::control_plane("jobs").with_node()).await?;
    let finishing = Finishing::start(&bed, mode).await?;
    apply(&finishing.scene.client, "e2e", &set(mode)).await?;
    let tried = json!({"metadata": {"name": "tried", "labels": {"help": "yes"}}, "spec": {"restartPolicy": "Never", "containers": [container("app", &[])]}});
    finishing.scene.until_made(tried, "to get the set", |spec| spec.contains(r#""name":"side""#)).await?;

    let well = container("app", &["--exit-after=1s"]);
    let fails = container("app", &["--exit-after=1s", "--exit-code=3"]);
    let three = json!({"completions": 3, "parallelism": 3});
    let mut cron = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "often"}, "spec": {
        "schedule": "* * * * *", "jobTemplate": {}}});
    cron["spec"]["jobTemplate"]["spec"] = job("", "Never", &well, &json!({}))["spec"].clone();
    finishing.scene.apply(cron).await?;
    finishing.scene.apply(job("three", "Never", &well, &three)).await?;
    finishing.scene.apply(job("failing", "Never", &fails, &json!({}))).await?;
    finishing.scene.apply(job("retrying", "OnFailure", &well, &json!({}))).await?;

    assert_eq!(outcome(&finishing, "three").await?, "Complete");
    let pods = pods_of(&finishing, "three").await?;
    assert_eq!(pods.len(), 3);
    for pod in &pods {
        assert_eq!((phase(pod), how(pod, "side")?), ("Succeeded", (0, "Completed", 0)), "{}", pod.name_any());
    }
    assert_eq!(outcome(&finishing, "failing").await?, "Failed");
    let pods = pods_of(&finishing, "failing").await?;
    assert_eq!(pods.len(), 2, "one more try, as backoffLimit says");
    for pod in &pods {
        assert_eq!((phase(pod), how(pod, "app")?.0, how(pod, "side")?.0), ("Failed", 3, 0), "{}", pod.name_any());
    }
    assert_eq!(outcome(&finishing, "retrying").await?, "Complete");

    let by_cron = pillion_testbed::until("a Job of the CronJob", std::time::Duration::from_mins(2), || async {
        let jobs = match finishing.scene.api::<Job>().list(&ListParams::default()).await {
            Ok(jobs) => jobs.items,
            Err(error) => return Ok(Look::NotYet(error.to_string())),
        };
        let one = jobs.iter().map(kube::ResourceExt::name_any).find(|name| name.starts_with("often-"));
        Ok(one.map_or_else(|| Look::NotYet("none".to_owned()), Look::Done))
    })
    .await?;
    assert_eq!(outcome(&finishing, &by_cron).await?, "Complete");
    finishing.scene.close().await?;
    Ok(())
}

#[tokio::test]
async fn ci_jobs_complete_with_native_sidecars_of_a_set() -> Result<()> {
    jobs_of_a_set(Mode::Native).await
}

#[tokio::test]
async fn ci_jobs_complete_with_wrapped_sidecars_of_a_set() -> Result<()> {
    jobs_of_a_set(Mode::Wrap).await
}

/// `OpenKruise`'s scenarios 36 to 39 with its own marks, and what hangs there (its issue 1366): with `OnFailure` a sidecar
/// that ends with another code than 0 is started again, and nobody ends it a second time.
/// In ci: `ci_jobs_complete_with_wrapped_sidecars_of_a_set`; codes of containers are tests of `crates/agent`
/// (`endings`).
#[tokio::test]
async fn nightly_openkruise_1366_a_job_with_its_marks_completes_whatever_code_the_sidecar_ends_with() -> Result<()> {
    let bed = Bed::start(Config::control_plane("marks").with_node()).await?;
    let finishing = Finishing::start(&bed, Mode::Wrap).await?;
    let marked = |variable: &str, value: &str, arguments: &[&str]| {
        let mut side = container("side", arguments);
        side["env"] = json!([{"name": variable, "value": value}]);
        side
    };
    let plain = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT";
    let by_image = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE";
    let well: &[&str] = &["--exit-after=1s"];
    let fails: &[&str] = &["--exit-after=1s", "--exit-code=3"];
    let cases = [
        ("never-ok", "Never", well, marked(plain, "True", &[]), "Complete"),
        ("never-stubborn", "Never", well, marked(plain, "true", &["--ignore-term"]), "Complete"),
        ("retry-fails", "OnFailure", fails, marked(plain, "true", &[]), "Failed"),
        ("retry-ok", "OnFailure", well, marked(plain, "true", &[]), "Complete"),
        ("retry-143", "OnFailure", well, marked(plain, "true", &["--term-code=143"]), "Complete"),
        ("by-image", "Never", well, marked(by_image, "registry.local/exits:1", &[]), "Complete"),
    ];
    for mode in [Mode::Native, Mode::Wrap] {
        for (name, policy, main, side, _) in &cases {
            let mut job = job(&format!("{name}-{mode:?}").to_lowercase(), policy, &container("app", main), &json!({}));
            let template = &mut job["spec"]["template"];
            template["metadata"] = json!({"annotations": {"pillion.dev/finish-mode": format!("{mode:?}")}});
            let containers = template["spec"]["containers"].as_array_mut().context("a list")?;
            containers.push(side.clone());
            finishing.scene.apply(job).await?;
        }
    }
    for mode in [Mode::Native, Mode::Wrap] {
        for (name, _, _, _, expected) in &cases {
            let name = format!("{name}-{mode:?}").to_lowercase();
            let seen = outcome(&finishing, &name).await?;
            ensure!(seen == *expected, "{name}: {seen}");
        }
    }
    finishing.scene.close().await?;
    Ok(())
}
