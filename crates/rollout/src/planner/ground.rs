//! The facts a plan is checked against, from the same pods, by the shortest way there is.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use pillion_api::{SetMode, UpdateType};
use pillion_plan::{Budget, Facts, Ground, Ours, Plan};

use super::allowance::workload_max;
use super::roster::Workloads;
use super::write::has_images;
use crate::difference::Difference;
use crate::fleet::Fleet;
use crate::pod::Pod;
use crate::share::{effective_max_unavailable, pinned_target};
use crate::swap::swap;

/// The facts about a fleet that a plan for it is checked against.
pub fn ground<'a>(fleet: &Fleet<'a>, plan: &Plan) -> Ground<'a> {
    let update = &fleet.set.update;
    let all = fleet.pods.len();
    let (mut places, mut workloads) = (Workloads::default(), Vec::new());
    let mut revisions = BTreeMap::new();
    let pods: BTreeMap<&'a str, Facts<'a>> = fleet
        .pods
        .iter()
        .map(|pod| (&*pod.uid, facts(fleet, pod, places.place(pod, &mut workloads), &mut revisions)))
        .collect();
    let uids: BTreeSet<&str> = plan.actions.iter().map(|action| &*action.update().uid).collect();
    let written = || fleet.pods.iter().copied().filter(|pod| uids.contains(&*pod.uid));
    let is_held =
        fleet.is_off || update.paused || update.kind == UpdateType::NotUpdate || fleet.set.mode == SetMode::Observe;
    Ground {
        set: &fleet.set.name,
        newest: &fleet.set.revision,
        is_held,
        may_restore: update.gate.rollback && !is_held,
        max_unavailable: effective_max_unavailable(update.max_unavailable, all),
        pinned: pinned_target(update.partition, all),
        workloads: workloads.iter().map(|(_, pods)| workload_max(update.max_unavailable, *pods)).collect(),
        ours: written().map(|pod| (&*pod.uid, ours(pod))).collect(),
        budgets: budgets(fleet, &pods, &uids),
        pods,
    }
}

fn facts<'a>(
    fleet: &Fleet<'a>,
    pod: &'a Pod,
    workload: usize,
    revisions: &mut BTreeMap<(&'a str, usize), Option<bool>>,
) -> Facts<'a> {
    let update = &fleet.set.update;
    let unseen = fleet.own_writes.of(&pod.uid, &fleet.set.name, fleet.now);
    let given = pod.revisions.of(&fleet.set.name);
    let settle = SignedDuration::from_secs(update.settle_seconds.into());
    // Whether a pod of a revision has all it will ever see; `None` where the revision is not known.
    let is_enough = |revision: &str| {
        let mut difference = Difference::between(fleet.templates.get(revision)?, &fleet.set.template);
        if let Some(sizer) = fleet.sizers.of(pod) {
            sizer.take_out(&mut difference);
        }
        Some(difference.is_nothing_for_running_pods())
    };
    let has = unseen.or(given).map(|given| given.is.as_str());
    let is_newest =
        has.and_then(|revision| *revisions.entry((revision, workload)).or_insert_with(|| is_enough(revision)));
    let unfinished = given.filter(|given| !swap(pod, given, settle, None, fleet.now).is_done());
    Facts {
        namespace: &pod.namespace,
        name: &pod.name,
        is_excluded: fleet.left_alone.contains(&&*pod.namespace),
        is_selected: update.selector.as_ref().is_none_or(|selector| selector.matches(|key| pod.label(key))),
        is_ready: pod.is_ready,
        swaps_to: unseen.or(unfinished).map(|given| given.is.as_str()),
        is_newest: has == Some(&fleet.set.revision)
            || is_newest.unwrap_or_else(|| has_images(pod, &fleet.set.template)),
        record: pod.record.as_deref(),
        workload,
    }
}

fn ours(pod: &Pod) -> Vec<Ours<'_>> {
    let containers = pod.containers.iter();
    containers.map(|it| Ours { list: it.list, index: it.index, name: &it.name, image: &it.image }).collect()
}

fn budgets<'a>(fleet: &Fleet<'a>, facts: &BTreeMap<&'a str, Facts<'a>>, written: &BTreeSet<&str>) -> Vec<Budget<'a>> {
    let is_swapping = |pod: &Pod| facts.get(&*pod.uid).is_some_and(|it| it.swaps_to.is_some());
    let concerned = fleet.pods.iter().copied().filter(|pod| written.contains(&*pod.uid) || is_swapping(pod));
    let concerned: Vec<&'a Pod> = concerned.collect();
    let budgets = fleet.budgets.iter().map(|budget| Budget {
        name: format!("{}/{}", budget.namespace, budget.name),
        allowed: budget.allowed,
        pods: concerned.iter().filter(|pod| budget.selects(pod)).map(|pod| &*pod.uid).collect(),
    });
    budgets.filter(|budget| !budget.pods.is_empty()).collect()
}
