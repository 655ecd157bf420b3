//! Watches on a real API server: the store equals what is there, also after the API server was gone.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use pillion_runtime::client::{Source, connect};
use pillion_runtime::watch::{Freshness, Key, Selection, Store, WatchMetrics, watch};
use pillion_testbed::{Bed, Config, Error, Look, Signal, until};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_secs(30);
/// How this test introduces itself to the API server.
const AGENT: &str = "pillion-e2e/0 (watch)";

/// What is kept of a config map: its value; nothing of one that is hidden.
fn value_of(map: ConfigMap) -> Option<String> {
    let mut data = map.data?;
    if data.contains_key("hidden") {
        return None;
    }
    data.remove("value")
}

/// Three stores of the same objects, each filled in another way.
struct Views {
    latest: Store<String>,
    any: Store<String>,
    names: Store<()>,
    metrics: Registry,
    tasks: Vec<JoinHandle<()>>,
}

impl Views {
    fn open(client: &Client) -> Self {
        let mut registry = Registry::default();
        let metrics = WatchMetrics::register(&mut registry);
        let selection =
            |freshness| Selection { labels: Some("watched=yes".to_owned()), freshness, ..Selection::default() };
        let maps = || Api::<ConfigMap>::namespaced(client.clone(), "default");
        let (latest, first) = watch("latest", maps(), selection(Freshness::Latest), &metrics, value_of);
        let (any, second) = watch("any", maps(), selection(Freshness::Any), &metrics, value_of);
        let metadata = Api::<PartialObjectMeta<ConfigMap>>::namespaced(client.clone(), "default");
        let (names, third) = watch("names", metadata, selection(Freshness::Latest), &metrics, |_| Some(()));
        let tasks = vec![tokio::spawn(first), tokio::spawn(second), tokio::spawn(third)];
        Self { latest, any, names, metrics: registry, tasks }
    }

    /// Waits until every store shows what a list of the API server shows.
    async fn agree_with(&self, client: &Client) -> Result<usize, Error> {
        let maps = Api::<ConfigMap>::namespaced(client.clone(), "default");
        until("the stores to show what is there", PATIENCE, || async {
            let listed = match maps.list(&ListParams::default().labels("watched=yes")).await {
                Ok(listed) => listed.items,
                Err(error) => return Ok(Look::NotYet(error.to_string())),
            };
            let names: Vec<Key> = listed.iter().map(Key::of).collect();
            let values: BTreeMap<Key, String> =
                listed.into_iter().filter_map(|map| Some((Key::of(&map), value_of(map)?))).collect();
            let seen = [self.latest.snapshot() == values, self.any.snapshot() == values];
            let seen_names = self.names.snapshot().into_keys().collect::<Vec<_>>() == names;
            let agree = seen == [true; 2] && seen_names;
            Ok(if agree { Look::Done(values.len()) } else { Look::NotYet(format!("{seen:?} {seen_names}")) })
        })
        .await
    }

    /// A metric of one of the watches.
    fn metric(&self, name: &str, watch: &str) -> Result<u64> {
        let mut text = String::new();
        encode(&mut text, &self.metrics)?;
        let line = format!("{name}{{watch=\"{watch}\"}} ");
        let value = text.lines().find_map(|found| found.strip_prefix(&line));
        Ok(value.with_context(|| format!("no {line}in {text}"))?.parse()?)
    }

    fn stores(&self) -> [&Store<String>; 2] {
        [&self.latest, &self.any]
    }
}

impl Drop for Views {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

fn map(number: usize) -> ConfigMap {
    // Every third is none of the watch's business.
    let watched = if number.is_multiple_of(3) { "no" } else { "yes" };
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(format!("map-{number}")),
            labels: Some(BTreeMap::from([("watched".to_owned(), watched.to_owned())])),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("value".to_owned(), number.to_string())])),
        ..ConfigMap::default()
    }
}

async fn create(maps: &Api<ConfigMap>, numbers: std::ops::Range<usize>) -> kube::Result<()> {
    let creation = |number| async move { maps.create(&PostParams::default(), &map(number)).await };
    stream::iter(numbers).map(creation).buffer_unordered(8).try_for_each(|_| async { Ok(()) }).await
}

/// Changes values, hides, shows, relabels and deletes, all on objects from `first` on.
async fn stir(maps: &Api<ConfigMap>, first: usize) -> kube::Result<()> {
    let name = |number: usize| format!("map-{}", first + number);
    let patch = async |number, change: serde_json::Value| {
        maps.patch(&name(number), &PatchParams::default(), &Patch::Merge(change)).await
    };
    for number in 0..10 {
        patch(number, json!({"data": {"value": "changed"}})).await?;
        patch(number + 10, json!({"data": {"hidden": "yes"}})).await?;
        patch(number + 20, json!({"metadata": {"labels": {"watched": "no"}}})).await?;
        patch(number + 30, json!({"metadata": {"labels": {"watched": "yes"}}})).await?;
        maps.delete(&name(number + 40), &DeleteParams::default()).await?;
    }
    for number in 10..15 {
        patch(number, json!({"data": {"hidden": null}})).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn ci_a_store_equals_the_api_server_also_after_the_api_server_was_gone() -> Result<()> {
    let mut bed = Bed::start(Config::control_plane("watch").with_second_api_server()).await?;
    let source = Source { kubeconfig: Some(bed.cluster().kubeconfig().to_path_buf()), context: None };
    let client = connect(&source, AGENT).await?;
    let maps = Api::<ConfigMap>::namespaced(client.clone(), "default");
    let others = Api::<ConfigMap>::namespaced(bed.second_client().await?, "default");
    // More than a page of a list.
    create(&maps, 0..900).await?;
    let views = Views::open(&client);
    for store in views.stores() {
        tokio::time::timeout(PATIENCE, store.completed()).await?;
        assert_eq!(store.len(), 600, "complete means all");
    }
    stir(&maps, 0).await?;
    create(&maps, 900..1_000).await?;
    views.agree_with(&client).await?;

    for (round, first) in [100, 200].into_iter().enumerate() {
        bed.signal("kube-apiserver", Signal::Kill).await?;
        let before = views.latest.snapshot();
        // What happens meanwhile, deletions among it, is known to the other API server only.
        stir(&others, first).await?;
        until("the watches to notice", PATIENCE, || async {
            let failing = views.stores().map(|store| store.failing_for().is_some());
            Ok(if failing == [true; 2] { Look::Done(()) } else { Look::NotYet(format!("{failing:?}")) })
        })
        .await?;
        assert_eq!(views.latest.snapshot(), before, "the past is shown, and not nothing");
        assert!(views.latest.is_complete());
        bed.start_again("kube-apiserver").await?;
        views.agree_with(&client).await?;
        // And it goes on from there.
        create(&maps, 1_000 + 100 * round..1_100 + 100 * round).await?;
        views.agree_with(&client).await?;
        for store in views.stores() {
            assert_eq!(store.failing_for(), None, "round {round}");
        }
    }
    for watch in ["latest", "any", "names"] {
        let lists = views.metric("watch_lists_total", watch)?;
        assert!(lists >= 3, "{watch} lost its place twice and listed {lists} times");
    }
    let audit = std::fs::read_to_string(bed.cluster().audit_log())?;
    assert!(audit.contains(&format!("\"userAgent\":\"{AGENT}\"")), "the API server knows who writes");
    drop(views);
    bed.stop().await?;
    Ok(())
}
