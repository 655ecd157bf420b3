//! The e2e tests and their tiers, read from their sources. The tier of a test is the first word of its name: `ci_` or `nightly_`.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::Tier;
use crate::source_tree::SourceTree;

/// The directory of all e2e tests.
pub const DIRECTORY: &str = "e2e/tests/all";
/// The words before the tests of the tier `ci` that cover the claim of a test of the tier `nightly`.
const IN_CI: &str = "In ci: ";

/// One e2e test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct E2eTest {
    /// The file that holds the test.
    pub file: PathBuf,
    /// The line of its name.
    pub line: usize,
    /// The module, which is the first part of its path.
    pub module: String,
    /// The name of the function.
    pub name: String,
    /// Its tier; `None` if the name has none.
    pub tier: Option<Tier>,
    /// The tests that cover its claim in the tier `ci`, from its comment.
    pub in_ci: Option<String>,
}

/// Every e2e test, by file and line.
pub fn list(tree: &SourceTree) -> Vec<E2eTest> {
    let mut tests = Vec::new();
    for file in tree.texts_with_extension("rs").filter(|file| file.path.starts_with(DIRECTORY)) {
        let module = file.path.strip_prefix(DIRECTORY).ok().and_then(|path| path.iter().next()).unwrap_or_default();
        let module = module.to_string_lossy().trim_end_matches(".rs").to_owned();
        let (mut comment, mut is_test) = (String::new(), false);
        for (line, text) in file.numbered_lines() {
            let text = text.trim();
            if let Some(more) = text.strip_prefix("///") {
                comment.push_str(more);
                continue;
            }
            if text.starts_with("#[tokio::test") || text == "#[test]" {
                is_test = true;
            }
            if text.starts_with("#[") {
                continue;
            }
            if let Some(name) = function(text).filter(|_| is_test) {
                let in_ci = comment.split_once(IN_CI).map(|(_, rest)| rest.trim().to_owned());
                let tier =
                    [Tier::Ci, Tier::Nightly].into_iter().find(|it| name.starts_with(&format!("{}_", it.name())));
                let (file, module, name) = (file.path.to_owned(), module.clone(), name.to_owned());
                tests.push(E2eTest { file, line, module, name, tier, in_ci });
            }
            (comment, is_test) = (String::new(), false);
        }
    }
    tests
}

/// The name of the function that a line begins.
fn function(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn "))?;
    rest.split(['(', '<']).next()
}

/// The table of tests for people: how many of each subject are in which tier, and what the tier `ci` has instead of the others.
pub fn table(tests: &[E2eTest]) -> String {
    let mut table = String::from("| module | tier `ci` | tier `nightly` |\n|---|---:|---:|\n");
    let mut modules: Vec<&str> = tests.iter().map(|test| test.module.as_str()).collect();
    modules.dedup();
    let count = |module: Option<&str>, tier| {
        let of_module = tests.iter().filter(|test| module.is_none_or(|it| it == test.module));
        of_module.filter(|test| test.tier == Some(tier)).count()
    };
    for module in modules {
        let (ci, nightly) = (count(Some(module), Tier::Ci), count(Some(module), Tier::Nightly));
        let _ = writeln!(table, "| `{module}` | {ci} | {nightly} |");
    }
    let _ = writeln!(table, "| all | {} | {} |", count(None, Tier::Ci), count(None, Tier::Nightly));
    table.push_str(
        "\nThe tier `nightly` alone has these; the second column says what covers their claims in the tier `ci`:\n\n",
    );
    table.push_str("| test | in `ci` |\n|---|---|\n");
    for test in tests.iter().filter(|test| test.tier == Some(Tier::Nightly)) {
        let in_ci = test.in_ci.as_deref().unwrap_or_default();
        let _ = writeln!(table, "| `{}::{}` | {in_ci} |", test.module, test.name);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "/// Not a test.
async fn ci_helper() {}

#[tokio::test]
async fn ci_one() -> Result<()> {

/// Many pods.
/// In ci: `ci_one`, with
/// few pods.
#[tokio::test(flavor = \"multi_thread\")]
async fn nightly_many() -> Result<()> {

#[test]
fn without_a_tier() {
";

    #[test]
    fn tests_have_a_tier_and_what_covers_them() {
        let tree = SourceTree::of_texts([("e2e/tests/all/smoke_node.rs", FILE), ("crates/a/src/b.rs", FILE)]);
        let test = |line, name: &str, tier, in_ci: Option<&str>| E2eTest {
            file: "e2e/tests/all/smoke_node.rs".into(),
            line,
            module: "smoke_node".to_owned(),
            name: name.to_owned(),
            tier,
            in_ci: in_ci.map(str::to_owned),
        };
        let tests = list(&tree);
        assert_eq!(
            tests,
            [
                test(5, "ci_one", Some(Tier::Ci), None),
                test(11, "nightly_many", Some(Tier::Nightly), Some("`ci_one`, with few pods.")),
                test(14, "without_a_tier", None, None),
            ]
        );
        assert_eq!(
            table(&tests),
            "| module | tier `ci` | tier `nightly` |\n|---|---:|---:|\n| `smoke_node` | 1 | 1 |\n| all | 1 | 1 |\n\n\
             The tier `nightly` alone has these; the second column says what covers their claims in the tier `ci`:\n\n\
             | test | in `ci` |\n|---|---|\n| `smoke_node::nightly_many` | `ci_one`, with few pods. |\n"
        );
    }
}
