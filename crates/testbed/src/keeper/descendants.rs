//! Finds and ends every process below this one, whatever it did to get away.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Ends all descendants of this process. Since the keeper is a subreaper, an orphan becomes its child, so
/// walking the tree again and again until it is empty misses nobody. Returns those that would not die.
pub(crate) fn end_all(mut reap: impl FnMut(), deadline: Instant) -> BTreeSet<i32> {
    let own = std::process::id().cast_signed();
    loop {
        reap();
        let alive = below(own, &parents());
        if alive.is_empty() || Instant::now() > deadline {
            return alive;
        }
        kill(&alive);
        thread::sleep(Duration::from_millis(5));
    }
}

/// Sends SIGKILL to each.
pub(crate) fn kill(processes: &BTreeSet<i32>) {
    for process in processes {
        if let Some(pid) = Pid::from_raw(*process) {
            // Gone already is what we want.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Parent of every process of the machine.
fn parents() -> BTreeMap<i32, i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            Some((pid, parent_in_stat(&stat)?))
        })
        .collect()
}

/// The parent in a line of `/proc/<pid>/stat`. The command name stands in parentheses and may hold any byte.
fn parent_in_stat(stat: &str) -> Option<i32> {
    stat.get(stat.rfind(')')? + 1..)?.split_whitespace().nth(1)?.parse().ok()
}

fn below(root: i32, parents: &BTreeMap<i32, i32>) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    loop {
        let before = found.len();
        for (pid, parent) in parents {
            if *parent == root || found.contains(parent) {
                found.insert(*pid);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_may_hold_spaces_and_parentheses() {
        assert_eq!(parent_in_stat("12 (a) b (c)) S 7 12 12 0"), Some(7));
        assert_eq!(parent_in_stat("no parentheses"), None);
    }

    #[test]
    fn descendants_of_any_depth_are_found_in_any_order_of_numbers() {
        let parents = BTreeMap::from([(2, 30), (30, 9), (9, 1), (4, 1), (5, 4), (1, 0)]);
        assert_eq!(below(9, &parents), BTreeSet::from([2, 30]));
        assert_eq!(below(1, &parents), BTreeSet::from([2, 4, 5, 9, 30]));
        assert_eq!(below(5, &parents), BTreeSet::new());
    }
}
