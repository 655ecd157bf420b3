//! The crate map: every crate that is or is planned, what it decides, and which of the others it may import.
//!
//! `ARCHITECTURE.md` shows it (`cargo xtask codegen`), the checks `edges`, `external` and `purity` hold it.

use crate::workspace::DependencyKind;

/// One crate of the map.
#[derive(Debug)]
pub struct CrateRule {
    /// Name of the folder, and of the package without its prefix.
    pub name: &'static str,
    /// One line for people.
    pub decides: &'static str,
    /// How it may meet the world.
    pub kind: Kind,
    /// Crates it may import to run or to be built.
    pub imports: &'static [&'static str],
    /// What its tests may import besides.
    pub test_imports: TestImports,
}

/// How a crate may meet the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Takes time, randomness and the world as values; returns values.
    Pure,
    /// Touches the world for the programs.
    Shell,
    /// Is run by users or by the cluster.
    Program,
    /// Is for those who develop or test the others; never shipped.
    Development,
}

/// What tests may import besides what the crate itself may, the pure crates and the generators.
#[derive(Debug)]
pub enum TestImports {
    /// These.
    Also(&'static [&'static str]),
    /// Whatever they need.
    Anything,
}

/// What tests of every crate may import: they are all tried on the same pods and sets.
pub const FOR_ALL_TESTS: &str = "generators";

/// They decide apart from one another; a test that needs two of them belongs into their caller.
pub const DECIDERS: [&str; 3] = ["inject", "rollout", "rightsize"];

const NO_MORE: TestImports = TestImports::Also(&[]);

/// All crates, the ones that know least first.
pub const CRATES: &[CrateRule] = &[
    CrateRule {
        name: "quantity",
        decides: "what a Kubernetes quantity is worth, exactly",
        kind: Kind::Pure,
        imports: &[],
        test_imports: NO_MORE,
    },
    CrateRule {
        name: "pod",
        decides: "how a pod that is JSON is edited, and what it asks of a node",
        kind: Kind::Pure,
        imports: &["quantity"],
        test_imports: NO_MORE,
    },
    CrateRule {
        name: "yaml",
        decides: "what a YAML text says, and where it says it",
        kind: Kind::Pure,
        imports: &[],
        test_imports: NO_MORE,
    },
    CrateRule {
        name: "expr",
        decides: "what a resource expression means: its type, its value, and why",
        kind: Kind::Pure,
        imports: &["quantity"],
        test_imports: NO_MORE,
    },
    CrateRule {
        name: "api",
        decides: "what our objects look like: fields, defaults, validation, reason codes",
        kind: Kind::Pure,
        imports: &["quantity", "expr"],
        test_imports: NO_MORE,
    },
    CrateRule {
        name: FOR_ALL_TESTS,
        decides: "what tests are tried on: random pods, namespaces and sets, and how a law is run",
        kind: Kind::Development,
        imports: &["quantity", "expr", "api"],
        test_imports: NO_MORE,
    },
    CrateRule {
        name: "plan",
        decides: "which writes exist, and which of them are never allowed",
        kind: Kind::Pure,
        imports: &["api", "quantity", "expr"],
        test_imports: NO_MORE,
    },
    CrateRule {
        name: "agent-api",
        decides: "what the agent is told, and what it tells",
        kind: Kind::Pure,
        imports: &["quantity", "yaml"],
        test_imports: NO_MORE,
    },
    CrateRule {
        name: "inject",
        decides: "which sidecars a pod gets at admission, as one patch with its reasons",
        kind: Kind::Pure,
        imports: &["agent-api", "plan", "api", "expr", "pod", "quantity"],
        test_imports: NO_MORE,
    },
    CrateRule {
        name: "rollout",
        decides: "which revision each pod should have, and which pods change next",
        kind: Kind::Pure,
        imports: &["plan", "pod", "api", "quantity"],
        test_imports: NO_MORE,
    },
    CrateRule {
        name: "rightsize",
        decides: "how much a container needs, from what it used, and when to resize it",
        kind: Kind::Pure,
        imports: &["plan", "api", "pod", "quantity", "expr"],
        test_imports: NO_MORE,
    },
    CrateRule {
        name: "sim",
        decides: "what a cluster does with a plan: a cluster as a value",
        kind: Kind::Pure,
        imports: &["plan", "api", "quantity"],
        test_imports: TestImports::Also(&["inject", "rollout", "rightsize"]),
    },
    CrateRule {
        name: "runtime",
        decides: "how any controller runs: client, watches, lease, TLS, telemetry, shutdown",
        kind: Kind::Shell,
        imports: &[],
        test_imports: NO_MORE,
    },
    CrateRule {
        name: "manager",
        decides: "when the deciders are asked; carries out their plans, and nobody else does",
        kind: Kind::Program,
        imports: &["quantity", "pod", "expr", "api", "plan", "inject", "rollout", "rightsize", "agent-api", "runtime"],
        test_imports: TestImports::Also(&["sim", "testbed"]),
    },
    CrateRule {
        name: "agent",
        decides: "what happens inside one pod: probing, hot update, ending with the app",
        kind: Kind::Program,
        imports: &["agent-api", "quantity"],
        test_imports: NO_MORE,
    },
    CrateRule {
        name: "cli",
        decides: "how people ask: `pillion`, the deciders over files or a cluster",
        kind: Kind::Program,
        imports: &[
            "quantity",
            "pod",
            "yaml",
            "expr",
            "api",
            "plan",
            "inject",
            "rollout",
            "rightsize",
            "sim",
            "agent-api",
            "runtime",
            "agent",
        ],
        test_imports: NO_MORE,
    },
    CrateRule {
        name: "tools",
        decides: "which builds of the cluster's programs the tests use, and where they are",
        kind: Kind::Development,
        imports: &[],
        test_imports: NO_MORE,
    },
    CrateRule {
        name: "stopwatch",
        decides: "how long something took on a machine whose host may give its CPU time to others",
        kind: Kind::Development,
        imports: &[],
        test_imports: NO_MORE,
    },
    CrateRule {
        name: "testbed",
        decides: "how a real cluster is started on one machine, and how it leaves no trace",
        kind: Kind::Development,
        imports: &["stopwatch", "tools"],
        test_imports: NO_MORE,
    },
    CrateRule {
        name: "testapp",
        decides: "what a container does when a test commands it; the only program in test images",
        kind: Kind::Development,
        imports: &[],
        test_imports: NO_MORE,
    },
    CrateRule {
        name: "bench",
        decides: "how every published figure is measured",
        kind: Kind::Development,
        imports: &[
            "quantity",
            "expr",
            "api",
            "plan",
            "inject",
            "rollout",
            "rightsize",
            "sim",
            "runtime",
            "manager",
            "testbed",
            "tools",
        ],
        test_imports: NO_MORE,
    },
    CrateRule {
        name: "xtask",
        decides: "chores of the repository: images, generated files, the rules of this page",
        kind: Kind::Development,
        imports: &["stopwatch", "api", "cli", "tools", "quantity", "expr", "agent-api"],
        test_imports: NO_MORE,
    },
    CrateRule {
        name: "e2e",
        decides: "whether the claims hold on a real cluster",
        kind: Kind::Development,
        imports: &["testbed", "api", "runtime", "quantity", "agent-api"],
        test_imports: TestImports::Anything,
    },
];

