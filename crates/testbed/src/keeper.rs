//! The bed's hold on its keeper: ask it to run and to signal parts, learn what ended, and end it.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use pillion_tools::Cache;

mod cleanup;
mod descendants;
mod process;
mod protocol;

pub use protocol::Signal;

pub(crate) use process::keep;
pub(crate) use protocol::Part;
use protocol::{Reply, Request};

use crate::error::Error;
use crate::slot::Slot;

/// Names the `bed` program for processes that are not it, such as tests.
pub(crate) const PROGRAM_VARIABLE: &str = "PILLION_BED_PROGRAM";

/// How long the keeper may take to answer; it only spawns and signals.
const PATIENCE: Duration = Duration::from_mins(2);

/// A running keeper. Dropping it ends the bed and waits until everything is gone.
#[derive(Debug)]
pub(crate) struct Keeper {
    process: Child,
    /// `None` once the end was asked for; closing it is what ends the keeper.
    requests: Option<ChildStdin>,
    replies: Receiver<Reply>,
    slot: Slot,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Parts that ended, with how.
    exited: BTreeMap<String, String>,
    /// Parts whose end was asked for.
    expected: BTreeSet<String>,
}

impl Keeper {
    /// Starts a keeper and waits until it holds a slot.
    pub(crate) fn start() -> Result<Self, Error> {
        let program = program()?;
        let mut process = Command::new(&program)
            .arg("keeper")
            .arg(slot_locks())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| Error::keeper(format!("cannot run {}: {error}", program.display())))?;
        let (Some(requests), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(Error::keeper("its pipes are missing"));
        };
        let state = Arc::new(Mutex::new(State::default()));
        let (reply_tx, replies) = channel();
        let seen = Arc::clone(&state);
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                match serde_json::from_str(&line) {
                    Ok(Reply::Exited { name, how }) => drop(lock(&seen).exited.insert(name, how)),
                    Ok(reply) => drop(reply_tx.send(reply)),
                    Err(_) => return,
                }
            }
        });
        match replies.recv_timeout(PATIENCE) {
            Ok(Reply::Holding { slot }) => Ok(Self { process, requests: Some(requests), replies, slot, state }),
            other => Err(Error::keeper(format!("it took no slot, but said {other:?}; its own message is above"))),
        }
    }

    /// The slot it holds.
    pub(crate) fn slot(&self) -> Slot {
        self.slot
    }

    /// Runs a part; returns its process.
    pub(crate) fn run(&mut self, part: Part) -> Result<i32, Error> {
        {
            let mut state = lock(&self.state);
            state.exited.remove(&part.name);
            state.expected.remove(&part.name);
        }
        match self.ask(&Request::Run(part))? {
            Reply::Running { pid } => Ok(pid),
            other => Err(unexpected(other)),
        }
    }

    /// Signals a part.
    pub(crate) fn signal(&mut self, name: &str, signal: Signal) -> Result<(), Error> {
        if matches!(signal, Signal::Terminate | Signal::Kill) {
            lock(&self.state).expected.insert(name.to_owned());
        }
        match self.ask(&Request::Signal { name: name.to_owned(), signal })? {
            Reply::Signalled => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Whether a part has ended since it was last run.
    pub(crate) fn has_exited(&self, name: &str) -> bool {
        lock(&self.state).exited.contains_key(name)
    }

    /// A part that ended without being asked to, with how.
    pub(crate) fn casualty(&self) -> Option<(String, String)> {
        let state = lock(&self.state);
        let casualty = state.exited.iter().find(|(name, _)| !state.expected.contains(*name));
        casualty.map(|(name, how)| (name.clone(), how.clone()))
    }

    /// Ends everything and waits for it. Safe to call twice.
    pub(crate) fn end(&mut self) -> Result<(), Error> {
        if let Some(mut requests) = self.requests.take() {
            // A failed write means that the keeper is ending already.
            let _ = write(&mut requests, &Request::End);
        }
        let status = self.process.wait().map_err(|error| Error::keeper(format!("cannot wait for it: {error}")))?;
        if status.success() {
            return Ok(());
        }
        Err(Error::keeper(format!("it ended with {status}; its own message is above")))
    }

    fn ask(&mut self, request: &Request) -> Result<Reply, Error> {
        let requests = self.requests.as_mut().ok_or_else(|| Error::keeper("it was ended"))?;
        write(requests, request).map_err(|error| Error::keeper(format!("it does not listen: {error}")))?;
        self.replies.recv_timeout(PATIENCE).map_err(|_| Error::keeper("it does not answer"))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // The keeper prints what it could not remove.
        let _ = self.end();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write(requests: &mut ChildStdin, request: &Request) -> io::Result<()> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    requests.write_all(&line)
}

fn unexpected(reply: Reply) -> Error {
    match reply {
        Reply::Failed { why } => Error::keeper(why),
        other => Error::keeper(format!("unexpected answer {other:?}")),
    }
}

fn slot_locks() -> PathBuf {
    Cache::of_user().root().join("beds")
}

/// The `bed` program: named by the environment, or beside the running program (tests run from a folder below it).
pub fn program() -> Result<PathBuf, Error> {
    if let Some(named) = env::var_os(PROGRAM_VARIABLE) {
        return Ok(named.into());
    }
    let own = env::current_exe().map_err(|error| Error::keeper(format!("own program unknown: {error}")))?;
    own.ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join("bed"))
        .find(|path| path.is_file())
        .ok_or_else(|| Error::keeper("the program \"bed\" is not built: run \"cargo build -p pillion-testbed\""))
}
