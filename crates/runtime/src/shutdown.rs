//! Ending in order: not ready, servers drained, controllers stopped, the lease given back.
//!
//! A pod that is told to end is still called for some seconds, as nobody told the callers yet. So each [`Stage`] begins
//! when the one before has ended, or has had its time:
//!
//! | stage | what happens | ends |
//! |---|---|---|
//! | `Drain` | not ready any more; servers say `Connection: close` and go on | after its time |
//! | `Servers` | servers take no more connections and finish | with the last of its tasks |
//! | `Controllers` | nothing new is begun | with the last of its tasks |
//! | `Lease` | another replica may lead | with the last of its tasks |
//!
//! The lease is given back when nothing that writes is left. A second signal ends all of it at once.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

#[cfg(test)]
mod tests;

/// One step of the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Callers are asked to go elsewhere and are still served.
    Drain,
    /// Servers finish.
    Servers,
    /// Controllers finish.
    Controllers,
    /// The lease is given back.
    Lease,
}

/// How long each stage may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How long callers are still served: until they have heard that we are not ready.
    pub drain: Duration,
    /// How long servers may take to finish what they are answering.
    pub servers: Duration,
    /// How long controllers may take to finish what they are doing.
    pub controllers: Duration,
    /// How long the lease may take to be given back.
    pub lease: Duration,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every task ended in its stage.
    InOrder,
    /// Some tasks did not end in time and were left behind.
    LeftBehind(usize),
    /// A second signal cut it short.
    AtOnce,
}

/// The end of a program, which its tasks wait for. Clones are the same end.
#[derive(Clone)]
pub struct Shutdown {
    patience: Patience,
    begun: CancellationToken,
    stages: [StageTasks; 4],
}

#[derive(Clone)]
struct StageTasks {
    begun: CancellationToken,
    tasks: TaskTracker,
}

impl Stage {
    /// In order.
    pub const ALL: [Self; 4] = [Self::Drain, Self::Servers, Self::Controllers, Self::Lease];
}

/// Together below the 30 s after which Kubernetes kills.
impl Default for Patience {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { drain: seconds(12), servers: seconds(6), controllers: seconds(6), lease: seconds(4) }
    }
}

impl Patience {
    const fn of(&self, stage: Stage) -> Duration {
        match stage {
            Stage::Drain => self.drain,
            Stage::Servers => self.servers,
            Stage::Controllers => self.controllers,
            Stage::Lease => self.lease,
        }
    }
}

impl Shutdown {
    /// An end that has not begun.
    pub fn new(patience: Patience) -> Self {
        let stages = Stage::ALL.map(|_| StageTasks { begun: CancellationToken::new(), tasks: TaskTracker::new() });
        Self { patience, begun: CancellationToken::new(), stages }
    }

    /// Cancelled when a stage begins. Whoever waits for it ends then.
    pub fn token(&self, stage: Stage) -> CancellationToken {
        self.of(stage).begun.clone()
    }

    /// Starts a task that ends in a stage, by waiting for its [token](Self::token). The stage waits for the task.
    pub fn spawn<T: Send + 'static>(
        &self,
        stage: Stage,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.of(stage).tasks.spawn(task)
    }

    /// Begins the end without a signal, for a reason that is logged.
    pub fn begin(&self, reason: &str) {
        if !self.begun.is_cancelled() {
            info!(reason, "ending");
            self.begun.cancel();
        }
    }

    /// A readiness check: fails from the beginning of the end.
    pub fn check_not_begun(&self) -> Result<(), String> {
        if self.begun.is_cancelled() { Err("ending".to_owned()) } else { Ok(()) }
    }

    /// Waits for SIGTERM, SIGINT or [`Self::begin`], and carries the end out.
    pub async fn run(&self) -> std::io::Result<Ending> {
        let mut signals = Signals::listen()?;
        tokio::select! {
            name = signals.next() => self.begin(name),
            () = self.begun.cancelled() => {}
        }
        Ok(tokio::select! {
            ending = self.end() => ending,
            name = signals.next() => {
                warn!(signal = name, "ending at once");
                self.stages.iter().for_each(|stage| stage.begun.cancel());
                Ending::AtOnce
            }
        })
    }

    async fn end(&self) -> Ending {
        let mut left_behind = 0;
        for stage in Stage::ALL {
            info!(?stage, "begins");
            let StageTasks { begun, tasks } = self.of(stage);
            begun.cancel();
            tasks.close();
            if stage == Stage::Drain {
                tokio::time::sleep(self.patience.drain).await;
            }
            let patience = if stage == Stage::Drain { Duration::ZERO } else { self.patience.of(stage) };
            if timeout(patience, tasks.wait()).await.is_err() {
                warn!(?stage, tasks = tasks.len(), "did not end in time");
                left_behind += tasks.len();
            }
        }
        if left_behind == 0 { Ending::InOrder } else { Ending::LeftBehind(left_behind) }
    }

    const fn of(&self, stage: Stage) -> &StageTasks {
        &self.stages[stage as usize]
    }
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
