//! The wrapped containers of one pod: processes that share a folder.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::fs::{CWD, FileType, FlockOperation, Mode, flock, mknodat};

use crate::running::{Running, wait_until, wrapper};

pub(crate) struct Pod {
    dir: tempfile::TempDir,
    pub(crate) restart_policy: &'static str,
}

impl Pod {
    pub(crate) fn never() -> Self {
        Self { dir: tempfile::tempdir().expect("a folder for the test"), restart_policy: "Never" }
    }

    pub(crate) fn on_failure() -> Self {
        Self { restart_policy: "OnFailure", ..Self::never() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A new pipe with a name: who reads from it sleeps until somebody writes.
    pub(crate) fn fifo(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        let _ = fs::remove_file(&path);
        mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).expect("the folder is ours");
        path
    }

    /// What the file of a main says.
    pub(crate) fn state_of(&self, main: &str) -> String {
        fs::read_to_string(self.path(&format!("main-{main}"))).expect("the main has been seen")
    }

    /// A main that runs a shell script.
    pub(crate) fn main(&self, name: &str, script: &str) -> Command {
        self.wrapped(&[format!("--main={name}")], &["/bin/sh", "-c", script])
    }

    /// A sidecar named `side` that runs a shell script until these mains have ended.
    pub(crate) fn sidecar(&self, until: &[&str], grace_seconds: u32, script: &str) -> Command {
        let mut flags = vec!["--sidecar=side".to_owned()];
        flags.extend(until.iter().map(|main| format!("--until={main}")));
        flags.push(format!("--restart-policy={}", self.restart_policy));
        flags.push(format!("--grace-seconds={grace_seconds}"));
        self.wrapped(&flags, &["/bin/sh", "-c", script])
    }

    pub(crate) fn wrapped(&self, flags: &[String], command: &[&str]) -> Command {
        let mut wrapped = wrapper();
        wrapped.arg("wrap").arg(format!("--dir={}", self.dir.path().display())).args(flags).arg("--").args(command);
        wrapped
    }

    /// A main that runs until it is told otherwise, with its lock taken.
    pub(crate) fn running_main(&self, name: &str) -> Running {
        let main = Running::start(&mut self.main(name, "echo started; exec sleep 60"));
        assert_eq!(main.line(), "started");
        main
    }

    /// Waits until a sidecar sleeps in the lock of this main, so that its next end is seen by the lock alone.
    pub(crate) fn wait_until_awaited(&self, main: &str) {
        let path = self.path(&format!("main-{main}"));
        wait_until("a sidecar to wait for the lock", || {
            let Ok(metadata) = path.metadata() else { return false };
            let locks = fs::read_to_string("/proc/locks").expect("the kernel lists locks");
            let inode = format!(":{} ", metadata.ino());
            locks.lines().any(|line| line.contains("->") && line.contains(&inode))
        });
    }

    /// Writes the file of a main that has ended, as its wrapper would have.
    pub(crate) fn write_state(&self, main: &str, text: &str) {
        fs::write(self.path(&format!("main-{main}")), text).expect("the folder is ours");
    }

    /// Whether nobody holds the lock of a main.
    pub(crate) fn is_unlocked(&self, main: &str) -> bool {
        let file = fs::File::open(self.path(&format!("main-{main}"))).expect("the main has been seen");
        flock(&file, FlockOperation::NonBlockingLockShared).is_ok()
    }
}
