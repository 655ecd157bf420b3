//! Containers marked as sidecars, and how they are ended when all others have ended.

use pillion_api::{Meaning, Reason};
use pillion_inject::{Agent, Decision, Finishing, Installation, Namespace, mentions_variable, uninjected};
use serde_json::{Value, json};

use crate::asking::{after, ask_in, image, injected, joined, pod, set, verdicts, with};

const EXECUTABLE: &str = "/pillion-finish/pillion-wrap";

fn agent() -> Agent {
    let amounts = json!({"cpu": "50m", "memory": "16Mi"});
    let resources = json!({"limits": amounts, "requests": amounts}).as_object().unwrap().clone();
    Agent { image: "registry.example/agent:1".to_owned(), pull_secrets: vec!["agent-pull".to_owned()], resources }
}

/// Asks where sidecars are ended, with an agent.
fn ask<'a>(pod: &'a Value, sets: &'a [Meaning]) -> Decision<'a> {
    ask_with(pod, sets, Some(&agent()))
}

fn ask_with<'a>(pod: &'a Value, sets: &'a [Meaning], agent: Option<&Agent>) -> Decision<'a> {
    let installation = Installation { finish: Some(Finishing { agent }), ..Installation::default() };
    ask_in(&Namespace::named("shop"), pod, sets, installation)
}

/// A set with one sidecar that ends with the others, and fields.
fn logs(fields: Value) -> Meaning {
    let command = json!({"sidecar": true, "command": ["/logs"]});
    set("logs", joined(json!({"containers": [with("logs", command)]}), fields))
}

/// A pod that ends, annotated.
fn job(annotations: Value, containers: Value) -> Value {
    let mut pod = pod(json!({"restartPolicy": "Never", "containers": containers}));
    pod["metadata"]["annotations"] = annotations;
    pod
}

fn marked(annotations: Value) -> Value {
    job(joined(json!({"pillion.dev/sidecars": "side"}), annotations), json!([work(), side()]))
}

fn work() -> Value {
    with("work", json!({"command": ["/work", "--now"], "args": ["a"]}))
}

fn side() -> Value {
    with("side", json!({"command": ["/side"], "ports": [{"containerPort": 1}], "unknown": {"kept": true}}))
}

fn endings(decision: &Decision<'_>) -> Vec<(String, Reason)> {
    decision.endings.iter().map(|ending| (ending.container.clone(), ending.reason)).collect()
}

/// Why a pod is refused for what it asks itself.
fn refusal(decision: &Decision<'_>) -> (Reason, String) {
    let refusal = decision.refusal.clone().unwrap();
    (refusal.reason, refusal.message)
}

fn wrapped(own: &[&str], command: &[&str]) -> Value {
    json!([&[EXECUTABLE, "wrap", "--dir=/pillion-finish"], own, &["--"], command].concat())
}

fn bring() -> Value {
    let amounts = json!({"cpu": "50m", "memory": "16Mi"});
    json!({
        "name": "pillion-agent",
        "image": "registry.example/agent:1",
        "command": ["/pillion-wrap"],
        "args": ["cp", EXECUTABLE],
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": 65532, "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": "pillion-finish", "mountPath": "/pillion-finish"}],
        "resources": {"limits": amounts, "requests": amounts},
    })
}

#[test]
fn a_container_that_the_pod_names_becomes_a_native_sidecar() {
    let mut own = marked(json!({}));
    own["spec"]["initContainers"] = json!([image("prepare")]);
    let decision = ask(&own, &[]);
    assert_eq!(endings(&decision), [("side".to_owned(), Reason::EndsAsNative)]);
    let pod = after(&decision);
    assert_eq!(pod["spec"]["containers"], json!([work()]));
    let native = joined(side(), json!({"restartPolicy": "Always"}));
    assert_eq!(pod["spec"]["initContainers"], json!([image("prepare"), native]));
    let record = json!({"v": 1, "sets": {}, "finish": {"side": ["PL214"]}});
    let annotations = json!({"pillion.dev/sidecars": "side", "pillion.dev/decision": record});
    assert_eq!(pod["metadata"]["annotations"], annotations);
}

