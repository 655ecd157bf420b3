//! The controller on a real API server: how sets stand, which pods were missed, and what is done about them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use pillion_api::{SidecarSet, SidecarSetStatus};
use pillion_e2e::{Manager, pods};
use pillion_testbed::{Bed, Cluster, Config, Fleet, Look, apply, until};
use serde_json::{Value, json};

/// How long anything may take that nothing is promised about.
const PATIENCE: Duration = Duration::from_mins(1);
/// A missed pod is reported within this time.
const REPORTED: Duration = Duration::from_secs(30);
/// Pods that are nobody's business; `PILLION_OTHER_PODS` makes more of them.
const OTHERS: usize = 2_000;

fn set(name: &str, app: &str, container: &str) -> Value {
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": {"app": app}}, "containers": [{"name": container, "image": pods::V1}]}})
}

fn deployment(name: &str, app: &str, replicas: u32) -> Value {
    let template = pods::on_fleet(json!({"metadata": {"labels": {"app": app, "of": name}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [pods::container("main", &[])]}}));
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"of": name}}, "template": template}})
}

/// Waits until the status of a set is as it should be.
async fn status_until(
    client: &Client,
    name: &str,
    limit: Duration,
    holds: impl Fn(&SidecarSetStatus) -> bool,
) -> Result<SidecarSetStatus> {
    let api = Api::<SidecarSet>::all(client.clone());
    let what = format!("the status of {name}");
    let waited = until(&what, limit, || async {
        Ok(match api.get(name).await {
            Ok(set) => match set.status {
                Some(status) if holds(&status) => Look::Done(status),
                status => Look::NotYet(json!(status).to_string()),
            },
            Err(error) => Look::NotYet(error.to_string()),
        })
    });
    Ok(waited.await?)
}

/// Matched, injected, ready, missed, predating.
fn counts(status: &SidecarSetStatus) -> [Option<i32>; 5] {
    [status.matched_pods, status.injected_pods, status.ready_pods, status.missed_pods, status.predating_pods]
}

/// Status and reason by the type of the condition.
fn conditions(status: &SidecarSetStatus) -> BTreeMap<&str, (&str, &str)> {
    let conditions = status.conditions.iter().flatten();
    conditions.map(|it| (it.type_.as_str(), (it.status.as_str(), it.reason.as_str()))).collect()
}

async fn pods_until(client: &Client, labels: &str, what: &str, holds: impl Fn(&[Pod]) -> bool) -> Result<Vec<Pod>> {
    let api = Api::<Pod>::namespaced(client.clone(), "default");
    let waited = until(what, PATIENCE, || async {
        let listed = match api.list(&ListParams::default().labels(labels)).await {
            Ok(listed) => listed.items,
            Err(error) => return Ok(Look::NotYet(error.to_string())),
        };
        let seen = || listed.iter().map(|pod| format!("{} {:?}", pod.name_any(), pod.labels())).collect::<Vec<_>>();
        Ok(if holds(&listed) { Look::Done(listed) } else { Look::NotYet(format!("{:?}", seen())) })
    });
    Ok(waited.await?)
}

fn is_injected(pod: &Pod) -> bool {
    pod.labels().contains_key("pillion.dev/injected")
}

fn kubectl(cluster: &Cluster, arguments: &[&str]) -> Result<String> {
    let output = cluster.kubectl(arguments)?.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kubectl {arguments:?}: {said}");
    Ok(String::from_utf8(output.stdout)?)
}

/// Waits until kubectl shows all of these words.
async fn shown(cluster: &Cluster, arguments: &[&str], words: &[&str]) -> Result<String> {
    let what = format!("kubectl {arguments:?} to show {words:?}");
    let waited = until(&what, PATIENCE, || async {
        Ok(match kubectl(cluster, arguments) {
            Ok(text) if words.iter().all(|word| text.contains(word)) => Look::Done(text),
            Ok(text) => Look::NotYet(text),
            Err(error) => Look::NotYet(error.to_string()),
        })
    });
    Ok(waited.await?)
}

/// Waits until a pod that is only tried comes back injected: the webhook is there and knows the set.
async fn until_webhook(client: &Client, app: &str) -> Result<()> {
    let mut pod = pods::pod("tried", &[], &[pods::container("main", &[])]);
    pod["metadata"]["labels"] = json!({"app": app});
    let pod: Pod = serde_json::from_value(pod)?;
    let api = Api::<Pod>::namespaced(client.clone(), "default");
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let waited = until("the webhook to inject", PATIENCE, || async {
        Ok(match api.create(&dry, &pod).await {
            Ok(pod) if is_injected(&pod) => Look::Done(()),
            Ok(_) => Look::NotYet("not injected".to_owned()),
            Err(error) => Look::NotYet(error.to_string()),
        })
    });
    Ok(waited.await?)
}

