//! `pillion render` as people see it: every output as it is printed, with its exit status.
//!
//! A changed snapshot is a change users see: look at it, then `cargo insta accept`, and say why in the commit.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// Everything a person sees of a call, in a world without a cluster.
fn render_from(stdin: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pillion"));
    command.arg("render").args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).env_clear();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("pillion starts");
    // Wrong usage is told before anything is read.
    let _ = child.stdin.take().expect("it has a stdin").write_all(stdin.as_bytes());
    let output = child.wait_with_output().expect("pillion runs");
    let mut seen = format!("status {}\n", output.status.code().expect("it ends by itself"));
    for (name, bytes) in [("stdout", output.stdout), ("stderr", output.stderr)] {
        if !bytes.is_empty() {
            let _ = write!(seen, "--- {name}\n{}", String::from_utf8(bytes).expect("it prints UTF-8"));
        }
    }
    seen
}

fn render(arguments: &[&str]) -> String {
    render_from("", arguments)
}

/// Data of a call that ends well.
fn data(stdin: &str, arguments: &[&str]) -> String {
    let seen = render_from(stdin, arguments);
    assert!(seen.starts_with("status 0\n--- stdout\n"), "{seen}");
    seen["status 0\n--- stdout\n".len()..].split("--- stderr\n").next().expect("a split has a first part").to_owned()
}

fn json_of(stdin: &str, arguments: &[&str]) -> Value {
    serde_json::from_str(&data(stdin, &[arguments, &["-o", "json"]].concat())).expect("it is JSON")
}

/// Objects as one text for stdin.
fn documents(objects: &[Value]) -> String {
    objects.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n---\n")
}

fn set(name: &str, spec: &Value) -> Value {
    let mut set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": "web"}}}});
    let fields = spec.as_object().expect("a spec is an object").clone();
    set["spec"].as_object_mut().expect("it is one").extend(fields);
    set
}

/// A sidecar whose cpu limit is computed.
fn computed(expression: &str) -> Value {
    json!([{"name": "proxy", "image": "proxy:1", "resourcesPolicy": {
        "targetContainerMode": "sum", "resourceExpr": {"limits": {"cpu": expression}}}}])
}

fn pod(spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}}, "spec": spec})
}

fn small_pod() -> Value {
    pod(
        &json!({"containers": [{"name": "app", "image": "app:1", "resources": {"limits": {"cpu": "500m"}, "requests": {"cpu": "100m"}}}]}),
    )
}

const CHECKOUT: [&str; 4] = ["-f", "tests/render/checkout.yaml", "-s", "tests/render/sets"];

#[test]
fn a_deployment_with_three_sets() {
    for flags in [&[][..], &["--why"], &["--diff"], &["--why", "--diff"], &["-o", "json"]] {
        insta::assert_snapshot!(render(&[&CHECKOUT, flags].concat()));
    }
}

#[test]
fn reasons_fit_in_eighty_columns() {
    let seen = render(&[&CHECKOUT[..], &["--why"]].concat());
    let widest = seen.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{widest:?}");
}

