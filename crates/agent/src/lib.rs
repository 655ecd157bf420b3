//! `pillion-agent`: what happens inside one pod: sidecars end when the mains have ended, the app is probed, its files
//! are updated while it runs.
//!
//! - [`plugin`]: what a part of the agent is; [`manager`]: runs them; [`finding`]: what they find out; [`board`]: what the
//!   pod is to show, and the one thread that writes it.
//! - `run`: all of that, and the file that tells what to do.
//! - `wrap`: the parent process of a main or of a sidecar; `cp`: how the program comes into a pod.
//!
//! `cp` puts this program into a volume that all containers share, `wrap` is then the parent process of a main or of
//! a sidecar. The program must run in images that hold nothing at all, as any user, with a read-only root: it is one
//! static file, starts no shell, and writes only into the folder it is given. It knows no Kubernetes type, opens no
//! port but one that a configuration names, and keeps no state but small files.

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

use crate::arguments::Request;
use crate::talk::tell;

/// As everywhere in Pillion: the command line is wrong.
const WRONG_USAGE: u8 = 2;

/// The program.
pub fn main() -> ExitCode {
    let request = match arguments::read(env::args_os().skip(1)) {
        Ok(request) => request,
        Err(error) => {
            tell(format_args!("{error:#}"));
            return ExitCode::from(WRONG_USAGE);
        }
    };
    ExitCode::from(carry_out(request))
}

fn carry_out(request: Request) -> u8 {
    match request {
        Request::Version => {
            // Nobody to tell is nothing to mend.
            let _ = writeln!(io::stdout(), "pillion-agent {}", env!("CARGO_PKG_VERSION"));
            0
        }
        Request::Copy { target } => match copy::copy_to(&target) {
            Ok(()) => 0,
            Err(error) => {
                tell(format_args!("{error:#}"));
                1
            }
        },
        Request::Wrap(request) => wrap::wrap(&request),
        Request::Run(request) => run::run(&request),
        Request::Ready(request) => ready::ready(&request),
    }
}
