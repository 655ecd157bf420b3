//! Sets that pin a revision, pods of them, and what their ledgers went through.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use pillion_api::{InjectionLedger, InjectionLedgerSpec, PodRevisions, REVISIONS, SidecarSet, revision};
use pillion_testbed::{Cluster, Look, apply, until};
use serde_json::{Value, json};

use crate::manager::{NAMESPACE, free_port};
use crate::{Balancer, Manager, pods};

/// How long anything may take that nothing is promised about.
pub const PATIENCE: Duration = Duration::from_mins(2);
/// The namespace of all pods; a pod there is refused rather than created without its sidecar.
pub const SHOP: &str = "shop";

/// A cluster in which two replicas answer reviews and one leads.
pub struct Stage {
    /// To the API server.
    pub client: Client,
    /// The replicas of the webhook.
    pub webhooks: Vec<Manager>,
    /// The one that leads.
    pub leader: Manager,
    cluster: Cluster,
    /// What stands before the replicas.
    _balancer: Balancer,
}

/// A set that pins the revision it was made with, and has a newer one.
#[derive(Clone, Debug)]
pub struct Canary {
    /// Its name, and the value of the label `canary` of its pods.
    pub name: String,
    /// The revision it pins.
    pub pinned: String,
    /// Its newest one.
    pub newest: String,
    /// How many pods stay at an old one.
    pub partition: Value,
}

/// A ledger as somebody wrote it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The set.
    pub set: String,
    /// Whether a replica of the webhook wrote it; else the leader.
    pub is_reservation: bool,
    /// What it says.
    pub spec: InjectionLedgerSpec,
    /// How many bytes it has.
    pub bytes: usize,
}

impl Stage {
    /// Two replicas behind one address, and a leader.
    pub async fn set_up(cluster: &Cluster) -> Result<Self> {
        let client = cluster.client().await?;
        Manager::prepare(&client).await?;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": SHOP, "labels": {"pillion.dev/injection": "required"}}});
        apply(&client, "e2e", &namespace).await?;
        // Where no controller makes it.
        let account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": SHOP}});
        apply(&client, "e2e", &account).await?;
        let (one, other) = (free_port(cluster.host()).await?, free_port(cluster.host()).await?);
        let balancer = Balancer::serve(cluster.host(), vec![one, other]).await?;
        let mut webhooks = Vec::new();
        for address in [one, other] {
            webhooks.push(Manager::start_behind(cluster, address, balancer.address(), &["webhook"], &[]).await?);
        }
        let leader = Manager::ready(cluster, &["controller"], &[]).await?;
        for webhook in &webhooks {
            webhook.until_ready().await?;
        }
        Ok(Self { client, webhooks, leader, cluster: cluster.clone(), _balancer: balancer })
    }

