//! The mains a sidecar outlives: have they permanently ended, and sleeping until they have.
//!
//! An end that is permanent stays so, hence they are waited for one after the other, in one thread. Those in the shared
//! folder come first: while one of them runs, the API server is not asked for the others.

use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

use crate::arguments::{RestartPolicy, Sidecar};
use crate::talk::tell;

use super::pod_status::PodStatus;
use super::state_file::{self, MainState};

/// How often to look where the kernel cannot wake us up.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The mains of one sidecar.
#[derive(Debug)]
pub(super) struct Awaited {
    dir: PathBuf,
    /// Those that are wrapped.
    mains: Vec<String>,
    restart_policy: RestartPolicy,
    not_wrapped: PodStatus,
}

impl Awaited {
    pub(super) fn new(dir: &Path, sidecar: &Sidecar) -> Self {
        Self {
            dir: dir.to_owned(),
            mains: sidecar.until.clone(),
            restart_policy: sidecar.restart_policy,
            not_wrapped: PodStatus {
                mains: sidecar.watch_pod.clone(),
                restart_policy: sidecar.restart_policy,
                token_dir: sidecar.token_dir.clone(),
            },
        }
    }

    /// Whether all have permanently ended by now. One whose file cannot be read has not.
    pub(super) fn have_ended(&self) -> bool {
        let wrapped_have = self.mains.iter().all(|main| {
            let state = state_file::look(&state_file::path(&self.dir, main));
            state.is_ok_and(|state| self.is_permanent(state))
        });
        wrapped_have && self.not_wrapped.have_ended()
    }

    /// Sleeps until all have permanently ended.
    pub(super) fn wait(&self) {
        for main in &self.mains {
            let path = state_file::path(&self.dir, main);
            let mut has_told = false;
            while let Err(error) = self.wait_for_one(&path, || Changes::of(&self.dir)) {
                if !has_told {
                    tell(format_args!("cannot read {}, will try every second: {error}", path.display()));
                    has_told = true;
                }
                thread::sleep(LOOK_AGAIN);
            }
        }
        self.not_wrapped.wait();
    }

    fn wait_for_one(&self, path: &Path, watch: impl Fn() -> Changes) -> io::Result<()> {
        loop {
            // Before the look: what happens in between wakes us up.
            let changes = watch();
            match state_file::look(path)? {
                MainState::Running => {
                    drop(changes);
                    state_file::wait_for_lock(path)?;
                }
                state if self.is_permanent(state) => return Ok(()),
                // To be started, or started again: its wrapper will write to the file.
                _ => changes.wait(),
            }
        }
    }

    fn is_permanent(&self, state: MainState) -> bool {
        match state {
            MainState::NotSeen | MainState::Running => false,
            MainState::Ended(code) => self.restart_policy.is_permanent(code),
        }
    }
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.mains.iter().chain(&self.not_wrapped.mains).map(String::as_str).collect();
        f.write_str(&names.join(", "))
    }
}

/// The next write in a folder. Held only while it is waited for: a node has few of them (128 for each user, over all
/// pods), and a main that runs is waited for by its lock.
struct Changes(Option<OwnedFd>);

impl Changes {
    fn of(dir: &Path) -> Self {
        let watch = || {
            let inotify = inotify::init(CreateFlags::CLOEXEC)?;
            inotify::add_watch(&inotify, dir, WatchFlags::CREATE | WatchFlags::MODIFY | WatchFlags::MOVED_TO)?;
            Ok::<_, io::Error>(inotify)
        };
        Self(watch().ok())
    }

    fn wait(self) {
        let mut buffer = [MaybeUninit::uninit(); 512];
        // What happened is read from the file, not from the event.
        let woken = self.0.is_some_and(|inotify| inotify::Reader::new(inotify, &mut buffer).next().is_ok());
        if !woken {
            thread::sleep(LOOK_AGAIN);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::wrap::state_file::StateFile;

    /// Waits for `app`, which starts and ends just before or just after the watch begins.
    fn wait_for_a_short_life(before: bool) {
        let dir = tempfile::tempdir().unwrap();
        let path = state_file::path(dir.path(), "app");
        let awaited = Awaited {
            dir: dir.path().to_owned(),
            mains: vec!["app".to_owned()],
            restart_policy: RestartPolicy::Never,
            not_wrapped: PodStatus { mains: vec![], restart_policy: RestartPolicy::Never, token_dir: PathBuf::new() },
        };
        let (done_tx, done_rx) = channel();
        thread::spawn(move || {
            let is_to_live = Cell::new(true);
            let live = || {
                if is_to_live.take() {
                    StateFile::claim(&path).unwrap().write_code(1).unwrap();
                }
            };
            let waited = awaited.wait_for_one(&path, || {
                if before {
                    live();
                }
                let changes = Changes::of(&awaited.dir);
                live();
                changes
            });
            done_tx.send(waited.is_ok()).unwrap();
        });
        assert_eq!(done_rx.recv_timeout(Duration::from_secs(20)), Ok(true), "before the watch: {before}");
    }

    #[test]
    fn a_main_that_lives_while_we_begin_to_watch_is_not_missed() {
        wait_for_a_short_life(true);
        wait_for_a_short_life(false);
    }
}
