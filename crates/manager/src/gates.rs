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

/// Agents in pods.
pub const IN_POD_AGENT: Gate = Gate {
    name: "InPodAgent",
    default: false,
    maturity: Maturity::Alpha,
    meaning: "agents in pods are given their configurations and rights, and are told of hot updates; off: they are not",
};

/// Native sidecars, sized like other containers.
pub const NATIVE_SIDECAR: Gate = Gate {
    name: "NativeSidecar",
    default: false,
    maturity: Maturity::Alpha,
    meaning: "init containers with restartPolicy Always are recommended for and sized like other containers; off: they are left as they are",
};

/// More cpu while containers start.
pub const CPU_STARTUP_BOOST: Gate = Gate {
    name: "CPUStartupBoost",
    default: false,
    maturity: Maturity::Alpha,
    meaning: "containers get the cpu of a startupBoost until their pod is ready; off: startupBoost does nothing",
};

/// All of them.
pub static GATES: [Gate; 5] = [POD_WEBHOOK, SIDECAR_FINISH, IN_POD_AGENT, NATIVE_SIDECAR, CPU_STARTUP_BOOST];
