//! Stored objects of agents: configurations and their copies, accounts and their rights, parameters of policies, results
//! and records.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use pillion_agent_api::names::{CONFIG_LABEL, POLICY_PARAMS, RESULTS};
use pillion_api::{HotUpdate, HotUpdateSpec, HotUpdateStatus};
use pillion_runtime::watch::{Changes, Key, Selection, Store, watch};
use serde_json::{Value, json};

use super::Context;
use super::plan::{Kind, Place, Stored};

/// A `ConfigMap`: its uid and its data.
pub(super) type StoredMap = Arc<(String, BTreeMap<String, String>)>;

/// All of it.
pub(super) struct Objects {
    /// Configurations and their copies.
    pub(super) configs: Store<StoredMap>,
    accounts: Store<Arc<Stored>>,
    roles: Store<Arc<Stored>>,
    bindings: Store<Arc<Stored>>,
    pub(super) policy_params: Store<StoredMap>,
    pub(super) results: Store<StoredMap>,
    pub(super) records: Store<Arc<Record>>,
}

/// A `HotUpdate`, as far as it is looked at.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    pub(super) uid: String,
    pub(super) version: String,
    pub(super) generation: i64,
    pub(super) created: Timestamp,
    pub(super) spec: HotUpdateSpec,
    pub(super) status: Option<HotUpdateStatus>,
}

/// What changed of it.
pub(super) struct Changed([Changes; 7]);

impl Objects {
    /// Watches all of it while the future runs.
    pub(super) fn watch(context: &Context) -> (Self, BoxFuture<'static, ()>) {
        let Context { client, watch_metrics: metrics, settings, .. } = context;
        let ours = Selection { labels: Some(format!("{CONFIG_LABEL}=true")), ..Selection::default() };
        let named = |name: &str| Selection { fields: Some(format!("metadata.name={name}")), ..Selection::default() };
        let maps = Api::<ConfigMap>::all(client.clone());
        let own_maps = Api::<ConfigMap>::namespaced(client.clone(), &settings.namespace);
        let (configs, configs_driver) =
            watch("agent_configs", maps.clone(), ours.clone(), metrics, |map| Some(stored_map(map)));
        let (policy_params, policy_params_driver) =
            watch("agent_policy_params", own_maps, named(POLICY_PARAMS), metrics, |map| Some(stored_map(map)));
        let (results, results_driver) =
            watch("agent_results", maps, named(RESULTS), metrics, |map| Some(stored_map(map)));
        let api = Api::<ServiceAccount>::all(client.clone());
        let (accounts, accounts_driver) = watch("agent_accounts", api, ours.clone(), metrics, |it: ServiceAccount| {
            Some(stored(it.metadata, json!({"automountServiceAccountToken": it.automount_service_account_token})))
        });
        let api = Api::<Role>::all(client.clone());
        let (roles, roles_driver) = watch("agent_roles", api, ours.clone(), metrics, |it: Role| {
            Some(stored(it.metadata, json!({"rules": it.rules})))
        });
        let api = Api::<RoleBinding>::all(client.clone());
        let (bindings, bindings_driver) = watch("agent_bindings", api, ours, metrics, |it: RoleBinding| {
            Some(stored(it.metadata, json!({"roleRef": it.role_ref, "subjects": it.subjects})))
        });
        let api = Api::<HotUpdate>::all(client.clone());
        let (records, records_driver) = watch("hot_updates", api, Selection::default(), metrics, |it| Some(record(it)));
        let driver = async move {
            tokio::join!(
                configs_driver,
                policy_params_driver,
                results_driver,
                accounts_driver,
                roles_driver,
                bindings_driver,
                records_driver
            );
        };
        (Self { configs, accounts, roles, bindings, policy_params, results, records }, driver.boxed())
    }

    /// Waits until all of it is known.
    pub(super) async fn completed(&self) {
        tokio::join!(
            self.configs.completed(),
            self.policy_params.completed(),
            self.results.completed(),
            self.accounts.completed(),
            self.roles.completed(),
            self.bindings.completed(),
            self.records.completed()
        );
    }

    /// Tells when any of it changed.
    pub(super) fn changes(&self) -> Changed {
        Changed([
            self.configs.changes(),
            self.policy_params.changes(),
            self.results.changes(),
            self.accounts.changes(),
            self.roles.changes(),
            self.bindings.changes(),
            self.records.changes(),
        ])
    }

    /// What namespaces have of ours.
    pub(super) fn stored(&self, own_namespace: &str) -> BTreeMap<Place, Stored> {
        let place = |kind, key: &Key| Place { kind, namespace: key.namespace.to_string(), name: key.name.to_string() };
        let mut found = BTreeMap::new();
        for (kind, store) in
            [(Kind::Account, &self.accounts), (Kind::Role, &self.roles), (Kind::Binding, &self.bindings)]
        {
            found.extend(store.snapshot().iter().map(|(key, it)| (place(kind, key), Stored::clone(it))));
        }
        let copies = self.configs.snapshot();
        let copies = copies.iter().filter(|(key, _)| &*key.namespace != own_namespace);
        found.extend(copies.map(|(key, map)| {
            let (uid, data) = &**map;
            (place(Kind::ConfigMap, key), Stored { uid: uid.clone(), body: json!({"data": data}) })
        }));
        found
    }
}

impl Changed {
    /// Waits for the next change.
    pub(super) async fn next(&mut self) {
        let waiting = self.0.iter_mut().map(|changes| async move { drop(changes.next().await) }.boxed());
        futures::future::select_all(waiting).await;
    }
}

fn stored(metadata: ObjectMeta, body: Value) -> Arc<Stored> {
    Arc::new(Stored { uid: metadata.uid.unwrap_or_default(), body })
}

fn stored_map(map: ConfigMap) -> StoredMap {
    Arc::new((map.metadata.uid.unwrap_or_default(), map.data.unwrap_or_default()))
}

fn record(record: HotUpdate) -> Arc<Record> {
    let metadata = record.metadata;
    Arc::new(Record {
        uid: metadata.uid.unwrap_or_default(),
        version: metadata.resource_version.unwrap_or_default(),
        generation: metadata.generation.unwrap_or_default(),
        created: metadata.creation_timestamp.map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        spec: record.spec,
        status: record.status,
    })
}
