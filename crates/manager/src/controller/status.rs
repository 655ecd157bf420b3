//! From what is known of a set to its status. Pure: the same facts give the same status, whatever the time.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pillion_api::{BlastRadius, Meaning, Reason, SidecarSetStatus};
use pillion_inject::coverage::Tally;
use pillion_rollout::ledger::Summary;

use super::observed::Observed;
use super::rollout::Note;
use crate::conditions::{Stands, condition};

mod rolling;

/// So many pods are named.
pub(super) const EXAMPLES: usize = 3;

/// What is known of a set.
#[derive(Clone, Debug)]
pub(super) struct Facts<'a> {
    pub(super) generation: i64,
    /// Why it cannot be used, if it cannot.
    pub(super) problem: Option<&'a str>,
    /// Why no pod gets its sidecars at present, if none does.
    pub(super) excuse: Option<Reason>,
    pub(super) tally: Tally,
    /// Some of the pods that were missed, as namespace/name.
    pub(super) missed: Vec<String>,
    pub(super) observed: Option<&'a Observed>,
    pub(super) blast_radius: Option<BlastRadius>,
    /// What it means, if it can be used.
    pub(super) set: Option<&'a Meaning>,
    /// How the update of running pods stands, if that is known.
    pub(super) rollout: Option<Note>,
    /// How its canary stands, if new pods get revisions in proportion.
    pub(super) canary: Option<Summary>,
    /// The custom versions of its revisions, by name.
    pub(super) custom_versions: BTreeMap<String, String>,
}

/// The status of a set. What `before` has that is still so keeps its time.
pub(super) fn status(facts: &Facts<'_>, before: Option<&SidecarSetStatus>, now: Timestamp) -> SidecarSetStatus {
    let Facts { tally, .. } = facts;
    let is_valid = facts.problem.is_none();
    let count = |pods: usize| is_valid.then(|| i32::try_from(pods).unwrap_or(i32::MAX));
    let [progressing, stalled] = rolling::conditions(facts);
    let stands = [ready(facts), progressing, stalled, fails_open(facts)];
    let earlier = before.and_then(|before| before.conditions.as_deref());
    let conditions = stands.into_iter().map(|stands| condition(stands, facts.generation, earlier, now)).collect();
    let mut status = SidecarSetStatus {
        observed_generation: Some(facts.generation),
        conditions: Some(conditions),
        matched_pods: count(tally.matched),
        injected_pods: count(tally.injected),
        ready_pods: count(tally.ready),
        left_out_pods: count(tally.left_out),
        missed_pods: count(tally.missed),
        predating_pods: count(tally.predating),
        selector_observed_time: facts.observed.map(|observed| Time(observed.since)),
        selector_hash: facts.observed.map(|observed| observed.hash.clone()),
        blast_radius: facts.blast_radius.clone(),
        ..SidecarSetStatus::default()
    };
    rolling::fill_in(&mut status, facts);
    status
}

fn ready(facts: &Facts<'_>) -> Stands {
    let Facts { tally, .. } = facts;
    let said = |holds, reason: Reason, message| Stands { kind: "Ready", holds, reason: reason.name(), message };
    let coded = |reason: Reason, what: &str| format!("{}: {what}: {}", reason.code(), reason.cure());
    if let Some(problem) = facts.problem {
        return said(false, Reason::SetInvalid, format!("{}: {problem}", Reason::SetInvalid.code()));
    }
    if tally.missed > 0 {
        let what = format!("{} without the sidecars{}", created(tally.missed), named(facts));
        return said(false, Reason::Missed, coded(Reason::Missed, &what));
    }
    if let Some((reason, message)) = facts.rollout.as_ref().and_then(rolling::stalled) {
        return said(false, reason, format!("{}: {message}", reason.code()));
    }
    match facts.excuse {
        Some(reason @ Reason::SwitchedOff) => said(false, reason, coded(reason, "injection is switched off")),
        Some(reason) => said(true, reason, coded(reason, &format!("new pods get no sidecars; {}", so_far(tally)))),
        None => said(true, Reason::Injected, so_far(tally)),
    }
}

