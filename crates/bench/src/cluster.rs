//! The cluster of a measurement: a control plane, the manager, and the webhooks it is compared with.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, Client};
use pillion_api::SidecarSet;
use pillion_runtime::tls::Authority;
use pillion_testbed::{Bed, Config, Look, apply, until};
use serde_json::{Value, json};

/// The namespace of the manager, which it does not intercept: the other arms live here.
pub(crate) const APART: &str = "pillion-system";
/// Label of pods that says which arm they are of.
pub(crate) const ARM: &str = "arm";

/// A running cluster; all of it ends when dropped.
pub(crate) struct BenchCluster {
    pub(crate) client: Client,
    pub(crate) bed: Bed,
    folder: PathBuf,
    children: Vec<Ended>,
}

/// A process that is killed when dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port(host: Ipv4Addr) -> Result<SocketAddr> {
    Ok(TcpListener::bind((host, 0))?.local_addr()?)
}

fn beside(name: &str) -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    anyhow::ensure!(path.is_file(), "{} is not built: run `just bench webhook`", path.display());
    Ok(path)
}

impl BenchCluster {
    pub(crate) async fn start() -> Result<Self> {
        Self::start_with(|config| config).await
    }

    /// With more than a control plane.
    pub(crate) async fn start_with(more: impl FnOnce(Config) -> Config) -> Result<Self> {
        let bed = Bed::start(more(Config::control_plane("bench").with_controllers())).await?;
        let client = bed.client().await?;
        let folder = bed.cluster().logs().to_path_buf();
        for object in [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": APART}}),
            pillion_api::sidecar_set_crd(),
            pillion_api::injection_ledger_crd(),
        ] {
            apply(&client, "bench", &object).await?;
        }
        let sets = Api::<DynamicObject>::all_with(client.clone(), &ApiResource::erase::<SidecarSet>(&()));
        until("SidecarSets to be served", Duration::from_secs(30), || async {
            Ok(sets.list(&ListParams::default()).await.map_or_else(|error| Look::NotYet(error.to_string()), Look::Done))
        })
        .await?;
        Ok(Self { client, bed, folder, children: Vec::new() })
    }

    fn spawn(&mut self, program: &Path, name: &str, arguments: &[String]) -> Result<u32> {
        let log = File::create(self.folder.join(format!("{name}.log")))?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let pid = child.id();
        self.children.push(Ended(child));
        Ok(pid)
    }

    /// Ends what was started last.
    pub(crate) fn end_last(&mut self) {
        self.children.pop();
    }

    /// Starts the manager's webhook.
    pub(crate) fn start_manager(&mut self) -> Result<u32> {
        self.start_manager_with(&[])
    }

    /// The same with more roles and flags.
    pub(crate) fn start_manager_with(&mut self, more: &[&str]) -> Result<u32> {
        let webhook = free_port(self.bed.cluster().host())?;
        let admin = free_port(Ipv4Addr::LOCALHOST)?;
        let mut arguments = vec![
            "webhook".to_owned(),
            format!("--namespace={APART}"),
            format!("--webhook-address={webhook}"),
            format!("--webhook-url=https://{webhook}"),
            format!("--admin-address={admin}"),
            format!("--kubeconfig={}", self.bed.cluster().kubeconfig().display()),
        ];
        arguments.extend(more.iter().map(|word| (*word).to_owned()));
        self.spawn(&beside("pillion-manager")?, "manager", &arguments)
    }

    /// Starts the manager's role that recommends, and says where it tells of itself.
    pub(crate) fn start_rightsizer(&mut self, more: &[String]) -> Result<(u32, SocketAddr)> {
        let kubeconfig = self.bed.cluster().kubeconfig().display().to_string();
        self.start_program(&beside("pillion-manager")?, "rightsizer", |address| {
            let mut arguments = vec![
                "rightsizer".to_owned(),
                format!("--namespace={APART}"),
                format!("--admin-address={address}"),
                format!("--kubeconfig={kubeconfig}"),
            ];
            arguments.extend_from_slice(more);
            arguments
        })
    }

    /// Starts a program that tells of itself at an address, with arguments made for it.
    pub(crate) fn start_program(
        &mut self,
        program: &Path,
        name: &str,
        arguments: impl FnOnce(SocketAddr) -> Vec<String>,
    ) -> Result<(u32, SocketAddr)> {
        let address = free_port(Ipv4Addr::LOCALHOST)?;
        Ok((self.spawn(program, name, &arguments(address))?, address))
    }

    /// Starts a webhook that decides nothing, for the pods of an arm.
    pub(crate) async fn start_hook(&mut self, arm: &str, patch: Option<&Value>) -> Result<u32> {
        let address = free_port(self.bed.cluster().host())?;
        let authority = Authority::generate(arm, Timestamp::now(), Duration::from_hours(24))?;
        let pem = self.folder.join(format!("{arm}.pem"));
        fs::write(&pem, format!("{}{}", authority.certificate_pem(), authority.key_pem()))?;
        let mut arguments =
            vec!["hook".to_owned(), format!("--address={address}"), format!("--authority={}", pem.display())];
        if let Some(patch) = patch {
            let path = self.folder.join(format!("{arm}.json"));
            fs::write(&path, patch.to_string())?;
            arguments.push(format!("--patch={}", path.display()));
        }
        let pid = self.spawn(&std::env::current_exe()?, arm, &arguments)?;
        let bundle = ByteString(authority.certificate_pem().as_bytes().to_vec());
        let registration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": format!("bench-{arm}")},
            "webhooks": [{
                "name": format!("{arm}.bench.pillion.dev"),
                "clientConfig": {"url": format!("https://{address}/"), "caBundle": bundle},
                "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail", "timeoutSeconds": 3,
                "reinvocationPolicy": "Never",
                "objectSelector": {"matchLabels": {ARM: arm}},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": APART}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            }],
        });
        apply(&self.client, "bench", &registration).await?;
        Ok(pid)
    }

    pub(crate) async fn stop(self) -> Result<()> {
        drop(self.children);
        self.bed.stop().await?;
        Ok(())
    }
}
