use proptest::prelude::*;

use super::*;

const PERCENT: fn(u8) -> PodCount = PodCount::Percent;

fn share(partition: PodCount) -> Share<'static> {
    Share { newest: "mesh-2", pinned: "mesh-1", partition }
}

fn newcomer(id: &str) -> Newcomer<'_> {
    Newcomer { id, member: None }
}

fn member(ordinal: u32) -> Member<'static> {
    Member { namespace: "shop", name: "web", ordinal }
}

fn seen<'a>(uid: &'a str, revision: &'a str) -> Seen<'a> {
    Seen { uid, revision, reservation: None, member: None, is_counted: true }
}

/// `o` for every pod that got an old revision, `n` for every one that got the newest.
fn given(ledger: &mut Ledger, partition: PodCount, pods: usize) -> String {
    let first = ledger.reservations();
    let decide = |at| match ledger.reserve(&share(partition), &newcomer(&format!("r.{}", first + at))) {
        Given::Newest => 'n',
        Given::Pinned => 'o',
        Given::Full => 'f',
    };
    (0..pods).map(decide).collect()
}

fn never() -> BTreeSet<String> {
    BTreeSet::new()
}

#[test]
fn new_pods_are_dealt_out_in_the_exact_proportion() {
    let dealt = |partition, pods| given(&mut Ledger::of_set("u"), partition, pods);
    assert_eq!(dealt(PERCENT(90), 20), "onooooooooooooooooon");
    assert_eq!(dealt(PERCENT(50), 6), "ononon");
    assert_eq!(dealt(PERCENT(33), 6), "onnonn");
    assert_eq!(dealt(PodCount::Pods(7), 10), "ooooooonnn");
    assert_eq!(dealt(PodCount::Pods(1), 3), "onn");
    // Of five pods 99 % would keep all: one sees the canary all the same.
    assert_eq!(dealt(PERCENT(99), 5), "onooo");
    assert_eq!((dealt(PERCENT(0), 3), dealt(PERCENT(100), 3)), ("nnn".to_owned(), "ooo".to_owned()));
}

#[test]
fn the_same_reservation_is_answered_the_same() {
    let mut ledger = Ledger::of_set("u");
    assert_eq!(given(&mut ledger, PERCENT(50), 2), "on");
    let before = ledger.clone();
    assert_eq!(ledger.reserve(&share(PERCENT(50)), &newcomer("r.0")), Given::Pinned);
    assert_eq!(ledger.reserve(&share(PERCENT(50)), &newcomer("r.1")), Given::Newest);
    assert_eq!(ledger, before);
    // The set was edited between: what was the newest is old by now.
    let edited = Share { newest: "mesh-3", ..share(PERCENT(50)) };
    assert_eq!(ledger.reserve(&edited, &newcomer("r.1")), Given::Pinned);
}

#[test]
fn a_full_ledger_gives_the_pinned_revision_and_counts_nothing() {
    let mut ledger = Ledger::of_set("u");
    let dealt = given(&mut ledger, PERCENT(0), MAX_RESERVATIONS + 1);
    assert_eq!(dealt.find('f'), Some(MAX_RESERVATIONS));
    assert_eq!(ledger.reservations(), MAX_RESERVATIONS);
}

#[test]
fn seen_pods_are_counted_once_and_expired_ones_not_at_all() {
    let mut ledger = Ledger::of_set("u");
    given(&mut ledger, PERCENT(50), 4);
    let arrived = Seen { reservation: Some("r.1"), ..seen("p-1", "mesh-2") };
    let gone = Seen { reservation: Some("r.2"), is_counted: false, ..seen("p-2", "mesh-1") };
    let folded = ledger.fold([arrived, gone], &BTreeSet::from(["r.3".to_owned()]));
    let expected = Ledger {
        living: BTreeMap::from([("mesh-2".to_owned(), 1)]),
        reserved: BTreeMap::from([("mesh-1".to_owned(), vec!["r.0".to_owned()])]),
        ..Ledger::of_set("u")
    };
    assert_eq!(folded, expected);
    let summary = Summary { pods: 2, pinned: 1, newest: 1, target: 1, excess: 0 };
    assert_eq!(folded.summary(&share(PERCENT(50))), summary);
    assert_eq!(folded.fold([arrived, gone], &never()), expected, "folding twice changes nothing");
}

