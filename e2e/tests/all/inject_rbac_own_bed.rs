//! The rights of our accounts, all of them: the API server lists the rules of each, and the important ones are tried with a
//! token.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use http::Method;
use k8s_openapi::api::authorization::v1::{SelfSubjectRulesReview, SelfSubjectRulesReviewSpec};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use pillion_e2e::chart::{self, helm, said};
use pillion_e2e::manager::NAMESPACE;
use pillion_e2e::pods::{container, pod};
use pillion_testbed::{Bed, Config, Look, apply, until};
use serde_json::{Value, json};

/// A namespace that nothing of the chart is in: only rules for all namespaces hold here.
const ELSEWHERE: &str = "shop";

/// A line of the declared list: verbs, group, resources, names, and whether only in our own namespace.
struct Grant {
    verbs: &'static str,
    group: &'static str,
    resources: &'static str,
    names: &'static str,
    only_ours: bool,
}

const fn everywhere(verbs: &'static str, group: &'static str, resources: &'static str) -> Grant {
    Grant { verbs, group, resources, names: "", only_ours: false }
}

const fn named(verbs: &'static str, group: &'static str, resources: &'static str, names: &'static str) -> Grant {
    Grant { verbs, group, resources, names, only_ours: false }
}

const fn ours(verbs: &'static str, group: &'static str, resources: &'static str, names: &'static str) -> Grant {
    Grant { verbs, group, resources, names, only_ours: true }
}

const WEBHOOK: &[Grant] = &[
    everywhere("get list watch", "apps.kruise.io", "sidecarsets"),
    everywhere("get list watch", "", "namespaces"),
    named(
        "get list watch create patch",
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations validatingwebhookconfigurations",
        "pillion",
    ),
    named("get", "rbac.authorization.k8s.io", "clusterroles", "pillion-webhook"),
    everywhere("create patch", "events.k8s.io", "events"),
    ours("get list watch create update patch", "", "secrets", "pillion-webhook-ca"),
    ours("get list watch", "", "configmaps", "pillion-switch"),
    ours("get list watch", "apps", "controllerrevisions", ""),
    ours("get list watch update", "pillion.dev", "injectionledgers", ""),
    ours("list watch", "discovery.k8s.io", "endpointslices", ""),
    ours("get", "", "serviceaccounts", "pillion-webhook"),
];

const CONTROLLER: &[Grant] = &[
    everywhere("get list watch", "apps.kruise.io", "sidecarsets"),
    everywhere("patch update", "apps.kruise.io", "sidecarsets/status"),
    everywhere("get list watch", "", "namespaces pods"),
    everywhere("get list watch", "apps", "daemonsets deployments replicasets statefulsets"),
    everywhere("get list watch", "batch", "cronjobs jobs"),
    everywhere("get list watch", "policy", "poddisruptionbudgets"),
    everywhere("list", "", "events"),
    everywhere("patch", "", "pods pods/resize"),
    everywhere("create patch", "events.k8s.io", "events"),
    ours("create", "coordination.k8s.io", "leases", ""),
    ours("get update", "coordination.k8s.io", "leases", "pillion-controller"),
    ours("get list watch create patch delete", "apps", "controllerrevisions", ""),
    ours("get list watch create update delete", "pillion.dev", "injectionledgers", ""),
    ours("get list watch", "", "configmaps", "pillion-switch"),
];

const REPAIR: &[Grant] = &[everywhere("create", "", "pods pods/eviction")];

const AGENTS: [&str; 5] = [
    "featureGates.InPodAgent=true",
    "agent.targets[0].group=apps",
    "agent.targets[0].version=v1",
    "agent.targets[0].resource=deployments",
    "agent.targets[0].pointer=/spec/paused",
];

/// What the webhook may do besides, where agents are switched on.
const ASKED: &[Grant] = &[everywhere("get list watch", "pillion.dev", "hotupdates")];

