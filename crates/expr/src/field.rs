//! Which field of a container an expression computes.

use std::fmt;
use std::str::FromStr;

use pillion_quantity::Resource;

/// `requests` or `limits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// What a container is promised.
    Requests,
    /// What a container may not exceed.
    Limits,
}

/// One of the four fields that can be computed, such as `limits.cpu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Field {
    /// `requests` or `limits`.
    pub side: Side,
    /// `cpu` or `memory`.
    pub resource: Resource,
}

impl Field {
    /// `requests.cpu`
    pub const REQUESTS_CPU: Self = Self::new(Side::Requests, Resource::Cpu);
    /// `requests.memory`
    pub const REQUESTS_MEMORY: Self = Self::new(Side::Requests, Resource::Memory);
    /// `limits.cpu`
    pub const LIMITS_CPU: Self = Self::new(Side::Limits, Resource::Cpu);
    /// `limits.memory`
    pub const LIMITS_MEMORY: Self = Self::new(Side::Limits, Resource::Memory);
    /// All four, requests first.
    pub const ALL: [Self; 4] = [Self::REQUESTS_CPU, Self::REQUESTS_MEMORY, Self::LIMITS_CPU, Self::LIMITS_MEMORY];

    /// The field of this side and resource.
    pub const fn new(side: Side, resource: Resource) -> Self {
        Self { side, resource }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Requests => "requests",
            Self::Limits => "limits",
        })
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.side, self.resource)
    }
}

/// A field name that is none of the four.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown field {0:?}: use requests.cpu, requests.memory, limits.cpu or limits.memory")]
pub struct UnknownField(pub String);

impl FromStr for Field {
    type Err = UnknownField;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|field| field.to_string() == text).ok_or_else(|| UnknownField(text.to_owned()))
    }
}
