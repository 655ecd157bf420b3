//! The phase table: how a pod ends by how its containers do, for both restart policies and both modes, on a real node and
//! in a namespace that takes only restricted pods.

use anyhow::{Context, Result, bail, ensure};
use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams};
use pillion_e2e::finishing::{Finishing, Mode, container, how, phase, seconds_between};
use pillion_e2e::pods;
use pillion_testbed::{Bed, Config};
use serde_json::{Value, json};

const QUICK: &[&str] = &["--exit-after=1s"];
const SLOW: &[&str] = &["--exit-after=4s"];

/// One corner of the table.
struct Corner {
    finishing: Finishing,
    mode: Mode,
    policy: &'static str,
}

impl Corner {
    fn pod(&self, name: &str, main: &[&str], side: &[&str]) -> Value {
        self.finishing.pod(name, self.policy, &[container("app", main)], &[container("side", side)])
    }

    fn is_wrap(&self) -> bool {
        self.mode == Mode::Wrap
    }

    fn retries(&self) -> bool {
        self.policy == "OnFailure"
    }

    async fn mains_all_end_well(&self) -> Result<()> {
        let mains = [container("app", QUICK), container("second", &["--exit-after=2s"])];
        let pod = self.finishing.pod("well", self.policy, &mains, &[container("side", &[])]);
        let pod = self.finishing.ended(pod).await?;
        ensure!(phase(&pod) == "Succeeded", "{}", phase(&pod));
        ensure!(how(&pod, "app")? == (0, "Completed", 0) && how(&pod, "second")? == (0, "Completed", 0), "the mains");
        ensure!(how(&pod, "side")? == (0, "Completed", 0), "the sidecar: {:?}", how(&pod, "side")?);
        // Not before the last of them, and soon after it.
        ensure!((0..=2).contains(&seconds_between(&pod, "second", "side")?), "{}", json!(pod.status));
        let signals: Vec<String> = self.finishing.lines("well", "side")?.into_iter().map(|(_, line)| line).collect();
        ensure!(signals.iter().any(|line| line == "signal TERM"), "{signals:?}");
        Ok(())
    }

    async fn a_main_fails(&self) -> Result<()> {
        let failing = self.pod("fails", &["--exit-after=1s", "--exit-code=3"], &[]);
        if self.retries() {
            // It is tried again and again, and the sidecar is there for it.
            self.finishing.create(&failing).await?;
            let tried = |pod: &Pod| pods::status(pod, "app").is_some_and(|status| status.restart_count >= 1);
            let pod = self.finishing.scene.pod_until("fails", "to try again", tried).await?;
            ensure!(pods::runs(&pod, "side") && phase(&pod) == "Running", "{}", json!(pod.status));
            return Ok(());
        }
        let pod = self.finishing.ended(failing).await?;
        ensure!(phase(&pod) == "Failed", "{}", phase(&pod));
        ensure!(how(&pod, "app")? == (3, "Error", 0), "{:?}", how(&pod, "app")?);
        ensure!(how(&pod, "side")? == (0, "Completed", 0), "{:?}", how(&pod, "side")?);
        Ok(())
    }

    async fn a_sidecar_fails_before_the_mains_end(&self) -> Result<()> {
        let pod = self.pod("early", SLOW, &["--exit-after=1s", "--exit-code=5"]);
        let pod = self.finishing.ended(pod).await?;
        if self.is_wrap() && !self.retries() {
            ensure!(phase(&pod) == "Failed", "the proposal's row: {}", phase(&pod));
            ensure!(how(&pod, "side")? == (5, "Error", 0), "{:?}", how(&pod, "side")?);
        } else {
            ensure!(phase(&pod) == "Succeeded", "{}", phase(&pod));
            // It may be waiting for its next start when the mains end.
            let restarts = pods::status(&pod, "side").map_or(0, |status| status.restart_count);
            ensure!(restarts >= 1, "it is started again");
        }
        ensure!(how(&pod, "app")? == (0, "Completed", 0), "{:?}", how(&pod, "app")?);
        Ok(())
    }

    async fn a_sidecar_that_ignores_term_is_killed_after_the_grace_period(&self) -> Result<()> {
        let pod = self.finishing.ended(self.pod("stubborn", QUICK, &["--ignore-term"])).await?;
        ensure!(phase(&pod) == "Succeeded", "{}", phase(&pod));
        let expected = if self.is_wrap() { (0, "Completed", 0) } else { (137, "Error", 0) };
        ensure!(how(&pod, "side")? == expected, "{:?}", how(&pod, "side")?);
        let waited = seconds_between(&pod, "app", "side")?;
        ensure!((2..=6).contains(&waited), "the grace period is 3 s, and it took {waited}");
        Ok(())
    }

