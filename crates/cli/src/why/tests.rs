//! Answers as people see them. A changed snapshot is a change users see: look at it, then `cargo insta accept`.
#![expect(clippy::needless_pass_by_value, reason = "tests, in which JSON is written where it is used")]

use pillion_api::{Group, Reason, SetMode};
use pillion_inject::Agent;
use serde_json::{Value, json};

use super::answer::{Answer, answers};
use super::{Output, shown};
use crate::installation::Facts;
use crate::live::World;

const BEFORE: &str = "2026-01-01T08:00:00Z";
const BETWEEN: &str = "2026-01-02T08:00:00Z";
const LATER: &str = "2026-01-03T08:00:00Z";

/// A cluster of one namespace.
struct Scene {
    sets: Vec<Value>,
    namespace: Value,
    facts: Facts,
    objects: Vec<Value>,
}

impl Scene {
    /// One set, and one object that is asked about.
    fn of(spec: Value, object: Value) -> Self {
        Self {
            sets: vec![set("mesh", spec)],
            namespace: json!({"metadata": {"name": "shop", "labels": {"tier": "prod"}}}),
            facts: Facts { namespace: "pillion-system".to_owned(), ..Facts::default() },
            objects: vec![object],
        }
    }

    fn answers(&self) -> Vec<Answer> {
        let namespaces = [self.namespace.clone(), json!({"metadata": {"name": "kube-system"}})];
        let world = World::read(&self.sets, &namespaces, &[], self.facts.clone());
        answers(&world, &self.objects).unwrap()
    }

    fn text(&self) -> String {
        shown(&[], &self.answers(), Output::Text)
    }
}

fn merged(mut one: Value, other: Value) -> Value {
    let Value::Object(fields) = other else { unreachable!("fields are an object") };
    one.as_object_mut().unwrap().extend(fields);
    one
}

fn set(name: &str, spec: Value) -> Value {
    let defaults = json!({"selector": {"matchLabels": {"app": "web"}}, "containers": [container("proxy", json!({}))]});
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet",
        "metadata": {"name": name, "creationTimestamp": BETWEEN}, "spec": merged(defaults, spec)})
}

fn container(name: &str, fields: Value) -> Value {
    merged(json!({"name": name, "image": format!("registry.example/{name}:1")}), fields)
}

/// A sidecar with computed resources.
fn computed(resources: Value) -> Value {
    let policy = json!({"targetContainerMode": "sum", "resourceExpr": resources});
    json!({"containers": [container("proxy", json!({"resourcesPolicy": policy}))]})
}

fn app() -> Value {
    let amounts = json!({"cpu": "500m", "memory": "256Mi"});
    container("app", json!({"resources": {"limits": amounts, "requests": amounts}}))
}

fn deployment(spec: Value) -> Value {
    let template =
        json!({"metadata": {"labels": {"app": "web"}}, "spec": merged(json!({"containers": [app()]}), spec)});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"template": template}})
}

fn annotated(annotations: Value) -> Value {
    let mut deployment = deployment(json!({}));
    deployment["spec"]["template"]["metadata"]["annotations"] = annotations;
    deployment
}

/// A pod that exists, created at this time.
fn pod(name: &str, created: &str, annotations: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": {"app": "web"}, "annotations": annotations,
            "creationTimestamp": created},
        "spec": {"containers": [app()]}, "status": {"phase": "Running"}})
}

/// A pod with this record.
fn recorded(record: &Value) -> Value {
    pod("web-0", LATER, json!({"pillion.dev/decision": record.to_string()}))
}

fn record_of(entry: &Value) -> Value {
    recorded(&json!({"v": 1, "sets": {"mesh": entry}}))
}

