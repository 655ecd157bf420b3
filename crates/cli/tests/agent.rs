//! `pillion agent` as people see it: every output as it is printed, with its exit status.
//!
//! A changed snapshot is a change users see: look at it, then `cargo insta accept`, and say why in the commit.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const IMAGE: &str = "registry.local/pillion/agent:1.0.0";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pillion(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pillion"));
    command.args(arguments).current_dir(folder).env_clear().output().expect("pillion runs")
}

/// Everything a person sees of a call.
fn agent(folder: &Path, arguments: &[&str]) -> String {
    let arguments: Vec<_> = ["agent"].iter().chain(arguments).copied().collect();
    let output = pillion(folder, &arguments);
    let mut seen = format!("status {}\n", output.status.code().expect("it ends by itself"));
    for (name, bytes) in [("stdout", output.stdout), ("stderr", output.stderr)] {
        if !bytes.is_empty() {
            let _ = write!(seen, "--- {name}\n{}", String::from_utf8(bytes).expect("it prints UTF-8"));
        }
    }
    assert!(!seen.contains('\u{1b}'), "no colour without a terminal");
    seen
}

fn examples() -> Vec<String> {
    let folder = fs::read_dir(repository().join("examples/agent")).expect("the examples are there");
    let names = folder.map(|entry| entry.expect("it can be read").file_name().into_string().expect("it is UTF-8"));
    let mut names: Vec<_> = names.filter(|name| name != "README.md").collect();
    names.sort();
    names
}

