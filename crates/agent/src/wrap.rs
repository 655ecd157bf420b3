//! `pillion-wrap wrap`: the parent process of a main or of a sidecar.
//!
//! What to do is decided in `course`; this file lets events in and carries the answers out. One thread reads signals,
//! one sleeps until the mains have ended; this one starts the child, reaps, and is the only one that signals, so that
//! the number of a child that is gone is never signalled. Nothing wakes up by the clock, except while the grace runs.
//!
//! The program must not notice its parent: it gets the command, environment, streams, folder, user and process group
//! as they are, no blocked signal, and every signal that the wrapper gets. Two things do differ. It is not PID 1, so
//! a signal it has no handler for does end it. And at its end the wrapper is the one that ends the container: where
//! it is PID 1 the kernel then kills what is left of the processes; where the pod shares one process namespace the
//! wrapper does the same itself, so that both behave alike.

mod awaited;
mod child;
mod course;
mod leftovers;
mod pod_status;
mod state_file;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use std::{io, thread};

use anyhow::Context;
use rustix::process::{Pid, getpid, set_child_subreaper};

use crate::arguments::{Role, Sidecar, Wrap};
use crate::sys::{self, Received, Signals};
use crate::talk::tell;

use self::awaited::Awaited;
use self::course::{Action, Course, Event};
use self::state_file::StateFile;

/// The wrapper itself could not do its work. Beside 126 and 127, which say that the program could not be started.
const WRAPPER_FAILED: u8 = 125;
/// How long killed processes may take to be gone.
const PATIENCE: Duration = Duration::from_secs(2);

/// What other threads wake up the loop with.
enum News {
    Signal(Received),
    /// All of these.
    MainsEnded(String),
}

/// Runs the command to its end, and returns the code to exit with.
pub(crate) fn wrap(request: &Wrap) -> u8 {
    let outcome = match &request.role {
        Role::Main { name } => wrap_main(request, name),
        Role::Sidecar(sidecar) => wrap_sidecar(request, sidecar),
    };
    outcome.unwrap_or_else(|error| {
        tell(format_args!("{error:#}"));
        WRAPPER_FAILED
    })
}

fn wrap_main(request: &Wrap, name: &str) -> anyhow::Result<u8> {
    let signals = take_signals()?;
    let path = state_file::path(&request.dir, name);
    // Without it the sidecars would run for ever; that is to be seen now, not when the work is done.
    let mut state = StateFile::claim(&path)
        .with_context(|| format!("cannot tell sidecars of {name} in {}: make the volume writable", path.display()))?;
    let code = run(request, name, signals, None)?;
    if let Err(error) = state.write_code(code) {
        tell(format_args!("cannot tell sidecars of {name} in {} that it ended with {code}: {error}", path.display()));
    }
    Ok(code)
}

fn wrap_sidecar(request: &Wrap, sidecar: &Sidecar) -> anyhow::Result<u8> {
    let signals = take_signals()?;
    let awaited = Awaited::new(&request.dir, sidecar);
    if awaited.have_ended() {
        // It ended after them and was restarted; once more would keep the pod from its end for ever.
        tell(format_args!("all of {awaited} ended before: {} is not started", sidecar.name));
        return Ok(0);
    }
    run(request, &sidecar.name, signals, Some((awaited, sidecar.grace)))
}

fn take_signals() -> anyhow::Result<Signals> {
    Signals::take(course::received_signals()).context("cannot receive signals")
}

/// Starts the command, and follows its course to the end.
fn run(request: &Wrap, name: &str, signals: Signals, until: Option<(Awaited, Duration)>) -> anyhow::Result<u8> {
    let is_first = getpid() == Pid::INIT;
    if !is_first {
        set_child_subreaper(Some(getpid())).context("cannot adopt orphans")?;
    }
    let child = match child::start(&request.command, signals.before()) {
        Ok(child) => child,
        Err(failure) => {
            tell(format_args!("cannot start {name}: {failure}"));
            return Ok(failure.code());
        }
    };
    // Threads only now: a process is copied best while there is one.
    let (news_tx, news_rx) = channel();
    spawn("signals", {
        let news_tx = news_tx.clone();
        move || tell_signals(signals, &news_tx)
    })?;
    let grace = until.as_ref().map_or(Duration::ZERO, |(_, grace)| *grace);
    if let Some((awaited, _)) = until {
        spawn("mains", move || {
            awaited.wait();
            let _ = news_tx.send(News::MainsEnded(awaited.to_string()));
        })?;
    }
    let code = follow(child, name, grace, &news_rx);
    if !is_first {
        leftovers::kill(Instant::now() + PATIENCE);
    }
    Ok(code)
}

fn spawn(what: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(what.to_owned()).spawn(work).map(drop)
}

fn tell_signals(mut signals: Signals, news_tx: &Sender<News>) {
    // The loop has ended only when the process ends.
    while news_tx.send(News::Signal(signals.next())).is_ok() {}
}

/// Returns the code to exit with.
fn follow(child: Pid, name: &str, grace: Duration, news_rx: &Receiver<News>) -> u8 {
    let mut course = Course::default();
    let mut kill_at = None;
    loop {
        let mut message = None;
        let event = match next_news(news_rx, kill_at) {
            Some(News::Signal(received)) if i32::from(received.number) == libc::SIGCHLD => match child::reap(child) {
                Some(code) => Event::ChildEnded(code),
                None => continue,
            },
            Some(News::Signal(received)) => Event::Signal(received),
            Some(News::MainsEnded(mains)) => {
                message = Some(format!("all of {mains} ended: {name} is to end within {} s", grace.as_secs()));
                Event::MainsEnded
            }
            None => {
                kill_at = None;
                message = Some(format!("{name} did not end within {} s: it is killed", grace.as_secs()));
                Event::GraceOver
            }
        };
        for action in course.take(event) {
            match action {
                Action::Send(number) => {
                    // It is not reaped, so it is there; only a program that became another user can be out of reach.
                    if let Err(error) = sys::send(child, number) {
                        tell(format_args!("cannot send signal {number} to {name}: {error}"));
                    }
                }
                Action::StartGrace => kill_at = Instant::now().checked_add(grace),
                Action::Exit(code) => return code,
            }
        }
        // After the deed: a log that nobody reads must not hold it up.
        if let Some(message) = message {
            tell(format_args!("{message}"));
        }
    }
}

/// `None` when it is time to kill.
fn next_news(news_rx: &Receiver<News>, kill_at: Option<Instant>) -> Option<News> {
    let received = match kill_at {
        None => news_rx.recv().map_err(|_| RecvTimeoutError::Disconnected),
        Some(kill_at) => news_rx.recv_timeout(kill_at.saturating_duration_since(Instant::now())),
    };
    match received {
        Err(RecvTimeoutError::Timeout) => None,
        news => Some(news.expect("the thread that reads signals ends with the process")),
    }
}
