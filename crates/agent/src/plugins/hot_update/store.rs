//! The folder that agent and app share.
//!
//! ```text
//! fileDir/
//!   game.conf -> current/game.conf
//!   current   -> .versions/v2-0f1e2d3c4b5a      changed by one rename
//!   .versions/
//!     original/game.conf                        what was there before us, if anything was
//!     v1-aabbccddeeff/game.conf                 read-only
//!     v2-0f1e2d3c4b5a/game.conf
//!     state                                     what was asked, and what became of it
//!     .new/                                     a download; left over only by a kill
//! ```
//!
//! Every step leaves the app either the old file or the new one, also when the agent is killed in it. The app may write
//! into the folder and is not trusted: every name is one segment below a folder that is open, and no link is followed,
//! so nothing it puts there can lead the agent elsewhere.

mod tree;

use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, fstatvfs, fsync, linkat, mkdirat, openat, readlinkat, renameat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use self::tree::{FolderEntry, entries, open_folder, remove_tree};

const VERSIONS: &str = ".versions";
const CURRENT: &str = "current";
/// What was there before us.
pub(super) const ORIGINAL: &str = "original";
const STATE: &str = "state";
/// Names of what is not finished.
const NEW: &str = ".new";
const NEW_CURRENT: &str = ".current.new";
const NEW_LINK: &str = ".link.new";
const NEW_STATE: &str = ".state.new";
/// Everybody may read it, nobody may change it.
const FILE_MODE: u32 = 0o444;
const FOLDER_MODE: u32 = 0o755;
/// More than any record.
const MOST_STATE_BYTES: u64 = 64 * 1024;
/// What a file name may have, besides letters and digits.
const MARKS_OF_NAMES: [char; 3] = ['.', '-', '_'];
const LONGEST_NAME: usize = 128;

/// The folder.
#[derive(Debug)]
pub(super) struct Store {
    dir: OwnedFd,
    versions: OwnedFd,
}

/// A stored version: its folder, and its file in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) folder: String,
    pub(super) file: String,
}

/// A version that is being written. What is dropped unfinished is removed with the next one.
#[derive(Debug)]
pub(super) struct Unfinished {
    pub(super) file: File,
    folder: OwnedFd,
}

impl Entry {
    /// Where a version is kept.
    pub(super) fn of(version: &str, sha256: &str, file: &str) -> Self {
        let digits: String = sha256.chars().take(12).collect();
        Self { folder: format!("{version}-{digits}"), file: file.to_owned() }
    }
}

/// Whether a file may have this name in the folder; says why not.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || MARKS_OF_NAMES.contains(&c));
    let is_free = !name.is_empty() && !name.starts_with('.') && name != CURRENT && name.len() <= LONGEST_NAME;
    if is_plain && is_free {
        return Ok(());
    }
    Err(format!(
        "{name:?} is no name for the file: set fileName to letters, digits, dots, - and _ (not {CURRENT:?}, no dot at the begin)"
    ))
}

