//! No Rust file is too long to be about one subject.

use crate::finding::Finding;
use crate::source_tree::SourceTree;

const LIMIT: usize = 800;

/// Files over the limit, each with the reason why parting it would make it worse.
pub const LONG_FILES: &[(&str, &str)] = &[];

/// Counts lines; `exceptions` are paths with their reasons.
pub fn check(tree: &SourceTree, exceptions: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.texts_with_extension("rs") {
        let lines = file.text.lines().count();
        let excepted = exceptions.iter().any(|(path, _)| file.path == *path);
        if lines > LIMIT && !excepted {
            findings.push(Finding::of_file(
                file.path,
                format!(
                    "has {lines} lines, more than {LIMIT}: part it by subject, or list it in LONG_FILES with a reason"
                ),
            ));
        }
        if lines <= LIMIT && excepted {
            findings.push(Finding::of_file(
                file.path,
                format!("is listed in LONG_FILES but has only {lines} lines: take it off the list"),
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_up_to_the_limit_long_data_and_exceptions_are_no_findings() {
        let (at_limit, long) = ("\n".repeat(800), "\n".repeat(801));
        let tree =
            SourceTree::of_texts([("at_limit.rs", at_limit.as_str()), ("data.json", &long), ("table.rs", &long)]);
        assert_eq!(check(&tree, &[("table.rs", "one table")]), []);
    }

    #[test]
    fn a_long_file_and_a_stale_exception_are_found() {
        let long = "\n".repeat(801);
        let tree = SourceTree::of_texts([("long.rs", long.as_str()), ("table.rs", "")]);
        assert_eq!(
            check(&tree, &[("table.rs", "one table")]),
            [
                Finding::of_file(
                    "long.rs",
                    "has 801 lines, more than 800: part it by subject, or list it in LONG_FILES with a reason"
                ),
                Finding::of_file("table.rs", "is listed in LONG_FILES but has only 0 lines: take it off the list"),
            ]
        );
    }
}