/// The six stories of computed resources, with the numbers of the proposal.
#[test]
fn the_stories_come_to_their_numbers() {
    let container = |name: &str, limits: Value, requests: Value| json!({"name": name, "image": "nginx:1.14.2", "resources": {"limits": limits, "requests": requests}});
    let amounts = |cpu: &str, memory: &str| json!({"cpu": cpu, "memory": memory});
    let small = |name: &str| container(name, amounts("200m", "200Mi"), amounts("50m", "100Mi"));
    let large = || container("large-engine-v8", amounts("400m", "400Mi"), amounts("100m", "200Mi"));
    let unlimited = container("large-engine-v8", json!({"memory": "400Mi"}), amounts("100m", "200Mi"));
    let cores = |cpu: &str| container("large-engine-v4", amounts(cpu, "1Gi"), amounts("4", "1Gi"));
    for (story, containers, expected) in [
        (
            "story-1-one-container",
            vec![small("large-engine-v4"), small("large-engine-v8")],
            json!({"limits": amounts("100m", "200Mi"), "requests": amounts("50m", "100Mi")}),
        ),
        (
            "story-2-sum",
            vec![small("large-engine-v4"), large()],
            json!({"limits": amounts("300m", "200Mi"), "requests": amounts("75m", "100Mi")}),
        ),
        (
            "story-3-max",
            vec![small("large-engine-v4"), large()],
            json!({"limits": amounts("200m", "200Mi"), "requests": amounts("50m", "100Mi")}),
        ),
        (
            "story-4-unlimited",
            vec![small("large-engine-v4"), unlimited],
            json!({"limits": {"memory": "200Mi"}, "requests": amounts("50m", "100Mi")}),
        ),
        (
            "story-5-curve",
            vec![cores("6"), small("other")],
            json!({"limits": amounts("2400m", "200Mi"), "requests": amounts("2", "100Mi")}),
        ),
        (
            "story-5-curve",
            vec![cores("12")],
            json!({"limits": amounts("4800m", "200Mi"), "requests": amounts("2", "100Mi")}),
        ),
        (
            "story-6-native-sidecar",
            vec![
                container("app1", amounts("400m", "800Mi"), amounts("200m", "400Mi")),
                container("app2", amounts("600m", "1200Mi"), amounts("300m", "600Mi")),
            ],
            json!({"limits": amounts("300m", "500Mi"), "requests": amounts("100m", "150Mi")}),
        ),
    ] {
        let mut pod = pod(&json!({ "containers": containers }));
        pod["metadata"]["labels"]["app"] = json!(if story.starts_with("story-6") { "web" } else { "engine" });
        let file = format!("../../examples/sidecarset/{story}.yaml");
        let arguments = ["-f", "-", "-s", file.as_str()];
        let rendered = json_of(&pod.to_string(), &arguments);
        let after = &rendered["objects"][0]["pod"]["spec"];
        let all = ["containers", "initContainers"].into_iter().filter_map(|list| after[list].as_array()).flatten();
        let sidecar = all.into_iter().find(|it| it["name"].as_str().is_some_and(|name| name.contains("sidecar")));
        assert_eq!(sidecar.expect("it was injected")["resources"], expected, "{story}");
        insta::assert_snapshot!(
            format!("{story}-{}", containers.len()),
            data(&pod.to_string(), &[&arguments[..], &["--why"]].concat())
        );
    }
}

#[test]
fn a_refused_pod_is_not_printed_and_the_way_out_is() {
    let input = documents(&[small_pod(), set("mesh", &json!({"containers": computed("cpu - 2")}))]);
    insta::assert_snapshot!(render_from(&input, &["-f", "-"]));
    insta::assert_snapshot!(render_from(&input, &["-f", "-", "--why", "--diff"]));
    insta::assert_snapshot!(render_from(&input, &["-f", "-", "-o", "json"]));
}

#[test]
fn a_set_that_may_be_ignored_is() {
    let spec = json!({"failurePolicy": "Ignore", "containers": [{"name": "app", "image": "clash:1"}]});
    let input = documents(&[small_pod(), set("mesh", &spec)]);
    insta::assert_snapshot!(render_from(&input, &["-f", "-"]));
    insta::assert_snapshot!(render_from(&input, &["-f", "-", "--why"]));
}

#[test]
fn a_set_that_observes_tells_what_it_would_do() {
    let input = documents(&[
        small_pod(),
        set("constant", &json!({"mode": "Observe", "containers": computed("20m*2")})),
        set("mesh", &json!({"mode": "Observe", "containers": computed("cpu*10%")})),
        set("negative", &json!({"mode": "Observe", "containers": computed("cpu - 2")})),
    ]);
    insta::assert_snapshot!(render_from(&input, &["-f", "-", "--why", "--diff"]));
}

#[test]
fn a_pod_may_opt_out_where_the_set_lets_it() {
    let mut pod = small_pod();
    pod["metadata"]["annotations"] = json!({"pillion.dev/skip": "lenient,strict"});
    let spec =
        |name: &str| json!({"allowOptOut": name == "lenient", "containers": [{"name": name, "image": "sidecar:1"}]});
    let input = documents(&[pod, set("lenient", &spec("lenient")), set("strict", &spec("strict"))]);
    insta::assert_snapshot!(render_from(&input, &["-f", "-", "--why"]));
}

