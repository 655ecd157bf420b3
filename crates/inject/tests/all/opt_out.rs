//! Pods that ask to leave a set out.

use pillion_api::{Meaning, Reason};
use serde_json::{Value, json};

use crate::asking::{after, ask, image, injected, metadata, one_app, set, verdicts};

fn sets() -> [Meaning; 3] {
    let spec = |container: &str, allowed: bool| json!({"containers": [image(container)], "allowOptOut": allowed});
    [set("logs", spec("shipper", true)), set("mesh", spec("proxy", false)), set("vault", spec("agent", true))]
}

fn skipping(names: &str) -> Value {
    let mut pod = one_app();
    pod["metadata"]["annotations"] = json!({"pillion.dev/skip": names});
    pod
}

#[test]
fn a_set_is_left_out_where_it_allows_that_and_applied_where_it_does_not() {
    let (pod, sets) = (skipping("mesh, logs,,none"), sets());
    let decision = ask(&pod, &sets);
    let expected = [
        ("logs", "skip", Reason::OptedOut),
        ("mesh", "inject", Reason::OptOutNotAllowed),
        ("vault", "inject", Reason::Injected),
    ];
    assert_eq!(verdicts(&decision), expected);
    let message = "the pod's annotation pillion.dev/skip names the set";
    assert_eq!(decision.verdicts[0].message, message);
    assert_eq!(decision.verdicts[1].message, format!("{message}, which does not allow it"));
    let record =
        json!({"logs": {"code": "PL205", "why": message}, "mesh": {"code": "PL206"}, "vault": {"code": "PL201"}});
    let mut metadata = metadata("mesh,vault", "agent,proxy", record);
    metadata["annotations"]["pillion.dev/skip"] = json!("mesh, logs,,none");
    let spec = json!({"containers": [injected("proxy", json!({})), injected("agent", json!({})), image("app")]});
    assert_eq!(after(&decision), json!({"metadata": metadata, "spec": spec}));
}

#[test]
fn a_pod_that_leaves_everything_out_says_so() {
    let [logs, _, vault] = sets();
    let (pod, sets) = (skipping("logs,vault"), [logs, vault]);
    let decision = ask(&pod, &sets);
    let why = "the pod's annotation pillion.dev/skip names the set";
    let sets = json!({"logs": {"code": "PL205", "why": why}, "vault": {"code": "PL205", "why": why}});
    let mut expected = pod.clone();
    expected["metadata"]["annotations"]["pillion.dev/decision"] = json!({"v": 1, "sets": sets});
    assert_eq!(after(&decision), expected);
}

#[test]
fn a_part_of_a_name_is_no_name() {
    let (pod, sets) = (skipping("log,logs-2"), [sets()[0].clone()]);
    assert_eq!(verdicts(&ask(&pod, &sets)), [("logs", "inject", Reason::Injected)]);
}