/// A metric that counts.
async fn count(manager: &Manager, name: &str) -> Result<String> {
    Ok(manager.metric(name).await?.to_string())
}

async fn edit(client: &Client, name: &str, change: Value) -> Result<()> {
    Api::<SidecarSet>::all(client.clone()).patch(name, &PatchParams::default(), &Patch::Merge(change)).await?;
    Ok(())
}

#[tokio::test]
async fn ci_a_set_tells_how_its_pods_stand_and_what_an_edit_does() -> Result<()> {
    let bed = Bed::start(Config::control_plane("status").with_fleet(Fleet::of(2))).await?;
    let (client, cluster) = (bed.client().await?, bed.cluster());
    Manager::prepare(&client).await?;
    // Before there is a webhook: pods that are older than their set, and a set that no webhook would take.
    apply(&client, "e2e", &deployment("old", "web", 2)).await?;
    pods_until(&client, "of=old", "old pods", |pods| pods.len() == 2).await?;
    let mut wrong = set("wrong", "web", "proxy");
    wrong["spec"]["containers"][0]["resourcesPolicy"] =
        json!({"targetContainersMode": "sum", "resourceExpr": {"limits": {"cpu": "cpu*50%cpu"}}});
    apply(&client, "e2e", &wrong).await?;

    let manager = Manager::ready(cluster, &["webhook", "controller"], &[]).await?;
    let status = status_until(&client, "wrong", PATIENCE, |status| status.conditions.is_some()).await?;
    assert_eq!(conditions(&status)["Ready"], ("False", "SetInvalid"));
    let message = &status.conditions.as_ref().context("conditions")?[0].message;
    assert!(message.starts_with("PL212: ") && message.contains("PL115"), "{message}");

    apply(&client, "e2e", &set("mesh", "web", "proxy")).await?;
    let counted = |status: &SidecarSetStatus| status.matched_pods == Some(2) && status.updated_pods.is_some();
    let status = status_until(&client, "mesh", PATIENCE, counted).await?;
    assert_eq!(counts(&status), [Some(2), Some(0), Some(0), Some(0), Some(2)], "what is older only counts");
    assert_eq!(
        conditions(&status),
        BTreeMap::from([
            ("FailOpen", ("False", "NoneMissed")),
            ("Progressing", ("False", "UpToDate")),
            ("Ready", ("True", "Injected")),
            ("Stalled", ("False", "UpToDate")),
        ])
    );
    let observed = status.selector_observed_time.clone();
    // It was made: what it does to what there is.
    let made = |status: &SidecarSetStatus| status.blast_radius.as_ref().is_some_and(|blast| blast.generation == 1);
    let blast = status_until(&client, "mesh", PATIENCE, made).await?.blast_radius.context("blast radius")?;
    assert_eq!((blast.pods.checked, blast.pods.would_change, blast.pods.would_be_refused), (2, 2, 0));
    assert_eq!((blast.templates.checked, blast.templates.would_change), (1, 1));

    until_webhook(&client, "web").await?;
    let mut optional = set("optional", "web", "agent");
    optional["spec"]["allowOptOut"] = true.into();
    apply(&client, "e2e", &optional).await?;
    let mut watches = set("watches", "web", "eye");
    watches["spec"]["mode"] = "Observe".into();
    apply(&client, "e2e", &watches).await?;
    for name in ["optional", "watches"] {
        status_until(&client, name, PATIENCE, |status| status.matched_pods == Some(2)).await?;
    }
    let mut web = deployment("web", "web", 3);
    web["spec"]["template"]["metadata"]["annotations"] = json!({"pillion.dev/skip": "optional"});
    apply(&client, "e2e", &web).await?;
    let is_well = |status: &SidecarSetStatus| status.ready_pods == Some(3);
    let status = status_until(&client, "mesh", PATIENCE, is_well).await?;
    assert_eq!(counts(&status), [Some(5), Some(3), Some(3), Some(0), Some(2)]);
    assert_eq!(status.selector_observed_time, observed, "the selector is the same");
    let status = status_until(&client, "optional", PATIENCE, |status| status.left_out_pods == Some(3)).await?;
    assert_eq!(counts(&status), [Some(5), Some(0), Some(0), Some(0), Some(2)]);
    let status = status_until(&client, "watches", PATIENCE, |status| status.matched_pods == Some(5)).await?;
    assert_eq!(counts(&status), [Some(5), Some(0), Some(0), Some(0), Some(0)], "nobody expects anything");
    assert_eq!(conditions(&status)["Ready"], ("True", "Observed"));

    see(cluster).await?;

    // An edit that would refuse pods, were they created again; it touches none of them.
    let containers = json!([{"name": "proxy", "image": pods::V2}, {"name": "main", "image": pods::V1}]);
    edit(&client, "mesh", json!({"spec": {"containers": containers}})).await?;
    let edited = |status: &SidecarSetStatus| status.blast_radius.as_ref().is_some_and(|blast| blast.generation == 2);
    let status = status_until(&client, "mesh", PATIENCE, edited).await?;
    print(&["kubectl get scs mesh -o jsonpath={.status.blastRadius}"], cluster)?;
    let blast = status.blast_radius.clone().context("blast radius")?;
    assert_eq!((blast.pods.checked, blast.pods.would_change, blast.pods.would_be_refused), (5, 0, 5));
    assert_eq!((blast.templates.checked, blast.templates.would_be_refused), (2, 2));
    let first = &blast.examples.context("examples")?[0];
    assert_eq!((first.kind.as_str(), first.name.as_str()), ("Deployment", "old"));
    assert!(first.effect.starts_with("is refused: PL306: "), "{}", first.effect);
    assert_eq!(status.observed_generation, Some(2));
    assert_eq!(counts(&status), [Some(5), Some(3), Some(3), Some(0), Some(2)]);

    // Another selector: what it selects now is counted, though nobody kept it before; all of it predates.
    apply(&client, "e2e", &deployment("api", "api", 2)).await?;
    pods_until(&client, "of=api", "pods of api", |pods| pods.len() == 2).await?;
    edit(&client, "mesh", json!({"spec": {"selector": {"matchLabels": {"app": "api"}}, "containers": [{"name": "proxy", "image": pods::V1}]}})).await?;
    let status = status_until(&client, "mesh", PATIENCE, |status| status.observed_generation == Some(3)).await?;
    assert_eq!(counts(&status), [Some(2), Some(0), Some(0), Some(0), Some(2)]);
    assert_ne!(status.selector_observed_time, observed);

    // Nothing happens any more: nothing is written any more, and no set was written twice in a second.
    let writes = status_writes(cluster)?;
    for (set, times) in &writes {
        let quick = times.windows(2).find(|pair| pair[1].saturating_sub(pair[0]) < Duration::from_millis(900));
        assert_eq!(quick, None, "{set} was written twice in a second: {times:?}");
    }
    assert_eq!(count(&manager, "pillion_status_failures_total").await?, "0");
    ensure!(manager.stop().await?.success(), "the manager did not end in order");
    bed.stop().await?;
    Ok(())
}

