//! What sidecars ask for and use, summed. Nothing is read here.
//!
//! A container is a sidecar if a `SidecarSet` injected it, if it is an init container that is always restarted, or if it
//! stands beside the main container of its pod, under the same name and from the same image repository in pods of at
//! least two workloads.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;
use std::rc::Rc;

use pillion_inject::{Origins, marks};
use pillion_quantity::Quantity;
use serde_json::Value;

#[cfg(test)]
mod tests;

/// In pods of so many workloads a container that nobody marked is taken for a sidecar.
pub(super) const LEAST_WORKLOADS: usize = 2;
/// Annotation with the name of a pod's main container.
pub(super) const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// Of a container that a set injected, of a pod that does not say which.
pub(super) const UNKNOWN_SET: &str = "(not known)";

/// Amounts of both resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pair {
    /// Nanocores: many small uses would not add up in millicores.
    pub(super) cpu: i128,
    /// Bytes.
    pub(super) memory: i128,
}

/// What some containers come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// How many there are.
    pub(super) containers: usize,
    /// How many of them were measured.
    pub(super) measured: usize,
    /// What all of them ask for.
    pub(super) requested: Pair,
    /// What those ask for that were measured.
    pub(super) compared: Pair,
    /// What those use.
    pub(super) used: Pair,
    /// In which workloads.
    pub(super) workloads: BTreeSet<usize>,
}

/// How a container came to be a sidecar.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kin {
    /// This set injected it; `None` where the pod does not say which.
    Set(Option<Rc<str>>),
    /// It is an init container that is always restarted.
    Native,
    /// It is found in pods of several workloads.
    Shared,
}

/// Containers that are summed together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group {
    pub(super) kin: Kin,
    pub(super) container: Rc<str>,
    /// The image without its tag and digest.
    pub(super) repository: Rc<str>,
    pub(super) namespace: Rc<str>,
}

/// By what lines of a report differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Set,
    Container,
    Namespace,
}

/// What was measured, by namespace and pod, then by container.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pods: BTreeMap<(String, String), Vec<(String, Pair)>>,
    /// When, the first and the last of it.
    pub(super) span: Option<(String, String)>,
}

/// Sums while pods come in.
#[derive(Debug)]
pub(super) struct Survey<'a> {
    measured: &'a Measured,
    /// Names of containers by set.
    sets: &'a BTreeMap<String, BTreeSet<String>>,
    names: BTreeSet<Rc<str>>,
    workloads: BTreeMap<(Rc<str>, String, String), usize>,
    groups: BTreeMap<Group, Sums>,
    pods: usize,
    all: Pair,
}

/// What sidecars come to.
#[derive(Debug, Default)]
pub(super) struct Tax {
    /// Each by all that tells it apart.
    pub(super) groups: BTreeMap<Group, Sums>,
    /// All of them.
    pub(super) sidecars: Sums,
    /// How many pods were looked at.
    pub(super) pods: usize,
    /// What all their containers ask for.
    pub(super) all: Pair,
}

/// A line of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) name: String,
    /// Where all containers of it agree.
    pub(super) kin: Option<Kin>,
    /// Where all containers of it agree.
    pub(super) repository: Option<Rc<str>>,
    pub(super) namespaces: usize,
    pub(super) sums: Sums,
}

impl AddAssign for Pair {
    fn add_assign(&mut self, other: Self) {
        self.cpu += other.cpu;
        self.memory += other.memory;
    }
}

impl AddAssign<&Self> for Sums {
    fn add_assign(&mut self, other: &Self) {
        self.containers += other.containers;
        self.measured += other.measured;
        self.requested += other.requested;
        self.compared += other.compared;
        self.used += other.used;
        self.workloads.extend(&other.workloads);
    }
}

impl Pair {
    /// Reads `{"cpu": "25m", "memory": "20Mi"}`; what is missing or no quantity is nothing.
    fn read(list: &Value) -> Self {
        let amount = |resource: &str| list[resource].as_str().and_then(|text| text.parse::<Quantity>().ok());
        Self { cpu: amount("cpu").map_or(0, Quantity::nano), memory: amount("memory").map_or(0, Quantity::value) }
    }
}

