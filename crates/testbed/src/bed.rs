//! A running bed: started part by part, each waited for; single parts can be killed and started again.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::api::{Api, ListParams, PostParams};
use pillion_tools::Cache;
use serde_json::json;

use crate::cgroup;
use crate::cluster::{self, Cluster, is_ready};
use crate::command;
use crate::config::{Config, Fleet};
use crate::error::Error;
use crate::keeper::{Keeper, Part, Signal};
use crate::logs::{self, Logs};
use crate::network;
use crate::parts::{api_server, controllers, etcd, fleet, metrics_server, node};
use crate::pki::Pki;
use crate::preflight;
use crate::site::{API_PORT, Site};
use crate::usage::Usage;
use crate::wait::{Look, until};

/// How long any one part may take to come up; a bed takes a tenth of it on an idle machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// Simulated nodes created at once.
const CREATES_IN_FLIGHT: usize = 16;
/// Field manager of the bed's own objects.
const MANAGER: &str = "bed";

/// A running bed. [`Bed::stop`] ends it in order; dropping it ends it too, and keeps its logs and says where they
/// are, as a bed that was not stopped in order belongs to something that failed.
pub struct Bed {
    // Fields drop in this order: everything has ended when the folder of logs is named.
    keeper: Keeper,
    site: Site,
    cluster: Cluster,
    parts: BTreeMap<String, Part>,
    logs: Logs,
    usage: Usage,
}

impl Bed {
    /// Starts a bed and waits until all of it is ready.
    pub async fn start(config: Config) -> Result<Self, Error> {
        Self::start_with(config, |_| {}).await
    }

    /// The same, with a word on each step for a waiting person.
    pub async fn start_with(config: Config, say: impl Fn(&str)) -> Result<Self, Error> {
        preflight::check(&config)?;
        let began = Instant::now();
        let say = |line: &str| say(&format!("{:5.1} s  {line}", began.elapsed().as_secs_f32()));
        let mut bed = Self::prepare(&config)?;
        let slot = bed.site.slot;
        say(&format!("{} on {}, logs in {}", slot.name(), slot.host(), bed.logs.folder().display()));

        bed.start_control_plane(&config).await?;
        say("control plane ready");
        if config.controllers {
            bed.start_controllers().await?;
            say("controllers ready");
        }
        if config.node {
            bed.start_node().await?;
            say(&format!("node {} ready", node::NAME));
        }
        if let Some(fleet) = &config.fleet {
            bed.start_fleet(fleet, &say).await?;
            say(&format!("{} simulated nodes ready", fleet.nodes));
        }
        if config.metrics {
            bed.start_metrics().await?;
            say("metrics API available");
        }
        bed.usage.started();
        Ok(bed)
    }

    /// How to reach it.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// A client with all rights.
    pub async fn client(&self) -> Result<kube::Client, Error> {
        self.cluster.client().await
    }

    /// Signals a part (`etcd`, `kube-apiserver`, `kubelet`, …: the names of the log files) and, where the signal ends
    /// it, waits for its end.
    pub async fn signal(&mut self, part: &str, signal: Signal) -> Result<(), Error> {
        self.keeper.signal(part, signal)?;
        if matches!(signal, Signal::Terminate | Signal::Kill) {
            let keeper = &self.keeper;
            until(&format!("the end of {part}"), PATIENCE, || async {
                Ok(if keeper.has_exited(part) { Look::Done(()) } else { Look::NotYet("it runs".to_owned()) })
            })
            .await?;
        }
        Ok(())
    }

    /// Starts a part again that was ended, and waits until the API server answers.
    pub async fn start_again(&mut self, part: &str) -> Result<(), Error> {
        let again = self.parts.get(part).cloned().ok_or_else(|| Error::keeper(format!("there is no part {part}")))?;
        self.keeper.run(again)?;
        self.api_ready().await
    }