#[test]
fn a_set_marks_its_own_container_whatever_the_restart_policy() {
    for policy in ["Always", "OnFailure", "Never"] {
        let (own, sets) = (pod(json!({"restartPolicy": policy, "containers": [work()]})), [logs(json!({}))]);
        let decision = ask(&own, &sets);
        assert_eq!(verdicts(&decision), [("logs", "inject", Reason::Injected)]);
        let pod = after(&decision);
        let native = injected("logs", json!({"command": ["/logs"], "restartPolicy": "Always"}));
        assert_eq!(pod["spec"]["initContainers"], json!([native]));
        assert_eq!(pod["spec"]["containers"], json!([work()]));
        assert_eq!(pod["metadata"]["annotations"]["pillion.dev/containers"], "logs");
        assert_eq!(pod["metadata"]["annotations"]["pillion.dev/decision"]["finish"], json!({"logs": ["PL214"]}));
        // What it was before is found by its list, wherever the container is.
        assert_eq!(uninjected(decision.pod.as_ref().unwrap(), |_| Some(&sets[0]))["spec"], own["spec"]);
    }
}

#[test]
fn nothing_is_ended_where_that_is_switched_off_and_the_set_says_so() {
    let (own, sets) = (marked(json!({})), [logs(json!({}))]);
    let decision = ask_in(&Namespace::named("shop"), &own, &sets, Installation::default());
    assert_eq!(endings(&decision), []);
    let warnings: Vec<_> = decision.verdicts[0].warnings.iter().map(|warning| warning.reason).collect();
    assert_eq!(warnings, [Reason::FinishSwitchedOff]);
    let pod = after(&decision);
    let logs = injected("logs", json!({"command": ["/logs"]}));
    assert_eq!(pod["spec"]["containers"], json!([logs, work(), side()]));
}

#[test]
fn a_pod_without_a_mark_is_left_as_it_is() {
    let own = job(json!({"pillion.dev/finish-mode": "Wrap"}), json!([work(), side()]));
    let decision = ask(&own, &[]);
    assert_eq!((decision.patch.len(), decision.endings.len()), (0, 0));
}

