//! What is learned of containers: samples come in, recommendations and checkpoints go out. Nothing here waits or asks.
//!
//! One aggregate for each container of an autoscaler, and one small entry for each container of a pod, which knows its
//! aggregate by number: a sample finds its place by the names of its pod and container, and nothing is compared with labels
//! unless a pod or an autoscaler changed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use pillion_api::{Condition, Selector, VerticalPodAutoscalerCheckpointStatus};
use pillion_rightsize::{
    Aggregate, Autoscaler, ContainerKind, ContainerType, Instance, Oom, Pod, Recommendation, Settings, recommend,
};
use pillion_runtime::watch::Key;

use super::source::{Sample, Taker};

/// A checkpoint is written where this part of its samples is new.
const GROWN_BY_PART: u64 = 10;
/// Less history than this part of the confidence interval is little.
const LITTLE_PART: u32 = 24;

/// What stands behind a target: which pods it selects, and what containers its template has.
pub type Behind<'a> = (&'a Selector, &'a [(Box<str>, ContainerType)]);

/// Learns of all containers.
pub struct Learner {
    settings: Settings,
    autoscalers: BTreeMap<Key, Learned>,
    aggregates: Vec<Option<Slot>>,
    free: Vec<u32>,
    /// By namespace and name.
    pods: HashMap<Box<str>, HashMap<Box<str>, Observed>>,
    /// By namespace.
    matchers: HashMap<Box<str>, Matcher>,
}

/// An autoscaler with what is known of its containers.
struct Learned {
    meaning: Arc<Autoscaler>,
    selector: Option<Selector>,
    /// What a template says of containers.
    template: Box<[(Box<str>, ContainerType)]>,
    /// Aggregates by container.
    containers: BTreeMap<Arc<str>, u32>,
    /// How many pods it has that run.
    pods: usize,
}

struct Slot {
    autoscaler: Key,
    container: Arc<str>,
    aggregate: Aggregate,
    /// What it was when it was last seen in a pod.
    kind: Option<ContainerType>,
    /// In how many running pods it is.
    live: usize,
    saved: Option<Saved>,
    is_changed: bool,
    /// Whether there was a sample since it was made or read.
    is_fresh: bool,
    /// It ran out of memory, which the next start must know.
    is_urgent: bool,
}

/// What a checkpoint holds.
#[derive(Clone, Copy)]
struct Saved {
    at: Timestamp,
    samples: u64,
}

/// A pod, as far as samples go.
struct Observed {
    uid: Box<str>,
    is_ended: bool,
    entries: Box<[Entry]>,
}

struct Entry {
    slot: u32,
    /// The same as in the slot; there are many pods and few names.
    container: Arc<str>,
    kind: ContainerType,
    instance: Instance,
    /// The end by lack of memory that was taken last.
    oom: Option<Timestamp>,
    /// The memory it used when it was last looked at; below zero where it was not.
    memory: i64,
}

/// Which autoscalers of a namespace select a pod, found by its labels.
#[derive(Default)]
struct Matcher {
    /// By a label that they require, and its value.
    by_label: HashMap<(Box<str>, Box<str>), Vec<Key>>,
    /// Those that require no label with one value.
    others: Vec<Key>,
}

/// What there is to say of an autoscaler.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// What is recommended.
    pub recommendation: Recommendation,
    /// Containers that are recommended for, and which of them are native sidecars.
    pub sidecars: Vec<String>,
    /// How many pods run.
    pub pods: usize,
    /// Containers of which only a checkpoint is known. It has no peak of memory that is younger than a window: what was
    /// published before is worth more.
    pub stale: Vec<String>,
    /// Containers with so little history that their bounds say little.
    pub little: Vec<String>,
}

/// A checkpoint that should be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Due {
    /// The autoscaler.
    pub autoscaler: Key,
    /// The container.
    pub container: Arc<str>,
    /// What it should hold.
    pub status: VerticalPodAutoscalerCheckpointStatus,
    samples: u64,
}

