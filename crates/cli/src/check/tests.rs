//! What is checked, on an installation that is well and on others that are not.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use pillion_runtime::tls::Authority;
use serde_json::{Value, json};

use super::seen::Seen;
use super::{Level, checks, shown, summary};
use crate::Format;

fn now() -> Timestamp {
    "2026-06-01T12:00:00Z".parse().unwrap()
}

fn bytes(text: &str) -> Value {
    serde_json::to_value(ByteString(text.as_bytes().to_vec())).unwrap()
}

fn authority(lifetime: Duration) -> Authority {
    Authority::generate("pillion", now(), lifetime).unwrap()
}

fn webhook(name: &str, policy: &str, bundle: &str) -> Value {
    let operator = if policy == "Fail" { "In" } else { "NotIn" };
    json!({"name": name, "failurePolicy": policy, "timeoutSeconds": 3, "clientConfig": {"caBundle": bytes(bundle)},
        "namespaceSelector": {"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "pillion-system"]},
            {"key": "pillion.dev/injection", "operator": operator, "values": ["required"]}]},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]})
}

fn deployment(name: &str) -> Value {
    let image = format!("registry.example/pillion/manager:v{}", env!("CARGO_PKG_VERSION"));
    let container =
        json!({"name": "manager", "image": image, "args": ["webhook", "--mode=Inject", "--feature-gates="]});
    json!({"metadata": {"name": name}, "spec": {"replicas": 2, "template": {"spec": {"containers": [container]}}},
        "status": {"readyReplicas": 2}})
}

/// A cluster in which everything is well.
fn healthy_with(authority: &Authority) -> Seen {
    let bundle = format!("{}{}", "older certificate\n", authority.certificate_pem());
    let set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "mesh"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "proxy", "image": "proxy:1"}]},
        "status": {"fieldOfTomorrow": 1}});
    Seen {
        namespace: "pillion-system".to_owned(),
        now: now(),
        version: json!({"major": "1", "minor": "36", "gitVersion": "v1.36.4"}),
        date: Some("Mon, 01 Jun 2026 12:00:30 GMT".to_owned()),
        definition: Ok(Some(json!({"metadata": {"labels": {"app.kubernetes.io/part-of": "pillion"}}}))),
        sets: Ok(vec![set]),
        deployments: Ok(vec![deployment("pillion-webhook"), deployment("pillion-controller")]),
        switch: Ok(None),
        secret: Ok(Some(json!({"data": {
            "tls.crt": bytes(authority.certificate_pem()), "tls.key": bytes(&authority.key_pem())}}))),
        mutating: Ok(vec![json!({"metadata": {"name": "pillion"}, "webhooks": [
            webhook("pods.pillion.dev", "Ignore", &bundle), webhook("required-pods.pillion.dev", "Fail", &bundle)]})]),
        validating: Ok(Some(json!({"metadata": {"name": "pillion"}, "webhooks": [
            webhook("sidecarsets.pillion.dev", "Fail", &bundle)]}))),
        policies: Ok(vec![json!({"metadata": {"name": "pillion-marks"}, "spec": {"failurePolicy": "Fail"}})]),
        bindings: Ok(vec![json!({"metadata": {"name": "pillion-marks"}, "spec": {"policyName": "pillion-marks"}})]),
        probe_namespace: Ok(Some(json!({"metadata": {"name": "default"}}))),
        probe: Ok(json!({"metadata": {"annotations": {}}})),
    }
}

fn healthy() -> Seen {
    healthy_with(&authority(Duration::from_hours(8760)))
}

/// What is not well in a cluster: which check, how bad, and its words.
fn troubles(seen: &Seen) -> Vec<(&'static str, Level, String)> {
    let found = checks(seen).into_iter().filter(|check| check.level != Level::Ok);
    found
        .map(|check| {
            assert!(check.hint.is_some(), "{}: every trouble has a way out", check.message);
            (check.name, check.level, check.message)
        })
        .collect()
}

#[test]
fn an_installation_that_is_well() {
    let found = checks(&healthy());
    insta::assert_snapshot!(shown(&found, Format::Text));
    assert_eq!(summary(&found), "19 ok, 0 to know, 0 failed");
}

#[test]
fn an_installation_that_is_not_installed() {
    let nothing = Seen {
        definition: Ok(None),
        sets: Ok(vec![]),
        deployments: Ok(vec![]),
        secret: Ok(None),
        mutating: Ok(vec![]),
        validating: Ok(None),
        probe: Ok(super::probe::pod()),
        ..healthy()
    };
    let found = checks(&nothing);
    insta::assert_snapshot!(shown(&found, Format::Text));
    insta::assert_snapshot!(shown(&found, Format::Json));
    assert_eq!(summary(&found), "7 ok, 1 to know, 5 failed");
}

/// A cluster in which one thing is otherwise.
fn with(change: impl FnOnce(&mut Seen)) -> Seen {
    let mut seen = healthy();
    change(&mut seen);
    seen
}

fn registration(seen: &mut Seen) -> &mut Value {
    &mut seen.mutating.as_mut().unwrap()[0]
}

