//! Writes the committed files that follow from code, and tells when one does not follow any more.

mod crate_map;
mod region;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::finding::Finding;
use crate::tidy::map::CRATES;
use crate::workspace::Workspace;

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const CRATE_MAP: &str = "crate-map";

/// Compares every generated file with what it should be.
pub fn check(workspace: &Workspace) -> anyhow::Result<Vec<Finding>> {
    let current = read(&workspace.root.join(ARCHITECTURE))?;
    Ok(match architecture(workspace, current.as_deref()) {
        Err(error) => vec![Finding::of_file(ARCHITECTURE, format!("{error:#}"))],
        Ok(fresh) if current.as_deref() != Some(&fresh) => {
            vec![Finding::of_file(ARCHITECTURE, "is stale: run `cargo xtask codegen`")]
        }
        Ok(_) => Vec::new(),
    })
}

/// Writes every generated file that is stale, and names those.
pub fn write(workspace: &Workspace) -> anyhow::Result<Vec<PathBuf>> {
    let path = workspace.root.join(ARCHITECTURE);
    let current = read(&path)?;
    let fresh = architecture(workspace, current.as_deref()).context(ARCHITECTURE)?;
    if current.as_deref() == Some(&fresh) {
        return Ok(Vec::new());
    }
    fs::write(&path, fresh).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(vec![ARCHITECTURE.into()])
}

/// The page with a fresh map in it; a page with nothing else if there is none yet.
fn architecture(workspace: &Workspace, current: Option<&str>) -> anyhow::Result<String> {
    let begun = format!("# Architecture\n\n{}", region::empty(CRATE_MAP));
    let map = crate_map::table(CRATES, workspace);
    region::replace(current.unwrap_or(&begun), CRATE_MAP, &map)
}

fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty_workspace(root: &Path) -> Workspace {
        Workspace { root: root.to_owned(), target_directory: root.join("target"), packages: Vec::new() }
    }

    #[test]
    fn a_missing_page_is_begun_and_the_second_run_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = empty_workspace(folder.path());
        let stale = [Finding::of_file("ARCHITECTURE.md", "is stale: run `cargo xtask codegen`")];
        assert_eq!(check(&workspace).unwrap(), stale);
        assert_eq!(write(&workspace).unwrap(), [PathBuf::from("ARCHITECTURE.md")]);
        assert_eq!(check(&workspace).unwrap(), []);
        assert_eq!(write(&workspace).unwrap(), Vec::<PathBuf>::new());
    }

    #[test]
    fn what_people_wrote_around_the_map_stays() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = empty_workspace(folder.path());
        let page = folder.path().join("ARCHITECTURE.md");
        fs::write(&page, "# Ours\n\n<!-- crate-map:begin -->\nold\n<!-- crate-map:end -->\n\nMore.\n").unwrap();
        write(&workspace).unwrap();
        let map = crate_map::table(CRATES, &workspace);
        assert_eq!(
            fs::read_to_string(&page).unwrap(),
            format!("# Ours\n\n<!-- crate-map:begin -->\n{map}<!-- crate-map:end -->\n\nMore.\n")
        );
    }

    #[test]
    fn a_page_without_markers_is_a_finding_and_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = empty_workspace(folder.path());
        let page = folder.path().join("ARCHITECTURE.md");
        fs::write(&page, "# Ours\n").unwrap();
        let message = "has no line <!-- crate-map:begin --> before a line <!-- crate-map:end -->: add both where the generated part belongs";
        assert_eq!(check(&workspace).unwrap(), [Finding::of_file("ARCHITECTURE.md", message)]);
        assert_eq!(format!("{:#}", write(&workspace).unwrap_err()), format!("ARCHITECTURE.md: {message}"));
        assert_eq!(fs::read_to_string(&page).unwrap(), "# Ours\n");
    }
}
