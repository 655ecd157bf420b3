//! `testapp signal`: finds another process of a shared process namespace by its command line.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, getpid, kill_process};

/// Sends a signal to the one other process whose command line contains the text.
pub(crate) fn signal_the_one(proc_mount: &Path, text: &str, signal: Signal) -> anyhow::Result<Pid> {
    let pid = find_the_one(proc_mount, text, getpid())?;
    kill_process(pid, signal).with_context(|| format!("cannot signal process {}", pid.as_raw_nonzero()))?;
    Ok(pid)
}

fn find_the_one(proc_mount: &Path, text: &str, own: Pid) -> anyhow::Result<Pid> {
    let mut found = Vec::new();
    for entry in fs::read_dir(proc_mount).with_context(|| format!("cannot list {}", proc_mount.display()))? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(parse_pid) else {
            continue;
        };
        // A process may end while the list is read.
        let Ok(cmdline) = fs::read(entry.path().join("cmdline")) else {
            continue;
        };
        if pid != own && arguments_line(&cmdline).contains(text) {
            found.push(pid);
        }
    }
    found.sort_unstable_by_key(|pid| pid.as_raw_nonzero());
    match found[..] {
        [pid] => Ok(pid),
        [] => bail!("no other process has {text:?} in its command line: does the pod share its process namespace?"),
        _ => {
            let pids: Vec<String> = found.iter().map(|pid| pid.as_raw_nonzero().to_string()).collect();
            bail!("processes {} all have {text:?} in their command line: name a longer part of it", pids.join(", "))
        }
    }
}

fn parse_pid(name: &str) -> Option<Pid> {
    Pid::from_raw(name.parse().ok()?)
}

fn arguments_line(cmdline: &[u8]) -> String {
    let arguments: Vec<_> = cmdline.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    arguments.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proc_with(processes: &[(&str, &[u8])]) -> tempfile::TempDir {
        let mount = tempfile::tempdir().unwrap();
        for (name, cmdline) in processes {
            fs::create_dir(mount.path().join(name)).unwrap();
            fs::write(mount.path().join(name).join("cmdline"), cmdline).unwrap();
        }
        mount
    }

    fn pid(number: i32) -> Pid {
        Pid::from_raw(number).unwrap()
    }

    #[test]
    fn the_text_may_span_arguments_and_self_does_not_count() {
        let mount = proc_with(&[
            ("1", b"/testapp\0pause\0"),
            ("7", b"/testapp\0run\0--name\0web\0"),
            ("8", b"/testapp\0signal\0--name\0--name web\0"),
            ("9", b""),
            ("sys", b"--name web"),
        ]);
        assert_eq!(find_the_one(mount.path(), "--name web", pid(8)).unwrap(), pid(7));
    }

    #[test]
    fn none_and_several_are_refused() {
        let mount = proc_with(&[("1", b"/testapp\0pause\0"), ("12", b"/testapp\0run\0"), ("7", b"/testapp\0run\0")]);
        assert_eq!(
            find_the_one(mount.path(), "web", pid(8)).unwrap_err().to_string(),
            "no other process has \"web\" in its command line: does the pod share its process namespace?"
        );
        assert_eq!(
            find_the_one(mount.path(), "run", pid(8)).unwrap_err().to_string(),
            "processes 7, 12 all have \"run\" in their command line: name a longer part of it"
        );
    }
}