    /// All pods.
    pub fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), SHOP)
    }

    /// Writes a set, edits it, and pins what it was at first, with these strategies for new pods.
    pub async fn canary(&self, name: &str, partition: &Value, injection: &Value) -> Result<Canary> {
        let image = |image: &str| json!([{"name": "proxy", "image": image}]);
        let set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"canary": name}}, "containers": image(pods::V1),
                "updateStrategy": {"type": "NotUpdate", "partition": partition}}});
        apply(&self.client, "e2e", &set).await?;
        let name_of = |spec: &Value| Ok::<_, anyhow::Error>(revision::name(name, &fields(spec)?));
        let pinned = name_of(&set["spec"])?;
        self.until_stored(&pinned).await?;
        let mut edited = set.clone();
        edited["spec"]["containers"] = image(pods::V2);
        let newest = name_of(&edited["spec"])?;
        let mut pin = injection.clone();
        if pin.get("controllerRevision").is_some() {
            pin["controllerRevision"] = pinned.clone().into();
        } else {
            pin["revision"] = pinned.clone().into();
        }
        let edit = json!({"spec": {"containers": edited["spec"]["containers"], "injectStrategy": pin}});
        let sets = Api::<SidecarSet>::all(self.client.clone());
        // A replica may not have heard of the revision yet.
        let waited = until("the pin to be taken", PATIENCE, || async {
            Ok(match sets.patch(name, &PatchParams::default(), &Patch::Merge(&edit)).await {
                Ok(_) => Look::Done(()),
                Err(error) => Look::NotYet(error.to_string()),
            })
        });
        waited.await?;
        let canary = Canary { name: name.to_owned(), pinned, newest, partition: partition.clone() };
        self.until_known(&canary, injection).await?;
        Ok(canary)
    }

    /// Waits until the leader has stored a revision.
    async fn until_stored(&self, name: &str) -> Result<()> {
        let api = Api::<ControllerRevision>::namespaced(self.client.clone(), NAMESPACE);
        let waited = until("the revision to be stored", PATIENCE, || async {
            Ok(match api.get_opt(name).await {
                Ok(Some(_)) => Look::Done(()),
                Ok(None) => Look::NotYet("it is not".to_owned()),
                Err(error) => Look::NotYet(error.to_string()),
            })
        });
        Ok(waited.await?)
    }

    /// Waits until every replica knows the edit, and the ledger where there is to be one.
    async fn until_known(&self, canary: &Canary, injection: &Value) -> Result<()> {
        let is_counted = injection.get("controllerRevision").is_none() && injection["proportion"] != "Random";
        if is_counted {
            self.ledger(canary, "the ledger", |_| true).await?;
        }
        // Each of them is asked by a connection of its own.
        for webhook in &self.webhooks {
            let caller = crate::Caller::new(&self.client, webhook.webhook()).await?;
            let pod = pod(canary, "tried");
            let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
                "uid": "u", "operation": "CREATE", "namespace": SHOP, "name": "tried", "dryRun": true,
                "resource": {"group": "", "version": "v1", "resource": "pods"}, "object": pod}});
            let knows = async || -> Result<bool> {
                let (_, answer) = caller.connect().await?.review_pod(review.to_string()).await?;
                let response = &serde_json::from_slice::<Value>(&answer)?["response"];
                let warnings = response["warnings"].to_string();
                let k8s_openapi::ByteString(patch) = serde_json::from_value(response["patch"].clone())?;
                let patch = String::from_utf8(patch)?;
                let is_given =
                    [&canary.pinned, &canary.newest].iter().any(|revision| patch.contains(revision.as_str()));
                let is_edited = !warnings.contains("PL354") && is_given;
                // A set that counts gives its first pod the pinned revision, as it does to all before the edit; what it
                // does not know before is the ledger, and without one it warns.
                Ok(is_edited && (patch.contains(&canary.pinned) || !is_counted))
            };
            let waited = until("a replica to know the canary", PATIENCE, || async {
                Ok(match knows().await {
                    Ok(true) => Look::Done(()),
                    Ok(false) => Look::NotYet("it does not".to_owned()),
                    Err(error) => Look::NotYet(error.to_string()),
                })
            });
            waited.await?;
        }
        Ok(())
    }

    /// Waits until the ledger of a canary is as it should be.
    pub async fn ledger(
        &self,
        canary: &Canary,
        what: &str,
        holds: impl Fn(&InjectionLedgerSpec) -> bool,
    ) -> Result<InjectionLedgerSpec> {
        let api = Api::<InjectionLedger>::namespaced(self.client.clone(), NAMESPACE);
        let waited = until(what, PATIENCE, || async {
            Ok(match api.get_opt(&canary.name).await {
                Ok(Some(ledger)) if holds(&ledger.spec) => Look::Done(ledger.spec),
                Ok(seen) => Look::NotYet(json!(seen.map(|seen| seen.spec)).to_string()),
                Err(error) => Look::NotYet(error.to_string()),
            })
        });
        Ok(waited.await?)
    }

    /// The living pods of a canary.
    pub async fn living(&self, canary: &Canary) -> Result<Vec<Pod>> {
        let listed = self.pods().list(&ListParams::default().labels(&format!("canary={}", canary.name))).await?;
        Ok(listed.items.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect())
    }

    /// How many of the living pods of a canary have the pinned revision, and how many the newest.
    pub async fn count(&self, canary: &Canary) -> Result<(usize, usize)> {
        canary.count(&self.living(canary).await?)
    }

    /// Every write of a ledger up to now, in the order of their versions.
    ///
    /// The API server answers a client before it logs the request, so the last writes may be missing for a moment: waits until
    /// the audit log has the version that each ledger has now.
    pub async fn entries(&self) -> Result<Vec<Entry>> {
        let ledgers = Api::<InjectionLedger>::namespaced(self.client.clone(), NAMESPACE);
        let mut newest = BTreeSet::new();
        for ledger in ledgers.list(&ListParams::default()).await?.items {
            newest.insert(ledger.resource_version().context("a version")?.parse::<u64>()?);
        }
        let waited = until("the audit log to have every write of a ledger", PATIENCE, || async {
            Ok(match self.logged_entries() {
                Ok(logged) if newest.iter().all(|version| logged.contains_key(version)) => Look::Done(logged),
                Ok(logged) => Look::NotYet(format!("{:?} of {newest:?}", logged.keys().last())),
                Err(error) => Look::NotYet(format!("{error:#}")),
            })
        });
        Ok(waited.await?.into_values().collect())
    }

    /// The writes of ledgers in the audit log, by version.
    fn logged_entries(&self) -> Result<BTreeMap<u64, Entry>> {
        let mut entries = BTreeMap::new();
        let log = std::fs::read_to_string(self.cluster.audit_log())?;
        // The last line may not be complete yet.
        for line in log.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            if !line.contains("injectionledgers") {
                continue;
            }
            let event: Value = serde_json::from_str(line)?;
            let ledger = &event["responseObject"];
            if event["responseStatus"]["code"].as_u64().is_none_or(|code| code >= 300)
                || ledger["kind"] != "InjectionLedger"
            {
                continue;
            }
            let version = ledger["metadata"]["resourceVersion"].as_str().context("a version")?.parse::<u64>()?;
            let uri = event["requestURI"].as_str().unwrap_or_default();
            let entry = Entry {
                set: ledger["metadata"]["name"].as_str().context("a name")?.to_owned(),
                is_reservation: uri.contains("fieldManager=pillion-webhook"),
                spec: serde_json::from_value(ledger["spec"].clone())?,
                bytes: ledger.to_string().len(),
            };
            entries.insert(version, entry);
        }
        Ok(entries)
    }

    /// What the last writes of a canary's ledger came to, for people: who wrote, how many were old, of how many, and how many
    /// of those were reserved.
    pub async fn history(&self, canary: &Canary) -> Result<String> {
        let entries = self.entries().await?.into_iter().filter(|entry| entry.set == canary.name).collect::<Vec<_>>();
        let shown = entries.iter().rev().take(60).rev().map(|entry| {
            let (old, all) = canary.counted(&entry.spec);
            let reserved: usize = entry.spec.reserved.values().map(Vec::len).sum();
            let who = if entry.is_reservation { "webhook" } else { "leader" };
            format!("{who} {old}/{all} ({reserved})")
        });
        Ok(shown.collect::<Vec<_>>().join(", "))
    }

    /// Holds every write of a canary's ledger to its promise: no reservation of the newest revision leaves fewer old pods
    /// than the partition asks of all that live or are reserved. Gives how many writes and reservations there were.
    pub async fn check_every_write(&self, canary: &Canary) -> Result<(usize, usize)> {
        let (mut writes, mut reservations) = (0, 0);
        let mut before = BTreeSet::new();
        for entry in self.entries().await?.into_iter().filter(|entry| entry.set == canary.name) {
            let ids = |revision: Option<&str>| -> BTreeSet<String> {
                let of = entry.spec.reserved.iter().filter(|(name, _)| revision.is_none_or(|it| it == name.as_str()));
                of.flat_map(|(_, ids)| ids.iter().cloned()).collect()
            };
            if entry.is_reservation {
                writes += 1;
                reservations += ids(None).difference(&before).count();
                if ids(Some(&canary.newest)).difference(&before).next().is_some() {
                    let (old, all) = canary.counted(&entry.spec);
                    let target = canary.target(all);
                    ensure!(old >= target, "{old} of {all} are old, not {target}: {}", json!(entry.spec));
                }
            }
            before = ids(None);
        }
        ensure!(writes > 0, "the audit log shows no reservation: the comparison proves nothing");
        Ok((writes, reservations))
    }
}

