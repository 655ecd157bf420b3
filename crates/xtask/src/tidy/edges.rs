//! Which workspace crate imports which: no edge that the map does not allow.

use std::path::Path;

use super::map::{CrateRule, rule_of};
use crate::finding::Finding;
use crate::workspace::{DependencyKind, Workspace};

const MAP: &str = "crates/xtask/src/tidy/map.rs";

/// Compares the manifests of all members with the map.
pub fn check(workspace: &Workspace, map: &[CrateRule]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &workspace.packages {
        let folder = workspace.folder_of(package);
        let manifest = folder.join("Cargo.toml");
        let Some(rule) = rule_of(map, &package.name) else {
            let message = format!("{} is not in the crate map: give it a rule in {MAP}", package.name);
            findings.push(Finding::of_file(manifest, message));
            continue;
        };
        if folder != Path::new(&rule.folder()) {
            let message = format!("{} is not in its folder: move it to {}", package.name, rule.folder());
            findings.push(Finding::of_file(manifest.clone(), message));
        }
        for dependency in &package.dependencies {
            let Some(imported) = rule_of(map, &dependency.name) else {
                continue;
            };
            if imported.name != rule.name && !rule.may_import(imported, dependency.kind) {
                let message = format!(
                    "{} must not import {}{}: move what it needs to a crate both may import, or change {MAP} in review",
                    package.name,
                    dependency.name,
                    in_words(dependency.kind)
                );
                findings.push(Finding::of_file(manifest.clone(), message));
            }
        }
    }
    findings
}

fn in_words(kind: DependencyKind) -> &'static str {
    match kind {
        DependencyKind::Normal => "",
        DependencyKind::Build => " in its build script",
        DependencyKind::Dev => " even in tests",
    }
}

#[cfg(test)]
mod tests {
    use super::super::map::CRATES;
    use super::*;
    use crate::workspace::{Dependency, Package};

    fn member(name: &str, folder: &str, imports: &[(&str, DependencyKind)]) -> Package {
        Package {
            name: name.to_owned(),
            manifest_path: Path::new("/repo").join(folder).join("Cargo.toml"),
            dependencies: imports
                .iter()
                .map(|(name, kind)| Dependency {
                    name: (*name).to_owned(),
                    kind: *kind,
                    features: Vec::new(),
                    uses_default_features: true,
                })
                .collect(),
        }
    }

    fn messages(packages: Vec<Package>) -> Vec<String> {
        let workspace = Workspace { root: "/repo".into(), target_directory: "/repo/target".into(), packages };
        check(&workspace, CRATES).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn allowed_edges_and_foreign_crates_are_no_findings() {
        use DependencyKind::{Dev, Normal};
        assert_eq!(
            messages(vec![
                member("pillion-plan", "crates/plan", &[("pillion-api", Normal), ("serde", Normal)]),
                member("pillion-sim", "crates/sim", &[("pillion-inject", Dev)]),
                member("pillion-manager", "crates/manager", &[("pillion-manager", Dev)]),
                member("pillion-e2e", "e2e", &[("pillion-testbed", Normal), ("pillion-cli", Dev)]),
                member("xtask", "crates/xtask", &[]),
            ]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn an_edge_that_is_not_allowed_is_named_with_its_kind() {
        use DependencyKind::{Build, Dev, Normal};
        assert_eq!(
            messages(vec![member(
                "pillion-inject",
                "crates/inject",
                &[("pillion-sim", Normal), ("pillion-runtime", Build), ("pillion-rollout", Dev)]
            )]),
            [
                "crates/inject/Cargo.toml: pillion-inject must not import pillion-sim: move what it needs to a crate both may import, or change crates/xtask/src/tidy/map.rs in review",
                "crates/inject/Cargo.toml: pillion-inject must not import pillion-runtime in its build script: move what it needs to a crate both may import, or change crates/xtask/src/tidy/map.rs in review",
                "crates/inject/Cargo.toml: pillion-inject must not import pillion-rollout even in tests: move what it needs to a crate both may import, or change crates/xtask/src/tidy/map.rs in review",
            ]
        );
    }

    #[test]
    fn a_crate_that_is_not_in_the_map_or_not_in_its_folder_is_named() {
        assert_eq!(
            messages(vec![member("pillion-extras", "crates/extras", &[]), member("pillion-e2e", "crates/e2e", &[])]),
            [
                "crates/extras/Cargo.toml: pillion-extras is not in the crate map: give it a rule in crates/xtask/src/tidy/map.rs",
                "crates/e2e/Cargo.toml: pillion-e2e is not in its folder: move it to e2e",
            ]
        );
    }
}
