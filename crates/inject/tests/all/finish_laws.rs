//! What holds for every pod whose sidecars are ended with the others, tried on drawn ones.

use std::collections::BTreeSet;

use pillion_api::{Meaning, Reason};
use pillion_generators::{Admission, admission, law};
use pillion_inject::{
    Agent, Candidate, Decision, Finishing, Installation, Namespace, PodHead, SetIndex, inject, marks,
};
use proptest::prelude::{any, prop_assert, prop_assert_eq};
use proptest::test_runner::TestCaseResult;
use serde_json::{Value, json};

const CASES: u32 = 10_000;
const EXECUTABLE: &str = "/pillion-finish/pillion-wrap";

/// A drawn pod, made more likely to have sidecars that can be ended.
fn pod(admission: &Admission, draw: u8) -> Value {
    let mut pod = admission.pod.clone();
    match draw & 3 {
        0 => {}
        1 => pod["spec"]["restartPolicy"] = json!("Never"),
        _ => pod["spec"]["restartPolicy"] = json!("OnFailure"),
    }
    let containers = pod["spec"]["containers"].as_array_mut().unwrap();
    if draw & 4 != 0 {
        for container in containers.iter_mut() {
            container["command"] = json!(["/bin/app", "--", "x"]);
        }
    }
    if draw & 8 != 0 {
        containers[0]["env"] = json!([{"name": "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", "value": "True"}]);
    }
    pod
}

fn asked<'a>(pod: &Value, namespace: &Namespace, sets: &'a [Meaning]) -> Vec<&'a Meaning> {
    let bytes = pod.to_string();
    let head = PodHead::parse(bytes.as_bytes()).unwrap();
    let index = SetIndex::new(sets.iter().cloned());
    let names: BTreeSet<String> = index.of_pod(&head, namespace).iter().map(|set| set.name.clone()).collect();
    sets.iter().filter(|set| names.contains(&set.name)).collect()
}

fn decide<'a>(
    pod: &'a Value,
    namespace: &Namespace,
    sets: &'a [Meaning],
    finish: Option<Finishing<'_>>,
) -> Decision<'a> {
    let candidates = asked(pod, namespace, sets).into_iter().map(Candidate::latest);
    inject(pod, namespace, candidates, Installation { finish, ..Installation::default() })
}

#[test]
fn the_laws_of_finishing_hold() {
    let agent = Agent { image: "agent:1".to_owned(), ..Agent::default() };
    let finishing = Finishing { agent: Some(&agent) };
    law(CASES, &(admission(3), any::<u8>()), |(drawn, draw)| {
        let namespace = Namespace { name: drawn.namespace.name.clone(), labels: drawn.namespace.labels.clone() };
        let (pod, sets) = (pod(&drawn, draw), drawn.meanings());
        let decision = decide(&pod, &namespace, &sets, Some(finishing));
        if decision.is_refused() {
            prop_assert!(decision.patch.is_empty());
            return Ok(());
        }
        let after = decision.pod.as_ref().unwrap_or(&pod);
        let again = decide(after, &namespace, &sets, Some(finishing));
        prop_assert_eq!(serde_json::to_value(&again.patch)?, json!([]));
        prop_assert!(!again.is_refused());
        let mut patched = pod.clone();
        let patch: json_patch::Patch = serde_json::from_value(serde_json::to_value(&decision.patch)?)?;
        json_patch::patch(&mut patched, &patch).unwrap();
        prop_assert_eq!(&patched, after);

        let plain = decide(&pod, &namespace, &sets, None);
        let outcomes = |it: &Decision<'_>| it.verdicts.iter().map(|verdict| verdict.outcome).collect::<Vec<_>>();
        if outcomes(&plain) == outcomes(&decision) {
            let before = plain.pod.as_ref().unwrap_or(&pod);
            nothing_but_what_ends_sidecars_changes(before, after, &decision)?;
        }
        Ok(())
    });
}

