//! Asks every pod and every template that an edited set selects, or selected before.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams};
use pillion_api::{Condition, Meaning, Namespaces, Selector};
use pillion_inject::{Edit, Impact, Installation, Subject, mismatch, pod_of};
use serde_json::Value;

use super::super::Context;
use super::super::pods::NOT_ENDED;
use super::{EXAMPLES_PER_EFFECT, Edited};

/// So many are read at a time.
const PAGE: u32 = 500;
/// How long to wait for a namespace that is not known yet.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(3);

/// What an edit does to all of them.
pub(super) async fn survey(context: &Context, edited: &Edited) -> kube::Result<Impact> {
    let mut survey = Survey { context, edited, impact: Impact::new(EXAMPLES_PER_EFFECT) };
    let pods = ApiResource::erase::<Pod>(&());
    let selections = Some(&edited.after).into_iter().chain(&edited.before);
    for (at, set) in selections.enumerate() {
        if at > 0 && set.selector == edited.after.selector && set.namespaces == edited.after.namespaces {
            continue;
        }
        let parameters = ListParams::default().labels(&written(&set.selector)).fields(NOT_ENDED).limit(PAGE);
        let api = match &set.namespaces {
            Namespaces::Named(name) => Api::namespaced_with(context.client.clone(), name, &pods),
            Namespaces::All | Namespaces::Selected(_) => Api::all_with(context.client.clone(), &pods),
        };
        survey.each(api, parameters, &pods, |pod| at == 0 || !matches(&edited.after, pod)).await?;
    }
    let kinds = [
        ApiResource::erase::<Deployment>(&()),
        ApiResource::erase::<StatefulSet>(&()),
        ApiResource::erase::<DaemonSet>(&()),
        ApiResource::erase::<Job>(&()),
        ApiResource::erase::<CronJob>(&()),
    ];
    for kind in &kinds {
        let api = Api::all_with(context.client.clone(), kind);
        survey.each(api, ListParams::default().limit(PAGE), kind, |_| true).await?;
    }
    Ok(survey.impact)
}

struct Survey<'a> {
    context: &'a Context,
    edited: &'a Edited,
    impact: Impact,
}

impl Survey<'_> {
    async fn each(
        &mut self,
        api: Api<DynamicObject>,
        mut parameters: ListParams,
        kind: &ApiResource,
        is_asked: impl Fn(&Value) -> bool,
    ) -> kube::Result<()> {
        loop {
            let page = api.list(&parameters).await?;
            for object in page.items {
                let mut object = serde_json::to_value(object).unwrap_or_default();
                // In a list they are only said of the list.
                object["apiVersion"] = kind.api_version.clone().into();
                object["kind"] = kind.kind.clone().into();
                if is_asked(&object) {
                    self.ask(&object).await;
                }
            }
            parameters.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if parameters.continue_token.is_none() {
                return Ok(());
            }
        }
    }

    async fn ask(&mut self, object: &Value) {
        if is_owned_or_ended(object) {
            return;
        }
        // What cannot be read is nothing that a set was or will be asked about.
        let Ok(Some(created)) = pod_of(object, "default") else { return };
        let Ok(namespace) = self.context.view.namespace(&created.origin.namespace, PATIENCE).await else { return };
        let Edited { name, before, after, .. } = self.edited;
        let selects = |set: &Meaning| mismatch(set, |key| label(&created.pod, key), &namespace).is_none();
        if !selects(after) && !before.as_ref().is_some_and(|before| selects(before)) {
            return;
        }
        let sets = self.context.view.sets();
        let edit = Edit::new(name, before.as_deref(), Some(after), &sets);
        let settings = &self.context.settings;
        let installation = Installation {
            mode: settings.mode,
            is_off: false,
            own_namespace: Some(&settings.namespace),
            finish: self.context.finish.finishing(),
            // What is asked of an agent is no business of who counts sidecars.
            hot_updates: None,
            sizer: None,
        };
        let effect = if created.origin.is_template() {
            edit.effect(&created.pod, &namespace, installation)
        } else {
            edit.effect_on_existing(&created.pod, &namespace, installation)
        };
        let subject =
            Subject { namespace: created.origin.namespace, kind: created.origin.kind, name: created.origin.name };
        self.impact.add(subject, effect);
    }
}

