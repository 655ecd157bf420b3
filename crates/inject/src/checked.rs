//! The sidecars that a pod really has, where it says that it was injected before.

use std::collections::{BTreeMap, BTreeSet};

use pillion_api::{PodRevision, Template};

use crate::evaluate::{sidecars, used_volumes};
use crate::inject::Candidate;
use crate::likeness::{Likeness, likeness};
use crate::marks;
use crate::pod::Pod;
use crate::volume;

/// The containers of a pod, compared with what the sets give that they claim to be of.
#[derive(Debug, Default)]
pub(crate) struct Checked<'a> {
    /// Sets of which the pod has a container.
    pub(crate) present: BTreeMap<&'a str, PresentRevision<'a>>,
    /// Containers that are not what any set gives that they claim to be of.
    pub(crate) forged: BTreeSet<&'a str>,
}

/// The revision of a set of which a pod has containers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PresentRevision<'a> {
    name: &'a str,
    /// True if another admission plugin, or the author of the pod, has changed a container or a volume.
    pub(crate) is_altered: bool,
}

impl PresentRevision<'_> {
    pub(crate) fn revision(self) -> PodRevision {
        if self.is_altered { PodRevision::altered(self.name) } else { PodRevision::new(self.name) }
    }
}

impl<'a> Checked<'a> {
    pub(crate) fn of(pod: &Pod<'a>, candidates: &[Candidate<'a>], finishes: bool) -> Self {
        let applied = marks::names(pod.annotations.get(marks::INJECTED_SETS).copied());
        let mut checked = Self::default();
        let mut genuine: BTreeSet<&str> = BTreeSet::new();
        for candidate in candidates.iter().filter(|candidate| applied.contains(&candidate.set.name)) {
            let Ok(template) = candidate.template() else { continue };
            let mut is_altered = !has_volumes(pod, template);
            let mut is_present = false;
            for sidecar in sidecars(template) {
                let Some(container) = pod.container(&sidecar.name).filter(|container| container.is_injected) else {
                    continue;
                };
                let likeness = likeness(pod, sidecar, container, finishes);
                if likeness == Likeness::Different {
                    checked.forged.insert(container.name);
                } else {
                    is_present = true;
                    is_altered |= likeness == Likeness::Altered;
                    genuine.insert(container.name);
                }
            }
            if is_present {
                let present = PresentRevision { name: candidate.revision(), is_altered };
                checked.present.insert(&candidate.set.name, present);
            }
        }
        checked.forged.retain(|name| !genuine.contains(name));
        checked
    }
}

/// Returns true if no volume of a set is another one in the pod.
fn has_volumes(pod: &Pod<'_>, template: &Template) -> bool {
    used_volumes(template).all(|wanted| {
        pod.volumes.get(wanted.name.as_str()).is_none_or(|present| volume::is_same(&wanted.volume, present))
    })
}
