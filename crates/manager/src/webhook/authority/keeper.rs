//! Carries the orders of [`rotation`](super::rotation) out, and keeps the registrations as they should be.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use pillion_runtime::tls::{Authority, ServingCertificate};
use pillion_runtime::watch::{Changes, Key, Selection, Store, WatchMetrics, watch};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::sync::watch::{Receiver, Sender};
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::rotation::{Certificate, Orders, Rotation, Seen, Step};
use super::secret::{Pair, Stored, object};
use crate::names;
use crate::settings::Settings;
use crate::switch::Switch;
use crate::webhook::paths::{AcceptedPaths, Memory};
use crate::webhook::registration::{Endpoint as WebhookEndpoint, Wanted, is_as_wanted, trusted_bundles};

/// All is looked at this often, also if nothing seems to have changed.
const PERIOD: Duration = Duration::from_secs(5);
/// Not more often than this, also if somebody changes it back each time.
const BREATH: Duration = Duration::from_millis(250);
/// A request that takes longer is given up; the next round tries again.
const PATIENCE: Duration = Duration::from_secs(5);

/// Keeps certificates and registrations; [`Keeper::run`] it.
pub struct Keeper {
    client: Client,
    settings: Arc<Settings>,
    wanted: Wanted,
    rotation: Rotation,
    paths: Memory,
    accepted: AcceptedPaths,
    /// What the replica serves with, to write it back where the Secret is gone.
    serving: Option<Pair>,
    sight: Sight,
    certificates: Certificates,
    out: Sender<Option<Arc<ServingCertificate>>>,
    metrics: KeeperMetrics,
}

/// What others see of it.
#[derive(Clone)]
pub struct Certificates {
    serving: Receiver<Option<Arc<ServingCertificate>>>,
    trusted: Arc<Sender<bool>>,
}

/// What the keeper watches.
struct Sight {
    secret: Store<Stored>,
    mutating: Store<Value>,
    validating: Store<Value>,
    /// True for a slice of the Service with an endpoint that is ready; absent where the webhook is called by a URL.
    endpoints: Option<Store<bool>>,
    switch: Switch,
    changes: Vec<Changes>,
}

#[derive(Clone, Debug, Default)]
struct KeeperMetrics {
    authority_ends: Gauge,
    leaf_ends: Gauge,
    applied: Counter,
    trusted: Gauge,
}

impl Keeper {
    /// A keeper, what others see of it, and the future that watches for it.
    pub fn new(
        client: &Client,
        settings: &Arc<Settings>,
        switch: Switch,
        reviews_pods: bool,
        accepted: &AcceptedPaths,
        watch_metrics: &WatchMetrics,
        registry: &mut Registry,
    ) -> (Self, Certificates, BoxFuture<'static, ()>) {
        let named = |name: &str| Selection { fields: Some(format!("metadata.name={name}")), ..Selection::default() };
        let secrets = Api::<Secret>::namespaced(client.clone(), &settings.namespace);
        let (secret, secret_driver) =
            watch("ca-secret", secrets, named(names::CA_SECRET), watch_metrics, |secret| Some(Stored::of(secret)));
        let (mutating, mutating_driver) = watch(
            "mutating-registration",
            api_of::<MutatingWebhookConfiguration>(client),
            named(names::REGISTRATION),
            watch_metrics,
            as_stored,
        );
        let (validating, validating_driver) = watch(
            "validating-registration",
            api_of::<ValidatingWebhookConfiguration>(client),
            named(names::REGISTRATION),
            watch_metrics,
            as_stored,
        );
        let (endpoints, endpoints_driver) =
            settings.webhook_url.is_none().then(|| watch_endpoints(client, settings, watch_metrics)).unzip();
        let mut changes = vec![secret.changes(), mutating.changes(), validating.changes(), switch.store().changes()];
        changes.extend(endpoints.as_ref().map(Store::changes));
        let (out, serving) = tokio::sync::watch::channel(None);
        let certificates = Certificates { serving, trusted: Arc::new(Sender::new(false)) };
        let endpoint = match &settings.webhook_url {
            Some(url) => WebhookEndpoint::Url(url.to_string()),
            None => WebhookEndpoint::Service { namespace: settings.namespace.clone(), name: settings.service.clone() },
        };
        let wanted = Wanted { endpoint, namespace: settings.namespace.clone(), reviews_pods, owners: Vec::new() };
        let keeper = Self {
            client: client.clone(),
            rotation: Rotation::new(settings.ca_lifetime),
            paths: Memory::default(),
            accepted: accepted.clone(),
            settings: Arc::clone(settings),
            wanted,
            serving: None,
            sight: Sight { secret, mutating, validating, endpoints, switch, changes },
            certificates: certificates.clone(),
            out,
            metrics: KeeperMetrics::register(registry),
        };
        let drivers = async move {
            let endpoints_driver = async {
                if let Some(driver) = endpoints_driver {
                    driver.await;
                }
            };
            tokio::join!(secret_driver, mutating_driver, validating_driver, endpoints_driver);
        };
        (keeper, certificates, drivers.boxed())
    }

