//! What processes cost, in nanoseconds on a core: finer than the ticks of `/proc/PID/stat`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Nanoseconds all threads of a process have run so far.
pub(crate) fn of(pid: u32) -> Result<u64> {
    let threads = Path::new("/proc").join(pid.to_string()).join("task");
    let mut sum = 0;
    for thread in fs::read_dir(&threads).with_context(|| format!("process {pid} is gone"))? {
        // A thread may end between being listed and being read.
        let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        sum += text.split(' ').next().and_then(|nanoseconds| nanoseconds.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(sum)
}

/// The process of a program whose command line has these words.
pub(crate) fn find(program: &str, word: &str) -> Result<u32> {
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let Some(pid) = path.file_name().and_then(|name| name.to_str()?.parse().ok()) else { continue };
        let Ok(line) = fs::read_to_string(path.join("cmdline")) else { continue };
        let mut words = line.split('\0');
        if words.next().is_some_and(|first| first.ends_with(program)) && line.contains(word) {
            return Ok(pid);
        }
    }
    anyhow::bail!("no process {program} with {word}")
}
