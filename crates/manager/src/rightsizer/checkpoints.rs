//! What was learned, kept in the cluster: read when an autoscaler becomes ours, and written where there is something new.
//!
//! A checkpoint is known by what its spec names, and not by its own name: `a-b` of `c` and `a` of `b-c` would have the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::{FutureExt as _, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::PartialObjectMeta;
use parking_lot::Mutex;
use pillion_api::{
    VerticalPodAutoscaler, VerticalPodAutoscalerCheckpoint, VerticalPodAutoscalerCheckpointSpec,
    VerticalPodAutoscalerCheckpointStatus,
};
use pillion_runtime::watch::Key;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tracing::{debug, info, warn};

use super::learn::{Due, Learner};
use super::{AT_ONCE, Context, MANAGER};
use crate::asking::Failed;

/// So many come with one answer.
const PAGE: u32 = 500;
/// Where fewer namespaces are asked about, each is asked by itself.
const FEW_NAMESPACES: usize = 8;
/// No object has a longer name.
const LONGEST_NAME: usize = 253;
/// Label with the recommender that writes it: one whose autoscaler is gone is removed by whom it belongs to.
const RECOMMENDER: &str = "pillion.dev/recommender";

/// Whose a checkpoint is: namespace and name of the autoscaler, and the container.
type Subject = (Key, Arc<str>);

/// A checkpoint, as it is stored.
#[derive(Clone, Debug, Default, PartialEq)]
struct Stored {
    metadata: ObjectMeta,
    spec: VerticalPodAutoscalerCheckpointSpec,
    status: VerticalPodAutoscalerCheckpointStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Content {
    spec: VerticalPodAutoscalerCheckpointSpec,
    status: VerticalPodAutoscalerCheckpointStatus,
}

/// Which checkpoints there are.
#[derive(Default)]
pub(super) struct Checkpoints {
    names: BTreeMap<Subject, Known>,
    /// Names by namespace that are taken, and for whom.
    taken: BTreeMap<Key, Subject>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    name: String,
    labels: Labels,
}

/// What must be done for a checkpoint to have our label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Labels {
    Has,
    /// It has others.
    Lacks,
    /// It has none at all.
    Empty,
}

impl Stored {
    /// One that cannot be read must not hide the others, so each is read by itself.
    fn read(object: DynamicObject) -> Result<Self, String> {
        let Content { spec, status } = serde_json::from_value(object.data).map_err(|error| error.to_string())?;
        Ok(Self { metadata: object.metadata, spec, status })
    }

    fn subject(&self) -> Option<Subject> {
        let namespace = self.metadata.namespace.as_deref()?;
        let autoscaler = Key::new(namespace, self.spec.vpa_object_name.as_deref()?);
        Some((autoscaler, self.spec.container_name.as_deref()?.into()))
    }
}

impl Checkpoints {
    /// Reads what is kept for these autoscalers, which the learner knows.
    pub(super) async fn load(
        &mut self,
        context: &Context,
        wanted: &BTreeSet<Key>,
        learner: &Mutex<Learner>,
    ) -> Result<(), String> {
        let namespaces: BTreeSet<&str> = wanted.iter().map(|key| &*key.namespace).collect();
        let mut loaded = 0_usize;
        let mut take = |this: &mut Self, stored: Stored| {
            let Some(subject) = stored.subject().filter(|(autoscaler, _)| wanted.contains(autoscaler)) else { return };
            let (autoscaler, container) = &subject;
            match learner.lock().load(autoscaler, container, &stored.status) {
                Ok(()) => loaded += 1,
                Err(why) => warn!(%autoscaler, %container, why, "the checkpoint cannot be read: it is begun anew"),
            }
            this.know(&stored, subject, &context.settings.sizing.recommender_name);
        };
        if namespaces.len() <= FEW_NAMESPACES {
            for namespace in namespaces {
                let api = Api::namespaced_with(context.client.clone(), namespace, &resource());
                each(&api, |stored| take(self, stored)).await?;
            }
        } else {
            let api = Api::all_with(context.client.clone(), &resource());
            each(&api, |stored| take(self, stored)).await?;
        }
        info!(autoscalers = wanted.len(), checkpoints = loaded, "checkpoints are read");
        Ok(())
    }