const AGENT_CONTROLLER: &[Grant] = &[
    everywhere("get list watch", "apps.kruise.io", "sidecarsets"),
    everywhere("get list watch", "", "namespaces"),
    everywhere("list watch patch", "", "pods"),
    everywhere("list watch create patch delete", "", "serviceaccounts"),
    everywhere("list watch create patch delete", "rbac.authorization.k8s.io", "roles rolebindings"),
    everywhere("get list watch create patch delete", "", "configmaps"),
    everywhere("patch", "", "pods/status"),
    everywhere("patch", "apps", "deployments"),
    everywhere("get list watch", "pillion.dev", "hotupdates"),
    everywhere("patch", "pillion.dev", "hotupdates/status"),
    named("get", "rbac.authorization.k8s.io", "clusterroles", "pillion-agent-controller"),
    everywhere("create patch", "events.k8s.io", "events"),
    ours("create", "coordination.k8s.io", "leases", ""),
    ours("get update", "coordination.k8s.io", "leases", "pillion-agent-controller"),
    ours("get list watch", "apps", "controllerrevisions", ""),
];

const RIGHTSIZING: &str = "rightsizing.enabled=true";

/// Whether upstream's autoscaler is there.
const BESIDE: Grant =
    named("get", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "vpa-webhook-config");

/// What the webhook may do besides, where pods are sized.
const SIZING: &[Grant] = &[
    everywhere("get list watch", "autoscaling.k8s.io", "verticalpodautoscalers"),
    everywhere("get list watch", "", "limitranges"),
    BESIDE,
    ours("create", "coordination.k8s.io", "leases", ""),
    ours("get patch update", "coordination.k8s.io", "leases", "pillion-webhook-alive"),
];

/// And the controller.
const LEAVING_SIZES: &[Grant] = &[everywhere("get list watch", "autoscaling.k8s.io", "verticalpodautoscalers"), BESIDE];

const RIGHTSIZER: &[Grant] = &[
    everywhere("get list watch", "apps.kruise.io", "sidecarsets"),
    everywhere("get list watch", "", "limitranges namespaces pods replicationcontrollers"),
    everywhere("get list watch", "apps", "daemonsets deployments replicasets statefulsets"),
    everywhere("get list watch", "batch", "cronjobs jobs"),
    everywhere("get list watch", "policy", "poddisruptionbudgets"),
    everywhere("get", "*", "*/scale"),
    everywhere("list", "metrics.k8s.io", "pods"),
    everywhere("get list watch", "autoscaling.k8s.io", "verticalpodautoscalers"),
    everywhere("patch", "autoscaling.k8s.io", "verticalpodautoscalers/status"),
    everywhere("get list create patch delete", "autoscaling.k8s.io", "verticalpodautoscalercheckpoints"),
    everywhere("patch", "", "pods pods/resize"),
    everywhere("create", "", "pods/eviction"),
    everywhere("create patch", "events.k8s.io", "events"),
    BESIDE,
    ours("create", "coordination.k8s.io", "leases", ""),
    ours("get update", "coordination.k8s.io", "leases", "pillion-rightsizer"),
    ours("get", "coordination.k8s.io", "leases", "pillion-webhook-alive"),
    ours("get list watch", "apps", "controllerrevisions", ""),
    ours("get list watch", "", "configmaps", "pillion-switch"),
];

/// A right: one verb on one resource, or on one object of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    verb: String,
    group: String,
    /// With its subresource; a path where it is not about a resource.
    resource: String,
    /// Empty: every object.
    name: String,
    is_only_ours: bool,
}

impl Right {
    /// Returns true if another right of the same account includes this one.
    fn is_implied(&self, rights: &BTreeSet<Self>) -> bool {
        let names = [self.name.clone(), String::new()];
        let places = [self.is_only_ours, false];
        names
            .iter()
            .flat_map(|name| places.map(|is_only_ours| Self { name: name.clone(), is_only_ours, ..self.clone() }))
            .any(|wider| wider != *self && rights.contains(&wider))
    }
}

/// Every combination of the verbs, groups, resources and names of a rule. Without names, a rule is about every object.
fn rights([verbs, groups, resources, names]: [Vec<String>; 4], is_only_ours: bool) -> Vec<Right> {
    let names = if names.is_empty() { vec![String::new()] } else { names };
    let mut rights = Vec::new();
    for verb in &verbs {
        for group in &groups {
            for resource in &resources {
                for name in &names {
                    let [verb, group, resource, name] = [verb, group, resource, name].map(Clone::clone);
                    rights.push(Right { verb, group, resource, name, is_only_ours });
                }
            }
        }
    }
    rights
}

