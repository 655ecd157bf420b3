//! The manager as a process on the bed's host side: the real program, reached by the API server under a URL.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::Client;
use pillion_testbed::{Cluster, Look, apply, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::programs;

/// How long the manager may take to come up or to end.
const PATIENCE: Duration = Duration::from_secs(40);

/// The namespace the manager believes to live in.
pub const NAMESPACE: &str = "pillion-system";

/// A running manager; it is killed when dropped.
pub struct Manager {
    child: Child,
    admin: SocketAddr,
    webhook: SocketAddr,
    log: PathBuf,
}

impl Manager {
    /// Gives the cluster what a chart would: our kind of object, and the manager's namespace.
    pub async fn prepare(client: &Client) -> Result<()> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        apply(client, "e2e", &namespace).await?;
        for crd in [pillion_api::sidecar_set_crd(), pillion_api::injection_ledger_crd(), pillion_api::hot_update_crd()]
        {
            apply(client, "e2e", &crd).await?;
        }
        let paths = ["/apis/apps.kruise.io/v1alpha1/sidecarsets", "/apis/pillion.dev/v1alpha1/injectionledgers"];
        Self::until_served(client, &paths).await
    }

    /// Waits until the API server answers these paths.
    pub async fn until_served(client: &Client, paths: &[&str]) -> Result<()> {
        for path in paths {
            until(&format!("{path} to be served"), PATIENCE, || async {
                let request = http::Request::get(*path).body(Vec::new());
                let answer = client.request_text(request.map_err(|error| pillion_testbed::Error::Lacking {
                    what: error.to_string(),
                    way_out: "mend the test",
                })?);
                Ok(match answer.await {
                    Ok(_) => Look::Done(()),
                    Err(error) => Look::NotYet(error.to_string()),
                })
            })
            .await?;
        }
        Ok(())
    }

    /// Starts one with these roles and flags, on ports of its own.
    pub async fn start(cluster: &Cluster, roles: &[&str], flags: &[&str]) -> Result<Self> {
        let webhook = free_port(cluster.host()).await?;
        Self::start_at(cluster, webhook, roles, flags).await
    }

    /// Starts one that answers reviews on this address.
    pub async fn start_at(cluster: &Cluster, webhook: SocketAddr, roles: &[&str], flags: &[&str]) -> Result<Self> {
        Self::start_behind(cluster, webhook, webhook, roles, flags).await
    }

    /// Starts a build of another version on this address, and waits until it is ready.
    pub async fn next_version(cluster: &Cluster, webhook: SocketAddr, roles: &[&str], flags: &[&str]) -> Result<Self> {
        let manager = Self::spawn(cluster, "next_version", webhook, webhook, roles, flags).await?;
        manager.until_ready().await?;
        Ok(manager)
    }

    /// Starts one that answers reviews on the first address, and is called by way of the second.
    pub async fn start_behind(
        cluster: &Cluster,
        webhook: SocketAddr,
        reached_at: SocketAddr,
        roles: &[&str],
        flags: &[&str],
    ) -> Result<Self> {
        Self::spawn(cluster, "pillion-manager", webhook, reached_at, roles, flags).await
    }

    /// Starts one with the rights of a kubeconfig.
    pub async fn start_as(cluster: &Cluster, kubeconfig: &Path, roles: &[&str], flags: &[&str]) -> Result<Self> {
        let webhook = free_port(cluster.host()).await?;
        Self::spawn_as(cluster, kubeconfig, "pillion-manager", [webhook; 2], roles, flags).await
    }

    async fn spawn(
        cluster: &Cluster,
        program: &str,
        webhook: SocketAddr,
        reached_at: SocketAddr,
        roles: &[&str],
        flags: &[&str],
    ) -> Result<Self> {
        Self::spawn_as(cluster, cluster.kubeconfig(), program, [webhook, reached_at], roles, flags).await
    }

    async fn spawn_as(
        cluster: &Cluster,
        kubeconfig: &Path,
        program: &str,
        [webhook, reached_at]: [SocketAddr; 2],
        roles: &[&str],
        flags: &[&str],
    ) -> Result<Self> {
        let admin = free_port(Ipv4Addr::LOCALHOST).await?;
        let log = cluster.logs().join(format!("manager-{}.log", admin.port()));
        let output = File::create(&log)?;
        let child = Command::new(programs::path(program)?)
            .args(roles)
            .args(["--namespace", NAMESPACE, "--name", &format!("replica-{}", admin.port())])
            .args(["--webhook-address", &webhook.to_string(), "--webhook-url", &format!("https://{reached_at}")])
            .args(["--admin-address", &admin.to_string()])
            .arg("--kubeconfig")
            .arg(kubeconfig)
            // Who ends in a test has no callers left, unless the test says so.
            .args(["--drain", "0s"])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot start {program}"))?;
        Ok(Self { child, admin, webhook, log })
    }

    /// Starts one and waits until it is ready.
    pub async fn ready(cluster: &Cluster, roles: &[&str], flags: &[&str]) -> Result<Self> {
        let manager = Self::start(cluster, roles, flags).await?;
        manager.until_ready().await?;
        Ok(manager)
    }

    /// Waits until it says that it is ready.
    pub async fn until_ready(&self) -> Result<()> {
        let waited = until("the manager to be ready", PATIENCE, || async {
            Ok(match self.get("/readyz").await {
                Ok((200, _)) => Look::Done(()),
                Ok((status, report)) => Look::NotYet(format!("{status}: {report}")),
                Err(error) => Look::NotYet(error.to_string()),
            })
        });
        waited.await.with_context(|| self.last_words())
    }

    /// Status and body of a page of its admin server.
    pub async fn get(&self, path: &str) -> Result<(u16, String)> {
        let mut stream = TcpStream::connect(self.admin).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: manager\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let (head, body) = answer.split_once("\r\n\r\n").context("no end of the head")?;
        let status = head.split(' ').nth(1).context("no status")?.parse()?;
        Ok((status, body.to_owned()))
    }

    /// The sum of all metrics whose line starts with these words.
    pub async fn metric(&self, start: &str) -> Result<f64> {
        let (_, metrics) = self.get("/metrics").await?;
        let lines = metrics.lines().filter(|line| line.starts_with(start));
        let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        Ok(values.sum())
    }

    /// Where it answers reviews.
    pub fn webhook(&self) -> SocketAddr {
        self.webhook
    }

    /// Its process.
    pub fn pid(&self) -> Result<Pid> {
        Pid::from_raw(i32::try_from(self.child.id())?).context("a process has a number")
    }

    /// Ends it without a warning.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks it to end, and waits until it has.
    pub async fn stop(mut self) -> Result<ExitStatus> {
        kill_process(self.pid()?, Signal::TERM)?;
        let began = std::time::Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            ensure!(began.elapsed() < PATIENCE, "the manager does not end: {}", self.last_words());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// What it logged so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn last_words(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

impl Drop for Manager {
    #[expect(clippy::print_stderr, reason = "what a failing test saw")]
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if std::thread::panicking() {
            eprintln!("--- last words of the manager\n{}", self.last_words());
        }
    }
}

/// A port that was free a moment ago.
pub async fn free_port(host: Ipv4Addr) -> Result<SocketAddr> {
    Ok(TcpListener::bind((host, 0)).await?.local_addr()?)
}
