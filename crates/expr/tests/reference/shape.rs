//! Whether what the analysis says of an expression is so, by the naive evaluator.

use num_rational::BigRational;
use num_traits::{Signed, Zero};
use pillion_expr::{Direction, Extreme, Growth, Interval, Program, Ratio, Sign};

use crate::big;
use crate::generator::{Domain, Generator};
use crate::tree::{Tree, Value, units};

pub(crate) fn check(program: &Program, tree: &Tree, domain: Domain, generator: &mut Generator) -> Result<(), String> {
    let naive = |at: &BigRational| {
        let variable = Value { finite: at.clone(), infinite: BigRational::zero(), amount: true };
        tree.value(&variable).unwrap().finite
    };
    segments_are_straight(program, &naive)?;
    growth_is_the_limit(program, tree)?;
    range_is_exact(program, domain, &naive, generator)?;
    negative_is_exact(program, &naive, generator)?;
    zeros_are_exact(program, &naive, generator)
}

/// Whether one program is below another exactly where the analysis says so. Skipped, with false, where it cannot say.
pub(crate) fn check_below(
    one: (&Program, &Tree),
    other: (&Program, &Tree),
    generator: &mut Generator,
) -> Result<bool, String> {
    let Some(intervals) = one.0.analysis().below(&other.0.analysis()) else { return Ok(false) };
    let value = |tree: &Tree, at: &BigRational| {
        let variable = Value { finite: at.clone(), infinite: BigRational::zero(), amount: true };
        tree.value(&variable).unwrap().finite
    };
    let borders = intervals.iter().flat_map(|interval| [Some(interval.from), interval.to]).flatten();
    let knees = [one.0, other.0].into_iter().flat_map(|program| program.analysis().knees().map(|knee| knee.at));
    for at in points(borders.chain(knees), generator) {
        let inside = intervals.iter().any(|interval| contains(interval, &at));
        let below = value(one.1, &at) < value(other.1, &at);
        same("whether it is below", &inside, &below).map_err(|why| format!("{why} at {at}"))?;
    }
    Ok(true)
}

fn segments_are_straight(program: &Program, naive: &impl Fn(&BigRational) -> BigRational) -> Result<(), String> {
    let analysis = program.analysis();
    let mut last: Option<(Option<Ratio>, Ratio)> = None;
    for segment in analysis.segments() {
        let from = big(segment.from);
        if segment.to.is_some_and(|to| to <= segment.from) {
            return Err(format!("the segment at {} is empty", segment.from));
        }
        let to = segment.to.map_or(&from + units(1_000), big);
        for part in [0, 1, 5, 8] {
            let at = &from + (&to - &from) * units(part) / units(8);
            let line = big(segment.offset) + big(segment.slope) * &at;
            same("a point of a segment", &line, &naive(&at))?;
        }
        match last {
            None => same("the first start", &segment.from, &Ratio::ZERO)?,
            Some((end, slope)) => {
                same("the next start", &Some(segment.from), &end)?;
                if slope == segment.slope {
                    return Err(format!("{} is no knee", segment.from));
                }
            }
        }
        last = Some((segment.to, segment.slope));
    }
    let slopes: Vec<_> = analysis.segments().map(|segment| segment.slope.signum()).collect();
    let direction = match (slopes.contains(&1), slopes.contains(&-1)) {
        (false, false) => Direction::Constant,
        (true, false) => Direction::Rising,
        (false, true) => Direction::Falling,
        (true, true) => Direction::Mixed,
    };
    same("the direction", &analysis.direction(), &direction)?;
    for knee in analysis.knees() {
        if let Some(value) = knee.value {
            same("a knee", &big(value), &naive(&big(knee.at)))?;
        }
    }
    same("the end", &last.unwrap().0, &None)
}

fn growth_is_the_limit(program: &Program, tree: &Tree) -> Result<(), String> {
    let limit = tree.value(&crate::tree::bind(pillion_expr::Input::Unlimited)).unwrap();
    let right = match program.analysis().growth() {
        Growth::Unlimited => limit.infinite.is_positive(),
        Growth::Falls => limit.infinite.is_negative(),
        Growth::Settles(value) => limit.infinite.is_zero() && limit.finite == big(value),
    };
    if right { Ok(()) } else { Err(format!("the growth is wrong: {limit:?}")) }
}