impl Learner {
    /// One that knows nothing.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            autoscalers: BTreeMap::new(),
            aggregates: Vec::new(),
            free: Vec::new(),
            pods: HashMap::new(),
            matchers: HashMap::new(),
        }
    }

    /// Whether an autoscaler is known.
    pub fn knows(&self, key: &Key) -> bool {
        self.autoscalers.contains_key(key)
    }

    /// How many autoscalers and aggregates there are.
    pub fn counts(&self) -> (usize, usize) {
        (self.autoscalers.len(), self.aggregates.len() - self.free.len())
    }

    /// All autoscalers.
    pub fn autoscalers(&self) -> impl Iterator<Item = &Key> {
        self.autoscalers.keys()
    }

    /// Takes an autoscaler with what stands behind its target; `None` leaves that as it was: who cannot be found for a
    /// while loses nothing. True where pods of its namespace must be observed again.
    pub fn set(&mut self, key: &Key, meaning: Arc<Autoscaler>, behind: Option<Behind<'_>>) -> bool {
        let learned = self.autoscalers.entry(key.clone()).or_insert_with(|| Learned {
            meaning: Arc::clone(&meaning),
            selector: None,
            template: Box::default(),
            containers: BTreeMap::new(),
            pods: 0,
        });
        learned.meaning = meaning;
        let Some((selector, template)) = behind else { return false };
        if *learned.template != *template {
            learned.template = template.into();
        }
        if learned.selector.as_ref() == Some(selector) {
            return false;
        }
        learned.selector = Some(selector.clone());
        self.matchers.remove(&key.namespace);
        true
    }

    /// Forgets an autoscaler that is gone.
    pub fn remove(&mut self, key: &Key) {
        let Some(learned) = self.autoscalers.remove(key) else { return };
        self.free_slots(&key.namespace, &learned.containers.into_values().collect());
        self.matchers.remove(&key.namespace);
    }

    /// Takes what a checkpoint holds of a container of an autoscaler that is known. What was learned since stays.
    pub fn load(
        &mut self,
        key: &Key,
        container: &str,
        saved: &VerticalPodAutoscalerCheckpointStatus,
    ) -> Result<(), String> {
        let aggregate = Aggregate::load(saved, &self.settings)?;
        let Some(number) = self.slot(key, container, Timestamp::UNIX_EPOCH) else { return Ok(()) };
        let Some(slot) = &mut self.aggregates[number as usize] else { return Ok(()) };
        let at = saved.last_update_time.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
        slot.saved = Some(Saved { at, samples: aggregate.samples() });
        slot.aggregate = aggregate;
        Ok(())
    }

    /// Takes how a pod is now, or that it is gone.
    pub fn observe(&mut self, key: &Key, pod: Option<&Pod>) {
        let before = self.pods.get_mut(&key.namespace).and_then(|pods| pods.remove(&key.name));
        if let Some(before) = &before {
            self.count(before, false);
        }
        let Some(pod) = pod else { return };
        let observed = self.observed(pod, before.filter(|before| before.uid == pod.uid));
        if observed.entries.is_empty() {
            return;
        }
        self.count(&observed, true);
        self.pods.entry(key.namespace.clone()).or_default().insert(key.name.clone(), observed);
    }

    /// The memory a container used when it was last looked at.
    pub fn memory_used(&self, namespace: &str, pod: &str, container: &str) -> Option<i64> {
        let entries = &self.pods.get(namespace)?.get(pod)?.entries;
        entries.iter().find(|entry| *entry.container == *container).map(|entry| entry.memory).filter(|used| *used >= 0)
    }

    /// What there is to say of an autoscaler.
    pub fn findings(&self, key: &Key) -> Option<Findings> {
        let learned = self.autoscalers.get(key)?;
        let slots = learned.containers.values().filter_map(|slot| self.aggregates[*slot as usize].as_ref());
        let containers: Vec<(&str, ContainerType, &Aggregate)> = slots
            .filter_map(|slot| Some((&*slot.container, kind(learned, slot)?, &slot.aggregate)))
            .filter(|(_, kind, _)| kind.is_served(&self.settings))
            .collect();
        let recommendation = recommend(&containers, |name| learned.meaning.policy(name), &self.settings);
        let recommended = || containers.iter().filter(|(name, ..)| recommendation.of(name).is_some());
        let sidecars = recommended().filter(|(_, kind, _)| *kind == ContainerType::NativeSidecar);
        let sidecars = sidecars.map(|(name, ..)| (*name).to_owned()).collect();
        let little = recommended().filter(|(.., aggregate)| self.is_little(aggregate));
        let little = little.map(|(name, ..)| (*name).to_owned()).collect();
        let is_stale = |name: &str| {
            let slot = learned.containers.get(name).and_then(|slot| self.aggregates[*slot as usize].as_ref());
            slot.is_some_and(|slot| !slot.is_fresh)
        };
        let stale = recommended().map(|(name, ..)| *name).filter(|name| is_stale(name)).map(str::to_owned).collect();
        Some(Findings { sidecars, stale, little, recommendation, pods: learned.pods })
    }

    /// Checkpoints that should be written now: there is none yet, it holds a tenth less than is known, a container ran out of
    /// memory, or it is so old and there is something new.
    pub fn due(&self, now: Timestamp, interval: Duration) -> Vec<Due> {
        let is_due = |slot: &Slot| {
            let samples = slot.aggregate.samples();
            let is_old = |saved: &Saved| now.duration_since(saved.at).unsigned_abs() >= interval;
            let has_grown = |saved: &Saved| samples.saturating_sub(saved.samples) > saved.samples / GROWN_BY_PART;
            slot.is_changed
                && (slot.is_urgent || slot.saved.as_ref().is_none_or(|saved| has_grown(saved) || is_old(saved)))
        };
        let slots = self.aggregates.iter().enumerate();
        let slots = slots.filter_map(|(number, slot)| Some((u32::try_from(number).ok()?, slot.as_ref()?)));
        let mut due: BTreeMap<u32, (&Slot, Vec<&Instance>)> =
            slots.filter(|(_, slot)| is_due(slot)).map(|(number, slot)| (number, (slot, Vec::new()))).collect();
        if due.is_empty() {
            return Vec::new();
        }
        for entry in self.pods.values().flat_map(HashMap::values).flat_map(|pod| &pod.entries) {
            if let Some((_, instances)) = due.get_mut(&entry.slot) {
                instances.push(&entry.instance);
            }
        }
        due.into_values()
            .map(|(slot, instances)| Due {
                autoscaler: slot.autoscaler.clone(),
                container: Arc::clone(&slot.container),
                status: slot.aggregate.save(instances, now),
                samples: slot.aggregate.samples(),
            })
            .collect()
    }

    /// A checkpoint was written.
    pub fn saved(&mut self, due: &Due, now: Timestamp) {
        let slot = self.autoscalers.get(&due.autoscaler).and_then(|learned| learned.containers.get(&due.container));
        if let Some(slot) = slot.and_then(|slot| self.aggregates[*slot as usize].as_mut()) {
            slot.saved = Some(Saved { at: now, samples: due.samples });
            slot.is_changed = slot.aggregate.samples() != due.samples;
            slot.is_urgent = false;
        }
    }

    /// Forgets what is so old that it is no longer true. Checkpoints stay.
    pub fn expire(&mut self, now: Timestamp) {
        let Self { autoscalers, aggregates, settings, .. } = self;
        let mut expired: BTreeMap<Box<str>, BTreeSet<u32>> = BTreeMap::new();
        for (key, learned) in autoscalers {
            learned.containers.retain(|_, number| {
                let slot = aggregates[*number as usize].as_ref();
                let stays = slot.is_some_and(|slot| slot.live > 0 || !slot.aggregate.is_expired(now, settings));
                if !stays {
                    expired.entry(key.namespace.clone()).or_default().insert(*number);
                }
                stays
            });
        }
        for (namespace, slots) in expired {
            self.free_slots(&namespace, &slots);
        }
    }

    /// Their numbers are given to others, so nothing may point to them any more.
    fn free_slots(&mut self, namespace: &str, slots: &BTreeSet<u32>) {
        for pod in self.pods.get_mut(namespace).into_iter().flat_map(HashMap::values_mut) {
            if pod.entries.iter().any(|entry| slots.contains(&entry.slot)) {
                let entries = std::mem::take(&mut pod.entries).into_iter();
                pod.entries = entries.filter(|entry| !slots.contains(&entry.slot)).collect();
            }
        }
        for slot in slots {
            self.aggregates[*slot as usize] = None;
            self.free.push(*slot);
        }
    }

    fn is_little(&self, aggregate: &Aggregate) -> bool {
        let enough = self.settings.cpu_confidence_interval / LITTLE_PART;
        aggregate.span().is_none_or(|(first, last)| last.duration_since(first).unsigned_abs() < enough)
    }

    /// The number of the aggregate of a container; it is made where there is none.
    fn slot(&mut self, key: &Key, container: &str, now: Timestamp) -> Option<u32> {
        let learned = self.autoscalers.get_mut(key)?;
        if let Some(slot) = learned.containers.get(container) {
            return Some(*slot);
        }
        let container: Arc<str> = container.into();
        let slot = Slot {
            autoscaler: key.clone(),
            container: Arc::clone(&container),
            aggregate: Aggregate::new(now, &self.settings),
            kind: None,
            live: 0,
            saved: None,
            is_changed: false,
            is_fresh: false,
            is_urgent: false,
        };
        let number = if let Some(number) = self.free.pop() {
            self.aggregates[number as usize] = Some(slot);
            number
        } else {
            self.aggregates.push(Some(slot));
            u32::try_from(self.aggregates.len() - 1).ok()?
        };
        learned.containers.insert(container, number);
        Some(number)
    }

    fn observed(&mut self, pod: &Pod, before: Option<Observed>) -> Observed {
        let mut before: Vec<Entry> = before.map(|before| before.entries.into_vec()).unwrap_or_default();
        let mut entries = Vec::new();
        for autoscaler in self.selecting(pod) {
            for container in &pod.containers {
                let kind = match container.kind {
                    ContainerKind::App => ContainerType::App,
                    ContainerKind::NativeSidecar => ContainerType::NativeSidecar,
                    ContainerKind::PlainInit => continue,
                };
                if !kind.is_served(&self.settings) {
                    continue;
                }
                let created = container.running_since.unwrap_or(pod.created);
                let Some(number) = self.slot(&autoscaler, &container.name, created) else { continue };
                let Some(slot) = &mut self.aggregates[number as usize] else { continue };
                let known = before.iter().position(|entry| entry.slot == number).map(|at| before.swap_remove(at));
                let mut entry = known.unwrap_or_else(|| Entry {
                    slot: number,
                    container: Arc::clone(&slot.container),
                    kind,
                    instance: Instance::default(),
                    // An open window's peak is not in the checkpoint, so an end that is as old as one may be taken again.
                    oom: slot.saved.map(|saved| earlier(saved.at, self.settings.memory_interval)),
                    memory: -1,
                });
                if let Some(oom) = &container.oom
                    && entry.oom.is_none_or(|taken| oom.ended > taken)
                {
                    entry.oom = Some(oom.ended);
                    let had = container.has();
                    let memory_used = had.requests.memory.or(had.limits.memory).unwrap_or_default();
                    let oom = Oom { at: oom.ended, memory_used };
                    if slot.aggregate.add_oom(&mut entry.instance, &oom, &self.settings) {
                        slot.is_changed = true;
                        slot.is_urgent = true;
                    }
                }
                entries.push(entry);
            }
        }
        Observed { uid: pod.uid.clone(), is_ended: pod.is_ended || pod.is_deleting, entries: entries.into() }
    }

    /// The autoscalers that select a pod.
    fn selecting(&mut self, pod: &Pod) -> Vec<Key> {
        let autoscalers = &self.autoscalers;
        let matcher = self.matchers.entry(pod.namespace.clone()).or_insert_with(|| {
            let first = Key::new(&pod.namespace, "");
            let own = autoscalers.range(first..).take_while(|(key, _)| key.namespace == pod.namespace);
            Matcher::new(own.filter_map(|(key, learned)| Some((key, learned.selector.as_ref()?))))
        });
        let label = |key: &str| pod.labels.iter().find(|(own, _)| **own == *key).map(|(_, value)| &**value);
        let named = pod.labels.iter().filter_map(|label| matcher.by_label.get(label)).flatten();
        let selects = |key: &&Key| {
            let selector = autoscalers.get(*key).and_then(|learned| learned.selector.as_ref());
            selector.is_some_and(|selector| selector.matches(label))
        };
        named.chain(&matcher.others).filter(selects).cloned().collect()
    }

    /// Counts a pod in or out.
    fn count(&mut self, pod: &Observed, is_in: bool) {
        if pod.is_ended {
            return;
        }
        let step = |count: &mut usize| *count = if is_in { *count + 1 } else { count.saturating_sub(1) };
        let mut last: Option<Key> = None;
        for entry in &pod.entries {
            let Some(slot) = &mut self.aggregates[entry.slot as usize] else { continue };
            step(&mut slot.live);
            if is_in {
                slot.kind = Some(entry.kind);
            }
            // Entries of one autoscaler stand together.
            if last.as_ref() != Some(&slot.autoscaler) {
                if let Some(learned) = self.autoscalers.get_mut(&slot.autoscaler) {
                    step(&mut learned.pods);
                }
                last = Some(slot.autoscaler.clone());
            }
        }
    }
}

