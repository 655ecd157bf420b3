//! No file names a folder that exists on one machine only.

use crate::finding::Finding;
use crate::source_tree::SourceTree;

/// Put together here, so that this file does not find itself.
const FOLDERS: [&str; 4] =
    [concat!("/", "work", "/"), concat!("/", "farm", "/"), concat!("/", "root", "/"), concat!("/", "home", "/")];

/// Looks at every line of every text file.
pub fn check(tree: &SourceTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.texts() {
        for (number, line) in file.numbered_lines() {
            for folder in FOLDERS.into_iter().filter(|folder| begins_in(line, folder)) {
                let message = format!(
                    "names a path of one machine, {folder}: take it from an argument, the environment or the manifest"
                );
                findings.push(Finding::of_line(file.path, number, message));
            }
        }
    }
    findings
}

/// Whether an absolute path with this beginning is in the line.
fn begins_in(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| line[..at].chars().next_back().is_none_or(begins_a_path))
}

/// After these a slash goes on with a path that began earlier.
fn begins_a_path(before: char) -> bool {
    !(before.is_alphanumeric() || matches!(before, '.' | '_' | '-' | '$' | '}' | '~'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_and_addresses_are_no_findings() {
        let lines = [
            "$HOME/work/x",
            "${ROOT}/work/x",
            "~/work/x",
            "../home/x",
            "https://example.org/home/x",
            "a_/root/x",
            "a-/root/x",
            "/rooted /workshop /homes",
        ];
        let text = lines.join("\n");
        assert_eq!(check(&SourceTree::of_texts([("a.md", text.as_str())])), []);
    }

    #[test]
    fn absolute_paths_are_found_wherever_they_begin() {
        for (text, folder) in [
            (concat!("/", "work/x"), FOLDERS[0]),
            (concat!("see (/", "farm/x)"), FOLDERS[1]),
            (concat!("let path = \"/", "root/x\";"), FOLDERS[2]),
            (concat!("HOME=/", "home/x"), FOLDERS[3]),
            (concat!("a/work/x /", "work/y"), FOLDERS[0]),
        ] {
            let text = format!("first line\n{text}\n");
            assert_eq!(
                check(&SourceTree::of_texts([("a.md", text.as_str())])),
                [Finding::of_line(
                    "a.md",
                    2,
                    format!(
                        "names a path of one machine, {folder}: take it from an argument, the environment or the manifest"
                    )
                )]
            );
        }
    }
}
