//! The examples people copy: each means what it says, in both spellings.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use pillion_api::{
    AnnotationPatch, Condition, FailurePolicy, Injection, Meaning, Namespaces, PatchPolicy, Pin, Placement, PodCount,
    PodField, Priority, Proportion, RevisionPolicy, RevisionReference, SetMode, SidecarKind, Transfer, TransferSource,
    UpdateType, review, sidecar_set_schema, template,
};
use pillion_expr::{Field, Input, Mode, Outcome, Sign};
use pillion_generators::{declared_fields, given_fields};
use serde_json::{Map, Value, json};

use crate::spelling;

fn example(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sidecarset").join(format!("{name}.yaml"));
    serde_saphyr::from_str(&fs::read_to_string(&path).unwrap()).unwrap()
}

fn meaning(object: &Value) -> Meaning {
    let review = review(object);
    assert_eq!(review.problems, [], "{}", object["metadata"]["name"]);
    review.meaning.unwrap()
}

/// Mode, pattern, and the expressions of limits.cpu, limits.memory, requests.cpu, requests.memory.
fn computed(name: &str) -> (Mode, String, [String; 4]) {
    let meaning = meaning(&example(name));
    let sidecar = meaning.template.containers.iter().chain(&meaning.template.init_containers).next().unwrap();
    let policy = sidecar.resources.as_ref().unwrap();
    let fields = [Field::LIMITS_CPU, Field::LIMITS_MEMORY, Field::REQUESTS_CPU, Field::REQUESTS_MEMORY];
    let sources = fields.map(|field| policy.program(field).unwrap().source().to_owned());
    (policy.mode, policy.targets.as_str().to_owned(), sources)
}

#[test]
fn every_example_means_the_same_in_both_spellings() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sidecarset");
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let object = example(path.file_stem().unwrap().to_str().unwrap());
            let other = spelling::of_openkruise(&object);
            assert_ne!(object, other, "{}", path.display());
            assert_eq!(spelling::of_openkruise(&other), other, "{}", path.display());
            assert_eq!(meaning(&object), meaning(&other), "{}", path.display());
            seen += 1;
        }
    }
    assert_eq!(seen, 9);
}

#[test]
fn the_stories_compute_what_they_say() {
    let half = "max(cpu*50%, 50m)";
    let common = [half, "200Mi", half, "100Mi"].map(str::to_owned);
    assert_eq!(computed("story-1-one-container"), (Mode::Sum, "^large-engine-v4$".to_owned(), common.clone()));
    assert_eq!(computed("story-2-sum"), (Mode::Sum, "^large-engine-v.*$".to_owned(), common.clone()));
    assert_eq!(computed("story-3-max"), (Mode::Max, "^large-engine-v.*$".to_owned(), common.clone()));
    assert_eq!(computed("story-4-unlimited"), (Mode::Max, "^large-engine-v.*$".to_owned(), common));
    let curve = "0.5*cpu - 0.3*max(0, cpu-4) + 0.3*max(0, cpu-8)";
    let expected = [curve, "200Mi", curve, "100Mi"].map(str::to_owned);
    assert_eq!(computed("story-5-curve"), (Mode::Sum, "^large-engine-v.*$".to_owned(), expected));
    let expected = ["max(cpu*30%, 50m)", "max(memory*25%, 100Mi)", "cpu*20%", "memory*15%"].map(str::to_owned);
    assert_eq!(computed("story-6-native-sidecar"), (Mode::Sum, "^app.*$".to_owned(), expected));
}

#[test]
fn story_five_is_proven_and_story_six_is_native() {
    let story = meaning(&example("story-5-curve"));
    let program = story.template.containers[0].resources.as_ref().unwrap().program(Field::LIMITS_CPU).unwrap().clone();
    assert_eq!(program.analysis().sign(), Sign::NeverNegative);
    let at = |amount: &str| program.eval(Input::Amount(amount.parse().unwrap())).unwrap();
    assert_eq!([at("4"), at("8"), at("10")], ["2", "2800m", "3800m"].map(|it| Outcome::Amount(it.parse().unwrap())));

    let story = meaning(&example("story-6-native-sidecar"));
    let sidecar = &story.template.init_containers[0];
    assert_eq!((sidecar.kind, sidecar.placement), (SidecarKind::NativeSidecar, Placement::After));
    assert_eq!(
        Value::Object(sidecar.container.clone()),
        json!({"name": "init-sidecar", "image": "busybox:latest", "restartPolicy": "Always"})
    );
    assert_eq!(story.template.containers, []);
}

