//! The cgroups of a bed: one folder in every hierarchy of the machine (v1), or one in all (v2).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const MOUNT: &str = "/sys/fs/cgroup";

/// The folder of that name in each hierarchy, existing or not.
pub(crate) fn folders(name: &str) -> Vec<PathBuf> {
    hierarchies(Path::new(MOUNT)).into_iter().map(|hierarchy| hierarchy.join(name)).collect()
}

/// Makes them, so that the kubelet finds its root in each.
pub(crate) fn create(name: &str) -> io::Result<()> {
    for folder in folders(name) {
        fs::create_dir_all(&folder)?;
        // In v1 a new cpuset has no processors and no memory, and no process can enter it.
        let Some(parent) = folder.parent() else { continue };
        for setting in ["cpuset.cpus", "cpuset.mems"] {
            let only_in_v1 = fs::read(parent.join(setting));
            if let Ok(value) = only_in_v1 {
                fs::write(folder.join(setting), value)?;
            }
        }
    }
    Ok(())
}

/// With v2 the mount is the one hierarchy; with v1 each folder in it is one, but for the `unified` guest.
/// Only v1 has been run.
fn hierarchies(mount: &Path) -> Vec<PathBuf> {
    if mount.join("cgroup.controllers").exists() {
        return vec![mount.to_path_buf()];
    }
    let mut found: Vec<PathBuf> = fs::read_dir(mount)
        .into_iter()
        .flatten()
        .flatten()
        // Links such as `cpu,cpuacct` name a hierarchy a second time.
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .filter(|path| !path.ends_with("unified"))
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v1_has_a_hierarchy_per_controller_and_v2_one() {
        let mount = tempfile::tempdir().unwrap();
        for folder in ["memory", "cpu", "unified"] {
            fs::create_dir(mount.path().join(folder)).unwrap();
        }
        std::os::unix::fs::symlink("cpu", mount.path().join("cpu,cpuacct")).unwrap();
        assert_eq!(hierarchies(mount.path()), [mount.path().join("cpu"), mount.path().join("memory")]);
        fs::write(mount.path().join("cgroup.controllers"), "cpu memory").unwrap();
        assert_eq!(hierarchies(mount.path()), [mount.path()]);
    }
}
