//! `pillion rollout` against a real API server, with the real webhook and simulated nodes.
//!
//! What the controller does is done by the test, with the same functions, so that each moment can be looked at as long as
//! it takes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod as StoredPod;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use pillion_api::revision::SET_UID_LABEL;
use pillion_api::{Meaning, review};
use pillion_e2e::manager::NAMESPACE;
use pillion_e2e::{Manager, pods, programs};
use pillion_rollout::history::{Revision, Step, steps};
use pillion_rollout::{Fleet, OwnWrites, Pod, plan};
use pillion_testbed::{Bed, Cluster, Config, Fleet as Nodes, Look, apply, until};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(40);
const PODS: usize = 4;
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

fn rollout(cluster: &Cluster, arguments: &[&str]) -> Result<Said> {
    Said::of(command(cluster, arguments)?.output()?)
}

/// Runs what was told as a person would.
fn by_hand(cluster: &Cluster, line: &str) -> Result<Output> {
    let kubectl = cluster.kubectl([""; 0])?;
    let folder = std::path::Path::new(kubectl.get_program()).parent().context("kubectl is in a folder")?.to_owned();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    Ok(Command::new("sh").args(["-c", line]).env("PATH", path).output()?)
}

fn set(image: &str) -> Value {
    let mut proxy = pods::sidecar("proxy", &[]);
    proxy["image"] = image.into();
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "mesh"}, "spec": {
        "selector": {"matchLabels": {"app": "web"}}, "initContainers": [proxy], "updateStrategy": {"maxUnavailable": 2}}})
}

/// What the controller does, step by step.
struct Hand {
    client: Client,
}

impl Hand {
    fn sets(&self) -> Api<DynamicObject> {
        let kind = kube::core::GroupVersionKind::gvk("apps.kruise.io", "v1alpha1", "SidecarSet");
        Api::all_with(self.client.clone(), &ApiResource::from_gvk(&kind))
    }

    fn revisions(&self) -> Api<DynamicObject> {
        let kind = kube::core::GroupVersionKind::gvk("apps", "v1", "ControllerRevision");
        Api::namespaced_with(self.client.clone(), NAMESPACE, &ApiResource::from_gvk(&kind))
    }

    fn pods(&self) -> Api<StoredPod> {
        Api::namespaced(self.client.clone(), "default")
    }

    async fn set(&self) -> Result<(Value, Meaning)> {
        let mut set = serde_json::to_value(self.sets().get("mesh").await?)?;
        set.as_object_mut().map(|fields| fields.remove("status"));
        let meaning = review(&set).meaning.context("the set is in order")?;
        Ok((set, meaning))
    }

    async fn stored(&self) -> Result<Vec<Revision>> {
        let listed = self.revisions().list(&ListParams::default().labels(SET_UID_LABEL)).await?;
        let read = listed.items.into_iter().filter_map(|object| Revision::read(&serde_json::to_value(object).ok()?));
        Ok(read.collect())
    }

    /// Keeps the revision of the set as it stands.
    async fn store(&self) -> Result<()> {
        let (set, meaning) = self.set().await?;
        let stored = self.stored().await?;
        let uid = set["metadata"]["uid"].as_str().context("a set has a uid")?;
        let spec = set["spec"].as_object().context("a set has a spec")?;
        let stored: Vec<&Revision> = stored.iter().collect();
        for step in steps(&meaning, uid, NAMESPACE, spec, &stored, &BTreeSet::new()) {
            match step {
                Step::Create(object) => {
                    self.revisions().create(&PostParams::default(), &serde_json::from_value(object)?).await?;
                }
                Step::Change { name, number, .. } => {
                    let patch = Patch::Merge(json!({"revision": number}));
                    self.revisions().patch(&name, &PatchParams::default(), &patch).await?;
                }
                Step::Delete(name) => {
                    self.revisions().delete(&name, &kube::api::DeleteParams::default()).await?;
                }
            }
        }
        Ok(())
    }

    async fn living(&self) -> Result<Vec<Pod>> {
        let listed = self.pods().list(&ListParams::default().labels("pillion.dev/injected=true")).await?;
        let read = listed
            .items
            .into_iter()
            .map(|pod| anyhow::Ok(Pod::read(serde_json::from_value(serde_json::to_value(pod)?)?)));
        read.collect()
    }

