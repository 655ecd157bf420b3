//! More cpu for the start of a container, and when it ends.
//!
//! Containers start one after the other where some are native sidecars, and so does their boost end: that of a sidecar when
//! its own start is over, that of a container when the pod is ready.

use jiff::{SignedDuration, Timestamp};
use pillion_pod::QosClass;
use pillion_quantity::Resource;
use serde_json::Value;

use super::held::{ContainerKind, ContainerResources, Held};
use super::limit_range::LimitRanges;
use super::pod::{Container, Pod};
use super::wanted::{Sizing, proportion};
use crate::policy::{Autoscaler, BoostBy};

/// Whether an object gives some container more.
pub(crate) fn is_given(autoscaler: &Autoscaler) -> bool {
    autoscaler.boost.is_some() || autoscaler.containers.iter().any(|(_, policy)| policy.boost.is_some())
}

/// What a container gets for its start, if it gets more: what it was to have, with more cpu.
pub(crate) fn begin(
    held: &Held<'_>,
    to: ContainerResources,
    sizing: &Sizing<'_>,
    qos: QosClass,
) -> Option<ContainerResources> {
    let policy = sizing.autoscaler.policy(held.name);
    let boost = policy.boost.filter(|_| sizing.gates.startup_boost && !policy.is_off)?;
    let base = to.requests.cpu.or(held.has.requests.cpu).filter(|base| *base > 0)?;
    let boosted = match boost.by {
        BoostBy::Factor(times) => base.saturating_mul(times.max(1).into()),
        BoostBy::Millicores(more) => base.saturating_add(more),
    };
    let mut boosted = sizing.max_boost.map_or(boosted, |most| boosted.min(most));
    let mut to = to;
    if policy.requests_only {
        // Requests alone would take a Guaranteed pod out of its class.
        if qos == QosClass::Guaranteed {
            return None;
        }
        if let Some(limit) = held.has.limits.cpu.filter(|limit| boosted > *limit) {
            // One below, so that a Burstable pod does not become Guaranteed either.
            boosted = (limit - 1).max(1);
        }
    } else {
        to.limits.cpu =
            proportion::limit(held, Resource::Cpu, Some(boosted), &LimitRanges::default()).0.or(to.limits.cpu);
    }
    if boosted <= base {
        return None;
    }
    to.requests.cpu = Some(boosted);
    Some(to)
}

/// What a container had, as it is kept while it has more.
pub(crate) fn before(has: ContainerResources) -> String {
    let Value::Object(fields) = has.to_json() else { return String::new() };
    let side = |side: &str| fields.get(side).cloned().unwrap_or_default();
    format!(r#"{{"requests":{},"limits":{}}}"#, side("requests"), side("limits"))
}

/// Whether the boost of a container is over.
pub(crate) fn is_over(pod: &Pod, container: &Container, sizing: &Sizing<'_>, now: Timestamp) -> bool {
    let seconds = sizing.autoscaler.policy(&container.name).boost.map_or(0, |boost| boost.seconds);
    let since = match container.kind {
        ContainerKind::NativeSidecar => container.running_since.filter(|_| container.is_started),
        ContainerKind::App | ContainerKind::PlainInit => pod.ready_since,
    };
    since.is_some_and(|since| now.duration_since(since) >= SignedDuration::from_secs(seconds.into()))
}
