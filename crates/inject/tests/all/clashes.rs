//! Two things of one name: nothing of the pod is ever overwritten, and no two sets give it different things.

use pillion_api::{Meaning, Reason};
use pillion_inject::Decision;
use serde_json::{Value, json};

use crate::asking::{
    after, applied, ask, image, injected, joined, metadata, one_app, plain_set, pod, refusal, set, verdicts, with,
};

/// A set with one container of its own name, and fields.
fn with_fields(name: &str, fields: Value) -> Meaning {
    set(name, joined(json!({"containers": [image(name)]}), fields))
}

/// A set whose container mounts this volume of the set.
fn mounting(name: &str, volume: &Value) -> Meaning {
    let mounts = json!({"volumeMounts": [{"name": volume["name"], "mountPath": "/in"}]});
    set(name, json!({"containers": [with(name, mounts)], "volumes": [volume]}))
}

/// Asks with sets of the policy Ignore, so that the others show.
fn ask_lenient<'a>(pod: &'a Value, sets: &'a mut [Meaning]) -> Decision<'a> {
    for set in sets.iter_mut() {
        set.failure_policy = pillion_api::FailurePolicy::Ignore;
    }
    ask(pod, sets)
}

/// The first set is applied and the second is not, for this.
fn second_clashes(mut sets: [Meaning; 2], pod: &Value, message: &str) {
    let decision = ask_lenient(pod, &mut sets);
    let expected = [("a", "inject", Reason::Injected), ("b", "ignore", Reason::SetsClash)];
    assert_eq!(verdicts(&decision), expected);
    assert_eq!(decision.verdicts[1].message, message);
}

#[test]
fn containers_of_two_sets() {
    let init = set("b", json!({"initContainers": [image("proxy")]}));
    for second in [plain_set("b", "proxy"), init] {
        second_clashes([plain_set("a", "proxy"), second], &one_app(), "set a adds container proxy");
    }
}

#[test]
fn a_set_that_cannot_be_applied_leaves_its_names_to_the_next() {
    let first = set("a", json!({"containers": [image("proxy"), image("app")]}));
    let (pod, mut sets) = (one_app(), [first, plain_set("b", "proxy")]);
    let decision = ask_lenient(&pod, &mut sets);
    let expected = [("a", "ignore", Reason::ContainerClash), ("b", "inject", Reason::Injected)];
    assert_eq!(verdicts(&decision), expected);
    let record = json!({
        "a": {"code": "PL306", "why": "the pod has a container app of its own"}, "b": {"code": "PL201"},
    });
    let spec = json!({"containers": [injected("proxy", json!({})), image("app")]});
    assert_eq!(after(&decision), json!({"metadata": metadata("b", "proxy", record), "spec": spec}));
}

