//! The crate map as people read it.

use crate::tidy::map::{CrateRule, DECIDERS, FOR_ALL_TESTS, Kind, TestImports};
use crate::workspace::Workspace;

/// A Markdown table of all crates, and the rule that holds for the tests of every one of them.
pub(super) fn table(map: &[CrateRule], workspace: &Workspace) -> String {
    let rows: String = map.iter().map(|rule| row(rule, workspace)).collect();
    format!(
        "| folder | what it decides | may import | kind |\n|---|---|---|---|\n{rows}\n\
         Tests may also import any pure crate and `{FOR_ALL_TESTS}`, except that {} never import one another.\n",
        quoted(&DECIDERS)
    )
}

fn row(rule: &CrateRule, workspace: &Workspace) -> String {
    let package = rule.package();
    let exists = workspace.packages.iter().any(|member| member.name == package);
    format!(
        "| `{}` | {} | {} | {}{} |\n",
        rule.folder(),
        rule.decides,
        imports(rule),
        kind(rule.kind),
        if exists { "" } else { ", planned" },
    )
}

fn imports(rule: &CrateRule) -> String {
    let own = if rule.imports.is_empty() { "none".to_owned() } else { quoted(rule.imports) };
    match rule.test_imports {
        TestImports::Also([]) => own,
        TestImports::Also(names) => format!("{own}; in tests also {}", quoted(names)),
        TestImports::Anything => format!("{own}; in tests any"),
    }
}

fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Pure => "pure",
        Kind::Shell => "shell",
        Kind::Program => "program",
        Kind::Development => "development",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Package;

    #[test]
    fn every_crate_has_a_row_and_what_is_not_there_yet_is_planned() {
        let rule =
            |name, kind, imports, test_imports| CrateRule { name, decides: "something", kind, imports, test_imports };
        let map = [
            rule("quantity", Kind::Pure, &[], TestImports::Also(&[])),
            rule("manager", Kind::Program, &["quantity", "expr"], TestImports::Also(&["sim"])),
            rule("e2e", Kind::Development, &["testbed"], TestImports::Anything),
        ];
        let workspace = Workspace {
            root: "/repo".into(),
            target_directory: "/repo/target".into(),
            packages: vec![Package {
                name: "pillion-manager".to_owned(),
                manifest_path: "/repo/crates/manager/Cargo.toml".into(),
                dependencies: Vec::new(),
            }],
        };
        assert_eq!(
            table(&map, &workspace),
            "\
| folder | what it decides | may import | kind |
|---|---|---|---|
| `crates/quantity` | something | none | pure, planned |
| `crates/manager` | something | `quantity`, `expr`; in tests also `sim` | program |
| `e2e` | something | `testbed`; in tests any | development, planned |

Tests may also import any pure crate and `generators`, except that `inject`, `rollout`, `rightsize` never import one another.
"
        );
    }
}