impl Canary {
    /// How many of so many pods should be old; not by the code that is tested.
    pub fn target(&self, pods: usize) -> usize {
        match &self.partition {
            Value::Number(number) => pods.min(usize::try_from(number.as_u64().unwrap_or_default()).unwrap_or_default()),
            percent => {
                let percent: usize =
                    percent.as_str().and_then(|it| it.strip_suffix('%')?.parse().ok()).unwrap_or_default();
                let kept = (0..=pods).find(|kept| kept * 100 >= pods * percent).unwrap_or(pods);
                if kept == pods && pods > 1 && percent < 100 { pods - 1 } else { kept }
            }
        }
    }

    /// Which revision a pod has.
    pub fn revision_of(&self, pod: &Pod) -> Result<String> {
        let text = pod.annotations().get(REVISIONS).with_context(|| format!("{} carries nothing", pod.name_any()))?;
        let revisions = PodRevisions::parse(text).context("a list of revisions")?;
        Ok(revisions.of(&self.name).context("not this set")?.is.clone())
    }

    /// How many pods have the pinned revision, and how many the newest.
    pub fn count<'p>(&self, pods: impl IntoIterator<Item = &'p Pod>) -> Result<(usize, usize)> {
        let (mut old, mut new) = (0, 0);
        for pod in pods {
            let revision = self.revision_of(pod)?;
            ensure!(revision == self.pinned || revision == self.newest, "{revision} is none of the two");
            *(if revision == self.newest { &mut new } else { &mut old }) += 1;
        }
        Ok((old, new))
    }

    /// Old pods, and all pods, by a ledger.
    fn counted(&self, ledger: &InjectionLedgerSpec) -> (usize, usize) {
        let living =
            ledger.living.iter().map(|(revision, pods)| (revision, usize::try_from(*pods).unwrap_or_default()));
        let reserved = ledger.reserved.iter().map(|(revision, ids)| (revision, ids.len()));
        living.chain(reserved).fold((0, 0), |(old, all), (revision, pods)| {
            (if *revision == self.newest { old } else { old + pods }, all + pods)
        })
    }

    /// An error if the proportion of these pods is not exact. So many more may be old as were not counted.
    pub fn check_exact<'p>(&self, pods: impl IntoIterator<Item = &'p Pod> + Clone) -> Result<()> {
        let (old, new) = self.count(pods.clone())?;
        let uncounted = uncounted(pods);
        let target = self.target(old + new);
        let name = &self.name;
        let is_exact = old >= target && old - target <= uncounted;
        ensure!(is_exact, "{name}: {old} of {} pods are old, not {target}; {uncounted} were not counted", old + new);
        Ok(())
    }

    /// An error if pods have not a reservation each. One that was not in time for its pod may be written or not.
    pub fn check_reserved(&self, pods: &[Pod], reservations: usize) -> Result<()> {
        let expected = pods.len() - uncounted(pods)..=pods.len();
        ensure!(expected.contains(&reservations), "{}: {reservations} reservations, not {expected:?}", self.name);
        Ok(())
    }
}

