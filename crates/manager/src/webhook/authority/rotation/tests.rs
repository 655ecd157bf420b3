use proptest::prelude::*;

use super::*;

const LIFETIME: Duration = Duration::from_hours(9);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + seconds).unwrap()
}

fn known(name: &str, ends: Timestamp) -> Known {
    Known { certificate: name.to_owned(), not_after: ends }
}

fn fresh(name: &str) -> Known {
    known(name, add(at(0), LIFETIME))
}

fn set(names: &[&str]) -> BTreeSet<Certificate> {
    names.iter().copied().map(str::to_owned).collect()
}

fn seen(current: &str, next: Option<&str>, bundles: &[&[&str]]) -> Seen {
    let held = Held { current: fresh(current), next: next.map(fresh), is_asked_for: false };
    Seen { secret: Some(held), bundles: Some(bundles.iter().map(|names| set(names)).collect()), is_reachable: None }
}

#[test]
fn without_a_secret_one_is_made() {
    let mut rotation = Rotation::new(LIFETIME);
    let orders = rotation.next(&Seen { secret: None, bundles: None, is_reachable: None }, at(0));
    let wanted = Orders { secret: Step::Create, serve_current: false, trust: BTreeSet::new(), is_trusted: false };
    assert_eq!(orders, wanted);
}

#[test]
fn the_first_leaf_is_served_before_it_is_trusted_and_ready_only_then() {
    let mut rotation = Rotation::new(LIFETIME);
    let orders = rotation.next(&seen("a", None, &[&[]]), at(0));
    assert_eq!(orders, Orders { secret: Step::Rest, serve_current: true, trust: set(&["a"]), is_trusted: false });
    // One of two webhooks is not enough.
    let orders = rotation.next(&seen("a", None, &[&["a"], &[]]), at(1));
    assert_eq!(orders, Orders { secret: Step::Rest, serve_current: false, trust: set(&["a"]), is_trusted: false });
    let orders = rotation.next(&seen("a", None, &[&["a"], &["a"]]), at(1));
    assert_eq!(orders, Orders { secret: Step::Rest, serve_current: false, trust: set(&["a"]), is_trusted: true });
    // A registration that is gone trusts nobody.
    let gone = Seen { bundles: None, ..seen("a", None, &[]) };
    assert!(!rotation.next(&gone, at(2)).is_trusted);
}

#[test]
fn an_outage_is_followed_by_one_new_authority() {
    use Step::{Prepare, Rest};

    let mut rotation = Rotation::new(LIFETIME);
    let mut steps = |reachable: &[bool], next: Option<&str>, second: i64| -> Vec<Step> {
        let looks = reachable.iter().map(|is_reachable| {
            let seen = Seen { is_reachable: Some(*is_reachable), ..seen("a", next, &[&["a"]]) };
            rotation.next(&seen, at(second)).secret
        });
        looks.collect()
    };
    // While it lasts a new path would be shown to users, too; and the authority is young at first.
    assert_eq!(steps(&[true, false, false], None, 3600), [Rest, Rest, Rest]);
    assert_eq!(steps(&[true, true], None, 299), [Rest, Rest]);
    assert_eq!(steps(&[true, true], None, 300), [Prepare, Prepare]);
    // Another replica may have written it.
    assert_eq!(steps(&[true], Some("b"), 301), [Rest]);
    assert_eq!(steps(&[true], None, 3600), [Rest]);
    assert_eq!(steps(&[false, true], None, 3600), [Rest, Prepare]);
}

#[test]
fn without_a_registration_nobody_is_shown_a_path() {
    let mut rotation = Rotation::new(LIFETIME);
    for is_reachable in [false, true] {
        let seen = Seen { bundles: None, is_reachable: Some(is_reachable), ..seen("a", None, &[]) };
        assert_eq!(rotation.next(&seen, at(3600)).secret, Step::Rest);
    }
}

#[test]
fn a_new_authority_is_prepared_when_a_third_of_the_time_is_left_or_somebody_asks() {
    let mut rotation = Rotation::new(LIFETIME);
    let young = seen("a", None, &[&["a"]]);
    assert_eq!(rotation.next(&young, at(6 * 3600 - 1)).secret, Step::Rest);
    assert_eq!(rotation.next(&young, at(6 * 3600)).secret, Step::Prepare);
    let mut asked = young.clone();
    asked.secret.as_mut().unwrap().is_asked_for = true;
    assert_eq!(rotation.next(&asked, at(0)).secret, Step::Prepare);
    // One is prepared at a time.
    let mut prepared = seen("a", Some("b"), &[&["a"]]);
    prepared.secret.as_mut().unwrap().is_asked_for = true;
    assert_eq!(rotation.next(&prepared, at(6 * 3600)).secret, Step::Rest);
}

