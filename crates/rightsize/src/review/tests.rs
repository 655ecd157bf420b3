use serde_json::{Value, json};

use super::*;

fn findings(spec: &Value) -> Vec<String> {
    let mut spec = spec.clone();
    spec["targetRef"] = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let object = json!({"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler", "metadata": {"name": "web"}, "spec": spec});
    let found = review(&serde_json::from_value(object).unwrap());
    found.iter().map(|own| format!("{}{own}", if own.is_error() { "" } else { "note: " })).collect()
}

fn of_policy(fields: &Value) -> Vec<String> {
    let mut policy = fields.clone();
    policy["containerName"] = "app".into();
    let found = findings(&json!({"resourcePolicy": {"containerPolicies": [policy]}}));
    found.iter().map(|line| line.replace("spec.resourcePolicy.containerPolicies[0].", "")).collect()
}

#[test]
fn what_upstream_accepts_is_accepted() {
    assert_eq!(findings(&json!({})), Vec::<String>::new());
    let whole = json!({
        "updatePolicy": {"updateMode": "InPlaceOrRecreate", "minReplicas": 1, "evictionRequirements": [
            {"resources": ["cpu", "memory"], "changeRequirement": "TargetHigherThanRequests"}]},
        "resourcePolicy": {"containerPolicies": [
            {"containerName": "*", "mode": "Auto", "minAllowed": {"cpu": "10m", "memory": "1Mi"}, "maxAllowed": {"cpu": "0.01", "memory": "1Gi"},
             "controlledResources": ["cpu", "memory"], "controlledValues": "RequestsOnly"},
            {"containerName": "app", "startupBoost": {"cpu": {"type": "Quantity", "quantity": "500m"}}}]},
        "startupBoost": {"cpu": {"type": "Factor", "factor": 2, "durationSeconds": 10}},
        "recommenders": [{"name": "pillion"}],
    });
    assert_eq!(findings(&whole), Vec::<String>::new());
}

#[test]
fn the_update_policy_is_checked() {
    let of = |fields: Value| findings(&json!({"updatePolicy": fields}));
    assert_eq!(
        of(json!({})),
        ["spec.updatePolicy.updateMode: PL601: is missing: use Off, Initial, Recreate, InPlaceOrRecreate or InPlace"]
    );
    assert_eq!(
        of(json!({"updateMode": "Sometimes", "minReplicas": 0})),
        [
            "spec.updatePolicy.updateMode: PL601: \"Sometimes\" is no mode: use Off, Initial, Recreate, InPlaceOrRecreate or InPlace",
            "spec.updatePolicy.minReplicas: PL601: 0 is too small: write 1 or more"
        ]
    );
    assert_eq!(
        of(json!({"updateMode": "Auto", "evictAfterOOMSeconds": 60})),
        [
            "note: spec.updatePolicy.updateMode: PL603: Auto is deprecated and means Recreate: write Recreate",
            "note: spec.updatePolicy.evictAfterOOMSeconds: PL602: this field has no effect: it is not supported for one object: use \
             the flag --evict-after-oom-threshold"
        ]
    );
    let requirement = json!({"resources": ["gpu"], "changeRequirement": "TargetHigherThanRequests"});
    assert_eq!(
        of(json!({"updateMode": "Recreate", "evictionRequirements": [requirement]})),
        [
            "note: spec.updatePolicy.evictionRequirements[0].resources[0]: PL602: \"gpu\" is not sized: use cpu or memory"
        ]
    );
}

