//! The bounds a recommendation is brought within, in their order.

use pillion_quantity::Resource;

use super::super::held::{ContainerKind, Held};
use super::super::limit_range::{LimitRange, LimitRanges};
use super::{Candidate, Field, proportion};
use crate::amounts::Amounts;

/// Brings the recommendations of the candidates within all bounds.
pub(super) fn apply(candidates: &mut [Candidate<'_>], containers: &[Held<'_>], limits: &LimitRanges) {
    for field in Field::ALL {
        for resource in Amounts::RESOURCES {
            pod_limit_range(candidates, containers, limits, resource, field);
        }
    }
    for candidate in candidates.iter_mut() {
        for field in Field::ALL {
            let mut notes = Vec::new();
            container_limit_range(candidate, limits, field, &mut notes);
            policy(candidate, field, &mut notes);
            if candidate.policy.requests_only {
                own_limit(candidate, limits, field, &mut notes);
            }
            if field == Field::Target {
                candidate.notes.append(&mut notes);
            }
        }
    }
    for resource in Amounts::RESOURCES {
        init_phase(candidates, containers, limits, resource);
    }
}

/// The sum over the containers that run together, in proportion.
fn pod_limit_range(
    candidates: &mut [Candidate<'_>],
    containers: &[Held<'_>],
    limits: &LimitRanges,
    resource: Resource,
    field: Field,
) {
    let LimitRange { min, max, .. } = limits.pod;
    let (min, max) = (min.get(resource), max.get(resource));
    if min.is_none() && max.is_none() {
        return;
    }
    let running = containers.iter().filter(|held| held.kind != ContainerKind::PlainInit);
    let (mut fixed_request, mut fixed_limit) = (0_i64, 0_i64);
    for held in running {
        if !candidates.iter_mut().any(|own| own.held.name == held.name && own.bounded.get(field, resource).is_some()) {
            fixed_request = fixed_request.saturating_add(held.request(resource).unwrap_or_default());
            fixed_limit = fixed_limit.saturating_add(held.has.limits.get(resource).unwrap_or_default());
        }
    }
    // A candidate whose limit stays adds it whatever is recommended.
    let mut scaled: Vec<&mut Candidate<'_>> = Vec::new();
    for candidate in candidates.iter_mut().filter(|own| own.bounded.get(field, resource).is_some()) {
        if candidate.policy.requests_only {
            fixed_limit = fixed_limit.saturating_add(candidate.held.has.limits.get(resource).unwrap_or_default());
        }
        scaled.push(candidate);
    }
    let request = |own: &Candidate<'_>| own.bounded.get(field, resource).unwrap_or_default();
    let requests = scaled.iter().map(|own| request(own)).fold(0, i64::saturating_add);
    let room = min.unwrap_or_default().saturating_sub(fixed_request);
    if requests > 0 && requests < room {
        for own in &mut scaled {
            let raised = proportion::up(request(own), room, requests);
            own.bounded.set(field, resource, Some(raised));
        }
        return;
    }
    scaled.retain(|own| !own.policy.requests_only && proportion::present(&own.held, resource, limits).is_some());
    let limit = |own: &Candidate<'_>| {
        let request = own.bounded.get(field, resource);
        proportion::limit(&own.held, resource, request, limits).0.unwrap_or_default()
    };
    let sum = |all: &[&mut Candidate<'_>]| all.iter().map(|own| limit(own)).fold(0, i64::saturating_add);
    let total = sum(&scaled);
    let (Some(max), true) = (max, total > 0) else { return };
    let room = max.saturating_sub(fixed_limit);
    if total <= room {
        return;
    }
    for own in &mut scaled {
        // Where the others leave nothing, it keeps what it has.
        let cut = if room > 0 {
            Some(proportion::down(request(own), room, total).max(1))
        } else {
            own.held.request(resource)
        };
        own.bounded.set(field, resource, cut);
    }
    // Limits are rounded down before they are added up, so the sum may still be above by less than one for each.
    for _ in 0..scaled.len() * 2 {
        if room <= 0 || sum(&scaled) <= room {
            break;
        }
        let largest = scaled.iter_mut().max_by_key(|own| limit(own));
        if let Some(own) = largest {
            let less = (request(own) - 1).max(1);
            own.bounded.set(field, resource, Some(less));
        }
    }
}

fn container_limit_range(candidate: &mut Candidate<'_>, limits: &LimitRanges, field: Field, notes: &mut Vec<String>) {
    let LimitRange { min, max, .. } = limits.container;
    let boundary = |candidate: &Candidate<'_>, resource, bound: Option<i64>, round: fn(i64, i64, i64) -> i64| {
        let bound = bound?;
        // Where the limit stays, only the request itself can meet a bound.
        if candidate.policy.requests_only {
            return Some(bound);
        }
        proportion::boundary(&candidate.held, resource, bound, limits, round)
    };
    for resource in Amounts::RESOURCES {
        let Some(amount) = candidate.bounded.get(field, resource) else { continue };
        let least = min.get(resource);
        let least = boundary(candidate, resource, least, proportion::up).max(least);
        let most = boundary(candidate, resource, max.get(resource), proportion::down);
        let raised = least.map_or(amount, |least| amount.max(least));
        if raised != amount {
            notes.push(format!("{resource} capped to fit Min in container LimitRange"));
        }
        let cut = most.filter(|most| *most > 0).map_or(raised, |most| raised.min(most));
        if cut != raised {
            notes.push(format!("{resource} capped to fit Max in container LimitRange"));
        }
        candidate.bounded.set(field, resource, Some(cut));
    }
}

fn policy(candidate: &mut Candidate<'_>, field: Field, notes: &mut Vec<String>) {
    for resource in Amounts::RESOURCES {
        let Some(amount) = candidate.bounded.get(field, resource) else { continue };
        // Zero bounds nothing.
        let bound = |amounts: Amounts| amounts.get(resource).filter(|bound| *bound > 0);
        let raised = bound(candidate.policy.min).map_or(amount, |least| amount.max(least));
        if raised != amount {
            notes.push(format!("{resource} capped to minAllowed"));
        }
        let cut = bound(candidate.policy.max).map_or(raised, |most| raised.min(most));
        if cut != raised {
            notes.push(format!("{resource} capped to maxAllowed"));
        }
        candidate.bounded.set(field, resource, Some(cut));
    }
}

/// Where limits stay, a request is not above its own, nor so far below that the namespace refuses the ratio.
fn own_limit(candidate: &mut Candidate<'_>, limits: &LimitRanges, field: Field, notes: &mut Vec<String>) {
    for resource in Amounts::RESOURCES {
        let Some(amount) = candidate.bounded.get(field, resource) else { continue };
        let Some(limit) = candidate.held.has.limits.get(resource) else { continue };
        let ratio = limits.container.ratio.get(resource);
        let least = ratio.map_or(amount, |thousandths| amount.max(proportion::up(limit, 1000, thousandths)));
        if least != amount {
            notes.push(format!("{resource} raised to fit maxLimitRequestRatio in container LimitRange"));
        }
        if least > limit {
            notes.push(format!("{resource} capped to container limit"));
        }
        candidate.bounded.set(field, resource, Some(least.min(limit)));
    }
}

/// While a plain init container runs, it and the native sidecars before it must fit the pod's `LimitRange`, too. It is
/// the growth of those sidecars that is cut; none gets less than it has.
fn init_phase(candidates: &mut [Candidate<'_>], containers: &[Held<'_>], limits: &LimitRanges, resource: Resource) {
    let Some(max) = limits.pod.max.get(resource) else { return };
    let has = |held: &Held<'_>| held.has.limits.get(resource).or(held.has.requests.get(resource)).unwrap_or_default();
    for (at, init) in containers.iter().enumerate().filter(|(_, held)| held.kind == ContainerKind::PlainInit) {
        let before = containers[..at].iter().filter(|held| held.kind == ContainerKind::NativeSidecar);
        let (mut now, mut growth) = (has(init), 0_i64);
        let mut growing = Vec::new();
        for held in before {
            now = now.saturating_add(has(held));
            let Some(place) = candidates.iter().position(|own| own.held.name == held.name) else { continue };
            let own = &candidates[place];
            let wanted = own.bounded.target.get(resource);
            let limit = if own.policy.requests_only {
                held.has.limits.get(resource)
            } else {
                proportion::limit(&own.held, resource, wanted, limits).0
            };
            let more = limit.or(wanted).unwrap_or_default().saturating_sub(has(held));
            if more > 0 {
                growth = growth.saturating_add(more);
                growing.push(place);
            }
        }
        let room = max.saturating_sub(now).max(0);
        if growth <= room {
            continue;
        }
        // Limits are rounded down before they are added up: one less for each is never too much.
        let room = room.saturating_sub(i64::try_from(growing.len()).unwrap_or_default()).max(0);
        for place in growing {
            let own = &mut candidates[place];
            let (Some(wanted), request) = (own.bounded.target.get(resource), own.held.request(resource)) else {
                continue;
            };
            let from = request.unwrap_or_default().min(wanted);
            let cut = from.saturating_add(proportion::down(wanted - from, room, growth)).max(1);
            for field in Field::ALL {
                let bounded = own.bounded.get(field, resource).map(|amount| amount.min(cut));
                own.bounded.set(field, resource, bounded);
            }
            own.notes.push(format!(
                "{resource} capped to fit Max in pod LimitRange while init container {} runs",
                init.name
            ));
        }
    }
}
