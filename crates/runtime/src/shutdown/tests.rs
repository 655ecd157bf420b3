//! The end, with a clock that tests turn and signals sent to the test itself.

use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::{Signal as Sent, getpid, kill_process};
use tokio::time::Instant;

use super::*;

/// Who ended when, in seconds since the beginning of the end.
type Diary = Arc<Mutex<Vec<(&'static str, u64)>>>;

fn patience() -> Patience {
    let seconds = Duration::from_secs;
    Patience { drain: seconds(10), servers: seconds(5), controllers: seconds(5), lease: seconds(5) }
}

/// A task that works on for some time after its stage has begun.
fn worker(shutdown: &Shutdown, stage: Stage, name: &'static str, work: u64, diary: &Diary) {
    let (token, diary, began) = (shutdown.token(stage), Arc::clone(diary), Instant::now());
    shutdown.spawn(stage, async move {
        token.cancelled().await;
        tokio::time::sleep(Duration::from_secs(work)).await;
        diary.lock().push((name, began.elapsed().as_secs()));
    });
}

#[tokio::test(start_paused = true)]
async fn each_stage_begins_when_the_one_before_has_ended() {
    let shutdown = Shutdown::new(patience());
    let diary = Diary::default();
    worker(&shutdown, Stage::Lease, "lease", 1, &diary);
    worker(&shutdown, Stage::Controllers, "controller", 2, &diary);
    worker(&shutdown, Stage::Servers, "server", 3, &diary);
    assert_eq!(shutdown.check_not_begun(), Ok(()));
    shutdown.begin("the test says so");
    assert_eq!(shutdown.check_not_begun(), Err("ending".to_owned()));
    assert_eq!(shutdown.run().await.unwrap(), Ending::InOrder);
    assert_eq!(*diary.lock(), [("server", 13), ("controller", 15), ("lease", 16)]);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_end_is_left_behind_and_the_next_stage_begins() {
    let shutdown = Shutdown::new(patience());
    let diary = Diary::default();
    worker(&shutdown, Stage::Servers, "slow server", 60, &diary);
    worker(&shutdown, Stage::Servers, "server", 1, &diary);
    worker(&shutdown, Stage::Lease, "lease", 0, &diary);
    shutdown.begin("the test says so");
    assert_eq!(shutdown.run().await.unwrap(), Ending::LeftBehind(1));
    assert_eq!(*diary.lock(), [("server", 11), ("lease", 15)]);
}

#[tokio::test(start_paused = true)]
async fn a_task_started_during_the_end_is_waited_for_too() {
    let shutdown = Shutdown::new(patience());
    let diary = Diary::default();
    let (late, late_diary) = (shutdown.clone(), Arc::clone(&diary));
    let drain = shutdown.token(Stage::Drain);
    shutdown.spawn(Stage::Drain, async move {
        drain.cancelled().await;
        worker(&late, Stage::Controllers, "late", 2, &late_diary);
    });
    shutdown.begin("the test says so");
    assert_eq!(shutdown.run().await.unwrap(), Ending::InOrder);
    assert_eq!(*diary.lock(), [("late", 12)]);
}

/// One test for both signals: they are the process's, and another test's waiting would hear them as well.
#[tokio::test]
async fn the_first_signal_begins_the_end_and_the_second_ends_it_at_once() {
    for signal in [Sent::TERM, Sent::INT] {
        let shutdown = Shutdown::new(Patience { drain: Duration::from_mins(10), ..patience() });
        let lease = shutdown.token(Stage::Lease);
        let run = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { shutdown.run().await.unwrap() }
        });
        // The handlers are in place once the task waits; until then a signal would end the test.
        let _listens = Signals::listen().unwrap();
        tokio::task::yield_now().await;
        kill_process(getpid(), signal).unwrap();
        shutdown.token(Stage::Drain).cancelled().await;
        assert!(!lease.is_cancelled() && !run.is_finished());
        kill_process(getpid(), signal).unwrap();
        assert_eq!(run.await.unwrap(), Ending::AtOnce);
        assert!(lease.is_cancelled(), "whoever still can, ends");
    }
}
