use pillion_pod::effective_requests;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::held;
use super::super::limit_range::LimitRanges;
use super::super::samples::{BOOSTS, SIDECARS, autoscaler, limits, pod, sizing};
use super::super::wanted::wanted;
use super::*;
use crate::policy::Autoscaler;

fn amount() -> BoxedStrategy<Option<i64>> {
    prop_oneof![Just(None), (1_i64..40).prop_map(Some), (1_i64..5000).prop_map(Some)].boxed()
}

fn listed() -> BoxedStrategy<Value> {
    (amount(), amount())
        .prop_map(|(cpu, memory)| {
            let mut list = json!({});
            if let Some(cpu) = cpu {
                list["cpu"] = format!("{cpu}m").into();
            }
            if let Some(memory) = memory {
                list["memory"] = memory.to_string().into();
            }
            list
        })
        .boxed()
}

/// Requests, and limits that are not below them.
fn resources() -> BoxedStrategy<Value> {
    (listed(), listed())
        .prop_map(|(requests, limits)| {
            let (requests, mut limits) = (
                ContainerResources::read(Some(&json!({"requests": requests}))).requests,
                ContainerResources::read(Some(&json!({"requests": limits}))).requests,
            );
            for (resource, limit) in limits.iter() {
                limits.set(resource, Some(limit.max(requests.get(resource).unwrap_or_default())));
            }
            ContainerResources { requests, limits }.to_json()
        })
        .boxed()
}

fn pods() -> BoxedStrategy<Value> {
    let list = || proptest::collection::vec((resources(), any::<bool>()), 0..4);
    (list(), list())
        .prop_map(|(main, init)| {
            let name = |prefix: &str, at: usize| format!("{prefix}{at}");
            let main = main
                .into_iter()
                .enumerate()
                .map(|(at, (resources, _))| json!({"name": name("c", at), "resources": resources}));
            let init = init.into_iter().enumerate().map(|(at, (resources, is_native))| {
            json!({"name": name("i", at), "resources": resources, "restartPolicy": is_native.then_some("Always")})
        });
            pod(&main.collect::<Vec<_>>().into(), &init.collect::<Vec<_>>().into())
        })
        .boxed()
}

fn autoscalers() -> BoxedStrategy<Autoscaler> {
    let policy = (listed(), listed(), any::<bool>(), 0..8_u8);
    let bounds = || (listed(), listed(), listed());
    let one = |name: &'static str| (Just(name), bounds(), any::<bool>());
    let all = (one("c0"), one("c1"), one("c2"), one("i0"), one("i1"), one("i2"));
    (all, policy, select(vec![json!(null), json!({"cpu": {"type": "Factor", "factor": 2}})]))
        .prop_map(|((a, b, c, d, e, f), (min, max, is_requests_only, bounded), boost)| {
            let given = [a, b, c, d, e, f].into_iter().filter(|(_, _, is_given)| *is_given);
            let given = given.map(|(name, (target, lower, upper), _)| {
 json!({"name": name, "target": target, "lowerBound": lower, "upperBound": upper})
});
            let mut policy = json!({"containerName": "*"});
            if bounded & 1 == 1 {
                policy["minAllowed"] = min;
            }
            if bounded & 2 == 2 {
                policy["maxAllowed"] = max;
            }
            if is_requests_only {
                policy["controlledValues"] = "RequestsOnly".into();
            }
            let mut spec = json!({"resourcePolicy": {"containerPolicies": [policy]}});
            if !boost.is_null() {
                spec["startupBoost"] = boost;
            }
            autoscaler(&spec, &given.collect::<Vec<_>>().into())
        })
        .boxed()
}

fn ranges() -> BoxedStrategy<LimitRanges> {
    (listed(), listed(), listed(), listed(), listed())
        .prop_map(|(min, max, default, pod_min, pod_max)| {
            let limits = json!([
                {"type": "Container", "min": min, "max": max, "default": default},
                {"type": "Pod", "min": pod_min, "max": pod_max},
            ]);
            LimitRanges::read([&json!({"metadata": {"name": "a"}, "spec": {"limits": limits}})])
        })
        .boxed()
}