#[test]
fn variables_of_openkruise_are_marks_where_their_value_is_literal() {
    let mark = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT";
    let with_image = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE";
    let env = |name: &str, value: Value| joined(json!({"name": name}), value);
    for (variable, expected) in [
        (env(mark, json!({"value": "true"})), vec!["PL214"]),
        (env(mark, json!({"value": "True"})), vec!["PL214"]),
        (env(with_image, json!({"value": "exit:0"})), vec!["PL214", "PL355"]),
        (env(mark, json!({"value": "false"})), vec![]),
        (env(with_image, json!({"value": ""})), vec![]),
        (env(mark, json!({"valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}})), vec![]),
    ] {
        let own = job(json!({}), json!([work(), joined(side(), json!({"env": [variable]}))]));
        assert!(mentions_variable(&own.to_string()));
        let decision = ask(&own, &[]);
        let codes: Vec<&str> = decision
            .endings
            .iter()
            .flat_map(|ending| {
                [ending.reason.code()].into_iter().chain(ending.warnings.iter().map(|it| it.reason.code()))
            })
            .collect();
        assert_eq!(codes, expected, "{variable}");
    }
    assert!(!mentions_variable(&marked(json!({})).to_string()));
}

#[test]
fn names_are_those_of_containers_that_can_be_sidecars() {
    let native = with("net", json!({"restartPolicy": "Always"}));
    let asked = |names: &str| {
        let mut own = job(json!({"pillion.dev/sidecars": names}), json!([work(), side()]));
        own["spec"]["initContainers"] = json!([image("prepare"), native.clone()]);
        let decision = ask(&own, &[]);
        decision.refusal.clone().map(|it| (it.reason, it.message)).ok_or_else(|| endings(&decision))
    };
    assert_eq!(asked("net"), Err(vec![("net".to_owned(), Reason::EndsAsNative)]));
    let both = vec![("side".to_owned(), Reason::EndsAsNative), ("net".to_owned(), Reason::EndsAsNative)];
    assert_eq!(asked(" net, side ,"), Err(both));
    let there = "annotation pillion.dev/sidecars names proxy (there are: work, side)";
    assert_eq!(asked("proxy"), Ok((Reason::UnknownSidecar, there.to_owned())));
    let plain = "annotation pillion.dev/sidecars names prepare, a plain init container: give it restartPolicy: Always \
                 instead";
    assert_eq!(asked("prepare"), Ok((Reason::UnknownSidecar, plain.to_owned())));
    let all = "all containers (work, side) are sidecars, and nothing is left to wait for";
    assert_eq!(asked("work,side"), Ok((Reason::OnlySidecars, all.to_owned())));
}

#[test]
fn words_that_do_not_exist_are_refused() {
    for (key, message) in [
        ("pillion.dev/finish-mode", "annotation pillion.dev/finish-mode is \"now\": write Native or Wrap"),
        ("pillion.dev/finish-watch", "annotation pillion.dev/finish-watch is \"now\": write locks or pod"),
    ] {
        let own = marked(json!({key: "now"}));
        assert_eq!(refusal(&ask(&own, &[])), (Reason::UnknownFinish, message.to_owned()));
        // Without a sidecar there is nothing to do in either way.
        let own = job(json!({key: "now"}), json!([work()]));
        assert!(!ask(&own, &[]).is_refused());
    }
}

#[test]
fn what_native_sidecars_cannot_have_is_refused() {
    let with_field =
        |fields: Value| job(json!({"pillion.dev/sidecars": "side"}), json!([work(), with("side", fields)]));
    let policy = with_field(json!({"restartPolicy": "Never"}));
    let message = "container side has restartPolicy Never, a native sidecar is always restarted";
    assert_eq!(refusal(&ask(&policy, &[])), (Reason::OwnRestartRules, message.to_owned()));
    let rules = with_field(json!({"restartPolicyRules": [{"action": "Restart"}]}));
    let message = "container side has restartPolicyRules, a native sidecar is always restarted";
    assert_eq!(refusal(&ask(&rules, &[])), (Reason::OwnRestartRules, message.to_owned()));
    let always = with_field(json!({"restartPolicy": "Always"}));
    assert_eq!(endings(&ask(&always, &[])), [("side".to_owned(), Reason::EndsAsNative)]);

    let mut owned = marked(json!({}));
    owned["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "web", "controller": true}]);
    let message = "CloneSet web updates container side by its place among containers";
    assert_eq!(refusal(&ask(&owned, &[])), (Reason::OwnerNamesContainers, message.to_owned()));
    // What a set added is no container of the CloneSet.
    owned["metadata"]["annotations"] = json!({});
    assert_eq!(endings(&ask(&owned, &[logs(json!({}))])), [("logs".to_owned(), Reason::EndsAsNative)]);
}

#[test]
fn a_set_that_cannot_be_finished_follows_its_failure_policy() {
    let bare = |policy: &str| {
        let spec = json!({"containers": [with("logs", json!({"sidecar": true}))], "finish": {"mode": "Wrap"},
            "failurePolicy": policy});
        [set("logs", spec), set("mesh", json!({"containers": [image("proxy")]}))]
    };
    let own = job(json!({}), json!([work()]));
    let message = "sidecar logs has no command for the agent to run: kubectl patch scs logs --type=json -p \
                   '[{\"op\":\"add\",\"path\":\"/spec/containers/0/command\",\"value\":[\"ENTRYPOINT\"]}]'";
    let sets = bare("Fail");
    let decision = ask(&own, &sets);
    assert_eq!(decision.verdicts[0].message, message);
    let refused = [("logs", "refuse", Reason::CommandMissing), ("mesh", "inject", Reason::Injected)];
    assert_eq!((verdicts(&decision), decision.refusal.clone()), (refused.to_vec(), None));
    let sets = bare("Ignore");
    let decision = ask(&own, &sets);
    let ignored = [("logs", "ignore", Reason::CommandMissing), ("mesh", "inject", Reason::Injected)];
    assert_eq!(verdicts(&decision), ignored);
    assert_eq!(after(&decision)["spec"]["containers"], json!([injected("proxy", json!({})), work()]));
    assert_eq!(after(&decision)["spec"].get("volumes"), None);
}

#[test]
fn the_agent_runs_the_commands_of_all() {
    let mut own = marked(json!({"pillion.dev/finish-mode": "Wrap"}));
    own["spec"]["terminationGracePeriodSeconds"] = json!(5);
    own["spec"]["initContainers"] = json!([image("prepare")]);
    let decision = ask(&own, &[]);
    assert_eq!(endings(&decision), [("side".to_owned(), Reason::EndsByAgent)]);
    let pod = after(&decision);
    let mount = json!([{"name": "pillion-finish", "mountPath": "/pillion-finish"}]);
    let until = ["--sidecar=side", "--until=work", "--restart-policy=Never", "--grace-seconds=5"];
    let main = wrapped(&["--main=work"], &["/work", "--now"]);
    assert_eq!(
        pod["spec"],
        json!({
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 5,
            "containers": [
                joined(work(), json!({"command": main, "volumeMounts": mount})),
                joined(side(), json!({"command": wrapped(&until, &["/side"]), "volumeMounts": mount})),
            ],
            "initContainers": [image("prepare"), bring()],
            "volumes": [{"name": "pillion-finish", "emptyDir": {"sizeLimit": "16Mi"}}],
            "imagePullSecrets": [{"name": "agent-pull"}],
        })
    );
    let mut before = uninjected(decision.pod.as_ref().unwrap(), |_| None);
    before["spec"].as_object_mut().unwrap().remove("imagePullSecrets");
    assert_eq!(before["spec"], own["spec"]);
}

#[test]
fn a_set_chooses_its_mode_and_the_pod_wins() {
    let own = job(json!({}), json!([work()]));
    let sets = [logs(json!({"finish": {"mode": "Wrap"}}))];
    assert_eq!(endings(&ask(&own, &sets)), [("logs".to_owned(), Reason::EndsByAgent)]);
    let own = job(json!({"pillion.dev/finish-mode": "Native"}), json!([work()]));
    assert_eq!(endings(&ask(&own, &sets)), [("logs".to_owned(), Reason::EndsAsNative)]);
    // One of each in one pod: the agent is brought last.
    let own = job(json!({"pillion.dev/sidecars": "side"}), json!([work(), side()]));
    let decision = ask(&own, &sets);
    assert_eq!(
        endings(&decision),
        [("logs".to_owned(), Reason::EndsByAgent), ("side".to_owned(), Reason::EndsAsNative)]
    );
    let pod = after(&decision);
    let native = joined(side(), json!({"restartPolicy": "Always"}));
    assert_eq!(pod["spec"]["initContainers"], json!([native, bring()]));
}

#[test]
fn a_pod_that_never_ends_is_not_wrapped() {
    let mut own = marked(json!({"pillion.dev/finish-mode": "Wrap"}));
    for policy in [json!("Always"), Value::Null] {
        own["spec"]["restartPolicy"] = policy;
        let decision = ask_with(&own, &[], None);
        assert_eq!(endings(&decision), [("side".to_owned(), Reason::EndsNever)]);
        let pod = after(&decision);
        assert_eq!(pod["spec"], own["spec"]);
        assert_eq!(pod["metadata"]["annotations"]["pillion.dev/decision"]["finish"], json!({"side": ["PL216"]}));
    }
}

#[test]
fn a_container_without_a_command_is_watched_where_that_is_wanted() {
    let mains = json!([image("app"), work(), side()]);
    let wrap = json!({"pillion.dev/sidecars": "side", "pillion.dev/finish-mode": "Wrap"});
    let own = job(wrap.clone(), mains.clone());
    let message = "container app has no command, so the agent does not see it end: patch the pod's template with \
                   {\"spec\":{\"containers\":[{\"command\":[\"ENTRYPOINT\"],\"name\":\"app\"}]}}, or annotate the pod \
                   pillion.dev/finish-watch=pod";
    assert_eq!(refusal(&ask(&own, &[])), (Reason::CommandMissing, message.to_owned()));

    let own = job(joined(wrap, json!({"pillion.dev/finish-watch": "pod"})), mains);
    let decision = ask(&own, &[]);
    let pod = after(&decision);
    let until = ["--sidecar=side", "--until=work", "--watch-pod=app", "--restart-policy=Never", "--grace-seconds=30"];
    let reference = |field: &str| json!({"apiVersion": "v1", "fieldPath": field});
    assert_eq!(
        pod["spec"]["containers"][2],
        joined(
            side(),
            json!({
                "command": wrapped(&until, &["/side"]),
                "volumeMounts": [
                    {"name": "pillion-finish", "mountPath": "/pillion-finish"},
                    {"name": "pillion-finish-token", "mountPath": "/pillion-finish-token", "readOnly": true},
                ],
                "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": reference("metadata.name")}}],
            })
        )
    );
    assert_eq!(pod["spec"]["containers"][0], image("app"));
    assert_eq!(
        pod["spec"]["volumes"][1],
        json!({"name": "pillion-finish-token", "projected": {"sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": reference("metadata.namespace")}]}},
        ]}})
    );
    let mut before = uninjected(decision.pod.as_ref().unwrap(), |_| None);
    before["spec"].as_object_mut().unwrap().remove("imagePullSecrets");
    assert_eq!(before["spec"], own["spec"]);
}