    /// Writes what is planned now; how many pods that were.
    async fn act(&self) -> Result<usize> {
        let (_, meaning) = self.set().await?;
        let stored = self.stored().await?;
        let templates = stored.iter().filter_map(|it| Some((it.name.clone(), it.template.clone()?))).collect();
        let pods = self.living().await?;
        let fleet = Fleet {
            set: &meaning,
            templates: &templates,
            pods: &pods.iter().collect::<Vec<_>>(),
            budgets: &[],
            troubles: &BTreeMap::new(),
            own_writes: &OwnWrites::default(),
            left_alone: &[],
            now: Timestamp::now(),
            is_off: false,
        };
        let (plan, _) = plan(&fleet);
        for action in &plan.actions {
            let update = action.update();
            let patch: Patch<()> = Patch::Json(serde_json::from_value(update.patch())?);
            self.pods().patch(&update.name, &PatchParams::default(), &patch).await?;
        }
        Ok(plan.actions.len())
    }

    /// Waits until all pods are injected and ready.
    async fn until_ready(&self, count: usize) -> Result<()> {
        until("the pods to be injected and ready", PATIENCE, || async {
            let pods = self.living().await.map_err(|error| pillion_testbed::Error::Lacking {
                what: error.to_string(),
                way_out: "mend the test",
            })?;
            let ready = pods.iter().filter(|pod| pod.is_ready).count();
            Ok(if ready == count {
                Look::Done(())
            } else {
                Look::NotYet(format!("{ready} of {} are ready", pods.len()))
            })
        })
        .await?;
        Ok(())
    }
}

/// A cluster with the webhook, the set at its first image, and pods that carry it.
async fn opened(bed: &Bed) -> Result<(Hand, Manager)> {
    let (client, cluster) = (bed.client().await?, bed.cluster());
    Manager::prepare(&client).await?;
    let manager = Manager::ready(cluster, &["webhook"], &[]).await?;
    apply(&client, "e2e", &set(pods::V1)).await?;
    let hand = Hand { client: client.clone() };
    hand.store().await?;
    // The webhook hears of the set in a moment; pods that come before are none of this test.
    let probe = pods::on_fleet(pods::pod("", &[], &[pods::container("app", &[])]));
    until("a pod to be injected", PATIENCE, || async {
        let mut pod = probe.clone();
        pod["metadata"] = json!({"generateName": "probe-", "labels": {"app": "web"}});
        let pod: StoredPod = serde_json::from_value(pod).expect("it is a pod");
        Ok(match hand.pods().create(&PostParams { dry_run: true, ..PostParams::default() }, &pod).await {
            Ok(pod) if pod.labels().contains_key("pillion.dev/injected") => Look::Done(()),
            other => Look::NotYet(format!("{:?}", other.map(|pod| pod.labels().clone()))),
        })
    })
    .await?;
    let template = pods::on_fleet(pods::pod("", &[], &[pods::container("app", &[])]));
    let workload = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web", "namespace": "default"}, "spec": {
        "replicas": PODS, "podManagementPolicy": "Parallel", "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": template["spec"]}}});
    apply(&client, "e2e", &workload).await?;
    hand.until_ready(PODS).await?;
    Ok((hand, manager))
}

