//! The fences of the chart, as Helm renders them, on a real API server: what a stolen token of ours can still do to pods and
//! to our registration, and what nobody else can do to our marks.

use std::time::Duration;

use anyhow::{Context, Result};
use http::Method;
use kube::Client;
use pillion_e2e::agents::send;
use pillion_e2e::chart;
use pillion_e2e::manager::NAMESPACE;
use pillion_testbed::{Bed, Config, Look, apply, until};
use serde_json::{Value, json};

mod table;

use table::{cases, existing_pods};

/// A namespace with pods of users.
const SHOP: &str = "shop";
const POLICIES: &str = "admissionregistration.k8s.io";

/// Whose token is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Controller,
    Webhook,
    /// Somebody with all rights.
    Admin,
}

/// One request, and how it must end.
struct Case {
    what: &'static str,
    who: Who,
    request: Request,
    /// The words after "denied request: ", or nothing where it must be done.
    refusal: Option<&'static str>,
}

struct Request {
    method: Method,
    path: String,
    body: Value,
}

impl Request {
    fn to_pods(method: Method, path: &str, dry_run: bool, body: Value) -> Self {
        let dry_run = if dry_run { "?dryRun=All" } else { "" };
        Self { method, path: format!("/api/v1/namespaces/{SHOP}{path}{dry_run}"), body }
    }

    /// A strategic merge patch of a pod or a subresource of one (`listed/resize`), as a dry run: admission is the same.
    fn patch(pod: &str, body: Value) -> Self {
        Self::to_pods(Method::PATCH, &format!("/pods/{pod}"), true, body)
    }

    /// Server-side apply of a registration of ours, or of one that is called otherwise.
    fn register(kind: &str, name: &str, webhook: &Value) -> Self {
        let plural = format!("{}s", kind.to_lowercase());
        let path = format!("/apis/{POLICIES}/v1/{plural}/{name}?dryRun=All&fieldManager=pillion&force=true");
        let body = json!({"apiVersion": format!("{POLICIES}/v1"), "kind": kind, "metadata": {"name": name},
                          "webhooks": [webhook]});
        Self { method: Method::PATCH, path, body }
    }

    async fn send(&self, client: &Client) -> Result<std::result::Result<Value, String>> {
        send(client, self.method.clone(), &self.path, &self.body).await
    }
}

/// A control plane with the fences of the chart, four pods, and accounts that may do anything the fences let them.
async fn fenced(layout: &str) -> Result<Bed> {
    let bed = Bed::start(Config::control_plane("fences")).await?;
    let client = bed.client().await?;
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let account = |namespace: &str, name: &str| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}});
    let everything = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "everything"}, "subjects": [{"kind": "Group", "name": format!("system:serviceaccounts:{NAMESPACE}")}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}});
    let mut objects = vec![namespace(SHOP), namespace(NAMESPACE), account(SHOP, "default"), everything];
    for name in ["pillion-webhook", "pillion-controller", "pillion-manager"] {
        objects.push(account(NAMESPACE, name));
    }
    // Somebody else's webhook in our registration, which a write of ours leaves as it is.
    objects.push(json!({"apiVersion": format!("{POLICIES}/v1"), "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "pillion"}, "webhooks": [{"name": "other.example.com", "sideEffects": "None", "failurePolicy": "Fail",
            "admissionReviewVersions": ["v1"], "clientConfig": {"url": "https://example.com/"},
            "rules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["*"]}]}]}));
    for mut pod in existing_pods() {
        pod["metadata"]["namespace"] = SHOP.into();
        objects.push(pod);
    }
    let rendered = chart::render(bed.cluster(), &[&format!("layout={layout}")])?;
    let is_fence =
        |object: &&Value| object["kind"].as_str().is_some_and(|kind| kind.starts_with("ValidatingAdmissionPolicy"));
    let fences: Vec<_> = rendered.iter().filter(is_fence).cloned().collect();
    assert_eq!(fences.len(), 8, "four policies and their bindings");
    objects.extend(fences);
    for object in &objects {
        apply(&client, "e2e", object).await?;
    }
    Ok(bed)
}

/// What does not end as the table says, in words. `accounts` are those of the controller and the webhook.
async fn wrong(bed: &Bed, accounts: [&str; 2], cases: &[Case]) -> Result<Vec<String>> {
    let admin = bed.client().await?;
    let controller = chart::client_of(bed.cluster(), NAMESPACE, accounts[0]).await?;
    let webhook = chart::client_of(bed.cluster(), NAMESPACE, accounts[1]).await?;
    let client = |who| match who {
        Who::Admin => &admin,
        Who::Controller => &controller,
        Who::Webhook => &webhook,
    };
    // Policies are compiled when a watch brings them. A policy of its own decides about statuses.
    let refused = || cases.iter().filter(|case| case.refusal.is_some());
    let is_status = |case: &&Case| case.request.path.contains("/status");
    let of = |who| refused().filter(move |case| case.who == who).find(|case| !is_status(case));
    let firsts = [of(Who::Admin), of(Who::Controller), of(Who::Webhook), refused().find(is_status)];
    for first in firsts {
        let first = first.context("nothing is refused")?;
        until("the policies to be active", Duration::from_secs(30), || async {
            Ok(match first.request.send(client(first.who)).await {
                Ok(Err(_)) => Look::Done(()),
                other => Look::NotYet(format!("{other:?}")),
            })
        })
        .await?;
    }
    let mut wrong = Vec::new();
    for case in cases {
        let answer = case.request.send(client(case.who)).await?;
        let words = answer
            .as_ref()
            .err()
            .map(|message| message.split_once("denied request: ").map_or(message.as_str(), |it| it.1));
        if words != case.refusal {
            wrong.push(format!("{:?}, {}: {words:?}", case.who, case.what));
        }
    }
    Ok(wrong)
}

#[tokio::test]
async fn ci_the_fences_refuse_and_allow_what_the_table_says() -> Result<()> {
    let bed = fenced("Separate").await?;
    assert_eq!(wrong(&bed, ["pillion-controller", "pillion-webhook"], &cases()).await?, Vec::<String>::new());
    assert_eq!(cases().len(), 69);
    bed.stop().await?;
    Ok(())
}

#[tokio::test]
async fn ci_one_account_of_both_roles_is_fenced_the_same() -> Result<()> {
    let bed = fenced("OnePod").await?;
    assert_eq!(wrong(&bed, ["pillion-manager", "pillion-manager"], &cases()).await?, Vec::<String>::new());
    bed.stop().await?;
    Ok(())
}
