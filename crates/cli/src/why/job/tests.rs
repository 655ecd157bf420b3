//! Jobs as clusters have them, and what is said about each.
#![expect(clippy::needless_pass_by_value, reason = "tests, in which JSON is written where it is used")]

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::*;

fn now() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

fn job() -> Value {
    json!({"kind": "Job", "metadata": {"namespace": "shop", "name": "import"}, "spec": {"completions": 3},
        "status": {"active": 1, "succeeded": 1}})
}

fn pod(containers: Value, statuses: Value) -> Value {
    json!({"kind": "Pod", "metadata": {"namespace": "shop", "name": "import-x7k2p", "annotations": {}},
        "spec": {"restartPolicy": "Never", "containers": containers},
        "status": {"phase": "Running", "startTime": "2026-11-15T09:57:00Z", "containerStatuses": statuses}})
}

fn running(name: &str, at: &str) -> Value {
    json!({"name": name, "started": true, "state": {"running": {"startedAt": format!("2026-11-15T{at}Z")}}})
}

fn ended(name: &str, code: i64, at: &str) -> Value {
    let ended = json!({"exitCode": code, "finishedAt": format!("2026-11-15T{at}Z")});
    json!({"name": name, "state": {"terminated": ended}})
}

fn waiting(name: &str, reason: &str) -> Value {
    json!({"name": name, "started": false, "state": {"waiting": {"reason": reason}}})
}

fn work_and_logs() -> Value {
    json!([{"name": "work"}, {"name": "logs"}])
}

/// The text, and whether it is a finding.
fn told(job: &Value, pods: &[Value]) -> String {
    let answer = explain(job, pods, now());
    format!("{}finding: {}\n", answer.text, answer.is_finding)
}

#[test]
fn a_plain_container_that_never_ends() {
    let pod = pod(work_and_logs(), json!([ended("work", 0, "09:59:00"), running("logs", "09:57:02")]));
    assert_snapshot!(told(&job(), &[pod]));
}

#[test]
fn a_container_that_is_marked_and_not_finished() {
    let mut pod = pod(work_and_logs(), json!([ended("work", 0, "09:59:00"), running("logs", "09:57:02")]));
    pod["metadata"]["annotations"] = json!({"pillion.dev/sidecars": "logs"});
    let mut job = job();
    job["metadata"]["ownerReferences"] = json!([{"kind": "CronJob", "name": "nightly", "uid": "1"}]);
    assert_snapshot!(told(&job, &[pod]));
}

#[test]
fn a_container_that_a_set_added() {
    let env = json!([{"name": "IS_INJECTED", "value": "true"}]);
    let containers = json!([{"name": "work"}, {"name": "proxy", "env": env}]);
    let mut pod = pod(containers, json!([ended("work", 3, "09:59:00"), running("proxy", "09:57:02")]));
    pod["metadata"]["annotations"] = json!({"kruise.io/sidecarset-injected-list": "mesh"});
    assert_snapshot!(told(&job(), &[pod]));
}