#[test]
fn the_next_authority_signs_when_it_was_trusted_long_enough_without_a_break() {
    let mut rotation = Rotation::new(LIFETIME);
    let trusted = seen("a", Some("b"), &[&["a", "b"], &["a", "b"]]);
    let not_everywhere = seen("a", Some("b"), &[&["a", "b"], &["a"]]);
    assert_eq!(rotation.next(&not_everywhere, at(0)).secret, Step::Rest);
    assert_eq!(rotation.next(&trusted, at(1)).secret, Step::Rest);
    assert_eq!(rotation.next(&trusted, at(15)).secret, Step::Rest);
    assert_eq!(rotation.next(&not_everywhere, at(16)).secret, Step::Rest);
    assert_eq!(rotation.next(&trusted, at(17)).secret, Step::Rest);
    assert_eq!(rotation.next(&trusted, at(31)).secret, Step::Rest);
    assert_eq!(rotation.next(&trusted, at(32)).secret, Step::Promote);
}

#[test]
fn what_signed_before_is_trusted_for_five_minutes_more() {
    let mut rotation = Rotation::new(LIFETIME);
    rotation.next(&seen("a", None, &[&["a"]]), at(0));
    let orders =
        |serve_current| Orders { secret: Step::Rest, serve_current, trust: set(&["a", "b"]), is_trusted: true };
    let replaced = seen("b", None, &[&["a", "b"]]);
    assert_eq!(rotation.next(&replaced, at(10)), orders(false));
    assert_eq!(rotation.next(&replaced, at(24)), orders(false));
    assert_eq!(rotation.next(&replaced, at(25)), orders(true));
    assert_eq!(rotation.next(&replaced, at(324)).trust, set(&["a", "b"]));
    assert_eq!(rotation.next(&replaced, at(325)).trust, set(&["b"]));
}

#[test]
fn an_authority_that_is_not_trusted_yet_is_not_served_with() {
    let mut rotation = Rotation::new(LIFETIME);
    rotation.next(&seen("a", None, &[&["a"]]), at(0));
    let orders = rotation.next(&seen("b", None, &[&["a"]]), at(1));
    assert_eq!(orders, Orders { secret: Step::Rest, serve_current: false, trust: set(&["a", "b"]), is_trusted: true });
}

#[test]
fn a_lost_secret_takes_no_trust_away() {
    let mut rotation = Rotation::new(LIFETIME);
    rotation.next(&seen("a", None, &[&["a"]]), at(0));
    let lost = Seen { secret: None, ..seen("a", None, &[&["a"]]) };
    let orders = rotation.next(&lost, at(1));
    assert_eq!(orders, Orders { secret: Step::Create, serve_current: false, trust: set(&["a"]), is_trusted: true });
}

#[test]
fn a_strange_certificate_may_be_another_replicas_for_five_minutes() {
    let mut rotation = Rotation::new(LIFETIME);
    assert_eq!(rotation.next(&seen("a", None, &[&["a", "x"]]), at(0)).trust, set(&["a", "x"]));
    assert_eq!(rotation.next(&seen("a", None, &[&["a", "x"]]), at(299)).trust, set(&["a", "x"]));
    // Another one begins anew.
    assert_eq!(rotation.next(&seen("a", None, &[&["a", "y"]]), at(300)).trust, set(&["a", "y"]));
    assert_eq!(rotation.next(&seen("a", None, &[&["a", "y"]]), at(600)).trust, set(&["a"]));
    let crowd: Vec<String> = (0..9).map(|number| format!("x{number}")).collect();
    let crowd: Vec<&str> = crowd.iter().map(String::as_str).collect();
    assert_eq!(rotation.next(&seen("a", None, &[&crowd]), at(601)).trust, set(&["a"]));
}

/// A cluster in the small: one Secret, one registration with two webhooks, and replicas that see both late.
struct Cluster {
    secret: Option<Held>,
    secret_version: u32,
    bundles: Vec<BTreeSet<Certificate>>,
    /// What was, for replicas and API servers that have not heard of what is.
    past: Vec<Moment>,
    made: u32,
}

#[derive(Clone)]
struct Moment {
    time: i64,
    secret: Option<Held>,
    secret_version: u32,
    bundles: Vec<BTreeSet<Certificate>>,
}

struct Replica {
    rotation: Rotation,
    /// Seconds by which its sight is late.
    lag: i64,
    /// Seconds between its rounds.
    pace: i64,
}

impl Cluster {
    fn new() -> Self {
        let bundles = vec![BTreeSet::new(), BTreeSet::new()];
        Self { secret: None, secret_version: 0, bundles, past: Vec::new(), made: 0 }
    }

