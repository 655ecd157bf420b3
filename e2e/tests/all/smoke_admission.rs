//! Admission as our own webhooks and fences will meet it: a webhook in the test process, and a policy on bound tokens.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingAdmissionPolicyBinding};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use pillion_e2e::{Scene, Webhook, fixture, pods};
use pillion_testbed::{Look, until};
use serde_json::{Value, json};

/// The answer of the test's webhook: allow, and add one annotation.
fn annotate(review: &Value) -> Value {
    // [{"op":"add","path":"/metadata/annotations","value":{"e2e":"seen"}}] in base64, as admission wants it.
    let patch = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2Fubm90YXRpb25zIiwidmFsdWUiOnsiZTJlIjoic2VlbiJ9fV0=";
    json!({"uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch", "patch": patch})
}

#[tokio::test]
async fn ci_a_webhook_of_the_test_sees_a_pod_made_by_a_replicaset() -> Result<()> {
    let scene = Scene::open("webhook").await?;
    let mut webhook = Webhook::serve(scene.cluster.host(), annotate).await?;
    let registration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": scene.namespace},
        "webhooks": [{
            "name": "seen.e2e.pillion.dev", "clientConfig": webhook.client_config(),
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail", "timeoutSeconds": 3,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        }],
    });
    scene.apply_to_cluster(&registration).await?;
    let template = pods::on_fleet(pods::pod("", &[], &[pods::container("app", &[])]));
    scene
        .apply(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "made"}, "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "made"}},
            "template": {"metadata": {"labels": {"app": "made"}}, "spec": template["spec"]}}}))
        .await?;
    let review =
        tokio::time::timeout(Duration::from_secs(30), webhook.next_review()).await.context("no review came")??;
    let pod = until("the pod", Duration::from_secs(30), || async {
        let listed = scene.api::<Pod>().list(&ListParams::default()).await;
        let found = listed.ok().and_then(|pods| pods.items.into_iter().next());
        Ok(found.map_or_else(|| Look::NotYet("none".to_owned()), Look::Done))
    })
    .await?;
    let registrations = Api::<MutatingWebhookConfiguration>::all(scene.client.clone());
    registrations.delete(&scene.namespace, &DeleteParams::default()).await?;

    assert_eq!(pod.metadata.annotations.context("annotations")?["e2e"], "seen");
    fixture::compare("admission-review-pod-of-replicaset.json", &without_chance(&review)?)?;
    scene.close().await?;
    Ok(())
}

/// The same review with everything that differs between runs replaced, so that later tests can read it as it came.
fn without_chance(review: &Value) -> Result<Value> {
    let text = |path: &str| {
        let found = review.pointer(path).and_then(Value::as_str);
        found.map(str::to_owned).with_context(|| format!("the review has no {path}: {review}"))
    };
    let pod = "/request/object";
    let volume = text(&format!("{pod}/spec/volumes/0/name"))?;
    let replacements = [
        (text("/request/uid")?, "00000000-0000-0000-0000-000000000001"),
        (text(&format!("{pod}/metadata/ownerReferences/0/uid"))?, "00000000-0000-0000-0000-000000000002"),
        (text("/request/userInfo/uid")?, "00000000-0000-0000-0000-000000000003"),
        (
            text("/request/userInfo/extra/authentication.kubernetes.io~1credential-id/0")?,
            "JTI=00000000-0000-0000-0000-000000000004",
        ),
        (text("/request/namespace")?, "team-a"),
        (volume, "kube-api-access-00000"),
        (text(&format!("{pod}/metadata/labels/pod-template-hash"))?, "0000000000"),
    ];
    let mut recorded = review.to_string();
    for (chance, fixed) in replacements {
        recorded = recorded.replace(&chance, fixed);
    }
    let mut recorded: Value = serde_json::from_str(&recorded)?;
    // When each field was written, and by whom: long, timed, and nothing a webhook reads.
    recorded["request"]["object"]["metadata"].as_object_mut().context("metadata")?.remove("managedFields");
    Ok(recorded)
}

