//! Leader election on a real API server: one leads at a time, and another takes over when it is gone.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::DeleteParams;
use pillion_e2e::Scene;
use pillion_runtime::lease::{Election, Leadership, LeaseMetrics, Terms, unique_identity};
use pillion_testbed::{Look, until};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const LEASE: &str = "election";
const DURATION: Duration = Duration::from_secs(3);
const RETRY: Duration = Duration::from_millis(500);
/// For a machine that has other things to do.
const SLACK: Duration = Duration::from_secs(1);

fn terms() -> Terms {
    Terms::new(DURATION, Duration::from_secs(1), RETRY).expect("terms that can be kept")
}

/// One replica of a program that wants to lead.
struct Replica {
    identity: String,
    leadership: Leadership,
    stop: CancellationToken,
    /// While set, the replica does nothing, as if its process were frozen.
    frozen: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Replica {
    async fn start(scene: &Scene, name: &str) -> Result<Self> {
        let identity = unique_identity(name);
        // Connections of its own, as a process has.
        let client = scene.cluster.client().await?;
        let (election, leadership) =
            Election::new(client, &scene.namespace, LEASE, identity.clone(), terms(), LeaseMetrics::default());
        let (stop, frozen) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
        let task = tokio::spawn(freezable(election.run(stop.clone()), Arc::clone(&frozen)));
        Ok(Self { identity, leadership, stop, frozen, task })
    }

    fn leads(&self) -> bool {
        self.leadership.is_held_for(Duration::ZERO)
    }
}

async fn freezable(future: impl Future<Output = ()>, frozen: Arc<AtomicBool>) {
    let mut future = pin!(future);
    let mut look = tokio::time::interval(Duration::from_millis(10));
    poll_fn(|context| {
        if !frozen.load(Ordering::SeqCst) {
            return future.as_mut().poll(context);
        }
        // Nobody else would wake this task after the thaw.
        while look.poll_tick(context).is_ready() {}
        Poll::Pending
    })
    .await;
}

/// Counts the moments at which more than one leads.
fn watch_over(replicas: &[Replica]) -> (Arc<AtomicUsize>, JoinHandle<()>) {
    let all: Vec<Leadership> = replicas.iter().map(|replica| replica.leadership.clone()).collect();
    let violations = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&violations);
    let task = tokio::spawn(async move {
        loop {
            let leading = all.iter().filter(|leadership| leadership.is_held_for(Duration::ZERO)).count();
            counted.fetch_add(usize::from(leading > 1), Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    (violations, task)
}

/// Waits until a replica other than `before` leads, and says which and how long it took.
async fn next_leader(replicas: &[Replica], before: Option<usize>) -> Result<(usize, Duration)> {
    let began = Instant::now();
    let leader = until("another replica to lead", Duration::from_secs(30), || async {
        let leader = replicas.iter().enumerate().find(|(number, one)| Some(*number) != before && one.leads());
        Ok(leader.map_or_else(|| Look::NotYet("none leads".to_owned()), |(number, _)| Look::Done(number)))
    })
    .await?;
    Ok((leader, began.elapsed()))
}

/// Waits until a replica knows who leads.
async fn knows(replica: &Replica, leader: &Replica) -> Result<()> {
    let known = until("a replica to know who leads", Duration::from_secs(10), || async {
        let holder = replica.leadership.holder();
        let known = holder.as_deref() == Some(leader.identity.as_str());
        Ok(if known { Look::Done(()) } else { Look::NotYet(format!("{} thinks {holder:?}", replica.identity)) })
    });
    Ok(known.await?)
}

async fn all_know(replicas: &[Replica], leader: usize) -> Result<()> {
    for replica in replicas {
        knows(replica, &replicas[leader]).await?;
    }
    Ok(())
}

async fn spec(scene: &Scene) -> Result<LeaseSpec> {
    scene.api::<Lease>().get(LEASE).await?.spec.context("the lease has no spec")
}

#[tokio::test(flavor = "multi_thread")]
async fn ci_one_of_three_leads_at_a_time_while_leaders_are_killed_frozen_and_stopped() -> Result<()> {
    let scene = Scene::open("lease").await?;
    let mut replicas = Vec::new();
    for name in ["one", "two", "three"] {
        replicas.push(Replica::start(&scene, name).await?);
    }
    let (violations, guard) = watch_over(&replicas);

    let (first, _) = next_leader(&replicas, None).await?;
    let held = spec(&scene).await?;
    assert_eq!(held.holder_identity.as_deref(), Some(replicas[first].identity.as_str()));
    assert_eq!((held.lease_duration_seconds, held.lease_transitions), (Some(3), Some(0)));

    // Killed: nothing is given back, so the others wait for the duration, and no longer.
    replicas[first].task.abort();
    let (second, took) = next_leader(&replicas, Some(first)).await?;
    assert!(took < DURATION + RETRY + SLACK, "{took:?} after a kill");
    assert!(!replicas[first].leads());
    assert_eq!(spec(&scene).await?.lease_transitions, Some(1));

    // Frozen: it stops to believe by itself, and learns of the other when it thaws.
    replicas[second].frozen.store(true, Ordering::SeqCst);
    tokio::time::timeout(DURATION, replicas[second].leadership.lost()).await.context("a frozen leader went on")?;
    let (third, took) = next_leader(&replicas, Some(second)).await?;
    assert!(took < DURATION + RETRY + SLACK, "{took:?} after a freeze");
    assert_ne!(third, first, "the killed one is gone");
    replicas[second].frozen.store(false, Ordering::SeqCst);
    knows(&replicas[second], &replicas[third]).await?;
    assert!(replicas[third].leads() && !replicas[second].leads());

    // Stopped in order: the lease is free at once.
    replicas[third].stop.cancel();
    let (last, took) = next_leader(&replicas, Some(third)).await?;
    assert_eq!(last, second, "the only one left");
    assert!(took < RETRY + SLACK, "{took:?} after a stop");
    assert_eq!(spec(&scene).await?.holder_identity.as_deref(), Some(replicas[second].identity.as_str()));
    assert_eq!(spec(&scene).await?.lease_transitions, Some(3));

    guard.abort();
    assert_eq!(violations.load(Ordering::SeqCst), 0, "moments at which two led");
    scene.close().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn ci_a_lease_deleted_behind_its_holder_is_left_alone_until_the_holder_knows() -> Result<()> {
    let scene = Scene::open("lease-deleted").await?;
    let mut replicas = Vec::new();
    for name in ["one", "two", "three"] {
        replicas.push(Replica::start(&scene, name).await?);
    }
    let (violations, guard) = watch_over(&replicas);
    let (mut leader, _) = next_leader(&replicas, None).await?;
    for round in 0..2 {
        all_know(&replicas, leader).await?;
        replicas[leader].frozen.store(true, Ordering::SeqCst);
        scene.api::<Lease>().delete(LEASE, &DeleteParams::default()).await?;
        let (next, took) = next_leader(&replicas, Some(leader)).await?;
        assert!(took < DURATION + RETRY + SLACK, "{took:?} in round {round}");
        assert_eq!(spec(&scene).await?.lease_transitions, Some(0), "another lease");
        replicas[leader].frozen.store(false, Ordering::SeqCst);
        leader = next;
    }
    // Nobody is frozen: the holder makes it again, or another after the duration.
    all_know(&replicas, leader).await?;
    scene.api::<Lease>().delete(LEASE, &DeleteParams::default()).await?;
    scene.until::<Lease, _>(LEASE, "to be there again", |_| Look::Done(())).await?;
    assert_eq!(spec(&scene).await?.holder_identity.as_deref(), Some(replicas[leader].identity.as_str()));

    guard.abort();
    assert_eq!(violations.load(Ordering::SeqCst), 0, "moments at which two led");
    scene.close().await?;
    Ok(())
}
