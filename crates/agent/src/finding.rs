//! What a plugin has found out, and how its configuration wants it told.

use std::collections::BTreeSet;

use pillion_agent_api::{MarkerPolicy, Storage};

use crate::board::{Condition, ConditionStatus, Marks, cut};
use crate::plugin::Context;
use crate::talk::tell;

/// No state is longer: it is a word or a number, not a document.
const MOST_STATE_BYTES: usize = 1024;
/// As Kubernetes has it.
const MOST_LABEL_BYTES: usize = 63;

/// What a plugin has found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The state, in the words of the app.
    pub state: String,
    /// Whether a condition about it holds.
    pub status: ConditionStatus,
    /// Why, as one word.
    pub reason: String,
}

impl Finding {
    /// With a state that has no blanks around it and is not too long.
    pub fn new(state: &str, status: ConditionStatus, reason: &str) -> Self {
        let mut state = state.trim().to_owned();
        cut(&mut state, MOST_STATE_BYTES);
        Self { state, status, reason: reason.to_owned() }
    }

    /// What the pod shows of it.
    pub fn marks(&self, storage: &Storage) -> Marks {
        let mut marks = Marks::default();
        if let Some(key) = &storage.label_key {
            if is_label_value(&self.state) {
                marks.labels.insert(key.clone(), self.state.clone());
            } else {
                // The state of before would be wrong now.
                marks.absent_labels.insert(key.clone());
            }
        }
        if let Some(key) = &storage.annotation_key {
            marks.annotations.insert(key.clone(), self.state.clone());
        }
        if let Some(kind) = &storage.condition_type {
            let Self { state, status, reason } = self.clone();
            marks.conditions.insert(kind.clone(), Condition { status, reason, message: state });
        }
        if let (Some(name), Some(number)) = (&storage.metric_name, self.number()) {
            marks.metrics.insert(name.clone(), number);
        }
        let chosen = self.policy(&storage.marker_policies);
        if let Some(MarkerPolicy { labels, annotations, value, .. }) = chosen {
            marks.labels.extend(labels.clone());
            marks.annotations.extend(annotations.clone());
            if let (Some(target), Some(value)) = (&storage.target, value) {
                marks.targets.push((target.clone(), value.clone()));
            }
        }
        // Also what an agent before this one may have left.
        let keys = |of: fn(&MarkerPolicy) -> Vec<String>| -> BTreeSet<String> {
            storage.marker_policies.iter().flat_map(of).collect()
        };
        marks.absent_labels.extend(keys(|policy| policy.labels.keys().cloned().collect()));
        marks.absent_annotations.extend(keys(|policy| policy.annotations.keys().cloned().collect()));
        marks.absent_labels.retain(|key| !marks.labels.contains_key(key));
        marks.absent_annotations.retain(|key| !marks.annotations.contains_key(key));
        marks
    }

    fn number(&self) -> Option<f64> {
        self.state.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// The one for this state, or the one for all that have none.
    fn policy<'a>(&self, policies: &'a [MarkerPolicy]) -> Option<&'a MarkerPolicy> {
        let for_state = |state: Option<&str>| policies.iter().find(|policy| policy.state.as_deref() == state);
        for_state(Some(&self.state)).or_else(|| for_state(None))
    }
}

impl Context {
    /// Tells what was found out as a configuration wants it told: instead of what `source` told before.
    pub fn store(&self, source: &str, storage: &Storage, finding: &Finding) {
        if let Some(key) = storage.label_key.as_ref().filter(|_| !is_label_value(&finding.state)) {
            tell(format_args!("{source}: state {:?} cannot be the value of label {key}: it is removed", finding.state));
        }
        self.board.post(source, finding.marks(storage));
    }
}

fn is_label_value(text: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= MOST_LABEL_BYTES
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
        && is_end(bytes.first())
        && is_end(bytes.last())
}

#[cfg(test)]
mod tests;