/// A Job of a `CronJob`, which is asked itself, or one that creates no pods any more; a pod on its way out.
fn is_owned_or_ended(object: &Value) -> bool {
    if object["kind"] == "Pod" {
        return object["metadata"]["deletionTimestamp"].is_string();
    }
    let mut owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let is_end = |it: &Value| (it["type"] == "Complete" || it["type"] == "Failed") && it["status"] == "True";
    object["kind"] == "Job" && (owners.any(|owner| owner["controller"] == true) || conditions.any(is_end))
}

fn label<'a>(pod: &'a Value, key: &str) -> Option<&'a str> {
    pod["metadata"]["labels"].get(key).and_then(Value::as_str)
}

/// Whether a pod has the labels and is in the namespace a set names; of namespaces by labels nothing is known here.
fn matches(set: &Meaning, pod: &Value) -> bool {
    let in_namespace = match &set.namespaces {
        Namespaces::Named(name) => pod["metadata"]["namespace"] == name.as_str(),
        Namespaces::All | Namespaces::Selected(_) => true,
    };
    in_namespace && set.selector.matches(|key| label(pod, key))
}

/// A selector as the API server takes it.
fn written(selector: &Selector) -> String {
    let list = |values: &std::collections::BTreeSet<String>| values.iter().cloned().collect::<Vec<_>>().join(",");
    let requirement = |it: &pillion_api::Requirement| match &it.condition {
        Condition::In(values) => format!("{} in ({})", it.key, list(values)),
        Condition::NotIn(values) => format!("{} notin ({})", it.key, list(values)),
        Condition::Exists => it.key.clone(),
        Condition::DoesNotExist => format!("!{}", it.key),
    };
    selector.requirements().iter().map(requirement).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(selector: &Value, rest: &Value) -> Meaning {
        let mut spec = json!({"selector": selector, "containers": [{"name": "proxy", "image": "proxy:1"}]});
        spec.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        pillion_api::review(&json!({"metadata": {"name": "mesh"}, "spec": spec})).meaning.unwrap()
    }

    #[test]
    fn a_selector_is_written_as_the_api_server_takes_it() {
        let expressions = json!([
            {"key": "b", "operator": "In", "values": ["y", "x"]}, {"key": "c", "operator": "NotIn", "values": ["z"]},
            {"key": "example.com/d", "operator": "Exists"}, {"key": "e", "operator": "DoesNotExist"}]);
        let set = set(&json!({"matchLabels": {"a": "1"}, "matchExpressions": expressions}), &json!({}));
        assert_eq!(written(&set.selector), "a in (1),b in (x,y),c notin (z),example.com/d,!e");
    }

    #[test]
    fn a_pod_of_both_selectors_is_asked_once() {
        let pod = |app: &str, namespace: &str| json!({"metadata": {"namespace": namespace, "labels": {"app": app}}});
        let web = set(&json!({"matchLabels": {"app": "web"}}), &json!({}));
        assert!(matches(&web, &pod("web", "shop")) && !matches(&web, &pod("api", "shop")));
        let here = set(&json!({"matchLabels": {"app": "web"}}), &json!({"namespace": "shop"}));
        assert!(matches(&here, &pod("web", "shop")) && !matches(&here, &pod("web", "other")));
    }

    #[test]
    fn what_creates_no_pods_is_not_asked() {
        for (object, is_left_out) in [
            (json!({"kind": "Pod", "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), true),
            (json!({"kind": "Pod", "metadata": {"ownerReferences": [{"controller": true}]}}), false),
            (json!({"kind": "Job", "metadata": {"ownerReferences": [{"controller": true}]}}), true),
            (json!({"kind": "Job", "status": {"conditions": [{"type": "Complete", "status": "True"}]}}), true),
            (json!({"kind": "Job", "status": {"conditions": [{"type": "Suspended", "status": "True"}]}}), false),
            (json!({"kind": "Deployment", "metadata": {"ownerReferences": [{"controller": true}]}}), false),
        ] {
            assert_eq!(is_owned_or_ended(&object), is_left_out, "{object}");
        }
    }
}
