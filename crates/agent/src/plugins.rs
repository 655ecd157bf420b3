//! What the agent can do.

pub mod hot_update;
