use proptest::prelude::*;

use super::*;

fn wanted(version: &str) -> Wanted {
    Wanted { version: version.to_owned(), url: "https://a/b".to_owned(), sha256: Some("a".repeat(64)) }
}

fn record(owner: Option<&str>, asked: Option<(&str, OutcomeState, bool)>) -> Record {
    let asked = asked.map(|(version, state, given_up)| Asked {
        wanted: wanted(version),
        state,
        message: String::new(),
        given_up,
    });
    Record { owner: owner.map(wanted), asked, good: None }
}

fn update(version: &str, may_fetch: bool, again: bool) -> Next {
    Next::Update { wanted: wanted(version), may_fetch, again }
}

#[test]
fn the_owners_new_word_is_an_update() {
    let done = |version| Some((version, OutcomeState::Done, false));
    assert_eq!(next(&Record::default(), Some(&wanted("v1"))), update("v1", true, false));
    assert_eq!(next(&record(Some("v1"), done("v1")), Some(&wanted("v2"))), update("v2", true, false));
    assert_eq!(next(&record(Some("v1"), done("v1")), Some(&wanted("v1"))), Next::Rest);
    assert_eq!(next(&record(Some("v1"), done("v1")), None), Next::Rest);
    assert_eq!(next(&Record::default(), None), Next::Rest);
}

#[test]
fn b13_a_lower_version_that_the_owner_asks_for_stays_after_a_restart() {
    assert_eq!(
        next(&record(Some("v2"), Some(("v2", OutcomeState::Done, false))), Some(&wanted("v1"))),
        update("v1", true, false)
    );
    // What the record says after it, which is all that a new agent has.
    assert_eq!(next(&record(Some("v1"), Some(("v1", OutcomeState::Done, false))), Some(&wanted("v1"))), Next::Rest);
}

#[test]
fn a_request_holds_until_the_owner_says_something_new() {
    let asked = record(Some("v1"), Some(("v2", OutcomeState::Done, false)));
    assert_eq!(next(&asked, Some(&wanted("v1"))), Next::Rest);
    assert_eq!(next(&asked, Some(&wanted("v3"))), update("v3", true, false));
}

#[test]
fn what_a_kill_interrupted_goes_on_and_only_the_owners_word_is_fetched() {
    let working = |version| Some((version, OutcomeState::Working, false));
    assert_eq!(next(&record(Some("v1"), working("v1")), Some(&wanted("v1"))), update("v1", true, true));
    assert_eq!(next(&record(Some("v1"), working("v2")), Some(&wanted("v1"))), update("v2", false, true));
    // The app wrote a record of its own.
    assert_eq!(next(&record(None, working("v9")), None), update("v9", false, true));
}

#[test]
fn what_failed_for_good_is_left_alone_until_somebody_asks_anew() {
    let failed = |given_up| record(Some("v1"), Some(("v1", OutcomeState::Failed, given_up)));
    assert_eq!(next(&failed(true), Some(&wanted("v1"))), Next::Rest);
    assert_eq!(next(&failed(false), Some(&wanted("v1"))), update("v1", true, true));
    assert_eq!(next(&failed(true), Some(&wanted("v2"))), update("v2", true, false));
}

fn play(may_fetch: bool, events: Vec<Event>) -> Vec<Action> {
    let (mut course, first) = Course::begin(may_fetch);
    let mut actions = vec![first];
    actions.extend(events.into_iter().map(|event| course.take(event)));
    actions
}

fn told() -> Event {
    Event::Reloaded(Ok(Reloaded::Told("SIGHUP to 7".to_owned())))
}

#[test]
fn a_good_update_runs_through() {
    assert_eq!(
        play(
            true,
            vec![
                Event::Looked { is_stored: false },
                Event::Fetched(Ok(())),
                Event::Placed(Ok(())),
                told(),
                Event::Checked(Ok("seen".to_owned())),
            ]
        ),
        [
            Action::Look,
            Action::Fetch,
            Action::Place,
            Action::Reload,
            Action::Check,
            Action::End(Ok("SIGHUP to 7; seen".to_owned()))
        ]
    );
}

#[test]
fn what_was_touched_is_restored_and_what_was_not_is_left_alone() {
    let failure = Failure::not_loaded("no");
    let after = |event: Event| play(true, vec![event, Event::Restored("the app has v1 again".to_owned())]);
    for event in [
        Event::Placed(Err(failure.clone())),
        Event::Reloaded(Err(failure.clone())),
        Event::Checked(Err(failure.clone())),
    ] {
        assert_eq!(
            after(event),
            [Action::Look, Action::Restore, Action::End(Err(Failure::not_loaded("no; the app has v1 again")))]
        );
    }
    assert_eq!(play(true, vec![Event::Fetched(Err(failure.clone()))]), [Action::Look, Action::End(Err(failure))]);
}

#[test]
fn what_is_stored_is_not_fetched_and_what_may_not_be_fetched_is_not() {
    assert_eq!(play(false, vec![Event::Looked { is_stored: true }]), [Action::Look, Action::Place]);
    let actions = play(false, vec![Event::Looked { is_stored: false }]);
    assert!(matches!(&actions[1], Action::End(Err(failure)) if failure.kind == Kind::NotLoaded));
}

fn results() -> impl Strategy<Value = Vec<bool>> {
    prop::collection::vec(any::<bool>(), 8)
}

proptest! {
    /// Whatever comes of the steps, the course ends, the app has the version exactly if it ends well, and a version that
    /// was placed and not taken is taken back.
    #[test]
    fn every_course_ends_in_the_old_version_or_the_new_one(results in results(), may_fetch: bool) {
        let (mut course, mut action) = Course::begin(may_fetch);
        let mut has_new = false;
        let failure = Failure::not_loaded("no");
        for good in results.into_iter().chain([true; 8]) {
            let outcome = if good { Ok(()) } else { Err(failure.clone()) };
            let event = match action.clone() {
                Action::Look => Event::Looked { is_stored: good },
                Action::Fetch => { prop_assert!(may_fetch); Event::Fetched(outcome) }
                // It may fail before the switch or after it.
                Action::Place => { has_new = true; Event::Placed(outcome) }
                Action::Reload => Event::Reloaded(outcome.map(|()| Reloaded::Told(String::new()))),
                Action::Check => Event::Checked(outcome.map(|()| String::new())),
                Action::Restore => { has_new = false; Event::Restored(String::new()) }
                Action::End(ending) => { prop_assert_eq!(ending.is_ok(), has_new); return Ok(()) }
            };
            action = course.take(event);
        }
        prop_assert!(false, "it does not end: {:?}", action);
    }
}
