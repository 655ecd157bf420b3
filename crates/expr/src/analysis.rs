//! What an expression does over all amounts: knees, slopes, ranges, signs; exact.

use pillion_quantity::Resource;

use crate::Ratio;
use crate::curve::{Piece, difference};

/// The shape of an expression over [0, ∞). Amounts are in units: cores, bytes.
#[derive(Clone, Copy, Debug)]
pub struct Analysis<'a> {
    pieces: &'a [Piece],
    negative: &'a [Interval],
}

/// A stretch on which the expression is a straight line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it begins.
    pub from: Ratio,
    /// Where it ends; `None` for the last.
    pub to: Option<Ratio>,
    /// What the line would be at zero: the expression is `offset + slope * x`.
    pub offset: Ratio,
    /// How much the result grows with each unit.
    pub slope: Ratio,
}

/// A place where the slope changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knee {
    /// The amount.
    pub at: Ratio,
    /// The result there; `None` where the fraction is too long to be written down.
    pub value: Option<Ratio>,
    /// The slope on its left.
    pub slope_before: Ratio,
    /// The slope on its right.
    pub slope_after: Ratio,
}

/// Amounts for which the result is negative. The upper end is never part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Where it begins.
    pub from: Ratio,
    /// Whether it begins with `from` itself; true only of zero.
    pub from_included: bool,
    /// Where it ends; `None` where it does not.
    pub to: Option<Ratio>,
}

/// Amounts for which the result is exactly zero, both ends among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zeros {
    /// Where they begin.
    pub from: Ratio,
    /// Where they end, which may be where they begin; `None` where they do not.
    pub to: Option<Ratio>,
}

/// The least or greatest result over a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// Taken first at this amount.
    Finite {
        /// The result.
        value: Ratio,
        /// The least amount that gives it.
        at: Ratio,
    },
    /// There is none: the result goes on for ever.
    Unbounded,
}

/// The results over a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The least.
    pub low: Extreme,
    /// The greatest.
    pub high: Extreme,
}

/// Where the result is negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Nowhere: proven for every amount.
    NeverNegative,
    /// For some amounts; see [`Analysis::negative`].
    SometimesNegative,
    /// For every amount.
    AlwaysNegative,
}

/// Whether a larger pod gets a larger sidecar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The result does not depend on the amount.
    Constant,
    /// It never falls.
    Rising,
    /// It never rises.
    Falling,
    /// It does both.
    Mixed,
}

/// What becomes of the result as the amount grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// It grows without end: unlimited in, unlimited out.
    Unlimited,
    /// It settles at this value.
    Settles(Ratio),
    /// It falls below zero and further.
    Falls,
}

impl<'a> Analysis<'a> {
    pub(crate) fn new(pieces: &'a [Piece], negative: &'a [Interval]) -> Self {
        Self { pieces, negative }
    }

    /// The straight lines, from zero upwards.
    pub fn segments(&self) -> impl ExactSizeIterator<Item = Segment> + use<'a> {
        let pieces = self.pieces;
        pieces.iter().enumerate().map(|(at, piece)| Segment {
            from: piece.start,
            to: pieces.get(at + 1).map(|next| next.start),
            offset: piece.line.offset,
            slope: piece.line.slope,
        })
    }

    /// Every place where the slope changes, and no other.
    pub fn knees(&self) -> impl ExactSizeIterator<Item = Knee> + use<'a> {
        self.pieces.array_windows().map(|[before, after]| Knee {
            at: after.start,
            value: after.line.at(after.start),
            slope_before: before.line.slope,
            slope_after: after.line.slope,
        })
    }

    /// The exact result, not rounded; `None` for what is negative or does not fit.
    pub fn value_at(&self, amount: Ratio) -> Option<Ratio> {
        // The first piece starts at zero: below that there is none.
        let after = self.pieces.partition_point(|piece| piece.start <= amount);
        self.pieces.get(after.checked_sub(1)?)?.line.at(amount)
    }

    /// The least and the greatest result for amounts from `from` to `to` (`None`: without end).
    ///
    /// `None` where `from` is negative or above `to`, or where a value does not fit.
    pub fn range(&self, from: Ratio, to: Option<Ratio>) -> Option<Range> {
        if to.is_some_and(|to| to < from) {
            return None;
        }
        let first = Extreme::Finite { value: self.value_at(from)?, at: from };
        let mut range = Range { low: first, high: first };
        let inside =
            self.pieces.iter().map(|piece| piece.start).filter(|at| *at > from && to.is_none_or(|to| *at < to));
        // Between knees the expression is straight: its extremes are at knees and ends.
        for at in inside.chain(to) {
            let value = self.value_at(at)?;
            if range.low.is_above(value) {
                range.low = Extreme::Finite { value, at };
            }
            if range.high.is_below(value) {
                range.high = Extreme::Finite { value, at };
            }
        }
        if to.is_none() {
            match self.growth() {
                Growth::Unlimited => range.high = Extreme::Unbounded,
                Growth::Falls => range.low = Extreme::Unbounded,
                Growth::Settles(_) => {}
            }
        }
        Some(range)
    }

    /// Exactly the amounts for which the result is negative, in order, with gaps between them.
    pub fn negative(&self) -> &'a [Interval] {
        self.negative
    }

    /// Exactly the amounts for which the result is zero, in order, with gaps between them.
    pub fn zeros(&self) -> Vec<Zeros> {
        // A border that does not fit is refused when the expression is compiled.
        zeros(self.pieces).unwrap_or_default()
    }

    /// Exactly the amounts for which the result is below that of another expression, in order, with gaps between them.
    ///
    /// `None` where a border does not fit.
    pub fn below(&self, other: &Analysis<'_>) -> Option<Vec<Interval>> {
        negative_intervals(&difference(self.pieces, other.pieces)?)
    }

    /// Whether the result can be negative at all.
    pub fn sign(&self) -> Sign {
        match self.negative {
            [] => Sign::NeverNegative,
            [all] if all.from_included && all.to.is_none() => Sign::AlwaysNegative,
            _ => Sign::SometimesNegative,
        }
    }

    /// Whether the result rises or falls with the amount.
    pub fn direction(&self) -> Direction {
        let slopes = || self.pieces.iter().map(|piece| piece.line.slope.signum());
        match (slopes().any(|slope| slope > 0), slopes().any(|slope| slope < 0)) {
            (false, false) => Direction::Constant,
            (true, false) => Direction::Rising,
            (false, true) => Direction::Falling,
            (true, true) => Direction::Mixed,
        }
    }

    /// What becomes of the result as the amount grows.
    pub fn growth(&self) -> Growth {
        let last = self.pieces.last().map(|piece| piece.line);
        match last.map_or(0, |line| line.slope.signum()) {
            1 => Growth::Unlimited,
            -1 => Growth::Falls,
            _ => Growth::Settles(last.map_or(Ratio::ZERO, |line| line.offset)),
        }
    }
}

