//! Whether a pod runs what it was given, and if it does not, why.
//!
//! A pod's Ready, its observed generation and the image in its status do not tell: all of them can be as wanted while the
//! old container still runs. Only another container, by its id or its restarts, that runs and is ready does.

use std::cmp::Ordering;

use jiff::{SignedDuration, Timestamp};
use pillion_api::{PodRevision, Reason};

use crate::pod::{Container, Pod, State, Status};

/// How long a pod has to run what it was given before it is said not to become ready.
pub(crate) const PATIENCE: SignedDuration = SignedDuration::from_secs(60);
/// How long before its events are asked; and how long where something else waits to be given to it.
const EVENTS_AFTER: [SignedDuration; 2] = [SignedDuration::from_secs(30), SignedDuration::from_secs(10)];

/// How long a container that started in the second of a write may be one that was on its way before.
const CERTAIN_AFTER: SignedDuration = SignedDuration::from_secs(15);
/// Ends what is remembered of a container that was changed before it ran well with what it had.
const AGAIN: &str = " again";

/// What a container waits for when its image cannot be had.
const NO_IMAGE: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "ImageInspectError",
    "RegistryUnavailable",
];
/// What a container waits for when it cannot be made, or ends again and again.
const NO_CONTAINER: [&str; 8] = [
    CRASH_LOOP,
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "PreCreateHookError",
    "PreStartHookError",
    "PostStartHookError",
    "StartError",
];
/// What a container waits for that ends again and again.
const CRASH_LOOP: &str = "CrashLoopBackOff";

/// How far a pod is with what it was given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Swap<'a> {
    /// It runs it, or was given nothing since it was created.
    Done,
    /// It will have run it for long enough at this time, if nothing happens.
    Settling(Timestamp),
    /// It does not run it yet.
    UnderWay,
    /// It does not run it, for a reason that does not end by itself.
    Failed(Trouble<'a>),
}

/// Why a pod does not run what it was given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trouble<'a> {
    pub(crate) reason: Reason,
    pub(crate) container: &'a Container,
    /// In the words of the node, where it has some.
    pub(crate) why: &'a str,
}

impl Swap<'_> {
    pub(crate) fn is_done(self) -> bool {
        self == Self::Done
    }
}

/// How far a pod is with the revision it was given. `told`: what its events say.
pub(crate) fn swap<'a>(
    pod: &'a Pod,
    given: &PodRevision,
    settle: SignedDuration,
    told: Option<&'a str>,
    now: Timestamp,
) -> Swap<'a> {
    let mut result = Swap::Done;
    for (name, was) in &given.was {
        let Some(container) = pod.container(name) else { continue };
        match container_swap(pod, container, was, given, settle, told, now) {
            Swap::Done => {}
            failed @ Swap::Failed(_) => return failed,
            Swap::UnderWay => result = Swap::UnderWay,
            Swap::Settling(at) => {
                result = match result {
                    Swap::Done => Swap::Settling(at),
                    Swap::Settling(other) => Swap::Settling(at.max(other)),
                    worse => worse,
                };
            }
        }
    }
    result
}

fn container_swap<'a>(
    pod: &'a Pod,
    container: &'a Container,
    was: &str,
    given: &PodRevision,
    settle: SignedDuration,
    told: Option<&'a str>,
    now: Timestamp,
) -> Swap<'a> {
    let failed = |reason, why| Swap::Failed(Trouble { reason, container, why });
    let is_late = given.since.is_some_and(|since| now.as_second() - since >= PATIENCE.as_secs());
    let quiet = |why| if is_late { failed(Reason::UpdateUnready, why) } else { Swap::UnderWay };
    let Some(status) = &container.status else {
        return told.map_or_else(|| quiet("does not start"), |told| failed(told_reason(told), told));
    };
    match &status.state {
        State::Running(_) if is_mark_of(status, was) => quiet("still runs its old image"),
        State::Running(_) if !status.is_ready => quiet("is not ready"),
        State::Running(since) if is_of_before(*since, was, given, now) => quiet("is not known to be the new one"),
        State::Running(since) => {
            // A startup probe makes a container ready for a moment before it says otherwise.
            let since = (*since).max(pod.ready_since.filter(|_| pod.is_ready));
            match since.filter(|_| container.has_startup_probe).map(|since| since + settle) {
                Some(settled) if settled > now => Swap::Settling(settled),
                _ => Swap::Done,
            }
        }
        State::Waiting(reason) | State::Terminated(reason) => match lasting(reason) {
            Some(_) if **reason == *CRASH_LOOP && !crashes(status, was, given, now) => quiet("does not start"),
            Some(kind) => failed(kind, reason),
            None => told.map_or_else(|| quiet("does not start"), |told| failed(told_reason(told), told)),
        },
    }
}