/// Without rights that others include.
fn normalized(rights: &BTreeSet<Right>) -> BTreeSet<Right> {
    rights.iter().filter(|right| !right.is_implied(rights)).cloned().collect()
}

fn declared(grants: &[&[Grant]]) -> BTreeSet<Right> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let of_one = |grant: &Grant| {
        let lists = [words(grant.verbs), vec![grant.group.to_owned()], words(grant.resources), words(grant.names)];
        rights(lists, grant.only_ours)
    };
    normalized(&grants.iter().copied().flatten().flat_map(of_one).collect())
}

/// All rights of the account of a client, as the API server finds them.
async fn found(client: &Client) -> Result<BTreeSet<Right>> {
    let mut found = BTreeSet::new();
    for (namespace, is_only_ours) in [(ELSEWHERE, false), (NAMESPACE, true)] {
        let spec = SelfSubjectRulesReviewSpec { namespace: Some(namespace.to_owned()) };
        let review = SelfSubjectRulesReview { spec, ..SelfSubjectRulesReview::default() };
        let answer = Api::all(client.clone()).create(&PostParams::default(), &review).await?;
        let status = answer.status.context("a review has an answer")?;
        assert!(!status.incomplete && status.evaluation_error.is_none(), "{status:?}");
        for rule in status.resource_rules {
            let [groups, resources, names] =
                [rule.api_groups, rule.resources, rule.resource_names].map(Option::unwrap_or_default);
            found.extend(rights([rule.verbs, groups, resources, names], is_only_ours));
        }
        for rule in status.non_resource_rules {
            let paths = rule.non_resource_urls.unwrap_or_default();
            found.extend(rights([rule.verbs, vec![String::new()], paths, Vec::new()], is_only_ours));
        }
    }
    Ok(normalized(&found))
}

/// A cluster with the chart installed; nothing of it runs, since there is no scheduler.
async fn installed(values: &[&str]) -> Result<Bed> {
    let bed = Bed::start(Config::control_plane("rbac")).await?;
    let client = bed.client().await?;
    said(helm(bed.cluster(), "install", values, &["--create-namespace"])?)?;
    let object = |kind: &str, namespace: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}});
    let mut somebody = pod("somebody", &[], &[container("app", &[])]);
    somebody["metadata"]["namespace"] = "shop".into();
    somebody["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "100m"}});
    let objects = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        object("ServiceAccount", "shop", "default"),
        object("Secret", NAMESPACE, "pillion-webhook-ca"),
        object("Secret", NAMESPACE, "other"),
        object("Secret", "shop", "password"),
        object("ConfigMap", NAMESPACE, "pillion-switch"),
        object("ConfigMap", NAMESPACE, "other"),
        somebody,
    ];
    for object in &objects {
        apply(&client, "e2e", object).await?;
    }
    until("sets to be served", std::time::Duration::from_secs(30), || async {
        let request = http::Request::get("/apis/apps.kruise.io/v1alpha1/sidecarsets").body(Vec::new());
        Ok(match client.request_text(request.unwrap_or_default()).await {
            Ok(_) => Look::Done(()),
            Err(error) => Look::NotYet(error.to_string()),
        })
    })
    .await?;
    // The API server takes policies in some time after they were created, and this one is the last of them.
    let pods = Api::<Pod>::namespaced(client, "shop");
    let mark = Patch::Merge(json!({"metadata": {"labels": {"pillion.dev/injected": "true"}}}));
    until("the policies to be active", std::time::Duration::from_secs(30), || async {
        Ok(match pods.patch_status("somebody", &PatchParams { dry_run: true, ..PatchParams::default() }, &mark).await {
            Err(kube::Error::Api(status)) if status.code == 403 => Look::Done(()),
            other => Look::NotYet(format!("{:?}", other.map(|pod| pod.metadata.labels))),
        })
    })
    .await?;
    Ok(bed)
}

