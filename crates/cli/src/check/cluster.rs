//! The API server, its clock, and our kind of object.

use jiff::fmt::rfc2822;
use pillion_api::review;
use serde_json::Value;

use super::Check;
use super::seen::{Seen, name_of};

/// The oldest Kubernetes that is supported: native sidecars are stable there.
const OLDEST: (u32, u32) = (1, 33);
/// Clocks may differ by this many seconds and nobody minds.
const APART: i64 = 60;
/// Certificates are valid from an hour before they are made; this is half of it.
const TOO_FAR_APART: i64 = 1800;

pub(super) fn version(seen: &Seen) -> Check {
    let text = seen.version["gitVersion"].as_str().unwrap_or("of an unknown version");
    let number = |field: &str| -> Option<u32> {
        // Some distributions write `33+`.
        seen.version[field].as_str()?.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok()
    };
    let name = "kubernetes";
    match (number("major"), number("minor")) {
        (Some(major), Some(minor)) if (major, minor) >= OLDEST => Check::ok(name, text),
        (Some(_), Some(_)) => {
            let message = format!("{text} is older than {}.{}", OLDEST.0, OLDEST.1);
            Check::fail(name, message, "update the cluster")
        }
        _ => Check::warn(name, format!("{text}: the version cannot be read"), "look at kubectl version"),
    }
}

pub(super) fn clock(seen: &Seen) -> Check {
    let name = "clock";
    let Some(server) = seen.date.as_deref().and_then(|date| rfc2822::parse(date).ok()) else {
        return Check::warn(name, "the API server does not say what time it is", "compare the clocks yourself");
    };
    let apart = (seen.now.as_second() - server.timestamp().as_second()).abs();
    let message = format!("the API server's clock and this one are {apart} s apart");
    let hint = "set the clocks: certificates, leases and the age of pods depend on them";
    if apart <= APART {
        Check::ok(name, "the same as here, to the minute")
    } else if apart <= TOO_FAR_APART {
        Check::warn(name, message, hint)
    } else {
        Check::fail(name, message, hint)
    }
}

pub(super) fn definition(seen: &Seen) -> Check {
    let name = "definition";
    match &seen.definition {
        Err(why) => Check::unread(name, why),
        Ok(None) => Check::fail(name, "the cluster has no SidecarSets", "install the chart: it brings the definition"),
        Ok(Some(found)) if found.pointer("/metadata/labels/app.kubernetes.io~1part-of") == Some(&"pillion".into()) => {
            Check::ok(name, "SidecarSets are defined, by us")
        }
        Ok(Some(_)) => Check::fail(
            name,
            "SidecarSets are defined by somebody else",
            "both cannot be: see how to move from OpenKruise before you install",
        ),
    }
}

pub(super) fn sets(seen: &Seen) -> Check {
    let name = "sets";
    let sets = match &seen.sets {
        Err(why) => return Check::unread(name, why),
        Ok(sets) => sets,
    };
    let is_wrong = |set: &&Value| {
        let mut spec = (*set).clone();
        spec.as_object_mut().map(|fields| fields.remove("status"));
        review(&spec).meaning.is_none()
    };
    let wrong: Vec<&str> = sets.iter().filter(is_wrong).map(name_of).collect();
    match (sets.len(), wrong.as_slice()) {
        (0, _) => Check::ok(name, "none yet"),
        (count, []) => Check::ok(name, format!("{count}, all of them in order")),
        (count, wrong) => Check::fail(
            name,
            format!("{} of {count} cannot be used: {}", wrong.len(), wrong.join(", ")),
            "run `kubectl get scs NAME -o yaml | pillion lint -`",
        ),
    }
}