    /// Keeps until it is dropped.
    pub async fn run(mut self) {
        // Not for the endpoints: they say only when to replace paths, and somebody may have forbidden to read them.
        let Sight { secret, mutating, validating, switch, .. } = &self.sight;
        tokio::join!(secret.completed(), mutating.completed(), validating.completed(), switch.store().completed());
        loop {
            if let Err(error) = self.round().await {
                warn!(error = format!("{error:#}"), "cannot keep certificates or registrations");
            }
            sleep(BREATH).await;
            let changed = futures::future::select_all(self.sight.changes.iter_mut().map(|it| Box::pin(it.next())));
            // A round without a change looks at the time.
            let _ = timeout(PERIOD, changed).await;
        }
    }

    async fn round(&mut self) -> Result<()> {
        let stored = self.sight.secret.get(&Key::new(&self.settings.namespace, names::CA_SECRET));
        let seen = self.seen(stored.as_ref());
        let now = Timestamp::now();
        self.accept_paths(stored.as_ref(), now);
        let orders = self.rotation.next(&seen, now);
        self.serve(stored.as_ref(), &orders, now)?;
        self.certificates.trusted.send_replace(orders.is_trusted);
        self.metrics.trusted.set(orders.is_trusted.into());
        if let Some(held) = &seen.secret {
            self.metrics.authority_ends.set(held.current.not_after.as_second());
        }
        // The one does not wait for the other: a Secret that cannot be written is no reason to leave a registration.
        let secret = self.keep_secret(stored.as_ref(), orders.secret, now).await;
        // A bundle without what is in the Secret would have to be written again at once.
        let registrations = match (&seen.secret, stored.as_ref().and_then(Stored::current)) {
            (Some(_), Some(current)) => self.keep_registrations(&orders.trust, &current.key).await,
            _ => Ok(()),
        };
        secret.and(registrations)
    }

    /// A replica accepts calls by all authorities that it knows, also before they sign and for a while after.
    fn accept_paths(&mut self, stored: Option<&Stored>, now: Timestamp) {
        let pairs = [self.serving.clone(), stored.and_then(Stored::current), stored.and_then(Stored::next)];
        let keys = pairs.iter().flatten().map(|pair| pair.key.as_str());
        self.paths.keep(keys, self.registrations().iter().flatten(), now);
        self.accepted.accept(&self.paths);
    }

    fn registrations(&self) -> [Option<Value>; 2] {
        let key = Key::new("", names::REGISTRATION);
        [self.sight.mutating.get(&key), self.sight.validating.get(&key)]
    }

    fn seen(&self, stored: Option<&Stored>) -> Seen {
        let registrations = self.registrations();
        let bundles = registrations.iter().map(|registration| registration.as_ref().map(trusted_bundles));
        let bundles: Option<Vec<Vec<String>>> = bundles.collect();
        let bundles = bundles.map(|bundles| bundles.iter().flatten().map(|bundle| certificates_in(bundle)).collect());
        let endpoints = self.sight.endpoints.as_ref().filter(|slices| slices.is_complete());
        let is_reachable = endpoints.map(|slices| slices.read(|slices| slices.iter().any(|(_, is_ready)| *is_ready)));
        Seen { secret: stored.and_then(Stored::held), bundles, is_reachable }
    }

    /// Signs a leaf where one is due.
    fn serve(&mut self, stored: Option<&Stored>, orders: &Orders, now: Timestamp) -> Result<()> {
        if orders.serve_current {
            self.serving = stored.and_then(Stored::current);
        }
        let Some(pair) = &self.serving else { return Ok(()) };
        let served = self.out.borrow().clone();
        let is_due = served.as_ref().is_none_or(|served| {
            let third = self.settings.leaf_lifetime / 3;
            now.saturating_add(third).is_ok_and(|soon| served.not_after() <= soon)
        });
        if !orders.serve_current && !is_due {
            return Ok(());
        }
        let authority = Authority::from_pem(&pair.certificate, &pair.key)?;
        let names = self.wanted.endpoint.certificate_names();
        let leaf = authority.issue(&names, now, self.settings.leaf_lifetime)?;
        info!(not_after = %leaf.not_after(), authority_not_after = %authority.not_after(), "serving with a new leaf");
        self.metrics.leaf_ends.set(leaf.not_after().as_second());
        match served {
            Some(served) => served.replace(leaf)?,
            None => {
                self.out.send_replace(Some(ServingCertificate::new(leaf)?));
            }
        }
        Ok(())
    }