    /// Writes what is due; gives what was written.
    pub(super) async fn write(&mut self, context: &Context, due: Vec<Due>, now: Timestamp) -> Vec<Due> {
        let recommender = context.settings.sizing.recommender_name.as_str();
        let writes = due.into_iter().map(|due| {
            let subject = (due.autoscaler.clone(), Arc::clone(&due.container));
            let known = self.names.get(&subject).cloned();
            let fresh = self.free_name(&subject);
            async move {
                let written = write(context, recommender, &due, known, &fresh, now).await;
                (subject, due, written)
            }
            .boxed()
        });
        let writes: Vec<_> = writes.collect();
        let mut writes = futures::stream::iter(writes).buffer_unordered(AT_ONCE);
        let mut done = Vec::new();
        while let Some((subject, due, written)) = writes.next().await {
            match written {
                Ok(name) => {
                    self.taken.insert(Key::new(&subject.0.namespace, &name), subject.clone());
                    self.names.insert(subject, Known { name, labels: Labels::Has });
                    context.metrics.checkpoint_writes.inc();
                    done.push(due);
                }
                Err(failed) => {
                    // Whether it was deleted is found out by making it.
                    if failed.code() == Some(404) {
                        self.names.remove(&subject);
                    }
                    context.metrics.checkpoint_failures.inc();
                    let (autoscaler, container, why) = (&due.autoscaler, &due.container, failed.message());
                    warn!(%autoscaler, %container, why, "its checkpoint cannot be written");
                }
            }
        }
        done
    }

    /// Removes checkpoints that are ours and whose autoscaler is gone.
    pub(super) async fn collect(&mut self, context: &Context, is_there: impl Fn(&Key) -> bool) {
        let recommender = context.settings.sizing.recommender_name.clone();
        let mut orphans = Vec::new();
        let api = Api::all_with(context.client.clone(), &resource());
        let listed = each(&api, |stored: Stored| {
            let Some(subject) = stored.subject() else { return };
            if labels_of(&stored, &recommender) == Labels::Has && !is_there(&subject.0) {
                orphans.push((subject, stored.metadata));
            }
        });
        if let Err(why) = listed.await {
            warn!(why, "checkpoints cannot be listed: those of autoscalers that are gone stay");
            return;
        }
        for (subject, metadata) in orphans {
            let autoscaler = &subject.0;
            // It may only have been given to another recommender, which goes on with it.
            let api = Api::<PartialObjectMeta<VerticalPodAutoscaler>>::namespaced(
                context.client.clone(),
                &autoscaler.namespace,
            );
            match context.asked(api.get_opt(&autoscaler.name)).await {
                Ok(None) => {}
                Ok(Some(_)) | Err(_) => continue,
            }
            let name = metadata.name.unwrap_or_default();
            let api = Api::<DynamicObject>::namespaced_with(context.client.clone(), &autoscaler.namespace, &resource());
            let preconditions = Some(Preconditions { uid: metadata.uid, resource_version: None });
            let parameters = DeleteParams { preconditions, ..DeleteParams::default() };
            match context.asked(api.delete(&name, &parameters)).await {
                Ok(_) => debug!(%autoscaler, name, "its checkpoint is removed"),
                Err(failed) => debug!(%autoscaler, name, why = failed.message(), "its checkpoint cannot be removed"),
            }
            self.taken.remove(&Key::new(&autoscaler.namespace, &name));
            self.names.remove(&subject);
        }
    }

    fn know(&mut self, stored: &Stored, subject: Subject, recommender: &str) {
        let Some(name) = stored.metadata.name.clone() else { return };
        self.taken.insert(Key::new(&subject.0.namespace, &name), subject.clone());
        self.names.insert(subject, Known { name, labels: labels_of(stored, recommender) });
    }

