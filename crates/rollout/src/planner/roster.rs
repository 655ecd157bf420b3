//! Every pod of the set, with what it has, what it needs, and how far it is.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use pillion_api::{PodRevision, Sidecar, Template, terminate_variable};
use pillion_plan::List;

use super::gate;
use super::write::{self, Change};
use crate::difference::{Difference, Place, lasting};
use crate::fleet::Fleet;
use crate::pod::{Pod, State, Status, Workload};
use crate::progress::RevisionCount;
use crate::sizers::Sizer;
use crate::swap::{Swap, swap};

/// All pods of the set. They are looked at once, because there are many and each is far from the other in memory.
pub(super) struct Roster<'a> {
    pub(super) members: Vec<Member<'a>>,
    /// The revisions they have, with the number of pods; the newest is the first.
    pub(super) revisions: Vec<(&'a str, RevisionCount)>,
    /// The workloads they belong to, with the number of their pods.
    pub(super) workloads: Vec<(Workload<'a>, usize)>,
    /// What keeps pods from following in place, in words; [`Need::Recreate`] points here.
    pub(super) obstacles: Vec<String>,
    /// What lies between revisions and the newest; [`Need::InPlace`] points here.
    changes: Vec<Change>,
    /// The containers of the set that run as long as a pod, in the newest revision.
    places: Vec<Place>,
    /// Those of them that end with the others: they may have become init containers when the pod was created.
    endings: BTreeSet<&'a str>,
}

/// A pod of the set.
#[derive(Clone, Copy)]
pub(super) struct Member<'a> {
    pub(super) pod: &'a Pod,
    /// What it was created with or given last, if that is known.
    pub(super) given: Option<&'a PodRevision>,
    /// The place of that in [`Roster::revisions`].
    revision: usize,
    /// When it was given that, in seconds.
    pub(super) since: Option<i64>,
    /// Whether the watch still has to show the last write of ours.
    pub(super) is_unseen: bool,
    /// Whether the health gate counts it.
    pub(super) is_unhealthy: bool,
    /// Whether it was brought back from the newest revision.
    pub(super) is_restored: bool,
    pub(super) swap: Swap<'a>,
    pub(super) need: Need,
    pub(super) workload: usize,
}

/// What a pod needs to have the newest revision.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Nothing,
    InPlace(usize),
    Recreate(usize),
}

/// What is known of one revision that pods have.
#[derive(Clone, Copy)]
enum Known {
    Nothing,
    Change(usize),
    Obstacle(usize),
    /// Its template is not known: images tell.
    No,
}

impl<'a> Roster<'a> {
    pub(super) fn of(fleet: &Fleet<'a>) -> Self {
        let places = lasting(&fleet.set.template)
            .into_iter()
            .map(|(name, (list, _))| Place { list, name: name.to_owned() })
            .collect();
        let endings = fleet.set.template.containers.iter().filter(|sidecar| ends_with_the_others(sidecar));
        let endings = endings.map(|sidecar| sidecar.name.as_str()).collect();
        let mut roster = Self {
            members: Vec::with_capacity(fleet.pods.len()),
            revisions: vec![(&fleet.set.revision, RevisionCount::default())],
            workloads: Vec::new(),
            obstacles: Vec::new(),
            // What is done for a pod of which only the images are known.
            changes: vec![Change::ByImages],
            places,
            endings,
        };
        let mut known = vec![Known::Nothing];
        // Where something else sizes the pods of a workload, less lies between the same revisions.
        let mut known_of_sized: BTreeMap<(usize, usize), Known> = BTreeMap::new();
        let mut workloads = Workloads::default();
        let settle = SignedDuration::from_secs(fleet.set.update.settle_seconds.into());
        for pod in fleet.pods {
            let unseen = fleet.own_writes.of(&pod.uid, &fleet.set.name, fleet.now);
            let given = unseen.or_else(|| pod.revisions.of(&fleet.set.name));
            let swap = match given {
                _ if unseen.is_some() => Swap::UnderWay,
                Some(given) if !given.was.is_empty() => {
                    let told = fleet.troubles.get(&pod.uid).map(String::as_str);
                    swap(pod, given, settle, told, fleet.now)
                }
                _ => Swap::Done,
            };
            let revision = given.map_or(usize::MAX, |given| roster.revision(fleet, &mut known, &given.is));
            let workload = workloads.place(pod, &mut roster.workloads);
            let mut known_here = known.get(revision).copied().unwrap_or(Known::No);
            if let Some(sizer) = fleet.sizers.of(pod)
                && let Some(template) = given.and_then(|given| fleet.templates.get(&given.is))
            {
                known_here = *known_of_sized
                    .entry((revision, workload))
                    .or_insert_with(|| roster.learn(fleet, template, Some(sizer)));
            }
            let need = roster.need(fleet, pod, known_here);
            let mut member = Member {
                pod,
                given,
                revision,
                since: given.and_then(|given| given.since),
                is_unseen: unseen.is_some(),
                is_unhealthy: false,
                is_restored: given
                    .is_some_and(|given| !given.altered && given.failed.as_deref() == Some(&*fleet.set.revision)),
                swap,
                need,
                workload,
            };
            member.is_unhealthy = gate::is_unhealthy(fleet, &roster.places, &member);
            if let Some((_, count)) = roster.revisions.get_mut(revision) {
                count.pods += 1;
                count.ready += usize::from(member.is_available());
            }
            roster.members.push(member);
        }
        roster
    }

