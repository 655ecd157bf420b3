//! Runs the built program as a container runtime would, with real children and real signals, and looks at what the
//! runtime would see: exit codes, output, and which processes are left.

#![forbid(unsafe_code)]

mod cluster;
mod copying;
mod endings;
mod hot_update;
mod plugins;
mod pod;
mod processes_left;
mod running;
mod signals;
mod tls;
mod watched_pod;
