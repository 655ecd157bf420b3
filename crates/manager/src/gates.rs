//! The features that can be switched on and off.

use pillion_runtime::gates::{Gate, Maturity};

/// Reviews of pods.
pub const POD_WEBHOOK: Gate = Gate {
    name: "PodWebhook",
    default: true,
    maturity: Maturity::Beta,
    meaning: "pods are reviewed when they are created; off: no pod is, and sets are only checked",
};

/// All of them.
pub static GATES: [Gate; 1] = [POD_WEBHOOK];
