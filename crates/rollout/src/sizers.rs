//! Which containers a `VerticalPodAutoscaler` sizes: their resources are not the rollout's to change.

use std::collections::BTreeMap;

use pillion_plan::List;

use crate::difference::Difference;
use crate::pod::Pod;

/// What sizes the pods of one workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizer {
    /// The name of the `VerticalPodAutoscaler`.
    pub autoscaler: Box<str>,
    /// Whether it sizes containers that it does not name.
    pub sizes_others: bool,
    /// Whether it sizes the containers that it names.
    pub named: BTreeMap<Box<str>, bool>,
    /// Whether native sidecars are sized at all.
    pub native_sidecars: bool,
}

/// Namespace, kind and name of a workload.
type Named = (Box<str>, Box<str>, Box<str>);

/// What sizes pods, by workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizers(BTreeMap<Named, Sizer>);

impl Sizer {
    fn sizes(&self, list: List, container: &str) -> bool {
        let is_sized = self.named.get(container).copied().unwrap_or(self.sizes_others);
        is_sized && (list == List::Main || self.native_sidecars)
    }

    /// Leaves to the autoscaler what it sizes: pods see it of a new revision when they are created.
    pub(crate) fn take_out(&self, difference: &mut Difference) {
        let Difference { resources, later, .. } = difference;
        resources.retain(|place| {
            let is_sized = self.sizes(place.list, &place.name);
            if is_sized {
                later.push(format!(
                    "resources of container {}, which VerticalPodAutoscaler {} sizes",
                    place.name, self.autoscaler
                ));
            }
            !is_sized
        });
    }
}

impl Sizers {
    /// Says what sizes the pods of a workload.
    pub fn insert(&mut self, namespace: &str, kind: &str, name: &str, sizer: Sizer) {
        self.0.insert((namespace.into(), kind.into(), name.into()), sizer);
    }

    /// What sizes a pod.
    pub fn of(&self, pod: &Pod) -> Option<&Sizer> {
        if self.0.is_empty() {
            return None;
        }
        let workload = pod.workload();
        self.0.get(&(workload.namespace.into(), workload.kind.into(), workload.name.into()))
    }
}
