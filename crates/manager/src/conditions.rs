//! A condition of an object of ours, which keeps its time while its status stays.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// A condition has no longer message.
pub(crate) const MAX_MESSAGE: usize = 1 << 10;

/// What a condition says.
pub(crate) struct Stands {
    pub(crate) kind: &'static str,
    pub(crate) holds: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// The condition, with the time of the one before where that has the same status.
pub(crate) fn condition(stands: Stands, generation: i64, before: Option<&[Condition]>, now: Timestamp) -> Condition {
    let Stands { kind, holds, reason, message } = stands;
    let status = if holds { "True" } else { "False" };
    let mut before = before.into_iter().flatten();
    let same = before.find(|condition| condition.type_ == kind && condition.status == status);
    Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message[..message.floor_char_boundary(MAX_MESSAGE)].to_owned(),
        observed_generation: Some(generation),
        last_transition_time: same.map_or(Time(now), |condition| condition.last_transition_time.clone()),
    }
}
