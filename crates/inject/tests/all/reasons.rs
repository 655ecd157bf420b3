//! Why pods are left alone, and why sets do not match.

use pillion_api::Reason;
use pillion_inject::{Installation, Namespace, mismatch};
use serde_json::{Value, json};

use crate::asking::{ask, ask_in, image, one_app, plain_set, set, verdicts};

/// What a set decides about a pod that is left alone, and that nothing changes.
fn left_alone(namespace: &str, pod: &Value, installation: Installation<'_>) -> (Reason, String) {
    let sets = [plain_set("mesh", "proxy")];
    let decision = ask_in(&Namespace::named(namespace), pod, &sets, installation);
    assert_eq!(decision.patch, []);
    let verdict = &decision.verdicts[0];
    assert_eq!(verdicts(&decision), [("mesh", "skip", verdict.reason)]);
    (verdict.reason, verdict.message.clone())
}

#[test]
fn a_cluster_can_always_start() {
    let installed = Installation { own_namespace: Some("pillion-system"), ..Installation::default() };
    for namespace in ["kube-system", "pillion-system"] {
        let message = format!("pods of namespace {namespace} are never changed");
        let unreadable = json!({"metadata": {"labels": {"app": "web"}}});
        assert_eq!(left_alone(namespace, &one_app(), installed), (Reason::NamespaceExcluded, message.clone()));
        assert_eq!(left_alone(namespace, &unreadable, installed), (Reason::NamespaceExcluded, message));
    }
    let (pod, sets) = (one_app(), [plain_set("mesh", "proxy")]);
    let elsewhere = ask_in(&Namespace::named("pillion-system"), &pod, &sets, Installation::default());
    assert_eq!(verdicts(&elsewhere), [("mesh", "inject", Reason::Injected)]);
}

#[test]
fn what_is_switched_off_does_nothing() {
    let off = Installation { is_off: true, ..Installation::default() };
    let message = "injection is switched off".to_owned();
    assert_eq!(left_alone("shop", &one_app(), off), (Reason::SwitchedOff, message.clone()));
    let unreadable = json!({"metadata": {"labels": {"app": "web"}}});
    assert_eq!(left_alone("shop", &unreadable, off), (Reason::SwitchedOff, message));
}

#[test]
fn a_mirror_pod_is_left_alone() {
    let mut mirror = one_app();
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "hash"});
    let message = "the pod only shows what a node runs from its own files".to_owned();
    assert_eq!(left_alone("shop", &mirror, Installation::default()), (Reason::MirrorPod, message));
}

#[test]
fn a_set_that_is_paused_adds_nothing_and_says_so() {
    for field in ["injectStrategy", "injectionStrategy"] {
        let (pod, sets) = (one_app(), [set("mesh", json!({"containers": [image("app")], field: {"paused": true}}))]);
        let decision = ask(&pod, &sets);
        assert_eq!(verdicts(&decision), [("mesh", "skip", Reason::InjectionPaused)]);
        let record = r#"{"v":1,"sets":{"mesh":{"code":"PL204","why":"injection of the set is paused"}}}"#;
        let annotations = json!({"pillion.dev/decision": record});
        assert_eq!(decision.pod.unwrap()["metadata"]["annotations"], annotations);
    }
}

#[test]
fn the_first_requirement_that_fails_is_named_with_what_there_is() {
    let message = |spec: Value, labels: &[(&str, &str)]| {
        let mut spec = spec;
        spec["containers"] = json!([image("proxy")]);
        let mut namespace = Namespace::named("shop");
        namespace.labels.insert("team".to_owned(), "a".to_owned());
        let label = |key: &str| labels.iter().find(|(own, _)| *own == key).map(|(_, value)| *value);
        mismatch(&set("mesh", spec), label, &namespace).map(|why| (why.reason, why.message))
    };
    let expression = |operator: &str, values: &[&str]| json!({"selector": {"matchExpressions": [{"key": "tier", "operator": operator, "values": values}]}});
    let no = |text: &str| Some((Reason::SelectorMismatch, text.to_owned()));
    let tier = [("tier", "back")];
    assert_eq!(message(expression("In", &["front"]), &tier), no("selector wants tier=front, the pod has tier=back"));
    let several = "selector wants tier in (front, mid), the pod has no label tier";
    assert_eq!(message(expression("In", &["mid", "front"]), &[]), no(several));
    let neither = "selector wants tier not in (back, mid), the pod has tier=back";
    assert_eq!(message(expression("NotIn", &["mid", "back"]), &tier), no(neither));
    let absent = json!({"selector": {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}});
    assert_eq!(message(absent.clone(), &tier), no("selector wants no label tier, the pod has tier=back"));
    let present = json!({"selector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}});
    assert_eq!(message(present.clone(), &[]), no("selector wants label tier, the pod has no label tier"));
    assert_eq!([message(present, &tier), message(absent, &[])], [None, None]);

    let web = [("app", "web")];
    let elsewhere = |text: &str| Some((Reason::NamespaceMismatch, text.to_owned()));
    let named = message(json!({"namespace": "bank"}), &web);
    assert_eq!(named, elsewhere("spec.namespace is bank, the pod is in shop"));
    let selected = |value: &str| json!({"namespaceSelector": {"matchLabels": {"team": value}}});
    assert_eq!(message(selected("b"), &web), elsewhere("namespaceSelector wants team=b, namespace shop has team=a"));
    assert_eq!(message(selected("a"), &web), None);
    // The namespace is looked at first.
    assert_eq!(message(selected("b"), &[]), elsewhere("namespaceSelector wants team=b, namespace shop has team=a"));
}
