//! What a status says of the update of running pods.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use pillion_api::{EffectiveNumber, EffectiveNumbers, Meaning, PodCount, Reason, RevisionStatus, SidecarSetStatus};
use pillion_rollout::ledger::Summary;
use pillion_rollout::{Progress, RevisionCount};

use super::super::rollout::Note;
use super::{Facts, Stands, pods};

/// No more revisions are listed; those with the most pods are.
const MOST_REVISIONS: usize = 64;

/// What stops an update until somebody does something.
pub(super) fn stalled(note: &Note) -> Option<(Reason, String)> {
    if let Some(stalled) = &note.progress.stalled {
        return Some((stalled.reason, stalled.message.clone()));
    }
    let refused = note.refused.as_ref().filter(|_| note.progress.counts.waiting > 0)?;
    Some((Reason::UpdateRefused, format!("{refused}: {}", Reason::UpdateRefused.cure())))
}

pub(super) fn conditions(facts: &Facts<'_>) -> [Stands; 2] {
    let unknown = || (false, "Unknown", "it is not known yet how running pods stand".to_owned());
    let Some((set, note)) = facts.set.zip(facts.rollout.as_ref()) else {
        let invalid = || {
            (false, Reason::SetInvalid.name(), "the set cannot be used, so running pods stay as they are".to_owned())
        };
        let stands = || if facts.problem.is_some() { invalid() } else { unknown() };
        return [("Progressing", stands()), ("Stalled", stands())].map(of_parts);
    };
    let progressing = progressing(set, note, facts.canary.as_ref());
    let stalled = match stalled(note) {
        Some((reason, message)) => (true, reason.name(), format!("{}: {message}", reason.code())),
        None => (false, progressing.1, progressing.2.clone()),
    };
    [("Progressing", progressing), ("Stalled", stalled)].map(of_parts)
}

fn of_parts((kind, (holds, reason, message)): (&'static str, (bool, &'static str, String))) -> Stands {
    Stands { kind, holds, reason, message }
}

fn progressing(set: &Meaning, note: &Note, canary: Option<&Summary>) -> (bool, &'static str, String) {
    let Progress { counts, blocked, .. } = &*note.progress;
    let excess = canary.map_or(0, |canary| canary.excess);
    let excess = if excess > 0 { format!(" ({excess} more than the partition leaves)") } else { String::new() };
    let so_far = format!("{} of {} have revision {}{excess}", counts.updated, pods(counts.pods), set.revision);
    let coded = |reason: Reason, words: &str| (false, reason.name(), format!("{}: {words}", reason.code()));
    if let Some((reason, message)) = stalled(note) {
        return coded(reason, &message);
    }
    if counts.updating > 0 || counts.starting > 0 {
        let under_way = counts.updating.max(counts.starting);
        return (true, Reason::Progressing.name(), format!("{so_far}, {under_way} under way"));
    }
    let held = blocked.iter().find(|it| it.reason != Reason::NeedsRecreate).or(blocked.first());
    match held {
        Some(held) => {
            let words = format!("{so_far}; {}: {}", pods_held(held.pods), held.words);
            coded(held.reason, &words)
        }
        None if counts.pods == 0 => (false, Reason::UpToDate.name(), "no pod carries the sidecars".to_owned()),
        None => (false, Reason::UpToDate.name(), so_far),
    }
}

fn pods_held(count: usize) -> String {
    if count == 1 { "1 pod waits".to_owned() } else { format!("{count} pods wait") }
}