    async fn keep_secret(&self, stored: Option<&Stored>, step: Step, now: Timestamp) -> Result<()> {
        let namespace = &self.settings.namespace;
        let new = || Authority::generate("pillion webhook", now, self.settings.ca_lifetime);
        let current = stored.and_then(Stored::current);
        match (step, stored, current) {
            (Step::Create, stored, _) => {
                let pair = match &self.serving {
                    Some(serving) => serving.clone(),
                    None => Pair::of(&new()?),
                };
                match stored {
                    Some(useless) => self.replace_secret(&useless.replaced(namespace, &pair, None)).await,
                    None => self.create_secret(object(namespace, &pair, None)).await,
                }
            }
            (Step::Prepare, Some(stored), Some(current)) => {
                info!("preparing a new authority");
                let next = Pair::of(&new()?);
                self.replace_secret(&stored.replaced(namespace, &current, Some(&next))).await
            }
            (Step::Promote, Some(stored), _) => {
                let Some(next) = stored.next() else { return Ok(()) };
                info!("the new authority signs from now on");
                self.replace_secret(&stored.replaced(namespace, &next, None)).await
            }
            (Step::Rest | Step::Prepare | Step::Promote, ..) => Ok(()),
        }
    }

    /// Each replica under a name of its own: under a common one the later would overwrite the earlier in silence.
    async fn create_secret(&self, mut secret: Value) -> Result<()> {
        secret["metadata"]["ownerReferences"] = json!(self.owner_of_secret().await);
        let api = Api::<Secret>::namespaced(self.client.clone(), &self.settings.namespace);
        let parameters = PatchParams::apply(&format!("pillion-{}", self.settings.name));
        let patch = Patch::Apply(&secret);
        let applied = within("write the CA Secret", api.patch(names::CA_SECRET, &parameters, &patch)).await?;
        match applied {
            Ok(_) => {
                info!(secret = names::CA_SECRET, "wrote the authority");
                Ok(())
            }
            Err(error) if is_conflict(&error) => {
                info!(secret = names::CA_SECRET, "another replica wrote one first");
                Ok(())
            }
            Err(error) => Err(error).context("cannot write the CA Secret"),
        }
    }

    async fn replace_secret(&self, secret: &Value) -> Result<()> {
        let api = Api::<Secret>::namespaced(self.client.clone(), &self.settings.namespace);
        let mut secret: Secret = serde_json::from_value(secret.clone())?;
        secret.metadata.owner_references = Some(serde_json::from_value(json!(self.owner_of_secret().await))?);
        let parameters = PostParams { field_manager: Some(names::FIELD_MANAGER.to_owned()), ..PostParams::default() };
        match within("replace the CA Secret", api.replace(names::CA_SECRET, &parameters, &secret)).await? {
            Ok(_) => Ok(()),
            // Another replica did the same; the watch will tell.
            Err(error) if is_conflict(&error) => Ok(()),
            Err(error) => Err(error).context("cannot replace the CA Secret"),
        }
    }

    async fn keep_registrations(&mut self, trust: &BTreeSet<Certificate>, authority_key: &str) -> Result<()> {
        let bundle: String = trust.iter().map(String::as_str).collect();
        let mut wanted = self.wanted.clone();
        wanted.reviews_pods &= !self.sight.switch.is_off();
        wanted.owners = self.owner_of_registrations().await;
        let [mutating, validating] = self.registrations();
        let mutating = (mutating, wanted.mutating(&bundle, authority_key));
        let validating = (validating, wanted.validating(&bundle, authority_key));
        self.keep_registration(api_of::<MutatingWebhookConfiguration>(&self.client), mutating).await?;
        self.keep_registration(api_of::<ValidatingWebhookConfiguration>(&self.client), validating).await
    }