#[tokio::test]
async fn ci_a_token_bound_to_one_pod_may_patch_the_status_of_that_pod_only() -> Result<()> {
    let scene = Scene::open("token").await?;
    let account = format!("system:serviceaccount:{}:agent", scene.namespace);
    scene.apply(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "agent"}})).await?;
    scene
        .apply(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "agent"},
            "rules": [{"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]}]}))
        .await?;
    scene
        .apply(
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "agent"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "agent"},
            "subjects": [{"kind": "ServiceAccount", "name": "agent", "namespace": scene.namespace}]}),
        )
        .await?;
    fence(&scene, &account).await?;
    for name in ["pod-a", "pod-b"] {
        let mut pod = pods::on_fleet(pods::pod(name, &[], &[pods::container("app", &[])]));
        pod["spec"]["serviceAccountName"] = "agent".into();
        scene.ready_pod(pod).await?;
    }

    let pod_a = scene.api::<Pod>().get("pod-a").await?;
    let request: TokenRequest = serde_json::from_value(json!({"spec": {
        "audiences": [], "expirationSeconds": 600,
        "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "pod-a", "uid": pod_a.metadata.uid}}}))?;
    let issued = scene.api::<ServiceAccount>().create_token_request("agent", &PostParams::default(), &request).await?;
    let token = issued.status.context("no token was issued")?.token;
    let agent = Api::<Pod>::namespaced(scene.cluster.client_with_token(&token).await?, &scene.namespace);

    // A policy takes effect some time after it was created.
    let refusal = until("the policy to refuse", Duration::from_secs(30), || async {
        Ok(match patch_status(&agent, "pod-b").await {
            Err(kube::Error::Api(refusal)) => Look::Done(refusal),
            other => Look::NotYet(format!("{:?}", other.map(|pod| pod.metadata.name))),
        })
    })
    .await?;
    assert_eq!(refusal.code, 403);
    assert!(refusal.message.ends_with("pod pod-a may not change pod pod-b"), "{}", refusal.message);

    let patched = patch_status(&agent, "pod-a").await?;
    Api::<ValidatingAdmissionPolicyBinding>::all(scene.client.clone())
        .delete(&scene.namespace, &DeleteParams::default())
        .await?;
    let conditions = patched.status.and_then(|status| status.conditions).context("conditions")?;
    assert!(conditions.iter().any(|condition| condition.type_ == "pillion.dev/Seen" && condition.status == "True"));
    scene.close().await?;
    Ok(())
}

async fn patch_status(pods: &Api<Pod>, name: &str) -> kube::Result<Pod> {
    let condition = json!({"status": {"conditions": [{"type": "pillion.dev/Seen", "status": "True"}]}});
    pods.patch_status(name, &PatchParams::default(), &Patch::Strategic(condition)).await
}

/// Lets an account change only the pod its token is bound to.
async fn fence(scene: &Scene, account: &str) -> Result<()> {
    let name = &scene.namespace;
    let of_pod = |what: &str| {
        let key = format!("authentication.kubernetes.io/pod-{what}");
        format!("'{key}' in request.userInfo.extra ? request.userInfo.extra['{key}'][0] : ''")
    };
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"],
                "resources": ["pods", "pods/status"]}]},
            "matchConditions": [{"name": "agents", "expression": format!("request.userInfo.username == '{account}'")}],
            "variables": [{"name": "uid", "expression": of_pod("uid")}, {"name": "name", "expression": of_pod("name")}],
            "validations": [{
                "expression": "variables.name == object.metadata.name && variables.uid == string(object.metadata.uid)",
                "messageExpression": "'pod ' + variables.name + ' may not change pod ' + object.metadata.name",
                "reason": "Forbidden"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]},
    });
    scene.apply_to_cluster(&policy).await?;
    scene.apply_to_cluster(&binding).await
}