fn fails_open(facts: &Facts<'_>) -> Stands {
    let kind = "FailOpen";
    if facts.problem.is_none() && facts.tally.missed > 0 {
        let reason = Reason::FailOpen;
        let what = format!("{} while the webhook could not be reached", created(facts.tally.missed));
        let message = format!("{}: {what}{}: {}", reason.code(), named(facts), reason.cure());
        return Stands { kind, holds: true, reason: reason.name(), message };
    }
    Stands {
        kind,
        holds: false,
        reason: "NoneMissed",
        message: "no pod that should carry the sidecars lacks them".to_owned(),
    }
}

/// `3 of 4 pods carry the sidecars, 1 predates the set`
fn so_far(tally: &Tally) -> String {
    if tally.matched == 0 {
        return "no pod matches the selector".to_owned();
    }
    let mut text = format!("{} of {} pods carry the sidecars", tally.injected, tally.matched);
    let also =
        [(tally.predating, "predates the set", "predate the set"), (tally.left_out, "was left out", "were left out")];
    for (count, one, more) in also.into_iter().filter(|(count, ..)| *count > 0) {
        let verb = if count == 1 { one } else { more };
        // Writing to a String cannot fail.
        let _ = write!(text, ", {count} {verb}");
    }
    text
}

/// `1 pod`, `2 pods`
fn pods(count: usize) -> String {
    if count == 1 { "1 pod".to_owned() } else { format!("{count} pods") }
}

/// `1 pod was created`, `2 pods were created`
fn created(count: usize) -> String {
    format!("{} {} created", pods(count), if count == 1 { "was" } else { "were" })
}