fn injected() -> BTreeSet<String> {
    ["c1", "i1"].map(str::to_owned).into()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sizing_a_sized_pod_changes_nothing(pod in pods(), own in autoscalers(), ranges in ranges(), boosts: bool) {
        let sizing = sizing(&own, &ranges, if boosts { BOOSTS } else { SIDECARS });
        let once = admit(pod.clone(), &sizing, Which::All).pod;
        prop_assert_eq!(admit(once, &sizing, Which::All).patch, vec![]);
        let injected = injected();
        let two = |pod: Value| {
            let first = admit(pod, &sizing, Which::Own(&injected));
            let second = admit(first.pod, &sizing, Which::Injected(&injected));
            ([first.patch, second.patch].concat(), second.pod)
        };
        let (_, once) = two(pod);
        prop_assert_eq!(two(once).0, vec![]);
    }

    #[test]
    fn the_patch_makes_the_pod_and_only_of_what_is_sized(pod in pods(), own in autoscalers(), ranges in ranges()) {
        let sizing = sizing(&own, &ranges, SIDECARS);
        let after = admit(pod.clone(), &sizing, Which::All);
        for operation in &after.patch {
            let path = match operation {
                Operation::Add { path, .. } | Operation::Replace { path, .. } | Operation::Remove { path } => path,
            };
            let is_ours = path.starts_with("/metadata/annotations") || path.contains("/resources");
            prop_assert!(is_ours, "{}", path);
        }
        for (before, after) in pod["spec"]["initContainers"].as_array().unwrap().iter().zip(after.pod["spec"]["initContainers"].as_array().unwrap()) {
            prop_assert!(before["restartPolicy"] == "Always" || before == after);
        }
        if qos_class(&pod).unwrap() == QosClass::Guaranteed {
            prop_assert_eq!(qos_class(&after.pod).unwrap(), QosClass::Guaranteed);
        }
    }

    #[test]
    fn requests_are_within_the_policy(pod in pods(), own in autoscalers()) {
        let none = LimitRanges::default();
        let sizing = sizing(&own, &none, SIDECARS);
        let policy = own.policy("c0");
        for container in wanted(&pod, &sizing).unwrap().containers {
            for (resource, request) in container.to.requests.iter() {
                let most = policy.max.get(resource);
                let least = policy.min.get(resource).filter(|least| most.is_none_or(|most| most >= *least));
                let limit = container.has.limits.get(resource).filter(|_| policy.requests_only);
                prop_assert!(most.is_none_or(|most| request <= most));
                prop_assert!(least.is_none_or(|least| request >= least) || limit.is_some_and(|limit| request == limit));
                prop_assert!(limit.is_none_or(|limit| request <= limit));
            }
        }
    }

    /// Where the pod was within the maximum, and no policy wins over it.
    #[test]
    fn the_pod_is_within_the_limit_range_of_pods(pod in pods(), own in autoscalers(), max in 1000_i64..20_000) {
        let mut own = own;
        for (_, policy) in &mut own.containers {
            policy.min = Amounts::default();
        }
        let ranges = limits("Pod", &json!({"max": {"cpu": format!("{max}m")}}));
        let of_limits = |pod: &Value| {
            let mut held = held::read(pod).unwrap();
            for own in &mut held {
                own.has.requests = own.has.limits;
            }
            effective_requests(&held::skeleton(&held)).unwrap().get("cpu").map_or(0, |own| own.milli_value())
        };
        let before = of_limits(&pod);
        prop_assume!(before <= i128::from(max));
        let after = admit(pod, &sizing(&own, &ranges, SIDECARS), Which::All).pod;
        prop_assert!(of_limits(&after) <= i128::from(max), "{} became {}", before, of_limits(&after));
    }
}