    /// Ends everything and removes the logs.
    pub async fn stop(self) -> Result<(), Error> {
        let Self { mut keeper, mut logs, mut usage, .. } = self;
        usage.ending();
        let ended = tokio::task::spawn_blocking(move || keeper.end()).await;
        ended.unwrap_or_else(|error| Err(Error::keeper(error.to_string())))?;
        logs.discard();
        Ok(())
    }

    fn prepare(config: &Config) -> Result<Self, Error> {
        let usage = Usage::begin();
        let keeper = Keeper::start()?;
        let slot = keeper.slot();
        let logs = Logs::create(&format!("{}-{}", config.name, slot.name()))?;
        let folder = slot.folder();
        let pki = Pki::create(folder.join("pki"))?;
        let site = Site { slot, folder, logs: logs.folder().to_path_buf(), cache: Cache::of_user(), pki };
        network::create(slot, API_PORT)?;
        let cluster = Cluster {
            slot,
            kubeconfig: site.user("admin", "admin", Some("system:masters"))?,
            logs: site.logs.clone(),
            audit_log: api_server::audit_log(&site, api_server::FIRST),
        };
        Ok(Self { keeper, site, cluster, parts: BTreeMap::new(), logs, usage })
    }

    fn run(&mut self, part: Part) -> Result<i32, Error> {
        self.parts.insert(part.name.clone(), part.clone());
        self.keeper.run(part)
    }

