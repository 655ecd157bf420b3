//! What is told of a plan: what waits, and why.

use std::fmt;

use super::updater::UpdatePlan;
use super::wanted::Unsized;

/// A pod that is due and stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its uid.
    pub uid: Box<str>,
    /// Why.
    pub why: Why,
}

/// Why a pod stays as it is, or is not resized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It has not started.
    Pending,
    /// It is the copy of a static pod, or runs on Windows.
    CannotResize,
    /// It has no controller, or it is not known how many pods that is to have.
    NoGroup,
    /// There are too few of its kind; so many.
    TooFewReplicas(u32),
    /// Too many of its kind are missing or being changed.
    Budget,
    /// A `PodDisruptionBudget` allows no more.
    DisruptionBudget(Box<str>),
    /// Its node has no room now.
    Deferred,
    /// Its node never has room.
    Infeasible,
    /// Its node is at it.
    InProgress,
    /// Its node tries it again and again.
    Failing,
    /// It says already what is wanted.
    AsAsked,
    /// A container uses more memory than its limit would be.
    MemoryInUse(Box<str>),
    /// It would change its quality-of-service class.
    QosClass,
    /// A pod in its place would not be sized.
    CannotEvict(Box<str>),
    /// The object's requirements for an eviction do not hold.
    EvictionRequirements,
    /// Others take back what a container gets.
    OthersReset(Box<str>),
    /// It cannot be sized at all.
    Unsized(Unsized),
}

/// What a condition of the object should say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// So many pods have resources of their own.
    PodLevelResources(u32),
    /// Others took back what we gave this container so many times.
    OthersReset {
        /// The container.
        container: Box<str>,
        /// How often.
        times: u32,
    },
}

impl Remark {
    /// The reason of the condition, in one word.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::PodLevelResources(_) => "PodLevelResources",
            Self::OthersReset { .. } => "FoughtOver",
        }
    }
}

impl Why {
    /// In one word, where it stays so until somebody does something about it; `None` where it passes by itself.
    pub const fn lasting(&self) -> Option<&'static str> {
        Some(match self {
            Self::CannotResize => "CannotResize",
            Self::NoGroup => "ReplicasUnknown",
            Self::TooFewReplicas(_) => "TooFewReplicas",
            Self::DisruptionBudget(_) => "DisruptionBudget",
            Self::Deferred => "Deferred",
            Self::Infeasible => "Infeasible",
            Self::Failing => "ResizeFails",
            Self::MemoryInUse(_) => "MemoryInUse",
            Self::QosClass => "QosClass",
            Self::EvictionRequirements => "EvictionRequirements",
            Self::Pending | Self::Budget | Self::InProgress | Self::AsAsked
            // Those are told of the object, not of a pod.
            | Self::CannotEvict(_) | Self::OthersReset(_) | Self::Unsized(_) => return None,
        })
    }
}

impl UpdatePlan {
    /// Why not all is applied, in one word and in a sentence: what is true of the object first, else, while no pod moves, of
    /// the first by name that will not move by itself.
    pub fn hindrance(&self) -> Option<(&'static str, String)> {
        if let Some(remark) = self.remarks.first() {
            return Some((remark.reason(), remark.to_string()));
        }
        if !self.actions.is_empty() {
            return None;
        }
        let stuck = self.waiting.iter().filter_map(|own| Some((own, own.why.lasting()?)));
        let (first, reason) = stuck.min_by(|(one, _), (other, _)| one.name.cmp(&other.name))?;
        Some((reason, format!("pod {} waits: {}", first.name, first.why)))
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pending => f.write_str("it has not started"),
            Self::CannotResize => f.write_str("it is a static pod or runs on Windows, which cannot be resized"),
            Self::NoGroup => f.write_str("it has no controller that says how many pods there are to be"),
            Self::TooFewReplicas(live) => {
                write!(
                    f,
                    "so few of its kind ({live}) are not disturbed: set spec.updatePolicy.minReplicas to allow it"
                )
            }
            Self::Budget => f.write_str("enough of its kind are missing or being changed"),
            Self::DisruptionBudget(name) => write!(f, "PodDisruptionBudget {name} allows no more"),
            Self::Deferred => f.write_str("its node has no room now"),
            Self::Infeasible => f.write_str("its node has no such room at all"),
            Self::InProgress => f.write_str("its node is still at the last resize"),
            Self::Failing => f.write_str("its node fails to do the last resize and tries again"),
            Self::AsAsked => f.write_str("it says already what is wanted"),
            Self::MemoryInUse(container) => {
                write!(f, "container {container} uses more memory than its limit would be")
            }
            Self::QosClass => f.write_str("a resize would change its quality-of-service class"),
            Self::CannotEvict(why) => write!(f, "it is not evicted: {why}"),
            Self::EvictionRequirements => f.write_str("spec.updatePolicy.evictionRequirements do not hold"),
            Self::OthersReset(container) => write!(f, "others take back what container {container} gets"),
            Self::Unsized(why) => why.fmt(f),
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PodLevelResources(pods) => {
                write!(f, "{pods} pods have spec.resources and are left alone: remove them from the template")
            }
            Self::OthersReset { container, times } => write!(
                f,
                "others took back what container {container} got, {times} times: set its policy to mode Off, or take the \
                 resources out of whatever injects it"
            ),
        }
    }
}
