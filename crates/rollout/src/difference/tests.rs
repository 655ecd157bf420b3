use pillion_api::template;
use serde_json::{Value, json};

use super::*;

fn fields() -> Value {
    json!({
        "containers": [{"name": "proxy", "image": "proxy:1", "env": [{"name": "A", "value": "1"}]}, {"name": "logs", "image": "logs:1"}],
        "initContainers": [
            {"name": "once", "image": "once:1"},
            {"name": "native", "image": "native:1", "restartPolicy": "Always"},
        ],
        "volumes": [{"name": "v", "emptyDir": {}}],
    })
}

fn difference(edit: impl FnOnce(&mut Value)) -> Difference {
    let read = |fields: &Value| template(fields.as_object().unwrap()).unwrap();
    let (old, mut new) = (fields(), fields());
    edit(&mut new);
    Difference::between(&read(&old), &read(&new))
}

fn recreate(edit: impl FnOnce(&mut Value)) -> Vec<String> {
    let difference = difference(edit);
    assert_eq!((difference.images, difference.resources, difference.later), (vec![], vec![], vec![]));
    difference.recreate
}

fn place(list: List, name: &str) -> Place {
    Place { list, name: name.to_owned() }
}

#[test]
fn nothing_lies_between_a_revision_and_itself() {
    let same = difference(|_| {});
    assert_eq!(same, Difference::default());
    assert!(same.is_nothing_for_running_pods());
}

#[test]
fn images_of_containers_and_native_sidecars_can_be_followed() {
    let changed = difference(|it| {
        it["containers"][1]["image"] = json!("logs:2");
        it["initContainers"][1]["image"] = json!("native:2");
        it["initContainers"][0]["image"] = json!("once:2");
    });
    assert_eq!(changed.images, [place(List::Main, "logs"), place(List::Init, "native")]);
    assert_eq!(changed.later, ["plain init containers"]);
    assert_eq!((changed.resources.len(), changed.recreate.len()), (0, 0));
    assert!(!changed.is_nothing_for_running_pods());
}

#[test]
fn plain_init_containers_and_computed_resources_are_for_later_pods() {
    let expression = json!({"resourceExpr": {"limits": {"cpu": "cpu*50%"}}, "targetContainerMode": "sum"});
    for (edit, words) in [
        (
            json!({"initContainers": [{"name": "native", "image": "native:1", "restartPolicy": "Always"}]}),
            "plain init containers",
        ),
        (
            json!({"containers": [
                {"name": "proxy", "image": "proxy:1", "env": [{"name": "A", "value": "1"}], "resourcesPolicy": expression},
                {"name": "logs", "image": "logs:1"},
            ]}),
            "resourcesPolicy of container proxy",
        ),
    ] {
        let changed = difference(|it| it.as_object_mut().unwrap().extend(edit.as_object().unwrap().clone()));
        assert_eq!(changed.later, [words]);
        assert!(changed.is_nothing_for_running_pods(), "{changed:?}");
    }
}

#[test]
fn fixed_resources_are_of_their_own_kind() {
    let changed = difference(|it| it["containers"][0]["resources"] = json!({"limits": {"cpu": "1"}}));
    assert_eq!((changed.resources, changed.recreate), (vec![place(List::Main, "proxy")], vec![]));
    let claims = recreate(|it| it["containers"][0]["resources"] = json!({"claims": [{"name": "gpu"}]}));
    assert_eq!(claims, ["resources.claims of container proxy"]);
}

#[test]
fn from_computed_to_fixed_resources_a_pod_can_follow() {
    let read = |resources: Value| {
        let mut fields = fields();
        fields["containers"][0].as_object_mut().unwrap().extend(resources.as_object().unwrap().clone());
        template(fields.as_object().unwrap()).unwrap()
    };
    let computed = read(
        json!({"resourcesPolicy": {"resourceExpr": {"limits": {"cpu": "cpu*50%"}}, "targetContainerMode": "sum"}}),
    );
    let fixed = read(json!({"resources": {"limits": {"cpu": "1"}}}));
    let changed = Difference::between(&computed, &fixed);
    assert_eq!((changed.resources, changed.recreate), (vec![place(List::Main, "proxy")], vec![]));
    let back = Difference::between(&fixed, &computed);
    assert!(back.is_nothing_for_running_pods(), "{back:?}");
}

#[test]
fn everything_else_is_named_and_needs_a_new_pod() {
    assert_eq!(recreate(|it| it["containers"][0]["env"] = json!([])), ["env of container proxy"]);
    assert_eq!(recreate(|it| it["volumes"] = json!(null)), ["volumes"]);
    assert_eq!(recreate(|it| it["labels"] = json!({"a": "b"})), ["labels"]);
    assert_eq!(recreate(|it| it["imagePullSecrets"] = json!([{"name": "s"}])), ["imagePullSecrets"]);
    assert_eq!(recreate(|it| it["serviceAccountName"] = json!("a")), ["serviceAccountName"]);
    assert_eq!(recreate(|it| it["shareProcessNamespace"] = json!(true)), ["shareProcessNamespace"]);
    assert_eq!(
        recreate(|it| it["patchPodMetadata"] = json!([{"annotations": {"a": "b"}, "patchPolicy": "Retain"}])),
        ["patchPodMetadata"]
    );
    assert_eq!(recreate(|it| it["appVolumeMounts"] = json!([{"volume": "v", "path": "/v"}])), ["appVolumeMounts"]);
    assert_eq!(
        recreate(|it| it["containers"][0]["podInjectPolicy"] = json!("AfterAppContainer")),
        ["podInjectPolicy of container proxy"]
    );
    assert_eq!(
        recreate(|it| it["containers"][0]["shareVolumePolicy"] = json!({"type": "enabled"})),
        ["shareVolumePolicy of container proxy"]
    );
    assert_eq!(
        recreate(|it| it["containers"][0]["transferEnv"] = json!([{"sourceContainerName": "app", "envName": "B"}])),
        ["transferEnv of container proxy"]
    );
    assert_eq!(recreate(|it| it["containers"][0]["sidecar"] = json!(true)), ["sidecar of container proxy"]);
    assert_eq!(recreate(|it| _ = it["containers"].as_array_mut().unwrap().pop()), ["container logs is gone"]);
    assert_eq!(
        recreate(|it| it["containers"].as_array_mut().unwrap().push(json!({"name": "new", "image": "n"}))),
        ["container new is new"]
    );
    assert_eq!(recreate(|it| it["containers"].as_array_mut().unwrap().reverse()), ["the order of containers"]);
    let native = difference(|it| it["initContainers"][0]["restartPolicy"] = json!("Always"));
    assert_eq!(native.recreate, ["container once is new"]);
    let moved = recreate(|it| {
        let native = it["initContainers"].as_array_mut().unwrap().pop().unwrap();
        it["containers"].as_array_mut().unwrap().push(json!({"name": native["name"], "image": native["image"]}));
    });
    assert_eq!(moved, ["container native moves from initContainers to containers"]);
}
