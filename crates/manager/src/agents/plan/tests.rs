use pillion_api::Reason;

use super::*;

const TEXT: &str = "
plugins:
- name: http_probe
  config:
    endpoints:
    - url: http://localhost:8080
      storageConfig:
        inKube:
          labelKey: example.com/state
          conditionType: example.com/Idle
          target: {group: game.kruise.io, version: v1alpha1, resource: gameservers}
          jsonPath: /spec/opsState
          markerPolicies:
          - {state: idle, value: None, annotations: {controller.kubernetes.io/pod-deletion-cost: '1'}}
- name: hot_update
  config:
    fileDir: /app
    loadPatchType: signal
    signal: {processName: app, signalName: SIGHUP}
    allowedSources: [https://files.example.com/]
    trigger: {configMap: wanted}
";

fn strings(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn seen(namespaces: &[&str], text: Option<&str>) -> Seen {
    let set = AgentSet { name: "game".to_owned(), configs: strings(&["c"]), namespaces: strings(namespaces) };
    Seen {
        own_namespace: "own".to_owned(),
        targets: vec!["game.kruise.io/v1alpha1/gameservers/spec/opsState".parse().unwrap()],
        sets: vec![set],
        configs: BTreeMap::from([("c".to_owned(), text.map(str::to_owned))]),
        ..Seen::default()
    }
}

/// The same after the plan was carried out.
fn done(mut seen: Seen, plan: &Plan) -> Seen {
    for write in &plan.writes {
        match write {
            Write::Apply { place, body, .. } if place.namespace == seen.own_namespace => {
                seen.policy_params = serde_json::from_value(body["data"].clone()).unwrap();
            }
            Write::Apply { place, body, .. } => {
                let stored = Stored { uid: format!("u-{}", place.name), body: body.clone() };
                seen.objects.insert(place.clone(), stored);
            }
            Write::Delete { place, .. } => {
                seen.objects.remove(place);
            }
        }
    }
    seen
}

/// `+Role a/pillion-agent-c`
fn shown(plan: &Plan) -> Vec<String> {
    let words = plan.writes.iter().map(|write| match write {
        Write::Apply { place, extra, .. } => {
            let extra = if extra.is_empty() { String::new() } else { format!(" -{}", extra.join(",")) };
            format!("+{:?} {}/{}{extra}", place.kind, place.namespace, place.name)
        }
        Write::Delete { place, uid } => format!("-{:?} {}/{} {uid}", place.kind, place.namespace, place.name),
    });
    words.collect()
}

#[test]
fn every_namespace_that_a_set_means_gets_its_four_objects_once() {
    let first = seen(&["a", "b"], Some(TEXT));
    let made = plan(&first);
    assert_eq!(
        shown(&made),
        [
            "+ConfigMap own/pillion-agent-policy-params",
            "+ConfigMap a/c",
            "+Account a/pillion-agent-c",
            "+Role a/pillion-agent-c",
            "+Binding a/pillion-agent-c",
            "+ConfigMap b/c",
            "+Account b/pillion-agent-c",
            "+Role b/pillion-agent-c",
            "+Binding b/pillion-agent-c",
        ]
    );
    let bodies: Vec<&Value> = made
        .writes
        .iter()
        .map(|write| match write {
            Write::Apply { body, .. } => body,
            Write::Delete { .. } => panic!("nothing is removed"),
        })
        .collect();
    assert_eq!(
        *bodies[0],
        json!({"data": {"c.labels": "example.com/state", "c.conditions": "example.com/Idle\npillion.dev/HotUpdate",
            "c.annotations": "controller.kubernetes.io/pod-deletion-cost\npillion.dev/hot-update-result",
            "c.values": "None", "c.target": "game.kruise.io/gameservers"}})
    );
    assert_eq!(*bodies[1], json!({"data": {"config.yaml": TEXT}}));
    assert_eq!(*bodies[2], json!({"automountServiceAccountToken": false}));
    assert_eq!(
        *bodies[3],
        json!({"rules": [
            {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},
            {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["wanted"], "verbs": ["get", "watch"]},
            {"apiGroups": ["game.kruise.io"], "resources": ["gameservers"], "verbs": ["patch"]},
        ]})
    );
    assert_eq!(
        *bodies[4],
        json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "pillion-agent-c"},
            "subjects": [{"kind": "ServiceAccount", "name": "pillion-agent-c", "namespace": "a"}]})
    );
    assert_eq!(plan(&done(first, &made)), Plan::default(), "the second time there is nothing to do");
}

#[test]
fn b14_two_configurations_in_one_namespace_stand_beside_each_other() {
    let mut two = seen(&["a"], Some(TEXT));
    two.sets.push(AgentSet { name: "chat".to_owned(), configs: strings(&["d"]), namespaces: strings(&["a"]) });
    two.configs.insert("d".to_owned(), Some("plugins:\n- name: pod_probe\n".to_owned()));
    let made = plan(&two);
    let objects = |config: &str| {
        ["ConfigMap a/", "Account a/pillion-agent-", "Role a/pillion-agent-", "Binding a/pillion-agent-"]
            .map(|place| format!("+{place}{config}"))
    };
    let expected =
        ["+ConfigMap own/pillion-agent-policy-params".to_owned()].into_iter().chain(objects("c")).chain(objects("d"));
    let (made_all, expected_all): (BTreeSet<_>, BTreeSet<_>) = (shown(&made).into_iter().collect(), expected.collect());
    assert_eq!(made_all, expected_all);
    let after = done(two, &made);
    let copy = |name: &str| {
        let place = Place { kind: Kind::ConfigMap, namespace: "a".to_owned(), name: name.to_owned() };
        after.objects[&place].body["data"]["config.yaml"].clone()
    };
    assert_eq!((copy("c"), copy("d")), (json!(TEXT), json!("plugins:\n- name: pod_probe\n")));
    assert_eq!(plan(&after), Plan::default());
}

