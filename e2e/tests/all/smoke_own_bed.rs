//! Beds come up fast, are isolated from each other, and leave nothing behind, however they end.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams, ObjectMeta, PostParams};
use pillion_testbed::{Bed, Config, Error, Fleet, Look, Signal, bed_program, until};

use crate::traces;

/// What a person may be asked to wait for a control plane.
const QUICK: Duration = Duration::from_secs(15);

fn whole(name: &str) -> Config {
    Config::control_plane(name).with_node().with_fleet(Fleet::of(2)).with_metrics()
}

fn namespace(name: &str) -> Namespace {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    Namespace { metadata, ..Namespace::default() }
}

/// Waits until nothing is on the machine that was not there before; a keeper works on after its starter was killed.
async fn nothing_but(before: &BTreeSet<String>) -> Result<(), Error> {
    until("the traces of the bed to be gone", Duration::from_secs(30), || async {
        let now = traces::now();
        let left: Vec<&String> = now.difference(before).collect();
        Ok(if left.is_empty() { Look::Done(()) } else { Look::NotYet(format!("there is {left:?}")) })
    })
    .await
}

/// Waits until a killed process has let go of its files, locks among them: it is gone, or waits to be collected.
async fn has_ended(process: rustix::process::Pid) -> Result<(), Error> {
    let stat = format!("/proc/{}/stat", process.as_raw_nonzero());
    until("the killed process to end", Duration::from_secs(30), || async {
        let state = std::fs::read_to_string(&stat).unwrap_or_default();
        let after_name = state.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let ended = after_name.is_empty() || after_name.starts_with('Z');
        Ok(if ended { Look::Done(()) } else { Look::NotYet(format!("it is {after_name}")) })
    })
    .await
}

/// In ci: `ci_a_killed_starter_leaves_nothing` compares everything on the machine before and after one bed.
#[tokio::test]
async fn nightly_twenty_beds_in_a_row_are_quick_and_leave_nothing() -> Result<()> {
    let before = traces::now();
    for round in 0..20 {
        let began = Instant::now();
        let bed = if round % 10 == 9 {
            Bed::start(whole("row")).await?
        } else {
            let bed = Bed::start(Config::control_plane("row")).await?;
            let took = began.elapsed();
            assert!(took < QUICK, "control plane {round} took {took:?}");
            bed
        };
        let during = traces::now();
        for trace in ["process", "namespace", "interface", "folder"] {
            let more = during.difference(&before).filter(|line| line.starts_with(trace)).count();
            assert!(more > 0, "a running bed shows no {trace}: the comparison proves nothing");
        }
        bed.stop().await?;
        // At once: an orderly stop returns when everything is gone.
        let after = traces::now();
        assert_eq!(after.difference(&before).collect::<Vec<_>>(), Vec::<&String>::new(), "round {round}");
    }
    Ok(())
}

/// In ci: Every e2e run starts several beds at a time.
#[tokio::test]
async fn nightly_two_beds_at_once_know_nothing_of_each_other() -> Result<()> {
    let (first, second) =
        tokio::try_join!(Bed::start(Config::control_plane("one")), Bed::start(Config::control_plane("two")))?;
    assert_ne!(first.cluster().host(), second.cluster().host());
    let namespaces = |client| Api::<Namespace>::all(client);
    let mine = namespace("mine");
    namespaces(first.client().await?).create(&PostParams::default(), &mine).await?;
    assert!(namespaces(first.client().await?).get_opt("mine").await?.is_some());
    assert!(namespaces(second.client().await?).get_opt("mine").await?.is_none());
    first.stop().await?;
    // The end of one is not felt by the other.
    namespaces(second.client().await?).list(&ListParams::default()).await?;
    second.stop().await?;
    Ok(())
}

#[tokio::test]
async fn ci_a_killed_starter_leaves_nothing() -> Result<()> {
    let before = traces::now();
    let mut starter = Starter::up(&["--node", "--fleet", "2", "--metrics"])?;
    assert!(traces::now().difference(&before).any(|trace| trace.starts_with("cgroup")), "no real node came up");
    starter.process.kill()?;
    starter.process.wait()?;
    nothing_but(&before).await?;
    Ok(())
}

/// In ci: `ci_a_killed_starter_leaves_nothing`.
#[tokio::test]
async fn nightly_what_a_killed_keeper_left_is_swept_by_the_next_bed() -> Result<()> {
    let before = traces::now();
    // In two slots: the next bed takes one of them, and sweeps the other too.
    let starters = [Starter::up(&[])?, Starter::up(&["--node"])?];
    for mut starter in starters {
        let keeper = starter.keeper()?;
        rustix::process::kill_process(keeper, rustix::process::Signal::KILL)?;
        starter.process.kill()?;
        starter.process.wait()?;
        has_ended(keeper).await?;
    }
    assert!(traces::now().difference(&before).any(|trace| trace.starts_with("namespace")), "there is nothing to sweep");

    Bed::start(Config::control_plane("sweeper")).await?.stop().await?;
    nothing_but(&before).await?;
    Ok(())
}

