//! Where samples come from: what containers used, and when.
//!
//! A source hands samples out one at a time and keeps none: whoever takes them knows which are wanted.

use pillion_rightsize::Usage;

pub mod kubelet;
pub mod metrics_server;

pub(super) use kubelet::Kubelets;
pub(super) use metrics_server::MetricsServer;

/// What a container used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample<'a> {
    /// The namespace of the pod.
    pub namespace: &'a str,
    /// The name of the pod.
    pub pod: &'a str,
    /// The name of the container.
    pub container: &'a str,
    /// What it used.
    pub usage: Usage,
}

/// Takes samples.
pub trait Taker: Send {
    /// Whether samples of a pod are of use.
    fn wants(&self, namespace: &str, pod: &str) -> bool;
    /// Takes one.
    fn take(&mut self, sample: &Sample<'_>);
}

/// A source of samples.
pub(super) enum Source {
    MetricsServer(MetricsServer),
    Kubelets(Kubelets),
}

impl Source {
    /// Hands out all samples there are now; else why there are none. Some may have been handed out before it failed.
    pub(super) async fn read(&mut self, taker: &mut dyn Taker) -> Result<(), String> {
        match self {
            Self::MetricsServer(server) => server.read(taker).await,
            Self::Kubelets(kubelets) => kubelets.read(taker).await,
        }
    }
}