/// A cluster in which `pillion why` shows this code.
#[expect(clippy::too_many_lines, reason = "one arm for every code")]
fn showing(reason: Reason) -> Scene {
    let plain = || json!({});
    let mount = |name: &str| json!({"volumeMounts": [{"name": name, "mountPath": "/spool"}]});
    let spool = |source: Value| merged(json!({"name": "spool"}), source);
    match reason {
        Reason::Injected => Scene::of(
            computed(json!({"limits": {"cpu": "max(cpu*50%, 50m)"}, "requests": {"cpu": "cpu*10%"}})),
            deployment(plain()),
        ),
        Reason::SelectorMismatch => Scene::of(json!({"selector": {"matchLabels": {"app": "db"}}}), deployment(plain())),
        Reason::NamespaceMismatch => {
            Scene::of(json!({"namespaceSelector": {"matchLabels": {"tier": "dev"}}}), deployment(plain()))
        }
        Reason::InjectionPaused => Scene::of(json!({"injectStrategy": {"paused": true}}), deployment(plain())),
        Reason::OptedOut => Scene::of(json!({"allowOptOut": true}), annotated(json!({"pillion.dev/skip": "mesh"}))),
        Reason::OptOutNotAllowed => Scene::of(plain(), annotated(json!({"pillion.dev/skip": "mesh"}))),
        Reason::Observed => Scene::of(json!({"mode": "Observe"}), deployment(plain())),
        Reason::AlreadyInjected => {
            let mut copy = pod("web-0", LATER, json!({"kruise.io/sidecarset-injected-list": "mesh"}));
            let mark = json!({"env": [{"name": "IS_INJECTED", "value": "true"}]});
            copy["spec"]["containers"].as_array_mut().unwrap().push(container("proxy", mark));
            Scene::of(plain(), copy)
        }
        Reason::NamespaceExcluded => {
            let mut object = deployment(plain());
            object["metadata"]["namespace"] = json!("kube-system");
            Scene::of(plain(), object)
        }
        Reason::SwitchedOff => {
            let scene = Scene::of(plain(), deployment(plain()));
            Scene { facts: Facts { is_off: true, ..scene.facts.clone() }, ..scene }
        }
        Reason::MirrorPod => Scene::of(plain(), pod("web-node-1", LATER, json!({"kubernetes.io/config.mirror": "1f"}))),
        Reason::SetInvalid => Scene::of(json!({"containers": []}), deployment(plain())),
        Reason::CreatedUnseen => Scene::of(plain(), pod("web-0", LATER, plain())),
        Reason::NegativeResult => Scene::of(computed(json!({"limits": {"cpu": "cpu - 1"}})), deployment(plain())),
        Reason::NoTarget => {
            let policy = json!({"targetContainersNameRegex": "^engine$", "targetContainerMode": "sum",
                "resourceExpr": {"limits": {"cpu": "cpu"}}});
            let sidecar = container("proxy", json!({"resourcesPolicy": policy}));
            Scene::of(json!({"containers": [sidecar]}), deployment(plain()))
        }
        Reason::RequestAboveLimit => Scene::of(
            computed(json!({"limits": {"cpu": "cpu*10%"}, "requests": {"cpu": "cpu*50%"}})),
            deployment(plain()),
        ),
        Reason::ZeroLimit => Scene::of(computed(json!({"limits": {"cpu": "max(0, cpu-1)"}})), deployment(plain())),
        Reason::AmountOutOfRange => {
            let limits = json!({"resources": {"limits": {"memory": "5Ei"}}});
            let object = deployment(json!({"containers": [container("app", limits)]}));
            Scene::of(computed(json!({"limits": {"memory": "memory*2"}})), object)
        }
        Reason::ContainerClash => Scene::of(json!({"containers": [container("app", plain())]}), deployment(plain())),
        Reason::VolumeClash => {
            let spec = json!({"containers": [container("proxy", mount("spool"))],
                "volumes": [spool(json!({"emptyDir": {"medium": "Memory"}}))]});
            Scene::of(spec, deployment(json!({"volumes": [spool(json!({"emptyDir": {}}))]})))
        }
        Reason::MountClash => {
            let spec = json!({"volumes": [spool(json!({"emptyDir": {}}))],
                "appVolumeMounts": [{"volume": "spool", "path": "/data"}]});
            let mounts = json!({"volumeMounts": [{"name": "own", "mountPath": "/data"}]});
            let own = json!([{"name": "own", "emptyDir": {}}]);
            Scene::of(spec, deployment(json!({"containers": [merged(app(), mounts)], "volumes": own})))
        }
        Reason::ServiceAccountClash => {
            Scene::of(json!({"serviceAccountName": "mesh"}), deployment(json!({"serviceAccountName": "web"})))
        }
        Reason::ProcessNamespaceClash => {
            Scene::of(json!({"shareProcessNamespace": true}), deployment(json!({"shareProcessNamespace": false})))
        }
        Reason::LabelClash => {
            let mut object = deployment(plain());
            object["spec"]["template"]["metadata"]["labels"]["version"] = json!("1");
            Scene::of(json!({"labels": {"version": "2"}}), object)
        }
        Reason::MergeNotJson => {
            let patch = json!({"patchPolicy": "MergePatchJson", "annotations": {"config": "{\"a\":1}"}});
            Scene::of(json!({"patchPodMetadata": [patch]}), annotated(json!({"config": "a: 1"})))
        }
        Reason::SetsClash => {
            let mut scene = Scene::of(plain(), deployment(plain()));
            scene.sets.push(set("agent", plain()));
            scene
        }
        Reason::RevisionMissing | Reason::RevisionOfAnotherSet => {
            let why = if reason == Reason::RevisionMissing { "does not exist" } else { "belongs to another set" };
            let why = format!("revision mesh-6f9c {why}");
            Scene::of(plain(), record_of(&json!({"code": reason.code(), "why": why})))
        }
        Reason::UnreadablePod => {
            let limits = json!({"resources": {"limits": {"cpu": "much"}}});
            let object = deployment(json!({"containers": [container("app", limits)]}));
            Scene::of(computed(json!({"limits": {"cpu": "cpu"}})), object)
        }
        Reason::VolumeMissing => {
            Scene::of(json!({"containers": [container("proxy", mount("cache"))]}), deployment(plain()))
        }
        Reason::PodResourcesExceeded => {
            let sidecar = container("proxy", json!({"resources": {"requests": {"cpu": "1"}}}));
            let object = deployment(json!({"resources": {"requests": {"cpu": "500m"}}}));
            Scene::of(json!({"containers": [sidecar]}), object)
        }
        Reason::LowersPodSecurity => {
            let sidecar = container("proxy", json!({"securityContext": {"privileged": true}}));
            Scene::of(json!({"containers": [sidecar]}), deployment(plain()))
        }
        Reason::EnvNotFound => {
            let sidecar =
                container("proxy", json!({"transferEnv": [{"sourceContainerName": "app", "envName": "REGION"}]}));
            Scene::of(json!({"containers": [sidecar]}), deployment(plain()))
        }
        Reason::RecordTruncated => {
            let mut object = recorded(&json!({"v": 1, "sets": {"agent": {"code": "PL201"}}, "cut": 2}));
            object["metadata"]["annotations"]["kruise.io/sidecarset-injected-list"] = json!("agent,mesh");
            let mark = json!({"env": [{"name": "IS_INJECTED", "value": "true"}]});
            object["spec"]["containers"].as_array_mut().unwrap().push(container("proxy", mark));
            let mut scene = Scene::of(plain(), object);
            let other = json!({"containers": [container("other", plain())]});
            let agent = json!({"containers": [container("agent", plain())]});
            scene.sets.extend([set("agent", agent), set("other", other)]);
            scene
        }
        Reason::LedgerUnavailable | Reason::ContainerReplaced => {
            Scene::of(plain(), record_of(&json!({"code": "PL201", "warnings": [reason.code()]})))
        }
        Reason::Missed => Scene::of(plain(), recorded(&json!({"v": 1, "sets": {}}))),
        Reason::Predates => Scene::of(plain(), pod("web-0", BEFORE, plain())),
        Reason::EndsAsNative | Reason::EndsByAgent => {
            let record = json!({"v": 1, "sets": {}, "finish": {"logs": [reason.code()]}});
            Scene::of(json!({"selector": {"matchLabels": {"app": "db"}}}), recorded(&record))
        }
        Reason::FinishSwitchedOff => {
            Scene::of(json!({"containers": [container("proxy", json!({"sidecar": true}))]}), deployment(plain()))
        }
        _ => finishing(reason),
    }
}

