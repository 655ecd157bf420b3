//! What an edit of a set does to the pods and templates there are, were they created again.
//!
//! An edit is what this leader saw happen: a set that was made, or a generation that followed another. What was edited
//! while nobody led has none. Pods and workloads are listed page by page and not kept.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use pillion_api::{BlastCounts, BlastExample, BlastRadius, Meaning};
use pillion_inject::{Counts, Effect, Impact};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::time::sleep;
use tracing::{info, warn};

use super::Context;
use crate::view::{Judged, Known};

mod survey;

/// So many are named.
const EXAMPLES: usize = 8;
/// Of one effect so many are named.
const EXAMPLES_PER_EFFECT: usize = 4;
/// The schema takes no longer text.
const MAX_EFFECT: usize = 300;
/// A survey that fails so often is given up; the next edit makes another.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(5);

/// An edit of a set.
#[derive(Clone, Debug)]
pub(super) struct Edited {
    name: String,
    uid: String,
    generation: i64,
    before: Option<Arc<Meaning>>,
    after: Arc<Meaning>,
}

/// Blast radiuses of the edits of this leader's time.
pub(super) struct Blasts {
    jobs: UnboundedSender<Edited>,
    busy: Arc<AtomicUsize>,
    /// With the uid of the set, by name.
    done: Arc<Mutex<BTreeMap<String, (String, BlastRadius)>>>,
}

impl Blasts {
    /// Surveys the cluster after edits while the future runs.
    pub(super) fn new(context: &Context) -> (Self, BoxFuture<'static, ()>) {
        let (jobs, mut waiting) = mpsc::unbounded_channel::<Edited>();
        let (busy, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(BTreeMap::new())));
        let blasts = Self { jobs, busy: Arc::clone(&busy), done: Arc::clone(&done) };
        let context = context.clone();
        let driver = async move {
            while let Some(edited) = waiting.recv().await {
                if let Some(impact) = survey(&context, &edited).await {
                    let radius = radius(&impact, edited.generation);
                    done.lock().insert(edited.name, (edited.uid, radius));
                }
                busy.fetch_sub(1, Ordering::Release);
            }
        };
        (blasts, driver.boxed())
    }

    /// Sets have changed.
    pub(super) fn edited(&self, before: &Known, after: &Known) {
        self.done.lock().retain(|name, _| after.judged.contains_key(name));
        for edited in edits(before, after) {
            self.busy.fetch_add(1, Ordering::Release);
            // The other end lives in the same future.
            let _ = self.jobs.send(edited);
        }
    }

    /// The blast radius of the last edit of a set, once it is known.
    pub(super) fn of(&self, name: &str, judged: &Judged) -> Option<BlastRadius> {
        let done = self.done.lock();
        done.get(name).filter(|(uid, _)| *uid == judged.uid).map(|(_, radius)| radius.clone())
    }

    /// Whether some are still to come.
    pub(super) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Acquire) > 0
    }
}

/// What was edited between two looks at all sets.
fn edits(before: &Known, after: &Known) -> Vec<Edited> {
    let edited = |(name, judged): (&String, &Arc<Judged>)| {
        let meaning = Arc::clone(after.sets.get(name)?);
        let earlier = before.judged.get(name).filter(|earlier| earlier.uid == judged.uid);
        let was = match earlier {
            Some(earlier) if earlier.generation < judged.generation => before.sets.get(name).cloned(),
            Some(_) => return None,
            None => None,
        };
        let (uid, generation) = (judged.uid.clone(), judged.generation);
        Some(Edited { name: name.clone(), uid, generation, before: was, after: meaning })
    };
    after.judged.iter().filter_map(edited).collect()
}

async fn survey(context: &Context, edited: &Edited) -> Option<Impact> {
    for attempt in 1..=TRIES {
        match survey::survey(context, edited).await {
            Ok(impact) => {
                let (pods, templates) = (impact.pods.total(), impact.templates.total());
                info!(set = edited.name, generation = edited.generation, pods, templates, "surveyed after an edit");
                return Some(impact);
            }
            Err(error) => warn!(set = edited.name, %error, attempt, "cannot survey the cluster after an edit"),
        }
        sleep(PAUSE).await;
    }
    None
}

fn radius(impact: &Impact, generation: i64) -> BlastRadius {
    let examples = impact.examples().take(EXAMPLES).map(|example| BlastExample {
        kind: example.subject.kind.clone(),
        namespace: example.subject.namespace.clone(),
        name: example.subject.name.clone(),
        effect: words(example.effect),
    });
    let examples: Vec<BlastExample> = examples.collect();
    BlastRadius {
        generation,
        pods: counts(&impact.pods),
        templates: counts(&impact.templates),
        examples: (!examples.is_empty()).then_some(examples),
    }
}

