//! Counts what edits of sets do to the workloads and pods of a cluster, one object after the other.

use std::collections::BTreeMap;

use pillion_inject::{Edit, Effect, Impact, Installation, LimitRange, Subject, fill_in, pod_of};
use serde_json::Value;

use super::change::Change;
use crate::live::World;

/// What was found so far.
pub(super) struct Survey<'a> {
    world: &'a World,
    edits: Vec<Edit<'a>>,
    impacts: Vec<Impact>,
    /// What the edits do to the pods of a workload, by its uid; empty where that is nothing.
    owners: BTreeMap<String, Vec<Effect>>,
}

impl<'a> Survey<'a> {
    pub(super) fn new(world: &'a World, changes: &'a [Change<'a>], examples: usize) -> Self {
        let edit = |change: &'a Change<'a>| {
            Edit::new(&change.after.name, change.before, Some(&change.after), &world.given.sets)
        };
        Self {
            world,
            edits: changes.iter().map(edit).collect(),
            impacts: changes.iter().map(|_| Impact::new(examples)).collect(),
            owners: BTreeMap::new(),
        }
    }

    /// What each edit does, in the order of the edits.
    pub(super) fn impacts(&self) -> &[Impact] {
        &self.impacts
    }

    /// Whether pods would be refused.
    pub(super) fn is_finding(&self) -> bool {
        self.impacts.iter().any(|impact| {
            [impact.pods, impact.templates].iter().any(|counts| counts.refused + counts.still_refused > 0)
        })
    }

    /// Looks at one workload or pod. What has ended is not created again, and left out.
    pub(super) fn take(&mut self, object: &Value) {
        if has_ended(object) {
            return;
        }
        // The API server has it, so it can be read; what creates no pods is not asked for.
        let Ok(Some(workload)) = pod_of(object, "default") else { return };
        let is_template = workload.origin.is_template();
        let owner = controller(object);
        let effects = match owner.and_then(|uid| self.owners.get(uid)) {
            // The template is what a pod will be created from again.
            Some(known) if !is_template => known.clone(),
            _ => self.effects(workload.pod, &workload.origin.namespace, is_template),
        };
        if is_template && let Some(uid) = object.pointer("/metadata/uid").and_then(Value::as_str) {
            let is_concerned = effects.iter().any(|effect| *effect != Effect::Unaffected);
            self.owners.insert(uid.to_owned(), if is_concerned { effects.clone() } else { Vec::new() });
        }
        // A Deployment counts, and its ReplicaSets do not.
        if is_template && owner.is_some_and(|uid| self.owners.contains_key(uid)) {
            return;
        }
        let origin = workload.origin;
        let subject = Subject { namespace: origin.namespace, kind: origin.kind, name: origin.name };
        let nothing = std::iter::repeat(Effect::Unaffected);
        for (impact, effect) in self.impacts.iter_mut().zip(effects.into_iter().chain(nothing)) {
            impact.add(subject.clone(), effect);
        }
    }

    fn effects(&self, mut pod: Value, namespace: &str, is_template: bool) -> Vec<Effect> {
        let given = &self.world.given;
        let ranges: Vec<&LimitRange> = given.limit_ranges(namespace).collect();
        fill_in(&mut pod, namespace, &ranges);
        let namespace = given.namespace(namespace);
        // What the sets do once injection is on is what counts, not whether it is on now.
        let (own_namespace, finish) = (Some(given.facts.namespace.as_str()), given.facts.finishing());
        let installation = Installation { own_namespace, finish, ..Installation::default() };
        let effect = |edit: &Edit<'_>| {
            if is_template {
                edit.effect(&pod, &namespace, installation)
            } else {
                edit.effect_on_existing(&pod, &namespace, installation)
            }
        };
        self.edits.iter().map(effect).collect()
    }
}

fn has_ended(object: &Value) -> bool {
    let phase = object.pointer("/status/phase").and_then(Value::as_str);
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let is_final = |condition: &Value| {
        condition["status"] == "True" && (condition["type"] == "Complete" || condition["type"] == "Failed")
    };
    let is_job = object["kind"] == "Job";
    object.pointer("/metadata/deletionTimestamp").is_some()
        || matches!(phase, Some("Succeeded" | "Failed"))
        || (is_job && conditions.is_some_and(|conditions| conditions.iter().any(is_final)))
}

/// The uid of what made an object and keeps it.
fn controller(object: &Value) -> Option<&str> {
    let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)?["uid"].as_str()
}
