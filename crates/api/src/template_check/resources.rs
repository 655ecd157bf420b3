//! Fixed resources, and the way they may be resized.

use std::collections::{BTreeMap, BTreeSet};

use pillion_quantity::Quantity;
use serde_json::Value;

use super::Kind;
use super::field::{Field, Problems};
use super::syntax::{LABEL_HELP, is_dns_label, is_qualified_name};

const HUGE_PAGES: &str = "hugepages-";

pub(super) fn check(container: &Field<'_>, kind: Kind, problems: &mut Problems) {
    if let Some(resources) = container.get("resources") {
        let [limits, requests] = ["limits", "requests"].map(|side| check_side(&resources, side, problems));
        check_requests(&resources, &limits, &requests, problems);
        check_claims(&resources, problems);
    }
    check_resize_policy(container, kind, problems);
}

/// Returns the text of a quantity, which may be a number in JSON.
pub(super) fn quantity_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned())
}

/// Checks the entries of limits or requests. Returns the quantities that could be parsed.
fn check_side<'a>(resources: &Field<'a>, side: &str, problems: &mut Problems) -> BTreeMap<&'a str, Quantity> {
    let mut quantities = BTreeMap::new();
    for (name, entry) in resources.entries(side) {
        if !is_container_resource(name) {
            let message = format!("{name:?} is not a resource of containers");
            let help = "use cpu, memory, ephemeral-storage, hugepages-SIZE or a name with a domain";
            problems.error(entry.path.clone(), message, help);
        }
        // The schema reports what is no quantity.
        let text = quantity_text(entry.value);
        let Ok(quantity) = text.parse::<Quantity>() else { continue };
        quantities.insert(name, quantity);
        if quantity.is_negative() {
            problems.error(entry.path.clone(), format!("{text} is negative"), "write 0 or more");
        } else if is_extended(name) && quantity.milli_value() % 1000 != 0 {
            problems.error(entry.path.clone(), format!("{text} is not a whole number"), "write a whole number");
        } else if let Some(size) = name.strip_prefix(HUGE_PAGES)
            && !is_multiple(quantity, size)
        {
            let message = format!("{text} is not a multiple of {size}");
            problems.error(entry.path.clone(), message, format!("write a multiple of {size}"));
        }
    }
    quantities
}

fn check_requests(
    resources: &Field<'_>,
    limits: &BTreeMap<&str, Quantity>,
    requests: &BTreeMap<&str, Quantity>,
    problems: &mut Problems,
) {
    for (name, request) in requests {
        let path = resources.at("requests").key(name);
        let may_overcommit = is_native(name) && !name.starts_with(HUGE_PAGES);
        match limits.get(name) {
            // The API server rounds quantities up to thousandths before it compares them.
            Some(limit) if may_overcommit && request.milli_value() > limit.milli_value() => {
                let message = format!("the {name} request {request} is above the limit {limit}");
                problems.error(path, message, "lower the request or raise the limit");
            }
            Some(limit) if !may_overcommit && request.milli_value() != limit.milli_value() => {
                let message = format!("the {name} request {request} is not the limit {limit}");
                problems.error(path, message, "write the same quantity for both");
            }
            None if !may_overcommit => {
                let message = format!("the {name} request has no limit");
                problems.error(path, message, format!("set limits.{name} to the same quantity"));
            }
            _ => {}
        }
    }
    let names: BTreeSet<&str> = limits.keys().chain(requests.keys()).copied().collect();
    let has_huge_pages = names.iter().any(|name| name.starts_with(HUGE_PAGES));
    if has_huge_pages && !names.contains("cpu") && !names.contains("memory") {
        let message = "hugepages are set without cpu or memory";
        problems.error(resources.path.clone(), message, "set a cpu or memory request as well");
    }
}

/// Checks the claims for duplicates. The pod decides which claims exist.
fn check_claims(resources: &Field<'_>, problems: &mut Problems) {
    let (mut whole, mut parts) = (BTreeSet::new(), BTreeSet::new());
    for claim in resources.items("claims") {
        let (name, request) = (claim.text("name"), claim.text("request"));
        problems.syntax(&claim, "request", is_dns_label, LABEL_HELP);
        let is_known = whole.contains(name)
            || if request.is_empty() {
                parts.range((name, "")..).next().is_some_and(|(first, _)| *first == name)
            } else {
                parts.contains(&(name, request))
            };
        if is_known && !name.is_empty() {
            problems.error(claim.path.clone(), format!("Duplicate value: {name:?}"), "remove one of the claims");
        }
        if request.is_empty() {
            whole.insert(name)
        } else {
            parts.insert((name, request))
        };
    }
}

fn check_resize_policy(container: &Field<'_>, kind: Kind, problems: &mut Problems) {
    let mut seen = BTreeSet::new();
    for policy in container.items("resizePolicy") {
        problems.one_of(&policy, "resourceName", &["", "cpu", "memory"]);
        problems.one_of(&policy, "restartPolicy", &["", "NotRequired", "RestartContainer"]);
        let name = policy.text("resourceName");
        if !name.is_empty() && !seen.insert(name) {
            problems.error(
                policy.at("resourceName"),
                format!("Duplicate value: {name:?}"),
                "remove one of the entries",
            );
        }
        if kind == Kind::RegularInit && policy.text("restartPolicy") == "RestartContainer" {
            let message = "a regular init container cannot be restarted for a resize";
            problems.error(policy.at("restartPolicy"), message, "write NotRequired");
        }
    }
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.") && is_qualified_name(&format!("requests.{name}"))
}

fn is_container_resource(name: &str) -> bool {
    let is_standard = ["cpu", "memory", "ephemeral-storage"].contains(&name) || name.starts_with(HUGE_PAGES);
    is_qualified_name(name) && (is_standard || (name.contains('/') && (is_native(name) || is_extended(name))))
}

fn is_multiple(quantity: Quantity, size: &str) -> bool {
    let Ok(size) = size.parse::<Quantity>() else { return false };
    size > Quantity::ZERO && size.milli_value() % 1000 == 0 && quantity.value() % size.value() == 0
}