    async fn a_sidecar_that_exits_143(&self) -> Result<()> {
        let pod = self.finishing.ended(self.pod("code-143", QUICK, &["--term-code=143"])).await?;
        ensure!(phase(&pod) == "Succeeded", "{}", phase(&pod));
        let expected = if self.is_wrap() { (0, "Completed", 0) } else { (143, "Error", 0) };
        ensure!(how(&pod, "side")? == expected, "{:?}", how(&pod, "side")?);
        Ok(())
    }

    async fn two_sidecars(&self) -> Result<()> {
        let sidecars = [container("side", &[]), container("other", &["--term-delay=1s"])];
        let pod = self.finishing.pod("two", self.policy, &[container("app", QUICK)], &sidecars);
        let pod = self.finishing.ended(pod).await?;
        ensure!(phase(&pod) == "Succeeded", "{}", phase(&pod));
        for sidecar in ["side", "other"] {
            ensure!(how(&pod, sidecar)? == (0, "Completed", 0), "{sidecar}: {:?}", how(&pod, sidecar)?);
        }
        // Native sidecars end in the reverse of their order, one after the other; wrapped ones together.
        let apart = seconds_between(&pod, "other", "side")?;
        ensure!(if self.is_wrap() { apart <= 0 } else { apart >= 0 }, "{apart} s apart");
        Ok(())
    }

    async fn a_sidecar_that_ends_first_with_0(&self) -> Result<()> {
        let pod = self.finishing.ended(self.pod("first", SLOW, QUICK)).await?;
        ensure!(phase(&pod) == "Succeeded", "{}", phase(&pod));
        let (code, reason, restarts) = how(&pod, "side")?;
        ensure!((code, reason) == (0, "Completed"), "{code} {reason}");
        ensure!(if self.is_wrap() { restarts == 0 } else { restarts >= 1 }, "{restarts} restarts");
        Ok(())
    }

    async fn a_main_that_fails_twice_keeps_its_sidecar(&self) -> Result<()> {
        let mut main = container(
            "app",
            &["--exit-after=500ms", "--exit-code=3", "--count-starts=/counted/starts", "--succeed-on=3"],
        );
        main["volumeMounts"] = json!([{"name": "counted", "mountPath": "/counted"}]);
        let mut pod = self.finishing.pod("twice", self.policy, &[main], &[container("side", &[])]);
        pod["spec"]["volumes"] = json!([{"name": "counted", "emptyDir": {}}]);
        let pod = self.finishing.ended(pod).await?;
        if self.retries() {
            ensure!(phase(&pod) == "Succeeded", "{}", phase(&pod));
            ensure!(how(&pod, "app")? == (0, "Completed", 2), "{:?}", how(&pod, "app")?);
            ensure!(how(&pod, "side")? == (0, "Completed", 0), "one sidecar for all three: {:?}", how(&pod, "side")?);
            ensure!(seconds_between(&pod, "app", "side")? >= 0, "{}", json!(pod.status));
        } else {
            ensure!(phase(&pod) == "Failed" && how(&pod, "app")? == (3, "Error", 0), "{}", json!(pod.status));
        }
        Ok(())
    }

    async fn a_main_that_is_killed_for_its_memory(&self) -> Result<()> {
        let mut main = container("app", &["--hold=200Mi"]);
        main["resources"] = json!({"limits": {"memory": "48Mi"}});
        let pod = self.finishing.pod("hungry", self.policy, &[main], &[container("side", &[])]);
        if self.retries() {
            self.finishing.create(&pod).await?;
            let tried = |pod: &Pod| pods::status(pod, "app").is_some_and(|status| status.restart_count >= 1);
            let pod = self.finishing.scene.pod_until("hungry", "to be tried again", tried).await?;
            ensure!(pods::runs(&pod, "side"), "{}", json!(pod.status));
            return Ok(());
        }
        let pod = self.finishing.ended(pod).await?;
        ensure!(phase(&pod) == "Failed", "{}", phase(&pod));
        ensure!(how(&pod, "app")? == (137, "OOMKilled", 0), "{:?}", how(&pod, "app")?);
        ensure!(how(&pod, "side")? == (0, "Completed", 0), "{:?}", how(&pod, "side")?);
        Ok(())
    }