/// Adds the numbers of the update to a status.
pub(super) fn fill_in(status: &mut SidecarSetStatus, facts: &Facts<'_>) {
    let Some(set) = facts.set else { return };
    status.latest_revision = Some(set.revision.clone());
    let Some(note) = &facts.rollout else { return };
    let Progress { counts, revisions, pinned, max_unavailable, .. } = &*note.progress;
    status.updated_pods = Some(number(counts.updated));
    status.updated_ready_pods = Some(number(counts.updated_ready));
    status.needs_recreate_pods = Some(number(counts.needs_recreate));
    status.revisions = Some(listed(set, revisions, &facts.custom_versions));
    let effective =
        |given: PodCount, is: usize| EffectiveNumber { given: written(given), of: number(counts.pods), is: number(is) };
    status.effective = Some(EffectiveNumbers {
        partition: Some(effective(set.update.partition, *pinned)),
        max_unavailable: Some(effective(set.update.max_unavailable, *max_unavailable)),
    });
}

/// The newest first, then those with the most pods.
fn listed(
    set: &Meaning,
    revisions: &BTreeMap<String, RevisionCount>,
    custom_versions: &BTreeMap<String, String>,
) -> Vec<RevisionStatus> {
    let none = RevisionCount::default();
    let newest = [(&set.revision, revisions.get(&set.revision).unwrap_or(&none))];
    let mut others: Vec<_> = revisions.iter().filter(|(name, _)| **name != set.revision).collect();
    others.sort_by(|(one, first), (other, second)| (second.pods, one).cmp(&(first.pods, other)));
    let all = newest.into_iter().chain(others).take(MOST_REVISIONS);
    let status = |(name, count): (&String, &RevisionCount)| RevisionStatus {
        name: name.clone(),
        custom_version: custom_versions.get(name).cloned(),
        pods: number(count.pods),
        ready_pods: number(count.ready),
    };
    all.map(status).collect()
}

