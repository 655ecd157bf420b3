use super::*;

#[test]
fn an_object_as_upstream_writes_it_is_read_and_written_the_same() {
    let object = json!({
        "apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "updatePolicy": {"updateMode": "SomethingNew", "evictAfterOOMSeconds": 60,
                "evictionRequirements": [{"resources": ["cpu"], "changeRequirement": "TargetHigherThanRequests"}]},
            "resourcePolicy": {"containerPolicies": [{"containerName": "*", "mode": "Auto", "maxAllowed": {"cpu": "1"}}]},
            "recommenders": [{"name": "pillion"}],
        },
        "status": {
            "recommendation": {"containerRecommendations": [{"containerName": "app", "target": {"cpu": "25m"}}]},
            "conditions": [{"type": "RecommendationProvided", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        },
    });
    let read: VerticalPodAutoscaler = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), object);
}

#[test]
fn definitions_have_the_names_and_parts_that_clients_of_upstream_use() {
    let crd = vertical_pod_autoscaler_crd();
    assert_eq!(crd["metadata"]["name"], "verticalpodautoscalers.autoscaling.k8s.io");
    assert_eq!(crd["spec"]["versions"][0]["subresources"], json!({"status": {}}));
    let crd = vertical_pod_autoscaler_checkpoint_crd();
    assert_eq!(crd["metadata"]["name"], "verticalpodautoscalercheckpoints.autoscaling.k8s.io");
    assert_eq!(crd["spec"]["versions"][0].get("subresources"), None);
    let status = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
    assert_eq!(status["cpuHistogram"]["properties"]["bucketWeights"]["x-kubernetes-preserve-unknown-fields"], true);
    assert_eq!(status["totalSamplesCount"]["type"], "integer");
}

#[derive(serde::Deserialize)]
struct Any {
    status: VerticalPodAutoscalerCheckpointStatus,
}

#[derive(serde::Deserialize)]
struct Object {
    #[serde(flatten)]
    any: Any,
}

#[test]
fn a_checkpoint_as_upstream_writes_it_is_read_and_written_the_same() {
    let status = json!({
        "lastUpdateTime": "2026-01-01T00:00:00Z", "version": "v3",
        "cpuHistogram": {"referenceTimestamp": "2026-01-01T00:00:00Z", "bucketWeights": {"0": 10000, "12": 3}, "totalWeight": 12.5},
        "memoryHistogram": {"referenceTimestamp": "2026-01-02T00:00:00Z", "bucketWeights": {"7": 10000}, "totalWeight": 1.0},
        "firstSampleStart": "2026-01-01T00:00:00Z", "lastSampleStart": "2026-01-01T10:00:00Z", "totalSamplesCount": 600,
    });
    let read: VerticalPodAutoscalerCheckpointStatus = serde_json::from_value(status.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), status);
    // As part of an object of any kind, where numbers of buckets stay texts.
    let object: Object = serde_json::from_value(json!({"kind": "any", "status": status})).unwrap();
    assert_eq!(object.any.status, read);
    let wrong = json!({"bucketWeights": {"first": 1}});
    let why = serde_json::from_value::<HistogramCheckpoint>(wrong).unwrap_err().to_string();
    assert_eq!(why, "\"first\" is no number of a bucket");
}