fn limit_range(namespace: Option<&str>) -> Value {
    let mut range = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "sizes"}, "spec": {"limits": [
        {"type": "Container", "default": {"cpu": "1", "memory": "512Mi"}, "defaultRequest": {"cpu": "100m"}}]}});
    if let Some(namespace) = namespace {
        range["metadata"]["namespace"] = json!(namespace);
    }
    range
}

#[test]
fn what_the_api_server_fills_in_is_seen_and_told() {
    let bare = pod(&json!({"containers": [
        {"name": "app", "image": "app:1"},
        {"name": "limited", "image": "app:1", "resources": {"limits": {"cpu": "200m"}}}]}));
    let sidecars = json!([
        {"name": "proxy", "image": "proxy:1", "resourcesPolicy": {"targetContainerMode": "sum", "resourceExpr": {
            "limits": {"cpu": "cpu*10%"}, "requests": {"cpu": "cpu*10%"}}}},
        {"name": "plain", "image": "proxy:1", "resources": {"limits": {"cpu": "50m"}}}]);
    let set = set("mesh", &json!({"containers": sidecars, "serviceAccountName": "mesh"}));
    let with = |ranges: &[Value]| documents(&[&[bare.clone(), set.clone()], ranges].concat());
    insta::assert_snapshot!("limit_range", render_from(&with(&[limit_range(None)]), &["-f", "-", "--why"]));
    insta::assert_snapshot!("no_limit_range", render_from(&with(&[]), &["-f", "-", "--why"]));
    let elsewhere = render_from(&with(&[limit_range(Some("other"))]), &["-f", "-"]);
    assert!(elsewhere.contains("note: LimitRange other/sizes concerns no workload that is given\n"), "{elsewhere}");
    assert!(!elsewhere.contains("512Mi"), "{elsewhere}");
}

#[test]
fn a_limit_range_may_be_a_file_of_its_own() {
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("sizes.yaml");
    std::fs::write(&file, limit_range(Some("shop")).to_string()).expect("it can be written");
    let input = documents(&[small_pod(), set("mesh", &json!({"containers": computed("cpu*10%")}))]);
    let rendered = json_of(&input, &["-f", "-", "--limit-range", file.to_str().expect("UTF-8")]);
    let paths = rendered["objects"][0]["defaults"]["before"].as_array().expect("a list").iter().map(|it| &it["path"]);
    assert_eq!(
        paths.collect::<Vec<_>>(),
        [
            "spec.serviceAccountName",
            "spec.containers[app].resources.limits[memory]",
            "spec.containers[app].resources.requests[memory]"
        ]
    );
}

fn workload(api_version: &str, kind: &str, spec: &Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "web"}, "spec": spec})
}

fn template() -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {
        "containers": [{"name": "app", "image": "app:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
        "volumes": [{"name": "data", "emptyDir": {}}], "restartPolicy": "OnFailure"}})
}

#[test]
fn a_cron_job_becomes_the_pods_of_its_jobs() {
    let job = workload(
        "batch/v1",
        "CronJob",
        &json!({"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": template()}}}),
    );
    let sidecar = json!([{"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"}]);
    let input = documents(&[job, set("mesh", &json!({"initContainers": sidecar}))]);
    insta::assert_snapshot!(render_from(&input, &["-f", "-"]));
}

