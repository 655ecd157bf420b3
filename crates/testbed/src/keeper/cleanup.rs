//! Removes what outlives processes: namespace, interface, cgroups, folder. Doing it twice, or on nothing, is fine,
//! so the same function sweeps up after a keeper that was itself killed.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::cgroup;
use crate::keeper::descendants;
use crate::slot::Slot;

/// Removes everything of a slot but its log folder; returns what could not be removed.
pub(crate) fn remove_all(slot: Slot, deadline: Instant) -> Vec<String> {
    let mut left = Vec::new();
    while !strangers(slot).is_empty() && Instant::now() < deadline {
        descendants::kill(&strangers(slot));
        thread::sleep(Duration::from_millis(5));
    }
    // The link first: with the namespace it would vanish too, but some time after the command has returned.
    run("ip", &["link", "delete", &slot.host_interface()]);
    if namespace(slot).exists() {
        run("ip", &["netns", "delete", &slot.name()]);
        if namespace(slot).exists() {
            left.push(format!("network namespace {}", slot.name()));
        }
    }
    for folder in cgroup::folders(&slot.name()) {
        if let Err(error) = remove_cgroup(&folder, deadline) {
            left.push(format!("cgroup {}: {error}", folder.display()));
        }
    }
    if let Err(error) = remove_folder(&slot.folder(), deadline) {
        left.push(format!("folder {}: {error}", slot.folder().display()));
    }
    left
}

/// Whether there is anything of a bed in this slot, living or left behind.
pub(crate) fn is_in_use(slot: Slot) -> bool {
    slot.folder().exists()
        || namespace(slot).exists()
        || cgroup::folders(&slot.name()).iter().any(|folder| folder.exists())
}

/// Processes in the bed's namespace or cgroups that are not below this keeper.
fn strangers(slot: Slot) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    if namespace(slot).exists() {
        found.extend(numbers(&run("ip", &["netns", "pids", &slot.name()])));
    }
    for folder in cgroup::folders(&slot.name()) {
        for group in tree(&folder) {
            found.extend(numbers(&fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default()));
        }
    }
    found
}

fn namespace(slot: Slot) -> PathBuf {
    Path::new("/run/netns").join(slot.name())
}

fn run(program: &str, arguments: &[&str]) -> String {
    Command::new(program)
        .args(arguments)
        .output()
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default()
}

fn numbers(text: &str) -> impl Iterator<Item = i32> {
    text.split_whitespace().filter_map(|word| word.parse().ok())
}

/// A folder and all folders in it, the deepest first.
fn tree(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(tree(&entry.path()));
        }
    }
    found.push(folder.to_path_buf());
    found
}

/// A cgroup is busy for a moment after its last process has gone.
fn remove_cgroup(folder: &Path, deadline: Instant) -> io::Result<()> {
    retry(deadline, || {
        for group in tree(folder) {
            absent_is_fine(fs::remove_dir(group))?;
        }
        Ok(())
    })
}

/// A process that is being killed may still create a file while we remove.
fn remove_folder(folder: &Path, deadline: Instant) -> io::Result<()> {
    retry(deadline, || absent_is_fine(fs::remove_dir_all(folder)))
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn retry(deadline: Instant, mut attempt: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    loop {
        match attempt() {
            Err(_) if Instant::now() < deadline => thread::sleep(Duration::from_millis(10)),
            result => return result,
        }
    }
}