    async fn keep_registration(&self, api: Api<DynamicObject>, (stored, wanted): (Option<Value>, Value)) -> Result<()> {
        if stored.is_some_and(|stored| is_as_wanted(&stored, &wanted)) {
            return Ok(());
        }
        let kind = wanted["kind"].as_str().unwrap_or_default();
        // All replicas want the same, so that whoever writes last has written what the others would.
        let parameters = PatchParams::apply(names::FIELD_MANAGER).force();
        let patch = Patch::Apply(&wanted);
        within("write a registration", api.patch(names::REGISTRATION, &parameters, &patch))
            .await?
            .with_context(|| format!("cannot write the {kind} {}", names::REGISTRATION))?;
        self.metrics.applied.inc();
        info!(kind, "wrote the registration");
        Ok(())
    }

    /// What the chart brings and takes away; without a chart nothing owns them.
    async fn owner_of_registrations(&self) -> Vec<Value> {
        let api = Api::<ClusterRole>::all(self.client.clone());
        let found = timeout(PATIENCE, api.get_opt(names::WEBHOOK_ACCOUNT)).await;
        owner(found.ok().and_then(Result::ok).flatten().as_ref())
    }

    async fn owner_of_secret(&self) -> Vec<Value> {
        let api = Api::<ServiceAccount>::namespaced(self.client.clone(), &self.settings.namespace);
        let found = timeout(PATIENCE, api.get_opt(names::WEBHOOK_ACCOUNT)).await;
        owner(found.ok().and_then(Result::ok).flatten().as_ref())
    }
}

impl Certificates {
    /// Waits for the first certificate.
    pub async fn first(&mut self) -> Arc<ServingCertificate> {
        match self.serving.wait_for(Option::is_some).await.map(|serving| serving.clone()) {
            Ok(Some(serving)) => serving,
            // The keeper has ended, and with it the program will.
            Ok(None) | Err(_) => pending().await,
        }
    }

    /// A readiness check: whether the API server trusts what this replica serves with.
    pub fn check_trusted(&self) -> Result<(), String> {
        if *self.trusted.borrow() {
            return Ok(());
        }
        Err("the API server does not trust our certificate yet".to_owned())
    }
}

impl KeeperMetrics {
    fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self { authority_ends, leaf_ends, applied, trusted } = metrics.clone();
        let help = "When the authority ends, in seconds since 1970";
        registry.register("authority_not_after_timestamp_seconds", help, authority_ends);
        let help = "When the certificate of this replica ends, in seconds since 1970";
        registry.register("certificate_not_after_timestamp_seconds", help, leaf_ends);
        registry.register("registrations_applied", "How often this replica wrote a registration", applied);
        registry.register("certificate_trusted", "Whether the API server trusts this replica's certificate", trusted);
        metrics
    }
}

/// Watches which replicas are ready to be called.
fn watch_endpoints(
    client: &Client,
    settings: &Settings,
    metrics: &WatchMetrics,
) -> (Store<bool>, BoxFuture<'static, ()>) {
    let api = Api::<EndpointSlice>::namespaced(client.clone(), &settings.namespace);
    let labels = Some(format!("kubernetes.io/service-name={}", settings.service));
    let selection = Selection { labels, ..Selection::default() };
    let is_ready = |slice: EndpointSlice| {
        let ready = |endpoint: &Endpoint| endpoint.conditions.as_ref().is_some_and(|it| it.ready == Some(true));
        Some(slice.endpoints.iter().any(ready))
    };
    let (store, driver) = watch("endpoints", api, selection, metrics, is_ready);
    (store, driver.boxed())
}

async fn within<T>(what: &str, request: impl Future<Output = T>) -> Result<T> {
    timeout(PATIENCE, request).await.with_context(|| format!("no answer in time: {what}"))
}

fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

fn api_of<K: Resource<DynamicType = ()>>(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &ApiResource::erase::<K>(&()))
}

fn as_stored(mut registration: DynamicObject) -> Option<Value> {
    registration.metadata.managed_fields = None;
    serde_json::to_value(registration).ok()
}

fn owner<K: Resource<DynamicType = ()>>(object: Option<&K>) -> Vec<Value> {
    let Some(reference) = object.and_then(|object| object.owner_ref(&())) else { return Vec::new() };
    vec![
        json!({"apiVersion": reference.api_version, "kind": reference.kind, "name": reference.name, "uid": reference.uid}),
    ]
}

/// The certificates of a bundle, each as it is written into the Secret.
fn certificates_in(bundle: &str) -> BTreeSet<Certificate> {
    const END: &str = "-----END CERTIFICATE-----";
    let blocks = bundle.split_inclusive(END).filter(|block| block.ends_with(END));
    blocks.map(|block| format!("{}\n", block.trim())).collect()
}
