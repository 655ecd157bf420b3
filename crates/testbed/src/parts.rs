//! The parts of a bed: how each is started, and how it is known to be ready. One file each.

pub(crate) mod api_server;
pub(crate) mod controllers;
pub(crate) mod etcd;
pub(crate) mod fleet;
pub(crate) mod metrics_server;
pub(crate) mod node;
