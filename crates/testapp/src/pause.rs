//! `testapp pause`: the sandbox process, PID 1 of a pod that shares one process namespace.

use std::process::ExitCode;

use rustix::process::{WaitOptions, wait};
use tokio::signal::unix::{SignalKind, signal};

pub(crate) async fn pause() -> anyhow::Result<ExitCode> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut child_ended = signal(SignalKind::child())?;
    loop {
        // Before the first wait too: a child may have ended before the handler was there.
        reap_ended_children();
        tokio::select! {
            _ = terminated.recv() => return Ok(ExitCode::SUCCESS),
            _ = interrupted.recv() => return Ok(ExitCode::SUCCESS),
            _ = child_ended.recv() => {}
        }
    }
}

/// Several children may have ended for one signal, so it goes on until none is left.
fn reap_ended_children() {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}
