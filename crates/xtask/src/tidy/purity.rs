//! Every pure crate has the same `clippy.toml`. Clippy reads the nearest one only, so each needs the whole list.

use super::map::{CrateRule, Kind};
use crate::finding::Finding;
use crate::source_tree::SourceTree;

/// The list all pure crates copy.
pub const CANONICAL: &str = "crates/xtask/purity-clippy.toml";
const ROOT: &str = "clippy.toml";

/// Compares the `clippy.toml` of every pure crate with the canonical one, and that one with the root's.
pub fn check(tree: &SourceTree, map: &[CrateRule]) -> Vec<Finding> {
    let Some(canonical) = tree.text(CANONICAL) else {
        return vec![Finding::of_file(CANONICAL, "is missing: restore it, the pure crates copy it")];
    };
    let mut findings = Vec::new();
    for line in tree.text(ROOT).unwrap_or_default().lines() {
        if !canonical.lines().any(|repeated| repeated == line) {
            let message = format!("does not repeat `{line}` of {ROOT}: add it, clippy does not join the two files");
            findings.push(Finding::of_file(CANONICAL, message));
        }
    }
    for rule in map.iter().filter(|rule| rule.kind == Kind::Pure) {
        let folder = rule.folder();
        if !tree.contains(format!("{folder}/Cargo.toml")) {
            continue;
        }
        let copy = format!("{folder}/clippy.toml");
        if tree.text(&copy) != Some(canonical) {
            let message = format!("is not a copy of {CANONICAL}: run `cp {CANONICAL} {copy}`");
            findings.push(Finding::of_file(copy, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::map::CRATES;
    use super::*;

    fn messages(texts: &[(&str, &str)]) -> Vec<String> {
        let tree = SourceTree::of_texts(texts.iter().copied());
        check(&tree, CRATES).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn copies_in_pure_crates_and_none_elsewhere_are_no_findings() {
        let texts = [
            ("clippy.toml", "a = true\n"),
            (CANONICAL, "a = true\nb = []\n"),
            ("crates/plan/Cargo.toml", ""),
            ("crates/plan/clippy.toml", "a = true\nb = []\n"),
            ("crates/manager/Cargo.toml", ""),
        ];
        assert_eq!(messages(&texts), Vec::<String>::new());
    }

    #[test]
    fn a_missing_or_changed_copy_comes_with_the_command_that_mends_it() {
        let texts = [
            ("clippy.toml", ""),
            (CANONICAL, "b = []\n"),
            ("crates/api/Cargo.toml", ""),
            ("crates/plan/Cargo.toml", ""),
            ("crates/plan/clippy.toml", "b = [ ]\n"),
        ];
        assert_eq!(
            messages(&texts),
            [
                "crates/api/clippy.toml: is not a copy of crates/xtask/purity-clippy.toml: run `cp crates/xtask/purity-clippy.toml crates/api/clippy.toml`",
                "crates/plan/clippy.toml: is not a copy of crates/xtask/purity-clippy.toml: run `cp crates/xtask/purity-clippy.toml crates/plan/clippy.toml`",
            ]
        );
    }

    #[test]
    fn the_canonical_file_repeats_the_root() {
        assert_eq!(
            messages(&[("clippy.toml", "a = true\nc = true\n"), (CANONICAL, "a = true\n")]),
            [
                "crates/xtask/purity-clippy.toml: does not repeat `c = true` of clippy.toml: add it, clippy does not join the two files"
            ]
        );
        assert_eq!(
            messages(&[("clippy.toml", "")]),
            ["crates/xtask/purity-clippy.toml: is missing: restore it, the pure crates copy it"]
        );
    }
}
