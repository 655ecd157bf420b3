//! Verbs that ask a cluster, where there is none: what is said, and the status.
#![forbid(unsafe_code)]

use std::fs;
use std::process::Command;

use serde_json::json;

/// Status and stderr of a call; stdout must be empty.
fn called(kubeconfig: Option<&str>, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pillion"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).env_clear().env("HOME", "/nonexistent");
    if let Some(path) = kubeconfig {
        command.args(["--kubeconfig", path]);
    }
    let output = command.output().expect("pillion starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    (output.status.code().expect("it ends by itself"), String::from_utf8(output.stderr).expect("it prints UTF-8"))
}

const VERBS: [&[&str]; 17] = [
    &["check"],
    &["why", "pod/web"],
    &["diff", "-f", "tests/render/sets"],
    &["off"],
    &["on"],
    &["off", "--set", "mesh"],
    &["rollout", "status", "scs/mesh"],
    &["rollout", "status", "-w", "mesh"],
    &["rollout", "history", "mesh"],
    &["rollout", "diff", "mesh"],
    &["rollout", "pause", "scs/mesh"],
    &["rollout", "resume", "scs/mesh"],
    &["rollout", "promote", "scs/mesh", "--to", "50%"],
    &["rollout", "undo", "scs/mesh", "--to", "2", "--dry-run"],
    &["size", "report"],
    &["size", "explain", "vpa/web"],
    &["size", "revert", "deploy/web"],
];

#[test]
fn without_a_cluster_the_status_is_3() {
    for verb in VERBS {
        let (status, said) = called(None, verb);
        assert_eq!(status, 3, "{verb:?}: {said}");
        let expected =
            "error: found no cluster: give --kubeconfig, set KUBECONFIG, or run in a pod with a service account token";
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn a_cluster_that_does_not_answer_is_named_with_what_was_asked() {
    let folder = tempfile::tempdir().expect("there is a place for files");
    let path = folder.path().join("config");
    // Nothing listens on this port.
    let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": "http://127.0.0.1:1"}}], "users": [{"name": "me", "user": {}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}]});
    fs::write(&path, config.to_string()).expect("a file can be written");
    for verb in VERBS {
        let (status, said) = called(path.to_str(), verb);
        assert_eq!(status, 3, "{verb:?}: {said}");
        assert!(said.starts_with("error: cannot "), "{said}");
        assert!(said.contains("Connection refused"), "{said}");
    }
}

#[test]
fn wrong_usage_is_told_before_a_cluster_is_asked() {
    for (arguments, words) in [
        (&["why"][..], "<KIND/NAME>..."),
        (&["why", "web"], "write it as kind/name, such as pod/web or deploy/web"),
        (&["why", "svc/web"], "\"svc\" is no kind that creates pods"),
        (&["why", "pod/web", "-l", "app=web"], "cannot be used with"),
        (&["why", "pod/web", "-A"], "cannot be used with"),
        (&["diff"], "--filename <PATH>..."),
        (&["size", "report", "-n", "shop", "-A"], "cannot be used with"),
        (&["size", "report", "--by", "pod"], "invalid value 'pod'"),
        (&["size", "explain", "deploy/web"], "\"deploy\" is no VerticalPodAutoscaler"),
        (&["size", "revert", "pod/web"], "a pod has no template to go back to: name its workload, such as deploy/web"),
        (&["rollout", "status"], "<SET>"),
        (&["rollout", "status", "deploy/web"], "\"deploy\" is no SidecarSet: write scs/name, or the name alone"),
        (&["rollout", "status", "scs/mesh", "-o", "yaml"], "invalid value 'yaml'"),
        (&["rollout", "history", "scs/"], "write it as scs/name, such as scs/mesh"),
        (&["rollout", "diff", "1", "2"], "1 2: name the set as well, such as scs/mesh 1 2"),
        (&["rollout", "diff", "a", "b", "c", "d"], "unexpected value 'd'"),
        (&["rollout", "promote", "mesh", "--to", "half"], "write a number of pods, or a percentage such as 50%"),
        (&["rollout", "undo", "mesh", "--to"], "a value is required"),
        (&["diff", "-f", "nowhere.yaml"], "cannot read nowhere.yaml"),
    ] {
        let (status, said) = called(None, arguments);
        assert_eq!(status, 2, "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}