/// Compares the rights of an account with the declared ones. Rights of everybody, such as asking about oneself, do not count.
async fn may_do_exactly(bed: &Bed, account: &str, grants: &[&[Grant]]) -> Result<()> {
    let everybody = found(&chart::client_of(bed.cluster(), ELSEWHERE, "default").await?).await?;
    let all = found(&chart::client_of(bed.cluster(), NAMESPACE, account).await?).await?;
    let own: BTreeSet<Right> = all.difference(&everybody).cloned().collect();
    let declared = declared(grants);
    let more: Vec<_> = own.difference(&declared).collect();
    let less: Vec<_> = declared.difference(&own).collect();
    assert_eq!((more, less), (Vec::new(), Vec::new()), "more, and less, than {account} is declared to do");
    Ok(())
}

/// A request really made with a token, and the status it must get.
struct Attempt {
    what: &'static str,
    method: Method,
    path: String,
    body: Value,
    status: u16,
}

fn attempt(what: &'static str, method: Method, path: impl Into<String>, body: Value, status: u16) -> Attempt {
    Attempt { what, method, path: path.into(), body, status }
}

/// What a thief of either token would try first.
fn attempts_of_anybody() -> Vec<Attempt> {
    let core = |path: &str| format!("/api/v1/namespaces/{path}");
    let new = pod("new", &[], &[container("app", &[])]);
    let image = json!({"spec": {"containers": [{"name": "app", "image": "evil"}]}});
    let size = json!({"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "200m"}}}]}});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "mine"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}});
    let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    vec![
        attempt("a Secret of somebody", Method::GET, core("shop/secrets/password"), Value::Null, 403),
        attempt(
            "another Secret of our namespace",
            Method::GET,
            core(&format!("{NAMESPACE}/secrets/other")),
            Value::Null,
            403,
        ),
        attempt("all Secrets of our namespace", Method::GET, core(&format!("{NAMESPACE}/secrets")), Value::Null, 403),
        attempt("all Secrets", Method::GET, "/api/v1/secrets", Value::Null, 403),
        attempt(
            "another ConfigMap of our namespace",
            Method::GET,
            core(&format!("{NAMESPACE}/configmaps/other")),
            Value::Null,
            403,
        ),
        attempt("a pod of somebody, made", Method::POST, core("shop/pods"), new, 403),
        attempt("a pod of somebody, changed", Method::PATCH, core("shop/pods/somebody"), image.clone(), 403),
        attempt("the status of a pod", Method::PATCH, core("shop/pods/somebody/status"), image.clone(), 403),
        attempt("the size of a pod", Method::PATCH, core("shop/pods/somebody/resize"), size, 403),
        attempt("a debugger in a pod", Method::PATCH, core("shop/pods/somebody/ephemeralcontainers"), image, 403),
        attempt("a pod of somebody, deleted", Method::DELETE, core("shop/pods/somebody"), json!({}), 403),
        attempt("all pods of somebody, deleted", Method::DELETE, core("shop/pods"), json!({}), 403),
        attempt("the logs of a pod", Method::GET, core("shop/pods/somebody/log"), Value::Null, 403),
        attempt("a node", Method::GET, "/api/v1/nodes", Value::Null, 403),
        attempt(
            "a token of the other role",
            Method::POST,
            core(&format!("{NAMESPACE}/serviceaccounts/pillion-controller/token")),
            token.clone(),
            403,
        ),
        attempt(
            "a token of the webhook",
            Method::POST,
            core(&format!("{NAMESPACE}/serviceaccounts/pillion-webhook/token")),
            token,
            403,
        ),
        attempt("all rights", Method::POST, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding, 403),
        attempt(
            "a fence, deleted",
            Method::DELETE,
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/pillion-marks",
            json!({}),
            403,
        ),
        attempt(
            "our definition, deleted",
            Method::DELETE,
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sidecarsets.apps.kruise.io",
            json!({}),
            403,
        ),
        attempt(
            "a set",
            Method::POST,
            "/apis/apps.kruise.io/v1alpha1/sidecarsets",
            json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "mine"}}),
            403,
        ),
        attempt("the sets", Method::GET, "/apis/apps.kruise.io/v1alpha1/sidecarsets", Value::Null, 200),
        attempt("the namespaces", Method::GET, "/api/v1/namespaces", Value::Null, 200),
        attempt("the switch", Method::GET, core(&format!("{NAMESPACE}/configmaps/pillion-switch")), Value::Null, 200),
    ]
}

