//! The file in which a main says how it is: `running`, then its code. Its wrapper holds an exclusive lock on it for
//! its whole life.
//!
//! The kernel drops the lock however the wrapper ends, so a file without a lock that still says `running` belongs to
//! a main that was killed. Reader and writer hold the lock while they read or write, so nobody sees half a change.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

const RUNNING: &str = "running";
/// What a shell says of a process that was killed.
const KILLED: u8 = 137;
/// Sidecars may run as another user, and read it all the same.
const MODE: u32 = 0o644;

/// The file of a living main, locked.
#[derive(Debug)]
pub(super) struct StateFile(File);

/// How a main is, as its file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MainState {
    /// Its wrapper has not started yet.
    NotSeen,
    /// Its wrapper holds the lock.
    Running,
    /// Its wrapper is gone.
    Ended(u8),
}

/// Where the file of a main is.
pub(super) fn path(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("main-{name}"))
}

impl StateFile {
    /// Takes the lock and says that the main runs, whatever an earlier wrapper of it said.
    pub(super) fn claim(path: &Path) -> io::Result<Self> {
        // The child does not get it: the standard library opens files to be closed on exec.
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        // Again by the same user, or it is as it should be.
        let _ = file.set_permissions(Permissions::from_mode(MODE));
        flock(&file, FlockOperation::LockExclusive)?;
        let mut state = Self(file);
        state.write(RUNNING)?;
        Ok(state)
    }

    /// Says how the main ended.
    pub(super) fn write_code(&mut self, code: u8) -> io::Result<()> {
        self.write(&code.to_string())
    }

    /// Writes over what is there before it cuts: a code needs no room that a full disk could refuse, and its line is
    /// whole even if we are killed between the two.
    fn write(&mut self, line: &str) -> io::Result<()> {
        let line = format!("{line}\n");
        self.0.write_all_at(line.as_bytes(), 0)?;
        self.0.set_len(line.len() as u64)
    }
}

/// How a main is now.
pub(super) fn look(path: &Path) -> io::Result<MainState> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(MainState::NotSeen),
        opened => opened?,
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => return Ok(MainState::Running),
        locked => locked?,
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(parse(&text))
}

/// Sleeps while a main runs.
pub(super) fn wait_for_lock(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    flock(&file, FlockOperation::LockShared)?;
    Ok(())
}

/// What the text of a file without its lock means.
fn parse(text: &str) -> MainState {
    match text.split_once('\n') {
        // The wrapper has made it and is about to lock it.
        None => MainState::NotSeen,
        // Anything that is not a code is no word of an ordered end.
        Some((line, _)) => MainState::Ended(line.parse().unwrap_or(KILLED)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_main_is_followed_through_its_life() {
        let dir = tempfile::tempdir().unwrap();
        let path = path(dir.path(), "app");
        assert_eq!(path.file_name().unwrap(), "main-app");
        assert_eq!(look(&path).unwrap(), MainState::NotSeen);

        let mut state = StateFile::claim(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "running\n");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o644);
        assert_eq!(look(&path).unwrap(), MainState::Running);

        state.write_code(3).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "3\n");
        assert_eq!(look(&path).unwrap(), MainState::Running);
        drop(state);
        wait_for_lock(&path).unwrap();
        assert_eq!(look(&path).unwrap(), MainState::Ended(3));

        // Restarted, then killed: the first code no longer counts.
        drop(StateFile::claim(&path).unwrap());
        assert_eq!(look(&path).unwrap(), MainState::Ended(137));
    }

    #[test]
    fn readers_do_not_keep_out_one_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = path(dir.path(), "app");
        StateFile::claim(&path).unwrap().write_code(0).unwrap();
        let other = File::open(&path).unwrap();
        flock(&other, FlockOperation::LockShared).unwrap();
        assert_eq!(look(&path).unwrap(), MainState::Ended(0));
    }

    #[test]
    fn what_a_text_without_a_lock_means() {
        for (text, state) in [
            ("", MainState::NotSeen),
            ("13", MainState::NotSeen),
            ("running\n", MainState::Ended(137)),
            ("0\n", MainState::Ended(0)),
            ("143\n", MainState::Ended(143)),
            // Killed between the two steps of a write.
            ("0\nnning\n", MainState::Ended(0)),
            ("256\n", MainState::Ended(137)),
            ("-1\n", MainState::Ended(137)),
        ] {
            assert_eq!(parse(text), state, "{text:?}");
        }
    }
}
