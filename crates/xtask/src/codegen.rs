//! Writes the committed files that follow from code, and tells when one does not follow any more.

mod agent_keys;
mod chart_values;
mod crate_map;
mod reference;
mod region;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};

use crate::finding::Finding;
use crate::gate::e2e_tests;
use crate::source_tree::SourceTree;
use crate::tidy::map::CRATES;
use crate::workspace::Workspace;
use crate::yaml;

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const CRATE_MAP: &str = "crate-map";
const AGENT_PAGE: &str = "docs/agent/configuration.md";
const AGENT_KEYS: &str = "agent-keys";
const CONTRIBUTING: &str = "CONTRIBUTING.md";
const E2E_TESTS: &str = "e2e-tests";
/// A template of the chart, so that an upgrade brings a new one: Helm never touches what is in `crds/` again.
const DEFINITION: &str = "charts/pillion/templates/definitions/sidecarsets.apps.kruise.io.yaml";

const LEDGER_DEFINITION: &str = "charts/pillion/templates/definitions/injectionledgers.pillion.dev.yaml";

const HOT_UPDATE_DEFINITION: &str = "charts/pillion/templates/definitions/hotupdates.pillion.dev.yaml";

const AUTOSCALER_DEFINITION: &str =
    "charts/pillion/templates/definitions/verticalpodautoscalers.autoscaling.k8s.io.yaml";

const CHECKPOINT_DEFINITION: &str =
    "charts/pillion/templates/definitions/verticalpodautoscalercheckpoints.autoscaling.k8s.io.yaml";

const SIDECAR_SET_PAGE: &str = "# SidecarSet reference\n\n\
    `apiVersion: apps.kruise.io/v1alpha1`, `kind: SidecarSet`, cluster scoped, short name `scs`. Every field, from the\n\
    types (`cargo xtask codegen` writes this page); `kubectl explain scs.spec` says the same. Nothing is filled in on the\n\
    stored object: defaults are what an absent field means. What happens to a pod is told in\n\
    [How injection decides](how-injection-decides.md), expressions in [Resource expressions](resource-expressions.md).\n";

/// A committed file that follows from code.
struct Generated {
    path: &'static str,
    /// What it should be, given what it is.
    fresh: fn(&Workspace, Option<&str>) -> anyhow::Result<String>,
}

const GENERATED: &[Generated] = &[
    Generated { path: ARCHITECTURE, fresh: architecture },
    Generated { path: DEFINITION, fresh: |_, _| yaml::generated(&kept(pillion_api::sidecar_set_crd())) },
    Generated { path: HOT_UPDATE_DEFINITION, fresh: |_, _| yaml::generated(&kept(pillion_api::hot_update_crd())) },
    Generated {
        path: AUTOSCALER_DEFINITION,
        fresh: |_, _| sizing_definition(pillion_api::vertical_pod_autoscaler_crd()),
    },
    Generated {
        path: CHECKPOINT_DEFINITION,
        fresh: |_, _| sizing_definition(pillion_api::vertical_pod_autoscaler_checkpoint_crd()),
    },
    // What is counted can be counted again, so it goes with the release.
    Generated { path: LEDGER_DEFINITION, fresh: |_, _| yaml::generated(&pillion_api::injection_ledger_crd()) },
    Generated {
        path: "docs/sidecarset-reference.md",
        fresh: |_, _| Ok(reference::page(SIDECAR_SET_PAGE, &pillion_api::sidecar_set_schema())),
    },
    Generated { path: "docs/chart-values.md", fresh: |_, _| chart_values::page() },
    Generated { path: AGENT_PAGE, fresh: |_, current| agent_page(current) },
    Generated { path: CONTRIBUTING, fresh: contributing },
    Generated { path: "docs/reason-codes.md", fresh: |_, _| Ok(pillion_api::reason_codes_page()) },
];

/// Compares every generated file with what it should be.
pub fn check(workspace: &Workspace) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in GENERATED {
        let current = read(&workspace.root.join(file.path))?;
        match (file.fresh)(workspace, current.as_deref()) {
            Err(error) => findings.push(Finding::of_file(file.path, format!("{error:#}"))),
            Ok(fresh) if current.as_deref() != Some(&fresh) => {
                findings.push(Finding::of_file(file.path, "is stale: run `cargo xtask codegen`"));
            }
            Ok(_) => {}
        }
    }
    Ok(findings)
}

/// Writes every generated file that is stale, and names those.
pub fn write(workspace: &Workspace) -> anyhow::Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    for file in GENERATED {
        let path = workspace.root.join(file.path);
        let current = read(&path)?;
        let fresh = (file.fresh)(workspace, current.as_deref()).context(file.path)?;
        if current.as_deref() != Some(&fresh) {
            let folder = path.parent().context("a file has a folder")?;
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            fs::write(&path, fresh).with_context(|| format!("cannot write {}", path.display()))?;
            written.push(file.path.into());
        }
    }
    Ok(written)
}