#[test]
fn every_example_lints_as_it_says() {
    let examples = examples();
    assert_eq!(examples, ["game-server.yaml", "hot-update.yaml", "proposal.yaml", "repaired.yaml"]);
    for name in examples {
        let path = format!("examples/agent/{name}");
        let text = fs::read_to_string(repository().join(&path)).expect("it can be read");
        let expected = text.lines().find_map(|line| line.strip_prefix("# lints: ")).expect("it says so");
        let output = pillion(&repository(), &["agent", "lint", &path, "-o", "json"]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        let repairs = report["files"][0]["repairs"].as_array().map_or(0, Vec::len);
        let found = format!("{} errors, {} warnings, {repairs} repairs", report["errors"], report["warnings"]);
        assert_eq!(found, expected, "{name}");
        insta::assert_snapshot!(format!("lint-{name}"), agent(&repository(), &["lint", &path]));
    }
}

#[test]
fn the_set_of_every_example_is_a_good_one() {
    for name in examples() {
        let path = format!("examples/agent/{name}");
        let arguments = ["sidecarset", &path, "--image", IMAGE, "-l", "app=arena"];
        insta::assert_snapshot!(format!("set-{name}"), agent(&repository(), &arguments));
        let output = pillion(&repository(), &[["agent"].as_slice(), &arguments].concat());
        let folder = tempfile::tempdir().expect("there is room");
        fs::write(folder.path().join("set.yaml"), &output.stdout).expect("it can be written");
        let linted = pillion(folder.path(), &["lint", "--strict", "set.yaml"]);
        let told = String::from_utf8_lossy(&linted.stdout).into_owned();
        assert_eq!((linted.status.code(), told.as_str()), (Some(0), ""), "{name}");
        // The configuration in it is the one that was given.
        let before = pillion(&repository(), &["agent", "lint", &path, "-o", "json"]);
        let after = pillion(folder.path(), &["agent", "lint", "set.yaml", "-o", "json"]);
        let rights = |output: &Output| {
            let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
            report["files"][0]["rights"].clone()
        };
        assert_eq!(rights(&before), rights(&after), "{name}");
    }
}

const SMALL: &str = "plugins:
- name: http_probe
  config:
    endpoints:
    - url: http://${SELF:HOST}:80/
      storageConfig: {inKube: {labelKey: state}}
sidecarStartOrder: After
";

#[test]
fn everything_about_the_set_can_be_said() {
    let folder = tempfile::tempdir().expect("there is room");
    fs::write(folder.path().join("small.yaml"), SMALL).expect("it can be written");
    let line = "sidecarset small.yaml --image a:1 -l app=web -l tier=front --namespace-selector games=yes --name web-agent \
                --config-name web --env HOST=localhost --pillion-namespace sidecars --app-containers ^app$ --secret s=/s";
    insta::assert_snapshot!(agent(folder.path(), &line.split_whitespace().collect::<Vec<_>>()));
}

#[test]
fn what_nothing_brings_into_the_pod_is_told() {
    let folder = tempfile::tempdir().expect("there is room");
    fs::write(folder.path().join("small.yaml"), SMALL).expect("it can be written");
    let seen = agent(folder.path(), &["sidecarset", "small.yaml", "--image", "a:1", "-l", "app=web"]);
    assert!(
        seen.ends_with("--- stderr\nnote: the agent has no variable HOST: give it with --env HOST=VALUE\n"),
        "{seen}"
    );
    let update = repository().join("examples/agent/hot-update.yaml").display().to_string();
    let arguments =
        ["sidecarset", update.as_str(), "--image", "a:1", "-l", "app=web", "--secret", "mirror=/credentials"];
    let seen = agent(folder.path(), &arguments);
    assert!(!seen.contains("note: "), "{seen}");
}

#[test]
fn mistakes_are_pointed_at() {
    let folder = tempfile::tempdir().expect("there is room");
    let wrong = SMALL.replace("storageConfig", "storageConfigs").replace("After", "Afterwards");
    fs::write(folder.path().join("wrong.yaml"), wrong).expect("it can be written");
    let held = SMALL.replace("state}", "pod-template-hash}").replace('\n', "\n    ");
    let held = format!("kind: ConfigMap\ndata:\n  other: x\n  config.yaml: |\n    {held}\n");
    fs::write(folder.path().join("held.yaml"), held).expect("it can be written");
    insta::assert_snapshot!(agent(folder.path(), &["lint", "wrong.yaml", "held.yaml"]));
    insta::assert_snapshot!(agent(folder.path(), &["lint", "-o", "json", "held.yaml"]));
    insta::assert_snapshot!(agent(folder.path(), &["sidecarset", "wrong.yaml", "--image", "a:1", "-l", "app=web"]));
}

#[test]
fn wrong_usage_says_what_is_right() {
    let folder = tempfile::tempdir().expect("there is room");
    let digest = "0".repeat(64);
    for arguments in [
        vec!["lint"],
        vec!["lint", "nothing.yaml"],
        vec!["sidecarset", "small.yaml", "-l", "app", "--image", "a:1"],
        vec!["update", "cj/web", "--version", "v1", "--url", "https://a.example/b", "--sha256", &digest],
        vec!["update", "deploy/web", "--version", "v1", "--url", "https://a.example/b", "--sha256", "abc"],
    ] {
        insta::assert_snapshot!(agent(folder.path(), &arguments));
    }
    // Without a cluster that is said, with its own status.
    let line = ["update", "deploy/web", "--version", "v1", "--url", "https://a.example/b", "--sha256", &digest];
    let seen = agent(folder.path(), &line);
    assert!(seen.starts_with("status 3\n--- stderr\nerror: "), "{seen}");
}

#[test]
fn an_agent_on_this_machine_prints_what_it_would_send() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it listens").port();
    let folder = tempfile::tempdir().expect("there is room");
    let config = format!(
        "plugins:\n- name: http_probe\n  config:\n    startDelaySeconds: 0\n    endpoints:\n    - url: tcp://localhost:{port}\n      \
         storageConfig: {{type: InKube, inKube: {{labelKey: example.com/port}}}}\n"
    );
    fs::write(folder.path().join("config.yaml"), config).expect("it can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_pillion"));
    command.args(["agent", "run", "--local", "config.yaml"]).current_dir(folder.path());
    let mut child = command.env_clear().stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("pillion runs");
    let mut line = String::new();
    let read = BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line);
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    read.expect("it prints a line");
    assert_eq!(
        line,
        "{\"patch\":{\"metadata\":{\"labels\":{\"example.com/port\":\"open\"}}},\
         \"path\":\"/api/v1/namespaces/default/pods/local/status?fieldManager=pillion-agent\"}\n"
    );
    // Nothing is sent from here, and that is to be said.
    assert!(agent(folder.path(), &["run", "config.yaml"]).starts_with("status 2\n"));
    let refused = agent(folder.path(), &["run", "--local", "missing.yaml"]);
    assert!(refused.starts_with("status 1\n--- stderr\npillion-agent: cannot read missing.yaml: "), "{refused}");
}
