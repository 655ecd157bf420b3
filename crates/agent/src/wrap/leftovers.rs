//! Processes that outlive the wrapped program. Where the wrapper is PID 1 the kernel kills them when it exits; here
//! the same is done where it is not.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

use crate::talk::tell;

/// How soon it is looked again.
const TICK: Duration = Duration::from_millis(5);

/// Kills all descendants. The wrapper adopts orphans, so the children of a killed child are its own children in the
/// next round, and only the first generation has to be found.
pub(super) fn kill(deadline: Instant) {
    loop {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
        for child in children() {
            // They are not reaped meanwhile, so the number is still theirs.
            let _ = kill_process(child, Signal::KILL);
        }
        if Instant::now() > deadline {
            return tell(format_args!("some processes cannot be killed"));
        }
        thread::sleep(TICK);
    }
}

fn children() -> Vec<Pid> {
    let own = getpid().as_raw_nonzero().get();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read(entry.path().join("stat")).ok()?;
            (parent_in_stat(&stat)? == own).then(|| Pid::from_raw(pid))?
        })
        .collect()
}

/// The parent in a line of `/proc/<pid>/stat`. The command name stands in parentheses and may hold any byte.
fn parent_in_stat(stat: &[u8]) -> Option<i32> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    str::from_utf8(&stat[name_end + 1..]).ok()?.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_may_hold_any_byte() {
        assert_eq!(parent_in_stat(b"12 (a) \xff(c)) S 7 12 12 0"), Some(7));
        assert_eq!(parent_in_stat(b"no parentheses"), None);
    }
}