#[test]
fn a_stateful_set_becomes_its_first_pod_with_its_claims() {
    let stateful_set = workload(
        "apps/v1",
        "StatefulSet",
        &json!({"serviceName": "peers", "template": template(), "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}),
    );
    let sidecar = json!([{"name": "backup", "image": "backup:1", "podInjectPolicy": "AfterAppContainer", "shareVolumePolicy": {"type": "enabled"}}]);
    let input = documents(&[stateful_set, set("backup", &json!({"containers": sidecar}))]);
    insta::assert_snapshot!(render_from(&input, &["-f", "-", "-n", "shop"]));
    insta::assert_snapshot!(render_from(&input, &["-f", "-", "-n", "shop", "--diff"]));
}

#[test]
fn everything_may_come_mixed_from_stdin() {
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"mesh": "on"}}});
    let selective = json!({"namespaceSelector": {"matchLabels": {"mesh": "on"}}, "containers": [{"name": "proxy", "image": "proxy:1"}]});
    let deployment = workload("apps/v1", "Deployment", &json!({"template": template()}));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [deployment, namespace, {"apiVersion": "v1", "kind": "ConfigMap"}]});
    let input = documents(&[set("mesh", &selective), list, small_pod()]);
    insta::assert_snapshot!(render_from(&input, &["-f", "-"]));
    insta::assert_snapshot!(render_from(&input, &["-f", "-", "--why"]));
    let labelled = render_from(&input, &["-f", "-", "--namespace-labels", "a=b,mesh=on"]);
    assert!(
        labelled
            .ends_with("Deployment default/web: 1 of 1 sets applied: mesh\nPod shop/web: 1 of 1 sets applied: mesh\n"),
        "{labelled}"
    );
}

#[test]
fn a_pod_that_no_set_matches_stays() {
    let input = documents(&[small_pod(), set("mesh", &json!({"namespace": "other", "containers": computed("cpu")}))]);
    insta::assert_snapshot!(render_from(&input, &["-f", "-"]));
    insta::assert_snapshot!(render_from(&input, &["-f", "-", "--why", "--diff"]));
}

#[test]
fn what_only_a_cluster_knows_is_said() {
    let pinned = json!({"injectStrategy": {"controllerRevision": "mesh-6f9c"}, "containers": [{"name": "proxy", "image": "proxy:1"}]});
    let hashed = json!({"selector": {"matchExpressions": [{"key": "pod-template-hash", "operator": "Exists"}]},
        "containers": [{"name": "other", "image": "proxy:1"}]});
    let deployment = workload("apps/v1", "Deployment", &json!({"template": template()}));
    let input = documents(&[deployment, set("mesh", &pinned), set("hashed", &hashed)]);
    insta::assert_snapshot!(render_from(&input, &["-f", "-", "--why"]));
}

/// A set that runs `proxy:2` and keeps nine of ten pods at what it was with `proxy:1`, and that revision as it is stored.
fn canary() -> (Value, Value, String) {
    let proxy = |image: &str| json!([{"name": "proxy", "image": image}]);
    let before = set("mesh", &json!({"containers": proxy("proxy:1")}));
    let fields = pillion_api::revision::fields(before["spec"].as_object().expect("it is one"));
    let name = pillion_api::revision::name("mesh", &fields);
    let stored = json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1,
        "metadata": {"name": name, "labels": {pillion_api::revision::SET_UID_LABEL: "u-1"}},
        "data": pillion_api::revision::data(&fields)});
    let now = json!({"containers": proxy("proxy:2"), "injectStrategy": {"revision": name},
        "updateStrategy": {"partition": "90%"}});
    (set("mesh", &now), stored, name)
}

#[test]
fn a_proportion_shows_a_pod_of_each_revision() {
    let (mesh, stored, _) = canary();
    let deployment = workload("apps/v1", "Deployment", &json!({"template": template()}));
    let input = documents(&[deployment, mesh, stored]);
    insta::assert_snapshot!(render_from(&input, &["-f", "-", "--diff"]));
    let objects = json_of(&input, &["-f", "-"]);
    let branches: Vec<&str> = objects["objects"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|object| object["branch"].as_str().expect("a text"))
        .collect();
    assert_eq!(branches, ["90 % of pods get mesh-8vgrzjwlxf", "10 % of pods get mesh-mz5xgvhbfq"]);
}