fn written(given: PodCount) -> IntOrString {
    match given {
        PodCount::Pods(pods) => IntOrString::Int(i32::try_from(pods).unwrap_or(i32::MAX)),
        PodCount::Percent(percent) => IntOrString::String(format!("{percent}%")),
    }
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pillion_rollout::{Blocked, Counts, Stalled};
    use serde_json::json;

    use super::*;

    fn set() -> Meaning {
        let object = json!({"metadata": {"name": "mesh"}, "spec": {"selector": {"matchLabels": {"app": "web"}},
            "containers": [{"name": "proxy", "image": "proxy:1"}], "updateStrategy": {"partition": "5%", "maxUnavailable": 3}}});
        pillion_api::review(&object).meaning.unwrap()
    }

    fn note(counts: Counts, blocked: Vec<Blocked>, stalled: Option<Stalled>) -> Note {
        let progress = Progress { counts, blocked, stalled, pinned: 1, max_unavailable: 3, ..Progress::default() };
        Note { progress: Arc::new(progress), refused: None }
    }

    fn shown(note: Note) -> [String; 2] {
        let set = set();
        let facts = Facts { set: Some(&set), rollout: Some(note), ..super::super::tests::facts() };
        conditions(&facts).map(|it| format!("{}={} {}: {}", it.kind, it.holds, it.reason, it.message))
    }

    const COUNTS: Counts = Counts {
        pods: 6,
        ready: 6,
        updated: 2,
        updated_ready: 2,
        updating: 0,
        needs_recreate: 0,
        waiting: 4,
        unavailable: 0,
        starting: 0,
    };

    fn held(reason: Reason, pods: usize, words: &str) -> Blocked {
        Blocked { reason, pods, words: words.to_owned() }
    }

    #[test]
    fn an_update_says_how_far_it_is_or_what_holds_it() {
        let under_way = Counts { updating: 1, ..COUNTS };
        let expected = "True Progressing: 2 of 6 pods have revision mesh-8vgrzjwlxf, 1 under way";
        let [progressing, stalled] = shown(note(under_way, vec![held(Reason::BudgetSpent, 3, "x")], None));
        assert_eq!(progressing, format!("Progressing={expected}").replace("True", "true"));
        assert!(stalled.starts_with("Stalled=false Progressing: "), "{stalled}");
        let paused = vec![held(Reason::NeedsRecreate, 1, "env"), held(Reason::UpdatePaused, 4, "the update is paused")];
        let expected = "PL403: 2 of 6 pods have revision mesh-8vgrzjwlxf; 4 pods wait: the update is paused";
        assert_eq!(shown(note(COUNTS, paused, None))[0], format!("Progressing=false UpdatePaused: {expected}"));
        let done = Counts { updated: 6, waiting: 0, ..COUNTS };
        let expected = "Progressing=false UpToDate: 6 of 6 pods have revision mesh-8vgrzjwlxf";
        assert_eq!(shown(note(done, Vec::new(), None))[0], expected);
    }

    #[test]
    fn an_excess_of_the_canary_is_told() {
        let set = set();
        let canary = Some(Summary { pods: 6, pinned: 4, newest: 2, target: 5, excess: 1 });
        let rollout = Some(note(COUNTS, vec![held(Reason::PartitionKeeps, 4, "x")], None));
        let facts = Facts { set: Some(&set), rollout, canary, ..super::super::tests::facts() };
        let expected =
            "PL413: 2 of 6 pods have revision mesh-8vgrzjwlxf (1 more than the partition leaves); 4 pods wait: x";
        assert_eq!(conditions(&facts)[0].message, expected);
    }

    #[test]
    fn what_stops_an_update_is_said_in_both() {
        let stalled = Stalled { reason: Reason::ImageUnavailable, message: "pod shop/web-0 cannot pull".to_owned() };
        let expected = "ImageUnavailable: PL416: pod shop/web-0 cannot pull";
        let updating = Counts { updating: 1, ..COUNTS };
        let shown_stalled = shown(note(updating, Vec::new(), Some(stalled)));
        assert_eq!(shown_stalled, [format!("Progressing=false {expected}"), format!("Stalled=true {expected}")]);
        let refused = Note { refused: Some("pod shop/web-0: forbidden".to_owned()), ..note(COUNTS, Vec::new(), None) };
        let [_, stalled] = shown(refused.clone());
        assert!(stalled.starts_with("Stalled=true UpdateRefused: PL420: pod shop/web-0: forbidden: "), "{stalled}");
        let done = Counts { waiting: 0, ..COUNTS };
        let Note { progress, .. } = note(done, Vec::new(), None);
        assert!(
            shown(Note { progress, ..refused })[1].starts_with("Stalled=false UpToDate"),
            "nothing is left to be written"
        );
    }

    #[test]
    fn numbers_are_told_as_they_are_meant() {
        let set = set();
        let counted = RevisionCount { pods: 3, ready: 2 };
        let progress = Progress {
            counts: COUNTS,
            revisions: [("mesh-a".to_owned(), RevisionCount { pods: 1, ready: 1 }), ("mesh-b".to_owned(), counted)]
                .into(),
            pinned: 1,
            max_unavailable: 3,
            ..Progress::default()
        };
        let custom_versions = [("mesh-b".to_owned(), "v2".to_owned())].into();
        let rollout = Some(Note { progress: Arc::new(progress), refused: None });
        let facts = Facts { set: Some(&set), rollout, custom_versions, ..super::super::tests::facts() };
        let mut status = SidecarSetStatus::default();
        fill_in(&mut status, &facts);
        let expected = json!({"latestRevision": "mesh-8vgrzjwlxf", "updatedPods": 2, "updatedReadyPods": 2, "needsRecreatePods": 0,
            "revisions": [{"name": "mesh-8vgrzjwlxf", "pods": 0, "readyPods": 0},
                {"name": "mesh-b", "customVersion": "v2", "pods": 3, "readyPods": 2}, {"name": "mesh-a", "pods": 1, "readyPods": 1}],
            "effective": {"partition": {"given": "5%", "of": 6, "is": 1}, "maxUnavailable": {"given": 3, "of": 6, "is": 3}}});
        assert_eq!(serde_json::to_value(&status).unwrap(), expected);
    }
}