#[test]
fn defaults_are_applied_in_code() {
    let story = meaning(&example("story-1-one-container"));
    assert_eq!(story.name, "one-container");
    assert_eq!(story.namespaces, Namespaces::All);
    assert_eq!((story.failure_policy, story.mode), (FailurePolicy::Fail, SetMode::Inject));
    assert!(!story.allow_opt_out);
    assert_eq!(story.injection, Injection { paused: false, pin: None, proportion: Proportion::Exact });
    assert_eq!(story.update.kind, UpdateType::RollingUpdate);
    assert_eq!((story.update.partition, story.update.max_unavailable), (PodCount::Pods(0), PodCount::Pods(1)));
    assert_eq!((story.update.priority, story.update.selector), (Priority::None, None));
    assert_eq!(story.revision_history_limit, 10);
    let sidecar = &story.template.containers[0];
    assert_eq!((sidecar.kind, sidecar.placement), (SidecarKind::Container, Placement::Before));
    assert!(!sidecar.shares_volumes && !sidecar.shares_devices && !sidecar.ends_with_the_others);
}

#[test]
fn revisions_are_pinned_always_or_in_proportion() {
    let pin = |name: &str, policy| Some(Pin { revision: RevisionReference::Name(name.to_owned()), policy });
    let always = meaning(&example("revision-always")).injection.pin;
    assert_eq!(always, pin("revision-always-7c9f", RevisionPolicy::Always));
    let proportion = meaning(&example("revision-in-proportion"));
    assert_eq!(proportion.injection.pin, pin("revision-in-proportion-7c9f", RevisionPolicy::Partial));
    assert_eq!(proportion.update.partition, PodCount::Percent(90));
}

