//! Finds the sets that match a pod without asking every set.
//!
//! Each set lies on a shelf that is named by one label its pods must have, and there in a box named by one label their
//! namespace must have. A pod looks only at the shelves of its own labels, so sets that ask for other labels cost
//! nothing. Where a set leaves the choice of the label, the least crowded shelf is taken.

use std::collections::BTreeMap;
use std::sync::Arc;

use pillion_api::{Condition, Meaning, NAMESPACE_NAME_LABEL, Namespaces, Selector};

use crate::namespace::Namespace;
use crate::pod::PodHead;

/// All sets of a cluster, by name, ready to be matched. Adding or removing one does not touch the others.
#[derive(Clone, Debug, Default)]
pub struct SetIndex {
    sets: BTreeMap<String, Placed>,
    shelves: Labelled<Labelled<Sets>>,
}

type Sets = BTreeMap<String, Arc<Meaning>>;

#[derive(Clone, Debug)]
struct Placed {
    set: Arc<Meaning>,
    places: Vec<(Key, Key)>,
}

/// The label things are found under.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Key {
    /// None: they are looked at for every pod.
    Any,
    /// A label with any value.
    Has(String),
    /// A label with this value.
    Is(String, String),
}

#[derive(Clone, Debug, Default)]
struct Labelled<T> {
    any: T,
    has: BTreeMap<String, T>,
    is: BTreeMap<String, BTreeMap<String, T>>,
}

impl<T: Default> Labelled<T> {
    fn get(&self, key: &Key) -> Option<&T> {
        match key {
            Key::Any => Some(&self.any),
            Key::Has(label) => self.has.get(label),
            Key::Is(label, value) => self.is.get(label)?.get(value),
        }
    }

    fn get_mut(&mut self, key: &Key) -> &mut T {
        match key {
            Key::Any => &mut self.any,
            Key::Has(label) => self.has.entry(label.clone()).or_default(),
            Key::Is(label, value) => self.is.entry(label.clone()).or_default().entry(value.clone()).or_default(),
        }
    }

    /// Forgets what lies under a key if that has become empty.
    fn prune(&mut self, key: &Key, is_empty: fn(&T) -> bool) {
        match key {
            Key::Any => {}
            Key::Has(label) => {
                if self.has.get(label).is_some_and(is_empty) {
                    self.has.remove(label);
                }
            }
            Key::Is(label, value) => {
                let Some(values) = self.is.get_mut(label) else { return };
                if values.get(value).is_some_and(is_empty) {
                    values.remove(value);
                }
                if values.is_empty() {
                    self.is.remove(label);
                }
            }
        }
    }

    /// What lies under any of these labels.
    fn under<'a, 'l>(&'a self, labels: impl Iterator<Item = (&'l str, &'l str)>) -> impl Iterator<Item = &'a T>
    where
        T: 'a,
    {
        let found = labels.flat_map(|(key, value)| {
            let is = self.is.get(key).and_then(|values| values.get(value));
            self.has.get(key).into_iter().chain(is)
        });
        [&self.any].into_iter().chain(found)
    }

    fn is_empty(&self, is_empty: fn(&T) -> bool) -> bool {
        is_empty(&self.any) && self.has.is_empty() && self.is.is_empty()
    }
}

impl SetIndex {
    /// An index of these sets. Of two with one name the later counts.
    pub fn new(sets: impl IntoIterator<Item = Meaning>) -> Self {
        let mut index = Self::default();
        for set in sets {
            index.insert(set);
        }
        index
    }

    /// Adds a set, or puts it in the place of the one of its name.
    pub fn insert(&mut self, set: Meaning) {
        self.remove(&set.name);
        let set = Arc::new(set);
        let mut places = Vec::new();
        for shelf in keys(&set.selector, |key| self.shelves.get(key).map_or(0, crowd)) {
            let boxes = self.shelves.get(&shelf);
            let load = |key: &Key| boxes.and_then(|boxes| boxes.get(key)).map_or(0, BTreeMap::len);
            let boxes = match &set.namespaces {
                Namespaces::All => vec![Key::Any],
                Namespaces::Named(name) => vec![Key::Is(NAMESPACE_NAME_LABEL.to_owned(), name.clone())],
                Namespaces::Selected(selector) => keys(selector, load),
            };
            places.extend(boxes.into_iter().map(|key| (shelf.clone(), key)));
        }
        for (shelf, key) in &places {
            self.shelves.get_mut(shelf).get_mut(key).insert(set.name.clone(), Arc::clone(&set));
        }
        self.sets.insert(set.name.clone(), Placed { set, places });
    }

    /// Takes a set out; `false` if there was none of this name.
    pub fn remove(&mut self, name: &str) -> bool {
        let Some(placed) = self.sets.remove(name) else { return false };
        for (shelf, key) in &placed.places {
            let boxes = self.shelves.get_mut(shelf);
            boxes.get_mut(key).remove(name);
            boxes.prune(key, BTreeMap::is_empty);
            self.shelves.prune(shelf, |boxes| boxes.is_empty(BTreeMap::is_empty));
        }
        true
    }

