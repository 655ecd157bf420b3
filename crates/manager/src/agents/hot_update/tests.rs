use proptest::prelude::*;

use super::*;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

fn spec(max_in_flight: Option<&IntOrString>) -> HotUpdateSpec {
    serde_json::from_value(
        serde_json::json!({"workload": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "version": "v2", "url": "https://files.example/a", "sha256": "0".repeat(64), "maxInFlight": max_in_flight}),
    )
    .unwrap()
}

fn pod(wanted: Option<&str>, result: Option<&str>) -> AgentPod {
    AgentPod { wanted: wanted.map(str::to_owned), result: result.map(str::to_owned), ..AgentPod::default() }
}

fn result(version: &str, state: &str) -> String {
    format!(r#"{{"version":"{version}","state":"{state}","message":"no space"}}"#)
}

fn pods(pods: &[AgentPod]) -> Vec<(String, &AgentPod)> {
    pods.iter().enumerate().map(|(at, pod)| (format!("web-{at}"), pod)).collect()
}

fn next(max_in_flight: Option<&IntOrString>, all: &[AgentPod]) -> Step {
    let named = pods(all);
    step(&spec(max_in_flight), "w", named.iter().map(|(name, pod)| (name.as_str(), *pod)))
}

fn said(step: &Step) -> [String; 2] {
    let status = step.progress.status(3, None, Timestamp::UNIX_EPOCH);
    let conditions = status.conditions.unwrap();
    [0, 1].map(|at| {
        let condition: &Condition = &conditions[at];
        format!("{}={} {}: {}", condition.type_, condition.status, condition.reason, condition.message)
    })
}

#[test]
fn a_few_are_told_at_a_time_and_the_next_when_they_are_done() {
    let untold = || pod(None, None);
    let old = || pod(Some("older"), Some(&result("v1", "Done")));
    assert_eq!(next(None, &vec![untold(); 8]).tell, ["web-0", "web-1"]);
    assert_eq!(next(None, &[old()]).tell, ["web-0"], "at least one");
    let told = pod(Some("w"), None);
    // What an agent said of an earlier version is not said of this one.
    let earlier = pod(Some("w"), Some(&result("v1", "Done")));
    let working = pod(Some("w"), Some(&result("v2", "Working")));
    let done = pod(Some("w"), Some(&result("v2", "Done")));
    let in_flight = next(Some(&IntOrString::Int(3)), &[told, earlier, working, old(), untold()]);
    assert_eq!(in_flight.tell, Vec::<String>::new());
    assert_eq!(
        said(&in_flight)[0],
        "Ready=False HotUpdateProgressing: 0 of 5 pods have the version; at it: web-0, web-1, web-2"
    );
    let more = next(Some(&IntOrString::String("50%".to_owned())), &[done.clone(), done.clone(), old(), untold()]);
    assert_eq!(more.tell, ["web-2", "web-3"]);
    let all = next(None, &[done.clone(), done]);
    assert_eq!((all.tell.len(), said(&all)[0].as_str()), (0, "Ready=True HotUpdateDone: 2 of 2 pods have the version"));
}

#[test]
fn one_that_failed_stops_the_rest_and_is_named() {
    let failed = pod(Some("w"), Some(&result("v2", "Failed")));
    let step = next(Some(&IntOrString::Int(5)), &[pod(None, None), failed.clone(), failed]);
    assert_eq!(step.tell, Vec::<String>::new());
    let words = "PL513: pod web-1 failed, as 1 more: no space: ";
    assert!(said(&step)[0].starts_with(&format!("Ready=False HotUpdateFailed: {words}")), "{}", said(&step)[0]);
    assert!(said(&step)[1].starts_with(&format!("Stalled=True HotUpdateFailed: {words}")), "{}", said(&step)[1]);
    let status = step.progress.status(3, None, Timestamp::UNIX_EPOCH);
    let counts = (status.pods, status.done, status.failed, status.waiting, status.observed_generation);
    assert_eq!(counts, (Some(3), Some(0), Some(2), Some(1), Some(3)));
}

#[test]
fn pods_on_their_way_out_do_not_count() {
    let leaving = AgentPod { is_deleting: true, ..pod(Some("w"), Some(&result("v2", "Failed"))) };
    let step = next(None, &[leaving]);
    assert_eq!(
        said(&step)[0],
        format!("Ready=False HotUpdateNoPods: PL514: there is no pod to tell: {}", Reason::HotUpdateNoPods.cure())
    );
}

#[test]
fn a_condition_keeps_its_time_while_its_status_is_the_same() {
    let at = |second| Timestamp::from_second(second).unwrap();
    let first = next(None, &[pod(None, None)]).progress.status(1, None, at(1));
    let again = next(None, &[pod(Some("w"), None)]).progress.status(1, Some(&first), at(2));
    let done = next(None, &[pod(Some("w"), Some(&result("v2", "Done")))]).progress.status(1, Some(&again), at(3));
    let times = |status: &HotUpdateStatus| -> Vec<i64> {
        status.conditions.iter().flatten().map(|it| it.last_transition_time.0.as_second()).collect()
    };
    assert_eq!([times(&first), times(&again), times(&done)], [[1, 1], [1, 1], [3, 1]].map(Vec::from));
}

proptest! {
    /// However pods stand: never more at it than may be, none told twice, none at all after a failure, and never stuck.
    #[test]
    fn never_more_are_at_it_than_may_be(stages in prop::collection::vec(0_u8..5, 0..40), most in 1_i32..10) {
        let all: Vec<AgentPod> = stages.iter().map(|stage| match stage {
            0 => pod(None, None),
            1 => pod(Some("w"), None),
            2 => pod(Some("w"), Some(&result("v2", "Done"))),
            3 => pod(Some("w"), Some("nonsense")),
            _ => pod(Some("w"), Some(&result("v2", "Failed"))),
        }).collect();
        let count = |wanted: &[u8]| stages.iter().filter(|stage| wanted.contains(stage)).count();
        let step = next(Some(&IntOrString::Int(most)), &all);
        let most = usize::try_from(most).unwrap();
        prop_assert!(step.tell.iter().all(|name| stages[name["web-".len()..].parse::<usize>().unwrap()] == 0));
        if count(&[4]) > 0 {
            prop_assert!(step.tell.is_empty());
        } else {
            let expected = count(&[0]).min(most.saturating_sub(count(&[1, 3])));
            prop_assert_eq!(step.tell.len(), expected);
        }
    }
}
