//! What is told about pods, and to whom: the set, and the workload behind the pod.
//!
//! What happened to a pod is news when it is first seen, unless the pod is old: whoever begins to lead sees all of them.
//! A pod that was missed is news at any age.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use pillion_api::API_VERSION;
use pillion_inject::coverage::{Standing, Step};
use pillion_runtime::watch::Key;
use tokio::sync::mpsc;

use super::Context;
use super::pods::KeptPod;
use super::workload::Workloads;
use crate::admission::pods::Owner;
use crate::events::Note;

/// So many wait to be told; more are dropped, as the next ones say the same.
const ROOM: usize = 512;
/// A pod is old when it was created so long ago.
const OLD: SignedDuration = SignedDuration::from_secs(60);

/// Something that happened to a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct News {
    pub(super) set: String,
    pub(super) namespace: String,
    pub(super) owner: Option<Owner>,
    pub(super) is_warning: bool,
    pub(super) reason: String,
    pub(super) action: &'static str,
    /// About the pod, without the name of the set.
    pub(super) message: String,
}

/// What a step of a pod is worth telling.
pub(super) fn news(step: &Step, key: &Key, pod: &KeptPod, now: Timestamp) -> Option<News> {
    let after = step.after.filter(|after| Some(*after) != step.before)?;
    let is_old = now.duration_since(pod.living.created) > OLD;
    let (is_warning, reason, what) = match after {
        Standing::Carries if !is_old => (false, "Injected".to_owned(), "got the sidecars".to_owned()),
        Standing::LeftOut(reason) if !is_old => {
            let what = format!("was left out: {}: {}", reason.code(), reason.title());
            (false, format!("Skipped{}", reason.name()), what)
        }
        Standing::Missed => {
            let reason = pillion_api::Reason::CreatedUnseen;
            (true, "Missed".to_owned(), format!("lacks the sidecars: {}: {}", reason.code(), reason.title()))
        }
        Standing::Carries | Standing::LeftOut(_) | Standing::Excused(_) | Standing::Predates => return None,
    };
    Some(News {
        set: step.set.clone(),
        namespace: key.namespace.to_string(),
        owner: pod.owner(),
        is_warning,
        reason,
        action: "Inject",
        message: format!("pod {key} {what}"),
    })
}

/// Takes news without waiting.
#[derive(Clone)]
pub(super) struct NewsDesk(mpsc::Sender<News>);

impl NewsDesk {
    /// Tells the news while the future runs.
    pub(super) fn open(context: &Context) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let (desk, mut waiting) = mpsc::channel::<News>(ROOM);
        let mut workloads = Workloads::new(context.client.clone());
        let (view, events) = (context.view.clone(), context.events.clone());
        let driver = async move {
            while let Some(news) = waiting.recv().await {
                let workload = match &news.owner {
                    Some(owner) => Some(workloads.above(&news.namespace, owner).await),
                    None => None,
                };
                // By the uid kubectl finds the events of an object.
                let set_uid = view.known().judged.get(&news.set).map(|judged| judged.uid.clone());
                for note in notes(&news, set_uid, workload) {
                    events.tell(note);
                }
            }
        };
        (Self(desk), driver)
    }

    /// Has something told, if there is room.
    pub(super) fn tell(&self, news: News) {
        let _ = self.0.try_send(news);
    }
}

/// One for the set, and one for the workload.
fn notes(news: &News, set_uid: Option<String>, workload: Option<ObjectReference>) -> Vec<Note> {
    let set = ObjectReference {
        api_version: Some(API_VERSION.to_owned()),
        kind: Some("SidecarSet".to_owned()),
        name: Some(news.set.clone()),
        uid: set_uid,
        ..ObjectReference::default()
    };
    let note = |regarding, related, message: String| Note {
        regarding,
        related,
        is_warning: news.is_warning,
        reason: news.reason.clone(),
        action: news.action,
        message,
    };
    let of_workload = workload
        .clone()
        .map(|workload| note(workload, Some(set.clone()), format!("SidecarSet {}: {}", news.set, news.message)));
    of_workload.into_iter().chain([note(set.clone(), workload, news.message.clone())]).collect()
}

