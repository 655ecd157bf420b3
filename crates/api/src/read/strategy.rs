//! Selectors, and the strategies for new and for running pods.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{Reader, metadata};
use crate::Reason;
use crate::injection::{InjectStrategy, InjectionStrategy, RevisionPolicy};
use crate::meaning::{HealthGate, Injection, Pin, PodCount, Priority, RevisionReference, Update};
use crate::problem::{FieldPath, Problem};
use crate::selector::{LabelSelector, Selector};
use crate::update::{PriorityStrategy, UpdateStrategy, UpdateType};

/// How long a container with a startup probe must be ready, in seconds.
const DEFAULT_SETTLE: i32 = 2;

/// Both forms say the same; rules have refused what only one of them could say twice.
pub(super) fn injection(ours: Option<&InjectStrategy>, theirs: Option<&InjectionStrategy>) -> Injection {
    match (ours, theirs) {
        (Some(ours), _) => {
            let name = |revision: &Option<String>| revision.clone().map(RevisionReference::Name);
            let always = name(&ours.controller_revision).map(|it| Pin { revision: it, policy: RevisionPolicy::Always });
            let partial = name(&ours.revision).map(|it| Pin { revision: it, policy: RevisionPolicy::Partial });
            Injection {
                paused: ours.paused.unwrap_or_default(),
                pin: always.or(partial),
                proportion: ours.proportion.unwrap_or_default(),
            }
        }
        (None, Some(theirs)) => {
            let pin = theirs.revision.as_ref().and_then(|stored| {
                let name = stored.revision_name.clone().map(RevisionReference::Name);
                let version = stored.custom_version.clone().map(RevisionReference::CustomVersion);
                Some(Pin { revision: name.or(version)?, policy: stored.policy.unwrap_or_default() })
            });
            Injection {
                paused: theirs.paused.unwrap_or_default(),
                pin,
                proportion: theirs.proportion.unwrap_or_default(),
            }
        }
        (None, None) => Injection::default(),
    }
}

impl Reader {
    /// `None` for a selector that requires nothing, which a rule refuses.
    pub(super) fn selector(&mut self, stored: &LabelSelector, path: &FieldPath) -> Option<Selector> {
        for (key, value) in stored.match_labels.iter().flatten() {
            self.selector_part(key, [value], &path.field("matchLabels").key(key));
        }
        for (at, requirement) in stored.match_expressions.iter().flatten().enumerate() {
            let path = path.field("matchExpressions").index(at);
            self.selector_part(&requirement.key, requirement.values.iter().flatten(), &path);
        }
        let compiled = Selector::compile(stored)?;
        // A requirement that cannot be read is no contradiction.
        let is_wrong = |problem: &Problem| problem.is_error() && problem.path.segments().starts_with(path.segments());
        if let Some(key) = compiled.contradiction().filter(|_| !self.problems.as_slice().iter().any(is_wrong)) {
            let message = format!("nothing can match: the requirements on label {key} exclude each other");
            self.warning(Reason::DeadSelector, path.clone(), message, "remove one of them");
        }
        Some(compiled)
    }

    fn selector_part<'a>(&mut self, key: &str, values: impl IntoIterator<Item = &'a String>, path: &FieldPath) {
        let wrong = metadata::wrong_key(key).or_else(|| values.into_iter().find_map(|it| metadata::wrong_value(it)));
        if let Some(message) = wrong {
            self.error(Reason::InvalidSelector, path.clone(), message, "write it as a label");
        }
    }

    pub(super) fn update(&mut self, stored: Option<&UpdateStrategy>, path: &FieldPath) -> Option<Update> {
        let absent = UpdateStrategy::default();
        let stored = stored.unwrap_or(&absent);
        let gate = stored.health_gate.clone().unwrap_or_default();
        let kind = stored.type_.unwrap_or_default();
        let max_unavailable = pod_count(stored.max_unavailable.as_ref(), PodCount::Pods(1))?;
        if kind == UpdateType::RollingUpdate && matches!(max_unavailable, PodCount::Pods(0) | PodCount::Percent(0)) {
            self.warning(
                Reason::NeverUpdates,
                path.field("maxUnavailable"),
                "no pod may be unavailable, so no running pod will ever be updated",
                "set it to 1 or more, or type to NotUpdate if that is meant",
            );
        }
        let selector = stored.selector.as_ref().map(|stored| self.selector(stored, &path.field("selector")));
        let priority = match &stored.priority_strategy {
            Some(stored) => self.priority(stored, &path.field("priorityStrategy"))?,
            None => Priority::None,
        };
        Some(Update {
            kind,
            paused: stored.paused.unwrap_or_default(),
            selector: match selector {
                Some(compiled) => Some(compiled?),
                None => None,
            },
            partition: pod_count(stored.partition.as_ref(), PodCount::Pods(0))?,
            max_unavailable,
            priority,
            scatter: stored.scatter_strategy.iter().flatten().map(|it| (it.key.clone(), it.value.clone())).collect(),
            probe: stored.probe.unwrap_or(true),
            resize: stored.resize.unwrap_or_default(),
            settle_seconds: stored.settle_seconds.unwrap_or(DEFAULT_SETTLE).unsigned_abs(),
            gate: HealthGate {
                max_unhealthy: pod_count(gate.max_unhealthy.as_ref(), PodCount::Percent(1))?,
                rollback: gate.rollback.unwrap_or_default(),
            },
        })
    }

    fn priority(&mut self, stored: &PriorityStrategy, path: &FieldPath) -> Option<Priority> {
        if let Some(terms) = &stored.weight_priority {
            let mut weights = Vec::new();
            for (at, term) in terms.iter().enumerate() {
                let path = path.field("weightPriority").index(at).field("matchSelector");
                weights.push((u8::try_from(term.weight).ok()?, self.selector(&term.match_selector, &path)?));
            }
            return Some(Priority::Weights(weights));
        }
        let ordered = stored.order_priority.as_ref();
        Some(ordered.map_or(Priority::None, |terms| {
            Priority::Ordered(terms.iter().map(|term| term.ordered_key.clone()).collect())
        }))
    }
}

/// `None` for what a rule refuses.
fn pod_count(stored: Option<&IntOrString>, absent: PodCount) -> Option<PodCount> {
    match stored {
        None => Some(absent),
        Some(IntOrString::Int(number)) => u32::try_from(*number).ok().map(PodCount::Pods),
        Some(IntOrString::String(text)) => text.strip_suffix('%')?.parse().ok().map(PodCount::Percent),
    }
}
