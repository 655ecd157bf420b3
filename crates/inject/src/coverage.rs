//! Which sidecars a pod that exists carries, which it should carry and does not, and which nobody expects it to carry.
//!
//! - [`standings`]: how a pod stands to every set that matches it.
//! - [`Coverage`]: how all pods stand, counted per set, kept in step with one pod at a time.
//!
//! A pod without sidecars is *missed* only if nothing else explains it: it was created after the set's present selector
//! was first observed, the set injects, and no record says why it was left out. One that is older *predates* the set.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use pillion_api::{Meaning, Reason, SetMode};

use crate::inject::Installation;
use crate::marks;
use crate::namespace::Namespace;
use crate::record::Record;
use crate::set_index::SetIndex;

mod tally;

pub use tally::{Coverage, Step, Tally};

/// A pod that exists, as far as it is looked at here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivingPod {
    /// Its labels.
    pub labels: Arc<[(Box<str>, Box<str>)]>,
    /// When it was created. The API server tells whole seconds.
    pub created: Timestamp,
    /// Whether it is on its way out.
    pub is_deleting: bool,
    /// Whether its condition Ready is True, as far as is known.
    pub is_ready: bool,
    /// What was done to it.
    pub marks: Arc<Marks>,
}

/// What the marks of a pod tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Sets whose sidecars it carries, sorted.
    carried: Box<[Box<str>]>,
    /// Sets its record names as left out, with the reason, sorted.
    left_out: Box<[(Box<str>, Reason)]>,
    /// Whether the record had no room for all sets.
    is_cut: bool,
}

/// How a pod stands to a set that matches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It carries the sidecars.
    Carries,
    /// Its record says why it does not.
    LeftOut(Reason),
    /// It does not, and nobody expects it at present: [`Reason::InjectionPaused`], [`Reason::Observed`] or
    /// [`Reason::SwitchedOff`].
    Excused(Reason),
    /// It does not, and should.
    Missed,
    /// It does not, and is older than the present selector.
    Predates,
}

impl Marks {
    /// Reads the marks of a pod. `None` for the copy of a static pod, which nothing can be done to.
    ///
    /// Beside our label the list of sets counts only if a container was injected. Without our label it is `OpenKruise`'s
    /// list, which is taken at its word.
    pub fn read<'a>(
        annotation: impl Fn(&str) -> Option<&'a str>,
        is_labelled: bool,
        has_injected_container: bool,
    ) -> Option<Self> {
        if annotation(marks::MIRROR).is_some() {
            return None;
        }
        let is_believed = !is_labelled || has_injected_container;
        let listed = annotation(marks::INJECTED_SETS).filter(|_| is_believed);
        let carried: Box<[Box<str>]> = marks::names(listed).into_iter().map(Into::into).collect();
        let record = annotation(marks::DECISION).and_then(Record::parse);
        let is_cut = record.as_ref().is_some_and(Record::lacks_sets);
        // What says "applied" beside no sidecar explains nothing.
        let left_out = record.into_iter().flat_map(|record| record.sets).filter(|(_, entry)| !entry.was_applied());
        let left_out = left_out.map(|(set, entry)| (set.into(), entry.code.parse().unwrap_or(Reason::RecordTruncated)));
        Some(Self { carried, left_out: left_out.collect(), is_cut })
    }

    /// What they say of a set by name.
    fn of(&self, set: &str) -> Option<Standing> {
        // Before the list, which may be older: a pod can be created with one.
        let left_out = self.left_out.iter().find(|(name, _)| **name == *set);
        let left_out = left_out.map(|(_, reason)| Standing::LeftOut(*reason));
        left_out.or_else(|| self.carried.iter().any(|carried| **carried == *set).then_some(Standing::Carries))
    }
}

/// How a pod stands to every set that matches it, by name. `since` tells when the present selector of a set was first
/// observed.
///
/// Pods that are on their way out, and those of namespaces that are left alone, stand to no set.
pub fn standings(
    pod: &LivingPod,
    namespace: &Namespace,
    sets: &SetIndex,
    installation: Installation<'_>,
    since: impl Fn(&Meaning) -> Option<Timestamp>,
) -> BTreeMap<String, Standing> {
    if pod.is_deleting || namespace.is_excluded(installation.own_namespace) {
        return BTreeMap::new();
    }
    let carried = pod.marks.carried.iter().map(AsRef::as_ref);
    let asked = sets.asked_before(&pod.labels, namespace, carried, |name| pod.marks.of(name).is_some());
    asked.into_iter().map(|set| (set.name.clone(), standing(pod, set, installation, since(set)))).collect()
}

fn standing(pod: &LivingPod, set: &Meaning, installation: Installation<'_>, since: Option<Timestamp>) -> Standing {
    if let Some(standing) = pod.marks.of(&set.name) {
        return standing;
    }
    if pod.marks.is_cut {
        return Standing::LeftOut(Reason::RecordTruncated);
    }
    if let Some(reason) = excuse(set, installation) {
        return Standing::Excused(reason);
    }
    match since {
        Some(since) if pod.created > since => Standing::Missed,
        _ => Standing::Predates,
    }
}

/// Why no pod of a set gets its sidecars at present; `None` if pods do.
pub fn excuse(set: &Meaning, installation: Installation<'_>) -> Option<Reason> {
    if installation.is_off {
        return Some(Reason::SwitchedOff);
    }
    if set.injection.paused {
        return Some(Reason::InjectionPaused);
    }
    let observes = installation.mode == SetMode::Observe || set.mode == SetMode::Observe;
    observes.then_some(Reason::Observed)
}