#[test]
fn the_policies_of_containers_are_checked() {
    assert_eq!(
        of_policy(&json!({"minAllowed": {"cpu": "2"}, "maxAllowed": {"cpu": "1"}})),
        ["maxAllowed[cpu]: PL601: maxAllowed 1 is less than minAllowed 2: raise it, or lower the other"]
    );
    assert_eq!(
        of_policy(&json!({"minAllowed": {"cpu": "0.5m"}, "maxAllowed": {"memory": "1.5"}})),
        [
            "minAllowed[cpu]: PL601: \"0.5m\" is not a whole number of millicores: round it",
            "maxAllowed[memory]: PL601: \"1.5\" is not a whole number of bytes: round it"
        ]
    );
    assert_eq!(
        of_policy(&json!({"mode": "Off", "controlledValues": "RequestsAndLimits"})),
        ["controlledValues: PL601: nothing is controlled where mode is Off: remove one of the two"]
    );
    assert_eq!(
        of_policy(&json!({"controlledResources": ["cpu", "gpu"]})),
        ["controlledResources[1]: PL601: \"gpu\" is not sized: use cpu or memory"]
    );
    assert_eq!(of_policy(&json!({"mode": "On"})), ["mode: PL601: \"On\" is no mode: use Auto or Off"]);
    assert_eq!(
        of_policy(&json!({"controlledValues": "Limits"})),
        ["controlledValues: PL601: \"Limits\" is not known: use RequestsAndLimits or RequestsOnly"]
    );
    let fields = json!({"oomBumpUpRatio": "1.5", "oomMinBumpUp": "1Mi", "memoryAggregationIntervalSeconds": 1, "memoryAggregationIntervalCount": 1});
    let flags = [
        "--oom-bump-up-ratio",
        "--oom-min-bump-up-bytes",
        "--memory-aggregation-interval",
        "--memory-aggregation-interval-count",
    ];
    let found = of_policy(&fields);
    assert_eq!(found.len(), 4);
    for (line, flag) in found.iter().zip(flags) {
        assert!(
            line.starts_with("note: ") && line.ends_with(&format!("not supported for one object: use the flag {flag}")),
            "{line}"
        );
    }
    let twice = json!({"resourcePolicy": {"containerPolicies": [{"containerName": "a"}, {"containerName": "a"}, {}]}});
    assert_eq!(
        findings(&twice),
        [
            "note: spec.resourcePolicy.containerPolicies[1].containerName: PL602: \"a\" has a policy above, which holds: remove one of the two",
            "spec.resourcePolicy.containerPolicies[2].containerName: PL601: is missing: name a container, or * for all others"
        ]
    );
}

#[test]
fn boosts_and_recommenders_are_checked() {
    let boost = |cpu: Value| findings(&json!({"startupBoost": {"cpu": cpu}}));
    assert_eq!(
        boost(json!({"type": "Factor"})),
        ["spec.startupBoost.cpu.factor: PL601: is missing for type Factor: write it, as 2"]
    );
    assert_eq!(
        boost(json!({"type": "Factor", "factor": 0})),
        ["spec.startupBoost.cpu.factor: PL601: 0 is too small: write 1 or more"]
    );
    assert_eq!(
        boost(json!({"type": "Quantity"})),
        ["spec.startupBoost.cpu.quantity: PL601: is missing for type Quantity: write it, as 500m"]
    );
    assert_eq!(
        boost(json!({"type": "Quantity", "quantity": "1u"})),
        ["spec.startupBoost.cpu.quantity: PL601: \"1u\" is not a whole number of millicores: round it"]
    );
    assert_eq!(
        boost(json!({"type": "More"})),
        ["spec.startupBoost.cpu.type: PL601: \"More\" is not known: use Factor or Quantity"]
    );
    assert_eq!(
        findings(&json!({"recommenders": [{"name": "a"}, {"name": "b"}]})),
        ["spec.recommenders: PL601: names more than one recommender: keep one"]
    );
}

#[test]
fn our_own_mode_is_checked() {
    let of = |mode: &str| {
        let object = json!({"metadata": {"annotations": {UPDATE_MODE: mode}}, "spec": {"targetRef": {"kind": "Job", "name": "a"}}});
        let found = review(&serde_json::from_value(object).unwrap());
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(of("InPlace"), Vec::<String>::new());
    for wrong in ["", "Sometimes"] {
        let expected = format!(
            "metadata.annotations[pillion.dev/update-mode]: PL601: {wrong:?} is no mode: use Initial, Recreate, \
             InPlaceOrRecreate or InPlace"
        );
        assert_eq!(of(wrong), [expected]);
    }
}
