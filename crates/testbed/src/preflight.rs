//! Looks for everything a bed needs before anything is started, and names all that is missing at once.

use std::fs;
use std::path::PathBuf;

use pillion_tools::{Cache, Group, debian_packages};

use crate::config::Config;
use crate::error::Error;
use crate::logs::target_folder;

/// The archives of images that a real node gets: all there are. Without that of the test images there is no sandbox.
pub(crate) fn images() -> Vec<PathBuf> {
    let others = fs::read_dir(images_folder()).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut archives: Vec<_> = others.filter(|path| path.extension().is_some_and(|it| it == "tar")).collect();
    archives.sort();
    archives
}

fn images_folder() -> PathBuf {
    target_folder().join("images")
}

fn test_images() -> PathBuf {
    images_folder().join("testbed.tar")
}

/// Fails with one message that lists every missing thing and the command that brings it.
pub(crate) fn check(config: &Config) -> Result<(), Error> {
    let cache = Cache::of_user();
    let mut programs = vec!["etcd", "kube-apiserver", "kubectl"];
    if config.controllers {
        programs.extend(["kube-controller-manager", "kube-scheduler"]);
    }
    if config.node {
        programs.extend(["kubelet", "containerd", "ctr"]);
    }
    if config.fleet.is_some() {
        programs.push("kwok");
    }
    if config.metrics {
        programs.push("metrics-server");
    }
    let mut missing: Vec<String> =
        programs.iter().filter_map(|program| cache.program(program).err()).map(|error| error.to_string()).collect();
    for package in debian_packages(Group::Bed) {
        if package.installed().is_none() {
            missing.push(format!("{} (Debian package) is not installed: run \"just tools\"", package.package));
        }
    }
    if config.node && !test_images().is_file() {
        missing.push(format!("{} is not there: run \"just images\"", test_images().display()));
    }
    if !rustix::process::geteuid().is_root() {
        missing.push("a bed makes network namespaces and cgroups: run as root".to_owned());
    }
    if missing.is_empty() { Ok(()) } else { Err(Error::NotPrepared(missing.join("\n"))) }
}