/// Makes the same of the pod that is not finished, field by field, from what the decision says alone.
fn nothing_but_what_ends_sidecars_changes(before: &Value, after: &Value, decision: &Decision<'_>) -> TestCaseResult {
    let mut expected = before.clone();
    let wraps = decision.endings.iter().any(|ending| ending.reason == Reason::EndsByAgent);
    for ending in &decision.endings {
        let name = ending.container.as_str();
        let list = expected["spec"]["containers"].as_array_mut().unwrap();
        let Some(at) = list.iter().position(|it| it["name"] == name) else {
            prop_assert_eq!(ending.reason, Reason::EndsAsNative);
            continue;
        };
        match ending.reason {
            Reason::EndsAsNative => {
                let mut moved = list.remove(at);
                prop_assert!(moved.get("restartPolicy").is_none_or(|it| it == "Always"));
                moved["restartPolicy"] = json!("Always");
                push(&mut expected["spec"], "initContainers", moved);
            }
            Reason::EndsByAgent => {}
            _ => prop_assert_eq!(ending.reason, Reason::EndsNever),
        }
    }
    let marked: Vec<&str> = decision.endings.iter().map(|ending| ending.container.as_str()).collect();
    let mains = expected["spec"]["containers"].as_array().unwrap().iter();
    let mains = mains.filter(|it| !marked.contains(&it["name"].as_str().unwrap())).count();
    prop_assert!(mains > 0, "one container is no sidecar");
    if wraps {
        expect_the_agent(&mut expected, after)?;
    }
    let key = marks::DECISION;
    if let Some(record) = after.pointer("/metadata/annotations").and_then(|all| all.get(key)) {
        if expected["metadata"]["annotations"].is_null() {
            expected["metadata"]["annotations"] = json!({});
        }
        expected["metadata"]["annotations"][key] = record.clone();
    }
    prop_assert_eq!(&expected, after);
    Ok(())
}

fn expect_the_agent(expected: &mut Value, after: &Value) -> TestCaseResult {
    let mut watches = false;
    for (own, there) in expected["spec"]["containers"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .zip(after["spec"]["containers"].as_array().unwrap())
    {
        let command = there["command"].as_array().cloned().unwrap_or_default();
        if command.first() != Some(&json!(EXECUTABLE)) {
            continue;
        }
        let end = command.iter().position(|word| word == "--").unwrap();
        prop_assert_eq!(&json!(command[end + 1..]), &own["command"]);
        let words: Vec<&str> = command[..end].iter().map(|word| word.as_str().unwrap()).collect();
        prop_assert_eq!(&words[1..3], ["wrap", "--dir=/pillion-finish"]);
        own["command"] = json!(command);
        push(own, "volumeMounts", json!({"name": "pillion-finish", "mountPath": "/pillion-finish"}));
        if words.iter().any(|word| word.starts_with("--watch-pod=")) {
            watches = true;
            let mount = json!({"name": "pillion-finish-token", "mountPath": "/pillion-finish-token", "readOnly": true});
            push(own, "volumeMounts", mount);
            if own["env"].as_array().into_iter().flatten().all(|env| env["name"] != "POD_NAME") {
                let from = json!({"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}});
                push(own, "env", json!({"name": "POD_NAME", "valueFrom": from}));
            }
        }
    }
    let spec = &mut expected["spec"];
    push(spec, "volumes", json!({"name": "pillion-finish", "emptyDir": {"sizeLimit": "16Mi"}}));
    let all = |list: &str| after["spec"][list].as_array().cloned().unwrap_or_default();
    if watches {
        push(spec, "volumes", all("volumes").last().cloned().unwrap());
        prop_assert_eq!(&spec["volumes"].as_array().unwrap().last().unwrap()["name"], "pillion-finish-token");
    }
    let agent = all("initContainers").last().cloned().unwrap();
    prop_assert_eq!((&agent["name"], &agent["image"]), (&json!("pillion-agent"), &json!("agent:1")));
    push(spec, "initContainers", agent);
    Ok(())
}

fn push(parent: &mut Value, list: &str, item: Value) {
    if parent[list].is_null() {
        parent[list] = json!([]);
    }
    parent[list].as_array_mut().unwrap().push(item);
}
