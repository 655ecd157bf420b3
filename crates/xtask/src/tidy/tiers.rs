//! Every e2e test has a tier in its name, and one of the tier `nightly` says what covers its claim in the tier `ci`.

use crate::finding::Finding;
use crate::gate::Tier;
use crate::gate::e2e_tests;
use crate::gate::steps::SUBJECTS;
use crate::source_tree::SourceTree;

/// Checks the names of all e2e tests.
pub fn check(tree: &SourceTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for test in e2e_tests::list(tree) {
        let mut find = |what: String| findings.push(Finding::of_line(&test.file, test.line, what));
        match test.tier {
            None => find(format!("{} has no tier: begin its name with ci_ or nightly_", test.name)),
            Some(Tier::Nightly) if test.in_ci.is_none() => {
                find(format!("{} does not say what covers its claim: add \"/// In ci: …\"", test.name));
            }
            Some(_) => {}
        }
        if !SUBJECTS.iter().any(|subject| test.module.starts_with(&format!("{subject}_")) || test.module == *subject) {
            find(format!("module {} has no subject that the tier nightly runs: see SUBJECTS", test.module));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_without_a_tier_or_without_a_reason_is_found() {
        let text = "#[tokio::test]\nasync fn ci_a() {}\n#[tokio::test]\nasync fn b() {}\n#[tokio::test]\nasync fn nightly_c() {}\n\
                    /// In ci: `ci_a`.\n#[tokio::test]\nasync fn nightly_d() {}\n";
        let path = "e2e/tests/all/smoke_x.rs";
        let other = "e2e/tests/all/other_x.rs";
        let tree = SourceTree::of_texts([(path, text), (other, "#[test]\nfn ci_e() {}\n")]);
        assert_eq!(
            check(&tree),
            [
                Finding::of_line(other, 2, "module other_x has no subject that the tier nightly runs: see SUBJECTS"),
                Finding::of_line(path, 4, "b has no tier: begin its name with ci_ or nightly_"),
                Finding::of_line(path, 6, "nightly_c does not say what covers its claim: add \"/// In ci: …\""),
            ]
        );
    }
}