/// A definition that another product may have brought: it is installed only where it is not there, and only for the role
/// that needs it.
fn sizing_definition(definition: Value) -> anyhow::Result<String> {
    let name = definition["metadata"]["name"].as_str().context("a definition has a name")?.to_owned();
    let text = yaml::generated(&kept(definition))?;
    // In comments, so that the file is YAML as it stands.
    Ok(format!("# {{{{ if include \"pillion.defines\" (list . \"{name}\") }}}}\n{text}# {{{{ end }}}}\n"))
}

/// A definition as the chart has it: with it, every object that people wrote would go, so uninstalling keeps it.
fn kept(mut definition: Value) -> Value {
    definition["metadata"]["annotations"]["helm.sh/resource-policy"] = json!("keep");
    definition
}

/// The page with a fresh map in it; a page with nothing else if there is none yet.
fn architecture(workspace: &Workspace, current: Option<&str>) -> anyhow::Result<String> {
    let begun = format!("# Architecture\n\n{}", region::empty(CRATE_MAP));
    let map = crate_map::table(CRATES, workspace);
    region::replace(current.unwrap_or(&begun), CRATE_MAP, &map)
}

/// The page with fresh tables of keys in it.
fn agent_page(current: Option<&str>) -> anyhow::Result<String> {
    let begun = format!("# Configuration of the agent\n\n{}", region::empty(AGENT_KEYS));
    region::replace(current.unwrap_or(&begun), AGENT_KEYS, &agent_keys::tables())
}

/// The page with a fresh table of e2e tests in it.
fn contributing(workspace: &Workspace, current: Option<&str>) -> anyhow::Result<String> {
    let begun = format!("# Contributing\n\n{}", region::empty(E2E_TESTS));
    // A directory that is no checkout, as tests of this module have, has none.
    let has_tests = workspace.root.join(e2e_tests::DIRECTORY).exists();
    let tree = if has_tests { SourceTree::of_git(&workspace.root)? } else { SourceTree::default() };
    let tests = e2e_tests::list(&tree);
    region::replace(current.unwrap_or(&begun), E2E_TESTS, &e2e_tests::table(&tests))
}

fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty_workspace(root: &Path) -> Workspace {
        Workspace { root: root.to_owned(), target_directory: root.join("target"), packages: Vec::new() }
    }

    #[test]
    fn missing_files_are_begun_and_the_second_run_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = empty_workspace(folder.path());
        let paths = [
            "ARCHITECTURE.md",
            DEFINITION,
            HOT_UPDATE_DEFINITION,
            AUTOSCALER_DEFINITION,
            CHECKPOINT_DEFINITION,
            LEDGER_DEFINITION,
            "docs/sidecarset-reference.md",
            "docs/chart-values.md",
            AGENT_PAGE,
            CONTRIBUTING,
            "docs/reason-codes.md",
        ];
        let stale = paths.map(|path| Finding::of_file(path, "is stale: run `cargo xtask codegen`"));
        assert_eq!(check(&workspace).unwrap(), stale);
        assert_eq!(write(&workspace).unwrap(), paths.map(PathBuf::from));
        assert_eq!(check(&workspace).unwrap(), []);
        assert_eq!(write(&workspace).unwrap(), Vec::<PathBuf>::new());
    }

    #[test]
    fn what_people_wrote_around_the_map_stays() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = empty_workspace(folder.path());
        let page = folder.path().join("ARCHITECTURE.md");
        fs::write(&page, "# Ours\n\n<!-- crate-map:begin -->\nold\n<!-- crate-map:end -->\n\nMore.\n").unwrap();
        write(&workspace).unwrap();
        let map = crate_map::table(CRATES, &workspace);
        assert_eq!(
            fs::read_to_string(&page).unwrap(),
            format!("# Ours\n\n<!-- crate-map:begin -->\n{map}<!-- crate-map:end -->\n\nMore.\n")
        );
    }

    #[test]
    fn a_page_without_markers_is_a_finding_and_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = empty_workspace(folder.path());
        let page = folder.path().join("ARCHITECTURE.md");
        fs::write(&page, "# Ours\n").unwrap();
        let message = "has no line <!-- crate-map:begin --> before a line <!-- crate-map:end -->: add both where the generated part belongs";
        assert_eq!(check(&workspace).unwrap()[0], Finding::of_file("ARCHITECTURE.md", message));
        assert_eq!(format!("{:#}", write(&workspace).unwrap_err()), format!("ARCHITECTURE.md: {message}"));
        assert_eq!(fs::read_to_string(&page).unwrap(), "# Ours\n");
    }
}
