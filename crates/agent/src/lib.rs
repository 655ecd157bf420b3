//! What happens inside one pod: sidecars end when the mains have ended, the app is probed, its files are updated while
//! it runs. It is two programs:
//!
//! - `pillion-agent`, in a container of its own. [`plugin`]: what a part of it is; [`manager`]: runs them; [`finding`]: what
//!   they find out; [`board`]: what the pod is to show, and the one thread that writes it; `run`: all of that, and the file
//!   that tells what to do. Its file can be run and not read: the kernel then lets no other process of the same user look
//!   into it, from its first instruction.
//! - `pillion-wrap`, in containers of others: `cp` puts it into a volume that all containers share, `wrap` is then the
//!   parent process of a main or of a sidecar. It holds nothing that could be stolen, must be readable to copy itself, and is
//!   in many processes, so it has none of the other's weight.
//!
//! Both must run in images that hold nothing at all, as any user, with a read-only root: they are static files, start no
//! shell, and write only into folders they are given. They know no Kubernetes type, open no port but one that a
//! configuration names, and keep no state but small files.

pub mod api_server;
mod arguments;
mod asking;
pub mod board;
mod copy;
pub mod finding;
pub mod http;
mod json_field;
pub mod manager;
mod metrics;
mod pause;
pub mod plugin;
mod plugins;
pub mod pod;
mod ready;
mod run;
pub mod stop;
mod sys;
mod talk;
mod tally;
mod timestamp;
mod wrap;

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

pub use crate::run::run_local;

use crate::arguments::{AgentRequest, Request};
use crate::talk::tell;

/// As everywhere in Pillion: the command line is wrong.
const WRONG_USAGE: u8 = 2;

/// The program `pillion-agent`.
pub fn agent() -> ExitCode {
    let code = match arguments::read_agent(env::args_os().skip(1)) {
        Ok(AgentRequest::Version) => tell_version("pillion-agent"),
        Ok(AgentRequest::Run(request)) => run::run(&request),
        Ok(AgentRequest::Ready(request)) => ready::ready(&request),
        Err(error) => refuse(&error),
    };
    ExitCode::from(code)
}

/// The program `pillion-wrap`.
pub fn wrapper() -> ExitCode {
    let code = match arguments::read(env::args_os().skip(1)) {
        Ok(Request::Version) => tell_version("pillion-wrap"),
        Ok(Request::Copy { target }) => match copy::copy_to(&target) {
            Ok(()) => 0,
            Err(error) => {
                tell(format_args!("{error:#}"));
                1
            }
        },
        Ok(Request::Wrap(request)) => wrap::wrap(&request),
        Err(error) => refuse(&error),
    };
    ExitCode::from(code)
}

fn tell_version(program: &str) -> u8 {
    // Nobody to tell is nothing to mend.
    let _ = writeln!(io::stdout(), "{program} {}", env!("CARGO_PKG_VERSION"));
    0
}

fn refuse(error: &anyhow::Error) -> u8 {
    tell(format_args!("{error:#}"));
    WRONG_USAGE
}