fn attempts_of_the_webhook() -> Vec<Attempt> {
    let registration = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    let body = |name: &str| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": name}});
    let ours = format!("/api/v1/namespaces/{NAMESPACE}");
    vec![
        attempt("its own Secret", Method::GET, format!("{ours}/secrets/pillion-webhook-ca"), Value::Null, 200),
        attempt(
            "its own Secret, as a watch asks",
            Method::GET,
            format!("{ours}/secrets?fieldSelector=metadata.name%3Dpillion-webhook-ca"),
            Value::Null,
            200,
        ),
        attempt(
            "its own Secret, deleted",
            Method::DELETE,
            format!("{ours}/secrets/pillion-webhook-ca"),
            json!({}),
            403,
        ),
        attempt("the pods", Method::GET, "/api/v1/pods", Value::Null, 403),
        attempt("a registration, posted", Method::POST, registration, body("pillion"), 403),
        attempt(
            "its registration, applied",
            Method::PATCH,
            format!("{registration}/pillion?fieldManager=pillion&force=true"),
            body("pillion"),
            201,
        ),
        attempt(
            "another registration",
            Method::PATCH,
            format!("{registration}/other?fieldManager=pillion&force=true"),
            body("other"),
            403,
        ),
        attempt("its registration, deleted", Method::DELETE, format!("{registration}/pillion"), json!({}), 403),
    ]
}

fn attempts_of_the_controller(evictions: u16, dry_run: u16) -> Vec<Attempt> {
    let lease =
        |name: &str| json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}});
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases");
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "somebody", "namespace": "shop"}});
    let new = pod("new", &[], &[container("app", &[])]);
    vec![
        attempt("the pods", Method::GET, "/api/v1/pods", Value::Null, 200),
        attempt(
            "the webhook's Secret",
            Method::GET,
            format!("/api/v1/namespaces/{NAMESPACE}/secrets/pillion-webhook-ca"),
            Value::Null,
            403,
        ),
        attempt("its lease", Method::POST, leases.clone(), lease("pillion-controller"), 201),
        attempt("its lease, read", Method::GET, format!("{leases}/pillion-controller"), Value::Null, 200),
        attempt("its lease, deleted", Method::DELETE, format!("{leases}/pillion-controller"), json!({}), 403),
        attempt("the lease of somebody", Method::GET, format!("{leases}/other"), Value::Null, 403),
        attempt("a pod as a dry run", Method::POST, "/api/v1/namespaces/shop/pods?dryRun=All", new, dry_run),
        attempt(
            "an eviction",
            Method::POST,
            "/api/v1/namespaces/shop/pods/somebody/eviction?dryRun=All",
            eviction,
            evictions,
        ),
    ]
}

/// What did not get the status it should, in words.
async fn wrong(client: &Client, attempts: &[Attempt]) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for attempt in attempts {
        let content = match (&attempt.method, attempt.path.contains("fieldManager")) {
            (&Method::PATCH, true) => "application/apply-patch+yaml",
            (&Method::PATCH, false) => "application/strategic-merge-patch+json",
            _ => "application/json",
        };
        let body = if attempt.body.is_null() { Vec::new() } else { serde_json::to_vec(&attempt.body)? };
        let request = http::Request::builder()
            .method(&attempt.method)
            .uri(&attempt.path)
            .header(http::header::CONTENT_TYPE, content)
            .body(kube::client::Body::from(body))?;
        let answer = client.send(request).await?;
        if answer.status() != attempt.status {
            wrong.push(format!("{}: {}, not {}", attempt.what, answer.status(), attempt.status));
        }
    }
    Ok(wrong)
}

#[tokio::test]
async fn ci_the_webhook_may_do_exactly_what_is_declared() -> Result<()> {
    let bed = installed(&[]).await?;
    may_do_exactly(&bed, "pillion-webhook", &[WEBHOOK]).await?;
    let thief = chart::client_of(bed.cluster(), NAMESPACE, "pillion-webhook").await?;
    let attempts: Vec<_> = attempts_of_anybody().into_iter().chain(attempts_of_the_webhook()).collect();
    assert_eq!(wrong(&thief, &attempts).await?, Vec::<String>::new());
    bed.stop().await?;
    Ok(())
}

