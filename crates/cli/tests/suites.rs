//! `pillion test` as people see it: every output as it is printed, with its exit status.
//!
//! A changed snapshot is a change users see: look at it, then `cargo insta accept`, and say why in the commit.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

const MESH: &str = "apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata: {name: mesh}
spec:
  selector: {matchLabels: {app: web}}
  namespaceSelector: {matchLabels: {mesh: enabled}}
  containers:
  - name: proxy
    image: proxy:1
    resourcesPolicy:
      targetContainerMode: sum
      resourceExpr: {limits: {cpu: cpu - 1}}
";

const WEB: &str = "apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
  - {name: app, image: 'app:1', resources: {limits: {cpu: 2}, requests: {cpu: 1}}}
";

/// Everything a person sees of a call.
fn test(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pillion"));
    let output = command.arg("test").args(arguments).current_dir(folder).env_clear().output().expect("pillion runs");
    let mut seen = format!("status {}\n", output.status.code().expect("it ends by itself"));
    for (name, bytes) in [("stdout", output.stdout), ("stderr", output.stderr)] {
        if !bytes.is_empty() {
            let _ = write!(seen, "--- {name}\n{}", String::from_utf8(bytes).expect("it prints UTF-8"));
        }
    }
    seen
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is room");
    for (name, text) in [("mesh.yaml", MESH), ("web.yaml", WEB)].iter().chain(files) {
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().expect("a file is in a folder")).expect("it can be made");
        fs::write(file, text).expect("it can be written");
    }
    folder
}

/// A suite of one case: the usual one with some fields more.
fn suite(fields: &str) -> String {
    format!("name: web\ncases:\n- name: the case\n  workload: web.yaml\n  sets: [mesh.yaml]\n{fields}")
}

const ENABLED: &str = "  namespace: {name: shop, labels: {mesh: enabled}}\n";

#[test]
fn the_examples_pass() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    insta::assert_snapshot!(test(&root, &["examples/ci"]));
}

#[test]
fn an_expected_pod_is_written_once_and_then_held() {
    let folder = folder(&[(
        "deep/er/pillion-test.yaml",
        &suite(&format!("{ENABLED}  expect: expected/web.yaml\n"))
            .replace("[mesh", "[../../mesh")
            .replace("web.yaml\n  sets", "../../web.yaml\n  sets"),
    )]);
    insta::assert_snapshot!(test(folder.path(), &[]));
    insta::assert_snapshot!(test(folder.path(), &["--update"]));
    insta::assert_snapshot!(test(folder.path(), &["deep/er/pillion-test.yaml", "--update"]));
    let written = fs::read_to_string(folder.path().join("deep/er/expected/web.yaml")).expect("it was written");
    insta::assert_snapshot!(written);
    // Another version of the set: what changes is told by name, both sides.
    fs::write(folder.path().join("mesh.yaml"), MESH.replace("proxy:1", "proxy:2").replace("cpu - 1", "cpu/4"))
        .expect("it can be written");
    insta::assert_snapshot!(test(folder.path(), &["."]));
    // A comment changes no value, and is seen all the same.
    fs::write(folder.path().join("mesh.yaml"), MESH).expect("it can be written");
    let commented = written.replace("kind: Pod\n", "kind: Pod # a comment\n");
    fs::write(folder.path().join("deep/er/expected/web.yaml"), commented).expect("it can be written");
    insta::assert_snapshot!(test(folder.path(), &["."]));
    fs::write(folder.path().join("deep/er/expected/web.yaml"), "a: [").expect("it can be written");
    insta::assert_snapshot!(test(folder.path(), &["."]));
    fs::write(
        folder.path().join("deep/er/expected/web.yaml"),
        written.repeat(2).replace("apiVersion", "---\napiVersion"),
    )
    .expect("it can be written");
    insta::assert_snapshot!(test(folder.path(), &["."]));
}

#[test]
fn refusals_and_verdicts_must_be_those_expected() {
    let small = "  workload: {apiVersion: v1, kind: Pod, metadata: {name: small, labels: {app: web}}, spec: {containers: [{name: app, resources: {limits: {cpu: 100m}}}]}}\n";
    let case = |name: &str, fields: &str| {
        let workload = if name.contains("small") { small } else { "  workload: web.yaml\n" };
        format!("- name: {name}\n{workload}  sets: [mesh.yaml]\n{fields}")
    };
    let cases = [
        case("small, refused as expected", &format!("{ENABLED}  refused: PL301\n")),
        case("small, refused for something else", &format!("{ENABLED}  refused: PL302\n")),
        case("small, a pod is expected", &format!("{ENABLED}  expect: expected/none.yaml\n")),
        case("not refused", &format!("{ENABLED}  refused: PL301\n")),
        case("verdict as expected", &format!("{ENABLED}  verdicts: {{mesh: PL201}}\n")),
        case("another verdict, and a set that is not there", "  verdicts: {mesh: PL201, other: PL201}\n"),
    ];
    let folder =
        folder(&[("pillion-test.yaml", &format!("name: <verdicts> & \"refusals\"\ncases:\n{}", cases.concat()))]);
    insta::assert_snapshot!(test(folder.path(), &[]));
    insta::assert_snapshot!(test(folder.path(), &["-o", "junit"]));
    let seen = test(folder.path(), &["--update", "--junit", "report.xml"]);
    assert!(seen.contains("--- stderr\nwrote report.xml\n"), "{seen}");
    let report = fs::read_to_string(folder.path().join("report.xml")).expect("it was written");
    let printed = test(folder.path(), &["-o", "junit"]);
    assert!(printed.contains(&format!("--- stdout\n{report}--- stderr\n")), "{printed}");
    assert!(!folder.path().join("expected").exists(), "what is refused is not written");
}