    /// The names a new checkpoint may have, the best first.
    fn free_name(&self, subject: &Subject) -> Vec<String> {
        let (autoscaler, container) = subject;
        let is_free = |name: &String| {
            let taken = self.taken.get(&Key::new(&autoscaler.namespace, name));
            taken.is_none_or(|by| by == subject)
        };
        names(&autoscaler.name, container).into_iter().filter(is_free).collect()
    }
}

/// Writes one; gives its name.
async fn write(
    context: &Context,
    recommender: &str,
    due: &Due,
    known: Option<Known>,
    free: &[String],
    now: Timestamp,
) -> Result<String, Failed> {
    let resource = resource();
    let api = Api::<DynamicObject>::namespaced_with(context.client.clone(), &due.autoscaler.namespace, &resource);
    let status = VerticalPodAutoscalerCheckpointStatus { last_update_time: Some(Time(now)), ..due.status.clone() };
    let spec = VerticalPodAutoscalerCheckpointSpec {
        vpa_object_name: Some(due.autoscaler.name.to_string()),
        container_name: Some(due.container.to_string()),
    };
    if let Some(known) = known {
        replace(context, &api, &known, recommender, &status).await?;
        return Ok(known.name);
    }
    let mut last = None;
    for name in free {
        let mut made = DynamicObject::new(name, &resource);
        made.metadata.labels = Some(BTreeMap::from([(RECOMMENDER.to_owned(), recommender.to_owned())]));
        made.data = json!({"spec": spec, "status": status});
        let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        match context.asked(api.create(&parameters, &made)).await {
            Ok(_) => return Ok(name.clone()),
            Err(failed) if failed.code() == Some(409) => {
                let there = Stored::read(context.asked(api.get(name)).await?).map_err(Failed::Unanswered)?;
                if there.spec == spec {
                    let known = Known { name: name.clone(), labels: labels_of(&there, recommender) };
                    replace(context, &api, &known, recommender, &status).await?;
                    return Ok(known.name);
                }
                last = Some(failed);
            }
            Err(failed) => return Err(failed),
        }
    }
    Err(last.unwrap_or_else(|| Failed::Unanswered("every name it could have is taken".to_owned())))
}

/// The whole status: what a bucket had must not stay.
async fn replace(
    context: &Context,
    api: &Api<DynamicObject>,
    known: &Known,
    recommender: &str,
    status: &VerticalPodAutoscalerCheckpointStatus,
) -> Result<(), Failed> {
    let mut patch = vec![json!({"op": "add", "path": "/status", "value": status})];
    match known.labels {
        Labels::Has => {}
        Labels::Lacks => {
            let path = format!("/metadata/labels/{}", RECOMMENDER.replace('/', "~1"));
            patch.push(json!({"op": "add", "path": path, "value": recommender}));
        }
        Labels::Empty => {
            patch.push(json!({"op": "add", "path": "/metadata/labels", "value": {RECOMMENDER: recommender}}));
        }
    }
    let patch = serde_json::from_value(Value::Array(patch)).map_err(|error| Failed::Unanswered(error.to_string()))?;
    let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    context.asked(api.patch_metadata(&known.name, &parameters, &Patch::Json::<()>(patch))).await?;
    Ok(())
}

fn resource() -> ApiResource {
    ApiResource::erase::<VerticalPodAutoscalerCheckpoint>(&())
}

fn labels_of(stored: &Stored, recommender: &str) -> Labels {
    match &stored.metadata.labels {
        None => Labels::Empty,
        Some(labels) if labels.get(RECOMMENDER).is_some_and(|own| own == recommender) => Labels::Has,
        Some(_) => Labels::Lacks,
    }
}

