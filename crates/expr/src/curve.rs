//! Functions of one amount that consist of straight lines, over [0, ∞).
//!
//! They are closed under sums, multiples, maxima and minima, which is all the language has. What
//! does not fit in exact 128-bit fractions is `None`.

use std::cmp::Ordering;

use crate::{MAX_PIECES, Ratio};

/// `offset + slope × x`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) offset: Ratio,
    pub(crate) slope: Ratio,
}

impl Line {
    pub(crate) fn at(self, x: Ratio) -> Option<Ratio> {
        self.offset.checked_add(self.slope.checked_mul(x)?)
    }

    fn checked_add(self, other: Self) -> Option<Self> {
        Some(Self { offset: self.offset.checked_add(other.offset)?, slope: self.slope.checked_add(other.slope)? })
    }

    fn checked_sub(self, other: Self) -> Option<Self> {
        Some(Self { offset: self.offset.checked_sub(other.offset)?, slope: self.slope.checked_sub(other.slope)? })
    }

    fn checked_mul(self, factor: Ratio) -> Option<Self> {
        Some(Self { offset: self.offset.checked_mul(factor)?, slope: self.slope.checked_mul(factor)? })
    }

    /// Where two lines meet; only of lines that are not parallel.
    fn crossing(self, other: Self) -> Option<Ratio> {
        self.checked_sub(other)?.root()
    }

    /// Where the line is zero; only of lines that are not level.
    pub(crate) fn root(self) -> Option<Ratio> {
        self.offset.checked_div(self.slope)?.checked_neg()
    }
}

/// A line and where it begins; it ends where the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: Ratio,
    pub(crate) line: Line,
}

/// Which of two functions to follow where they differ.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Follow {
    Upper,
    Lower,
}

/// Why two curves could not be combined.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    /// A fraction does not fit.
    Precision,
    /// There are more pieces than allowed.
    Pieces,
}

#[derive(Clone, Debug)]
pub(crate) struct Curve {
    /// In order of their starts; the first starts at zero, and neighbours differ.
    pieces: Vec<Piece>,
}

impl Curve {
    pub(crate) fn constant(value: Ratio) -> Self {
        Self::straight(value, Ratio::ZERO)
    }

    /// The variable itself.
    pub(crate) fn identity() -> Self {
        Self::straight(Ratio::ZERO, Ratio::ONE)
    }

    fn straight(offset: Ratio, slope: Ratio) -> Self {
        let start = Ratio::ZERO;
        let line = Line { offset, slope };
        Self { pieces: vec![Piece { start, line }] }
    }

    pub(crate) fn into_pieces(self) -> Vec<Piece> {
        self.pieces
    }

    pub(crate) fn times(mut self, factor: Ratio) -> Result<Self, Trouble> {
        if factor == Ratio::ZERO {
            return Ok(Self::constant(Ratio::ZERO));
        }
        for piece in &mut self.pieces {
            piece.line = piece.line.checked_mul(factor).ok_or(Trouble::Precision)?;
        }
        Ok(self)
    }

    pub(crate) fn plus(&self, other: &Self) -> Result<Self, Trouble> {
        self.combine(other, Line::checked_add)
    }

    pub(crate) fn minus(&self, other: &Self) -> Result<Self, Trouble> {
        self.combine(other, Line::checked_sub)
    }

    fn combine(&self, other: &Self, lines: impl Fn(Line, Line) -> Option<Line>) -> Result<Self, Trouble> {
        let mut result = self.room_beside(other);
        for stretch in stretches(&self.pieces, &other.pieces) {
            let line = lines(stretch.left, stretch.right);
            result.push(stretch.start, line.ok_or(Trouble::Precision)?)?;
        }
        Ok(result)
    }

    pub(crate) fn follow(&self, other: &Self, follow: Follow) -> Result<Self, Trouble> {
        let mut result = self.room_beside(other);
        // The sign of left minus right where a stretch begins. Both are continuous, so each
        // stretch knows it from the one before.
        let mut sign = None;
        for stretch in stretches(&self.pieces, &other.pieces) {
            let (left, right) = (stretch.left, stretch.right);
            let start = sign.unwrap_or_else(|| left.offset.cmp(&right.offset));
            let slope = left.slope.cmp(&right.slope);
            // Where they meet, the slope says which is ahead next.
            let left_first = match follow {
                Follow::Upper => start.then(slope).is_ge(),
                Follow::Lower => start.then(slope).is_le(),
            };
            let (first, second) = if left_first { (left, right) } else { (right, left) };
            result.push(stretch.start, first)?;
            sign = Some(if start == Ordering::Equal {
                slope
            } else if start == slope.reverse() {
                let crossing = left.crossing(right).ok_or(Trouble::Precision)?;
                match stretch.end.map_or(Ordering::Less, |end| crossing.cmp(&end)) {
                    Ordering::Less => {
                        result.push(crossing, second)?;
                        slope
                    }
                    Ordering::Equal => Ordering::Equal,
                    Ordering::Greater => start,
                }
            } else {
                start
            });
        }
        Ok(result)
    }

    /// An empty curve with room for the pieces of both.
    fn room_beside(&self, other: &Self) -> Self {
        Self { pieces: Vec::with_capacity((self.pieces.len() + other.pieces.len()).min(MAX_PIECES)) }
    }

    fn push(&mut self, start: Ratio, line: Line) -> Result<(), Trouble> {
        if self.pieces.last().is_some_and(|last| last.line == line) {
            return Ok(());
        }
        if self.pieces.len() >= MAX_PIECES {
            return Err(Trouble::Pieces);
        }
        self.pieces.push(Piece { start, line });
        Ok(())
    }
}

/// What the left function has above the right one; where they are straight together it is too.
pub(crate) fn difference(left: &[Piece], right: &[Piece]) -> Option<Vec<Piece>> {
    stretches(left, right)
        .map(|stretch| Some(Piece { start: stretch.start, line: stretch.left.checked_sub(stretch.right)? }))
        .collect()
}

/// A stretch on which both functions are straight.
struct Stretch {
    start: Ratio,
    end: Option<Ratio>,
    left: Line,
    right: Line,
}

fn stretches(mut left: &[Piece], mut right: &[Piece]) -> impl Iterator<Item = Stretch> {
    let mut start = Some(Ratio::ZERO);
    std::iter::from_fn(move || {
        let from = start?;
        let (next_left, next_right) = (left.get(1), right.get(1));
        let stretch = |end| Stretch { start: from, end, left: left[0].line, right: right[0].line };
        let order = match (next_left, next_right) {
            (None, None) => {
                start = None;
                return Some(stretch(None));
            }
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(one), Some(other)) => one.start.cmp(&other.start),
        };
        start = match order {
            Ordering::Greater => next_right,
            Ordering::Less | Ordering::Equal => next_left,
        }
        .map(|piece| piece.start);
        let stretch = stretch(start);
        if order != Ordering::Greater {
            left = &left[1..];
        }
        if order != Ordering::Less {
            right = &right[1..];
        }
        Some(stretch)
    })
}