    /// How many pods could follow in place and do not have the newest revision.
    pub(super) fn waiting(&self) -> usize {
        self.members.iter().filter(|member| matches!(member.need, Need::InPlace(_))).count()
    }

    /// What is changed in a pod that can follow in place.
    pub(super) fn change(&self, place: usize) -> &Change {
        &self.changes[place]
    }

    /// Whether all containers of the set run in a pod and are ready.
    pub(super) fn runs_well(&self, pod: &Pod) -> bool {
        self.places.iter().all(|place| {
            let status = pod.container(&place.name).and_then(|container| container.status.as_ref());
            status.is_some_and(Status::is_running_and_ready)
        })
    }

    /// When the last of the set's containers in a pod was started, as far as its node tells.
    pub(super) fn started(&self, pod: &Pod) -> Option<Timestamp> {
        let statuses = self.places.iter().filter_map(|place| pod.container(&place.name)?.status.as_ref());
        let started = statuses.filter_map(|status| match status.state {
            State::Running(since) => since,
            _ => None,
        });
        started.max()
    }

    fn revision(&mut self, fleet: &Fleet<'a>, known: &mut Vec<Known>, revision: &'a str) -> usize {
        if let Some(found) = self.revisions.iter().position(|(name, _)| *name == revision) {
            return found;
        }
        known.push(fleet.templates.get(revision).map_or(Known::No, |template| self.learn(fleet, template, None)));
        self.revisions.push((revision, RevisionCount::default()));
        self.revisions.len() - 1
    }

    fn learn(&mut self, fleet: &Fleet<'a>, old: &Template, sizer: Option<&Sizer>) -> Known {
        let mut difference = Difference::between(old, &fleet.set.template);
        if let Some(sizer) = sizer {
            sizer.take_out(&mut difference);
        }
        if difference.is_nothing_for_running_pods() {
            return Known::Nothing;
        }
        let mut obstacles = difference.recreate.clone();
        if !fleet.set.update.resize {
            obstacles.extend(difference.resources.iter().map(|place| format!("resources of container {}", place.name)));
        }
        if obstacles.is_empty() {
            self.changes.push(Change::between(old, &fleet.set.template, &difference));
            Known::Change(self.changes.len() - 1)
        } else {
            Known::Obstacle(self.obstacle(obstacles.join(", ")))
        }
    }

    fn need(&mut self, fleet: &Fleet<'a>, pod: &Pod, known: Known) -> Need {
        let change = match known {
            Known::Nothing => return Need::Nothing,
            Known::Obstacle(obstacle) => return Need::Recreate(obstacle),
            Known::Change(change) => change,
            Known::No => 0,
        };
        if let Some(missing) = self.missing(pod) {
            return Need::Recreate(self.obstacle(missing));
        }
        if matches!(known, Known::No) && write::has_images(pod, &fleet.set.template) {
            return Need::Nothing;
        }
        match write::wrong_resources(pod, &self.changes[change]) {
            Some(wrong) => Need::Recreate(self.obstacle(wrong)),
            None => Need::InPlace(change),
        }
    }

    fn missing(&self, pod: &Pod) -> Option<String> {
        let is_there = |place: &&Place| {
            let ends = self.endings.contains(&*place.name);
            let is_in_place = |list| list == place.list || (ends && list == List::Init);
            pod.container(&place.name).is_some_and(|own| is_in_place(own.list))
        };
        let missing = self.places.iter().find(|place| !is_there(place))?;
        Some(format!("container {} is missing", missing.name))
    }

    fn obstacle(&mut self, words: String) -> usize {
        self.obstacles.iter().position(|known| *known == words).unwrap_or_else(|| {
            self.obstacles.push(words);
            self.obstacles.len() - 1
        })
    }
}

impl Member<'_> {
    /// Whether it serves: it is ready, and runs what it was given.
    pub(super) fn is_available(&self) -> bool {
        self.pod.is_ready && self.swap.is_done()
    }

    /// Whether it was given the newest revision.
    pub(super) fn has_newest(&self) -> bool {
        self.revision == 0
    }
}

/// Whether a container is ended with the others, by our mark or by one of `OpenKruise`'s variables.
fn ends_with_the_others(sidecar: &Sidecar) -> bool {
    sidecar.ends_with_the_others || terminate_variable(&sidecar.container).is_some()
}

/// Which workload a pod belongs to. Pods of one owner do, so its name is made out once for each.
#[derive(Default)]
pub(super) struct Workloads<'a> {
    by_owner: BTreeMap<&'a str, usize>,
    by_name: BTreeMap<Workload<'a>, usize>,
    last: Option<(&'a str, usize)>,
}

impl<'a> Workloads<'a> {
    /// The place of a pod's workload among all, which are counted.
    pub(super) fn place(&mut self, pod: &'a Pod, all: &mut Vec<(Workload<'a>, usize)>) -> usize {
        let owner = pod.owner.as_ref().map_or(&*pod.uid, |owner| &*owner.uid);
        let place = match self.last {
            // Pods come in the order of their names, so those of one owner come together.
            Some((last, place)) if last == owner => place,
            _ => *self.by_owner.entry(owner).or_insert_with(|| {
                let workload = pod.workload();
                *self.by_name.entry(workload.clone()).or_insert_with(|| {
                    all.push((workload, 0));
                    all.len() - 1
                })
            }),
        };
        self.last = Some((owner, place));
        all[place].1 += 1;
        place
    }
}