#[expect(clippy::too_many_lines, reason = "a table")]
#[test]
fn every_check_finds_what_it_looks_for() {
    use Level::{Fail, Warn};
    let first = |seen: &mut Seen| seen.deployments.as_mut().unwrap().truncate(1);
    let cases: Vec<(&'static str, Level, &str, Seen)> = vec![
        (
            "kubernetes",
            Fail,
            "v1.32.9 is older than 1.33",
            with(|it| it.version = json!({"major": "1", "minor": "32+", "gitVersion": "v1.32.9"})),
        ),
        ("kubernetes", Warn, "of an unknown version: the version cannot be read", with(|it| it.version = json!({}))),
        (
            "clock",
            Warn,
            "the API server's clock and this one are 120 s apart",
            with(|it| it.date = Some("Mon, 01 Jun 2026 11:58:00 GMT".to_owned())),
        ),
        (
            "clock",
            Fail,
            "the API server's clock and this one are 86400 s apart",
            with(|it| it.date = Some("Tue, 02 Jun 2026 12:00:00 GMT".to_owned())),
        ),
        ("clock", Warn, "the API server does not say what time it is", with(|it| it.date = None)),
        (
            "definition",
            Fail,
            "SidecarSets are defined by somebody else",
            with(|it| it.definition = Ok(Some(json!({})))),
        ),
        (
            "sets",
            Fail,
            "1 of 2 cannot be used: broken",
            with(|it| it.sets.as_mut().unwrap().push(json!({"metadata": {"name": "broken"}}))),
        ),
        (
            "switch",
            Warn,
            "injection is switched off",
            with(|it| it.switch = Ok(Some(json!({"data": {"injection": "off"}})))),
        ),
        ("switch", Warn, "cannot get configmaps", with(|it| it.switch = Err("cannot get configmaps".to_owned()))),
        (
            "manager",
            Warn,
            "pillion-webhook: 1 of 2 replicas are ready",
            with(|it| {
                first(it);
                it.deployments.as_mut().unwrap()[0]["status"]["readyReplicas"] = json!(1);
            }),
        ),
        (
            "manager",
            Fail,
            "pillion-webhook: 0 of 2 replicas are ready",
            with(|it| {
                first(it);
                it.deployments.as_mut().unwrap()[0]["status"] = json!({});
            }),
        ),
        (
            "version",
            Warn,
            concat!("pillion-webhook is 9.9.9, this program is ", env!("CARGO_PKG_VERSION")),
            with(|it| {
                first(it);
                it.deployments.as_mut().unwrap()[0]["spec"]["template"]["spec"]["containers"][0]["image"] =
                    json!("r.example:5000/pillion/manager:v9.9.9@sha256:0c1d");
            }),
        ),
        (
            "mode",
            Warn,
            "Observe: no pod is changed",
            with(|it| {
                first(it);
                it.deployments.as_mut().unwrap()[0]["spec"]["template"]["spec"]["containers"][0]["args"] =
                    json!(["--mode", "Observe"]);
            }),
        ),
        (
            "pod webhook",
            Fail,
            "webhook required-pods.pillion.dev is not registered",
            with(|it| {
                registration(it)["webhooks"].as_array_mut().unwrap().pop();
            }),
        ),
        (
            "pod webhook",
            Fail,
            "webhook required-pods.pillion.dev has failurePolicy \"Ignore\", not Fail",
            with(|it| registration(it)["webhooks"][1]["failurePolicy"] = json!("Ignore")),
        ),
        (
            "pod webhook",
            Fail,
            "webhook pods.pillion.dev is not asked about new pods",
            with(|it| registration(it)["webhooks"][0]["rules"][0]["operations"] = json!(["UPDATE"])),
        ),
        (
            "pod webhook",
            Fail,
            "webhook required-pods.pillion.dev does not leave out namespace kube-system: a cluster might not start any more",
            with(|it| registration(it)["webhooks"][1]["namespaceSelector"]["matchExpressions"][0] = json!({})),
        ),
        (
            "bystanders",
            Fail,
            "MutatingWebhookConfiguration pillion: webhook pods.pillion.dev fails closed for every namespace: set failurePolicy to Ignore",
            with(|it| registration(it)["webhooks"][0]["failurePolicy"] = json!("Fail")),
        ),
        (
            "bystanders",
            Fail,
            "ValidatingAdmissionPolicyBinding pillion-agents: it denies requests while its parameters are missing: set parameterNotFoundAction to Allow",
            with(|it| {
                let reference = json!({"name": "pillion-agent-fence", "parameterNotFoundAction": "Deny"});
                it.bindings =
                    Ok(vec![json!({"metadata": {"name": "pillion-agents"}, "spec": {"paramRef": reference}})]);
            }),
        ),
        (
            "bystanders",
            Fail,
            "ValidatingAdmissionPolicy pillion-agents: it has parameters and fails closed: set failurePolicy to Ignore; \
             ValidatingAdmissionPolicy pillion-agents: it fails closed for every account: add a matchCondition on request.userInfo.username",
            with(|it| {
                let spec = json!({"failurePolicy": "Fail", "paramKind": {"kind": "ConfigMap"}});
                it.policies = Ok(vec![json!({"metadata": {"name": "pillion-agents"}, "spec": spec})]);
            }),
        ),
        (
            "bystanders",
            Warn,
            "cannot list validatingadmissionpolicies",
            with(|it| it.policies = Err("cannot list validatingadmissionpolicies".to_owned())),
        ),
        ("set webhook", Fail, "nobody checks sets before they are stored", with(|it| it.validating = Ok(None))),
        ("authority", Fail, "there is no Secret pillion-webhook-ca", with(|it| it.secret = Ok(None))),
        (
            "authority",
            Warn,
            "cannot get secrets: forbidden",
            with(|it| it.secret = Err("cannot get secrets: forbidden".to_owned())),
        ),
        (
            "authority",
            Fail,
            "Secret pillion-webhook-ca is of no use: tls.crt or tls.key is missing",
            with(|it| it.secret = Ok(Some(json!({"data": {}})))),
        ),
        (
            "trust",
            Fail,
            "the API server does not trust the authority for required-pods.pillion.dev: its caBundle lacks it",
            with(|it| registration(it)["webhooks"][1]["clientConfig"]["caBundle"] = bytes("another")),
        ),
        (
            "reached",
            Fail,
            "the API server did not reach the webhook about a pod it tried in default",
            with(|it| it.probe = Ok(super::probe::pod())),
        ),
        (
            "reached",
            Fail,
            "the API server does not reach the webhook: failed calling webhook \"required-pods.pillion.dev\"",
            with(|it| it.probe = Err("failed calling webhook \"required-pods.pillion.dev\"".to_owned())),
        ),
        (
            "reached",
            Warn,
            "a pod could not be tried in default: exceeded quota",
            with(|it| it.probe = Err("exceeded quota".to_owned())),
        ),
        (
            "reached",
            Warn,
            "pods of kube-system are never reviewed, so trying one tells nothing",
            with(|it| it.probe_namespace = Ok(Some(json!({"metadata": {"name": "kube-system"}})))),
        ),
        (
            "openkruise",
            Fail,
            "kruise-mutating-webhook-configuration injects SidecarSets too",
            with(|it| {
                it.mutating.as_mut().unwrap().push(json!({"metadata": {"name": "kruise-mutating-webhook-configuration"}, "webhooks": [webhook("mpod.kb.io", "Fail", "")]}));
            }),
        ),
    ];
    for (name, level, message, seen) in cases {
        assert_eq!(troubles(&seen), [(name, level, message.to_owned())]);
    }
}