#[tokio::test]
async fn ci_the_controller_may_do_exactly_what_is_declared() -> Result<()> {
    let bed = installed(&[]).await?;
    may_do_exactly(&bed, "pillion-controller", &[CONTROLLER]).await?;
    let thief = chart::client_of(bed.cluster(), NAMESPACE, "pillion-controller").await?;
    let attempts: Vec<_> = attempts_of_anybody().into_iter().chain(attempts_of_the_controller(403, 403)).collect();
    assert_eq!(wrong(&thief, &attempts).await?, Vec::<String>::new());
    bed.stop().await?;
    Ok(())
}

/// In ci: `ci_the_controller_may_do_exactly_what_is_declared`, without the value `repair.enabled`.
#[tokio::test]
async fn nightly_repair_adds_evictions_and_dry_runs_and_nothing_else() -> Result<()> {
    let bed = installed(&["repair.enabled=true"]).await?;
    may_do_exactly(&bed, "pillion-controller", &[CONTROLLER, REPAIR]).await?;
    let thief = chart::client_of(bed.cluster(), NAMESPACE, "pillion-controller").await?;
    // A pod that is really made is refused by the fence, not by the role: 403 all the same.
    let attempts: Vec<_> = attempts_of_anybody().into_iter().chain(attempts_of_the_controller(201, 201)).collect();
    assert_eq!(wrong(&thief, &attempts).await?, Vec::<String>::new());
    bed.stop().await?;
    Ok(())
}

/// In ci: `agent_fence_own_bed::ci_the_controller_of_agents_may_not_use_what_it_gives` for its writes, and
/// `ci_the_controller_may_do_exactly_what_is_declared` for the method.
#[tokio::test]
async fn nightly_the_agent_controller_may_do_exactly_what_is_declared() -> Result<()> {
    let bed = installed(&AGENTS).await?;
    may_do_exactly(&bed, "pillion-agent-controller", &[AGENT_CONTROLLER]).await?;
    may_do_exactly(&bed, "pillion-webhook", &[WEBHOOK, ASKED]).await?;
    may_do_exactly(&bed, "pillion-controller", &[CONTROLLER]).await?;
    bed.stop().await?;
    Ok(())
}

/// In ci: `size_fence_own_bed` for its writes, and `ci_the_controller_may_do_exactly_what_is_declared` for the
/// method.
#[tokio::test]
async fn nightly_the_rightsizer_may_do_exactly_what_is_declared() -> Result<()> {
    let bed = installed(&[RIGHTSIZING]).await?;
    may_do_exactly(&bed, "pillion-rightsizer", &[RIGHTSIZER]).await?;
    may_do_exactly(&bed, "pillion-webhook", &[WEBHOOK, SIZING]).await?;
    may_do_exactly(&bed, "pillion-controller", &[CONTROLLER, LEAVING_SIZES]).await?;
    bed.stop().await?;
    Ok(())
}

/// In ci: `ci_the_webhook_may_do_exactly_what_is_declared` and `ci_the_controller_may_do_exactly_what_is_declared`.
#[tokio::test]
async fn nightly_one_pod_has_the_rights_of_both_roles() -> Result<()> {
    let bed = installed(&["layout=OnePod"]).await?;
    may_do_exactly(&bed, "pillion-manager", &[WEBHOOK, CONTROLLER]).await?;
    // The account that is there only to be an owner may do nothing.
    may_do_nothing(&bed, "pillion-webhook").await?;
    bed.stop().await?;
    Ok(())
}

/// An account that no rule names may not even read what every role reads.
async fn may_do_nothing(bed: &Bed, account: &str) -> Result<()> {
    let client = chart::client_of(bed.cluster(), NAMESPACE, account).await?;
    let attempts = [attempt("the sets", Method::GET, "/apis/apps.kruise.io/v1alpha1/sidecarsets", Value::Null, 403)];
    assert_eq!(wrong(&client, &attempts).await?, Vec::<String>::new());
    Ok(())
}
