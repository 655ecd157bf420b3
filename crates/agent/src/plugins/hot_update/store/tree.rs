//! Folders by descriptor: what is in one, and how one is removed with all that is in it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat, unlinkat};
use rustix::io::Errno;

/// Deeper than any folder of ours; the app may have made others in it.
const DEEPEST: usize = 32;

/// Something in a folder.
#[derive(Debug)]
pub(super) struct FolderEntry {
    pub(super) name: String,
    pub(super) is_folder: bool,
    /// When its content changed last, as seconds and nanoseconds.
    pub(super) changed: (i64, u64),
}

/// Opens a folder below another; never through a link.
pub(super) fn open_folder(dir: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(dir, name, flags, Mode::empty())?)
}

/// What is in a folder. Names that are no text are not ours, and are left out.
pub(super) fn entries(dir: &OwnedFd) -> io::Result<Vec<FolderEntry>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(dir)? {
        let Ok(name) = entry?.file_name().to_str().map(str::to_owned) else { continue };
        if name == "." || name == ".." {
            continue;
        }
        let Ok(stat) = statat(dir, &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        found.push(FolderEntry { name, is_folder, changed: (stat.st_mtime, stat.st_mtime_nsec) });
    }
    Ok(found)
}

/// Removes a folder, or whatever has its name.
pub(super) fn remove_tree(dir: &OwnedFd, name: &str) -> io::Result<()> {
    remove(dir, name, DEEPEST)
}

fn remove(dir: &OwnedFd, name: &str, depth: usize) -> io::Result<()> {
    match unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        // What POSIX says of folders, and what Linux does.
        Err(Errno::ISDIR | Errno::PERM) if depth > 0 => {}
        Err(error) => return Err(error.into()),
    }
    let folder = open_folder(dir, name)?;
    for entry in entries(&folder)? {
        remove(&folder, &entry.name, depth - 1)?;
    }
    Ok(unlinkat(dir, name, AtFlags::REMOVEDIR)?)
}