#[tokio::test]
async fn a_rollout_is_followed_held_promoted_and_undone() -> Result<()> {
    let bed = Bed::start(Config::control_plane("rollout").with_controllers().with_fleet(Nodes::of(1))).await?;
    let cluster = bed.cluster();
    let (hand, manager) = opened(&bed).await?;
    let (_, first) = hand.set().await?;

    let said = rollout(cluster, &["status", "scs/mesh"])?;
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    assert!(said.has("SidecarSet mesh: done") && said.has("StatefulSet web 4/4"), "{}", said.out);
    let said = rollout(cluster, &["undo", "mesh"])?;
    let expected =
        format!("error: set mesh has no revision before {}: there is nothing to go back to\n", first.revision);
    assert_eq!((said.status, said.err), (1, expected));

    // Another image: one pod would be tried first.
    apply(&hand.client, "e2e", &set(pods::V2)).await?;
    hand.store().await?;
    let said = rollout(cluster, &["status", "mesh", "-o", "json"])?;
    let found = said.json()?;
    assert_eq!((&found["state"], &found["counts"]["waiting"]), (&json!("progressing"), &json!(PODS)), "{found}");
    assert_eq!(found["next"].as_array().map(Vec::len), Some(1), "{found}");
    assert_eq!(found["blocked"][0]["code"], "PL405", "{found}");
    let said = rollout(cluster, &["diff", "scs/mesh"])?;
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    assert!(said.has(&format!("~ initContainers[proxy].image: {} → {}", pods::V1, pods::V2)), "{}", said.out);
    assert!(said.has("in place image of container proxy"), "{}", said.out);
    assert!(said.has(&format!("~ spec.initContainers[proxy].image: {} → {}", pods::V1, pods::V2)), "{}", said.out);

    pauses(cluster, &hand).await?;
    follows(cluster, &hand).await?;
    goes_back(cluster, &hand, &first).await?;
    promotes(cluster, &hand, &first).await?;

    let said = rollout(cluster, &["status", "other"])?;
    assert_eq!((said.status, said.err.as_str()), (2, "error: there is no SidecarSet other\n"));
    manager.stop().await?;
    bed.stop().await?;
    Ok(())
}

/// Paused and resumed: tried, by hand, and for good.
async fn pauses(cluster: &Cluster, hand: &Hand) -> Result<()> {
    let tried = rollout(cluster, &["pause", "mesh", "--dry-run"])?;
    assert_eq!(tried.status, 0, "{}{}", tried.out, tried.err);
    assert_eq!(tried.out, "sidecarset/mesh patched (dry run)\n  + spec.updateStrategy.paused: true\n");
    assert!(tried.err.contains("then: mesh: waiting"), "{}", tried.err);
    assert!(!hand.set().await?.1.update.paused, "a dry run writes nothing");
    let by_hand_first = by_hand(cluster, tried.command()?)?;
    ensure!(by_hand_first.status.success(), "{by_hand_first:?}");
    assert!(hand.set().await?.1.update.paused, "the command that is told does the same");
    // What it tested is not so any more.
    let again = by_hand(cluster, tried.command()?)?;
    assert_eq!(String::from_utf8_lossy(&again.stderr), OUTDATED, "{again:?}");
    let said = rollout(cluster, &["pause", "mesh"])?;
    let expected = "error: set mesh is paused already: `pillion rollout resume scs/mesh` goes on\n";
    assert_eq!((said.status, said.err.as_str()), (1, expected));
    let said = rollout(cluster, &["status", "mesh"])?;
    assert!(said.has("SidecarSet mesh: waiting [PL403]"), "{}", said.out);
    assert_eq!(hand.act().await?, 0);
    let said = rollout(cluster, &["resume", "mesh"])?;
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    assert_eq!(said.out, "sidecarset/mesh patched\n  ~ spec.updateStrategy.paused: true → false\n");
    assert!(said.err.contains("; next: pod default/web-"), "{}", said.err);
    Ok(())
}