#[test]
fn a_native_sidecar_that_waits_for_the_container_that_waits_for_it() {
    let mut pod = pod(json!([{"name": "work"}]), json!([waiting("work", "PodInitializing")]));
    pod["spec"]["initContainers"] = json!([{"name": "proxy", "restartPolicy": "Always"}]);
    pod["metadata"]["annotations"] = json!({"pillion.dev/sidecars": "proxy"});
    pod["status"]["phase"] = json!("Pending");
    pod["status"]["conditions"] = json!([{"type": "Initialized", "status": "False"}]);
    let mut proxy = running("proxy", "09:57:02");
    proxy["started"] = json!(false);
    pod["status"]["initContainerStatuses"] = json!([proxy]);
    assert_snapshot!(told(&job(), &[pod.clone()]));

    // One that a set added is mended there; one that the Job itself has is looked at.
    pod["spec"]["initContainers"][0]["env"] = json!([{"name": "IS_INJECTED", "value": "true"}]);
    pod["metadata"]["annotations"] = json!({"kruise.io/sidecarset-injected-list": "mesh"});
    let fix = |pod: &Value| {
        let text = told(&job(), std::slice::from_ref(pod));
        text.lines().find_map(|line| line.strip_prefix("  fix  ")).unwrap().to_owned()
    };
    assert_eq!(fix(&pod), r#"kubectl patch scs mesh --type=merge -p '{"spec":{"finish":{"mode":"Wrap"}}}'"#);
    pod["spec"]["initContainers"][0]["env"] = json!([]);
    assert_eq!(fix(&pod), "kubectl logs import-x7k2p -c proxy -n shop");
}

#[test]
fn sidecars_that_are_being_ended() {
    let agent = json!(["/pillion-finish/pillion-wrap", "wrap", "--sidecar=logs", "--until=work", "--", "/logs"]);
    let containers = json!([{"name": "work"}, {"name": "logs", "command": agent}]);
    let mut pod = pod(containers, json!([ended("work", 0, "11:59:55"), running("logs", "09:57:02")]));
    pod["spec"]["initContainers"] = json!([{"name": "net", "restartPolicy": "Always"}, {"name": "prepare"}]);
    pod["status"]["initContainerStatuses"] = json!([running("net", "09:57:01"), ended("prepare", 0, "09:57:00")]);
    assert_snapshot!(told(&job(), &[pod.clone()]));
    // Past the grace period somebody should look at it.
    pod["status"]["containerStatuses"][0] = ended("work", 0, "11:50:00");
    assert_snapshot!(told(&job(), &[pod]));
}

#[test]
fn a_container_that_works() {
    let pods: Vec<Value> = (0..4)
        .map(|_| pod(work_and_logs(), json!([running("work", "09:57:02"), running("logs", "09:57:02")])))
        .collect();
    assert_snapshot!(told(&job(), &pods));
}

#[test]
fn a_container_that_fails_and_is_started_again() {
    let mut work = ended("work", 1, "11:59:58");
    work["restartCount"] = json!(2);
    let mut pod = pod(work_and_logs(), json!([work, running("logs", "09:57:02")]));
    pod["spec"]["restartPolicy"] = json!("OnFailure");
    pod["metadata"]["annotations"] = json!({"pillion.dev/sidecars": "logs"});
    pod["spec"]["containers"][1]["command"] = json!(["/pillion-finish/pillion-wrap", "wrap", "--sidecar=logs"]);
    assert_snapshot!(told(&job(), &[pod.clone()]));
    pod["status"]["containerStatuses"][0] = waiting("work", "CrashLoopBackOff");
    assert_snapshot!(told(&job(), &[pod]));
}

#[test]
fn jobs_for_which_nothing_is_to_be_waited() {
    let with = |condition: Value| {
        let mut job = job();
        job["status"]["conditions"] = json!([{"type": "SuccessCriteriaMet", "status": "True"}, condition]);
        told(&job, &[])
    };
    let at = "2026-11-15T11:00:00Z";
    let complete = with(json!({"type": "Complete", "status": "True", "lastTransitionTime": at}));
    assert_eq!(complete, "Job shop/import is complete for 60m\nfinding: false\n");
    let failed = with(json!({"type": "Failed", "status": "True", "lastTransitionTime": at,
        "reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}));
    assert_eq!(
        failed,
        "Job shop/import has failed for 60m: BackoffLimitExceeded: Job has reached the specified backoff limit\n\
         finding: false\n"
    );
    let suspended = with(json!({"type": "Suspended", "status": "True"}));
    assert_eq!(suspended, "Job shop/import is suspended: set spec.suspend to false to go on\nfinding: false\n");
    let mut failed = pod(work_and_logs(), json!([]));
    failed["status"]["phase"] = json!("Failed");
    assert_snapshot!(told(&job(), &[failed]));
}