impl Interval {
    /// `cpu in [0, 2)`
    pub fn human(&self, resource: Resource) -> String {
        let open = if self.from_included { '[' } else { '(' };
        let to = self.to.map_or_else(|| "∞".to_owned(), |to| to.human(resource));
        format!("{resource} in {open}{}, {to})", self.from.human(resource))
    }
}

impl Zeros {
    /// `cpu in [0, 2]`, or `cpu = 2`.
    pub fn human(&self, resource: Resource) -> String {
        let from = self.from.human(resource);
        match self.to {
            Some(to) if to == self.from => format!("{resource} = {from}"),
            Some(to) => format!("{resource} in [{from}, {}]", to.human(resource)),
            None => format!("{resource} in [{from}, ∞)"),
        }
    }
}

impl Extreme {
    fn is_above(self, value: Ratio) -> bool {
        matches!(self, Self::Finite { value: own, .. } if own > value)
    }

    fn is_below(self, value: Ratio) -> bool {
        matches!(self, Self::Finite { value: own, .. } if own < value)
    }
}

/// `None` where a border does not fit.
pub(crate) fn negative_intervals(pieces: &[Piece]) -> Option<Vec<Interval>> {
    let mut intervals = Vec::new();
    // The sign where a piece begins; the pieces are continuous, so each knows it from the last.
    let mut sign = pieces.first()?.line.offset.signum();
    let mut open = (sign < 0).then_some(Interval { from: Ratio::ZERO, from_included: true, to: None });
    for (at, piece) in pieces.iter().enumerate() {
        let slope = piece.line.slope.signum();
        let next = pieces.get(at + 1).map(|next| next.start);
        let zero = match sign * slope {
            // At zero already, or going there.
            0 if sign == 0 => piece.start,
            -1 => piece.line.root()?,
            _ => continue,
        };
        if next.is_some_and(|next| zero > next) {
            continue;
        }
        if sign < 0 {
            intervals.extend(open.take().map(|interval| Interval { to: Some(zero), ..interval }));
        }
        // What reaches zero just where the next piece begins is that one's to continue.
        sign = if next == Some(zero) { 0 } else { slope };
        if sign < 0 {
            open = Some(Interval { from: zero, from_included: false, to: None });
        }
    }
    intervals.extend(open);
    Some(intervals)
}

/// `None` where a border does not fit.
fn zeros(pieces: &[Piece]) -> Option<Vec<Zeros>> {
    let mut found: Vec<Zeros> = Vec::new();
    // The sign where a piece begins; the pieces are continuous, so each knows it from the last.
    let mut sign = pieces.first()?.line.offset.signum();
    for (at, piece) in pieces.iter().enumerate() {
        let slope = piece.line.slope.signum();
        let next = pieces.get(at + 1).map(|next| next.start);
        if sign == 0 {
            let to = if slope == 0 { next } else { Some(piece.start) };
            match found.last_mut() {
                Some(last) if last.to == Some(piece.start) => last.to = to,
                _ => found.push(Zeros { from: piece.start, to }),
            }
            sign = slope;
        } else if sign * slope < 0 {
            let zero = piece.line.root()?;
            if next.is_none_or(|next| zero < next) {
                found.push(Zeros { from: zero, to: Some(zero) });
                sign = slope;
            } else if next == Some(zero) {
                // The next piece begins there, and finds it.
                sign = 0;
            }
        }
    }
    Some(found)
}
