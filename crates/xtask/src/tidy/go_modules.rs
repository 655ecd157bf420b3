//! Every Go module of the test bed pins what it builds.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::source_tree::SourceTree;

const MODULES: &str = "testbed/go";

/// Looks for `go.mod` and `go.sum` in every folder of the modules.
pub fn check(tree: &SourceTree) -> Vec<Finding> {
    let folders: BTreeSet<&str> = tree
        .files
        .keys()
        .filter_map(|path| {
            let mut parts = path.strip_prefix(MODULES).ok()?.iter();
            let folder = parts.next()?;
            // A file beside the modules is not a module.
            parts.next()?;
            folder.to_str()
        })
        .collect();
    let mut findings = Vec::new();
    for folder in folders {
        for file in ["go.mod", "go.sum"] {
            let path = format!("{MODULES}/{folder}/{file}");
            if !tree.contains(&path) {
                let message =
                    format!("is missing: run `go mod tidy` in {MODULES}/{folder}, so that the build is pinned");
                findings.push(Finding::of_file(path, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_modules_and_files_beside_them_are_no_findings() {
        let tree = SourceTree::of_texts([
            ("testbed/go/README.md", ""),
            ("testbed/go/etcd/go.mod", ""),
            ("testbed/go/etcd/go.sum", ""),
            ("testbed/go/etcd/main.go", ""),
        ]);
        assert_eq!(check(&tree), []);
        assert_eq!(check(&SourceTree::default()), []);
    }

    #[test]
    fn a_module_that_is_not_pinned_is_found() {
        let tree = SourceTree::of_texts([("testbed/go/etcd/go.mod", ""), ("testbed/go/helm/main.go", "")]);
        let found: Vec<_> = check(&tree).iter().map(Finding::to_string).collect();
        assert_eq!(
            found,
            [
                "testbed/go/etcd/go.sum: is missing: run `go mod tidy` in testbed/go/etcd, so that the build is pinned",
                "testbed/go/helm/go.mod: is missing: run `go mod tidy` in testbed/go/helm, so that the build is pinned",
                "testbed/go/helm/go.sum: is missing: run `go mod tidy` in testbed/go/helm, so that the build is pinned",
            ]
        );
    }
}
