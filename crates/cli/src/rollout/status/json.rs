//! How a rollout stands, for programs. Fields may be added, and none changes its meaning.

use pillion_api::PodCount;
use pillion_rollout::{Counts, Stalled};
use serde_json::{Map, Value, json};

use crate::rollout::edits::json_of;
use crate::rollout::picture::{Picture, WorkloadPicture};

pub(super) fn json(picture: &Picture) -> Value {
    let progress = &picture.progress;
    let pods = progress.counts.pods;
    let revisions = progress.revisions.iter();
    let revisions = revisions.map(|(name, count)| (name.clone(), json!({"pods": count.pods, "ready": count.ready})));
    let blocked = progress.blocked.iter();
    let blocked = blocked.map(|it| json!({"pods": it.pods, "code": it.reason.code(), "message": it.words}));
    json!({
        "set": picture.set,
        "state": picture.state.word(),
        "code": picture.state.reason().code(),
        "newest": picture.newest,
        "from": picture.from,
        "counts": counts(&progress.counts),
        "revisions": revisions.collect::<Map<_, _>>(),
        "maxUnavailable": effective(picture.max_unavailable, pods, progress.max_unavailable),
        "partition": effective(picture.partition, pods, progress.pinned),
        "isProbing": picture.is_probing,
        "underWay": picture.under_way,
        "next": picture.next,
        "blocked": blocked.collect::<Vec<_>>(),
        "stalled": progress.stalled.as_ref().map(stalled),
        "healthGate": {"unhealthy": progress.gate.unhealthy, "limit": progress.gate.limit, "isClosed": progress.gate.is_closed},
        "workloads": picture.workloads.iter().map(workload).collect::<Vec<_>>(),
        "notes": picture.controller,
    })
}

fn counts(counts: &Counts) -> Value {
    json!({
        "pods": counts.pods,
        "ready": counts.ready,
        "updated": counts.updated,
        "updatedReady": counts.updated_ready,
        "underWay": counts.updating,
        "needsRecreate": counts.needs_recreate,
        "waiting": counts.waiting,
    })
}

fn effective(given: PodCount, of: usize, is: usize) -> Value {
    json!({"given": json_of(given), "of": of, "is": is})
}

fn stalled(stalled: &Stalled) -> Value {
    json!({"code": stalled.reason.code(), "message": stalled.message})
}

fn workload(workload: &WorkloadPicture) -> Value {
    json!({
        "kind": workload.kind,
        "namespace": workload.namespace,
        "name": workload.name,
        "counts": counts(&workload.counts),
        "stalled": workload.stalled.as_ref().map(stalled),
    })
}