#[test]
fn writing_a_pod_does_not_make_a_wrong_verdict_right() {
    let fields = format!("{ENABLED}  expect: expected.yaml\n  verdicts: {{mesh: PL203}}\n");
    let folder = folder(&[("pillion-test.yaml", &suite(&fields))]);
    insta::assert_snapshot!(test(folder.path(), &["--update"]));
}

#[test]
fn a_case_that_cannot_be_run_stops_no_other() {
    let cases = [
        "- {name: no such set, workload: web.yaml, sets: [nowhere.yaml], refused: PL301}\n",
        "- {name: an invalid set, workload: web.yaml, sets: [invalid.yaml], refused: PL301}\n",
        "- {name: no set at all, workload: web.yaml, refused: PL301}\n",
        "- {name: two workloads, workload: two.yaml, sets: [mesh.yaml], refused: PL301}\n",
        "- {name: no workload, workload: mesh.yaml, refused: PL301}\n",
        "- {name: elsewhere, workload: elsewhere.yaml, sets: [mesh.yaml], namespace: {name: shop}, refused: PL301}\n",
        "- {name: a limit range, workload: web.yaml, sets: [mesh.yaml], limitRange: {apiVersion: v1, kind: LimitRange, spec: {limits: 1}}, refused: PL301}\n",
        "- {name: one that can be, workload: web.yaml, sets: [mesh.yaml], verdicts: {mesh: PL203}}\n",
    ];
    let elsewhere = WEB.replace("name: web,", "name: web, namespace: elsewhere,");
    let folder = folder(&[
        ("pillion-test.yaml", &format!("name: broken\ncases:\n{}", cases.concat())),
        ("invalid.yaml", &MESH.replace("cpu - 1", "cpu -")),
        ("two.yaml", &format!("{WEB}---\n{WEB}")),
        ("elsewhere.yaml", &elsewhere),
    ]);
    insta::assert_snapshot!(test(folder.path(), &[]));
    insta::assert_snapshot!(test(folder.path(), &["-o", "junit"]));
}

#[test]
fn mistakes_in_a_suite_are_told_with_their_places() {
    for text in [
        "",
        "a: [",
        "- a\n",
        "name: web\n",
        "name: web\ncases: []\n",
        "name: web\ncases: {}\n",
        "name: 1\ncase: []\ncases:\n- 1\n",
        &suite("  expects: a.yaml\n"),
        &suite("  expect: a.yaml\n  refused: PL301\n"),
        &suite("  refused: PL999\n"),
        &suite("  verdicts: {mesh: PL201, other: yes}\n"),
        &suite("  verdicts: [mesh]\n"),
        &suite("  namespace: {labels: {a: 1}, label: {}}\n  limitRange: 1\n  refused: PL301\n"),
        &suite("  expect: mesh.yaml\n"),
        &suite("  refused: PL301\n").replace("[mesh.yaml]", "mesh.yaml"),
        &suite("  refused: PL301\n").replace("[mesh.yaml]", "[1]"),
        &suite("  refused: PL301\n").replace("  workload: web.yaml\n", ""),
        &format!("{}- name: the case\n  workload: web.yaml\n  expect: a.yaml\n", suite("  expect: a.yaml\n")),
        "name: one\ncases: [1]\n---\nname: two\n",
    ] {
        let folder = folder(&[("pillion-test.yaml", text)]);
        let seen = test(folder.path(), &[]);
        assert!(seen.starts_with("status 2\n--- stderr\nerror: "), "{text}{seen}");
        insta::assert_snapshot!(format!("{text}--- is answered with\n{seen}"));
    }
}

#[test]
fn mistakes_of_all_suites_are_told_at_once() {
    let folder = folder(&[
        ("a/pillion-test.yaml", "name: a\n"),
        ("b/pillion-test.yaml", "name: b\n"),
        (".hidden/pillion-test.yaml", ""),
    ]);
    insta::assert_snapshot!(test(folder.path(), &["b", "a", "b/pillion-test.yaml"]));
    fs::create_dir(folder.path().join("empty")).expect("it can be made");
    insta::assert_snapshot!(test(folder.path(), &["empty"]));
    insta::assert_snapshot!(test(folder.path(), &["nowhere"]));
}
