//! The certificates the API server knows us by: one authority in a Secret, and a leaf per replica in memory.
//!
//! - [`rotation`]: what to do next, pure: who may sign, what the API server must trust, when either changes.
//! - [`secret`]: the authority as the Secret holds it.
//! - [`keeper`]: does it.
//!
//! No replica ever serves with a leaf of an authority that the API server does not trust yet, and none is taken out of its
//! trust while a replica may still serve with it. Replicas do not speak with each other; what they know they know from
//! the Secret and the registrations.

mod keeper;
pub mod rotation;
mod secret;

pub use keeper::{Certificates, Keeper};