impl Measured {
    /// Takes what was measured of a pod.
    pub(super) fn take(&mut self, metrics: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let containers = metrics["containers"].as_array().into_iter().flatten();
        let containers = containers.map(|container| (text(&container["name"]), Pair::read(&container["usage"])));
        let metadata = &metrics["metadata"];
        self.pods.insert((text(&metadata["namespace"]), text(&metadata["name"])), containers.collect());
        let at = text(&metrics["timestamp"]);
        if !at.is_empty() {
            // Times of this form are in order as text.
            let (first, last) = self.span.take().unwrap_or_else(|| (at.clone(), at.clone()));
            self.span = Some((first.min(at.clone()), last.max(at)));
        }
    }

    /// Of how many pods something is known.
    pub(super) fn pods(&self) -> usize {
        self.pods.len()
    }

    fn of(&self, namespace: &str, pod: &str, container: &str) -> Option<Pair> {
        let containers = self.pods.get(&(namespace.to_owned(), pod.to_owned()))?;
        containers.iter().find(|(name, _)| name == container).map(|(_, used)| *used)
    }
}

impl<'a> Survey<'a> {
    pub(super) fn new(measured: &'a Measured, sets: &'a BTreeMap<String, BTreeSet<String>>) -> Self {
        Self {
            measured,
            sets,
            names: BTreeSet::new(),
            workloads: BTreeMap::new(),
            groups: BTreeMap::new(),
            pods: 0,
            all: Pair::default(),
        }
    }

    /// Takes a pod that has a place on a node; one that has none, or has ended, asks for nothing.
    pub(super) fn take(&mut self, pod: &Value) {
        let (metadata, spec) = (&pod["metadata"], &pod["spec"]);
        let has_ended = ["Succeeded", "Failed"].iter().any(|phase| pod["status"]["phase"] == **phase);
        let (Some(namespace), Some(name)) = (metadata["namespace"].as_str(), metadata["name"].as_str()) else { return };
        if has_ended || spec["nodeName"].as_str().is_none_or(str::is_empty) {
            return;
        }
        self.pods += 1;
        let annotation = |key: &str| metadata["annotations"][key].as_str();
        let ours = marks::names(annotation(marks::CONTAINERS));
        let carried = marks::names(annotation(marks::INJECTED_SETS));
        let namespace = self.shared(namespace);
        let workload = self.workload(&namespace, name, pod);
        let is_ours = |container: &Value| {
            let name = container["name"].as_str().unwrap_or_default();
            ours.contains(name) || (ours.is_empty() && is_injected(container))
        };
        let regular = spec["containers"].as_array().into_iter().flatten();
        let main = regular.clone().find(|container| annotation(DEFAULT_CONTAINER) == container["name"].as_str());
        let main = main.or_else(|| regular.clone().find(|container| !is_ours(container)));
        let main = main.and_then(|container| container["name"].as_str());
        let native = spec["initContainers"].as_array().into_iter().flatten();
        let native = native.filter(|container| container["restartPolicy"] == "Always");
        for (container, is_native) in native.map(|it| (it, true)).chain(regular.map(|it| (it, false))) {
            let own = container["name"].as_str().unwrap_or_default();
            let requested = Pair::read(&container["resources"]["requests"]);
            self.all += requested;
            let kin = if is_ours(container) {
                Kin::Set(self.set_of(own, &carried))
            } else if is_native {
                Kin::Native
            } else if main == Some(own) {
                continue;
            } else {
                Kin::Shared
            };
            let used = self.measured.of(&namespace, name, own);
            let repository = repository(container["image"].as_str().unwrap_or_default());
            let group = Group {
                kin,
                container: self.shared(own),
                repository: self.shared(repository),
                namespace: Rc::clone(&namespace),
            };
            *self.groups.entry(group).or_default() += &Sums {
                containers: 1,
                measured: usize::from(used.is_some()),
                requested,
                compared: if used.is_some() { requested } else { Pair::default() },
                used: used.unwrap_or_default(),
                workloads: BTreeSet::from([workload]),
            };
        }
    }

    /// How many pods were taken.
    pub(super) fn pods(&self) -> usize {
        self.pods
    }

