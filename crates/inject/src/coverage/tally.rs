//! How all pods stand, counted per set. One pod is counted anew at a time, so that a change costs what it changes.

use std::collections::{BTreeMap, BTreeSet};

use super::Standing;

/// How all pods stand to all sets. `K` names a pod.
#[derive(Clone, Debug)]
pub struct Coverage<K> {
    pods: BTreeMap<K, Stood>,
    sets: BTreeMap<String, OfSet<K>>,
}

/// How many pods of a set stand how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Pods the set selects.
    pub matched: usize,
    /// Those that carry its sidecars.
    pub injected: usize,
    /// Those of them that are ready.
    pub ready: usize,
    /// Those whose record says why not.
    pub left_out: usize,
    /// Those that should and do not.
    pub missed: usize,
    /// Those that are older than the selector and do not.
    pub predating: usize,
}

/// A pod stands to a set otherwise than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Name of the set.
    pub set: String,
    /// How it stood; `None` if the set did not match it, or it was not there.
    pub before: Option<Standing>,
    /// How it stands; `None` if the set does not match it, or it is gone.
    pub after: Option<Standing>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Stood {
    standings: BTreeMap<String, Standing>,
    is_ready: bool,
}

#[derive(Clone, Debug)]
struct OfSet<K> {
    tally: Tally,
    missed: BTreeSet<K>,
}

impl<K> Default for Coverage<K> {
    fn default() -> Self {
        Self { pods: BTreeMap::new(), sets: BTreeMap::new() }
    }
}

impl<K> Default for OfSet<K> {
    fn default() -> Self {
        Self { tally: Tally::default(), missed: BTreeSet::new() }
    }
}

impl<K: Ord + Clone> Coverage<K> {
    /// A pod stands like this from now on. Tells to which sets that is news.
    pub fn put(&mut self, pod: K, standings: BTreeMap<String, Standing>, is_ready: bool) -> Vec<Step> {
        let before = self.take(&pod);
        for (set, standing) in &standings {
            let of_set = self.sets.entry(set.clone()).or_default();
            of_set.tally.count(*standing, is_ready);
            if *standing == Standing::Missed {
                of_set.missed.insert(pod.clone());
            }
        }
        let steps = steps(&before, &standings);
        if !standings.is_empty() {
            self.pods.insert(pod, Stood { standings, is_ready });
        }
        steps
    }

    /// A pod is gone.
    pub fn remove(&mut self, pod: &K) -> Vec<Step> {
        let before = self.take(pod);
        steps(&before, &BTreeMap::new())
    }

    /// How the pods of a set stand.
    pub fn tally(&self, set: &str) -> Tally {
        self.sets.get(set).map(|of_set| of_set.tally).unwrap_or_default()
    }

    /// The pods a set has missed.
    pub fn missed(&self, set: &str) -> impl Iterator<Item = &K> {
        self.sets.get(set).into_iter().flat_map(|of_set| &of_set.missed)
    }

    /// All pods that some set has missed, with those sets.
    pub fn all_missed(&self) -> BTreeMap<&K, Vec<&str>> {
        let mut all: BTreeMap<&K, Vec<&str>> = BTreeMap::new();
        for (set, of_set) in &self.sets {
            for pod in &of_set.missed {
                all.entry(pod).or_default().push(set);
            }
        }
        all
    }

    /// Takes a pod out of all counts.
    fn take(&mut self, pod: &K) -> BTreeMap<String, Standing> {
        let Some(Stood { standings, is_ready }) = self.pods.remove(pod) else { return BTreeMap::new() };
        for (set, standing) in &standings {
            let Some(of_set) = self.sets.get_mut(set) else { continue };
            of_set.tally.uncount(*standing, is_ready);
            of_set.missed.remove(pod);
            if of_set.tally.matched == 0 {
                self.sets.remove(set);
            }
        }
        standings
    }
}

impl Tally {
    fn count(&mut self, standing: Standing, is_ready: bool) {
        self.each(standing, is_ready, |count| *count += 1);
    }

    fn uncount(&mut self, standing: Standing, is_ready: bool) {
        self.each(standing, is_ready, |count| *count -= 1);
    }

    fn each(&mut self, standing: Standing, is_ready: bool, change: impl Fn(&mut usize)) {
        change(&mut self.matched);
        match standing {
            Standing::Carries => {
                change(&mut self.injected);
                if is_ready {
                    change(&mut self.ready);
                }
            }
            Standing::LeftOut(_) => change(&mut self.left_out),
            Standing::Excused(_) => {}
            Standing::Missed => change(&mut self.missed),
            Standing::Predates => change(&mut self.predating),
        }
    }
}

fn steps(before: &BTreeMap<String, Standing>, after: &BTreeMap<String, Standing>) -> Vec<Step> {
    let sets: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let step =
        |set: &String| Step { set: set.clone(), before: before.get(set).copied(), after: after.get(set).copied() };
    sets.into_iter().map(step).filter(|step| step.before != step.after).collect()
}