impl Store {
    /// Opens the folder, and removes what a killed agent has left unfinished.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let dir = openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        match mkdirat(&dir, VERSIONS, Mode::from_raw_mode(FOLDER_MODE)) {
            Err(Errno::EXIST) => {}
            made => made?,
        }
        let versions = open_folder(&dir, VERSIONS)?;
        let store = Self { dir, versions };
        for name in [NEW_CURRENT, NEW_LINK] {
            remove_if_there(&store.dir, name)?;
        }
        remove_if_there(&store.versions, NEW_STATE)?;
        remove_tree(&store.versions, NEW)?;
        Ok(store)
    }

    /// Bytes that may still be written.
    pub(super) fn free_bytes(&self) -> io::Result<u64> {
        let room = fstatvfs(&self.dir)?;
        Ok(room.f_bavail.saturating_mul(room.f_frsize))
    }

    /// The file of a version, if it is stored.
    pub(super) fn file(&self, entry: &Entry) -> Option<File> {
        self.part(entry, &entry.file)
    }

    /// What is kept beside the file of a version.
    pub(super) fn note(&self, entry: &Entry, name: &str) -> Option<String> {
        let mut text = String::new();
        self.part(entry, name)?.take(MOST_STATE_BYTES).read_to_string(&mut text).ok()?;
        Some(text)
    }

    fn part(&self, entry: &Entry, name: &str) -> Option<File> {
        open_regular(&open_folder(&self.versions, &entry.folder).ok()?, name).ok()
    }

    /// Begins a version.
    pub(super) fn begin(&self, name: &str) -> io::Result<Unfinished> {
        remove_tree(&self.versions, NEW)?;
        mkdirat(&self.versions, NEW, Mode::from_raw_mode(FOLDER_MODE))?;
        let folder = open_folder(&self.versions, NEW)?;
        let file = create(&folder, name)?;
        Ok(Unfinished { file, folder })
    }

    /// Finishes a version: it is then there as a whole, whatever happens.
    pub(super) fn finish(&self, unfinished: Unfinished, entry: &Entry, note: Option<(&str, &str)>) -> io::Result<()> {
        let Unfinished { file, folder } = unfinished;
        seal(&file)?;
        if let Some((name, text)) = note {
            let mut file = create(&folder, name)?;
            file.write_all(text.as_bytes())?;
            seal(&file)?;
        }
        fsync(&folder)?;
        match open_folder(&self.versions, &entry.folder) {
            // It is there, and is not what it should be. The app may be reading it: file by file, each in one step.
            Ok(there) => {
                for FolderEntry { name, .. } in entries(&folder)? {
                    renameat(&folder, &name, &there, &name)?;
                }
                fsync(&there)?;
                remove_tree(&self.versions, NEW)?;
            }
            Err(_) => renameat(&self.versions, NEW, &self.versions, &entry.folder)?,
        }
        fsync(&self.versions)?;
        Ok(())
    }

    /// Removes a version that is not finished.
    pub(super) fn discard(&self) -> io::Result<()> {
        remove_tree(&self.versions, NEW)
    }

    /// The folder of the version that the app has.
    pub(super) fn current(&self) -> Option<String> {
        let target = readlinkat(&self.dir, CURRENT, Vec::new()).ok()?.into_string().ok()?;
        target.strip_prefix(VERSIONS)?.strip_prefix('/').map(str::to_owned)
    }

    /// Gives the app this version.
    pub(super) fn place(&self, entry: &Entry) -> io::Result<()> {
        if self.file(entry).is_none() {
            return Err(io::Error::other(format!("{} is not stored any more", entry.folder)));
        }
        self.link(&entry.file)?;
        if self.current().as_deref() != Some(&entry.folder) {
            self.point_current_to(&entry.folder)?;
        }
        Ok(())
    }

    /// Gives the app what it had before the first version.
    pub(super) fn restore_original(&self) -> io::Result<()> {
        let original = open_folder(&self.versions, ORIGINAL).ok();
        match &original {
            Some(_) => self.point_current_to(ORIGINAL)?,
            None => remove_if_there(&self.dir, CURRENT)?,
        }
        for FolderEntry { name, .. } in entries(&self.dir)? {
            let is_original = original.as_ref().is_some_and(|folder| open_regular(folder, &name).is_ok());
            if self.is_linked(&name) && !is_original {
                remove_if_there(&self.dir, &name)?;
            }
        }
        Ok(fsync(&self.dir)?)
    }

    fn point_current_to(&self, folder: &str) -> io::Result<()> {
        self.replace_by_link(CURRENT, NEW_CURRENT, &format!("{VERSIONS}/{folder}"))
    }

    fn replace_by_link(&self, name: &str, temporary: &str, target: &str) -> io::Result<()> {
        remove_if_there(&self.dir, temporary)?;
        symlinkat(target, &self.dir, temporary)?;
        renameat(&self.dir, temporary, &self.dir, name)?;
        Ok(fsync(&self.dir)?)
    }

    fn is_linked(&self, file: &str) -> bool {
        readlinkat(&self.dir, file, Vec::new()).is_ok_and(|target| target.to_bytes() == link_target(file).as_bytes())
    }

    /// Lets the name of the file lead to the current version.
    fn link(&self, file: &str) -> io::Result<()> {
        if self.is_linked(file) {
            return Ok(());
        }
        let there = open_regular(&self.dir, file);
        match there {
            Ok(original) => self.adopt(original, file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => {
                return Err(io::Error::other(format!("{file} is there and is no file: remove it from the folder")));
            }
        }
        self.replace_by_link(file, NEW_LINK, &link_target(file))
    }

    /// Keeps a file that was there before us as the version to go back to.
    fn adopt(&self, mut original: File, file: &str) -> io::Result<()> {
        match self.current().as_deref() {
            // A kill came after this step and before the next.
            Some(ORIGINAL) => return Ok(()),
            Some(_) => {
                return Err(io::Error::other(format!(
                    "{file} is there and is not a version: remove it from the folder"
                )));
            }
            None => {}
        }
        remove_tree(&self.versions, NEW)?;
        mkdirat(&self.versions, NEW, Mode::from_raw_mode(FOLDER_MODE))?;
        let folder = open_folder(&self.versions, NEW)?;
        // A file of another user may not be linked, but copied.
        if linkat(&self.dir, file, &folder, file, AtFlags::empty()).is_err() {
            let mut copy = create(&folder, file)?;
            io::copy(&mut original, &mut copy)?;
            seal(&copy)?;
        }
        fsync(&folder)?;
        remove_tree(&self.versions, ORIGINAL)?;
        renameat(&self.versions, NEW, &self.versions, ORIGINAL)?;
        fsync(&self.versions)?;
        self.point_current_to(ORIGINAL)
    }

    /// Removes names that led to files of earlier versions.
    pub(super) fn remove_other_links(&self, file: &str) -> io::Result<()> {
        for FolderEntry { name, .. } in entries(&self.dir)? {
            if name != file && self.is_linked(&name) {
                remove_if_there(&self.dir, &name)?;
            }
        }
        Ok(())
    }

    /// Removes the oldest versions until so many are left; those that are spared count, and stay. Returns the removed.
    pub(super) fn prune(&self, keep: usize, spared: &[&str]) -> io::Result<Vec<String>> {
        let current = self.current();
        let is_spared = |name: &str| spared.contains(&name) || current.as_deref() == Some(name);
        let folders = entries(&self.versions)?.into_iter().filter(|entry| entry.is_folder && entry.name != ORIGINAL);
        let mut folders: Vec<FolderEntry> = folders.filter(|entry| !entry.name.starts_with('.')).collect();
        folders.sort_by(|a, b| (a.changed, &a.name).cmp(&(b.changed, &b.name)));
        let surplus = folders.len().saturating_sub(keep);
        let removed: Vec<String> =
            folders.into_iter().map(|entry| entry.name).filter(|name| !is_spared(name)).take(surplus).collect();
        for name in &removed {
            remove_tree(&self.versions, name)?;
        }
        Ok(removed)
    }

    /// What was written with [`Self::write_state`].
    pub(super) fn read_state(&self) -> Option<String> {
        read_state(&self.versions)
    }

    /// Replaces the record in one step.
    pub(super) fn write_state(&self, text: &str) -> io::Result<()> {
        remove_if_there(&self.versions, NEW_STATE)?;
        let mut file = create(&self.versions, NEW_STATE)?;
        file.write_all(text.as_bytes())?;
        file.set_permissions(Permissions::from_mode(0o644))?;
        file.sync_all()?;
        renameat(&self.versions, NEW_STATE, &self.versions, STATE)?;
        Ok(fsync(&self.versions)?)
    }
}

/// The record in a folder that another process of the agent keeps; nothing is changed.
pub(super) fn peek_state(path: &Path) -> Option<String> {
    let dir = openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    read_state(&open_folder(&dir, VERSIONS).ok()?)
}

fn read_state(versions: &OwnedFd) -> Option<String> {
    let mut text = String::new();
    open_regular(versions, STATE).ok()?.take(MOST_STATE_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

fn link_target(file: &str) -> String {
    format!("{CURRENT}/{file}")
}

fn remove_if_there(dir: &OwnedFd, name: &str) -> io::Result<()> {
    match unlinkat(dir, name, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        removed => Ok(removed?),
    }
}

fn create(dir: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(dir, name, flags, Mode::from_raw_mode(0o600))?))
}

/// Opens what is a file, and neither a link to one nor a pipe that would have us wait.
fn open_regular(dir: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(dir, name, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other(format!("{name} is no file"))) }
}

fn seal(file: &File) -> io::Result<()> {
    // Set, not asked for when it is made: the umask of an image is not known.
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    file.sync_all()
}

#[cfg(test)]
mod tests;