/// Pods that were pinned without a reservation, and say so: on a machine that is too busy to write a ledger within half a second.
fn uncounted<'p>(pods: impl IntoIterator<Item = &'p Pod>) -> usize {
    let decision = |pod: &&Pod| pod.annotations().get("pillion.dev/decision").is_some_and(|it| it.contains("PL354"));
    pods.into_iter().filter(decision).count()
}

/// A pod of a canary that no node takes: only whether it is made counts.
pub fn pod(canary: &Canary, name: &str) -> Value {
    let mut pod = pods::pod(name, &[], &[pods::container("main", &[])]);
    pod["metadata"]["labels"] = json!({"canary": canary.name});
    pod["spec"]["nodeSelector"] = json!({"pillion.dev/node": "nowhere"});
    pod
}

fn fields(spec: &Value) -> Result<serde_json::Map<String, Value>> {
    Ok(revision::fields(spec.as_object().context("a spec is an object")?))
}

/// How long creations took: the one in the middle, and the one that 99 of a hundred are not slower than.
pub fn middle_and_slow(mut took: Vec<Duration>) -> (Duration, Duration) {
    took.sort_unstable();
    let at = |share: usize| took.get(took.len().saturating_sub(1) * share / 100).copied().unwrap_or_default();
    (at(50), at(99))
}

/// So many pods in a case: a hundred, or what `PILLION_CANARY_PODS` says.
pub fn pods_per_case() -> usize {
    std::env::var("PILLION_CANARY_PODS").ok().and_then(|text| text.parse().ok()).unwrap_or(100)
}

/// A name for a set from what it is about.
pub fn named(words: &str, partition: &Value) -> String {
    let mut name = words.to_owned();
    let _ = write!(name, "-{}", partition.to_string().replace('"', "").replace('%', "pc"));
    name
}

/// Creates a pod, and tells how long that took.
pub async fn create(pods: &Api<Pod>, pod: &Value) -> Result<(Pod, Duration), kube::Error> {
    let pod: Pod = serde_json::from_value(pod.clone()).map_err(kube::Error::SerdeError)?;
    let began = Instant::now();
    let created = pods.create(&PostParams::default(), &pod).await?;
    Ok((created, began.elapsed()))
}
