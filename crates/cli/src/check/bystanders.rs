//! Checks that the policies and webhook configurations in the cluster cannot harm the requests of others.

use pillion_api::harm_to_bystanders;
use serde_json::Value;

use super::Check;
use super::seen::Seen;
use crate::live::kinds::{
    ADMISSION_POLICY, ADMISSION_POLICY_BINDING, Kind, MUTATING_REGISTRATION, VALIDATING_REGISTRATION,
};

/// Checks that requests of other accounts succeed when a part of Pillion is missing.
pub(super) fn check(seen: &Seen) -> Check {
    let name = "bystanders";
    let validating = seen.validating.as_ref().map(|found| found.iter().cloned().collect());
    let read = [
        (MUTATING_REGISTRATION, seen.mutating.clone()),
        (VALIDATING_REGISTRATION, validating.map_err(Clone::clone)),
        (ADMISSION_POLICY, seen.policies.clone()),
        (ADMISSION_POLICY_BINDING, seen.bindings.clone()),
    ];
    let mut objects = Vec::new();
    for (kind, found) in read {
        match found {
            Err(why) => return Check::unread(name, &why),
            Ok(found) => objects.extend(found.into_iter().map(|object| with_kind(object, kind))),
        }
    }
    let harm = harm_to_bystanders(&objects);
    if harm.is_empty() {
        return Check::ok(name, "no policy or webhook of Pillion rejects requests of others while Pillion is down");
    }
    Check::fail(
        name,
        harm.join("; "),
        "run `helm upgrade`, which restores the objects; docs/break-glass.md removes them",
    )
}

/// Objects of a list have no kind of their own.
fn with_kind(mut object: Value, kind: Kind) -> Value {
    object["kind"] = kind.name.into();
    object
}
