//! Which revision of a set a new pod gets, as far as the set alone decides it.

use pillion_api::{Meaning, PodCount, Proportion, RevisionPolicy};

use crate::share::pinned_target;

/// Which revision a new pod gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The set as it stands.
    Latest,
    /// The one the set pins.
    Pinned,
    /// One of the two, so that `updateStrategy.partition` is kept: counted or drawn, as `proportion` says.
    InProportion,
}

/// A number drawn at random, each as likely as the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw(pub u32);

impl Draw {
    /// The draw for another set: as likely to be anything, and another one for each.
    #[must_use]
    pub fn another(self, at: usize) -> Self {
        let step = u32::try_from(at).unwrap_or_default().wrapping_mul(0x9E37_79B9);
        Self(self.0.wrapping_add(step))
    }
}

/// Which revision a pod with these labels gets. Whether injection is paused is not asked here.
pub fn choose<'l>(set: &Meaning, label: impl Fn(&str) -> Option<&'l str>) -> Choice {
    let Some(pin) = &set.injection.pin else { return Choice::Latest };
    if set.update.paused || pin.policy == RevisionPolicy::Always || !is_in_proportion(set, label) {
        return Choice::Pinned;
    }
    match set.update.partition {
        PodCount::Pods(0) | PodCount::Percent(0) => Choice::Latest,
        PodCount::Percent(100..) => Choice::Pinned,
        PodCount::Pods(_) | PodCount::Percent(_) => Choice::InProportion,
    }
}

/// Whether a pod with these labels is one of those the proportion is kept among. The others keep the pinned revision.
pub fn is_in_proportion<'l>(set: &Meaning, label: impl Fn(&str) -> Option<&'l str>) -> bool {
    set.update.selector.as_ref().is_none_or(|selector| selector.matches(label))
}

/// Whether the pods of a set are counted in a ledger.
pub fn has_ledger(set: &Meaning) -> bool {
    let is_partial = set.injection.pin.as_ref().is_some_and(|pin| pin.policy == RevisionPolicy::Partial);
    is_partial && set.injection.proportion == Proportion::Exact
}

/// Whether a draw gives the pinned revision: as likely as it is that a pod, picked from all that match, should have it.
///
/// Where nobody knows how many pods match, a percentage is taken as it is, and a number as all of them.
pub fn draws_pinned(partition: PodCount, matched: Option<usize>, draw: Draw) -> bool {
    let (kept, of) = match (matched.filter(|pods| *pods > 0), partition) {
        (Some(pods), _) => (pinned_target(partition, pods), pods),
        (None, PodCount::Percent(percent)) => (usize::from(percent), 100),
        (None, PodCount::Pods(_)) => return true,
    };
    let draws = u128::from(u32::MAX) + 1;
    u128::from(draw.0) * (of as u128) < (kept as u128) * draws
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn set(strategies: &Value) -> Meaning {
        let mut object = json!({"metadata": {"name": "mesh"}, "spec": {
            "selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "proxy", "image": "proxy:1"}]}});
        for (key, value) in strategies.as_object().unwrap() {
            object["spec"][key] = value.clone();
        }
        let review = pillion_api::review(&object);
        review.meaning.unwrap_or_else(|| panic!("{:?}", review.problems))
    }

    fn chosen(strategies: &Value) -> Choice {
        choose(&set(strategies), |key| (key == "zone").then_some("a"))
    }

    #[test]
    fn the_order_of_the_choice() {
        let pinned = |rest: Value| json!({"injectStrategy": {"revision": "mesh-1"}, "updateStrategy": rest});
        for (strategies, expected) in [
            (json!({}), Choice::Latest),
            (json!({"updateStrategy": {"paused": true, "partition": "90%"}}), Choice::Latest),
            (json!({"injectStrategy": {"controllerRevision": "mesh-1"}}), Choice::Pinned),
            (pinned(json!({"paused": true})), Choice::Pinned),
            (pinned(json!({})), Choice::Latest),
            (pinned(json!({"partition": "0%"})), Choice::Latest),
            (pinned(json!({"partition": "100%"})), Choice::Pinned),
            (pinned(json!({"partition": "90%"})), Choice::InProportion),
            (pinned(json!({"partition": 7})), Choice::InProportion),
            (pinned(json!({"selector": {"matchLabels": {"zone": "b"}}})), Choice::Pinned),
            (pinned(json!({"selector": {"matchLabels": {"zone": "a"}}})), Choice::Latest),
            (
                pinned(json!({"type": "NotUpdate", "partition": "90%", "selector": {"matchLabels": {"zone": "a"}}})),
                Choice::InProportion,
            ),
            (
                pinned(json!({"type": "NotUpdate", "partition": "90%", "selector": {"matchLabels": {"zone": "b"}}})),
                Choice::Pinned,
            ),
        ] {
            assert_eq!(chosen(&strategies), expected, "{strategies}");
        }
    }

    #[test]
    fn only_an_exact_proportion_is_counted() {
        let partial = json!({"revision": {"revisionName": "mesh-1", "policy": "Partial"}});
        let mut random = partial.clone();
        random["proportion"] = "Random".into();
        assert!(has_ledger(&set(&json!({"injectionStrategy": partial}))));
        assert!(!has_ledger(&set(&json!({"injectionStrategy": random}))));
        assert!(!has_ledger(&set(&json!({"injectStrategy": {"controllerRevision": "mesh-1"}}))));
        assert!(!has_ledger(&set(&json!({}))));
    }

    /// How many of a hundred draws, evenly spread, give the pinned revision.
    fn pinned_of_hundred(partition: PodCount, matched: Option<usize>) -> usize {
        let draws = (0..100_u32).map(|draw| Draw(u32::try_from((u64::from(draw) << 32) / 100 + 1).unwrap()));
        draws.filter(|draw| draws_pinned(partition, matched, *draw)).count()
    }

    #[test]
    fn a_draw_is_as_likely_as_the_share() {
        assert_eq!(pinned_of_hundred(PodCount::Percent(90), None), 90);
        assert_eq!(pinned_of_hundred(PodCount::Percent(90), Some(20)), 90);
        assert_eq!(pinned_of_hundred(PodCount::Percent(99), Some(5)), 80, "one of five pods is to see the canary");
        assert_eq!(pinned_of_hundred(PodCount::Pods(7), Some(28)), 25);
        assert_eq!(pinned_of_hundred(PodCount::Pods(7), Some(7)), 100);
        assert_eq!(pinned_of_hundred(PodCount::Pods(7), None), 100, "nobody knows of how many");
        assert_eq!(pinned_of_hundred(PodCount::Pods(7), Some(0)), 100);
        assert!(draws_pinned(PodCount::Percent(100), None, Draw(u32::MAX)));
        assert!(!draws_pinned(PodCount::Percent(0), None, Draw(0)));
    }
}
