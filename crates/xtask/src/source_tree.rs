//! The files of the repository as values, so that a check is a function and its tests need no disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// Every file that is or would be committed.
#[derive(Debug, Default)]
pub struct SourceTree {
    /// By path relative to the root; `None` for what is not text.
    pub files: BTreeMap<PathBuf, Option<String>>,
}

/// A file that is text.
#[derive(Clone, Copy, Debug)]
pub struct TextFile<'a> {
    /// Relative to the root.
    pub path: &'a Path,
    /// All of it.
    pub text: &'a str,
}

impl SourceTree {
    /// Reads what git tracks, and what it would track if asked to add everything.
    pub fn of_git(root: &Path) -> anyhow::Result<Self> {
        let output = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("cannot run git")?;
        ensure!(
            output.status.success(),
            "cannot list the files of {}: {}",
            root.display(),
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
        let listing = String::from_utf8(output.stdout).context("git lists a path that is not UTF-8")?;
        let mut files = BTreeMap::new();
        for path in listing.split_terminator('\0') {
            let on_disk = root.join(path);
            // What is deleted but not yet committed is still listed; a link is checked where it points to.
            if !on_disk.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
                continue;
            }
            let bytes = fs::read(&on_disk).with_context(|| format!("cannot read {}", on_disk.display()))?;
            files.insert(path.into(), String::from_utf8(bytes).ok());
        }
        Ok(Self { files })
    }

    /// A tree made of values.
    pub fn of_texts<'a>(texts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self { files: texts.into_iter().map(|(path, text)| (path.into(), Some(text.to_owned()))).collect() }
    }

    /// The files that are text, by path.
    pub fn texts(&self) -> impl Iterator<Item = TextFile<'_>> {
        self.files.iter().filter_map(|(path, text)| Some(TextFile { path, text: text.as_ref()? }))
    }

    /// The text files whose name ends so.
    pub fn texts_with_extension(&self, extension: &str) -> impl Iterator<Item = TextFile<'_>> {
        self.texts().filter(move |file| file.path.extension().is_some_and(|found| found == extension))
    }

    /// The text of one file, if it is there and is text.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<&str> {
        self.files.get(path.as_ref())?.as_deref()
    }

    /// Whether there is such a file.
    pub fn contains(&self, path: impl AsRef<Path>) -> bool {
        self.files.contains_key(path.as_ref())
    }
}

impl<'a> TextFile<'a> {
    /// Its lines with their numbers, counted from one.
    pub fn numbered_lines(&self) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(root: &Path, arguments: &[&str]) {
        let status = Command::new("git").args(arguments).current_dir(root).status().unwrap();
        assert!(status.success(), "git {arguments:?}");
    }

    #[test]
    fn committed_and_new_files_are_read_and_ignored_or_deleted_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        git(root, &["init", "--quiet"]);
        for (path, content) in [
            (".gitignore", &b"/target\n"[..]),
            ("target", b"ignored"),
            ("committed.rs", b"fn a() {}\n"),
            ("new.rs", b"fn b() {}\n"),
            ("deleted.rs", b""),
            ("picture.png", b"\x89PNG\xff"),
        ] {
            fs::write(root.join(path), content).unwrap();
        }
        git(root, &["add", "committed.rs", "deleted.rs"]);
        fs::remove_file(root.join("deleted.rs")).unwrap();
        std::os::unix::fs::symlink("absent", root.join("dangling")).unwrap();

        let tree = SourceTree::of_git(root).unwrap();
        let expected = [
            (".gitignore", Some("/target\n")),
            ("committed.rs", Some("fn a() {}\n")),
            ("new.rs", Some("fn b() {}\n")),
            ("picture.png", None),
        ]
        .map(|(path, text)| (PathBuf::from(path), text.map(str::to_owned)));
        assert_eq!(tree.files, BTreeMap::from(expected));
        let rust: Vec<_> = tree.texts_with_extension("rs").map(|file| file.path).collect();
        assert_eq!(rust, [Path::new("committed.rs"), Path::new("new.rs")]);
    }

    #[test]
    fn a_folder_without_git_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = SourceTree::of_git(folder.path()).unwrap_err().to_string();
        let expected = format!("cannot list the files of {}: fatal: not a git repository", folder.path().display());
        assert!(error.starts_with(&expected), "{error}");
    }

    #[test]
    fn lines_are_counted_from_one() {
        let tree = SourceTree::of_texts([("a.rs", "one\ntwo\n")]);
        let lines: Vec<_> = tree.texts().flat_map(|file| file.numbered_lines()).collect();
        assert_eq!(lines, [(1, "one"), (2, "two")]);
    }
}
