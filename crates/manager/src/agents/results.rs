//! What became of updates in every pod of a namespace, for people: a `ConfigMap` that nobody reads but they.

use std::collections::BTreeMap;

use pillion_agent_api::Outcome;
use serde_json::json;

use super::pods::AgentPod;

/// So many pods are listed; an object has an end.
const MAX_PODS: usize = 2_000;
/// A message is shortened to so many bytes: two thousand of them are far from what etcd takes.
const MAX_MESSAGE: usize = 200;
/// The key that says how many pods are not listed. No pod can be called so.
const MORE: &str = "_more";

/// The data of the `ConfigMap`: the result by pod. `None` where no agent has said anything.
pub(super) fn results<'a>(pods: impl IntoIterator<Item = (&'a str, &'a AgentPod)>) -> Option<BTreeMap<String, String>> {
    let mut data = BTreeMap::new();
    let mut more = 0_usize;
    for (name, pod) in pods {
        let Some(said) = pod.result.as_deref().and_then(shown) else { continue };
        if data.len() < MAX_PODS {
            data.insert(name.to_owned(), said);
        } else {
            more += 1;
        }
    }
    if more > 0 {
        data.insert(MORE.to_owned(), more.to_string());
    }
    (!data.is_empty()).then_some(data)
}

/// What an agent said, as far as it is one of the things agents say.
fn shown(result: &str) -> Option<String> {
    let mut outcome: Outcome = serde_json::from_str(result).ok()?;
    for text in [Some(&mut outcome.version), outcome.current.as_mut(), Some(&mut outcome.message)] {
        let Some(text) = text else { continue };
        text.truncate(text.floor_char_boundary(MAX_MESSAGE));
    }
    Some(json!(outcome).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(result: &str) -> AgentPod {
        AgentPod { result: Some(result.to_owned()), ..AgentPod::default() }
    }

    #[test]
    fn every_pod_that_said_something_is_listed() {
        let (done, silent, odd) = (pod(r#"{"version":"v2","state":"Done"}"#), AgentPod::default(), pod("<html>"));
        let data = results([("b", &done), ("a", &silent), ("c", &odd)]).unwrap();
        assert_eq!(data, BTreeMap::from([("b".to_owned(), r#"{"state":"Done","version":"v2"}"#.to_owned())]));
        assert_eq!(results([("a", &silent), ("c", &odd)]), None);
    }

    #[test]
    fn it_has_an_end_whatever_agents_say() {
        let long = json!({"version": "v".repeat(90_000), "state": "Failed", "message": "ä".repeat(90_000)}).to_string();
        let (names, pod): (Vec<String>, _) = ((0..2_500).map(|at| format!("pod-{at:04}")).collect(), pod(&long));
        let data = results(names.iter().map(|name| (name.as_str(), &pod))).unwrap();
        assert_eq!((data.len(), data["_more"].as_str()), (2_001, "500"));
        let bytes: usize = data.iter().map(|(key, value)| key.len() + value.len()).sum();
        assert!(bytes < 1_000_000, "{bytes}");
    }
}
