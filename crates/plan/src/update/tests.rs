use super::*;

const REVISIONS_PATH: &str = "/metadata/annotations/pillion.dev~1revisions";

fn pod() -> Value {
    json!({
        "metadata": {
            "uid": "u-1", "labels": {"app": "web"},
            "annotations": {"pillion.dev/revisions": "before", "kruise.io/sidecarset-injected-list": "mesh"},
        },
        "spec": {
            "containers": [{"name": "app", "image": "app:1"}, {"name": "proxy", "image": "proxy:1"}],
            "initContainers": [{"name": "native", "image": "native:1"}],
        },
    })
}

fn update() -> PodUpdate {
    let image = |list, index, name: &str| ImageChange {
        list,
        index,
        name: name.to_owned(),
        from: format!("{name}:1"),
        to: format!("{name}:2"),
    };
    PodUpdate {
        namespace: "shop".to_owned(),
        name: "web-1".to_owned(),
        uid: "u-1".to_owned(),
        set: "mesh".to_owned(),
        to: "mesh-2".to_owned(),
        images: vec![image(List::Main, 1, "proxy"), image(List::Init, 0, "native")],
        resources: Vec::new(),
        record_before: Some("before".to_owned()),
        record_after: "after".to_owned(),
        adoption: None,
    }
}

fn patched(update: &PodUpdate, mut pod: Value) -> Result<Value, json_patch::PatchError> {
    let patch: json_patch::Patch = serde_json::from_value(update.patch()).unwrap();
    json_patch::patch(&mut pod, &patch)?;
    Ok(pod)
}

#[test]
fn a_patch_changes_images_and_the_record_and_nothing_else() {
    let mut expected = pod();
    expected["spec"]["containers"][1]["image"] = json!("proxy:2");
    expected["spec"]["initContainers"][0]["image"] = json!("native:2");
    expected["metadata"]["annotations"]["pillion.dev/revisions"] = json!("after");
    assert_eq!(patched(&update(), pod()).unwrap(), expected);
}

#[test]
fn a_pod_that_is_no_longer_what_the_plan_was_made_from_is_not_changed() {
    for (path, value) in [
        ("/metadata/uid", "u-2"),
        (REVISIONS_PATH, "meanwhile"),
        ("/spec/containers/1/name", "other"),
        ("/spec/containers/1/image", "proxy:9"),
        ("/spec/initContainers/0/image", "native:9"),
    ] {
        let mut other = pod();
        *other.pointer_mut(path).unwrap() = json!(value);
        assert!(patched(&update(), other).is_err(), "{path}");
    }
}

#[test]
fn a_pod_of_another_injector_gets_our_marks_and_keeps_its_own() {
    let adoption = Some(Adoption { containers: vec!["proxy".to_owned(), "native".to_owned()] });
    let mut foreign = pod();
    foreign["metadata"]["annotations"].as_object_mut().unwrap().remove("pillion.dev/revisions");
    let adopted = patched(&PodUpdate { record_before: None, adoption, ..update() }, foreign).unwrap();
    assert_eq!(
        adopted["metadata"],
        json!({
            "uid": "u-1", "labels": {"app": "web", "pillion.dev/injected": "true"},
            "annotations": {
                "pillion.dev/revisions": "after", "pillion.dev/containers": "proxy,native",
                "kruise.io/sidecarset-injected-list": "mesh",
            },
        })
    );
}

#[test]
fn a_resize_changes_resources_and_nothing_else() {
    assert_eq!(update().resize(), None);
    let change = ResourceChange {
        list: List::Init,
        index: 0,
        name: "native".to_owned(),
        from: None,
        to: json!({"limits": {"cpu": "1"}}),
    };
    let update = PodUpdate { images: Vec::new(), resources: vec![change], ..update() };
    let patch: json_patch::Patch = serde_json::from_value(update.resize().unwrap()).unwrap();
    let (mut resized, mut expected) = (pod(), pod());
    json_patch::patch(&mut resized, &patch).unwrap();
    expected["spec"]["initContainers"][0]["resources"] = json!({"limits": {"cpu": "1"}});
    assert_eq!(resized, expected);
    resized["metadata"]["uid"] = json!("u-2");
    assert!(json_patch::patch(&mut resized, &patch).is_err());
}

#[test]
fn a_plan_tells_people_what_it_does() {
    assert_eq!(Plan::default().to_string(), "nothing to write");
    let plan =
        Plan { actions: vec![Action::Update(update()), Action::Restore(PodUpdate { images: Vec::new(), ..update() })] };
    assert_eq!(
        plan.to_string(),
        "update pod shop/web-1 of set mesh to mesh-2: image of proxy from proxy:1 to proxy:2, image of native from native:1 to native:2\n\
         restore pod shop/web-1 of set mesh to mesh-2"
    );
}
