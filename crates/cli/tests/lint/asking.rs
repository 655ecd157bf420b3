//! How the tests ask: a folder of files, a call, and everything a person sees of it.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// Some files, in a folder of their own.
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("it is in a folder")).expect("folders can be made");
            fs::write(path, text).expect("files can be written");
        }
        Self(folder)
    }

    pub(crate) fn lint(&self, arguments: &[&str]) -> String {
        seen(&command(self.0.path(), arguments).output().expect("pillion runs"))
    }
}

/// The same in the repository, whose files are named from its root.
pub(crate) fn lint(arguments: &[&str]) -> String {
    seen(&command(&repository(), arguments).output().expect("pillion runs"))
}

pub(crate) fn lint_stdin(text: &str, arguments: &[&str]) -> String {
    let mut command = command(&repository(), arguments);
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("pillion runs");
    child.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("it reads");
    seen(&child.wait_with_output().expect("pillion ends"))
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Not yet run, without a terminal and without what a person has set.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pillion"));
    command.arg("lint").args(arguments).current_dir(folder).stdin(Stdio::null());
    for variable in ["CLICOLOR", "CLICOLOR_FORCE", "NO_COLOR"] {
        command.env_remove(variable);
    }
    command
}

fn seen(output: &Output) -> String {
    let mut seen = format!("status {}\n", output.status.code().expect("it ends by itself"));
    for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        if !bytes.is_empty() {
            let _ = write!(seen, "--- {name}\n{}", str::from_utf8(bytes).expect("it prints UTF-8"));
        }
    }
    assert!(!seen.contains('\u{1b}'), "no colour without a terminal");
    seen
}

/// A good set with some lines below `spec`.
pub(crate) fn set(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: apps.kruise.io/v1alpha1\nkind: SidecarSet\nmetadata:\n  name: {name}\nspec:\n  \
         selector:\n    matchLabels:\n      app: web\n{spec}"
    )
}

pub(crate) const CONTAINER: &str = "  containers:
    - name: proxy
      image: proxy:1
      resources:
        requests: {cpu: 50m, memory: 64Mi}
";
