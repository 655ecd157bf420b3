//! `pillion rollout status -w`: pods by a watch, the rest asked for again every other second.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use pillion_runtime::watch::{Freshness, Selection, Store, WatchMetrics, watch};
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::pace::Pace;
use super::screen::{self, Screen};
use super::text::{self, Detail};
use super::{Arguments, json};
use crate::layout::terminal;
use crate::live::{Cluster, Failure, Progress};
use crate::rollout::gather::{Rollout, SeenPod, said};
use crate::rollout::picture::Picture;
use crate::{Ending, Format, Streams};

/// A person can follow no faster.
const REDRAWN: Duration = Duration::from_millis(200);
/// How often the set, its revisions and the budgets are read.
const READ: Duration = Duration::from_secs(2);
/// Time passes also where nothing happens.
const LOOKED: Duration = Duration::from_secs(1);
/// A cluster that does not answer for so long is told.
const PATIENCE: Duration = Duration::from_secs(10);

type Pods = Store<Arc<SeenPod>>;

pub(super) async fn follow(
    cluster: &Cluster,
    arguments: &Arguments,
    streams: &mut Streams<'_>,
) -> Result<Ending, Failure> {
    let first = Rollout::without_pods(cluster, &arguments.connection, &arguments.set).await;
    let rollout = match said(first, &arguments.set, streams)? {
        Ok(rollout) => rollout,
        Err(ending) => return Ok(ending),
    };
    let metrics = WatchMetrics::default();
    let [ours, theirs] = rollout.queries().map(|labels| {
        let selection = Selection { labels: Some(labels), fields: None, freshness: Freshness::Latest };
        watch("pods", Api::<Pod>::all(cluster.client().clone()), selection, &metrics, |pod: Pod| {
            let pod: Value = serde_json::to_value(pod).ok()?;
            SeenPod::read(&pod).map(Arc::new)
        })
    });
    let stores = [ours.0, theirs.0];
    tokio::select! {
        ending = tell(cluster, arguments, rollout, &stores, streams) => ending,
        // They end with this function and not before.
        ((), ()) = async { tokio::join!(ours.1, theirs.1) } => Ok(Ending::Fine),
    }
}

async fn tell(
    cluster: &Cluster,
    arguments: &Arguments,
    mut rollout: Rollout,
    stores: &[Pods; 2],
    streams: &mut Streams<'_>,
) -> Result<Ending, Failure> {
    listed(stores, streams).await?;
    let [mut ours, mut theirs] = [stores[0].changes(), stores[1].changes()];
    let mut teller = Teller::new(arguments.output);
    let mut read = Instant::now();
    loop {
        let began = Instant::now();
        if began.duration_since(read) >= READ {
            let again = Rollout::without_pods(cluster, &arguments.connection, &arguments.set).await;
            rollout = match said(again, &arguments.set, streams)? {
                Ok(rollout) => rollout,
                Err(ending) => return Ok(ending),
            };
            read = began;
        }
        take_pods(&mut rollout, stores);
        let now = Timestamp::now();
        let picture = Picture::of(&rollout, now);
        teller.tell(&picture, now, streams)?;
        if picture.state.is_final() {
            return Ok(if picture.state.is_stalled() { Ending::Finding } else { Ending::Fine });
        }
        // Whichever comes first; then as long as it takes not to be too fast.
        let changed = async {
            tokio::select! { _ = ours.next() => {}, _ = theirs.next() => {} }
        };
        let _ = timeout(LOOKED, changed).await;
        sleep_until(began + REDRAWN).await;
        if let Some(failing) = stores.iter().filter_map(Store::failing_for).max().filter(|it| *it > PATIENCE) {
            return Err(Failure::Watch(format!("pods: no answer for {} seconds", failing.as_secs())));
        }
    }
}

/// Waits until all pods are known.
async fn listed(stores: &[Pods; 2], streams: &mut Streams<'_>) -> Result<(), Failure> {
    let mut progress = Progress::new();
    for store in stores {
        let began = Instant::now();
        while timeout(Duration::from_millis(100), store.completed()).await.is_err() {
            progress.tell(streams.err, || "reading pods".to_owned())?;
            if store.failing_for().is_some() && began.elapsed() > PATIENCE {
                return Err(Failure::Watch(store.check_complete().err().unwrap_or_default()));
            }
            sleep(Duration::ZERO).await;
        }
    }
    Ok(progress.end(streams.err)?)
}

fn take_pods(rollout: &mut Rollout, stores: &[Pods; 2]) {
    let mut pods = Vec::new();
    for store in stores {
        store.read(|objects| {
            let carrying = objects.iter().map(|(_, seen)| seen).filter(|seen| rollout.is_carried_by(seen));
            pods.extend(carrying.map(|seen| seen.pod.clone()));
        });
    }
    rollout.pods = pods;
    rollout.sort();
}

/// How it is told: drawn over, or a line for every change.
struct Teller {
    output: Format,
    screen: Option<Screen>,
    pace: Pace,
    last: String,
}

impl Teller {
    fn new(output: Format) -> Self {
        let screen = (output == Format::Text && screen::is_drawn_on()).then(Screen::default);
        Self { output, screen, pace: Pace::default(), last: String::new() }
    }

    fn tell(&mut self, picture: &Picture, now: Timestamp, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let estimate = self.pace.look(picture, now);
        if let Some(screen) = &mut self.screen {
            let size = terminal();
            let detail =
                if picture.state.is_final() { Detail::Full } else { Detail::Lines(size.rows.saturating_sub(1)) };
            let text = text::text(picture, estimate.as_ref(), detail);
            return Ok(screen.draw(streams.out, &text, size.columns)?);
        }
        let line = match self.output {
            Format::Text => text::line(picture),
            Format::Json => json::json(picture).to_string(),
        };
        if line != self.last {
            writeln!(streams.out, "{line}")?;
            streams.out.flush()?;
            self.last = line;
        }
        Ok(())
    }
}