    /// All that was taken, without what turned out to be no sidecar.
    pub(super) fn tax(self) -> Tax {
        let mut found_in: BTreeMap<(Rc<str>, Rc<str>), BTreeSet<usize>> = BTreeMap::new();
        for (group, sums) in self.groups.iter().filter(|(group, _)| group.kin == Kin::Shared) {
            let same = (Rc::clone(&group.container), Rc::clone(&group.repository));
            found_in.entry(same).or_default().extend(&sums.workloads);
        }
        let is_sidecar = |group: &Group| {
            let same = (Rc::clone(&group.container), Rc::clone(&group.repository));
            group.kin != Kin::Shared || found_in.get(&same).is_some_and(|all| all.len() >= LEAST_WORKLOADS)
        };
        let groups: BTreeMap<Group, Sums> = self.groups.into_iter().filter(|(group, _)| is_sidecar(group)).collect();
        let mut sidecars = Sums::default();
        for sums in groups.values() {
            sidecars += sums;
        }
        Tax { groups, sidecars, pods: self.pods, all: self.all }
    }

    /// The set of those a pod carries that has the container. A set may have had it once and not have it any more.
    fn set_of(&mut self, container: &str, carried: &BTreeSet<String>) -> Option<Rc<str>> {
        let has = |set: &&String| self.sets.get(*set).is_some_and(|names| names.contains(container));
        let only = carried.first().filter(|_| carried.len() == 1);
        let set = carried.iter().find(has).or(only)?.clone();
        Some(self.shared(&set))
    }

    fn workload(&mut self, namespace: &Rc<str>, pod: &str, object: &Value) -> usize {
        // The last is what people made; the others were made by it.
        let topmost = Origins::of_pod(object).workloads().pop();
        let (kind, name) =
            topmost.map_or(("Pod".to_owned(), pod.to_owned()), |it| (it.kind().to_owned(), it.name().to_owned()));
        let next = self.workloads.len();
        *self.workloads.entry((Rc::clone(namespace), kind, name)).or_insert(next)
    }

    /// The same text once.
    fn shared(&mut self, text: &str) -> Rc<str> {
        if let Some(known) = self.names.get(text) {
            return Rc::clone(known);
        }
        let new: Rc<str> = text.into();
        self.names.insert(Rc::clone(&new));
        new
    }
}

impl Tax {
    /// One line for each set, container or namespace; the one with the most unused cpu first.
    pub(super) fn lines(&self, by: By) -> Vec<Line> {
        let mut lines: BTreeMap<(&str, Option<&str>), Together<'_>> = BTreeMap::new();
        for (group, sums) in &self.groups {
            let key = match by {
                By::Set => match &group.kin {
                    Kin::Set(set) => (set.as_deref().unwrap_or(UNKNOWN_SET), None),
                    Kin::Native | Kin::Shared => continue,
                },
                By::Container => (&*group.container, Some(&*group.repository)),
                By::Namespace => (&*group.namespace, None),
            };
            let together = lines.entry(key).or_default();
            together.kins.insert(&group.kin);
            together.repositories.insert(&group.repository);
            together.namespaces.insert(&group.namespace);
            together.sums += sums;
        }
        let mut lines: Vec<Line> = lines.into_iter().map(|((name, _), together)| together.line(name)).collect();
        lines.sort_by_key(|line| Reverse(line.sums.compared.cpu - line.sums.used.cpu));
        lines
    }
}

/// Groups of one line.
#[derive(Default)]
struct Together<'a> {
    kins: BTreeSet<&'a Kin>,
    repositories: BTreeSet<&'a Rc<str>>,
    namespaces: BTreeSet<&'a Rc<str>>,
    sums: Sums,
}

impl Together<'_> {
    fn line(self, name: &str) -> Line {
        Line {
            name: name.to_owned(),
            kin: only(&self.kins).cloned(),
            repository: only(&self.repositories).cloned(),
            namespaces: self.namespaces.len(),
            sums: self.sums,
        }
    }
}

fn only<'a, T: Ord>(all: &BTreeSet<&'a T>) -> Option<&'a T> {
    all.first().copied().filter(|_| all.len() == 1)
}

/// Whether a container carries the variable by which sets mark what they inject.
fn is_injected(container: &Value) -> bool {
    let variables = container["env"].as_array().into_iter().flatten();
    variables
        .into_iter()
        .any(|env| env["name"].as_str().is_some_and(|name| marks::is_injected_variable(name, env["value"].as_str())))
}

/// An image without its tag and digest.
fn repository(image: &str) -> &str {
    let image = image.split_once('@').map_or(image, |(image, _)| image);
    // A colon before the last slash belongs to the port of the registry.
    match image.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => image,
    }
}