/// What people see.
async fn see(cluster: &Cluster) -> Result<()> {
    kubectl(cluster, &["wait", "--for=condition=Ready", "scs/mesh", "--timeout=30s"])?;
    let table = kubectl(cluster, &["get", "scs"])?;
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "MATCHED", "INJECTED", "UPDATED", "READY", "MISSED", "STATUS", "AGE"]);
    let cells: Vec<&[&str]> = rows[1..].iter().map(|row| &row[..row.len() - 1]).collect();
    assert_eq!(
        cells,
        [
            &["mesh", "5", "3", "3", "3", "0", "Injected"][..],
            &["optional", "5", "0", "0", "0", "0", "Injected"],
            &["watches", "5", "0", "0", "0", "0", "Observed"],
            &["wrong", "SetInvalid"],
        ]
    );
    shown(
        cluster,
        &["describe", "scs", "mesh"],
        &["3 of 5 pods carry the sidecars, 2 predate the set", "Injected", "pillion-controller"],
    )
    .await?;
    shown(cluster, &["describe", "deployment", "web"], &["Injected", "SidecarSet mesh: pod default/web-"]).await?;
    shown(cluster, &["describe", "deployment", "web"], &["SkippedOptedOut", "SidecarSet optional: pod default/web-"])
        .await?;
    print(
        &["kubectl get scs", "kubectl get scs -o wide", "kubectl describe scs mesh", "kubectl describe deployment web"],
        cluster,
    )?;
    Ok(())
}