#[test]
fn a_volume_of_the_pod_is_used_only_if_it_is_the_same() {
    let with_volume = |volume: &Value| pod(json!({"containers": [image("app")], "volumes": [volume]}));
    let clash = (Reason::VolumeClash, "the pod has another volume data".to_owned());
    for (wanted, same, others) in [
        (
            json!({"name": "data", "emptyDir": {}}),
            vec![json!({"name": "data"}), json!({"name": "data", "emptyDir": {"medium": ""}})],
            vec![
                json!({"name": "data", "emptyDir": {"medium": "Memory"}}),
                json!({"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}),
                json!({"name": "data", "hostPath": {"path": "/"}}),
            ],
        ),
        (
            json!({"name": "data", "emptyDir": {"sizeLimit": "1024Mi", "medium": "Memory"}}),
            vec![json!({"name": "data", "emptyDir": {"sizeLimit": "1Gi", "medium": "Memory"}})],
            vec![json!({"name": "data", "emptyDir": {}}), json!({"name": "data", "emptyDir": {"sizeLimit": "1Gi"}})],
        ),
        (
            json!({"name": "data", "configMap": {"name": "c"}}),
            vec![json!({"name": "data", "configMap": {"name": "c", "defaultMode": 420}})],
            vec![
                json!({"name": "data", "configMap": {"name": "d"}}),
                json!({"name": "data", "configMap": {"name": "c", "defaultMode": 256}}),
                json!({"name": "data", "configMap": {"name": "c", "items": [{"key": "k", "path": "other"}]}}),
                json!({"name": "data", "configMap": {"name": "c", "optional": true}}),
                json!({"name": "data", "secret": {"secretName": "c"}}),
            ],
        ),
        (
            json!({"name": "data", "hostPath": {"path": "/var/log"}}),
            vec![json!({"name": "data", "hostPath": {"path": "/var/log", "type": ""}})],
            vec![
                json!({"name": "data", "hostPath": {"path": "/var/log", "type": "DirectoryOrCreate"}}),
                json!({"name": "data", "hostPath": {"path": "/var"}}),
            ],
        ),
        (
            json!({"name": "data", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}),
            vec![json!({"name": "data", "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}]}})],
            vec![
                json!({"name": "data", "projected": {"sources": [
                    {"serviceAccountToken": {"path": "t", "audience": "vault"}}]}}),
                json!({"name": "data", "projected": {"sources": [
                    {"serviceAccountToken": {"path": "t"}}, {"secret": {"name": "s"}}]}}),
            ],
        ),
        (
            json!({"name": "data", "downwardAPI": {"items": [
                {"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}},
                {"path": "c", "resourceFieldRef": {"resource": "limits.cpu", "divisor": "0.001"}}]}}),
            vec![json!({"name": "data", "downwardAPI": {"defaultMode": 420, "items": [
                {"path": "l", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels"}},
                {"path": "c", "resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}]}})],
            vec![json!({"name": "data", "downwardAPI": {"items": [
                {"path": "l", "fieldRef": {"fieldPath": "metadata.annotations"}}]}})],
        ),
    ] {
        let sets = [mounting("reader", &wanted)];
        for same in [vec![wanted.clone()], same].concat() {
            let pod = with_volume(&same);
            let decision = ask(&pod, &sets);
            assert_eq!(verdicts(&decision), [("reader", "inject", Reason::Injected)], "{wanted} {same}");
            assert_eq!(after(&decision)["spec"]["volumes"], json!([same]));
        }
        for other in others {
            let pod = with_volume(&other);
            assert_eq!(refusal(&ask(&pod, &sets)), clash, "{wanted} {other}");
        }
    }
}

#[test]
fn volumes_of_two_sets() {
    let config = |name: &str| json!({"name": "shared", "configMap": {"name": name}});
    let sets = [mounting("a", &config("one")), mounting("b", &config("two"))];
    second_clashes(sets, &one_app(), "set a adds another volume shared");
    // One volume that two sets write in the same way is there once.
    let (pod, sets) = (one_app(), [mounting("a", &config("one")), mounting("b", &config("one"))]);
    assert_eq!(after(&ask(&pod, &sets))["spec"]["volumes"], json!([config("one")]));
    let spelt = json!({"name": "shared", "configMap": {"name": "one", "defaultMode": 420}});
    let sets = [mounting("a", &config("one")), mounting("b", &spelt)];
    assert_eq!(after(&ask(&pod, &sets))["spec"]["volumes"], json!([config("one")]));
}

#[test]
fn a_volume_that_a_set_has_but_does_not_mount_is_neither_added_nor_in_the_way() {
    let config = |name: &str| json!({"name": "shared", "configMap": {"name": name}});
    let idle = with_fields("a", json!({"volumes": [config("one")]}));
    let (pod, sets) = (one_app(), [idle.clone(), mounting("b", &config("one"))]);
    assert_eq!(after(&ask(&pod, &sets))["spec"]["volumes"], json!([config("one")]));
    let sets = [idle.clone(), mounting("b", &config("two"))];
    assert_eq!(after(&ask(&pod, &sets))["spec"]["volumes"], json!([config("two")]));
    let sets = [idle];
    let own = crate::asking::pod(json!({"containers": [image("app")], "volumes": [config("two")]}));
    assert_eq!(after(&ask(&own, &sets))["spec"]["volumes"], json!([config("two")]));
}

#[test]
fn a_volume_that_a_sidecar_mounts_must_be_somewhere() {
    let foreign = |name: &str| {
        let mounts = json!({"volumeMounts": [{"name": "data", "mountPath": "/data"}]});
        set(name, json!({"containers": [with(name, mounts)]}))
    };
    let sets = [foreign("reader")];
    let why = "container reader mounts volume data, which neither the set nor the pod has".to_owned();
    assert_eq!(refusal(&ask(&one_app(), &sets)), (Reason::VolumeMissing, why.clone()));
    let devices = json!({"volumeDevices": [{"name": "data", "devicePath": "/dev/data"}]});
    let sets = [set("reader", json!({"initContainers": [with("reader", devices)]}))];
    assert_eq!(refusal(&ask(&one_app(), &sets)), (Reason::VolumeMissing, why));

    let volume = json!({"name": "data", "emptyDir": {}});
    let (own, sets) = (pod(json!({"containers": [image("app")], "volumes": [volume]})), [foreign("reader")]);
    let container = injected("reader", json!({"volumeMounts": [{"name": "data", "mountPath": "/data"}]}));
    let spec = json!({"containers": [container, image("app")], "volumes": [volume]});
    assert_eq!(after(&ask(&own, &sets)), applied("reader", "reader", spec));

    // A set may use what a set before it brings, and not what a later one does: also when the pod is reviewed again.
    let (pod, mut sets) = (one_app(), [foreign("a"), mounting("m", &volume), foreign("z")]);
    let decision = ask_lenient(&pod, &mut sets);
    let expected =
        [("a", "ignore", Reason::VolumeMissing), ("m", "inject", Reason::Injected), ("z", "inject", Reason::Injected)];
    assert_eq!(verdicts(&decision), expected);
}

#[test]
fn a_label_of_the_pod() {
    let sets = [with_fields("a", json!({"labels": {"tier": "front"}}))];
    let labelled = |tier: &str| {
        let mut pod = one_app();
        pod["metadata"]["labels"]["tier"] = json!(tier);
        pod
    };
    let message = "the pod has label tier=back, the set wants front".to_owned();
    assert_eq!(refusal(&ask(&labelled("back"), &sets)), (Reason::LabelClash, message));
    assert_eq!(after(&ask(&labelled("front"), &sets))["metadata"]["labels"]["tier"], "front");
}

#[test]
fn labels_of_two_sets() {
    let tier = |name: &str, tier: &str| with_fields(name, json!({"labels": {"tier": tier}}));
    second_clashes([tier("a", "front"), tier("b", "back")], &one_app(), "set a adds label tier=front");
    let (pod, sets) = (one_app(), [tier("a", "front"), tier("b", "front")]);
    let labels = json!({"app": "web", "tier": "front", "pillion.dev/injected": "true"});
    assert_eq!(after(&ask(&pod, &sets))["metadata"]["labels"], labels);
}

#[test]
fn annotations_of_two_sets() {
    let patch = |name: &str, policy: &str, value: &str| {
        with_fields(name, json!({"patchPodMetadata": [{"annotations": {"k": value}, "patchPolicy": policy}]}))
    };
    let (one, two) = (r#"{"a":1}"#, r#"{"b":2}"#);
    for (first, second) in
        [("Overwrite", "Overwrite"), ("Overwrite", "MergePatchJson"), ("MergePatchJson", "Overwrite")]
    {
        let sets = [patch("a", first, one), patch("b", second, two)];
        second_clashes(sets, &one_app(), "set a adds another annotation k");
    }
    // The same said twice is no clash, and neither is what gives way or adds.
    for (first, second, value, result) in [
        ("Overwrite", "Overwrite", one, one),
        ("Retain", "Retain", two, one),
        ("Retain", "Overwrite", two, two),
        ("Overwrite", "Retain", two, one),
        ("MergePatchJson", "MergePatchJson", two, r#"{"a":1,"b":2}"#),
        ("Retain", "MergePatchJson", two, r#"{"a":1,"b":2}"#),
    ] {
        let (pod, sets) = (one_app(), [patch("a", first, one), patch("b", second, value)]);
        let decision = ask(&pod, &sets);
        let expected = [("a", "inject", Reason::Injected), ("b", "inject", Reason::Injected)];
        assert_eq!(verdicts(&decision), expected, "{first} {second}");
        assert_eq!(after(&decision)["metadata"]["annotations"]["k"], result, "{first} {second}");
    }
}

#[test]
fn an_annotation_that_could_not_be_merged_stays_so_when_a_later_set_has_replaced_it() {
    let patch = |name: &str, policy: &str| {
        let patch = json!([{"annotations": {"k": r#"{"a":1}"#}, "patchPolicy": policy}]);
        with_fields(name, json!({"patchPodMetadata": patch}))
    };
    let mut pod = one_app();
    pod["metadata"]["annotations"] = json!({"k": "no JSON"});
    let mut sets = [patch("a", "MergePatchJson"), patch("b", "Overwrite")];
    let decision = ask_lenient(&pod, &mut sets);
    let expected = [("a", "ignore", Reason::MergeNotJson), ("b", "inject", Reason::Injected)];
    assert_eq!(verdicts(&decision), expected);
    assert_eq!(after(&decision)["metadata"]["annotations"]["k"], r#"{"a":1}"#);
}

#[test]
fn service_accounts_of_two_sets() {
    let account = |name: &str, account: &str| with_fields(name, json!({"serviceAccountName": account}));
    second_clashes([account("a", "mesh"), account("b", "logs")], &one_app(), "set a adds service account mesh");
    let (pod, sets) = (one_app(), [account("a", "mesh"), account("b", "mesh")]);
    assert_eq!(after(&ask(&pod, &sets))["spec"]["serviceAccountName"], "mesh");
}

#[test]
fn process_namespaces() {
    let sharing = |name: &str, share: bool| with_fields(name, json!({"shareProcessNamespace": share}));
    second_clashes([sharing("a", true), sharing("b", false)], &one_app(), "set a adds shareProcessNamespace true");
    let (pod, sets) = (one_app(), [sharing("a", true), sharing("b", true)]);
    assert_eq!(after(&ask(&pod, &sets))["spec"]["shareProcessNamespace"], true);

    let with_field = |field: &str, value: bool| crate::asking::pod(json!({"containers": [image("app")], field: value}));
    let refused = |pod: &Value, share: bool| refusal(&ask(pod, &[sharing("a", share)]));
    let reason = Reason::ProcessNamespaceClash;
    let own = |own: bool, wanted: bool| format!("the pod has shareProcessNamespace: {own}, the set wants {wanted}");
    assert_eq!(refused(&with_field("shareProcessNamespace", false), true), (reason, own(false, true)));
    assert_eq!(refused(&with_field("shareProcessNamespace", true), false), (reason, own(true, false)));
    let host = "the pod has hostPID: true, which excludes shareProcessNamespace".to_owned();
    assert_eq!(refused(&with_field("hostPID", true), true), (reason, host));
    let sets = [sharing("a", false)];
    assert_eq!(after(&ask(&with_field("hostPID", true), &sets))["spec"]["shareProcessNamespace"], false);
}

#[test]
fn a_sidecar_that_another_set_put_there_before() {
    let (pod, first, second) = (one_app(), [plain_set("z", "proxy")], [plain_set("a", "proxy")]);
    let earlier = ask(&pod, &first).pod.unwrap();
    let message = "the pod has a container proxy that was injected, but not by this set".to_owned();
    assert_eq!(refusal(&ask(&earlier, &second)), (Reason::ContainerClash, message));
    // Where the other set is asked as well it is named, though its name comes later.
    let both = [plain_set("a", "proxy"), plain_set("z", "proxy")];
    let decision = ask(&earlier, &both);
    let expected = [("a", "refuse", Reason::SetsClash), ("z", "keep", Reason::AlreadyInjected)];
    assert_eq!(verdicts(&decision), expected);
    assert_eq!(decision.verdicts[0].message, "set z adds container proxy");
}