impl CrateRule {
    /// Name of the package.
    pub fn package(&self) -> String {
        match self.name {
            "xtask" => self.name.to_owned(),
            _ => format!("pillion-{}", self.name),
        }
    }

    /// Folder, relative to the root.
    pub fn folder(&self) -> String {
        match self.name {
            "e2e" => self.name.to_owned(),
            _ => format!("crates/{}", self.name),
        }
    }

    /// Whether this crate may depend on another crate of the map in this way.
    pub fn may_import(&self, other: &Self, kind: DependencyKind) -> bool {
        if self.imports.contains(&other.name) {
            return true;
        }
        if kind != DependencyKind::Dev {
            return false;
        }
        if DECIDERS.contains(&self.name) && DECIDERS.contains(&other.name) {
            return false;
        }
        let listed = match self.test_imports {
            TestImports::Also(names) => names.contains(&other.name),
            TestImports::Anything => true,
        };
        listed || other.kind == Kind::Pure || other.name == FOR_ALL_TESTS
    }
}

/// The rule of a package.
pub fn rule_of<'a>(map: &'a [CrateRule], package: &str) -> Option<&'a CrateRule> {
    map.iter().find(|rule| rule.package() == package)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str) -> &'static CrateRule {
        CRATES.iter().find(|rule| rule.name == name).unwrap()
    }

    #[test]
    fn a_crate_imports_only_crates_listed_before_it() {
        for (position, rule) in CRATES.iter().enumerate() {
            for import in rule.imports {
                assert!(
                    CRATES[..position].iter().any(|earlier| earlier.name == *import),
                    "{} imports {import}, which is not listed before it",
                    rule.name
                );
            }
        }
    }

    #[test]
    fn pure_crates_import_only_pure_crates() {
        for pure in CRATES.iter().filter(|rule| rule.kind == Kind::Pure) {
            for import in pure.imports {
                assert_eq!(rule(import).kind, Kind::Pure, "{} imports {import}", pure.name);
            }
        }
    }

    #[test]
    fn deciders_stay_apart_even_in_tests() {
        for one in DECIDERS {
            for other in DECIDERS {
                for kind in [DependencyKind::Normal, DependencyKind::Build, DependencyKind::Dev] {
                    assert!(!rule(one).may_import(rule(other), kind), "{one} {other} {kind:?}");
                }
            }
        }
    }

    #[test]
    fn tests_may_import_more_than_the_crate() {
        use DependencyKind::{Build, Dev, Normal};
        for (from, to, kind, allowed) in [
            ("inject", "plan", Normal, true),
            ("inject", "plan", Build, true),
            ("inject", "sim", Normal, false),
            ("inject", "sim", Dev, true),
            ("quantity", "generators", Normal, false),
            ("quantity", "generators", Build, false),
            ("quantity", "generators", Dev, true),
            ("manager", "generators", Normal, false),
            ("manager", "generators", Dev, true),
            ("sim", "inject", Normal, false),
            ("sim", "inject", Dev, true),
            ("manager", "testbed", Normal, false),
            ("manager", "testbed", Dev, true),
            ("runtime", "api", Normal, false),
            ("runtime", "api", Dev, true),
            ("runtime", "testbed", Dev, false),
            ("agent", "runtime", Dev, false),
            ("e2e", "cli", Normal, false),
            ("e2e", "cli", Dev, true),
        ] {
            assert_eq!(rule(from).may_import(rule(to), kind), allowed, "{from} {to} {kind:?}");
        }
    }

    #[test]
    fn names_follow_from_the_folder() {
        assert_eq!((rule("api").package(), rule("api").folder()), ("pillion-api".into(), "crates/api".into()));
        assert_eq!((rule("xtask").package(), rule("xtask").folder()), ("xtask".into(), "crates/xtask".into()));
        assert_eq!((rule("e2e").package(), rule("e2e").folder()), ("pillion-e2e".into(), "e2e".into()));
    }
}
