//! The `VerticalPodAutoscaler`s that are ours: by the recommender they name.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::core::DeserializeGuard;
use kube::{Api, Client};
use pillion_api::{Problem, Reason, VerticalPodAutoscaler, VerticalPodAutoscalerStatus};
use pillion_rightsize::{Autoscaler, review};
use pillion_runtime::watch::{Freshness, Selection, Store, WatchMetrics, watch};

use crate::sizing_settings::SizingSettings;

/// An object that is ours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Claimed {
    /// Its uid: another object may have had its name.
    pub(crate) uid: String,
    /// Its generation.
    pub(crate) generation: i64,
    /// What it means; else why it cannot be used.
    pub(crate) meaning: Result<Autoscaler, String>,
    /// What is wrong with it, or has no effect, though it can be used.
    pub(crate) problems: Vec<Problem>,
    /// Its status, as it is stored.
    pub(crate) status: Option<VerticalPodAutoscalerStatus>,
}

/// Watches the objects that are ours while the future runs.
pub(crate) fn watch_autoscalers(
    client: &Client,
    settings: &SizingSettings,
    freshness: Freshness,
    metrics: &WatchMetrics,
) -> (Store<Arc<Claimed>>, BoxFuture<'static, ()>) {
    // One object that cannot be read must not hide the others.
    let api = Api::<DeserializeGuard<VerticalPodAutoscaler>>::all(client.clone());
    let selection = Selection { freshness, ..Selection::default() };
    let (name, all) = (settings.recommender_name.clone(), settings.claim_all);
    let (store, driver) =
        watch("autoscalers", api, selection, metrics, move |object: DeserializeGuard<VerticalPodAutoscaler>| {
            claimed(object.0.ok()?, &name, all).map(Arc::new)
        });
    (store, driver.boxed())
}

/// The namespaces with an object of ours.
pub(crate) fn namespaces(autoscalers: &Store<Arc<Claimed>>) -> BTreeSet<Box<str>> {
    autoscalers.read(|all| all.iter().map(|(key, _)| key.namespace.clone()).collect())
}

fn claimed(object: VerticalPodAutoscaler, name: &str, all: bool) -> Option<Claimed> {
    let meaning = Autoscaler::read(&object);
    let is_ours = match &meaning {
        Ok(meaning) => meaning.is_claimed(name, all),
        Err(_) => all || object.spec.recommenders.iter().flatten().next().is_some_and(|own| own.name == name),
    };
    if !is_ours {
        return None;
    }
    let mut problems = review(&object);
    problems.retain(|problem| problem.reason != Reason::AutoscalerModeDeprecated);
    Some(Claimed {
        uid: object.metadata.uid.unwrap_or_default(),
        generation: object.metadata.generation.unwrap_or_default(),
        meaning,
        problems,
        status: object.status,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object(recommenders: &Value, mode: &str) -> VerticalPodAutoscaler {
        serde_json::from_value(json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u-1", "generation": 3},
            "spec": {"targetRef": {"kind": "Deployment", "name": "web"}, "recommenders": recommenders,
                "updatePolicy": {"updateMode": mode}}}))
        .unwrap()
    }

    #[test]
    fn objects_are_ours_by_name_also_where_they_cannot_be_used() {
        let ours = json!([{"name": "pillion"}]);
        let of = |recommenders: &Value, mode, all| claimed(object(recommenders, mode), "pillion", all);
        let claimed = of(&ours, "Off", false).unwrap();
        assert_eq!((claimed.uid.as_str(), claimed.generation, claimed.meaning.is_ok()), ("u-1", 3, true));
        assert!(of(&ours, "Sometimes", false).unwrap().meaning.is_err());
        assert_eq!(claimed.problems, Vec::new());
        assert_eq!(of(&Value::Null, "Off", false), None);
        assert_eq!(of(&Value::Null, "Sometimes", false), None);
        assert!(of(&Value::Null, "Sometimes", true).is_some());
    }

    #[test]
    fn what_has_no_effect_is_kept_and_what_is_only_deprecated_is_not() {
        let mut object = object(&json!([{"name": "pillion"}]), "Auto");
        let policy = object.spec.update_policy.as_mut().unwrap();
        policy.evict_after_oom_seconds = Some(60);
        let claimed = claimed(object, "pillion", false).unwrap();
        let problems: Vec<String> = claimed.problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "spec.updatePolicy.evictAfterOOMSeconds: PL602: this field has no effect: it is not supported for one object: \
              use the flag --evict-after-oom-threshold"
            ]
        );
        assert!(claimed.meaning.is_ok());
    }
}