#[cfg(test)]
mod tests {
    use pillion_api::Reason;
    use pillion_rollout::Pod;

    use super::*;

    fn pod(created: i64) -> KeptPod {
        let owner = pillion_rollout::Owner {
            api_version: "apps/v1".into(),
            kind: "ReplicaSet".into(),
            name: "web-7".into(),
            uid: "u-7".into(),
        };
        let created = Timestamp::from_second(created).unwrap();
        KeptPod::new(Pod { uid: "u-1".into(), created, owner: Some(owner), ..Pod::default() }, true, |_| None).unwrap()
    }

    fn told(before: Option<Standing>, after: Option<Standing>, age: i64) -> Option<(bool, String, String)> {
        let step = Step { set: "mesh".to_owned(), before, after };
        let now = Timestamp::from_second(1_000).unwrap();
        let news = news(&step, &Key::new("shop", "web-7-a"), &pod(1_000 - age), now)?;
        Some((news.is_warning, news.reason, news.message))
    }

    #[test]
    fn what_happens_to_a_young_pod_is_news_once() {
        let injected = (false, "Injected".to_owned(), "pod shop/web-7-a got the sidecars".to_owned());
        assert_eq!(told(None, Some(Standing::Carries), 60), Some(injected));
        assert_eq!(told(None, Some(Standing::Carries), 61), None);
        assert_eq!(told(Some(Standing::Carries), Some(Standing::Carries), 0), None);
        assert_eq!(told(Some(Standing::Carries), None, 0), None);
        let left_out = Standing::LeftOut(Reason::OptedOut);
        let message = "pod shop/web-7-a was left out: PL205: The pod left the set out.".to_owned();
        assert_eq!(told(None, Some(left_out), 1), Some((false, "SkippedOptedOut".to_owned(), message)));
        for quiet in [Standing::Excused(Reason::Observed), Standing::Predates] {
            assert_eq!(told(None, Some(quiet), 1), None);
        }
    }

    #[test]
    fn a_missed_pod_is_news_at_any_age() {
        let message =
            "pod shop/web-7-a lacks the sidecars: PL213: The pod was created while the webhook could not be reached.";
        let expected = Some((true, "Missed".to_owned(), message.to_owned()));
        assert_eq!(told(None, Some(Standing::Missed), 9_000), expected);
        assert_eq!(told(Some(Standing::Predates), Some(Standing::Missed), 1), expected);
        assert_eq!(told(Some(Standing::Missed), Some(Standing::Missed), 1), None);
    }

    #[test]
    fn the_set_and_the_workload_are_told() {
        let step = Step { set: "mesh".to_owned(), before: None, after: Some(Standing::Carries) };
        let now = Timestamp::from_second(1_000).unwrap();
        let news = news(&step, &Key::new("shop", "web-7-a"), &pod(1_000), now).unwrap();
        let workload = ObjectReference { name: Some("web".to_owned()), ..ObjectReference::default() };
        let told = notes(&news, None, Some(workload));
        let shown: Vec<_> = told
            .iter()
            .map(|note| {
                (
                    note.regarding.name.as_deref(),
                    note.related.as_ref().and_then(|it| it.name.as_deref()),
                    &*note.message,
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                (Some("web"), Some("mesh"), "SidecarSet mesh: pod shop/web-7-a got the sidecars"),
                (Some("mesh"), Some("web"), "pod shop/web-7-a got the sidecars"),
            ]
        );
        // A pod of its own has no workload.
        let told = notes(&news, Some("u-9".to_owned()), None);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].regarding.uid.as_deref(), Some("u-9"));
    }
}
