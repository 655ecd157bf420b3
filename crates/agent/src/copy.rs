//! `pillion-wrap cp`: puts this program where the other containers of the pod find it, and tries it there.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

/// Everybody may run it, nobody may change it.
const MODE: u32 = 0o555;
const THE_WAY_OUT: &str = "make the volume writable and executable, or choose `pillion.dev/finish-mode: Native`";

/// Copies this program to a file, and runs the copy once: a volume that forbids to run files must fail here, with
/// this text, not later in every container.
pub(crate) fn copy_to(target: &Path) -> anyhow::Result<()> {
    let folder = target.parent().unwrap_or(Path::new("/"));
    let temporary = temporary_beside(target)?;
    write_own_program(&temporary).and_then(|()| fs::rename(&temporary, target)).with_context(|| {
        format!("cannot write {} into volume {}: {THE_WAY_OUT}", target.display(), folder.display())
    })?;
    let status =
        Command::new(target).arg("version").stdin(Stdio::null()).stdout(Stdio::null()).status().with_context(|| {
            format!("cannot run {} in volume {}: {THE_WAY_OUT}", target.display(), folder.display())
        })?;
    ensure!(status.success(), "{} does not run in volume {}: {status}", target.display(), folder.display());
    Ok(())
}

/// In the same folder, so that the rename is one step: a container that is restarted meanwhile finds the old program
/// or the new one.
fn temporary_beside(target: &Path) -> anyhow::Result<PathBuf> {
    let name = target.file_name().with_context(|| format!("cp: {} does not name a file", target.display()))?;
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(".new");
    Ok(target.with_file_name(temporary))
}

fn write_own_program(path: &Path) -> io::Result<()> {
    // One that was left by an earlier, interrupted start cannot be opened for writing again.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut program = File::open("/proc/self/exe")?;
    let mut copy = OpenOptions::new().write(true).create_new(true).open(path)?;
    io::copy(&mut program, &mut copy)?;
    // Set, not asked for when it is made: the umask of an image is not known.
    copy.set_permissions(Permissions::from_mode(MODE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_temporary_name_is_in_the_same_folder() {
        assert_eq!(temporary_beside(Path::new("/volume/agent")).unwrap(), Path::new("/volume/.agent.new"));
        assert_eq!(temporary_beside(Path::new("/")).unwrap_err().to_string(), "cp: / does not name a file");
    }
}