#[test]
fn what_the_agent_cannot_do_is_refused_with_the_way_out() {
    let wrap = || marked(json!({"pillion.dev/finish-mode": "Wrap"}));
    let own = wrap();
    let message = "mode Wrap copies the agent into the pod, and the manager has no --agent-image";
    assert_eq!(refusal(&ask_with(&own, &[], None)), (Reason::AgentNotSet, message.to_owned()));
    let asked = |change: fn(&mut Value)| {
        let mut own = wrap();
        change(&mut own["spec"]);
        refusal(&ask(&own, &[]))
    };
    let clash = |text: &str| (Reason::FinishClash, text.to_owned());
    let no_command = "sidecar side has no command for the agent to run: patch the pod's template with \
                      {\"spec\":{\"containers\":[{\"command\":[\"ENTRYPOINT\"],\"name\":\"side\"}]}}";
    let bare = asked(|spec| spec["containers"][1] = image("side"));
    assert_eq!(bare, (Reason::CommandMissing, no_command.to_owned()));
    let rules = asked(|spec| spec["containers"][0]["restartPolicy"] = json!("Never"));
    let message = "container work has a restartPolicy of its own, mode Wrap knows only the pod's";
    assert_eq!(rules, (Reason::OwnRestartRules, message.to_owned()));
    let volume = asked(|spec| spec["volumes"] = json!([{"name": "pillion-finish", "hostPath": {"path": "/"}}]));
    assert_eq!(volume, clash("the pod has another volume pillion-finish"));
    let mount = asked(|spec| {
        spec["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/pillion-finish/"}]);
    });
    assert_eq!(mount, clash("container work has something mounted at /pillion-finish"));
    let named = asked(|spec| spec["initContainers"] = json!([image("pillion-agent")]));
    assert_eq!(named, clash("the pod has a container pillion-agent of its own"));
}

