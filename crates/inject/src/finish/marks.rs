//! Which containers of a pod are marked as sidecars, by whom, and how they want to be ended.

use std::collections::BTreeSet;

use pillion_api::{Finish, FinishMode, FinishWatch, Reason, TERMINATE, TERMINATE_WITH_IMAGE, terminate_variable};

use super::{Failed, Present, Source, wrap};
use crate::evaluate::sidecars;
use crate::marks;
use crate::pod::Pod;

/// A container that is to be ended when the others have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Marked<'a> {
    pub(super) name: String,
    pub(super) source: Source<'a>,
    pub(super) mode: FinishMode,
    pub(super) watch: FinishWatch,
    /// Whether it is a native sidecar already.
    pub(super) is_init: bool,
    /// Whether `OpenKruise` would have ended it with another image.
    pub(super) image_is_ignored: bool,
}

/// Whether the bytes of a pod may hold one of `OpenKruise`'s marks, without reading them.
pub fn mentions_variable(pod: &str) -> bool {
    pod.contains(TERMINATE)
}

/// The marked containers, in the order of the pod; native sidecars last.
pub(super) fn marked<'a>(pod: &Pod<'_>, sets: &[Present<'a>]) -> Result<Vec<Marked<'a>>, Failed<'a>> {
    let named = marks::names(pod.annotations.get(marks::SIDECARS).copied());
    check_names(pod, &named)?;
    let all = pod.containers.iter().map(|container| (container, false));
    let native = pod.init_containers.iter().filter(|it| it.is_native_sidecar()).map(|container| (container, true));
    let mut found = Vec::new();
    for (container, is_init) in all.chain(native) {
        let by_set = |is_asked: bool| {
            let mut own = sets.iter().filter(|set| {
                sidecars(set.template)
                    .any(|sidecar| sidecar.name == container.name && (sidecar.ends_with_the_others || !is_asked))
            });
            own.next()
        };
        let variable = terminate_variable(container.json);
        let set = by_set(true).or_else(|| by_set(false).filter(|_| variable.is_some()));
        let is_wrapped = !is_init && wrap::is_wrapped_sidecar(container.json);
        if set.is_none() && !named.contains(container.name) && variable.is_none() && !is_wrapped {
            continue;
        }
        // How to end a sidecar concerns only a pod that has one.
        let chosen = Chosen::read(pod)?;
        let Finish { mode, watch } = set.map(|set| set.finish).unwrap_or_default();
        found.push(Marked {
            name: container.name.to_owned(),
            source: set.map_or(Source::Pod, |set| Source::Set(set.name)),
            // What the agent runs already stays with it.
            mode: if is_wrapped { FinishMode::Wrap } else { chosen.mode.unwrap_or(mode) },
            watch: chosen.watch.unwrap_or(watch),
            is_init,
            image_is_ignored: variable == Some(TERMINATE_WITH_IMAGE),
        });
    }
    Ok(found)
}

/// What the pod itself says, which wins over what sets say.
struct Chosen {
    mode: Option<FinishMode>,
    watch: Option<FinishWatch>,
}

impl Chosen {
    fn read<'a>(pod: &Pod<'_>) -> Result<Self, Failed<'a>> {
        let mode = choice(pod, marks::FINISH_MODE, [("Native", FinishMode::Native), ("Wrap", FinishMode::Wrap)])?;
        let watch = choice(pod, marks::FINISH_WATCH, [("locks", FinishWatch::Locks), ("pod", FinishWatch::Pod)])?;
        Ok(Self { mode, watch })
    }
}

fn choice<'a, T: Copy>(pod: &Pod<'_>, key: &str, words: [(&str, T); 2]) -> Result<Option<T>, Failed<'a>> {
    let Some(value) = pod.annotations.get(key) else { return Ok(None) };
    let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(value.trim()));
    found.map(|(_, choice)| Some(*choice)).ok_or_else(|| {
        let [(one, _), (other, _)] = words;
        let message = format!("annotation {key} is {value:?}: write {one} or {other}");
        Failed::new(Source::Pod, Reason::UnknownFinish, message)
    })
}

/// Every name must be that of a container that can be a sidecar.
fn check_names<'a>(pod: &Pod<'_>, named: &BTreeSet<String>) -> Result<(), Failed<'a>> {
    for name in named {
        let message = match pod.container(name) {
            Some(_) if pod.containers.iter().any(|container| container.name == name) => continue,
            Some(container) if container.is_native_sidecar() => continue,
            Some(_) => format!(
                "annotation {} names {name}, a plain init container: give it restartPolicy: Always instead",
                marks::SIDECARS
            ),
            None => {
                let names: Vec<&str> = pod.containers.iter().map(|container| container.name).collect();
                format!("annotation {} names {name} (there are: {})", marks::SIDECARS, names.join(", "))
            }
        };
        return Err(Failed::new(Source::Pod, Reason::UnknownSidecar, message));
    }
    Ok(())
}
