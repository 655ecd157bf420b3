//! The two resources whose amounts are computed, and the step each is rounded to.

use std::fmt;
use std::str::FromStr;

use crate::quantity::UNIT;

/// A resource a container asks for, of the kinds that can be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// Processor time, in cores; the smallest step is a thousandth.
    Cpu,
    /// Memory, in bytes; the smallest step is one byte.
    Memory,
}

impl Resource {
    /// The name of the resource in manifests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
        }
    }

    /// The step amounts of this resource are rounded up to, in nano-units.
    pub const fn step(self) -> i128 {
        match self {
            Self::Cpu => UNIT / 1000,
            Self::Memory => UNIT,
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A resource name that is neither `cpu` nor `memory`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown resource {0:?}: use cpu or memory")]
pub struct UnknownResource(pub String);

impl FromStr for Resource {
    type Err = UnknownResource;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "cpu" => Ok(Self::Cpu),
            "memory" => Ok(Self::Memory),
            other => Err(UnknownResource(other.to_owned())),
        }
    }
}