fn range_is_exact(
    program: &Program,
    (from, to): Domain,
    naive: &impl Fn(&BigRational) -> BigRational,
    generator: &mut Generator,
) -> Result<(), String> {
    let analysis = program.analysis();
    let range = analysis.range(from, to).ok_or("there is no range")?;
    let mut points = vec![from];
    points.extend(to);
    points.extend(analysis.knees().map(|knee| knee.at).filter(|at| *at > from && to.is_none_or(|to| *at < to)));
    let values: Vec<BigRational> = points.iter().map(|at| naive(&big(*at))).collect();
    let open = to.is_none();
    let growth = analysis.growth();
    match range.low {
        Extreme::Unbounded if open && growth == Growth::Falls => {}
        Extreme::Finite { value, at } if !(open && growth == Growth::Falls) => {
            same("the least", &big(value), values.iter().min().unwrap())?;
            same("where it is least", &naive(&big(at)), &big(value))?;
        }
        low => return Err(format!("the least is {low:?}")),
    }
    match range.high {
        Extreme::Unbounded if open && growth == Growth::Unlimited => {}
        Extreme::Finite { value, at } if !(open && growth == Growth::Unlimited) => {
            same("the greatest", &big(value), values.iter().max().unwrap())?;
            same("where it is greatest", &naive(&big(at)), &big(value))?;
        }
        high => return Err(format!("the greatest is {high:?}")),
    }
    let end = to.map_or(big(from) + units(1 << 40), big);
    for _ in 0..8 {
        let at = big(from) + (&end - big(from)) * units(i128::from(generator.below(1 << 20))) / units(1 << 20);
        let value = naive(&at);
        let below = matches!(range.low, Extreme::Finite { value: low, .. } if value < big(low));
        let above = matches!(range.high, Extreme::Finite { value: high, .. } if value > big(high));
        if below || above {
            return Err(format!("{at} gives {value}, outside {range:?}"));
        }
    }
    Ok(())
}

fn negative_is_exact(
    program: &Program,
    naive: &impl Fn(&BigRational) -> BigRational,
    generator: &mut Generator,
) -> Result<(), String> {
    let analysis = program.analysis();
    let intervals = analysis.negative();
    let sign = match intervals {
        [] => Sign::NeverNegative,
        _ => Sign::SometimesNegative,
    };
    same("the sign", &analysis.sign(), &sign)?;
    for interval in intervals {
        if interval.from_included {
            same("the start of an interval", &interval.from, &Ratio::ZERO)?;
        } else {
            same("the value where it begins", &naive(&big(interval.from)), &units(0))?;
        }
        if let Some(to) = interval.to {
            same("the value where it ends", &naive(&big(to)), &units(0))?;
        }
    }
    let borders = intervals.iter().flat_map(|interval| [Some(interval.from), interval.to]).flatten();
    for at in points(borders.chain(analysis.knees().map(|knee| knee.at)), generator) {
        let inside = intervals.iter().any(|interval| contains(interval, &at));
        same("whether it is negative", &inside, &naive(&at).is_negative()).map_err(|why| format!("{why} at {at}"))?;
    }
    Ok(())
}

fn zeros_are_exact(
    program: &Program,
    naive: &impl Fn(&BigRational) -> BigRational,
    generator: &mut Generator,
) -> Result<(), String> {
    let analysis = program.analysis();
    let zeros = analysis.zeros();
    for pair in zeros.windows(2) {
        if pair[0].to.is_none_or(|to| to >= pair[1].from) {
            return Err(format!("{zeros:?} have no gap"));
        }
    }
    let borders = zeros.iter().flat_map(|zeros| [Some(zeros.from), zeros.to]).flatten();
    for at in points(borders.chain(analysis.knees().map(|knee| knee.at)), generator) {
        let inside = zeros.iter().any(|zeros| at >= big(zeros.from) && zeros.to.is_none_or(|to| at <= big(to)));
        same("whether it is zero", &inside, &naive(&at).is_zero()).map_err(|why| format!("{why} at {at}"))?;
    }
    Ok(())
}

/// Zero and every amount given, one between any two of them, and one beyond.
fn points(borders: impl Iterator<Item = Ratio>, generator: &mut Generator) -> Vec<BigRational> {
    let mut points: Vec<BigRational> = borders.map(big).chain([units(0)]).collect();
    points.sort();
    points.push(points.last().unwrap() + units(1_000));
    let between = points.windows(2).map(|pair| {
        let share = units(1 + i128::from(generator.below(7))) / units(8);
        &pair[0] + (&pair[1] - &pair[0]) * share
    });
    let between: Vec<_> = between.collect();
    points.extend(between);
    points
}

fn contains(interval: &Interval, at: &BigRational) -> bool {
    let from = big(interval.from);
    (*at > from || (interval.from_included && *at == from)) && interval.to.is_none_or(|to| *at < big(to))
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, ours: &T, naive: &T) -> Result<(), String> {
    if ours == naive { Ok(()) } else { Err(format!("{what} is {ours:?}, not {naive:?}")) }
}
