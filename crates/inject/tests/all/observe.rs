//! Sets, and installations, that only look.

use pillion_api::{Meaning, Reason, SetMode};
use pillion_inject::{Installation, Namespace};
use serde_json::{Value, json};

use crate::asking::{
    after, ask, ask_in, image, injected, metadata, one_app, patch, plain_set, pod, set, verdicts, with,
};
use crate::scenarios::resources;

const LOOKING: Installation<'_> = Installation {
    mode: SetMode::Observe,
    is_off: false,
    own_namespace: None,
    finish: None,
    hot_updates: None,
    sizer: None,
};

fn observing(name: &str, container: &str) -> Meaning {
    set(name, json!({"containers": [image(container)], "mode": "Observe"}))
}

#[test]
fn a_set_that_observes_changes_nothing() {
    let (pod, sets) = (one_app(), [observing("mesh", "proxy")]);
    let decision = ask(&pod, &sets);
    assert_eq!(verdicts(&decision), [("mesh", "observe", Reason::Observed)]);
    assert_eq!(decision.verdicts[0].message, "the set would be applied, but only observes");
    assert_eq!(decision.patch, []);
}

#[test]
fn it_says_what_it_would_have_computed() {
    let policy = json!({"targetContainerMode": "sum", "resourceExpr": {"limits": {"cpu": "cpu*50%"}}});
    let proxy = with("proxy", json!({"resourcesPolicy": policy}));
    let sets = [set("mesh", json!({"containers": [proxy], "mode": "Observe"}))];
    let pod = pod(json!({"containers": [with("app", json!({"resources": resources(["1", ""], ["", ""])}))]}));
    let decision = ask(&pod, &sets);
    let sizes: Vec<String> =
        decision.verdicts[0].sizes.iter().map(|size| format!("{} {:?}", size.field, size.result)).collect();
    assert_eq!(sizes.len(), 1);
    assert_eq!(decision.verdicts[0].sizes[0].result, pillion_expr::Outcome::Amount("500m".parse().unwrap()));
    assert_eq!(decision.patch, []);
}

#[test]
fn it_never_refuses_a_pod_and_says_why_it_would_have() {
    let sets = [observing("mesh", "app")];
    let pod = one_app();
    let decision = ask(&pod, &sets);
    assert_eq!(verdicts(&decision), [("mesh", "observe", Reason::ContainerClash)]);
    let unreadable = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": 1}});
    let decision = ask(&unreadable, &sets);
    assert_eq!(verdicts(&decision), [("mesh", "observe", Reason::UnreadablePod)]);
    assert_eq!(decision.verdicts[0].message, "spec.containers is no list");
}

#[test]
fn it_is_in_nobodys_way_and_stands_in_the_record_of_the_others() {
    let (pod, sets) = (one_app(), [observing("a", "proxy"), plain_set("b", "proxy")]);
    let decision = ask(&pod, &sets);
    assert_eq!(verdicts(&decision), [("a", "observe", Reason::Observed), ("b", "inject", Reason::Injected)]);
    let why = "the set would be applied, but only observes";
    let record = json!({"a": {"code": "PL207", "why": why}, "b": {"code": "PL201"}});
    let spec = json!({"containers": [injected("proxy", json!({})), image("app")]});
    assert_eq!(after(&decision), json!({"metadata": metadata("b", "proxy", record), "spec": spec}));
}

#[test]
fn what_the_pod_has_from_before_stays_when_the_set_only_observes() {
    let pod = one_app();
    let earlier = ask(&pod, &[plain_set("mesh", "proxy")]).pod.unwrap();
    let sets = [observing("mesh", "proxy")];
    let decision = ask(&earlier, &sets);
    assert_eq!(verdicts(&decision), [("mesh", "keep", Reason::AlreadyInjected)]);
    assert_eq!(decision.patch, []);
}

#[test]
fn an_installation_that_observes_changes_no_pod_at_all() {
    let mut marked: Value = one_app();
    marked["metadata"]["labels"]["pillion.dev/injected"] = json!("true");
    let clash = plain_set("clash", "app");
    let sets = [clash, plain_set("mesh", "proxy")];
    let decision = ask_in(&Namespace::named("shop"), &marked, &sets, LOOKING);
    let expected = [("clash", "observe", Reason::ContainerClash), ("mesh", "observe", Reason::Observed)];
    assert_eq!(verdicts(&decision), expected);
    assert_eq!(decision.patch, []);
    let unreadable = json!({"metadata": {"labels": {"app": "web"}}});
    let decision = ask_in(&Namespace::named("shop"), &unreadable, &sets, LOOKING);
    let expected = ["clash", "mesh"].map(|name| (name, "observe", Reason::UnreadablePod));
    assert_eq!(verdicts(&decision), expected);
}

#[test]
fn a_set_that_observes_does_not_keep_forged_marks_alive() {
    let mut marked = one_app();
    marked["metadata"]["labels"]["pillion.dev/injected"] = json!("true");
    let sets = [observing("mesh", "proxy")];
    let decision = ask(&marked, &sets);
    assert_eq!(patch(&decision), json!([{"op": "remove", "path": "/metadata/labels/pillion.dev~1injected"}]));
}
