//! What was decided about a pod, and why.

use pillion_api::Reason;
use pillion_expr::{Field, Input, Mode, Outcome as Computed, Program, Quantity};
use serde_json::Value;

use pillion_pod::Operation;

/// What happens to a pod.
#[derive(Clone, Debug)]
pub struct Decision<'a> {
    /// What each set that was asked decided, in the order of their names.
    pub verdicts: Vec<Verdict<'a>>,
    /// How each sidecar of the pod that is marked as one is ended, in the order of the pod.
    pub endings: Vec<Ending>,
    /// Why the pod is refused whatever the sets say: what it asks for itself cannot be done.
    pub refusal: Option<Refusal>,
    /// The changes. None where the pod is refused.
    pub patch: Vec<Operation>,
    /// The pod with the changes; `None` where there are none.
    pub pod: Option<Value>,
}

impl<'a> Decision<'a> {
    /// The verdicts the pod is refused for.
    pub fn refusals(&self) -> impl Iterator<Item = &Verdict<'a>> {
        self.verdicts.iter().filter(|verdict| verdict.outcome == Outcome::Refused)
    }

    /// Whether the pod is refused.
    pub fn is_refused(&self) -> bool {
        self.refusal.is_some() || self.refusals().next().is_some()
    }
}

/// How a sidecar is ended when all others have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Name of the sidecar.
    pub container: String,
    /// How: [`Reason::EndsAsNative`], [`Reason::EndsByAgent`] or [`Reason::EndsNever`].
    pub reason: Reason,
    /// The same in words.
    pub message: String,
    /// What a person should know besides.
    pub warnings: Vec<Warning>,
}

/// Why something cannot be done to a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// The same in words, for this pod.
    pub message: String,
}

impl Refusal {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// What one set decided about a pod.
#[derive(Clone, Debug)]
pub struct Verdict<'a> {
    /// Name of the set.
    pub set: &'a str,
    /// The revision that was used or would have been.
    pub revision: &'a str,
    /// The reservation by which it was chosen, if it was by one.
    pub reservation: Option<&'a str>,
    /// What came of it.
    pub outcome: Outcome,
    /// Why; exactly one code.
    pub reason: Reason,
    /// The same in words, for this pod.
    pub message: String,
    /// The amounts that were computed, in the order of the containers.
    pub sizes: Vec<Size<'a>>,
    /// What a person should know besides.
    pub warnings: Vec<Warning>,
}

/// What came of a set that matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its sidecars are added.
    Applied,
    /// Its sidecars are there already.
    Kept,
    /// It is left out, as somebody wanted.
    Skipped,
    /// It could not be applied, and is left out because its failurePolicy is Ignore.
    Ignored,
    /// It could not be applied, and the pod is refused because its failurePolicy is Fail.
    Refused,
    /// It changes nothing because it only observes. The reason says what it would have done.
    Observed,
}

impl Outcome {
    /// Whether the pod has the sidecars of the set.
    pub const fn is_present(self) -> bool {
        matches!(self, Self::Applied | Self::Kept)
    }

    /// In one word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Applied => "inject",
            Self::Kept => "keep",
            Self::Skipped => "skip",
            Self::Ignored => "ignore",
            Self::Refused => "refuse",
            Self::Observed => "observe",
        }
    }
}

/// Something a person should know, though it stops nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What kind it is.
    pub reason: Reason,
    /// In words.
    pub message: String,
}

/// An amount that was computed for a sidecar.
#[derive(Clone, Debug)]
pub struct Size<'a> {
    /// Name of the sidecar.
    pub container: &'a str,
    /// Which amount.
    pub field: Field,
    /// The expression.
    pub program: &'a Program,
    /// How the targets became one amount.
    pub mode: Mode,
    /// The containers it was computed from, with what they have.
    pub targets: Vec<(&'a str, Option<Quantity>)>,
    /// What they come to.
    pub input: Input,
    /// What the sidecar gets.
    pub result: Computed,
}
