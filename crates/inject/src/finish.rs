//! How sidecars are ended when all other containers of a pod have ended for good, so that a Job can finish.
//!
//! - [`marks`]: which containers are sidecars: by a set, by the pod itself, by `OpenKruise`'s variables.
//! - [`native`]: one that becomes an init container with `restartPolicy: Always`, which the node ends after the others.
//! - [`wrap`]: one whose command is run by our agent, which ends it.
//!
//! It comes after all sets: what they added is marked and counted like the rest. A container that is as it should be stays,
//! so a second review, and a copy of the pod, change nothing.

mod marks;
mod native;
mod wrap;

use pillion_api::{Finish, FinishMode, Reason, SidecarKind, TERMINATE_WITH_IMAGE, Template};
use serde_json::{Map, Value};

use crate::decision::{Ending, Refusal, Warning};
use crate::evaluate::sidecars;
use crate::pod::Pod;
use marks::Marked;
pub use marks::mentions_variable;
use pillion_pod::{Editor, Step};
pub use wrap::is_wrapped_sidecar;
pub(crate) use wrap::{unwrap, unwrap_container};

const CONTAINERS: &[Step<'_>] = &[Step::Key("spec"), Step::Key("containers")];
const INIT_CONTAINERS: &[Step<'_>] = &[Step::Key("spec"), Step::Key("initContainers")];

/// How an installation finishes pods.
#[derive(Clone, Copy, Debug, Default)]
pub struct Finishing<'a> {
    /// What runs sidecars of mode Wrap; `None` where nobody said.
    pub agent: Option<&'a Agent>,
}

/// What runs the containers of pods in mode Wrap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agent {
    /// The image it is copied from.
    pub image: String,
    /// Secrets to pull that image with.
    pub pull_secrets: Vec<String>,
    /// Resources of the init container that copies it, as a pod has them.
    pub resources: Map<String, Value>,
}

/// A set whose sidecars a pod has.
#[derive(Clone, Copy)]
pub(crate) struct Present<'a> {
    pub(crate) name: &'a str,
    pub(crate) finish: Finish,
    pub(crate) template: &'a Template,
}

/// Who asked for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source<'a> {
    /// A set: what follows of a refusal is its failurePolicy.
    Set(&'a str),
    /// The pod.
    Pod,
}

/// Why a sidecar cannot be ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failed<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) refusal: Refusal,
}

impl<'a> Failed<'a> {
    fn new(source: Source<'a>, reason: Reason, message: impl Into<String>) -> Self {
        Self { source, refusal: Refusal::new(reason, message) }
    }
}

/// Whether a template asks for a container to be ended that Kubernetes would not end by itself.
pub(crate) fn asks(template: &Template) -> bool {
    sidecars(template).any(|sidecar| sidecar.ends_with_the_others && sidecar.kind == SidecarKind::Container)
}

/// Sees to it that the marked containers of a pod end, and tells how.
///
/// The pod has been read before, and all additions are well-formed; what cannot be read all the same has no marks.
pub(crate) fn finish<'a>(
    editor: &mut Editor,
    sets: &[Present<'a>],
    finishing: Finishing<'_>,
) -> Result<Vec<Ending>, Failed<'a>> {
    let Ok(pod) = Pod::read(editor.pod()) else { return Ok(Vec::new()) };
    let marked = marks::marked(&pod, sets)?;
    let Some(first) = marked.iter().find(|marked| !marked.is_init) else {
        return Ok(marked.iter().map(|marked| ending(marked, Reason::EndsAsNative)).collect());
    };
    let mains: Vec<&str> = pod.containers.iter().map(|container| container.name).collect();
    let mains: Vec<&str> =
        mains.into_iter().filter(|name| !marked.iter().any(|it| !it.is_init && it.name == *name)).collect();
    if mains.is_empty() {
        let names: Vec<&str> = pod.containers.iter().map(|container| container.name).collect();
        let message = format!("all containers ({}) are sidecars, and nothing is left to wait for", names.join(", "));
        return Err(Failed::new(first.source, Reason::OnlySidecars, message));
    }
    let (wrapped, moved): (Vec<&Marked<'a>>, Vec<&Marked<'a>>) =
        marked.iter().filter(|marked| !marked.is_init).partition(|marked| marked.mode == FinishMode::Wrap);
    for marked in &moved {
        native::check(&pod, marked)?;
    }
    let plan = wrap::plan(&pod, &wrapped, &mains, sets, finishing.agent)?;
    let how = |marked: &Marked<'_>| match (marked.is_init, marked.mode) {
        (false, FinishMode::Wrap) if plan.is_some() => Reason::EndsByAgent,
        (false, FinishMode::Wrap) => Reason::EndsNever,
        _ => Reason::EndsAsNative,
    };
    let endings = marked.iter().map(|marked| ending(marked, how(marked))).collect();
    let moved: Vec<String> = moved.iter().map(|marked| marked.name.clone()).collect();
    if let Some(plan) = plan {
        plan.apply(editor, &moved);
    } else {
        native::apply(editor, &moved);
    }
    Ok(endings)
}

fn ending(marked: &Marked<'_>, reason: Reason) -> Ending {
    let message = match reason {
        Reason::EndsByAgent => "the agent ends it when all others have ended",
        Reason::EndsNever => "mode Wrap ends nothing in a pod with restartPolicy Always, which never ends by itself",
        _ => "the node ends it after all others, as a native sidecar",
    };
    let warnings = marked.image_is_ignored.then(|| Warning {
        reason: Reason::MarkImageIgnored,
        message: format!("the image in {TERMINATE_WITH_IMAGE} is not used"),
    });
    Ending {
        container: marked.name.clone(),
        reason,
        message: message.to_owned(),
        warnings: warnings.into_iter().collect(),
    }
}