    fn remember(&mut self, now: i64) {
        let Self { secret, secret_version, bundles, .. } = &*self;
        let moment =
            Moment { time: now, secret: secret.clone(), secret_version: *secret_version, bundles: bundles.clone() };
        self.past.push(moment);
    }

    fn as_of(&self, time: i64) -> Moment {
        let found = self.past.iter().rev().find(|moment| moment.time <= time).or(self.past.first());
        found.expect("there is a past").clone()
    }

    fn authority(&mut self, now: i64) -> Known {
        self.made += 1;
        known(&format!("ca{}", self.made), add(at(now), LIFETIME))
    }

    /// One round of a replica, as the keeper does it.
    fn round(&mut self, replica: &mut Replica, now: i64) {
        let Moment { secret, secret_version: version, bundles, .. } = self.as_of(now - replica.lag);
        let seen = Seen { secret: secret.clone(), bundles: Some(bundles.clone()), is_reachable: None };
        let orders = replica.rotation.next(&seen, at(now));
        let is_unchanged = self.secret_version == version;
        match (orders.secret, secret.clone()) {
            (Step::Create, _) if is_unchanged => {
                let current = match replica.rotation.serving() {
                    Some(serving) => known(serving, add(at(now), LIFETIME)),
                    None => self.authority(now),
                };
                self.secret = Some(Held { current, next: None, is_asked_for: false });
                self.secret_version += 1;
            }
            (Step::Prepare, Some(held)) if is_unchanged => {
                let next = Some(self.authority(now));
                self.secret = Some(Held { next, is_asked_for: false, ..held });
                self.secret_version += 1;
            }
            (Step::Promote, Some(Held { next: Some(next), .. })) if is_unchanged => {
                self.secret = Some(Held { current: next, next: None, is_asked_for: false });
                self.secret_version += 1;
            }
            _ => {}
        }
        if secret.is_some() && bundles.iter().any(|bundle| *bundle != orders.trust) {
            self.bundles = vec![orders.trust.clone(); 2];
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the replicas see late, and though a replica starts anew at times, the Secret is deleted, and a new
    /// authority is asked for again and again: every API server trusts every replica that was ready.
    #[test]
    fn no_replica_serves_what_is_not_trusted(
        lags in prop::collection::vec((0i64..4, 1i64..6), 1..4),
        disturbances in prop::collection::vec((60i64..1_500, 0u8..4), 0..12),
        api_server_lag in 0i64..4,
    ) {
        let mut cluster = Cluster::new();
        let replica = |lag, pace| Replica { rotation: Rotation::new(LIFETIME), lag, pace };
        let mut replicas: Vec<Replica> = lags.iter().map(|(lag, pace)| replica(*lag, *pace)).collect();
        let mut were_ready = vec![false; replicas.len()];
        for now in 0..2_400i64 {
            for (when, what) in &disturbances {
                if *when != now {
                    continue;
                }
                match what {
                    3 => {
                        // All at once: whoever starts anew makes another authority than the one that is served.
                        cluster.secret = None;
                        cluster.secret_version += 1;
                        let (lag, pace) = (replicas[0].lag, replicas[0].pace);
                        replicas[0] = replica(lag, pace);
                        were_ready[0] = false;
                    }
                    0 => {
                        cluster.secret = None;
                        cluster.secret_version += 1;
                    }
                    1 => {
                        if let Some(held) = &mut cluster.secret {
                            held.is_asked_for = true;
                            cluster.secret_version += 1;
                        }
                    }
                    // It starts anew, and gets no reviews until it is ready again.
                    _ => {
                        let (lag, pace) = (replicas[0].lag, replicas[0].pace);
                        replicas[0] = replica(lag, pace);
                        were_ready[0] = false;
                    }
                }
            }
            cluster.remember(now);
            for replica in &mut replicas {
                if now % replica.pace == 0 {
                    cluster.round(replica, now);
                }
            }
            let heard = cluster.as_of(now - api_server_lag).bundles;
            for (position, replica) in replicas.iter().enumerate() {
                let Some(serving) = replica.rotation.serving() else { continue };
                let is_trusted = heard.iter().all(|bundle| bundle.contains(serving));
                prop_assert!(
                    is_trusted || !were_ready[position],
                    "replica {position} serves {serving} at {now}, the API server trusts {heard:?}"
                );
                were_ready[position] |= is_trusted;
            }
        }
        prop_assert!(were_ready.iter().all(|ready| *ready));
        let trusted: BTreeSet<_> = cluster.bundles.iter().flatten().collect();
        prop_assert!(trusted.len() == 1, "old authorities stay trusted: {trusted:?}");
    }
}
