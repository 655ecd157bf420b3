//! `pillion rollout` against a real API server and a real manager, with simulated nodes.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use pillion_api::{Meaning, PodCount, review};
use pillion_e2e::page::{self, Step, matches};
use pillion_e2e::rollouts::{self, Rollout, proxy};
use pillion_e2e::{pods, programs};
use pillion_testbed::{Bed, Cluster, Config, Fleet, Look, apply, until};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(40);
const PODS: i32 = 4;
/// What kubectl says where a test of a patch fails.
const OUTDATED: &str = "The request is invalid: the server rejected our request due to an error in our request\n";

struct Said {
    status: i32,
    out: String,
    err: String,
}

impl Said {
    fn of(output: Output) -> Result<Self> {
        Ok(Self {
            status: output.status.code().context("it ends by itself")?,
            out: String::from_utf8(output.stdout)?,
            err: String::from_utf8(output.stderr)?,
        })
    }

    fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.out).with_context(|| format!("no JSON: {}{}", self.out, self.err))
    }

    /// Whether these words are in the output, wherever its lines break.
    fn has(&self, words: &str) -> bool {
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        flat(&self.out).contains(&flat(words))
    }

    /// The command for kubectl that was told.
    fn command(&self) -> Result<&str> {
        Ok(self.err.lines().find(|line| line.starts_with("  kubectl")).context("no command is told")?.trim())
    }
}

fn command(cluster: &Cluster, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(programs::path("pillion")?);
    command.arg("rollout").args(arguments).arg("--kubeconfig").arg(cluster.kubeconfig());
    command.env_remove("KUBECONFIG").env_remove("NO_COLOR").env("TERM", "xterm");
    Ok(command)
}

fn pillion(cluster: &Cluster, arguments: &[&str]) -> Result<Said> {
    Said::of(command(cluster, arguments)?.output()?)
}

/// Runs what was told as a person would.
fn by_hand(cluster: &Cluster, line: &str) -> Result<Output> {
    let kubectl = cluster.kubectl([""; 0])?;
    let folder = std::path::Path::new(kubectl.get_program()).parent().context("kubectl is in a folder")?.to_owned();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    Ok(Command::new("sh").args(["-c", line]).env("PATH", path).output()?)
}

/// The set as it stands.
fn meaning(rollout: &Rollout) -> Result<Meaning> {
    let text = rollout.kubectl(&["get", "sidecarset", "mesh", "-o", "json"])?;
    let mut set: Value = serde_json::from_str(&text)?;
    set.as_object_mut().map(|fields| fields.remove("status"));
    review(&set).meaning.context("the set is in order")
}