/// Shared with those who ask it while samples come in.
impl Taker for Arc<Mutex<Learner>> {
    fn wants(&self, namespace: &str, pod: &str) -> bool {
        self.lock().wants(namespace, pod)
    }

    fn take(&mut self, sample: &Sample<'_>) {
        self.lock().take(sample);
    }
}

impl Taker for Learner {
    fn wants(&self, namespace: &str, pod: &str) -> bool {
        self.pods.get(namespace).is_some_and(|pods| pods.contains_key(pod))
    }

    fn take(&mut self, sample: &Sample<'_>) {
        let pod = self.pods.get_mut(sample.namespace).and_then(|pods| pods.get_mut(sample.pod));
        let Some(pod) = pod else { return };
        for entry in pod.entries.iter_mut().filter(|entry| *entry.container == *sample.container) {
            let Some(slot) = &mut self.aggregates[entry.slot as usize] else { continue };
            entry.memory = sample.usage.memory.unwrap_or(entry.memory);
            let before = (slot.aggregate.samples(), entry.instance);
            slot.aggregate.add(&mut entry.instance, &sample.usage, &self.settings);
            slot.is_fresh = true;
            slot.is_changed |= before != (slot.aggregate.samples(), entry.instance);
        }
    }
}

impl Matcher {
    fn new<'a>(autoscalers: impl Iterator<Item = (&'a Key, &'a Selector)>) -> Self {
        let mut matcher = Self::default();
        for (key, selector) in autoscalers {
            let label = selector.requirements().iter().find_map(|requirement| match &requirement.condition {
                Condition::In(values) if values.len() == 1 => {
                    values.first().map(|value| (requirement.key.as_str().into(), value.as_str().into()))
                }
                _ => None,
            });
            match label {
                Some(label) => matcher.by_label.entry(label).or_default().push(key.clone()),
                None => matcher.others.push(key.clone()),
            }
        }
        matcher
    }
}

/// What a container is: as pods have it, else as the template has it. One that is in neither while there are pods, or is
/// nowhere to be seen, is not recommended for.
fn kind(learned: &Learned, slot: &Slot) -> Option<ContainerType> {
    if slot.live > 0 {
        return slot.kind;
    }
    if learned.pods > 0 {
        return None;
    }
    let template = || learned.template.iter().find(|(name, _)| **name == *slot.container).map(|(_, kind)| *kind);
    slot.kind.or_else(template)
}

fn earlier(at: Timestamp, by: Duration) -> Timestamp {
    at.saturating_sub(jiff::SignedDuration::try_from(by).unwrap_or(jiff::SignedDuration::MAX)).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests;