fn counts(counts: &Counts) -> BlastCounts {
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let refused = counts.refused + counts.still_refused;
    BlastCounts {
        checked: number(counts.total()),
        would_change: number(counts.affected() - refused),
        would_be_refused: number(refused),
    }
}

fn words(effect: &Effect) -> String {
    let text = match effect {
        Effect::Unaffected => "stays as it is".to_owned(),
        Effect::Gains => "gains the sidecars".to_owned(),
        Effect::Loses => "loses the sidecars".to_owned(),
        Effect::Changes => "gets other sidecars".to_owned(),
        Effect::LeftOut(cause) => format!("is left out: {}: {}", cause.reason.code(), cause.message),
        Effect::Refused(cause) => format!("is refused: {}: {}", cause.reason.code(), cause.message),
        Effect::StillRefused(cause) => format!("is refused, as before: {}: {}", cause.reason.code(), cause.message),
        Effect::Admitted => "is not refused any more".to_owned(),
    };
    text[..text.floor_char_boundary(MAX_EFFECT)].to_owned()
}

#[cfg(test)]
mod tests {
    use pillion_api::Reason;
    use pillion_inject::{Cause, SetIndex, Subject};
    use serde_json::json;

    use super::*;

    fn known(sets: &[(&str, i64, &str)]) -> Known {
        let meaning = |(_, _, image): &(&str, i64, &str)| {
            let object = json!({"metadata": {"name": "mesh"}, "spec": {"selector": {"matchLabels": {"app": "web"}},
                "containers": [{"name": "proxy", "image": image}]}});
            pillion_api::review(&object).meaning
        };
        let judged = |(uid, generation, image): &(&str, i64, &str)| {
            let problem = image.is_empty().then(|| "wrong".to_owned());
            ("mesh".to_owned(), Arc::new(Judged { uid: (*uid).to_owned(), generation: *generation, problem }))
        };
        Known {
            sets: Arc::new(SetIndex::new(sets.iter().filter_map(meaning))),
            judged: sets.iter().map(judged).collect(),
            ..Known::default()
        }
    }

    fn found(before: &Known, after: &Known) -> Vec<(i64, bool)> {
        edits(before, after).iter().map(|edited| (edited.generation, edited.before.is_some())).collect()
    }

    #[test]
    fn an_edit_is_a_generation_that_follows_another() {
        let (none, first, second) = (known(&[]), known(&[("u", 1, "a")]), known(&[("u", 2, "b")]));
        assert_eq!(found(&first, &second), [(2, true)]);
        assert_eq!(found(&first, &first), []);
        assert_eq!(found(&second, &none), []);
        assert_eq!(found(&none, &first), [(1, false)]);
        // Another set of the same name; one that could not be used before; one that cannot be used now.
        assert_eq!(found(&known(&[("other", 7, "a")]), &first), [(1, false)]);
        assert_eq!(found(&known(&[("u", 1, "")]), &second), [(2, false)]);
        assert_eq!(found(&first, &known(&[("u", 2, "")])), []);
    }

    #[test]
    fn what_hurts_most_is_named_first() {
        let mut impact = Impact::new(EXAMPLES_PER_EFFECT);
        let subject = |kind: &str, name: &str| Subject {
            namespace: "shop".to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
        };
        let cause =
            Cause { set: "mesh".to_owned(), reason: Reason::NoTarget, message: "no container matches".to_owned() };
        impact.add(subject("Pod", "a"), Effect::Gains);
        impact.add(subject("Pod", "b"), Effect::Unaffected);
        impact.add(subject("Deployment", "web"), Effect::Refused(cause));
        let radius = radius(&impact, 4);
        let count = |checked, would_change, would_be_refused| BlastCounts { checked, would_change, would_be_refused };
        assert_eq!((radius.generation, radius.pods, radius.templates), (4, count(2, 1, 0), count(1, 0, 1)));
        let named: Vec<(String, String)> =
            radius.examples.unwrap().into_iter().map(|it| (it.name, it.effect)).collect();
        let of = |name: &str, effect: &str| (name.to_owned(), effect.to_owned());
        assert_eq!(named, [of("web", "is refused: PL302: no container matches"), of("a", "gains the sidecars")]);
        let nothing = super::radius(&Impact::new(1), 1);
        assert_eq!(nothing.examples, None);
    }
}