    /// The set of a name.
    pub fn get(&self, name: &str) -> Option<&Arc<Meaning>> {
        self.sets.get(name).map(|placed| &placed.set)
    }

    /// All sets, in the order of their names.
    pub fn sets(&self) -> impl ExactSizeIterator<Item = &Arc<Meaning>> {
        self.sets.values().map(|placed| &placed.set)
    }

    /// The sets to be asked about a pod, in the order of their names: those that match it.
    ///
    /// The API server sends a pod again after others have changed it, and labels that sets added would then bring more
    /// sets, or take some away. So a pod that was reviewed before is asked about as if it came without them.
    pub fn of_pod(&self, pod: &PodHead<'_>, namespace: &Namespace) -> Vec<&Arc<Meaning>> {
        let labels = pod.labels();
        // What was cut off a record may have matched.
        let Some(record) = pod.record().filter(|record| record.cut < 2) else {
            return self.matching(labels, namespace);
        };
        let applied = pod.applied_sets();
        let applied = applied.iter().map(String::as_str);
        self.asked_before(labels, namespace, applied, |name| record.sets.contains_key(name))
    }

    /// The sets that were asked about a pod which has labels of the sets that were applied to it, in the order of their
    /// names. The pod may have had such a label before, too: where that makes the difference, the record tells.
    pub(crate) fn asked_before<'n>(
        &self,
        labels: &[(impl AsRef<str>, impl AsRef<str>)],
        namespace: &Namespace,
        applied: impl Iterator<Item = &'n str>,
        is_recorded: impl Fn(&str) -> bool,
    ) -> Vec<&Arc<Meaning>> {
        let added: BTreeMap<&String, &String> =
            applied.filter_map(|name| self.get(name)).flat_map(|set| &set.template.labels).collect();
        let is_added = |key: &str, value: &str| added.iter().any(|(own, with)| *own == key && *with == value);
        let found = self.matching(labels, namespace);
        let (ours, before): (Vec<_>, Vec<_>) = labels
            .iter()
            .map(|(key, value)| (key.as_ref(), value.as_ref()))
            .partition(|(key, value)| is_added(key, value));
        if ours.is_empty() {
            return found;
        }
        let mut sets: BTreeMap<&str, (usize, &Arc<Meaning>)> = BTreeMap::new();
        for set in found.into_iter().chain(self.matching(&before, namespace)) {
            sets.entry(&set.name).or_insert((0, set)).0 += 1;
        }
        let is_asked = |name: &str, times: usize| times == 2 || is_recorded(name);
        sets.into_iter().filter(|(name, (times, _))| is_asked(name, *times)).map(|(_, (_, set))| set).collect()
    }

    /// The sets whose selectors match a pod with these labels in this namespace, in the order of their names.
    pub fn matching(&self, labels: &[(impl AsRef<str>, impl AsRef<str>)], namespace: &Namespace) -> Vec<&Arc<Meaning>> {
        let label = |key: &str| labels.iter().find(|(own, _)| own.as_ref() == key).map(|(_, value)| value.as_ref());
        let pairs = labels.iter().map(|(key, value)| (key.as_ref(), value.as_ref()));
        let boxes = self.shelves.under(pairs).flat_map(|shelf| shelf.under(namespace.labels()));
        let candidates = boxes.flat_map(BTreeMap::values);
        let mut found: Vec<_> = candidates
            .filter(|set| selects_namespace(&set.namespaces, namespace) && set.selector.matches(label))
            .collect();
        found.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        found
    }
}

/// Whether a set means this namespace.
pub fn selects_namespace(namespaces: &Namespaces, namespace: &Namespace) -> bool {
    match namespaces {
        Namespaces::All => true,
        Namespaces::Named(name) => *name == namespace.name,
        Namespaces::Selected(selector) => selector.matches(|key| namespace.label(key)),
    }
}

fn crowd(boxes: &Labelled<Sets>) -> usize {
    let has = boxes.has.values().map(BTreeMap::len).sum::<usize>();
    boxes.any.len() + has + boxes.is.values().flat_map(BTreeMap::values).map(BTreeMap::len).sum::<usize>()
}

/// The keys that find whatever a selector selects: those of one of its requirements, where the load is the least.
fn keys(selector: &Selector, load: impl Fn(&Key) -> usize) -> Vec<Key> {
    let positive = selector.requirements().iter().filter_map(|requirement| match &requirement.condition {
        Condition::In(values) => {
            Some(values.iter().map(|value| Key::Is(requirement.key.clone(), value.clone())).collect())
        }
        Condition::Exists => Some(vec![Key::Has(requirement.key.clone())]),
        Condition::NotIn(_) | Condition::DoesNotExist => None,
    });
    positive.min_by_key(|keys: &Vec<Key>| keys.iter().map(&load).sum::<usize>()).unwrap_or_else(|| vec![Key::Any])
}
