//! Debian packages that a bed needs: installed when missing and allowed, named otherwise.

use std::process::Command;

use anyhow::{Result, bail};
use pillion_tools::Debian;

use crate::talk;

/// Installs the packages that are not there.
pub(crate) fn install<'a>(packages: impl Iterator<Item = &'a Debian>) -> Result<()> {
    let missing: Vec<&str> =
        packages.filter(|package| package.installed().is_none()).map(|package| package.package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let by_hand = format!("apt-get install --no-install-recommends {}", missing.join(" "));
    talk::say(&format!("Debian packages missing: {}", missing.join(", ")));
    if talk::run("apt-get update", "lines", apt().arg("update")).is_err() {
        bail!("cannot run apt-get here: as root run \"{by_hand}\", or install the same programs your way");
    }
    talk::run(&by_hand, "lines", apt().args(["install", "--yes", "--no-install-recommends"]).args(&missing))
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}