/// ` (shop/web-1, shop/web-2 and 3 more)`
fn named(facts: &Facts<'_>) -> String {
    let names: Vec<&str> = facts.missed.iter().take(EXAMPLES).map(String::as_str).collect();
    let more = facts.tally.missed.saturating_sub(names.len());
    match (names.is_empty(), more) {
        (true, _) => String::new(),
        (false, 0) => format!(" ({})", names.join(", ")),
        (false, _) => format!(" ({} and {more} more)", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conditions::MAX_MESSAGE;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    pub(super) fn facts() -> Facts<'static> {
        let tally = Tally { matched: 5, injected: 4, ready: 3, left_out: 1, missed: 0, predating: 0 };
        Facts {
            generation: 7,
            problem: None,
            excuse: None,
            tally,
            missed: Vec::new(),
            observed: None,
            blast_radius: None,
            set: None,
            rollout: None,
            canary: None,
            custom_versions: BTreeMap::new(),
        }
    }

    fn shown(status: &SidecarSetStatus) -> Vec<String> {
        let conditions = status.conditions.iter().flatten();
        conditions.map(|it| format!("{}={} {}: {}", it.type_, it.status, it.reason, it.message)).collect()
    }

    const REST: [&str; 3] = [
        "Progressing=False Unknown: it is not known yet how running pods stand",
        "Stalled=False Unknown: it is not known yet how running pods stand",
        "FailOpen=False NoneMissed: no pod that should carry the sidecars lacks them",
    ];

    #[test]
    fn a_set_that_is_well_says_how_far_it_is() {
        let observed = Observed { hash: "h".to_owned(), since: at(5) };
        let status = status(&Facts { observed: Some(&observed), ..facts() }, None, at(9));
        let counts = [status.matched_pods, status.injected_pods, status.ready_pods, status.left_out_pods];
        assert_eq!(counts, [Some(5), Some(4), Some(3), Some(1)]);
        assert_eq!((status.missed_pods, status.predating_pods), (Some(0), Some(0)));
        assert_eq!(
            (status.selector_hash.as_deref(), status.selector_observed_time.clone()),
            (Some("h"), Some(Time(at(5))))
        );
        assert_eq!(status.observed_generation, Some(7));
        assert!(
            status
                .conditions
                .iter()
                .flatten()
                .all(|it| it.observed_generation == Some(7) && it.last_transition_time == Time(at(9)))
        );
        let shown = shown(&status);
        assert_eq!(shown[0], "Ready=True Injected: 4 of 5 pods carry the sidecars, 1 was left out");
        assert_eq!(shown[1..], REST);
        // What rollouts will fill is left out.
        assert_eq!((status.updated_pods, status.latest_revision, status.revisions), (None, None, None));
    }

    #[test]
    fn words_fit_the_numbers() {
        let says = |tally: Tally| shown(&status(&Facts { tally, ..facts() }, None, at(9)))[0].clone();
        let none = Tally::default();
        for (tally, expected) in [
            (none, "no pod matches the selector"),
            (Tally { matched: 1, injected: 1, ..none }, "1 of 1 pods carry the sidecars"),
            (
                Tally { matched: 3, predating: 1, left_out: 2, ..none },
                "0 of 3 pods carry the sidecars, 1 predates the set, 2 were left out",
            ),
            (
                Tally { matched: 9, injected: 7, predating: 2, ..none },
                "7 of 9 pods carry the sidecars, 2 predate the set",
            ),
        ] {
            assert_eq!(says(tally), format!("Ready=True Injected: {expected}"));
        }
    }

    #[test]
    fn missed_pods_are_named_and_the_set_is_not_ready() {
        let names = |count: usize| (1..=count).map(|number| format!("shop/web-{number}")).collect::<Vec<_>>();
        for (missed, expected) in [
            (1, "1 pod was created without the sidecars (shop/web-1)"),
            (3, "3 pods were created without the sidecars (shop/web-1, shop/web-2, shop/web-3)"),
            (5, "5 pods were created without the sidecars (shop/web-1, shop/web-2, shop/web-3 and 2 more)"),
        ] {
            let tally = Tally { missed, ..facts().tally };
            // Also where nothing is injected at present: what was missed was missed.
            let status = status(&Facts { tally, missed: names(missed.min(4)), ..facts() }, None, at(9));
            let shown = shown(&status);
            assert_eq!(
                shown[0],
                format!("Ready=False Missed: PL410: {expected}: Restart them, or switch recreation on.")
            );
            assert!(shown[3].starts_with("FailOpen=True FailOpen: PL412: "), "{}", shown[3]);
        }
    }

    #[test]
    fn a_set_that_injects_nothing_says_why() {
        let says = |excuse| shown(&status(&Facts { excuse: Some(excuse), ..facts() }, None, at(9)))[0].clone();
        let so_far = "new pods get no sidecars; 4 of 5 pods carry the sidecars, 1 was left out";
        assert_eq!(
            says(Reason::InjectionPaused),
            format!("Ready=True InjectionPaused: PL204: {so_far}: {}", Reason::InjectionPaused.cure())
        );
        assert_eq!(
            says(Reason::Observed),
            format!("Ready=True Observed: PL207: {so_far}: {}", Reason::Observed.cure())
        );
        assert_eq!(
            says(Reason::SwitchedOff),
            format!("Ready=False SwitchedOff: PL210: injection is switched off: {}", Reason::SwitchedOff.cure())
        );
    }

    #[test]
    fn a_set_with_errors_says_what_they_are_and_counts_nothing() {
        let problem = "spec.containers[0].resourcesPolicy: PL114: there is no expression: write one";
        let status = status(&Facts { problem: Some(problem), ..facts() }, None, at(9));
        assert_eq!(shown(&status)[0], format!("Ready=False SetInvalid: PL212: {problem}"));
        assert_eq!((status.matched_pods, status.missed_pods), (None, None));
    }

    #[test]
    fn a_condition_keeps_its_time_while_its_status_is_the_same() {
        let first = status(&facts(), None, at(1));
        let again = status(&facts(), Some(&first), at(2));
        assert_eq!(again, first, "the same facts are the same status");
        let missing = Facts { tally: Tally { missed: 1, ..facts().tally }, generation: 8, ..facts() };
        let worse = status(&missing, Some(&again), at(3));
        let times = |status: &SidecarSetStatus| {
            let conditions = status.conditions.iter().flatten();
            conditions.map(|it| it.last_transition_time.0.as_second()).collect::<Vec<_>>()
        };
        assert_eq!(times(&worse), [3, 1, 1, 3]);
        assert!(worse.conditions.iter().flatten().all(|it| it.observed_generation == Some(8)));
    }

    #[test]
    fn no_message_is_longer_than_the_api_server_takes() {
        let problem = "ä".repeat(40_000);
        let status = status(&Facts { problem: Some(&problem), ..facts() }, None, at(9));
        let longest = status.conditions.iter().flatten().map(|it| it.message.len()).max();
        assert!(longest.is_some_and(|length| (MAX_MESSAGE - 1..=MAX_MESSAGE).contains(&length)));
    }
}
