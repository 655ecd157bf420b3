//! Whether the API server can trust us, and for how long.

use jiff::SignedDuration;
use k8s_openapi::ByteString;
use pillion_api::names::{CA_SECRET, SET_WEBHOOK};
use pillion_runtime::tls::Authority;
use serde_json::Value;

use super::Check;
use super::seen::{Seen, webhooks};

/// A running manager makes a new authority long before.
const SOON: SignedDuration = SignedDuration::from_hours(7 * 24);
const ROTATING: &str = "a manager that runs makes a new one in time: look at its logs";

pub(super) fn checks(seen: &Seen) -> Vec<Check> {
    let secret = match &seen.secret {
        Err(why) => return vec![Check::unread("authority", why)],
        Ok(None) => {
            let message = format!("there is no Secret {CA_SECRET}");
            return vec![Check::fail("authority", message, "a manager that runs makes it within seconds")];
        }
        Ok(Some(secret)) => secret,
    };
    let read = (text(&secret["data"]["tls.crt"]), text(&secret["data"]["tls.key"]));
    let authority = match read {
        (Some(certificate), Some(key)) => Authority::from_pem(&certificate, &key).map_err(|error| error.to_string()),
        _ => Err("tls.crt or tls.key is missing".to_owned()),
    };
    let authority = match authority {
        Ok(authority) => authority,
        Err(why) => {
            let message = format!("Secret {CA_SECRET} is of no use: {why}");
            return vec![Check::fail("authority", message, "delete it: a manager that runs makes a new one")];
        }
    };
    vec![end(seen, &authority), trust(seen, authority.certificate_pem())]
}

fn end(seen: &Seen, authority: &Authority) -> Check {
    let left = authority.not_after().duration_since(seen.now);
    let days = left.as_hours() / 24;
    let end = authority.not_after();
    if left.is_negative() {
        Check::fail("authority", format!("it ended at {end}"), ROTATING)
    } else if left < SOON {
        Check::warn("authority", format!("it ends at {end}, in {days} days"), ROTATING)
    } else {
        Check::ok("authority", format!("it is good until {end}, {days} more days"))
    }
}

/// The API server believes whom the bundles of the registrations name.
fn trust(seen: &Seen, certificate: &str) -> Check {
    let name = "trust";
    let validating = seen.validating.as_ref().ok().and_then(Option::as_ref);
    let all = seen.registration().into_iter().chain(validating).flat_map(webhooks);
    let ours = all.filter(|webhook| {
        let name = webhook["name"].as_str().unwrap_or_default();
        name.ends_with("pods.pillion.dev") || name == SET_WEBHOOK
    });
    let bundles: Vec<(&str, Option<String>)> = ours
        .map(|webhook| (webhook["name"].as_str().unwrap_or_default(), text(&webhook["clientConfig"]["caBundle"])))
        .collect();
    let trusts = |bundle: &Option<String>| bundle.as_ref().is_some_and(|bundle| bundle.contains(certificate.trim()));
    match bundles.iter().find(|(_, bundle)| !trusts(bundle)) {
        _ if bundles.is_empty() => Check::warn(name, "no webhook is registered that could be trusted", ROTATING),
        Some((webhook, _)) => {
            let message = format!("the API server does not trust the authority for {webhook}: its caBundle lacks it");
            Check::fail(name, message, ROTATING)
        }
        None => Check::ok(name, "the authority is in the caBundle of every webhook"),
    }
}

/// A text as Secrets and bundles have it.
fn text(value: &Value) -> Option<String> {
    let bytes = serde_json::from_value::<ByteString>(value.clone()).ok()?;
    String::from_utf8(bytes.0).ok().filter(|text| !text.is_empty())
}
