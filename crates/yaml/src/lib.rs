//! YAML as kubectl reads it, with the place of every value.
//!
//! - [`documents`]: the values of a text as JSON, each beside a [`Node`] that says where it was written; [`Limits`] end
//!   what a hostile text can cost, and [`Wrong`] says where a text is not YAML.
//! - [`Source`]: a text with its lines, which turns bytes into a [`Place`] to point at.
//!
//! The crate knows no object of Kubernetes and no file. Reading takes stack for each level of depth: the caller gives a
//! thread that has [`STACK_PER_LEVEL`] for each level it allows.
#![forbid(unsafe_code)]

mod place;
mod read;
mod scalar;

pub use place::{Below, Node, Place, Source, Span, Step};
pub use read::{Limits, STACK_PER_LEVEL, Wrong, documents};