/// A cluster in which sidecars are ended, and `pillion why` shows this code about a Job.
fn finishing(reason: Reason) -> Scene {
    let logs = |fields: Value| container("logs", merged(json!({"command": ["/logs"]}), fields));
    let work = || container("work", json!({"command": ["/work"]}));
    let image = json!([{"name": "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE", "value": "exit:1"}]);
    let wrap = json!({"pillion.dev/sidecars": "logs", "pillion.dev/finish-mode": "Wrap"});
    let native = json!({"pillion.dev/sidecars": "logs"});
    let (annotations, containers) = match reason {
        Reason::EndsNever | Reason::AgentNotSet => (wrap, json!([work(), logs(json!({}))])),
        Reason::UnknownSidecar => (native, json!([work()])),
        Reason::OnlySidecars => (native, json!([logs(json!({}))])),
        Reason::OwnRestartRules => (native, json!([work(), logs(json!({"restartPolicy": "Never"}))])),
        Reason::OwnerNamesContainers => (native, json!([work(), logs(json!({}))])),
        Reason::CommandMissing => (wrap, json!([work(), container("logs", json!({}))])),
        Reason::FinishClash => {
            let mount = json!({"volumeMounts": [{"name": "own", "mountPath": "/pillion-finish"}]});
            (wrap, json!([work(), logs(mount)]))
        }
        Reason::UnknownFinish => {
            let unknown = json!({"pillion.dev/sidecars": "logs", "pillion.dev/finish-mode": "Kill"});
            (unknown, json!([work(), logs(json!({}))]))
        }
        Reason::MarkImageIgnored => (json!({}), json!([work(), logs(json!({"env": image}))])),
        other => unreachable!("why does not show {other}"),
    };
    let restart = if reason == Reason::EndsNever { "Always" } else { "Never" };
    let mut object = deployment(json!({"containers": containers, "restartPolicy": restart}));
    object["spec"]["template"]["metadata"]["annotations"] = annotations;
    if reason == Reason::OwnerNamesContainers {
        object["apiVersion"] = json!("apps.kruise.io/v1alpha1");
        object["kind"] = json!("CloneSet");
    }
    let scene = Scene::of(json!({"selector": {"matchLabels": {"app": "db"}}}), object);
    let agent = (reason != Reason::AgentNotSet).then(|| Agent { image: "agent:1".to_owned(), ..Agent::default() });
    Scene { facts: Facts { finishes: true, agent, ..scene.facts.clone() }, ..scene }
}