/// Followed to its end, by a log and by a person at a terminal.
async fn follows(cluster: &Cluster, hand: &Hand) -> Result<()> {
    let log = command(cluster, &["status", "-w", "mesh"])?.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut terminal = Terminal::start(command(cluster, &["status", "-w", "mesh"])?)?;
    until("all pods to be updated", PATIENCE, || async {
        let looked = async {
            hand.act().await?;
            let pods = hand.living().await?;
            let (_, set) = hand.set().await?;
            let done = pods.iter().filter(|pod| {
                let has = pod.revisions.of("mesh").is_some_and(|it| it.is == set.revision);
                has && pod.is_ready
                    && pod.containers.iter().all(|it| it.status.as_ref().is_some_and(|it| it.restarts == 1))
            });
            anyhow::Ok(done.count())
        };
        Ok(match looked.await {
            Ok(PODS) => Look::Done(()),
            other => Look::NotYet(format!("{other:?}")),
        })
    })
    .await?;
    let said = Said::of(log.wait_with_output()?)?;
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(lines.len() > 2, "{lines:?}");
    assert!(lines[0].starts_with("mesh: progressing, 0 of 4 pods done"), "{lines:?}");
    assert_eq!(lines.last(), Some(&"mesh: done, 4 of 4 pods done, 4 ready, 0 under way"));
    assert!(!said.out.contains('\u{1b}') && !said.err.contains('\u{1b}'), "{said:?}", said = said.out);
    let (status, drawn) = terminal.ended()?;
    assert_eq!(status, 0, "{drawn}");
    assert!(drawn.contains("\u{1b}[J"), "it is drawn in place: {drawn:?}");
    let last = drawn.rsplit("\u{1b}[J").next().unwrap_or_default();
    assert!(last.contains("SidecarSet mesh: done"), "{last}");
    let frames = drawn.split("\u{1b}[J").map(|frame| frame.lines().count()).max();
    assert!(frames <= Some(usize::from(Terminal::ROWS)), "no frame is higher than the terminal: {frames:?}");

    let said = rollout(cluster, &["history", "mesh", "-o", "json"])?;
    let found = said.json()?;
    let pods: Vec<&Value> = found["revisions"].as_array().context("revisions")?.iter().map(|it| &it["pods"]).collect();
    assert_eq!(pods, [&json!(PODS), &json!(0)], "{found}");
    let said = rollout(cluster, &["history", "mesh"])?;
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
async fn goes_back(cluster: &Cluster, hand: &Hand, first: &Meaning) -> Result<()> {
    let said = rollout(cluster, &["undo", "mesh", "--to", "7"])?;
    let expected = "error: set mesh has no revision 7: `pillion rollout history scs/mesh` lists them\n";
    assert_eq!((said.status, said.err.as_str()), (2, expected));
    let tried = rollout(cluster, &["undo", "scs/mesh", "--to", "1", "--dry-run"])?;
    assert_eq!(tried.status, 0, "{}{}", tried.out, tried.err);
    assert_ne!(hand.set().await?.1.revision, first.revision);
    let said = rollout(cluster, &["undo", "scs/mesh"])?;
    let expected =
        format!("sidecarset/mesh patched\n  ~ spec.initContainers[proxy].image: {} → {}\n", pods::V2, pods::V1);
    assert_eq!((said.status, said.out.as_str()), (0, expected.as_str()), "{}", said.err);
    assert_eq!(hand.set().await?.1.revision, first.revision);
    // The command that was told before is about another generation of the set.
    let late = by_hand(cluster, tried.command()?)?;
    assert_eq!(String::from_utf8_lossy(&late.stderr), OUTDATED, "{late:?}");
    hand.store().await?;
    let said = rollout(cluster, &["history", "mesh", "-o", "json"])?;
    let found = said.json()?;
    let numbers: Vec<&Value> =
        found["revisions"].as_array().context("revisions")?.iter().map(|it| &it["number"]).collect();
    assert_eq!(numbers, [&json!(3), &json!(2)], "{found}");
    assert_eq!(found["revisions"][0]["name"], first.revision.as_str());
    Ok(())
}

/// A canary that is let go in steps, and then for good.
async fn promotes(cluster: &Cluster, hand: &Hand, first: &Meaning) -> Result<()> {
    let mut canary = set(pods::V2);
    canary["spec"]["injectStrategy"] = json!({"revision": first.revision});
    canary["spec"]["updateStrategy"]["partition"] = json!("75%");
    apply(&hand.client, "e2e", &canary).await?;
    hand.store().await?;
    let said = rollout(cluster, &["status", "mesh"])?;
    assert!(said.has("partition 75% of 4 -> 3 stay"), "{}", said.out);
    let said = rollout(cluster, &["promote", "mesh", "--to", "90%"])?;
    assert_eq!(said.status, 1, "{}{}", said.out, said.err);
    let said = rollout(cluster, &["promote", "mesh", "--to", "50%"])?;
    assert_eq!(
        (said.status, said.out.as_str()),
        (0, "sidecarset/mesh patched\n  ~ spec.updateStrategy.partition: 75% → 50%\n")
    );
    let said = rollout(cluster, &["promote", "mesh"])?;
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    let (_, meaning) = hand.set().await?;
    assert_eq!((meaning.update.partition, &meaning.injection.pin), (pillion_api::PodCount::Pods(0), &None));
    let said = rollout(cluster, &["promote", "mesh"])?;
    assert_eq!(said.status, 1, "{}{}", said.out, said.err);
    assert!(said.err.starts_with("error: set mesh holds no pod back"), "{}", said.err);
    Ok(())
}
