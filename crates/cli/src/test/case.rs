//! One case: renders the pod and compares it with what is expected.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use pillion_api::Reason;
use serde_json::Value;

use super::suite::{Case, Source, Suite};
use crate::manifest::{self, Manifest};
use crate::preview::{Given, Preview, Role, Said, Subject, Trouble};
use crate::{chain, pod_diff, yaml_text};

const DEFAULT_NAMESPACE: &str = "default";

/// What came of a case.
pub(super) enum CaseResult {
    /// All is as expected.
    Passed,
    /// The expected pod was written to this file.
    Updated(String),
    /// Something differs: lines that say what.
    Failed(Vec<String>),
    /// The case cannot be run: lines that say why.
    Broken(Vec<String>),
}

impl CaseResult {
    pub(super) fn is_fine(&self) -> bool {
        matches!(self, Self::Passed | Self::Updated(_))
    }
}

pub(super) fn run(suite: &Suite, case: &Case, update: bool) -> CaseResult {
    let given = match given(suite, case) {
        Ok(given) => given,
        Err(lines) => return CaseResult::Broken(lines),
    };
    let [(file, workload)] = given.workloads.as_slice() else {
        let count = given.workloads.len();
        return CaseResult::Broken(vec![format!("a case is about one workload, here are {count}")]);
    };
    if let Some(meant) = case.namespace.as_ref().filter(|meant| **meant != workload.origin.namespace) {
        let own = &workload.origin.namespace;
        return CaseResult::Broken(vec![format!("the workload is in namespace {own}, the case says {meant}")]);
    }
    let subject = Subject::new(&given, file, workload);
    match subject.preview() {
        Ok(preview) => judge(case, &preview, update),
        Err(message) => CaseResult::Broken(vec![message]),
    }
}

fn given(suite: &Suite, case: &Case) -> Result<Given, Vec<String>> {
    let objects = |source: &Source| match source {
        Source::File(path) => read(std::slice::from_ref(path)),
        Source::Inline(manifest) => Ok(vec![manifest.clone()]),
    };
    let workload = objects(&case.workload)?;
    let sets = read(&case.sets)?;
    let limit_range = case.limit_range.as_ref().map_or_else(|| Ok(Vec::new()), objects)?;
    let sources = [(&workload[..], Role::Anything), (&sets, Role::Surroundings), (&limit_range, Role::Surroundings)];
    let namespace = case.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
    let mut given = Given::sort(&sources, namespace).map_err(|trouble| match trouble {
        Trouble::Usage(message) => vec![message],
        Trouble::InvalidSets(errors) => errors,
    })?;
    if given.sets.sets().len() == 0 {
        return Err(vec![format!("{}: no SidecarSet is given: name its file in sets", suite.file)]);
    }
    given.add_labels(case.labels.clone());
    Ok(given)
}

fn read(paths: &[PathBuf]) -> Result<Vec<Manifest>, Vec<String>> {
    manifest::read(paths).map_err(|error| vec![chain(&error)])
}

fn judge(case: &Case, preview: &Preview<'_>, update: bool) -> CaseResult {
    let mut lines = wrong_verdicts(case, preview);
    lines.extend(wrong_refusal(case, preview));
    let mut updated = None;
    if let (Some(expect), Some(pod)) = (&case.expect, preview.pod()) {
        let rendered = yaml_text::document(pod);
        match compare(expect, pod, &rendered) {
            Ok(()) => {}
            Err(_) if update => match write(expect, &rendered) {
                Ok(()) => updated = Some(expect.display().to_string()),
                Err(message) => lines.push(message),
            },
            Err(differences) => lines.extend(differences),
        }
    }
    match updated {
        Some(file) if !lines.is_empty() => {
            lines.push(format!("wrote {file}"));
            CaseResult::Failed(lines)
        }
        None if !lines.is_empty() => CaseResult::Failed(lines),
        Some(file) => CaseResult::Updated(file),
        None => CaseResult::Passed,
    }
}

fn wrong_verdicts(case: &Case, preview: &Preview<'_>) -> Vec<String> {
    let all = preview.all();
    let check = |(set, expected): (&String, &Reason)| {
        let Some((_, said)) = all.iter().find(|(name, _)| name == set) else {
            return Some(format!("verdict of {set}: there is no such set"));
        };
        let (code, message) = match said {
            Said::Verdict(verdict) => (verdict.reason, &verdict.message),
            Said::Mismatch(found) => (found.reason, &found.message),
        };
        (code != *expected).then(|| format!("verdict of {set}: expected {expected}, got {code}: {message}"))
    };
    case.verdicts.iter().filter_map(check).collect()
}

