//! Decides which outside programs the tests and the gates use, in which version, and where each one is.
//!
//! - [`CATALOGUE`]: every tool with its version and the way it is made.
//! - [`Cache`]: the folder outside the clone that holds built tools, keyed by version and recipe.
//! - [`Cache::program`]: the path of one program, or an error that says how to get it.
//!
//! The library only looks; the `tools` program beside it (`just tools`) builds what is missing. It knows
//! nothing of Kubernetes clusters or of Pillion's own crates.
#![forbid(unsafe_code)]

mod cache;
mod catalogue;

pub use cache::{Cache, MissingProgram, RecipeError, workspace_root};
pub use catalogue::{CATALOGUE, Debian, Group, RUNC, Recipe, Tool, debian_packages};
