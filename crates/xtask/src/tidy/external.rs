//! Which foreign crates our crates must not depend on themselves. What comes in below others is for `cargo deny`.

use super::map::{CrateRule, Kind, rule_of};
use crate::finding::Finding;
use crate::workspace::{Dependency, DependencyKind, Workspace};

/// Foreign crates that some of ours must not name.
struct Ban {
    crates: &'static [&'static str],
    applies_to: fn(&CrateRule) -> bool,
    /// Tests do not ship, so a ban for the sake of size or speed leaves them alone.
    in_tests: bool,
    way_out: &'static str,
}

const BANS: &[Ban] = &[
    Ban {
        crates: &["tokio", "futures", "hyper", "rustls", "rand", "axum", "reqwest"],
        applies_to: |rule| matches!(rule.kind, Kind::Pure),
        in_tests: true,
        way_out: "a pure crate takes as values what it would do; do it in runtime or in a program",
    },
    Ban {
        crates: &["kube", "k8s-openapi", "reqwest", "regex", "axum"],
        applies_to: |rule| rule.name == "agent",
        in_tests: false,
        way_out: "the agent is in every pod and stays small; use serde_json, hyper and rustix",
    },
    Ban {
        crates: &["lazy_static", "once_cell"],
        applies_to: |_| true,
        in_tests: true,
        way_out: "use std::sync::LazyLock or std::sync::OnceLock",
    },
    Ban { crates: &["chrono"], applies_to: |_| true, in_tests: true, way_out: "use jiff" },
    Ban {
        crates: &["serde_yaml"],
        applies_to: |_| true,
        in_tests: true,
        way_out: "use serde-saphyr: this one writes YAML that kubectl misreads",
    },
];

/// The parts of kube that are only types.
const PURE_KUBE_FEATURES: [&str; 2] = ["derive", "admission"];

/// Compares the manifests of all members with the bans.
pub fn check(workspace: &Workspace, map: &[CrateRule]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &workspace.packages {
        // A crate outside the map is a finding of `edges`.
        let Some(rule) = rule_of(map, &package.name) else {
            continue;
        };
        let manifest = workspace.folder_of(package).join("Cargo.toml");
        for dependency in &package.dependencies {
            let messages = banned(rule, dependency).chain(impure_kube(rule, dependency));
            findings.extend(
                messages.map(|message| Finding::of_file(manifest.clone(), format!("{} {message}", package.name))),
            );
        }
    }
    findings
}

fn banned<'a>(rule: &'a CrateRule, dependency: &'a Dependency) -> impl Iterator<Item = String> + use<'a> {
    BANS.iter()
        .filter(|ban| ban.crates.contains(&dependency.name.as_str()))
        .filter(|ban| (ban.applies_to)(rule))
        .filter(|ban| ban.in_tests || dependency.kind != DependencyKind::Dev)
        .map(|ban| format!("must not depend on {}: {}", dependency.name, ban.way_out))
}

fn impure_kube(rule: &CrateRule, dependency: &Dependency) -> Option<String> {
    if rule.kind != Kind::Pure || dependency.name != "kube" {
        return None;
    }
    let mut impure: Vec<&str> = dependency
        .features
        .iter()
        .map(String::as_str)
        .filter(|feature| !PURE_KUBE_FEATURES.contains(feature))
        .collect();
    if dependency.uses_default_features {
        impure.push("default");
    }
    if impure.is_empty() {
        return None;
    }
    Some(format!(
        "must not use kube with {}: a pure crate may have its types only, default-features = false and features among {}",
        impure.join(", "),
        PURE_KUBE_FEATURES.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::map::CRATES;
    use super::*;
    use crate::workspace::Package;

    fn dependency(name: &str, kind: DependencyKind) -> Dependency {
        Dependency { name: name.to_owned(), kind, features: Vec::new(), uses_default_features: false }
    }

    fn kube(features: &[&str], uses_default_features: bool) -> Dependency {
        Dependency {
            features: features.iter().copied().map(str::to_owned).collect(),
            uses_default_features,
            ..dependency("kube", DependencyKind::Normal)
        }
    }

    fn messages(name: &str, dependencies: Vec<Dependency>) -> Vec<String> {
        let workspace = Workspace {
            root: "/repo".into(),
            target_directory: "/repo/target".into(),
            packages: vec![Package {
                name: format!("pillion-{name}"),
                manifest_path: Path::new("/repo/crates").join(name).join("Cargo.toml"),
                dependencies,
            }],
        };
        check(&workspace, CRATES).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn what_is_not_banned_is_no_finding() {
        use DependencyKind::{Dev, Normal};
        let nothing = Vec::<String>::new();
        let types = kube(&["derive", "admission"], false);
        assert_eq!(messages("api", vec![types, dependency("serde", Normal)]), nothing);
        assert_eq!(messages("agent", vec![dependency("tokio", Normal), dependency("regex", Dev)]), nothing);
        assert_eq!(messages("manager", vec![dependency("tokio", Normal), kube(&["client"], true)]), nothing);
    }

    #[test]
    fn a_pure_crate_has_no_runtime_not_even_in_tests() {
        assert_eq!(
            messages("plan", vec![dependency("tokio", DependencyKind::Dev)]),
            [
                "crates/plan/Cargo.toml: pillion-plan must not depend on tokio: a pure crate takes as values what it would do; do it in runtime or in a program"
            ]
        );
    }

    #[test]
    fn a_pure_crate_has_only_the_types_of_kube() {
        assert_eq!(
            messages("api", vec![kube(&["derive", "client"], true)]),
            [
                "crates/api/Cargo.toml: pillion-api must not use kube with client, default: a pure crate may have its types only, default-features = false and features among derive, admission"
            ]
        );
    }

    #[test]
    fn the_agent_stays_small() {
        assert_eq!(
            messages("agent", vec![dependency("k8s-openapi", DependencyKind::Normal)]),
            [
                "crates/agent/Cargo.toml: pillion-agent must not depend on k8s-openapi: the agent is in every pod and stays small; use serde_json, hyper and rustix"
            ]
        );
    }

    #[test]
    fn some_crates_are_banned_everywhere() {
        let banned = ["lazy_static", "once_cell", "chrono", "serde_yaml"];
        for name in ["plan", "manager", "testapp"] {
            let dependencies = banned.map(|name| dependency(name, DependencyKind::Dev));
            let prefix = format!("crates/{name}/Cargo.toml: pillion-{name} must not depend on");
            assert_eq!(
                messages(name, dependencies.into()),
                [
                    format!("{prefix} lazy_static: use std::sync::LazyLock or std::sync::OnceLock"),
                    format!("{prefix} once_cell: use std::sync::LazyLock or std::sync::OnceLock"),
                    format!("{prefix} chrono: use jiff"),
                    format!("{prefix} serde_yaml: use serde-saphyr: this one writes YAML that kubectl misreads"),
                ]
            );
        }
    }
}