#[test]
fn every_other_revision_is_old() {
    let ledger = Ledger::of_set("u").fold([seen("a", "mesh-0"), seen("b", "mesh-1"), seen("c", "mesh-2")], &never());
    let stands = |newest| ledger.summary(&Share { newest, ..share(PERCENT(90)) });
    assert_eq!(stands("mesh-2"), Summary { pods: 3, pinned: 2, newest: 1, target: 2, excess: 0 });
    assert_eq!(stands("mesh-3"), Summary { pods: 3, pinned: 3, newest: 0, target: 2, excess: 0 });
    let all_new = ledger.fold([seen("a", "mesh-2"), seen("b", "mesh-2")], &never());
    assert_eq!(all_new.summary(&share(PERCENT(50))), Summary { pods: 2, pinned: 0, newest: 2, target: 1, excess: 1 });
}

#[test]
fn a_member_that_is_created_again_keeps_its_revision() {
    let pods = |revisions: &[&'static str]| {
        let pods = revisions
            .iter()
            .zip(0..)
            .map(|(revision, ordinal)| Seen { member: Some(member(ordinal)), ..seen("p", revision) });
        Ledger::of_set("u").fold(pods.collect::<Vec<_>>(), &never())
    };
    // 0 and 2 are old. Nobody has told the ledger yet that any of them has ended.
    for (ordinal, expected) in [(0, Given::Pinned), (1, Given::Newest), (2, Given::Pinned)] {
        let mut ledger = pods(&["mesh-1", "mesh-2", "mesh-1"]);
        let again = Newcomer { id: "r", member: Some(member(ordinal)) };
        assert_eq!(ledger.reserve(&share(PERCENT(50)), &again), expected, "{ordinal}");
        assert_eq!(ledger.summary(&share(PERCENT(50))).pods, 3);
        assert_eq!(Ledger::read(&ledger.stored()), ledger);
    }
    // One that is new is one more.
    let mut ledger = pods(&["mesh-1", "mesh-2", "mesh-1"]);
    ledger.reserve(&share(PERCENT(50)), &Newcomer { id: "r", member: Some(member(3)) });
    assert_eq!(ledger.summary(&share(PERCENT(50))).pods, 4);
    assert_eq!(ledger.stored().ordinals["shop/web"]["mesh-1"], "0,2");
}

#[test]
fn an_update_takes_its_pods_from_the_same_counts() {
    let old = ["a", "b", "c", "d"].map(|uid| seen(uid, "mesh-1"));
    let ledger = Ledger::of_set("u").fold(old, &never());
    let share = share(PERCENT(50));
    let mut claimed = ledger.clone();
    assert_eq!(claimed.claim(&share, old), ["a", "b"]);
    assert_eq!(claimed.claim(&share, old), ["a", "b"], "asking again takes nothing more");
    let summary = Summary { pods: 4, pinned: 2, newest: 2, target: 2, excess: 0 };
    assert_eq!(claimed.summary(&share), summary);
    // A new pod sees them as updated, and so does a fold that has not seen the update yet.
    assert_eq!(claimed.clone().reserve(&share, &newcomer("r")), Given::Pinned);
    assert_eq!(claimed.fold(old, &never()), claimed);
    // One was updated, one is gone, and the claims with them.
    let folded = claimed.fold([seen("a", "mesh-2"), old[2], old[3]], &never());
    assert_eq!(folded, Ledger::of_set("u").fold([seen("a", "mesh-2"), old[2], old[3]], &never()));
    // An update that never came.
    assert_eq!(claimed.fold(old, &BTreeSet::from(["a".to_owned(), "b".to_owned()])), ledger);
}

#[test]
fn a_pod_that_was_claimed_before_an_edit_is_claimed_once() {
    let old = [seen("a", "mesh-1"), seen("b", "mesh-1")];
    let mut ledger = Ledger::of_set("u").fold(old, &never());
    assert_eq!(ledger.claim(&share(PERCENT(0)), [old[0]]), ["a"]);
    let edited = Share { newest: "mesh-3", ..share(PERCENT(0)) };
    assert_eq!(ledger.claim(&edited, [old[0]]), ["a"]);
    let stored = ledger.stored();
    assert_eq!(stored.claimed, BTreeMap::from([("mesh-3".to_owned(), vec!["a".to_owned()])]));
    assert_eq!(stored.living, BTreeMap::from([("mesh-1".to_owned(), 1), ("mesh-3".to_owned(), 1)]));
}