/// When our controller wrote which status, by the audit log.
fn status_writes(cluster: &Cluster) -> Result<BTreeMap<String, Vec<Duration>>> {
    let mut writes: BTreeMap<String, Vec<Duration>> = BTreeMap::new();
    for line in std::fs::read_to_string(cluster.audit_log())?.lines() {
        let event: Value = serde_json::from_str(line)?;
        let object = &event["objectRef"];
        let is_ours = event["userAgent"].as_str().is_some_and(|agent| agent.starts_with("pillion-manager/"));
        if is_ours && object["resource"] == "sidecarsets" && object["subresource"] == "status" {
            let name = object["name"].as_str().context("a name")?.to_owned();
            let at: jiff::Timestamp = event["requestReceivedTimestamp"].as_str().context("a time")?.parse()?;
            writes.entry(name).or_default().push(at.duration_since(jiff::Timestamp::UNIX_EPOCH).try_into()?);
        }
    }
    ensure!(!writes.is_empty(), "the audit log shows no status: the comparison proves nothing");
    Ok(writes)
}

/// Shows what the docs show, in the output of the test.
#[expect(clippy::print_stdout, reason = "for the person who writes the docs")]
fn print(commands: &[&str], cluster: &Cluster) -> Result<()> {
    for command in commands {
        let arguments: Vec<&str> = command.split(' ').skip(1).collect();
        println!("$ {command}\n{}", kubectl(cluster, &arguments)?);
    }
    Ok(())
}

async fn create_others(client: &Client) -> Result<usize> {
    let count = std::env::var("PILLION_OTHER_PODS").ok().and_then(|count| count.parse().ok()).unwrap_or(OTHERS);
    let api = Api::<Pod>::namespaced(client.clone(), "default");
    let create = |number: usize| {
        let api = api.clone();
        async move {
            let mut pod = pods::pod(&format!("other-{number}"), &[], &[pods::container("main", &[])]);
            pod["metadata"]["labels"] = json!({"app": "other"});
            // They are there, and nothing else becomes of them.
            pod["spec"]["schedulingGates"] = json!([{"name": "example.com/never"}]);
            let pod: Pod = serde_json::from_value(pod).map_err(kube::Error::SerdeError)?;
            api.create(&PostParams::default(), &pod).await.map(|_| ())
        }
    };
    stream::iter(0..count).map(create).buffer_unordered(16).try_collect::<Vec<()>>().await?;
    Ok(count)
}

