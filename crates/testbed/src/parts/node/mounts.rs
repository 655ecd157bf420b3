//! The node's own view of the file system: what kubelet, containerd and CNI write to fixed paths stays in the bed.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};

/// The file that says the mounts are made.
pub(crate) fn held_mark(folder: &Path) -> PathBuf {
    folder.join("held")
}

/// Runs in new mount and network namespaces: makes the mounts, says so with a file, and stays for ever, as the
/// namespaces live only as long as a process in them.
pub(crate) fn hold(folder: &Path) -> io::Result<Infallible> {
    let (upper, work) = (folder.join("var"), folder.join("var-work"));
    for needed in [&upper, &work] {
        fs::create_dir_all(needed)?;
    }
    let options = format!("lowerdir=/var,upperdir={},workdir={}", upper.display(), work.display());
    let options = std::ffi::CString::new(options)?;
    mount("overlay", "/var", "overlay", MountFlags::empty(), Some(options.as_c_str()))?;
    mount("tmpfs", "/run", "tmpfs", MountFlags::empty(), None)?;
    // Volumes mounted by the kubelet must reach the containers, which are in namespaces below this one.
    mount_change("/", MountPropagationFlags::SHARED | MountPropagationFlags::REC)?;
    for needed in ["/run/containerd", "/var/lib/kubelet", "/var/log/containers", "/var/log/pods"] {
        fs::create_dir_all(needed)?;
    }
    fs::write(held_mark(folder), "")?;
    loop {
        thread::park();
    }
}