#[test]
fn every_field_has_its_meaning() {
    let set = meaning(&example("every-field"));
    assert_eq!(set.custom_version.as_deref(), Some("2026.11"));
    let values = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect::<BTreeSet<_>>();
    let requirements: Vec<_> = set.selector.requirements().iter().map(|it| (it.key.as_str(), &it.condition)).collect();
    assert_eq!(
        requirements,
        [
            ("app", &Condition::In(values(&["web"]))),
            ("tier", &Condition::NotIn(values(&["batch", "test"]))),
            ("no-sidecars", &Condition::DoesNotExist)
        ]
    );
    assert!(
        matches!(&set.namespaces, Namespaces::Selected(it) if it.matches(|key| (key == "sidecars").then_some("wanted")))
    );
    assert_eq!((set.mode, set.failure_policy, set.allow_opt_out), (SetMode::Observe, FailurePolicy::Ignore, true));
    assert_eq!((set.injection.paused, set.injection.proportion), (true, Proportion::Random));

    let template = &set.template;
    let kinds: Vec<_> = template.init_containers.iter().map(|it| (it.name.as_str(), it.kind, it.placement)).collect();
    assert_eq!(
        kinds,
        [
            ("prepare", SidecarKind::PlainInit, Placement::Before),
            ("proxy", SidecarKind::NativeSidecar, Placement::After)
        ]
    );
    let logs = &template.containers[0];
    assert_eq!((logs.kind, logs.placement), (SidecarKind::Container, Placement::After));
    assert!(logs.shares_volumes && logs.shares_devices && logs.ends_with_the_others);
    assert_eq!(
        logs.transfers,
        [
            Transfer {
                source: TransferSource::Container("app".to_owned()),
                names: ["LOG_LEVEL", "REGION", "ZONE"].map(str::to_owned).to_vec()
            },
            Transfer {
                source: TransferSource::FromPod(PodField::Label("main-container".to_owned())),
                names: vec!["SERVICE".to_owned()]
            },
        ]
    );
    assert_eq!(
        Value::Object(logs.container.clone()),
        json!({
            "name": "logs", "image": "registry.example/logs:3", "fieldOfTomorrow": {"kept": "as it is"},
            "resources": {"limits": {"cpu": 0.5, "memory": "128Mi"}, "requests": {"cpu": "100m", "memory": "64Mi"}},
            "volumeMounts": [{"name": "spool", "mountPath": "/spool"}],
        })
    );
    let volumes: Vec<_> = template.volumes.iter().map(|it| (it.name.as_str(), &it.volume["emptyDir"])).collect();
    assert_eq!(volumes, [("spool", &json!({})), ("files", &json!({"sizeLimit": "100Mi"}))]);
    assert_eq!(template.image_pull_secrets, ["registry"]);
    let patch =
        |key: &str, value: &str, policy| AnnotationPatch { key: key.to_owned(), value: value.to_owned(), policy };
    assert_eq!(
        template.annotations,
        [
            patch("example.com/owner", "platform", PatchPolicy::Retain),
            patch("example.com/limits", r#"{"rate": 10}"#, PatchPolicy::MergePatchJson),
            patch("example.com/scrape", "true", PatchPolicy::Overwrite),
        ]
    );
    assert_eq!(template.labels, BTreeMap::from([("example.com/logs".to_owned(), "shipped".to_owned())]));
    assert_eq!(template.service_account_name.as_deref(), Some("sidecars"));
    assert_eq!(template.share_process_namespace, Some(true));
    let mount = &template.app_volume_mounts[0];
    let parts = (mount.targets.as_str(), mount.volume.as_str(), mount.path.as_str(), mount.read_only);
    assert_eq!(parts, ("^app$", "files", "/files", true));

    assert_eq!((set.update.kind, set.update.paused), (UpdateType::RollingUpdate, true));
    assert!(set.update.selector.is_some_and(|it| it.matches(|key| (key == "canary").then_some("yes"))));
    assert_eq!((set.update.partition, set.update.max_unavailable), (PodCount::Percent(20), PodCount::Pods(3)));
    assert!(matches!(&set.update.priority, Priority::Weights(terms) if terms.len() == 1 && terms[0].0 == 50));
    assert_eq!(set.update.scatter, [("zone".to_owned(), "*".to_owned())]);
    assert_eq!(set.revision_history_limit, 5);
}

#[test]
fn the_fields_of_a_revision_are_a_template_of_their_own() {
    let spec = example("every-field")["spec"].clone();
    let covered = [
        "containers",
        "initContainers",
        "volumes",
        "imagePullSecrets",
        "patchPodMetadata",
        "labels",
        "serviceAccountName",
        "shareProcessNamespace",
        "appVolumeMounts",
    ];
    let mut fields: Map<String, Value> =
        covered.map(|name| (name.to_owned(), spec[name].clone())).into_iter().collect();
    assert_eq!(template(&fields), Ok(meaning(&example("every-field")).template));

    fields["initContainers"][1]["resourcesPolicy"]["targetContainerMode"] = Value::Null;
    let problems: Vec<String> = template(&fields).unwrap_err().iter().map(ToString::to_string).collect();
    let place = "spec.initContainers[1].resourcesPolicy.targetContainerMode";
    assert_eq!(problems, [format!("{place}: PL104: targetContainerMode is required: set it to sum or max")]);
}

#[test]
fn the_example_of_every_field_has_every_field() {
    let declared = declared_fields(&sidecar_set_schema()["properties"]["spec"]);
    let given = given_fields(&example("every-field")["spec"]);
    let missing: Vec<_> = declared.difference(&given).map(String::as_str).collect();
    // The other spelling, what excludes another field, and what is refused.
    let expected = [
        ".containers.resourcesPolicy.resourcesExpr",
        ".containers.resourcesPolicy.resourcesExpr.limits",
        ".containers.resourcesPolicy.resourcesExpr.requests",
        ".containers.resourcesPolicy.targetContainersMode",
        ".containers.upgradeStrategy.hotUpgradeEmptyImage",
        ".customVersion",
        ".injectStrategy.controllerRevision",
        ".injectionStrategy",
        ".injectionStrategy.paused",
        ".injectionStrategy.proportion",
        ".injectionStrategy.revision",
        ".injectionStrategy.revision.customVersion",
        ".injectionStrategy.revision.policy",
        ".injectionStrategy.revision.revisionName",
        ".namespace",
        ".namespaceSelector.matchExpressions",
        ".namespaceSelector.matchExpressions.key",
        ".namespaceSelector.matchExpressions.operator",
        ".namespaceSelector.matchExpressions.values",
        ".updateStrategy.priorityStrategy.orderPriority",
        ".updateStrategy.priorityStrategy.orderPriority.orderedKey",
        ".updateStrategy.priorityStrategy.weightPriority.matchSelector.matchExpressions",
        ".updateStrategy.priorityStrategy.weightPriority.matchSelector.matchExpressions.key",
        ".updateStrategy.priorityStrategy.weightPriority.matchSelector.matchExpressions.operator",
        ".updateStrategy.priorityStrategy.weightPriority.matchSelector.matchExpressions.values",
        ".updateStrategy.selector.matchExpressions",
        ".updateStrategy.selector.matchExpressions.key",
        ".updateStrategy.selector.matchExpressions.operator",
        ".updateStrategy.selector.matchExpressions.values",
    ];
    assert_eq!(missing, expected);
}