/// In ci: `ci_a_set_tells_how_its_pods_stand_and_what_an_edit_does` for the counts; which pods are evicted is
/// tested in `crates/manager/src/controller/repair`.
#[tokio::test]
async fn nightly_missed_pods_are_found_among_many_and_created_again_within_the_guards() -> Result<()> {
    let bed = Bed::start(Config::control_plane("missed").with_fleet(Fleet::of(2))).await?;
    let (client, cluster) = (bed.client().await?, bed.cluster());
    Manager::prepare(&client).await?;
    create_others(&client).await?;
    let manager = Manager::ready(cluster, &["webhook", "controller"], &[]).await?;
    apply(&client, "e2e", &set("mesh", "web", "proxy")).await?;
    until_webhook(&client, "web").await?;
    apply(&client, "e2e", &deployment("well", "web", 2)).await?;
    let well = |status: &SidecarSetStatus| status.ready_pods.is_some() && status.matched_pods == Some(2);
    let status = status_until(&client, "mesh", PATIENCE, well).await?;
    let observed = status.selector_observed_time.context("observed")?.0;

    // Nobody is there: pods are created all the same, a second or more after the selector was observed.
    let address = manager.webhook();
    manager.kill()?;
    until("a later second", PATIENCE, || async {
        let now = jiff::Timestamp::now().as_second();
        Ok(if now > observed.as_second() + 1 { Look::Done(()) } else { Look::NotYet(now.to_string()) })
    })
    .await?;
    apply(&client, "e2e", &deployment("web", "web", 3)).await?;
    apply(&client, "e2e", &deployment("guarded", "web", 1)).await?;
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "guarded", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"of": "guarded"}}}});
    apply(&client, "e2e", &budget).await?;
    let mut alone = pods::on_fleet(pods::pod("alone", &[], &[pods::container("main", &[])]));
    alone["metadata"]["labels"] = json!({"app": "web", "of": "nobody"});
    alone["metadata"]["namespace"] = "default".into();
    apply(&client, "e2e", &alone).await?;
    for (of, count) in [("web", 3), ("guarded", 1), ("nobody", 1)] {
        let created =
            |pods: &[Pod]| pods.len() == count && pods.iter().all(|pod| pods::is_ready(pod) && !is_injected(pod));
        pods_until(&client, &format!("of={of}"), "pods that were missed", created).await?;
    }

    // Somebody is there again, and tells.
    let began = Instant::now();
    let manager = Manager::start_at(cluster, address, &["webhook", "controller"], &[]).await?;
    let reported = |status: &SidecarSetStatus| status.missed_pods == Some(5);
    let status = status_until(&client, "mesh", REPORTED, reported).await?;
    println(&format!("missed pods were reported {:?} after the start", began.elapsed()));
    assert_eq!(conditions(&status)["Ready"], ("False", "Missed"));
    assert_eq!(conditions(&status)["FailOpen"], ("True", "FailOpen"));
    assert_eq!(status.predating_pods, Some(0));
    shown(cluster, &["describe", "deployment", "web"], &["Missed", "PL213"]).await?;
    print(&["kubectl get scs", "kubectl describe scs mesh"], cluster)?;
    // Without being asked, nobody repairs.
    let before = pods_until(&client, "of in (web,guarded,nobody)", "missed pods", |pods| pods.len() == 5).await?;
    assert!(before.iter().all(|pod| !is_injected(pod)));
    manager.until_ready().await?;
    manager.kill()?;

    let flags = ["--recreate-missed", "--evictions-per-minute", "600"];
    let manager = Manager::start_at(cluster, address, &["webhook", "controller"], &flags).await?;
    let repaired = |pods: &[Pod]| pods.len() == 3 && pods.iter().all(|pod| is_injected(pod) && pods::is_ready(pod));
    pods_until(&client, "of=web", "web to be repaired", repaired).await?;
    let status = status_until(&client, "mesh", PATIENCE, |status| status.missed_pods == Some(2)).await?;
    assert_eq!(status.injected_pods, Some(5));
    // The budget and the pod that nobody would create again hold.
    until("the budget to be asked", PATIENCE, || async {
        Ok(match manager.metric("pillion_repairs_total{outcome=\"Budget\"}").await {
            Ok(times) if times >= 1.0 => Look::Done(()),
            seen => Look::NotYet(format!("{seen:?}")),
        })
    })
    .await?;
    let uid = |pods: &[Pod], of: &str| pods.iter().find(|pod| pod.labels()["of"] == of).and_then(ResourceExt::uid);
    let after = pods_until(&client, "of in (guarded,nobody)", "the others", |pods| pods.len() == 2).await?;
    for of in ["guarded", "nobody"] {
        assert_eq!(uid(&after, of), uid(&before, of), "{of} is as it was");
    }
    assert_eq!(count(&manager, "pillion_repairs_total{outcome=\"Evicted\"}").await?, "3");
    assert_eq!(lost_and_created(cluster)?, "evict create evict create evict create");
    shown(cluster, &["describe", "deployment", "web"], &["Recreated"]).await?;
    // It may go when the budget is gone.
    kubectl(cluster, &["delete", "poddisruptionbudget", "guarded"])?;
    status_until(&client, "mesh", PATIENCE, |status| status.missed_pods == Some(1)).await?;
    ensure!(manager.stop().await?.success(), "the manager did not end in order");
    bed.stop().await?;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a figure for the person who runs the test")]
fn println(text: &str) {
    println!("{text}");
}

/// Evictions of pods of the Deployment web that were granted, and the pods created for it after the first.
fn lost_and_created(cluster: &Cluster) -> Result<String> {
    let mut words = Vec::new();
    for line in std::fs::read_to_string(cluster.audit_log())?.lines() {
        let event: Value = serde_json::from_str(line)?;
        let object = &event["objectRef"];
        let is_done =
            event["responseStatus"]["code"] == 201 && event["verb"] == "create" && object["resource"] == "pods";
        let is_dry = event["requestURI"].as_str().is_some_and(|uri| uri.contains("dryRun"));
        let name = [&object["name"], &event["responseObject"]["metadata"]["name"]];
        let is_web = name.iter().any(|name| name.as_str().is_some_and(|name| name.starts_with("web-")));
        if !is_done || is_dry || !is_web {
            continue;
        }
        if object["subresource"] == "eviction" {
            let preconditions = &event["requestObject"]["deleteOptions"]["preconditions"];
            ensure!(preconditions["uid"].is_string() && preconditions["resourceVersion"].is_string(), "{event}");
            words.push("evict");
        } else if object.get("subresource").is_none() && !words.is_empty() {
            words.push("create");
        }
    }
    Ok(words.join(" "))
}