/// Whether a container ends again and again that comes of what was given last, and not of what was there before.
pub(crate) fn crashes(status: &Status, was: &str, given: &PodRevision, now: Timestamp) -> bool {
    matches!(&status.state, State::Waiting(reason) if **reason == *CRASH_LOOP)
        && !is_mark_of(status, was)
        && !is_of_before(None, was, given, now)
}

impl Status {
    /// Whether a container serves.
    pub(crate) fn is_running_and_ready(&self) -> bool {
        self.is_ready && matches!(self.state, State::Running(_))
    }
}

/// What a container that does not run waits for, if that does not end by itself.
fn lasting(reason: &str) -> Option<Reason> {
    if NO_IMAGE.contains(&reason) {
        Some(Reason::ImageUnavailable)
    } else if NO_CONTAINER.contains(&reason) {
        Some(Reason::ContainerFails)
    } else {
        None
    }
}

/// Events about images name them so; all others are about the container.
fn told_reason(told: &str) -> Reason {
    let is_about_image = ["pull", "Pull", "image", "Image"].iter().any(|word| told.contains(word));
    if is_about_image { Reason::ImageUnavailable } else { Reason::ContainerFails }
}

/// What is remembered of a container that is about to be changed. One that is moving, because it does not run well with what
/// it has, may be another one in the next moment without what it is given now.
pub(crate) fn mark(status: Option<&Status>, is_moving: bool) -> String {
    // One that never ran has no id; any id is another one.
    let mark = status.map_or_else(|| "0 ".to_owned(), Status::mark);
    if is_moving { mark + AGAIN } else { mark }
}

/// Whether a container is still the one that was remembered; without allocating what [`Status::mark`] would.
fn is_mark_of(status: &Status, was: &str) -> bool {
    let was = was.strip_suffix(AGAIN).unwrap_or(was);
    was.split_once(' ').is_some_and(|(restarts, id)| *id == *status.id && restarts.parse() == Ok(status.restarts))
}

/// Whether a container may come of what was there before the last write. One that started later does not. One that started
/// in the same second, or earlier by the clock of its node, which may be wrong, does not when there was time enough.
fn is_of_before(started: Option<Timestamp>, was: &str, given: &PodRevision, now: Timestamp) -> bool {
    let Some(since) = given.since.filter(|_| was.ends_with(AGAIN)) else { return false };
    let time_enough = match started.map(|started| started.as_second().cmp(&since)) {
        Some(Ordering::Greater) => return false,
        Some(Ordering::Equal) => CERTAIN_AFTER,
        Some(Ordering::Less) | None => PATIENCE,
    };
    now.as_second() - since < time_enough.as_secs()
}

/// Whether nothing that is at hand tells why a pod is not done, and it is time to ask its events.
pub(crate) fn wants_events(pod: &Pod, given: &PodRevision, swap: Swap<'_>, newest: &str, now: Timestamp) -> bool {
    let is_silent = match swap {
        Swap::UnderWay => true,
        Swap::Failed(trouble) => trouble.reason == Reason::UpdateUnready,
        Swap::Done | Swap::Settling(_) => false,
    };
    let patience = EVENTS_AFTER[usize::from(given.is != newest)].as_secs();
    let is_late = given.since.is_some_and(|since| now.as_second() - since >= patience);
    // One that runs is late by its probe or by its old container, of which events tell nothing that ends it.
    let runs = |container: &Container| {
        container.status.as_ref().is_some_and(|status| matches!(status.state, State::Running(_)))
    };
    is_silent && is_late && given.was.keys().filter_map(|name| pod.container(name)).any(|container| !runs(container))
}