#[test]
fn an_authority_ends_and_that_is_told_in_time() {
    for (hours, level) in [(8 * 24, Level::Ok), (6 * 24, Level::Warn)] {
        let seen = healthy_with(&authority(Duration::from_hours(hours)));
        let found = checks(&seen).into_iter().find(|check| check.name == "authority").unwrap();
        assert_eq!(found.level, level, "{}", found.message);
    }
    let ended = Seen { now: now() + Duration::from_hours(2), ..healthy_with(&authority(Duration::from_hours(1))) };
    let found = checks(&ended).into_iter().find(|check| check.name == "authority").unwrap();
    assert_eq!((found.level, found.message.as_str()), (Level::Fail, "it ended at 2026-06-01T13:00:00Z"));
}

#[test]
fn switched_off_is_no_failure_though_no_webhook_is_registered() {
    let off = with(|it| {
        it.switch = Ok(Some(json!({"data": {"injection": "off"}})));
        registration(it)["webhooks"] = json!([]);
        it.probe = Ok(super::probe::pod());
    });
    let found: Vec<_> = troubles(&off).into_iter().map(|(name, level, _)| (name, level)).collect();
    assert_eq!(found, [("switch", Level::Warn), ("reached", Level::Warn)]);
}

#[test]
fn an_observing_installation_cannot_be_tried() {
    let observing = with(|it| {
        it.deployments.as_mut().unwrap()[0]["spec"]["template"]["spec"]["containers"][0]["args"] =
            json!(["--mode=Observe"]);
        it.probe = Ok(super::probe::pod());
    });
    let found: Vec<_> = troubles(&observing).into_iter().map(|(name, level, _)| (name, level)).collect();
    assert_eq!(found, [("mode", Level::Warn), ("reached", Level::Warn)]);
}

#[test]
fn others_are_told_in_the_order_they_are_asked() {
    let seen = with(|it| {
        let all = it.mutating.as_mut().unwrap();
        for name in ["istio-sidecar-injector", "vault-agent", "cert-manager"] {
            let mut other = webhook("other", "Ignore", "");
            if name == "cert-manager" {
                other["rules"][0]["resources"] = json!(["certificates"]);
            }
            all.push(json!({"metadata": {"name": name}, "webhooks": [other]}));
        }
    });
    let found = checks(&seen).into_iter().find(|check| check.name == "neighbours").unwrap();
    let message = "others change new pods too, before us: istio-sidecar-injector; after us: vault-agent; what they \
                   change after us we are asked about again";
    assert_eq!((found.level, found.message.as_str()), (Level::Ok, message));
}
