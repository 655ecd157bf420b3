//! What the plugin `pod_probe` is told. What it asks is in the pod's annotation `kruise.io/podprobe`.

/// Asks what the pod's annotation `kruise.io/podprobe` lists, and sets those conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodProbe {
    /// How often the pod is looked at, to set again what another writer has overwritten.
    pub reassert_seconds: u32,
}
