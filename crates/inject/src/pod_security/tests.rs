use proptest::prelude::*;
use serde_json::json;

use super::table::Table;
use super::*;

impl Table {
    fn pods(&self) -> impl Iterator<Item = Value> {
        self.cases.iter().map(|case| self.pod(case))
    }
}

fn printed(violations: &[Violation<'_>]) -> Vec<String> {
    violations.iter().map(ToString::to_string).collect()
}

#[test]
fn the_table_holds() {
    let table = Table::read();
    for case in &table.cases {
        let pod = table.pod(case);
        let violations = judge_pod(&pod);
        let judged = (level(&violations).to_string(), printed(&violations));
        assert_eq!(judged, (case.level.clone(), case.because.clone()), "{}", case.name);
    }
    assert_eq!(table.cases.len(), 127);
}

#[test]
fn an_addition_lowers_a_pod_to_its_own_level_and_no_further() {
    let table = Table::read();
    let pods: Vec<Value> = table.pods().collect();
    for pod in &pods {
        let before = level(&judge_pod(pod));
        for other in &pods {
            let container = &other["spec"]["containers"][0];
            let added = judge(&pod["spec"], [container], items(&other["spec"]["volumes"]));
            let mut after = pod.clone();
            after["spec"]["containers"].as_array_mut().unwrap().push(container.clone());
            let volumes: Vec<_> = [pod, other].into_iter().flat_map(|pod| items(&pod["spec"]["volumes"])).collect();
            after["spec"]["volumes"] = json!(volumes);
            assert_eq!(level(&judge_pod(&after)), before.min(level(&added)), "{after}");
        }
    }
}

#[test]
fn only_what_is_added_is_judged() {
    let pod = json!({"spec": {"hostNetwork": true, "securityContext": {"runAsNonRoot": true},
        "containers": [{"name": "app", "securityContext": {"privileged": true}}]}});
    let proxy = json!({"name": "proxy", "securityContext": {"allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"], "add": ["KILL"]}, "seccompProfile": {"type": "RuntimeDefault"}}});
    let data = json!({"name": "data", "nfs": {"server": "s", "path": "/"}});
    let violations = judge(&pod["spec"], [&proxy], [&data]);
    let seen: Vec<_> = violations.iter().map(|it| (it.allowed, it.part, it.field.as_ref())).collect();
    assert_eq!(
        seen,
        [
            (Level::Baseline, Part::Container("proxy"), "securityContext.capabilities.add[0]"),
            (Level::Baseline, Part::Volume("data"), "nfs"),
        ]
    );
    assert_eq!(printed(&judge_pod_fields(&pod["spec"])), ["pod: hostNetwork is true: remove it"]);
    let violations = judge_annotations([
        ("container.apparmor.security.beta.kubernetes.io/proxy", "unconfined"),
        ("container.apparmor.security.beta.kubernetes.io/app", ""),
    ]);
    let field = "annotations[container.apparmor.security.beta.kubernetes.io/proxy]";
    let way_out = "use runtime/default or localhost/<profile>, or remove it";
    assert_eq!(printed(&violations), [format!("pod: {field} is \"unconfined\": {way_out}")]);
}

#[test]
fn ephemeral_containers_are_containers() {
    let table = Table::read();
    let mut pod = table.good.clone();
    pod["spec"]["ephemeralContainers"] = json!([{"name": "debug", "securityContext": {"privileged": true,
        "allowPrivilegeEscalation": false, "runAsNonRoot": true, "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"}}}]);
    assert_eq!(printed(&judge_pod(&pod)), ["container debug: securityContext.privileged is true: set it to false"]);
}

#[test]
fn a_volume_of_an_unknown_type_is_not_restricted() {
    let volume = json!({"name": "new", "hologram": {}, "hostPath": null});
    let way_out = "use another type, such as emptyDir or persistentVolumeClaim";
    assert_eq!(printed(&judge(&Value::Null, [], [&volume])), [format!("volume new: hologram is set: {way_out}")]);
}

#[test]
fn values_of_a_wrong_type_are_forbidden_ones() {
    let context = json!({"privileged": "false", "capabilities": {"add": [1], "drop": "ALL"}, "procMount": 1,
        "windowsOptions": {"hostProcess": "no"}, "appArmorProfile": {}, "seccompProfile": "RuntimeDefault",
        "seLinuxOptions": {"type": 1, "user": 1, "role": false}, "runAsNonRoot": "true", "runAsUser": "1000",
        "allowPrivilegeEscalation": "false"});
    let container = json!({"securityContext": context, "ports": [{"hostPort": "0"}, 1],
        "livenessProbe": {"httpGet": {"host": 1}}});
    assert_eq!(
        printed(&judge(&json!({"os": "windows", "hostUsers": "false"}), [&container], [])),
        [
            r#"container : securityContext.privileged is "false": set it to false"#,
            "container : securityContext.capabilities.add[0] is 1: remove it",
            "container : securityContext.procMount is 1: use Default, or remove it",
            r#"container : securityContext.windowsOptions.hostProcess is "no": set it to false"#,
            "container : securityContext.appArmorProfile.type is not set: use RuntimeDefault or Localhost",
            "container : securityContext.seccompProfile.type is not set: use RuntimeDefault or Localhost",
            "container : securityContext.seLinuxOptions.type is 1: use container_t, container_init_t, container_kvm_t or \
             container_engine_t, or remove it",
            "container : securityContext.seLinuxOptions.user is 1: remove it",
            "container : securityContext.seLinuxOptions.role is false: remove it",
            r#"container : securityContext.runAsNonRoot is "true": set it to true"#,
            r#"container : securityContext.runAsUser is "1000": use another user, or remove it"#,
            r#"container : ports[0].hostPort is "0": remove it"#,
            "container : livenessProbe.httpGet.host is 1: remove it",
            r#"container : securityContext.allowPrivilegeEscalation is "false": set it to false"#,
            r#"container : securityContext.capabilities.drop is "ALL": add ALL"#,
        ]
    );
}

#[test]
fn levels_are_ordered_by_strictness() {
    assert!(Level::Privileged < Level::Baseline && Level::Baseline < Level::Restricted);
}

/// A pod of the table in which one value, anywhere, is another one.
fn odd_pod() -> impl Strategy<Value = Value> {
    let pods: Vec<Value> = Table::read().pods().collect();
    let odd = prop::sample::select(vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!(""),
        json!([]),
        json!([null]),
        json!([[[]]]),
        json!({}),
        json!({"name": {}}),
    ]);
    (prop::sample::select(pods), any::<prop::sample::Index>(), odd).prop_map(|(mut pod, place, odd)| {
        let places = pointers(&pod);
        *pod.pointer_mut(&places[place.index(places.len())]).unwrap() = odd;
        pod
    })
}

/// JSON pointers to every value in a value.
fn pointers(value: &Value) -> Vec<String> {
    let inside: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.replace('/', "~1"), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    let below = inside
        .into_iter()
        .flat_map(|(step, value)| pointers(value).into_iter().map(move |rest| format!("/{step}{rest}")));
    std::iter::once(String::new()).chain(below).collect()
}

proptest! {
    #[test]
    fn no_shape_is_too_odd(pod in odd_pod()) {
        for violation in judge_pod(&pod) {
            prop_assert!(violation.allowed < Level::Restricted);
            prop_assert!(violation.to_string().contains(violation.field.as_ref()));
        }
    }
}