#[test]
fn a_local_edit_is_overwritten_and_what_was_added_goes() {
    let first = seen(&["a"], Some(TEXT));
    let mut edited = done(first.clone(), &plan(&first));
    let copy = Place { kind: Kind::ConfigMap, namespace: "a".to_owned(), name: "c".to_owned() };
    edited.objects.get_mut(&copy).unwrap().body = json!({"data": {"config.yaml": TEXT, "more": "x"}});
    let role = Place { kind: Kind::Role, name: "pillion-agent-c".to_owned(), ..copy };
    edited.objects.get_mut(&role).unwrap().body = json!({"rules": []});
    assert_eq!(shown(&plan(&edited)), ["+ConfigMap a/c -more", "+Role a/pillion-agent-c"]);
}

#[test]
fn what_no_set_needs_any_more_is_removed_and_its_policy_parameters_with_it() {
    let first = seen(&["a", "b"], Some(TEXT));
    let all = done(first.clone(), &plan(&first));
    let mut fewer = all.clone();
    fewer.sets[0].namespaces = strings(&["b"]);
    let gone = [
        "-Binding a/pillion-agent-c u-pillion-agent-c",
        "-Role a/pillion-agent-c u-pillion-agent-c",
        "-Account a/pillion-agent-c u-pillion-agent-c",
        "-ConfigMap a/c u-c",
    ];
    assert_eq!(shown(&plan(&fewer)), gone);
    let mut none = all;
    none.sets.clear();
    let removed = plan(&none);
    let params = "+ConfigMap own/pillion-agent-policy-params -c.annotations,c.conditions,c.labels,c.target,c.values";
    assert_eq!(shown(&removed)[0], params);
    assert_eq!(removed.writes.len(), 9);
    assert_eq!(plan(&done(none, &removed)), Plan::default());
}

#[test]
fn a_configuration_that_cannot_be_given_changes_nothing() {
    let first = seen(&["a"], Some(TEXT));
    let good = done(first.clone(), &plan(&first));
    let elsewhere = &TEXT.replace("/spec/opsState", "/spec/state");
    for (text, reason, message) in [
        (
            None,
            Reason::AgentConfigMissing,
            "there is no ConfigMap c with label pillion.dev/agent-config=true and a configuration in it",
        ),
        (
            Some("plugins: 1"),
            Reason::AgentConfigInvalid,
            "configuration c: line 1, column 10: plugins: must be a list, and is a number: begin each of its items with a dash",
        ),
        (
            Some(elsewhere),
            Reason::AgentTargetNotAllowed,
            "configuration c writes gameservers.game.kruise.io of version v1alpha1 at /spec/state, which agent.targets does not list",
        ),
    ] {
        let mut bad = good.clone();
        bad.configs.insert("c".to_owned(), text.map(str::to_owned));
        // A namespace that comes meanwhile gets nothing, and one that has something keeps it.
        bad.sets[0].namespaces.insert("new".to_owned());
        let expected = Plan { writes: Vec::new(), refused: vec![("game".to_owned(), Refused::new(reason, message))] };
        assert_eq!(plan(&bad), expected);
    }
    let mut reserved = seen(&["a"], None);
    reserved.sets[0].configs = strings(&["pillion-agent-policy-params"]);
    reserved.configs = BTreeMap::from([("pillion-agent-policy-params".to_owned(), Some(TEXT.to_owned()))]);
    assert_eq!(plan(&reserved).refused[0].1.message, "a configuration cannot be called pillion-agent-policy-params");
    assert_eq!(shown(&plan(&reserved)), ["+ConfigMap own/pillion-agent-policy-params"], "parameters without a list");
}

#[test]
fn missing_policy_parameters_are_created_even_if_no_configuration_needs_any() {
    let none = Seen { own_namespace: "own".to_owned(), ..Seen::default() };
    let created = plan(&none);
    assert_eq!(shown(&created), ["+ConfigMap own/pillion-agent-policy-params"]);
    assert_eq!(plan(&done(none.clone(), &created)), Plan::default());
    // The chart ships the ConfigMap without data.
    assert_eq!(plan(&Seen { policy_params: Some(BTreeMap::new()), ..none }), Plan::default());
}

#[test]
fn a_label_of_ours_on_what_is_not_ours_removes_nothing() {
    let mut seen = seen(&[], Some(TEXT));
    seen.policy_params = Some(judge("c", Some(TEXT), &seen.targets).unwrap().policy_params("c"));
    let place =
        |kind, namespace: &str, name: &str| Place { kind, namespace: namespace.to_owned(), name: name.to_owned() };
    for place in [
        place(Kind::Account, "a", "default"),
        place(Kind::Role, "a", "admin"),
        place(Kind::Role, "own", "pillion-agent-controller"),
        place(Kind::ConfigMap, "kube-system", "c"),
    ] {
        seen.objects.insert(place, Stored::default());
    }
    assert_eq!(shown(&plan(&seen)), Vec::<String>::new());
}
