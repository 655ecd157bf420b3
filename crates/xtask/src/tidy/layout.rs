//! Files and folders are named for what they decide.

use std::path::Path;

use crate::finding::Finding;
use crate::source_tree::SourceTree;

const NAMES_OF_NOTHING: [&str; 5] = ["utils", "util", "helpers", "common", "misc"];

/// Looks at every part of every path.
pub fn check(tree: &SourceTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for path in tree.files.keys() {
        if path.ends_with("mod.rs") {
            let message = "is a mod.rs: name the file after its module, beside the module's folder";
            findings.push(Finding::of_file(path, message));
        }
        if let Some(name) = name_of_nothing(path) {
            let message = format!("is named `{name}`: name it for what it decides");
            findings.push(Finding::of_file(path, message));
        }
    }
    findings
}

fn name_of_nothing(path: &Path) -> Option<&'static str> {
    NAMES_OF_NOTHING.into_iter().find(|name| {
        // The stem of a folder's name is taken too: `common.d` says no more than `common`.
        path.iter().any(|part| Path::new(part).file_stem().is_some_and(|stem| stem == *name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_say_something_are_no_findings() {
        let tree = SourceTree::of_texts([
            ("crates/plan/src/lib.rs", ""),
            ("crates/plan/src/model.rs", ""),
            ("crates/plan/src/utilisation.rs", ""),
            ("docs/uncommon.md", ""),
        ]);
        assert_eq!(check(&tree), []);
    }

    #[test]
    fn names_that_say_nothing_are_found() {
        let tree = SourceTree::of_texts([
            ("crates/plan/src/check/mod.rs", ""),
            ("crates/plan/src/utils.rs", ""),
            ("crates/plan/tests/common/pods.rs", ""),
            ("scripts/misc", ""),
        ]);
        let found: Vec<_> = check(&tree).iter().map(Finding::to_string).collect();
        assert_eq!(
            found,
            [
                "crates/plan/src/check/mod.rs: is a mod.rs: name the file after its module, beside the module's folder",
                "crates/plan/src/utils.rs: is named `utils`: name it for what it decides",
                "crates/plan/tests/common/pods.rs: is named `common`: name it for what it decides",
                "scripts/misc: is named `misc`: name it for what it decides",
            ]
        );
    }
}