/// Page by page, so that they are never all in memory.
async fn each(api: &Api<DynamicObject>, mut take: impl FnMut(Stored)) -> Result<(), String> {
    let mut parameters = ListParams::default().limit(PAGE);
    loop {
        let page = api.list(&parameters).await.map_err(|error| format!("checkpoints: {error}"))?;
        for object in page.items {
            let (namespace, name) = (object.metadata.namespace.clone(), object.metadata.name.clone());
            match Stored::read(object) {
                Ok(stored) => take(stored),
                Err(why) => warn!(?namespace, ?name, why, "a checkpoint cannot be read"),
            }
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => return Ok(()),
        }
    }
}

/// The names a checkpoint may have: upstream's, and one that nothing else has.
fn names(autoscaler: &str, container: &str) -> Vec<String> {
    let plain = format!("{autoscaler}-{container}");
    // A name cannot hold a slash, so no other two make the same text.
    let digest = Sha256::digest(format!("{autoscaler}/{container}"));
    let suffix = digest.iter().take(5).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let suffix = format!("{suffix:010x}");
    let room = LONGEST_NAME - suffix.len() - 1;
    let cut = plain[..plain.floor_char_boundary(room)].trim_end_matches(['-', '.']);
    let own = format!("{cut}-{suffix}");
    if plain.len() <= LONGEST_NAME { vec![plain, own] } else { vec![own] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(autoscaler: &str, container: &str) -> Subject {
        (Key::new("shop", autoscaler), container.into())
    }

    #[test]
    fn two_that_would_have_one_name_have_two() {
        let mut checkpoints = Checkpoints::default();
        let (one, other) = (subject("a-b", "c"), subject("a", "b-c"));
        assert_eq!(checkpoints.free_name(&one), ["a-b-c", "a-b-c-4e84717d75"]);
        let stored = Stored {
            metadata: ObjectMeta { name: Some("a-b-c".to_owned()), ..ObjectMeta::default() },
            ..Stored::default()
        };
        checkpoints.know(&stored, one.clone(), "pillion");
        assert_eq!(checkpoints.free_name(&other), ["a-b-c-b88f83c840"]);
        assert_eq!(checkpoints.free_name(&one).len(), 2);
    }

    #[test]
    fn what_is_stored_is_read_with_its_buckets() {
        let read = |status: Value| {
            let object = json!({"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscalerCheckpoint",
                "metadata": {"name": "web-app", "namespace": "shop"},
                "spec": {"vpaObjectName": "web", "containerName": "app"}, "status": status});
            Stored::read(serde_json::from_value(object).unwrap())
        };
        let stored = read(json!({"version": "v3", "cpuHistogram": {"bucketWeights": {"0": 10_000, "17": 1}}})).unwrap();
        assert_eq!(stored.status.cpu_histogram.as_ref().unwrap().bucket_weights, [(0, 10_000), (17, 1)].into());
        assert_eq!(stored.subject(), Some(subject("web", "app")));
        assert!(read(json!({"version": 3})).is_err());
    }

    #[test]
    fn a_long_name_is_cut_and_still_its_own() {
        let long = "x".repeat(250);
        let [own] = names(&long, "app").try_into().unwrap();
        assert_eq!(own.len(), LONGEST_NAME);
        assert_ne!(names(&long, "other")[0], own);
        // A name must not have a dash before the one that follows.
        let dashed = format!("{}--", "x".repeat(240));
        assert!(!names(&dashed, &"y".repeat(60))[0].contains("--"));
    }

    #[test]
    fn a_checkpoint_that_upstream_wrote_gets_our_label_when_it_is_written() {
        let stored = |labels: Option<&[(&str, &str)]>| {
            let labels = labels.map(|all| all.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect());
            Stored { metadata: ObjectMeta { labels, ..ObjectMeta::default() }, ..Stored::default() }
        };
        assert_eq!(labels_of(&stored(None), "pillion"), Labels::Empty);
        assert_eq!(labels_of(&stored(Some(&[("a", "b")])), "pillion"), Labels::Lacks);
        assert_eq!(labels_of(&stored(Some(&[(RECOMMENDER, "other")])), "pillion"), Labels::Lacks);
        assert_eq!(labels_of(&stored(Some(&[(RECOMMENDER, "pillion")])), "pillion"), Labels::Has);
    }
}
