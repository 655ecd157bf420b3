//! Validation of a SidecarSet that is being written. It is stricter than what a stored SidecarSet must fulfil.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Review, review};
use crate::problem::{FieldPath, Problem, Severity};
use crate::{Reason, template_check};

/// The most problems that are reported about one object.
pub const MAX_PROBLEMS: usize = 100;

/// The steps of the path of a template: `spec`, the list, the index.
const TEMPLATE_DEPTH: usize = 3;

/// Validates a SidecarSet that is being written: as [`review`] does, and its templates as the API server validates pods.
///
/// Stored SidecarSets are not validated in this way. Their meaning does not depend on it, so that they stay served.
pub fn validate_write(object: &Value) -> Review {
    let Review { meaning, problems } = review(object);
    Review { meaning, problems: joined(problems, template_check::check(object)) }
}

impl Review {
    /// Keeps at most [`MAX_PROBLEMS`] problems, errors before warnings.
    #[must_use]
    pub fn capped(mut self) -> Self {
        if self.problems.len() > MAX_PROBLEMS {
            self.problems.sort_by_key(|problem| problem.severity);
            self.problems.truncate(MAX_PROBLEMS);
        }
        self
    }
}

/// Joins the problems of the whole object with those of its templates, each place once.
fn joined(of_object: Vec<Problem>, of_templates: Vec<Problem>) -> Vec<Problem> {
    let errors = of_templates.iter().filter(|problem| problem.is_error());
    let broken: BTreeSet<FieldPath> = errors.map(|problem| problem.path.first(TEMPLATE_DEPTH)).collect();
    // An error that names the field replaces the one that names only the template.
    let is_named_better =
        |problem: &Problem| problem.reason == Reason::InvalidContainer && broken.contains(&problem.path);
    let mut problems: Vec<Problem> = of_object.into_iter().filter(|problem| !is_named_better(problem)).collect();
    let rejected: BTreeSet<FieldPath> =
        problems.iter().filter(|problem| problem.is_error()).map(|problem| problem.path.clone()).collect();
    problems.extend(of_templates.into_iter().filter(|problem| !rejected.contains(&problem.path)));
    problems
}

/// Turns the errors into warnings that the old object had as well: for the same reason, at the same place, for the same
/// value. An update that does not touch the invalid part is then accepted.
pub fn ratchet(new: (&Value, Vec<Problem>), old: (&Value, &[Problem])) -> Vec<Problem> {
    let ((object, problems), (old_object, old_problems)) = (new, old);
    let mut known: BTreeMap<(&FieldPath, Reason), BTreeSet<&str>> = BTreeMap::new();
    for problem in old_problems.iter().filter(|problem| problem.is_error()) {
        known.entry((&problem.path, problem.reason)).or_default().insert(&problem.message);
    }
    let is_old = |problem: &Problem| {
        let same_problem =
            known.get(&(&problem.path, problem.reason)).is_some_and(|found| found.contains(problem.message.as_str()));
        same_problem && problem.path.value_in(object) == problem.path.value_in(old_object)
    };
    let relaxed = |mut problem: Problem| {
        if problem.is_error() && is_old(&problem) {
            problem.severity = Severity::Warning;
        }
        problem
    };
    problems.into_iter().map(relaxed).collect()
}