/// Pods of a `StatefulSet` that carry the set, ready. Their names are the same in every run.
async fn workload(rollout: &Rollout, namespace: &str, name: &str, replicas: i32) -> Result<()> {
    let mut template = pods::on_fleet(rollouts::pod("", "mesh"));
    template["metadata"]["annotations"] = json!({"bed.pillion.dev/image-delay": "2s"});
    let labels = json!({"app": "mesh", "of": name});
    template["metadata"]["labels"] = labels.clone();
    let workload = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name, "namespace": namespace}, "spec": {
        "replicas": replicas, "podManagementPolicy": "Parallel", "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels, "annotations": template["metadata"]["annotations"]}, "spec": template["spec"]}}});
    apply(&rollout.client, "e2e", &workload).await?;
    until("the pods to be ready", PATIENCE, || async {
        let ready = ["get", "statefulset", name, "-n", namespace, "-o", "jsonpath={.status.readyReplicas}"];
        Ok(match rollout.kubectl(&ready) {
            Ok(ready) if ready == replicas.to_string() => Look::Done(()),
            other => Look::NotYet(format!("{other:?}")),
        })
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn ci_a_rollout_is_followed_held_promoted_and_undone() -> Result<()> {
    let bed = Bed::start(Config::control_plane("rollout").with_controllers().with_fleet(Fleet::of(1))).await?;
    let cluster = bed.cluster();
    let rollout = Rollout::prepare(cluster).await?;
    let manager = rollout.manager(&[]).await?;
    rollout.set("mesh", json!({"updateStrategy": {"maxUnavailable": 2}})).await?;
    workload(&rollout, "default", "web", PODS).await?;
    rollout.until_done("mesh", PODS).await?;
    let first = meaning(&rollout)?;

    let said = pillion(cluster, &["status", "scs/mesh"])?;
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    assert!(said.has("SidecarSet mesh: done") && said.has("StatefulSet web 4/4"), "{}", said.out);
    let said = pillion(cluster, &["undo", "mesh"])?;
    let expected =
        format!("error: set mesh has no revision before {}: there is nothing to go back to\n", first.revision);
    assert_eq!((said.status, said.err), (1, expected));

    pauses(&rollout)?;
    // Another image, while it is paused.
    rollout.edit("mesh", json!({"initContainers": [proxy(pods::V2)]})).await?;
    rollout
        .status_until("mesh", "the new revision to be stored", |status| {
            status.revisions.as_ref().is_some_and(|revisions| !revisions.is_empty()) && status.updated_pods == Some(0)
        })
        .await?;
    let said = until_said(cluster, &["status", "mesh", "-o", "json"], |said| said.has("\"waiting\": 4")).await?;
    let found = said.json()?;
    assert_eq!(
        (&found["state"], &found["code"], &found["next"]),
        (&json!("waiting"), &json!("PL403"), &json!([])),
        "{found}"
    );
    let said = until_said(cluster, &["diff", "scs/mesh"], |said| said.status == 0).await?;
    assert!(said.has(&format!("~ initContainers[proxy].image: {} → {}", pods::V1, pods::V2)), "{}", said.out);
    assert!(said.has("in place image of container proxy"), "{}", said.out);
    assert!(said.has(&format!("~ spec.initContainers[proxy].image: {} → {}", pods::V1, pods::V2)), "{}", said.out);

    follows(&rollout).await?;
    goes_back(&rollout, &first).await?;
    promotes(&rollout, &first).await?;
    stalls(&rollout).await?;

    let said = pillion(cluster, &["status", "other"])?;
    assert_eq!((said.status, said.err.as_str()), (2, "error: there is no SidecarSet other\n"));
    manager.stop().await?;
    bed.stop().await?;
    Ok(())
}

/// Asks until the answer is as expected: the controller stores revisions in a moment.
async fn until_said(cluster: &Cluster, arguments: &[&str], holds: impl Fn(&Said) -> bool) -> Result<Said> {
    let what = format!("pillion rollout {arguments:?}");
    let waited = until(&what, PATIENCE, || async {
        Ok(match pillion(cluster, arguments) {
            Ok(said) if holds(&said) => Look::Done(said),
            Ok(said) => Look::NotYet(format!("{}{}", said.out, said.err)),
            Err(error) => Look::NotYet(error.to_string()),
        })
    });
    Ok(waited.await?)
}

/// Paused: tried, by hand, and once more.
fn pauses(rollout: &Rollout) -> Result<()> {
    let cluster = &rollout.cluster;
    let tried = pillion(cluster, &["pause", "mesh", "--dry-run"])?;
    assert_eq!(tried.status, 0, "{}{}", tried.out, tried.err);
    assert_eq!(tried.out, "sidecarset/mesh patched (dry run)\n  + spec.updateStrategy.paused: true\n");
    assert!(!meaning(rollout)?.update.paused, "a dry run writes nothing");
    let by_hand_first = by_hand(cluster, tried.command()?)?;
    ensure!(by_hand_first.status.success(), "{by_hand_first:?}");
    assert!(meaning(rollout)?.update.paused, "the command that is told does the same");
    // What it tested is not so any more.
    let again = by_hand(cluster, tried.command()?)?;
    assert_eq!(String::from_utf8_lossy(&again.stderr), OUTDATED, "{again:?}");
    let said = pillion(cluster, &["pause", "mesh"])?;
    let expected = "error: set mesh is paused already: `pillion rollout resume scs/mesh` goes on\n";
    assert_eq!((said.status, said.err.as_str()), (1, expected));
    Ok(())
}

/// Resumed and followed to its end, by a log and by a person at a terminal.
async fn follows(rollout: &Rollout) -> Result<()> {
    let cluster = &rollout.cluster;
    let log = command(cluster, &["status", "-w", "mesh"])?.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut terminal = Terminal::start(command(cluster, &["status", "-w", "mesh"])?)?;
    let said = pillion(cluster, &["resume", "mesh"])?;
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    assert_eq!(said.out, "sidecarset/mesh patched\n  ~ spec.updateStrategy.paused: true → false\n");
    assert!(said.err.contains("; next: pod default/web-"), "{}", said.err);
    let said = Said::of(log.wait_with_output()?)?;
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(lines.len() > 3, "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("mesh: progressing, ")), "{lines:?}");
    assert_eq!(lines.last(), Some(&"mesh: done, 4 of 4 pods done, 4 ready, 0 under way"));
    assert!(!said.out.contains('\u{1b}') && !said.err.contains('\u{1b}'), "{}{}", said.out, said.err);
    let (status, drawn) = terminal.ended()?;
    assert_eq!(status, 0, "{drawn}");
    assert!(drawn.contains("\u{1b}[J"), "it is drawn in place: {drawn:?}");
    let last = drawn.rsplit("\u{1b}[J").next().unwrap_or_default();
    assert!(last.contains("SidecarSet mesh: done"), "{last}");
    let highest = drawn.split("\u{1b}[J").map(|frame| frame.lines().count()).max();
    assert!(highest <= Some(usize::from(Terminal::ROWS)), "no frame is higher than the terminal: {highest:?}");

    rollout.until_done("mesh", PODS).await?;
    let said = pillion(cluster, &["history", "mesh", "-o", "json"])?;
    let found = said.json()?;
    let pods: Vec<&Value> = found["revisions"].as_array().context("revisions")?.iter().map(|it| &it["pods"]).collect();
    assert_eq!(pods, [&json!(PODS), &json!(0)], "{found}");
    let said = pillion(cluster, &["history", "mesh"])?;
    assert!(said.has("newest proxy=registry.local/pillion/testapp:v2"), "{}", said.out);
    Ok(())
}

/// A terminal that somebody looks at.
struct Terminal {
    child: std::process::Child,
    screen: OwnedFd,
}

impl Terminal {
    const ROWS: u16 = 20;

    fn start(mut command: Command) -> Result<Self> {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&screen)?;
        unlockpt(&screen)?;
        tcsetwinsize(&screen, Winsize { ws_row: Self::ROWS, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 })?;
        let path = ptsname(&screen, Vec::new())?;
        let line = File::options().read(true).write(true).open(path.to_str()?)?;
        let child = command.stdin(Stdio::null()).stdout(line).stderr(Stdio::null()).spawn()?;
        Ok(Self { child, screen })
    }

    /// Status and all that was written, once it ends.
    fn ended(&mut self) -> Result<(i32, String)> {
        let mut drawn = Vec::new();
        let mut screen = File::from(self.screen.try_clone()?);
        let mut bytes = [0; 4096];
        // When nobody has the line open any more, reading fails.
        while let Ok(count @ 1..) = screen.read(&mut bytes) {
            drawn.extend_from_slice(&bytes[..count]);
        }
        let status = self.child.wait()?.code().context("it ends by itself")?;
        Ok((status, String::from_utf8(drawn)?))
    }
}

/// The first image again, which becomes the newest revision with another number.
async fn goes_back(rollout: &Rollout, first: &Meaning) -> Result<()> {
    let cluster = &rollout.cluster;
    let said = pillion(cluster, &["undo", "mesh", "--to", "7"])?;
    let expected = "error: set mesh has no revision 7: `pillion rollout history scs/mesh` lists them\n";
    assert_eq!((said.status, said.err.as_str()), (2, expected));
    let tried = pillion(cluster, &["undo", "scs/mesh", "--to", "1", "--dry-run"])?;
    assert_eq!(tried.status, 0, "{}{}", tried.out, tried.err);
    assert_ne!(meaning(rollout)?.revision, first.revision);
    let said = pillion(cluster, &["undo", "scs/mesh"])?;
    let expected =
        format!("sidecarset/mesh patched\n  ~ spec.initContainers[proxy].image: {} → {}\n", pods::V2, pods::V1);
    assert_eq!((said.status, said.out.as_str()), (0, expected.as_str()), "{}", said.err);
    assert_eq!(meaning(rollout)?.revision, first.revision);
    // The command that was told before is about another generation of the set.
    let late = by_hand(cluster, tried.command()?)?;
    assert_eq!(String::from_utf8_lossy(&late.stderr), OUTDATED, "{late:?}");
    let said = pillion(cluster, &["status", "-w", "mesh"])?;
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    rollout.until_done("mesh", PODS).await?;
    let found = pillion(cluster, &["history", "mesh", "-o", "json"])?.json()?;
    let revisions = found["revisions"].as_array().context("revisions")?;
    let numbers: Vec<&Value> = revisions.iter().map(|it| &it["number"]).collect();
    assert_eq!(numbers, [&json!(3), &json!(2)], "{found}");
    assert_eq!(
        (&found["revisions"][0]["name"], &found["revisions"][0]["pods"]),
        (&json!(first.revision), &json!(PODS))
    );
    Ok(())
}

/// A canary that is let go in steps, and then for good.
async fn promotes(rollout: &Rollout, first: &Meaning) -> Result<()> {
    let cluster = &rollout.cluster;
    let canary = json!({"initContainers": [proxy(pods::V2)], "injectStrategy": {"revision": first.revision},
        "updateStrategy": {"maxUnavailable": 2, "partition": "75%"}});
    rollout.edit("mesh", canary).await?;
    let said = pillion(cluster, &["status", "-w", "mesh"])?;
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    let last = said.out.lines().last().unwrap_or_default();
    assert!(last.starts_with("mesh: resting, 1 of 4 pods done, 4 ready, 0 under way; 3 pods wait: "), "{last}");
    let said = pillion(cluster, &["status", "mesh"])?;
    assert!(said.has("partition 75% of 4 -> 3 stay"), "{}", said.out);
    let said = pillion(cluster, &["promote", "mesh", "--to", "90%"])?;
    assert_eq!(said.status, 1, "{}{}", said.out, said.err);
    let said = pillion(cluster, &["promote", "mesh", "--to", "50%"])?;
    let expected = "sidecarset/mesh patched\n  ~ spec.updateStrategy.partition: 75% → 50%\n";
    assert_eq!((said.status, said.out.as_str()), (0, expected), "{}", said.err);
    let said = pillion(cluster, &["promote", "mesh"])?;
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    let set = meaning(rollout)?;
    assert_eq!((set.update.partition, &set.injection.pin), (PodCount::Pods(0), &None));
    rollout.until_done("mesh", PODS).await?;
    let said = pillion(cluster, &["promote", "mesh"])?;
    assert_eq!(said.status, 1, "{}{}", said.out, said.err);
    assert!(said.err.starts_with("error: set mesh holds no pod back"), "{}", said.err);
    Ok(())
}

/// An image that no node has: whoever follows is told, with status 1.
async fn stalls(rollout: &Rollout) -> Result<()> {
    let cluster = &rollout.cluster;
    for at in 0..PODS {
        rollout.kubectl(&["annotate", "pod", &format!("web-{at}"), "bed.pillion.dev/image-stuck=yes"])?;
    }
    let follower = command(cluster, &["status", "-w", "mesh"])?;
    rollout.edit("mesh", json!({"initContainers": [proxy("registry.local/pillion/testapp:none")]})).await?;
    // Pods that were updated a moment ago are left alone for ten seconds; then they wait for the first one.
    let found = until_said(cluster, &["status", "mesh", "-o", "json"], |said| said.has("\"isProbing\": true")).await?;
    let found = found.json()?;
    assert_eq!(found["counts"]["underWay"], 1, "{found}");
    let name = found["underWay"][0].as_str().and_then(|name| name.strip_prefix("default/")).context("the first pod")?;
    // What a node says of an image that is not there.
    let state = json!({"waiting": {"reason": "ErrImagePull"}});
    let patch = json!([{"op": "add", "path": "/status/initContainerStatuses/0/state", "value": state},
        {"op": "add", "path": "/status/initContainerStatuses/0/ready", "value": false}]);
    let patch: Patch<()> = Patch::Json(serde_json::from_value(patch)?);
    rollout.pods().patch_status(name, &PatchParams::default(), &patch).await?;
    let said = Said::of({ follower }.output()?)?;
    assert_eq!(said.status, 1, "{}{}", said.out, said.err);
    let last = said.out.lines().last().unwrap_or_default();
    assert!(last.starts_with("mesh: stalled, 0 of 4 pods done, 3 ready, 1 under way; 1 pod does not run"), "{last}");
    assert!(last.ends_with("[PL416]"), "{last}");
    // The ten seconds of the others may still last.
    let said = until_said(cluster, &["status", "mesh"], |said| said.has("3 pods wait: one pod is tried")).await?;
    assert_eq!(said.status, 1, "{}{}", said.out, said.err);
    assert!(said.has("SidecarSet mesh: stalled [PL416]"), "{}", said.out);
    Ok(())
}

/// Set to write what commands print into the page, instead of comparing.
const UPDATE: &str = "UPDATE_FIXTURES";

/// How old something is differs from run to run.
fn without_ages(line: &str) -> String {
    let is_age = |word: &str| word.strip_suffix(['s', 'm']).is_some_and(|number| number.parse::<u32>().is_ok());
    line.split_whitespace().map(|word| if is_age(word) { "AGE" } else { word }).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn ci_the_page_shows_what_is_printed() -> Result<()> {
    let file = page::root().join("docs/rollouts.md");
    let text = fs::read_to_string(&file)?;
    let steps = page::steps(&text)?;
    let bed = Bed::start(Config::control_plane("page").with_controllers().with_fleet(Fleet::of(1))).await?;
    let rollout = Rollout::prepare(bed.cluster()).await?;
    let manager = rollout.manager(&[]).await?;
    for namespace in ["shop", "search"] {
        rollout.kubectl(&["create", "namespace", namespace])?;
    }
    let image = json!({"name": "proxy", "image": "registry.example/mesh:1.9.2", "restartPolicy": "Always",
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}});
    rollout.set("mesh", json!({"initContainers": [image], "updateStrategy": {"maxUnavailable": "25%"}})).await?;
    for (namespace, name, replicas) in [("shop", "checkout", 4), ("search", "index", 2)] {
        workload(&rollout, namespace, name, replicas).await?;
    }
    rollout.until_done("mesh", 6).await?;
    let is_update = std::env::var_os(UPDATE).is_some();
    let mut printed = Vec::new();
    for Step { command, promised } in &steps {
        let promised: Vec<String> = promised.iter().map(|line| without_ages(line)).collect();
        let is_asked_again = ["status scs", "history", "diff"].iter().any(|verb| command.contains(verb));
        // The controller needs a moment to store a revision. What writes is written once.
        let said = until(command, PATIENCE, || async {
            Ok(match page::run(bed.cluster(), command) {
                Ok((_, said)) => {
                    let lines: Vec<String> = said.lines().map(without_ages).collect();
                    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
                    let is_right = matches(&promised, &lines);
                    if is_right || !is_asked_again || is_update {
                        Look::Done((is_right, said))
                    } else {
                        Look::NotYet(said)
                    }
                }
                Err(error) => Look::NotYet(error.to_string()),
            })
        });
        let (is_right, said) = said.await?;
        ensure!(is_right || is_update, "$ {command}\n{said}");
        printed.push(said);
    }
    assert_eq!(steps.len(), 14, "commands on the page");
    if is_update {
        fs::write(&file, page::filled(&text, &printed))?;
    }
    manager.stop().await?;
    bed.stop().await?;
    Ok(())
}
