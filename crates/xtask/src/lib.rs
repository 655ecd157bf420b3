//! Chores of this repository that need more than a shell line.
//!
//! - [`oci`] packs files into container images, byte for byte the same each time; [`image`] decides which ones.
//! - [`footprint`] measures what the agent adds to a container.
//! - [`codegen`] writes the committed files that follow from code.
//! - [`mutants`] makes the code wrong, one place at a time, to see whether tests notice.
//! - [`gate`] runs the two tiers of the gate; [`times`] says where their time goes.
//! - [`yaml`] is the one place where YAML is read and written.
//! - [`tidy`] holds the rules no lint can hold; the crate map is in [`tidy::map`].
//!
//! Everything here takes the repository as a value ([`workspace::Workspace`], [`source_tree::SourceTree`]) and returns
//! what it found or made; printing and exit codes are in `main.rs`. It knows nothing of a cluster.

#![forbid(unsafe_code)]

pub mod codegen;
pub mod finding;
pub mod footprint;
pub mod gate;
pub mod image;
pub mod mutants;
pub mod oci;
pub mod source_tree;
pub mod tidy;
pub mod times;
pub mod workspace;
pub mod yaml;
