use super::*;

fn template() -> Value {
    json!({
        "metadata": {"name": "ignored", "labels": {"app": "web"}, "annotations": {"note": "kept"}, "uid": "ignored"},
        "spec": {"containers": [{"name": "app", "future": {"kept": true}}], "volumes": [{"name": "own"}, {"name": "data"}]},
    })
}

fn workload(api_version: &str, kind: &str, spec: &Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "web", "namespace": "shop"}, "spec": spec})
}

fn expanded(workload: &Value) -> WorkloadPod {
    pod_of(workload, "elsewhere").unwrap().unwrap()
}

#[test]
fn a_template_becomes_a_pod_as_controllers_make_it() {
    for (api_version, kind, spec, unknown) in [
        ("apps/v1", "Deployment", json!({"template": template()}), vec!["pod-template-hash"]),
        ("apps/v1", "ReplicaSet", json!({"template": template()}), vec![]),
        ("v1", "ReplicationController", json!({"template": template()}), vec![]),
        ("apps/v1", "DaemonSet", json!({"template": template()}), vec![REVISION, "pod-template-generation"]),
        (
            "batch/v1",
            "CronJob",
            json!({"schedule": "0 3 * * *", "jobTemplate": {"metadata": {"labels": {"job": "only"}}, "spec": {"template": template()}}}),
            vec![JOB_NAME, JOB_NAME_BEFORE, JOB_UID, JOB_UID_BEFORE],
        ),
        (
            "apps.kruise.io/v1alpha1",
            "CloneSet",
            json!({"template": template()}),
            vec![REVISION, "apps.kruise.io/cloneset-instance-id"],
        ),
    ] {
        let mut found = expanded(&workload(api_version, kind, &spec));
        let owners = found.pod["metadata"].as_object_mut().unwrap().remove("ownerReferences");
        let owner = json!({"apiVersion": api_version, "kind": kind, "name": "web", "controller": true});
        assert_eq!(owners, (kind == "CloneSet").then(|| json!([owner])));
        assert_eq!(
            found.pod,
            json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"generateName": "web-", "namespace": "shop", "labels": {"app": "web"}, "annotations": {"note": "kept"}},
                "spec": template()["spec"],
            }),
            "{kind}"
        );
        assert_eq!(found.origin, Origin { kind: kind.into(), name: "web".into(), namespace: "shop".into() });
        assert!(found.origin.is_template());
        assert_eq!(found.unknown_labels, unknown, "{kind}");
    }
}

#[test]
fn a_pod_is_itself() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "web-"}, "spec": {"future": 1}, "status": {}});
    let found = expanded(&pod);
    assert_eq!(found.pod, pod);
    assert_eq!(found.origin, Origin { kind: "Pod".into(), name: "web-".into(), namespace: "elsewhere".into() });
    assert!(!found.origin.is_template());
}

