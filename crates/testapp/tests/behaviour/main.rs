//! Runs the built program and looks at what a container runtime would see: its output, its exit code, its processes.

#![forbid(unsafe_code)]

mod in_place_of_a_shell;
mod pause;
mod run;
mod running;
mod use_of_resources;
