//! The steps to the three numbers of a resource, side by side.

use pillion_quantity::Resource;
use pillion_rightsize::{Origin, ResourceExplanation, Step, Taken};

use crate::size::amount::{bytes, cores};

/// Millicores up to here are told as such; there a hundredth of a core matters.
const LONGEST_MILLICORES: i64 = 10_000;

/// One step, and what the lower bound, the target and the upper bound were after it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) words: String,
    /// `None` where the step is not taken.
    pub(super) amounts: [Option<i64>; 3],
}

/// All steps that any of the three takes, in their order.
pub(super) fn rows(explanation: &ResourceExplanation) -> Vec<Row> {
    let ways = [&explanation.lower, &explanation.target, &explanation.upper];
    let of = |way: &[Taken], kind: usize| way.iter().copied().find(|taken| order(&taken.step) == kind);
    let rows = (0..STEPS).map(|kind| ways.map(|way| of(way, kind)));
    let taken = rows.filter(|row| row.iter().any(Option::is_some));
    taken
        .map(|row| {
            let steps: Vec<Step> = row.iter().flatten().map(|taken| taken.step).collect();
            Row { words: words(&steps, explanation.resource), amounts: row.map(|taken| taken.map(|it| it.amount)) }
        })
        .collect()
}

/// An amount of a resource, in millicores or bytes, rounded for people.
pub(super) fn shown(resource: Resource, amount: i64) -> String {
    match resource {
        Resource::Cpu if amount < LONGEST_MILLICORES => format!("{amount}m"),
        Resource::Cpu => cores(i128::from(amount) * 1_000_000),
        Resource::Memory => bytes(i128::from(amount)),
    }
}

const STEPS: usize = 8;

const fn order(step: &Step) -> usize {
    match step {
        Step::Percentile { .. } => 0,
        Step::Margin { .. } => 1,
        Step::Confidence { .. } => 2,
        Step::Floor { .. } => 3,
        Step::Rounding { .. } => 4,
        Step::WholeCores => 5,
        Step::MinAllowed { .. } => 6,
        Step::MaxAllowed { .. } => 7,
    }
}

/// Says a step, as the bounds that take it take it.
fn words(steps: &[Step], resource: Resource) -> String {
    let of = |number: &dyn Fn(&Step) -> Option<String>| steps.iter().filter_map(number).collect::<Vec<_>>().join(", ");
    match steps.first() {
        None => String::new(),
        Some(Step::Percentile { .. }) => {
            let parts = of(&|step| match step {
                Step::Percentile { part } => Some(percent(*part)),
                _ => None,
            });
            let of_what = if resource == Resource::Cpu { "samples" } else { "peaks" };
            format!("{parts} % of {of_what} are below")
        }
        Some(Step::Margin { fraction }) => format!("and {} % to be safe", percent(*fraction)),
        Some(Step::Confidence { confidence, .. }) => {
            let factors = of(&|step| match step {
                Step::Confidence { factor, .. } => Some(format!("× {factor:.3}")),
                _ => None,
            });
            format!("history of {confidence:.2} days: {factors}")
        }
        Some(Step::Floor { least, shared_by: Some(1) }) => format!("at least {}", shown(resource, *least)),
        Some(Step::Floor { least, shared_by: Some(count) }) => {
            format!("at least {}, as one of {count}", shown(resource, *least))
        }
        Some(Step::Floor { least, shared_by: None }) => format!("at least {}, as a sidecar", shown(resource, *least)),
        Some(Step::Rounding { to }) => format!("rounded up to multiples of {}", shown(resource, *to)),
        Some(Step::WholeCores) => "rounded up to whole cores".to_owned(),
        Some(Step::MinAllowed { least, origin }) => {
            format!("minAllowed {}{}", shown(resource, *least), of_whom(*origin))
        }
        Some(Step::MaxAllowed { most, origin }) => format!("maxAllowed {}{}", shown(resource, *most), of_whom(*origin)),
    }
}

const fn of_whom(origin: Origin) -> &'static str {
    match origin {
        Origin::Own => "",
        Origin::EveryContainer => " of container *",
        Origin::Settings => " of the recommender",
    }
}

/// A part as percents, with as many digits as it has.
fn percent(part: f64) -> String {
    let text = format!("{:.1}", part * 100.0);
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}
