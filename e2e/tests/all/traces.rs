//! What a bed could leave on a machine, as a value that can be compared.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Programs of a bed; others come and go on a machine at work.
const PROGRAMS: &[&str] = &[
    "bed",
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "containerd",
    "containerd-shim-runc-v2",
    "runc",
    "kwok",
    "metrics-server",
];

/// Every trace of beds on this machine, each in words.
pub(crate) fn now() -> BTreeSet<String> {
    let mut traces = BTreeSet::new();
    for process in entries("/proc") {
        let Ok(program) = fs::read_link(Path::new("/proc").join(&process).join("exe")) else { continue };
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // The test program counts where it runs in a container, at the root of its file system.
        if PROGRAMS.contains(&name.as_str()) || program == Path::new("/testapp") {
            traces.insert(format!("process {process} {name}"));
        }
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    traces.extend(mounts.lines().map(|mount| format!("mount {mount}")));
    traces.extend(entries("/run/netns").into_iter().map(|name| format!("namespace {name}")));
    traces.extend(entries("/sys/class/net").into_iter().map(|name| format!("interface {name}")));
    let routes = fs::read_to_string("/proc/net/route").unwrap_or_default();
    traces.extend(routes.lines().map(|route| format!("route {}", route.trim())));
    for hierarchy in entries("/sys/fs/cgroup") {
        let groups = entries(Path::new("/sys/fs/cgroup").join(&hierarchy));
        let ours = groups.into_iter().filter(|name| name.contains("pillion"));
        traces.extend(ours.map(|name| format!("cgroup {hierarchy}/{name}")));
    }
    // Where the parts of a node write if nothing keeps them in the bed.
    for shared in ["/run", "/var/lib", "/var/log"] {
        traces.extend(entries(shared).into_iter().map(|name| format!("entry {shared}/{name}")));
    }
    let temporary = entries("/tmp").into_iter().filter(|name| name.contains("pillion"));
    traces.extend(temporary.map(|name| format!("folder /tmp/{name}")));
    traces
}

fn entries(folder: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
