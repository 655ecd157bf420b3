//! The wrapped program: how it is started, and how its end is told in one number.

use std::ffi::OsString;
use std::process::Command;
use std::{fmt, io};

use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

use crate::sys::{self, SignalSet};

/// As a shell says it.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;
const SIGNALLED: i32 = 128;

/// Why a program could not be started.
#[derive(Debug)]
pub(super) struct StartFailure {
    program: OsString,
    error: io::Error,
}

/// Starts a command with our streams and environment, and with these signals blocked.
pub(super) fn start(command: &[OsString], blocked: SignalSet) -> Result<Pid, StartFailure> {
    let (program, arguments) = command.split_first().expect("the command line was read with a command");
    let mut child = Command::new(program);
    child.args(arguments);
    sys::prepare_child(&mut child, blocked);
    let child = child.spawn().map_err(|error| StartFailure { program: program.clone(), error })?;
    Ok(Pid::from_raw(child.id().cast_signed()).expect("the number of a process is not zero"))
}

impl StartFailure {
    /// The code that says so.
    pub(super) fn code(&self) -> u8 {
        if self.error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE }
    }
}

impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, error } = self;
        write!(f, "{}: {error}", program.display())?;
        if error.kind() == io::ErrorKind::NotFound {
            write!(f, ": neither it nor the interpreter its first line may name is in the image")?;
        }
        Ok(())
    }
}

/// Takes leave of all ended children, adopted ones too; returns the code of this one if it is among them. Stopped ones
/// have not ended and are not asked for.
pub(super) fn reap(child: Pid) -> Option<u8> {
    let mut code = None;
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if pid == child {
            code = Some(code_of(status));
        }
    }
    code
}

fn code_of(status: WaitStatus) -> u8 {
    let code = match status.terminating_signal() {
        Some(signal) => SIGNALLED + signal,
        None => status.exit_status().unwrap_or_default(),
    };
    u8::try_from(code).unwrap_or(u8::MAX)
}
