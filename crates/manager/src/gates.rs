//! The features that can be switched on and off.

use pillion_runtime::gates::{Gate, Maturity};

/// Reviews of pods.
pub const POD_WEBHOOK: Gate = Gate {
    name: "PodWebhook",
    default: true,
    maturity: Maturity::Beta,
    meaning: "pods are reviewed when they are created; off: no pod is, and sets are only checked",
};

/// Sidecars that end with the other containers.
pub const SIDECAR_FINISH: Gate = Gate {
    name: "SidecarFinish",
    default: false,
    maturity: Maturity::Alpha,
    meaning: "containers marked as sidecars are ended when all others have ended; off: they keep running",
};

/// All of them.
pub static GATES: [Gate; 2] = [POD_WEBHOOK, SIDECAR_FINISH];