/// Whether the pod is refused exactly as it should be.
fn wrong_refusal(case: &Case, preview: &Preview<'_>) -> Vec<String> {
    let told = |what: &str| -> Vec<String> {
        let refusals = preview.decision.refusals();
        let of_sets =
            refusals.map(|verdict| format!("{what}{} by {}: {}", verdict.reason, verdict.set, verdict.message));
        let of_pod = preview.decision.refusal.iter();
        of_sets.chain(of_pod.map(|refusal| format!("{what}{}: {}", refusal.reason, refusal.message))).collect()
    };
    let is_other = |expected: Reason| {
        let of_pod = preview.decision.refusal.iter().map(|refusal| refusal.reason);
        preview.decision.refusals().map(|verdict| verdict.reason).chain(of_pod).any(|reason| reason != expected)
    };
    match case.refused {
        None if case.expect.is_some() => told("expected a pod, refused for "),
        Some(expected) if !preview.decision.is_refused() => {
            vec![format!("expected the pod to be refused for {expected}, it is not")]
        }
        Some(expected) if is_other(expected) => {
            told(&format!("expected the pod to be refused for {expected}, refused for "))
        }
        None | Some(_) => Vec::new(),
    }
}

/// Whether a file holds exactly the pod as it is written here; else the lines that say what differs.
fn compare(file: &Path, pod: &Value, rendered: &str) -> Result<(), Vec<String>> {
    let shown = file.display().to_string();
    let expected = match fs::read(file) {
        Ok(expected) => expected,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(vec![format!("{shown} is not there: --update writes it")]);
        }
        Err(error) => return Err(vec![format!("cannot read {shown}: {error}")]),
    };
    if expected == rendered.as_bytes() {
        return Ok(());
    }
    let objects = manifest::parse(&shown, &expected).map_err(|error| vec![chain(&error)])?;
    let [object] = objects.as_slice() else {
        return Err(vec![format!("{shown} must hold one pod, it holds {} objects", objects.len())]);
    };
    let mut lines = pod_diff::lines(&pod_diff::diff(&object.value, pod));
    if lines.is_empty() {
        lines.push(format!("{shown} has the same values, but is not written as --update writes it"));
        lines.extend(first_difference(&String::from_utf8_lossy(&expected), rendered));
    } else {
        lines.insert(0, format!("{shown} differs, from expected to rendered:"));
    }
    Err(lines)
}

/// The first line that differs, of both texts.
fn first_difference(expected: &str, rendered: &str) -> [String; 2] {
    let [expected, rendered] = [expected, rendered].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let same = expected.iter().zip(&rendered).take_while(|(one, other)| one == other).count();
    let shown = |lines: &[&str]| lines.get(same).map_or_else(|| "nothing".to_owned(), |line| format!("{line:?}"));
    let number = same + 1;
    [format!("line {number}: expected {}", shown(&expected)), format!("line {number}: rendered {}", shown(&rendered))]
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    let written = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(file, text));
    written.map_err(|error| format!("cannot write {}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_byte_of_an_expected_pod_can_change_unseen() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"on": "yes", "n": "1"}}, "spec": {
            "containers": [{"name": "app", "args": ["a\nb", "#c: d"], "ports": [{"containerPort": 80}], "stdin": true}], "volumes": []}});
        let rendered = yaml_text::document(&pod);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("expected.yaml");
        assert_eq!(
            compare(&file, &pod, &rendered),
            Err(vec![format!("{} is not there: --update writes it", file.display())])
        );
        let compared = |bytes: &[u8]| {
            fs::write(&file, bytes).unwrap();
            compare(&file, &pod, &rendered)
        };
        assert_eq!(compared(rendered.as_bytes()), Ok(()));
        let must_differ = |bytes: &[u8]| {
            let lines = compared(bytes).expect_err(&String::from_utf8_lossy(bytes));
            assert!(lines.iter().all(|line| !line.is_empty()) && !lines.is_empty());
        };
        for at in 0..rendered.len() {
            for flip in [0x01, 0x20, 0x80] {
                let mut bytes = rendered.clone().into_bytes();
                bytes[at] ^= flip;
                must_differ(&bytes);
            }
            let mut shorter = rendered.clone().into_bytes();
            shorter.remove(at);
            must_differ(&shorter);
        }
        for more in ["\n", " ", "# a comment\n", "---\n", "\u{feff}"] {
            must_differ(format!("{rendered}{more}").as_bytes());
            must_differ(format!("{more}{rendered}").as_bytes());
        }
    }

    #[test]
    fn the_first_line_that_differs_is_shown() {
        assert_eq!(
            first_difference("a\nb\r\n", "a\nb\n"),
            [r#"line 2: expected "b\r\n""#, r#"line 2: rendered "b\n""#]
        );
        assert_eq!(first_difference("a\n", "a\nb\n"), ["line 2: expected nothing", r#"line 2: rendered "b\n""#]);
    }
}