#[test]
fn a_container_that_comes_between_two_reviews_is_waited_for() {
    let own = marked(json!({"pillion.dev/finish-mode": "Wrap"}));
    let mut other = ask(&own, &[]).pod.unwrap();
    other["spec"]["containers"].as_array_mut().unwrap().push(with("late", json!({"command": ["/late"]})));
    let pod = after(&ask(&other, &[]));
    let until = ["--sidecar=side", "--until=work", "--until=late", "--restart-policy=Never", "--grace-seconds=30"];
    assert_eq!(pod["spec"]["containers"][1]["command"], wrapped(&until, &["/side"]));
    assert_eq!(pod["spec"]["containers"][2]["command"], wrapped(&["--main=late"], &["/late"]));
    assert_eq!(pod["spec"]["initContainers"], json!([bring()]));
}

#[test]
fn an_installation_that_observes_ends_nothing_and_refuses_nothing() {
    let own = marked(json!({"pillion.dev/finish-mode": "now"}));
    let sets = [set("logs", json!({"containers": [image("logs")]}))];
    let installation = Installation {
        mode: pillion_api::SetMode::Observe,
        finish: Some(Finishing::default()),
        ..Installation::default()
    };
    let decision = ask_in(&Namespace::named("shop"), &own, &sets, installation);
    assert_eq!(verdicts(&decision), [("logs", "observe", Reason::Observed)]);
    assert_eq!((decision.patch.len(), decision.is_refused()), (0, false));
}