#[test]
fn a_pod_is_claimed_from_its_reservation_while_it_is_not_counted_yet() {
    let share = share(PERCENT(50));
    let mut ledger = Ledger::of_set("u").fold([seen("a", "mesh-1"), seen("b", "mesh-1")], &never());
    let unseen = Seen { reservation: Some("r.9"), ..seen("c", "mesh-0") };
    assert_eq!(ledger.claim(&share, [unseen]), Vec::<&str>::new(), "nobody counts it yet");
    ledger.reserved.insert("mesh-0".to_owned(), vec!["r.9".to_owned()]);
    assert_eq!(ledger.claim(&share, [unseen]), ["c"]);
    assert_eq!(ledger.summary(&share), Summary { pods: 3, pinned: 2, newest: 1, target: 2, excess: 0 });
    assert_eq!(ledger.reservations(), 0);
}

/// A pod of the model: what is true of it, and what the leader sees.
#[derive(Clone, Debug)]
struct Model {
    id: String,
    revision: String,
    stage: Stage,
    /// The revision the leader believes it to have; `None` before it has seen it.
    seen: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Admitted,
    Stored,
    /// Deleted, or refused after us.
    Gone,
}

#[derive(Clone, Debug)]
enum Step {
    Admit(usize),
    Store(usize),
    /// Refused where it was not stored yet, deleted where it was.
    Lose(usize),
    /// The leader sees the truth about the first so many pods, and folds.
    Fold(usize),
    /// What the leader never saw has waited long enough.
    Expire,
    Update(usize),
    Edit,
}

fn creations() -> BoxedStrategy<Step> {
    prop_oneof![
        (1_usize..8).prop_map(Step::Admit),
        (0_usize..64).prop_map(Step::Store),
        (0_usize..64).prop_map(Step::Fold),
    ]
    .boxed()
}

fn anything() -> BoxedStrategy<Step> {
    let other = prop_oneof![
        (0_usize..64).prop_map(Step::Lose),
        Just(Step::Expire),
        (0_usize..8).prop_map(Step::Update),
        Just(Step::Edit),
    ];
    prop_oneof![3 => creations(), 2 => other].boxed()
}

fn partitions() -> impl Strategy<Value = PodCount> {
    prop_oneof![(0_u8..=100).prop_map(PodCount::Percent), (0_u32..30).prop_map(PodCount::Pods)]
}

/// A cluster as a value, and the ledger, which is held to it after every step.
struct Game {
    ledger: Ledger,
    /// The pods the ledger should believe in: all but those it was told the end of.
    pods: Vec<Model>,
    admitted: usize,
    partition: PodCount,
    newest: String,
}

impl Game {
    fn new(partition: PodCount) -> Self {
        Self { ledger: Ledger::of_set("u"), pods: Vec::new(), admitted: 0, partition, newest: "mesh-2".to_owned() }
    }

    fn believed(&self) -> (usize, usize) {
        (self.pods.len(), self.pods.iter().filter(|pod| pod.revision != self.newest).count())
    }

    fn play(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let newest = self.newest.clone();
        let share = Share { newest: &newest, pinned: "mesh-1", partition: self.partition };
        match step {
            Step::Admit(pods) => {
                for _ in 0..*pods {
                    self.admit(&share)?;
                }
            }
            Step::Store(at) => self.pick(*at, Stage::Admitted, Stage::Stored),
            Step::Lose(at) => self.pick(*at, if at % 2 == 0 { Stage::Admitted } else { Stage::Stored }, Stage::Gone),
            Step::Fold(upto) => self.fold(*upto, |_| false),
            Step::Expire => self.fold(0, |pod| pod.stage == Stage::Gone && pod.seen.is_none()),
            Step::Update(pods) => self.update(&share, *pods)?,
            Step::Edit => self.newest = format!("mesh-{}", self.admitted + 3),
        }
        let summary = self.ledger.summary(&Share { newest: &self.newest, ..share });
        prop_assert_eq!((summary.pods, summary.pinned), self.believed());
        prop_assert_eq!(&Ledger::read(&self.ledger.stored()), &self.ledger);
        Ok(())
    }

