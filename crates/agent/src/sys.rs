//! The only unsafe code of the workspace: signals as events, and a child that dies with its parent.
//!
//! Signals are raw numbers and sets are 64 bits, as the kernel has them. The C library keeps some real-time signals
//! for itself and refuses them in its own types; an app may use them all the same, and they must reach it.

#![expect(unsafe_code, reason = "rustix has no safe words for signalfd, for kill by any number, and for pre_exec")]

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::thread;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// A signal that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) number: u8,
    /// Sent by the kernel itself, as a terminal does, and not by a process.
    pub(crate) by_kernel: bool,
}

/// Signals that no longer interrupt this process, but can be read.
pub(crate) struct Signals {
    descriptor: File,
    /// What was blocked before.
    before: SignalSet,
}

/// A bit for each signal, 1 in the lowest.
pub(crate) type SignalSet = u64;

/// Size of what the kernel writes for each signal (`struct signalfd_siginfo`).
const RECORD: usize = 128;
/// `si_code` of a signal that the kernel sent.
const SI_KERNEL: i32 = 0x80;
/// Size of a set of signals for the kernel.
const SET_SIZE: usize = size_of::<SignalSet>();

impl Signals {
    /// Blocks these signals, from 1 to 64, in this thread and all it will start, and makes them readable.
    pub(crate) fn take(numbers: impl IntoIterator<Item = u8>) -> io::Result<Self> {
        let set = numbers.into_iter().fold(0, |set: SignalSet, number| set | 1 << (number - 1));
        // With the first thread of a process musl unblocks the signals it keeps for itself, the first real-time signal
        // of other C libraries among them. That is to be over before we block them.
        thread::Builder::new().spawn(|| {})?.join().map_err(|_| io::Error::other("a thread panicked"))?;
        let before = block(set)?;
        // SAFETY: this is what the disposition is in nearly every process. Where it was inherited as ignored, the kernel
        // would take the codes of ended children away before anybody reads them.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        // SAFETY: the kernel reads one set of the size it is told.
        let made = unsafe { libc::syscall(libc::SYS_signalfd4, -1, ptr::from_ref(&set), SET_SIZE, libc::SFD_CLOEXEC) };
        let raw = i32::try_from(made).ok().filter(|raw| *raw >= 0).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the kernel has just given us this descriptor, and nobody else knows its number.
        let descriptor = unsafe { OwnedFd::from_raw_fd(raw) };
        Ok(Self { descriptor: File::from(descriptor), before })
    }

    /// What was blocked before, and is to be in a child.
    pub(crate) fn before(&self) -> SignalSet {
        self.before
    }

    /// Waits for the next one.
    pub(crate) fn next(&mut self) -> Received {
        let mut record = [0; RECORD];
        self.descriptor.read_exact(&mut record).expect("the kernel has no reason to refuse whole records");
        received(&record)
    }
}

/// Blocks these signals and no others in this thread; returns what was blocked before.
fn block(set: SignalSet) -> io::Result<SignalSet> {
    let mut before: SignalSet = 0;
    // SAFETY: the kernel reads one set and writes one, both of the size it is told. A blocked signal can break no
    // promise of this process: no code here installs or relies on a handler.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            ptr::from_ref(&set),
            ptr::from_mut(&mut before),
            SET_SIZE,
        )
    };
    if failed == 0 { Ok(before) } else { Err(io::Error::last_os_error()) }
}

/// Reads `ssi_signo` and `ssi_code`, the first and the third number of the record.
fn received(record: &[u8; RECORD]) -> Received {
    let word = |at: usize| [record[at], record[at + 1], record[at + 2], record[at + 3]];
    Received {
        number: u8::try_from(u32::from_ne_bytes(word(0))).unwrap_or(0),
        by_kernel: i32::from_ne_bytes(word(8)) == SI_KERNEL,
    }
}

/// Sends any signal.
pub(crate) fn send(pid: Pid, number: u8) -> io::Result<()> {
    // SAFETY: kill takes two numbers and touches no memory of ours.
    let sent = unsafe { libc::kill(pid.as_raw_nonzero().get(), i32::from(number)) };
    if sent == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives a child the blocked signals of before, and has the kernel kill it when the thread that starts it ends. Where
/// this process is PID 1 the kernel does so anyway; where a pod shares one process namespace a child would go on
/// without us, and nobody would know of it.
pub(crate) fn prepare_child(command: &mut Command, blocked: SignalSet) {
    let parent = rustix::process::getpid();
    let prepare = move || {
        block(blocked)?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have ended before that. One outside of the child's process namespace has no number.
        match getppid() {
            Some(now) if now != parent => Err(io::Error::from_raw_os_error(libc::ESRCH)),
            _ => Ok(()),
        }
    };
    // SAFETY: between fork and exec it makes three system calls; it takes no lock and allocates nothing.
    unsafe {
        command.pre_exec(prepare);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_and_sender_are_read_from_a_record() {
        let mut record = [0xff; RECORD];
        record[0..4].copy_from_slice(&15_u32.to_ne_bytes());
        record[8..12].copy_from_slice(&0_i32.to_ne_bytes());
        assert_eq!(received(&record), Received { number: 15, by_kernel: false });
        record[8..12].copy_from_slice(&0x80_i32.to_ne_bytes());
        assert_eq!(received(&record), Received { number: 15, by_kernel: true });
    }
}
