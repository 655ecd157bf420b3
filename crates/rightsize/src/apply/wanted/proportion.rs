//! Limits in proportion to requests.

use pillion_quantity::Resource;

use super::super::held::Held;
use super::super::limit_range::LimitRanges;

/// `amount * of / per`, rounded down; the largest number where it is beyond.
pub(crate) fn down(amount: i64, of: i64, per: i64) -> i64 {
    let exact = i128::from(amount) * i128::from(of) / i128::from(per.max(1));
    i64::try_from(exact).unwrap_or(i64::MAX)
}

/// The same, rounded up.
pub(crate) fn up(amount: i64, of: i64, per: i64) -> i64 {
    let per = i128::from(per.max(1));
    let exact = (i128::from(amount) * i128::from(of) + per - 1) / per;
    i64::try_from(exact).unwrap_or(i64::MAX)
}

/// The limit a container has, or gets from the namespace.
pub(crate) fn present(held: &Held<'_>, resource: Resource, limits: &LimitRanges) -> Option<i64> {
    let own = held.has.limits.get(resource).filter(|limit| *limit > 0);
    own.or(limits.container.default.get(resource))
}

/// The request a container has, to which its limit is in proportion. Kubernetes takes one without a request as if that were
/// the limit.
fn base(held: &Held<'_>, resource: Resource) -> Option<i64> {
    held.has.requests.get(resource).filter(|request| *request > 0)
}

/// The limit that belongs to a request, and what is to be said of it.
pub(crate) fn limit(
    held: &Held<'_>,
    resource: Resource,
    request: Option<i64>,
    limits: &LimitRanges,
) -> (Option<i64>, Option<String>) {
    let Some(limit) = present(held, resource, limits) else {
        return (None, Some(format!("{resource}: limit NOT set since originalLimit is nil or 0")));
    };
    let Some(request) = request else {
        return (None, Some(format!("{resource}: limit NOT set since recommendedRequest is nil or 0")));
    };
    let Some(base) = base(held, resource) else { return (Some(request), None) };
    let scaled = down(limit, request, base);
    let note = format!("{resource}: failed to keep limit to request ratio; capping limit to int64");
    (Some(scaled), (scaled == i64::MAX).then_some(note))
}

/// The request with which the limit meets a bound; `None` where there is no limit to meet it.
pub(crate) fn boundary(
    held: &Held<'_>,
    resource: Resource,
    bound: i64,
    limits: &LimitRanges,
    round: impl Fn(i64, i64, i64) -> i64,
) -> Option<i64> {
    let limit = present(held, resource, limits)?;
    Some(base(held, resource).map_or(bound, |request| round(request, bound, limit)))
}