#[test]
fn every_code_is_shown_with_its_cure() {
    let of_pods = |reason: &&Reason| matches!(reason.group(), Group::Verdict | Group::Refusal);
    for reason in Reason::ALL.iter().filter(of_pods).chain(&[Reason::Missed, Reason::Predates]) {
        let text = showing(*reason).text();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [reason.code(), &format!("cure {}", reason.cure())] {
            assert!(words.contains(part), "{reason}: {part} is not in:\n{text}");
        }
        insta::assert_snapshot!(reason.code(), text);
    }
}

#[test]
fn a_record_is_told_with_its_arithmetic() {
    let limits = |expression: &str| computed(json!({"limits": {"cpu": expression}}));
    let entry = json!({"code": "PL201", "warnings": ["PL352"],
        "sizes": {"proxy": {"limits.cpu": ["600m", "300m"]}}});
    let mut updated = record_of(&entry);
    updated["metadata"]["annotations"]["pillion.dev/revisions"] =
        json!(r#"{"mesh":{"is":"mesh-6f9c","since":1,"from":"mesh-51aa"}}"#);
    insta::assert_snapshot!(Scene::of(limits("max(cpu*50%, 50m)"), updated).text());
    // The set has changed since, or is gone: the amounts stand alone.
    for scene in
        [Scene::of(limits("cpu"), record_of(&entry)), Scene { sets: vec![], ..Scene::of(json!({}), record_of(&entry)) }]
    {
        let text = scene.text();
        assert!(text.contains("from 600m, by an expression that the set does not have any more"), "{text}");
    }
    let unlimited = json!({"code": "PL201", "sizes": {"proxy": {"limits.cpu": ["unlimited", "2"]}}});
    let text = Scene::of(limits("min(cpu*50%, 2)"), record_of(&unlimited)).text();
    assert!(text.contains("min(cpu*50%, 2)\n"), "{text}");
}

#[test]
fn a_code_of_a_newer_version_is_not_guessed_at() {
    let answers = Scene::of(json!({}), record_of(&json!({"code": "PL299", "why": "the moon is full"}))).answers();
    let row = &answers[0].rows[0];
    assert_eq!((row.verdict, row.reason), ("unknown", None));
    assert_eq!(row.message, "PL299, which only a newer version knows: the moon is full");
}

#[test]
fn a_pod_is_missed_only_if_it_is_younger_than_what_the_set_asks_for() {
    let verdict = |scene: &Scene| scene.answers()[0].rows[0].verdict;
    let mut scene = Scene::of(json!({}), pod("web-0", LATER, json!({})));
    assert_eq!((verdict(&scene), scene.answers()[0].is_finding()), ("missed", true));
    // The selector of the set changed after the pod was made.
    scene.sets[0]["status"] = json!({"selectorObservedTime": "2026-01-03T08:00:01Z", "fieldOfTomorrow": 1});
    assert_eq!((verdict(&scene), scene.answers()[0].is_finding()), ("predates", false));
    scene.sets[0]["status"] = json!({"selectorObservedTime": LATER});
    assert_eq!(verdict(&scene), "predates");
    scene.sets[0]["status"] = json!({"selectorObservedTime": BETWEEN});
    assert_eq!(verdict(&scene), "missed");
}

#[test]
fn a_set_that_gives_nothing_now_is_not_missed() {
    let empty = || recorded(&json!({"v": 1, "sets": {}}));
    let rows = |scene: &Scene| scene.answers()[0].rows.iter().map(|row| (row.verdict, row.reason)).collect::<Vec<_>>();
    let paused = Scene::of(json!({"injectStrategy": {"paused": true}}), empty());
    assert_eq!(rows(&paused), [("skip", Some(Reason::InjectionPaused))]);
    let observing = Scene::of(json!({"mode": "Observe"}), empty());
    assert_eq!(rows(&observing), [("skip", Some(Reason::Observed))]);
    let older = Scene { objects: vec![merged_created(empty(), BEFORE)], ..Scene::of(json!({}), empty()) };
    assert_eq!(rows(&older), [("predates", Some(Reason::Predates))]);
}

fn merged_created(mut pod: Value, created: &str) -> Value {
    pod["metadata"]["creationTimestamp"] = json!(created);
    pod
}

#[test]
fn a_set_that_matches_by_the_labels_of_another_set_is_not_missed() {
    let mut object = recorded(&json!({"v": 1, "sets": {"mesh": {"code": "PL201"}}}));
    object["metadata"]["annotations"]["kruise.io/sidecarset-injected-list"] = json!("mesh");
    object["metadata"]["labels"]["mesh"] = json!("on");
    let mut scene = Scene::of(json!({"labels": {"mesh": "on"}}), object);
    scene.sets.push(set("watcher", json!({"selector": {"matchLabels": {"mesh": "on"}}})));
    let answers = scene.answers();
    let row = &answers[0].rows[1];
    assert_eq!((row.set.as_str(), row.reason), ("watcher", Some(Reason::SelectorMismatch)));
    assert_eq!(row.message, "the selectors match only with labels that other sets gave the pod");
    assert!(!answers[0].is_finding());
}

#[test]
fn observing_and_being_off_are_no_findings_and_a_refusal_is() {
    let scene = Scene::of(json!({}), deployment(json!({})));
    let observing = Scene { facts: Facts { mode: SetMode::Observe, ..Facts::default() }, ..scene };
    assert_eq!(observing.answers()[0].rows[0].reason, Some(Reason::Observed));
    assert!(!observing.answers()[0].is_finding());
    assert!(showing(Reason::ContainerClash).answers()[0].is_finding());
}

#[test]
fn pods_with_the_same_answer_are_told_together() {
    let mut scene = Scene::of(json!({}), record_of(&json!({"code": "PL201"})));
    scene.objects = (0..5).map(|at| merged_name(&scene.objects[0], at)).collect();
    scene.objects.push(pod("web-9", LATER, json!({})));
    insta::assert_snapshot!(scene.text());
}

fn merged_name(pod: &Value, at: usize) -> Value {
    let mut pod = pod.clone();
    pod["metadata"]["name"] = json!(format!("web-{at}"));
    pod
}

#[test]
fn many_sets_that_do_not_match_are_counted() {
    let mut scene = Scene::of(json!({}), deployment(json!({})));
    let other = json!({"selector": {"matchLabels": {"app": "db"}}});
    scene.sets.extend((0..11).map(|at| set(&format!("other-{at:02}"), other.clone())));
    let text = scene.text();
    assert!(text.contains("\n  11 sets do not match; -o wide lists them, --set NAME asks for one\n"), "{text}");
    assert!(!text.contains("other-00") && !text.contains("PL202"), "{text}");
    let wide = shown(&[], &scene.answers(), Output::Wide);
    assert!(wide.contains("other-00") && wide.contains("other-10") && wide.contains("PL202"), "{wide}");
    // As long as there are few, all are told.
    scene.sets.pop();
    assert!(scene.text().contains("other-09"));
    let empty = Scene { sets: vec![], ..Scene::of(json!({}), deployment(json!({}))) };
    assert!(empty.text().contains("no set has anything to say: the cluster has none"));
}

#[test]
fn programs_get_the_same() {
    let scene = showing(Reason::Injected);
    insta::assert_snapshot!("json", shown(&[], &scene.answers(), Output::Json));
    let yaml = shown(&[], &scene.answers(), Output::Yaml);
    assert!(
        yaml.starts_with("objects:\n- kind: Deployment\n  name: web\n  namespace: shop\n  basis: template\n"),
        "{yaml}"
    );
    let recorded = showing(Reason::RecordTruncated).answers();
    assert_eq!(super::view::json(&recorded[0])["basis"], "record");
}

#[test]
fn a_sidecar_with_the_size_of_an_autoscaler_says_whose() {
    let record = json!({"v": 1, "sets": {"mesh": {"code": "PL201"}}, "sizedBy": {"proxy": "web"}});
    let text = Scene::of(json!({}), recorded(&record)).text();
    let note = "  note: proxy has the size of VerticalPodAutoscaler web: pillion size explain\n  vpa/web\n";
    assert!(text.contains(note), "{text}");
}