#[test]
fn a_revision_that_is_asked_for_is_the_only_one_shown() {
    let (mesh, stored, old) = canary();
    let newest = pillion_api::review(&mesh).meaning.expect("it is valid").revision;
    let input = documents(&[small_pod(), mesh, stored]);
    for (revision, image) in [(&old, "proxy:1"), (&newest, "proxy:2")] {
        let objects = json_of(&input, &["-f", "-", "--revision", revision]);
        let objects = objects["objects"].as_array().expect("a list");
        assert_eq!((objects.len(), &objects[0]["branch"]), (1, &json!("")));
        assert_eq!(objects[0]["pod"]["spec"]["containers"][0]["image"], image);
    }
    let seen = render_from(&input, &["-f", "-", "--revision", "mesh-0"]);
    let told = "no set that is given has revision mesh-0: give its ControllerRevision with -s\n";
    assert!(seen.starts_with("status 2\n") && seen.ends_with(told), "{seen}");
}

#[test]
fn warnings_are_not_missed() {
    let transfer = json!([{"sourceContainerName": "app", "envName": "REGION"}]);
    let mesh =
        |image: &str| set("mesh", &json!({"containers": [{"name": "proxy", "image": image, "transferEnv": transfer}]}));
    let input = documents(&[small_pod(), mesh("proxy:1"), mesh("proxy:1"), mesh("proxy:2")]);
    let seen = render_from(&input, &["-f", "-"]);
    insta::assert_snapshot!(seen.split("--- stderr\n").last().expect("a split has a last part"));
    insta::assert_snapshot!(render_from(&input, &["-f", "-", "--why"]));
}

#[test]
fn rendering_what_was_rendered_changes_nothing() {
    let once = data("", &CHECKOUT);
    let again = data(&once, &["-f", "-", "-s", "tests/render/sets", "--namespace-labels", "tier=prod"]);
    assert_eq!(again, once);
}

#[test]
fn a_suite_beside_the_sets_is_no_set() {
    let folder = "../../examples/ci/job";
    let seen = render(&["-f", &format!("{folder}/report.yaml"), "-s", folder, "--why"]);
    insta::assert_snapshot!(seen);
}

#[test]
fn an_invalid_set_is_named_with_the_place_of_its_mistakes() {
    let folder = tempfile::tempdir().expect("there is room");
    let sets = "apiVersion: apps.kruise.io/v1alpha1\nkind: SidecarSet\nmetadata: {name: mesh}\nspec:\n  selector: {matchLabels: {app: web}}\n  \
                containers:\n  - name: proxy\n    image: proxy:1\n    resourcesPolicy:\n      targetContainerMode: sum\n      resourceExpr:\n        \
                limits: {cpu: 200MB}\n  - name: proxy\n    image: proxy:1\n";
    std::fs::write(folder.path().join("mesh.yaml"), sets).expect("it can be written");
    let folder = folder.path().to_str().expect("UTF-8");
    let seen = render_from(&small_pod().to_string(), &["-f", "-", "-s", folder]);
    insta::assert_snapshot!(seen.replace(folder, "sets"));
}

#[test]
fn wrong_usage_says_what_is_right() {
    let (pod, mesh) = (small_pod(), set("mesh", &json!({"containers": computed("cpu")})));
    let mut numbered = pod.clone();
    numbered["metadata"]["labels"]["version"] = json!(1);
    for (input, arguments) in [
        (documents(std::slice::from_ref(&pod)), vec!["-f", "-"]),
        (documents(std::slice::from_ref(&mesh)), vec!["-f", "-"]),
        (String::new(), vec!["-f", "tests/render/nowhere.yaml"]),
        (String::new(), vec!["-f", "-", "-s", "-"]),
        (documents(&[mesh.clone(), json!({"apiVersion": "v1"})]), vec!["-f", "-"]),
        (documents(&[mesh.clone(), numbered]), vec!["-f", "-"]),
        (documents(&[mesh.clone(), workload("apps/v1", "Deployment", &json!({}))]), vec!["-f", "-"]),
        (documents(&[mesh.clone(), pod.clone()]), vec!["-f", "-", "--limit-range", "tests/render/sets/mesh.yaml"]),
        (documents(&[mesh, pod]), vec!["-f", "-", "--why", "-o", "json"]),
        (String::new(), vec!["-f", "-", "--namespace-labels", "tier"]),
        ("a: [".to_owned(), vec!["-f", "-"]),
    ] {
        insta::assert_snapshot!(render_from(&input, &arguments));
    }
}
