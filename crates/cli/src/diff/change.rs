//! What files would change of the sets of a cluster.

use std::collections::BTreeMap;

use pillion_api::{Clash, Meaning, Problem, SetMode, advice, clashes};

use crate::live::World;
use crate::manifest::Manifest;
use crate::sidecar_sets::reviewed;

/// A set that would be applied.
pub(super) struct Change<'w> {
    /// The set as the cluster has it.
    pub(super) before: Option<&'w Meaning>,
    /// The set as the file has it.
    pub(super) after: Meaning,
    /// What a person should know before applying it.
    pub(super) warnings: Vec<String>,
}

impl Change<'_> {
    /// In one word.
    pub(super) fn state(&self) -> &'static str {
        match self.before {
            None => "new",
            Some(before) if *before == self.after => "same",
            Some(_) => "changed",
        }
    }
}

/// The sets of the files, by name; or everything that is wrong with them. Each is judged alone: the others are as the
/// cluster has them.
pub(super) fn changes<'w>(manifests: &[Manifest], world: &'w World) -> Result<Vec<Change<'w>>, Vec<String>> {
    let (sets, _) = reviewed(manifests);
    let mut errors = Vec::new();
    let mut found = BTreeMap::new();
    for set in sets {
        let told = |problem: &Problem| {
            let place = set.manifest.place(&problem.path);
            format!("{}:{}:{}: {problem}", set.manifest.file, place.line, place.column)
        };
        errors.extend(set.review.errors().map(told));
        let Some(after) = set.review.meaning else { continue };
        let mut warnings: Vec<String> = set.review.problems.iter().chain(&advice(&after)).map(told).collect();
        let others = world.given.sets.sets().map(AsRef::as_ref);
        for Clash { problem, .. } in clashes(&after, others) {
            let list = if problem.is_error() { &mut errors } else { &mut warnings };
            list.push(told(&problem));
        }
        if after.mode == SetMode::Observe {
            warnings.push(format!("set {} only observes: it gives no pod anything", after.name));
        }
        let before = world.given.sets.get(&after.name).map(AsRef::as_ref);
        let name = after.name.clone();
        if found.insert(name.clone(), Change { before, after, warnings }).is_some() {
            errors.push(format!("{}: set {name} is given twice: keep one", set.manifest.file));
        }
    }
    if errors.is_empty() { Ok(found.into_values().collect()) } else { Err(errors) }
}