    /// Waits, and fails at once with its log when a part ends meanwhile.
    async fn until<T, F>(&self, what: &str, mut look: impl FnMut() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<Look<T>, Error>>,
    {
        until(what, PATIENCE, || {
            let look = look();
            async {
                if let Some((name, how)) = self.keeper.casualty() {
                    let log = self.parts.get(&name).map(|part| part.log.clone()).unwrap_or_default();
                    return Err(Error::Ended { tail: logs::tail(&log), name, how, log });
                }
                look.await
            }
        })
        .await
    }

    async fn start_control_plane(&mut self, config: &Config) -> Result<(), Error> {
        let etcd = etcd::part(&self.site, config.durable)?;
        self.run(etcd)?;
        api_server::identities(&self.site)?;
        let first = api_server::part(&self.site, false)?;
        self.run(first)?;
        self.api_ready().await?;
        if config.second_api_server {
            let second = api_server::part(&self.site, true)?;
            self.run(second)?;
            self.answers(&self.second_client().await?, "the second API server").await?;
        }
        Ok(())
    }

    /// A client of the second API server.
    pub async fn second_client(&self) -> Result<kube::Client, Error> {
        let url = format!("https://{}:{}", self.site.slot.host(), api_server::SECOND_API_PORT);
        cluster::client(&self.cluster.kubeconfig, |kubeconfig| {
            kubeconfig["clusters"][0]["cluster"]["server"] = url.into();
        })
        .await
    }

    async fn api_ready(&self) -> Result<(), Error> {
        self.answers(&self.client().await?, "the API server").await
    }

    async fn answers(&self, client: &kube::Client, who: &str) -> Result<(), Error> {
        self.until(&format!("{who} to be ready"), || async { Ok(cluster::looks_fine(client, "/readyz").await) }).await
    }

    async fn start_controllers(&mut self) -> Result<(), Error> {
        for part in [controllers::controller_manager(&self.site)?, controllers::scheduler(&self.site)?] {
            self.run(part)?;
        }
        let accounts = Api::<ServiceAccount>::namespaced(self.client().await?, "default");
        self.until("the controller manager's first service account", || async {
            Ok(match accounts.get_opt("default").await {
                Ok(Some(_)) => Look::Done(()),
                Ok(None) => Look::NotYet("none yet".to_owned()),
                Err(error) => Look::NotYet(error.to_string()),
            })
        })
        .await
    }

    async fn start_node(&mut self) -> Result<(), Error> {
        let slot = self.site.slot;
        cgroup::create(&slot.name()).map_err(Error::file(format!("cgroup {}", slot.name())))?;
        let folder = self.site.folder.join("node");
        fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
        let holder = node::holder(&self.site)?;
        let holder = self.run(holder)?;
        self.until("the node's mounts", || async {
            let held = node::mounts::held_mark(&folder).exists();
            Ok(if held { Look::Done(()) } else { Look::NotYet("not made yet".to_owned()) })
        })
        .await?;
        let containerd = node::containerd(&self.site, holder)?;
        self.run(containerd)?;
        for archive in preflight::images() {
            self.import_images(&archive).await?;
        }

        let client = self.client().await?;
        // The API server may then ask the kubelet for logs, exec and metrics.
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": api_server::KUBELET_CLIENT},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:kubelet-api-admin"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": api_server::KUBELET_CLIENT}]});
        cluster::apply(&client, MANAGER, &binding).await?;
        let kubelet = node::kubelet(&self.site, holder)?;
        self.run(kubelet)?;
        let nodes = Api::<Node>::all(client);
        self.until("the real node to be Ready", || async {
            Ok(match nodes.get_opt(node::NAME).await {
                Ok(Some(found)) if is_ready(&found) => Look::Done(()),
                Ok(Some(_)) => Look::NotYet("it is not Ready".to_owned()),
                Ok(None) => Look::NotYet("it has not registered".to_owned()),
                Err(error) => Look::NotYet(error.to_string()),
            })
        })
        .await
    }

    /// Imports an archive of images into the real node.
    pub async fn import_images(&self, archive: &Path) -> Result<(), Error> {
        let ctr = self.site.cache.program("ctr")?;
        let socket = node::socket(&self.site);
        let address = format!("--address={}", socket.display());
        self.until("containerd to answer", || async {
            let answer = Command::new(&ctr).args([&address, "version"]).output();
            let answered = answer.is_ok_and(|output| output.status.success());
            Ok(if answered { Look::Done(()) } else { Look::NotYet("no answer".to_owned()) })
        })
        .await?;
        let archive = archive.display().to_string();
        command::run(&ctr.display().to_string(), &[&address, "--namespace=k8s.io", "images", "import", &archive])
            .map(drop)
    }

    async fn start_fleet(&mut self, fleet: &Fleet, say: &impl Fn(&str)) -> Result<(), Error> {
        let kwok = fleet::part(&self.site, fleet)?;
        self.run(kwok)?;
        let nodes = Api::<Node>::all(self.client().await?);
        let parameters = PostParams::default();
        stream::iter(fleet::nodes(fleet)?)
            .map(|node| {
                let (nodes, parameters) = (&nodes, &parameters);
                async move { nodes.create(parameters, &node).await }
            })
            .buffer_unordered(CREATES_IN_FLIGHT)
            .try_for_each(|_| async { Ok(()) })
            .await
            .map_err(Error::kubernetes("create simulated nodes"))?;
        say(&format!("{} simulated nodes created", fleet.nodes));
        let ours = ListParams::default().labels("pillion.dev/node=fleet");
        self.until("the simulated nodes to be Ready", || async {
            let listed = nodes.list(&ours).await.map_err(Error::kubernetes("list simulated nodes"))?;
            let ready = listed.items.iter().filter(|node| is_ready(node)).count();
            Ok(if ready == fleet.nodes { Look::Done(()) } else { Look::NotYet(format!("{ready} of {}", fleet.nodes)) })
        })
        .await
    }

    async fn start_metrics(&mut self) -> Result<(), Error> {
        let client = self.client().await?;
        for object in metrics_server::objects(&self.site) {
            cluster::apply(&client, MANAGER, &object).await?;
        }
        let server = metrics_server::part(&self.site)?;
        self.run(server)?;
        self.until("the metrics API to be available", || async {
            Ok(cluster::looks_fine(&client, "/apis/metrics.k8s.io/v1beta1/nodes").await)
        })
        .await
    }
}
