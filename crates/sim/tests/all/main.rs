//! Updates by the planner on a cluster as a value, with everything that goes wrong in real ones: a watch that is behind, nodes
//! that take their time, images that do not run, a manager that ends at any point, and people who change their mind.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "tests")]

mod failing_images;
mod laws;
mod script;
mod world;
