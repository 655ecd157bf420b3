//! Manifests with `sidecar: true`, which no API server knows, are turned into ones that do what they say; mains that do not
//! say what they run are watched by the pod's own status; and how soon a sidecar is told to end.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use pillion_e2e::finishing::{Finishing, Mode, container, how, phase};
use pillion_e2e::{page, pods, programs};
use pillion_testbed::{Bed, Config};
use serde_json::{Value, json};

/// The example of the proposal, with programs that exist in the place of `do something`.
const EXAMPLE: &str = r#"apiVersion: v1
kind: Pod
metadata:
  name: myapp-pod
  labels:
    app: myapp
spec:
  restartPolicy: Never
  containers:
  - name: myapp
    image: registry.local/pillion/testapp:v1
    command: ['/testapp', 'run', '--exit-after=1s']
  - name: sidecar
    image: registry.local/pillion/testapp:v1
    sidecar: true
    command: ["/testapp", "run"]
"#;

fn converted(flags: &[&str], manifest: &str) -> Result<String> {
    programs::pillion(&[&["convert"], flags, &["-"]].concat(), manifest)
}

/// In ci: `finish_jobs_own_bed` runs both modes; the conversion itself is tested in `crates/cli`.
#[tokio::test]
async fn nightly_the_example_of_the_proposal_runs_and_succeeds() -> Result<()> {
    let bed = Bed::start(Config::control_plane("convert").with_node()).await?;
    let finishing = Finishing::start(&bed, Mode::Native).await?;
    // As it stands the API server does not take the field, or drops it.
    for (name, flags) in [("marked", vec![]), ("native", vec!["--native"])] {
        let text = converted(&flags, EXAMPLE)?;
        let mut pod: Value = serde_saphyr::from_str(&text)?;
        pod["metadata"]["name"] = json!(name);
        for list in ["containers", "initContainers"] {
            for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
                ensure!(container.get("sidecar").is_none(), "{text}");
                let security = pillion_e2e::finishing::container("any", &[])["securityContext"].clone();
                container["securityContext"] = security;
                container["imagePullPolicy"] = json!("Never");
            }
        }
        let pod = finishing.ended(pod).await?;
        assert_eq!((phase(&pod), how(&pod, "myapp")?), ("Succeeded", (0, "Completed", 0)), "{name}");
        assert_eq!(how(&pod, "sidecar")?, (0, "Completed", 0), "{name}");
        let init = pod.spec.as_ref().and_then(|spec| spec.init_containers.as_ref()).context("init containers")?;
        assert_eq!(init[0].restart_policy.as_deref(), Some("Always"), "{name}");
    }
    finishing.scene.close().await?;
    Ok(())
}

/// In ci: `finish_jobs_own_bed::ci_jobs_complete_with_wrapped_sidecars_of_a_set` for main containers with a command.
#[tokio::test]
async fn nightly_a_main_that_does_not_say_what_it_runs_is_watched_by_the_status_of_the_pod() -> Result<()> {
    let bed = Bed::start(Config::control_plane("watched").with_node()).await?;
    let finishing = Finishing::start(&bed, Mode::Wrap).await?;
    let silent = |arguments: &[&str]| {
        let mut main = container("app", arguments);
        main.as_object_mut().expect("an object").remove("command");
        main
    };
    let pod = |name: &str, policy: &str, arguments: &[&str]| {
        finishing.pod(name, policy, &[silent(arguments)], &[container("side", &[])])
    };
    // Not without a word: the refusal says what to write.
    let refused =
        finishing.create(&pod("refused", "Never", &["--exit-after=1s"])).await.err().context("it is refused")?;
    let said = format!("{refused:#}");
    assert!(said.contains("command") && said.contains("pillion.dev/finish-watch"), "{said}");

    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "watch-own-pod"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]});
    finishing.scene.apply(role).await?;
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "watch-own-pod"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "watch-own-pod"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": finishing.scene.namespace}]});
    finishing.scene.apply(binding).await?;
    let cases: [(&str, &str, &[&str], &str); 2] = [
        ("well", "Never", &["--exit-after=1s"], "Succeeded"),
        ("fails", "Never", &["--exit-after=1s", "--exit-code=3"], "Failed"),
    ];
    for (name, policy, arguments, expected) in cases {
        let mut pod = pod(name, policy, arguments);
        pod["metadata"]["annotations"]["pillion.dev/finish-watch"] = json!("pod");
        let pod = finishing.ended(pod).await?;
        assert_eq!((phase(&pod), how(&pod, "side")?), (expected, (0, "Completed", 0)), "{name}");
    }
    finishing.scene.close().await?;
    Ok(())
}

/// `PILLION_FINISH_RUNS` makes more of them, and `PILLION_FIGURES` names a file for what was measured.
fn runs() -> usize {
    std::env::var("PILLION_FINISH_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(5)
}

/// From the last line of the main to the line of the sidecar that tells of TERM, in milliseconds.
fn delay(finishing: &Finishing, pod: &str) -> Result<i64> {
    let line = |container: &str, text: &str| -> Result<Timestamp> {
        let lines = finishing.lines(pod, container)?;
        let found = lines.iter().find(|(_, line)| line == text).map(|(at, _)| *at);
        found.with_context(|| format!("{container} of {pod} says nothing of {text}: {lines:?}"))
    };
    let (ended, told) = (line("app", "exiting code=0")?, line("side", "signal TERM")?);
    i64::try_from(told.duration_since(ended).as_millis()).context("milliseconds")
}

/// In ci: `finish_jobs_own_bed` for the outcome; the delay is a figure.
#[tokio::test]
async fn nightly_a_sidecar_is_told_to_end_soon_after_the_last_main() -> Result<()> {
    let bed = Bed::start(Config::control_plane("soon").with_node()).await?;
    let native = Finishing::start(&bed, Mode::Native).await?;
    let mut delays = [Vec::new(), Vec::new()];
    for run in 0..runs() {
        for (mode, delays) in [Mode::Native, Mode::Wrap].into_iter().zip(&mut delays) {
            let name = format!("{mode:?}-{run}").to_lowercase();
            let mut pod =
                native.pod(&name, "Never", &[container("app", &["--exit-after=500ms"])], &[container("side", &[])]);
            pod["metadata"]["annotations"]["pillion.dev/finish-mode"] = json!(format!("{mode:?}"));
            let pod: Pod = native.ended(pod).await?;
            ensure!(phase(&pod) == "Succeeded" && !pods::runs(&pod, "side"), "{name}: {}", json!(pod.status));
            delays.push(delay(&native, &name)?);
        }
    }
    let sorted = delays.map(|mut delays| {
        delays.sort_unstable();
        delays
    });
    let told =
        |delays: &[i64]| json!({"p50_ms": delays[delays.len() / 2], "max_ms": delays.last(), "samples_ms": delays});
    let figures = json!({"runs": runs(), "native": told(&sorted[0]), "wrap": told(&sorted[1])});
    eprintln!("{figures}");
    if let Some(path) = std::env::var_os("PILLION_FIGURES") {
        std::fs::write(page::root().join(path), serde_json::to_string_pretty(&figures)? + "\n")?;
    }
    let longest = |delays: &[i64]| delays.last().copied().unwrap_or_default();
    // The agent wakes up with the lock; a kubelet looks at a pod when its runtime tells it to, or once in a second.
    ensure!(longest(&sorted[1]) < 1_000, "wrapped: {:?}", sorted[1]);
    ensure!(longest(&sorted[0]) < 5_000, "native: {:?}", sorted[0]);
    native.scene.close().await?;
    Ok(())
}