#[tokio::test]
async fn ci_a_killed_api_server_comes_back_with_what_it_had() -> Result<()> {
    let mut bed = Bed::start(Config::control_plane("killed").durable()).await?;
    let namespaces = Api::<Namespace>::all(bed.client().await?);
    let kept = namespace("kept");
    let created = namespaces.create(&PostParams::default(), &kept).await?;
    for part in ["kube-apiserver", "etcd"] {
        bed.signal(part, Signal::Kill).await?;
        bed.start_again(part).await?;
        assert_eq!(namespaces.get("kept").await?.metadata.uid, created.metadata.uid, "after {part} was killed");
    }
    bed.stop().await?;
    Ok(())
}

/// In ci: `ci_a_killed_api_server_comes_back_with_what_it_had` signals a part of a bed.
#[tokio::test]
async fn nightly_a_frozen_etcd_stalls_the_api_server_until_it_thaws() -> Result<()> {
    let mut bed = Bed::start(Config::control_plane("frozen")).await?;
    let namespaces = Api::<Namespace>::all(bed.client().await?);
    bed.signal("etcd", Signal::Freeze).await?;
    let stalled = tokio::time::timeout(Duration::from_secs(2), namespaces.get("default")).await;
    assert!(stalled.is_err(), "a consistent read needs etcd: {stalled:?}");
    bed.signal("etcd", Signal::Thaw).await?;
    assert_eq!(namespaces.get("default").await?.metadata.name.as_deref(), Some("default"));
    bed.stop().await?;
    Ok(())
}

/// In ci: Used by `runtime_watch_own_bed`.
#[tokio::test]
async fn nightly_a_second_api_server_serves_the_same_objects() -> Result<()> {
    let bed = Bed::start(Config::control_plane("pair").with_second_api_server()).await?;
    let shared = namespace("shared");
    let created = Api::<Namespace>::all(bed.client().await?).create(&PostParams::default(), &shared).await?;
    let read = Api::<Namespace>::all(bed.second_client().await?).get("shared").await?;
    assert_eq!(read.metadata.uid, created.metadata.uid);
    bed.stop().await?;
    Ok(())
}

#[tokio::test]
async fn ci_a_part_that_ends_by_itself_is_told_with_its_log() -> Result<()> {
    let mut bed = Bed::start(Config::control_plane("told")).await?;
    bed.signal("kube-apiserver", Signal::Kill).await?;
    let certificate = bed.cluster().kubeconfig().with_file_name("pki").join("kube-apiserver.crt");
    std::fs::remove_file(&certificate)?;
    let error = bed.start_again("kube-apiserver").await.expect_err("it has no certificate").to_string();
    assert!(error.starts_with("kube-apiserver ended by itself (exit status: 1); the last lines of "), "{error}");
    assert!(error.contains(&format!("open {}: no such file", certificate.display())), "{error}");
    bed.stop().await?;
    Ok(())
}

#[tokio::test]
async fn ci_a_person_gets_a_bed_with_one_command_and_rid_of_it_with_another() -> Result<()> {
    let before = traces::now();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("person");
    let bed = |arguments: &[&str]| -> Result<(bool, String)> {
        let mut command = Command::new(bed_program()?);
        let output = command.args(arguments).env("PILLION_BED_STATE", &folder).output()?;
        let said = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
    };
    let refused = bed(&["status"])?;
    assert_eq!(refused, (false, "bed: no bed is up: start one with \"just bed up --node\"\n".to_owned()));

    let (came_up, said) = bed(&["up", "--node", "--fleet", "100", "--metrics"])?;
    assert!(came_up, "{said}");
    let (_, nodes) = bed(&["kubectl", "get", "nodes", "--no-headers"])?;
    let ready = nodes.lines().filter(|line| line.split_whitespace().nth(1) == Some("Ready")).count();
    assert_eq!((nodes.lines().count(), ready), (101, 101));
    let (_, status) = bed(&["status"])?;
    assert!(status.contains("nodes       101 of 101 ready"), "{status}");
    assert!(!bed(&["up"])?.0, "a second bed of the same person");

    let (went_down, said) = bed(&["down"])?;
    assert!(went_down && said.contains("nothing is left"), "{said}");
    let after = traces::now();
    assert_eq!(after.difference(&before).collect::<Vec<_>>(), Vec::<&String>::new());
    Ok(())
}

/// A process that has started a bed and waits.
struct Starter {
    process: Child,
}

impl Starter {
    fn up(content: &[&str]) -> Result<Self> {
        let mut process = Command::new(bed_program()?)
            .arg("run")
            .args(content)
            // Waits for its input, which ends with this test at the latest.
            .args(["--", "sh", "-c", "echo up; read line"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().context("stdout")?).read_line(&mut line)?;
        ensure!(line == "up\n", "the bed did not come up");
        Ok(Self { process })
    }

    fn keeper(&self) -> Result<rustix::process::Pid> {
        let children = format!("/proc/{0}/task", self.process.id());
        for thread in std::fs::read_dir(children)? {
            for child in std::fs::read_to_string(thread?.path().join("children"))?.split_whitespace() {
                let command = std::fs::read_to_string(format!("/proc/{child}/cmdline"))?;
                if command.split('\0').nth(1) == Some("keeper") {
                    return rustix::process::Pid::from_raw(child.parse()?).context("a pid is not 0");
                }
            }
        }
        anyhow::bail!("the starter has no keeper")
    }
}
