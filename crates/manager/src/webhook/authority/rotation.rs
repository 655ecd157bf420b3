//! What to do next about the certificates, from what is seen.
//!
//! A new authority goes through three states, so that two replicas may be in neighbouring ones at any time:
//!
//! | state | in the Secret as | trusted by the API server | signs leaves |
//! |---|---|---|---|
//! | prepared | `next` | soon | no |
//! | settled | `next` | for some time | no |
//! | current | `tls` | yes | yes |
//!
//! What was current stays trusted for as long as any replica serves with it, and some minutes more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

/// A prepared authority has to be trusted for this long before it signs: every API server has heard of it then.
pub const SETTLES: Duration = Duration::from_secs(15);
/// A certificate that is trusted and that this replica does not need is left in place for this long: another may need it.
pub const STRANGE: Duration = Duration::from_mins(5);
/// An outage is followed by a new authority, but not sooner after the one before.
pub const APART: Duration = Duration::from_mins(5);
/// More strange certificates than this are nobody's.
const MOST_STRANGE: usize = 8;

/// A certificate, as PEM.
pub type Certificate = String;

/// An authority as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its certificate.
    pub certificate: Certificate,
    /// When it ends.
    pub not_after: Timestamp,
}

/// What is seen of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What the Secret holds; `None` where it is not there, or is of no use.
    pub secret: Option<Held>,
    /// The certificates by which the API server trusts each of our webhooks; `None` where a registration is missing.
    pub bundles: Option<Vec<BTreeSet<Certificate>>>,
    /// True if a replica is ready to be called; `None` where that is not known.
    pub is_reachable: Option<bool>,
}

/// What the Secret holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The authority that signs.
    pub current: Known,
    /// The one that will.
    pub next: Option<Known>,
    /// Whether somebody asked for a new one.
    pub is_asked_for: bool,
}

/// What to do about the Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Rest,
    /// Write one: with the authority this replica serves with, or a new one.
    Create,
    /// Add a new authority as the next one.
    Prepare,
    /// Make the next one the current one.
    Promote,
}

/// What is to be done now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orders {
    /// About the Secret.
    pub secret: Step,
    /// Whether a leaf of the current authority is to be served from now on.
    pub serve_current: bool,
    /// What the API server has to trust.
    pub trust: BTreeSet<Certificate>,
    /// Whether the API server trusts what this replica serves with.
    pub is_trusted: bool,
}

/// What a replica remembers.
#[derive(Clone, Debug)]
pub struct Rotation {
    lifetime: Duration,
    /// The authority of the leaf this replica serves with.
    serving: Option<Certificate>,
    /// What the API server trusts, and since when without a break.
    trusted: BTreeMap<Certificate, Timestamp>,
    /// Trusted certificates this replica does not need, and since when they are the same.
    strange: Option<(BTreeSet<Certificate>, Timestamp)>,
    outage: Outage,
}

/// The last outage: a time in which no replica was ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outage {
    None,
    Lasting,
    /// It is over, and the paths that the API server showed to users meanwhile are still in use.
    Over,
}

impl Rotation {
    /// Authorities last so long.
    pub fn new(lifetime: Duration) -> Self {
        Self { lifetime, serving: None, trusted: BTreeMap::new(), strange: None, outage: Outage::None }
    }

    /// What is to be done now.
    pub fn next(&mut self, seen: &Seen, now: Timestamp) -> Orders {
        let held = seen.secret.as_ref();
        self.look_at(seen.bundles.as_deref(), now);
        self.notice_outage(seen);
        let current = held.map(|held| &held.current.certificate);
        // The first leaf need not wait: nothing is sent here before it is trusted.
        let serve_current = current.is_some_and(|current| {
            self.serving.as_ref() != Some(current) && (self.serving.is_none() || self.has_settled(current, now))
        });
        if serve_current {
            self.serving = current.cloned();
        }
        Orders {
            secret: self.secret(held, now),
            serve_current,
            trust: self.trust(seen, now),
            is_trusted: self.serving.as_ref().is_some_and(|serving| self.trusted.contains_key(serving)),
        }
    }

    fn secret(&self, held: Option<&Held>, now: Timestamp) -> Step {
        let Some(held) = held else { return Step::Create };
        match &held.next {
            Some(next) if self.has_settled(&next.certificate, now) => Step::Promote,
            None if held.is_asked_for || add(now, self.lifetime / 3) >= held.current.not_after => Step::Prepare,
            None if self.outage == Outage::Over && self.is_old(&held.current, now) => Step::Prepare,
            Some(_) | None => Step::Rest,
        }
    }

    fn notice_outage(&mut self, seen: &Seen) {
        let has_next = seen.secret.as_ref().is_some_and(|held| held.next.is_some());
        self.outage = match (self.outage, seen.is_reachable) {
            (_, Some(false)) if seen.bundles.is_some() => Outage::Lasting,
            (Outage::Lasting, Some(true)) => Outage::Over,
            (Outage::Over, _) if has_next => Outage::None,
            (before, _) => before,
        };
    }

    fn is_old(&self, authority: &Known, now: Timestamp) -> bool {
        add(now, self.lifetime) >= add(authority.not_after, APART)
    }

    /// Whether every API server has heard that this certificate is to be trusted.
    fn has_settled(&self, certificate: &Certificate, now: Timestamp) -> bool {
        self.trusted.get(certificate).is_some_and(|since| add(*since, SETTLES) <= now)
    }

    fn look_at(&mut self, bundles: Option<&[BTreeSet<Certificate>]>, now: Timestamp) {
        let everywhere = |certificate: &&Certificate| {
            bundles.is_some_and(|bundles| bundles.iter().all(|bundle| bundle.contains(*certificate)))
        };
        let all = bundles.into_iter().flatten().flatten();
        let before = std::mem::take(&mut self.trusted);
        let since = |certificate: &Certificate| before.get(certificate).copied().unwrap_or(now);
        self.trusted = all.filter(everywhere).map(|certificate| (certificate.clone(), since(certificate))).collect();
    }

    /// What is ours, and what may be another replica's.
    fn trust(&mut self, seen: &Seen, now: Timestamp) -> BTreeSet<Certificate> {
        let mut ours: BTreeSet<Certificate> = self.serving.iter().cloned().collect();
        if let Some(held) = &seen.secret {
            ours.insert(held.current.certificate.clone());
            ours.extend(held.next.as_ref().map(|next| next.certificate.clone()));
        }
        let trusted: BTreeSet<Certificate> = seen.bundles.iter().flatten().flatten().cloned().collect();
        let strange: BTreeSet<Certificate> = trusted.difference(&ours).cloned().collect();
        if strange.is_empty() || strange.len() > MOST_STRANGE {
            self.strange = None;
            return ours;
        }
        let since = match self.strange.take() {
            Some((before, since)) if before == strange => since,
            _ => now,
        };
        self.strange = Some((strange.clone(), since));
        if add(since, STRANGE) > now {
            ours.extend(strange);
        }
        ours
    }

    /// The authority of the leaf this replica serves with.
    pub fn serving(&self) -> Option<&Certificate> {
        self.serving.as_ref()
    }
}

fn add(time: Timestamp, duration: Duration) -> Timestamp {
    time.saturating_add(duration).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