#[test]
fn the_first_pod_of_a_stateful_set_has_its_names_and_claims() {
    let claims = json!([{"metadata": {"name": "data"}}, {"metadata": {"name": "logs"}}]);
    let spec = json!({"serviceName": "peers", "template": template(), "volumeClaimTemplates": claims});
    let found = expanded(&workload("apps/v1", "StatefulSet", &spec));
    assert_eq!(
        found.pod["metadata"],
        json!({
            "name": "web-0", "generateName": "web-", "namespace": "shop", "annotations": {"note": "kept"},
            "labels": {"app": "web", "statefulset.kubernetes.io/pod-name": "web-0", "apps.kubernetes.io/pod-index": "0"},
        })
    );
    assert_eq!(
        found.pod["spec"],
        json!({
            "hostname": "web-0", "subdomain": "peers",
            "containers": [{"name": "app", "future": {"kept": true}}],
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}},
                {"name": "logs", "persistentVolumeClaim": {"claimName": "logs-web-0"}},
                {"name": "own"},
            ],
        })
    );
    let mut counted_from_five = spec;
    counted_from_five["ordinals"] = json!({"start": 5});
    let found = expanded(&workload("apps/v1", "StatefulSet", &counted_from_five));
    assert_eq!(found.pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"], "5");
    assert_eq!(found.pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"], "data-web-5");
}

#[test]
fn claims_of_a_clone_set_have_an_id_nobody_knows_yet() {
    let spec = json!({"template": template(), "volumeClaimTemplates": [{"metadata": {"name": "data"}}]});
    let found = expanded(&workload("apps.kruise.io/v1alpha1", "CloneSet", &spec));
    assert_eq!(
        found.pod["spec"]["volumes"],
        json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-xxxxx"}}, {"name": "own"}])
    );
}

#[test]
fn pods_of_a_job_carry_its_name() {
    let found = expanded(&workload("batch/v1", "Job", &json!({"template": template()})));
    assert_eq!(found.pod["metadata"]["generateName"], "web-");
    assert_eq!(found.pod["metadata"]["labels"], json!({"app": "web", "job-name": "web", JOB_NAME: "web"}));
    assert_eq!(found.unknown_labels, [JOB_UID, JOB_UID_BEFORE]);
    let mut named = template();
    named["metadata"]["labels"]["job-name"] = json!("own");
    let found = expanded(&workload("batch/v1", "Job", &json!({"template": named})));
    assert_eq!(found.pod["metadata"]["labels"], json!({"app": "web", "job-name": "own", JOB_NAME: "web"}));
    let manual = expanded(&workload("batch/v1", "Job", &json!({"manualSelector": true, "template": template()})));
    assert_eq!(manual.pod["metadata"]["labels"], json!({"app": "web"}));
}

#[test]
fn the_first_pod_of_an_indexed_job_knows_its_index() {
    let mut template = template();
    template["spec"]["initContainers"] =
        json!([{"name": "init", "env": [{"name": JOB_INDEX_VARIABLE, "value": "own"}]}]);
    let found = expanded(&workload("batch/v1", "Job", &json!({"completionMode": "Indexed", "template": template})));
    assert_eq!(found.pod["metadata"]["generateName"], "web-0-");
    assert_eq!(found.pod["metadata"]["labels"][JOB_INDEX], "0");
    assert_eq!(found.pod["metadata"]["annotations"], json!({"note": "kept", JOB_INDEX: "0"}));
    assert_eq!(found.pod["spec"]["hostname"], "web-0");
    assert_eq!(found.pod["spec"]["initContainers"][0]["env"], json!([{"name": JOB_INDEX_VARIABLE, "value": "own"}]));
    assert_eq!(
        found.pod["spec"]["containers"][0]["env"],
        json!([{"name": JOB_INDEX_VARIABLE,
                "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']"}}}])
    );
}

#[test]
fn other_kinds_and_other_groups_create_no_pods() {
    for (api_version, kind) in
        [("v1", "Service"), ("apps.example/v1", "Deployment"), ("", "Deployment"), ("batch/v1", "Pod")]
    {
        assert_eq!(pod_of(&workload(api_version, kind, &json!({"template": template()})), "x"), Ok(None), "{kind}");
    }
    assert_eq!(pod_of(&json!({}), "x"), Ok(None));
}

#[test]
fn a_workload_without_a_template_is_named() {
    let unreadable = |workload: &Value| pod_of(workload, "x").unwrap_err().to_string();
    assert_eq!(unreadable(&workload("apps/v1", "Deployment", &json!({}))), "spec.template is missing");
    assert_eq!(
        unreadable(&workload("batch/v1", "CronJob", &json!({"jobTemplate": {"spec": {"template": 1}}}))),
        "spec.jobTemplate.spec.template is no object"
    );
    let claims = json!({"template": template(), "volumeClaimTemplates": [{"metadata": {}}]});
    assert_eq!(unreadable(&workload("apps/v1", "StatefulSet", &claims)), "spec.volumeClaimTemplates[0] has no name");
}