    fn admit(&mut self, share: &Share<'_>) -> Result<(), TestCaseError> {
        let id = format!("r.{}", self.admitted);
        self.admitted += 1;
        let is_newest = self.ledger.reserve(share, &newcomer(&id)) == Given::Newest;
        let revision = if is_newest { share.newest } else { share.pinned }.to_owned();
        self.pods.push(Model { id, revision, stage: Stage::Admitted, seen: None });
        if is_newest { self.check_enough_are_old() } else { Ok(()) }
    }

    fn update(&mut self, share: &Share<'_>, pods: usize) -> Result<(), TestCaseError> {
        let seen_pods: Vec<(String, String)> =
            self.pods.iter().filter_map(|pod| Some((pod.id.clone(), pod.seen.clone()?))).take(pods).collect();
        let granted = self.ledger.claim(share, seen_pods.iter().map(|(id, revision)| seen(id, revision)));
        let is_granted = |pod: &&mut Model| granted.contains(&pod.id.as_str()) && pod.revision != share.newest;
        let mut is_changed = false;
        for pod in self.pods.iter_mut().filter(is_granted) {
            share.newest.clone_into(&mut pod.revision);
            is_changed = true;
        }
        if is_changed { self.check_enough_are_old() } else { Ok(()) }
    }

    fn check_enough_are_old(&self) -> Result<(), TestCaseError> {
        let (pods, old) = self.believed();
        let target = pinned_target(self.partition, pods);
        prop_assert!(old >= target, "{old} of {pods} are old, {target} should be");
        Ok(())
    }

    fn pick(&mut self, at: usize, from: Stage, to: Stage) {
        let fitting = self.pods.iter_mut().filter(|pod| pod.stage == from).collect::<Vec<_>>();
        let number = fitting.len().max(1);
        if let Some(pod) = fitting.into_iter().nth(at % number) {
            pod.stage = to;
        }
    }

    fn fold(&mut self, upto: usize, is_expired: fn(&Model) -> bool) {
        for pod in self.pods.iter_mut().take(upto).filter(|pod| pod.stage == Stage::Stored) {
            pod.seen = Some(pod.revision.clone());
        }
        let is_seen_to_be_gone = |at: usize, pod: &Model| at < upto && pod.stage == Stage::Gone && pod.seen.is_some();
        let (mut visible, mut kept) = (Vec::new(), Vec::new());
        for (at, pod) in self.pods.iter().enumerate() {
            if !is_seen_to_be_gone(at, pod) {
                visible.extend(
                    pod.seen.as_deref().map(|revision| Seen { reservation: Some(&pod.id), ..seen(&pod.id, revision) }),
                );
                kept.push(pod.clone());
            }
        }
        let expired = self.pods.iter().filter(|pod| is_expired(pod)).map(|pod| pod.id.clone()).collect();
        self.ledger = self.ledger.fold(visible, &expired);
        kept.retain(|pod| !is_expired(pod));
        self.pods = kept;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens in between, the ledger counts the pods it can know of, and no decision leaves too few old ones.
    #[test]
    fn the_ledger_counts_what_there_is(partition in partitions(), steps in prop::collection::vec(anything(), 1..80)) {
        let mut game = Game::new(partition);
        for step in &steps {
            game.play(step)?;
        }
    }

    /// While pods only come, the proportion is exact after every one of them, however they arrive and are seen.
    #[test]
    fn creations_alone_keep_it_exact(partition in partitions(), steps in prop::collection::vec(creations(), 1..80)) {
        let mut game = Game::new(partition);
        for step in &steps {
            game.play(step)?;
            let (pods, old) = game.believed();
            prop_assert_eq!(old, pinned_target(partition, pods));
        }
    }

    /// After pods went, creations make it exact again.
    #[test]
    fn creations_close_an_excess(tenths in 0_u8..=10, steps in prop::collection::vec(anything(), 1..40)) {
        let partition = PodCount::Percent(tenths * 10);
        let mut game = Game::new(partition);
        // What was the newest and is not any more, no creation makes new.
        for step in steps.iter().filter(|step| !matches!(step, Step::Edit)) {
            game.play(step)?;
        }
        game.play(&Step::Admit(game.pods.len() * 10 + 20))?;
        let (pods, old) = game.believed();
        prop_assert_eq!(old, pinned_target(partition, pods));
    }
}