    async fn a_pod_that_is_deleted_while_it_runs(&self) -> Result<()> {
        let mut pod = self.pod("deleted", &[], &[]);
        // So that its last status can be read.
        pod["metadata"]["finalizers"] = json!(["pillion.dev/e2e"]);
        self.finishing.create(&pod).await?;
        let scene = &self.finishing.scene;
        scene.pod_until("deleted", "to run", |pod| pods::runs(pod, "app") && pods::runs(pod, "side")).await?;
        let api = scene.api::<Pod>();
        api.delete("deleted", &DeleteParams::default()).await?;
        let both = |pod: &Pod| how(pod, "app").is_ok() && how(pod, "side").is_ok();
        let pod = scene.pod_until("deleted", "to have ended", both).await?;
        ensure!(how(&pod, "app")? == (0, "Completed", 0), "{:?}", how(&pod, "app")?);
        ensure!(how(&pod, "side")? == (0, "Completed", 0), "{:?}", how(&pod, "side")?);
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        api.patch("deleted", &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Where all containers see each other's processes, nobody is process 1 by itself.
    async fn a_pod_that_shares_its_processes(&self) -> Result<()> {
        let mut pod = self.pod("shared", QUICK, &[]);
        pod["spec"]["shareProcessNamespace"] = json!(true);
        let pod = self.finishing.ended(pod).await?;
        ensure!(phase(&pod) == "Succeeded", "{}", phase(&pod));
        ensure!(how(&pod, "side")? == (0, "Completed", 0), "{:?}", how(&pod, "side")?);
        Ok(())
    }

    async fn all(&self) -> Result<()> {
        let cases: Vec<(&str, BoxFuture<'_, Result<()>>)> = vec![
            ("mains all end well", self.mains_all_end_well().boxed()),
            ("a main fails", self.a_main_fails().boxed()),
            ("a sidecar fails before the mains end", self.a_sidecar_fails_before_the_mains_end().boxed()),
            ("a sidecar ignores TERM", self.a_sidecar_that_ignores_term_is_killed_after_the_grace_period().boxed()),
            ("a sidecar exits 143", self.a_sidecar_that_exits_143().boxed()),
            ("two sidecars", self.two_sidecars().boxed()),
            ("a sidecar ends first with 0", self.a_sidecar_that_ends_first_with_0().boxed()),
            ("a main fails twice", self.a_main_that_fails_twice_keeps_its_sidecar().boxed()),
            ("a main is killed for its memory", self.a_main_that_is_killed_for_its_memory().boxed()),
            ("a pod is deleted while it runs", self.a_pod_that_is_deleted_while_it_runs().boxed()),
            ("a pod shares its processes", self.a_pod_that_shares_its_processes().boxed()),
        ];
        let outcomes = join_all(cases.into_iter().map(|(name, case)| async move { (name, case.await) })).await;
        let failed: Vec<String> =
            outcomes.into_iter().filter_map(|(name, outcome)| Some(format!("{name}: {:#}", outcome.err()?))).collect();
        if !failed.is_empty() {
            bail!("{:?}, {}:\n{}", self.mode, self.policy, failed.join("\n"));
        }
        Ok(())
    }
}

async fn corner(mode: Mode, policy: &'static str) -> Result<()> {
    let bed = Bed::start(Config::control_plane("phases").with_node()).await?;
    let corner = Corner { finishing: Finishing::start(&bed, mode).await?, mode, policy };
    corner.all().await.context("the phase table")?;
    corner.finishing.scene.close().await?;
    Ok(())
}

/// In ci: `finish_jobs_own_bed`, with fewer cases of the phase table.
#[tokio::test]
async fn nightly_native_sidecars_with_restart_policy_never() -> Result<()> {
    corner(Mode::Native, "Never").await
}

/// In ci: `finish_jobs_own_bed`, with fewer cases of the phase table.
#[tokio::test]
async fn nightly_native_sidecars_with_restart_policy_on_failure() -> Result<()> {
    corner(Mode::Native, "OnFailure").await
}

/// In ci: `finish_jobs_own_bed`, with fewer cases of the phase table.
#[tokio::test]
async fn nightly_wrapped_sidecars_with_restart_policy_never() -> Result<()> {
    corner(Mode::Wrap, "Never").await
}

/// In ci: `finish_jobs_own_bed`, with fewer cases of the phase table.
#[tokio::test]
async fn nightly_wrapped_sidecars_with_restart_policy_on_failure() -> Result<()> {
    corner(Mode::Wrap, "OnFailure").await
}
