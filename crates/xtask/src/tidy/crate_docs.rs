//! Every crate opens by saying what it decides.

use crate::finding::Finding;
use crate::source_tree::SourceTree;

/// Looks at the first line of every `src/lib.rs` and `src/main.rs`.
pub fn check(tree: &SourceTree) -> Vec<Finding> {
    tree.texts()
        .filter(|file| file.path.ends_with("src/lib.rs") || file.path.ends_with("src/main.rs"))
        .filter(|file| !file.text.starts_with("//!"))
        .map(|file| {
            let message = "does not open with `//!`: say what the crate decides and what it knows nothing of";
            Finding::of_line(file.path, 1, message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_opens_with_its_doc_is_no_finding() {
        let tree = SourceTree::of_texts([
            ("crates/plan/src/lib.rs", "//! Writes.\n"),
            ("e2e/src/main.rs", "//! Claims.\n"),
            ("crates/plan/src/check.rs", "use std::fmt;\n"),
        ]);
        assert_eq!(check(&tree), []);
    }

    #[test]
    fn a_crate_that_opens_with_something_else_is_found() {
        let tree = SourceTree::of_texts([
            ("crates/cli/src/main.rs", ""),
            ("crates/plan/src/lib.rs", "#![forbid(unsafe_code)]\n//! Writes.\n"),
        ]);
        let message = "does not open with `//!`: say what the crate decides and what it knows nothing of";
        assert_eq!(
            check(&tree),
            ["crates/cli/src/main.rs", "crates/plan/src/lib.rs"].map(|path| Finding::of_line(path, 1, message))
        );
    }
}
