//! `pillion-wrap cp` and `version`, and mistakes in the command line.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::running::{Ended, WRAPPER, run_to_end, wrapper};

const VERSION: &str = concat!("pillion-wrap ", env!("CARGO_PKG_VERSION"), "\n");

fn ended(code: i32, out: &str, told: &str) -> Ended {
    Ended { code: Some(code), out: out.to_owned(), told: told.to_owned() }
}

#[test]
fn the_version_is_told() {
    assert_eq!(run_to_end(wrapper().arg("version")), ended(0, VERSION, ""));
}

#[test]
fn wrong_usage_is_2() {
    assert_eq!(
        run_to_end(wrapper().args(["wrap", "--main=app", "--", "true"])),
        ended(2, "", "pillion-agent: wrap: --dir=DIR is missing: the folder that the pod's containers share\n")
    );
}

#[test]
fn a_copy_is_the_same_program_for_all_users_to_run_and_for_none_to_change() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("pillion-agent");
    // Twice: a pod that is started again after a reboot of its node has the volume as it was.
    for _ in 0..2 {
        assert_eq!(
            run_to_end(Command::new("/bin/sh").args(["-c", "umask 077; exec \"$0\" cp \"$1\"", WRAPPER]).arg(&target)),
            ended(0, "", "")
        );
        assert_eq!(fs::read(&target).unwrap(), fs::read(WRAPPER).unwrap());
        assert_eq!(target.metadata().unwrap().permissions().mode() & 0o7777, 0o555);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
    assert_eq!(run_to_end(Command::new(&target).arg("version")), ended(0, VERSION, ""));
}

#[test]
fn what_an_interrupted_copy_left_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let left = dir.path().join(".pillion-agent.new");
    fs::write(&left, "half").unwrap();
    fs::set_permissions(&left, fs::Permissions::from_mode(0o555)).unwrap();
    assert_eq!(run_to_end(wrapper().arg("cp").arg(dir.path().join("pillion-agent"))), ended(0, "", ""));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

/// Runs `cp` into a volume of its own, mounted with these options.
fn copy_into_volume(options: &str) -> (Ended, String) {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let volume = dir.path().display().to_string();
    let script = r#"mount -t tmpfs -o "$1" none "$2" && exec "$0" cp "$2/pillion-agent""#;
    let ended =
        run_to_end(Command::new("unshare").args(["--mount", "/bin/sh", "-c", script, WRAPPER, options, &volume]));
    (ended, volume)
}

#[test]
fn a_volume_that_runs_no_files_is_noticed_here() {
    let (seen, volume) = copy_into_volume("noexec");
    let told = format!(
        "pillion-agent: cannot run {volume}/pillion-agent in volume {volume}: make the volume writable and executable, \
         or choose `pillion.dev/finish-mode: Native`: Permission denied (os error 13)\n"
    );
    assert_eq!(seen, ended(1, "", &told));
}

#[test]
fn a_volume_that_cannot_be_written_is_named() {
    for (options, why) in
        [("ro", "Read-only file system (os error 30)"), ("size=64k", "No space left on device (os error 28)")]
    {
        let (seen, volume) = copy_into_volume(options);
        let told = format!(
            "pillion-agent: cannot write {volume}/pillion-agent into volume {volume}: make the volume writable and \
             executable, or choose `pillion.dev/finish-mode: Native`: {why}\n"
        );
        assert_eq!(seen, ended(1, "", &told));
    }
}
