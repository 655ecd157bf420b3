//! `pillion expr plot`: the curve in the terminal, and as a picture.
//!
//! Positions are computed with exact fractions, so the drawing is the same on every machine.

use std::fs;
use std::io;
use std::path::Path;

use pillion_expr::{Program, Ratio};
use pillion_quantity::Quantity;

use super::{header, shape, write_json};
use crate::drawing::{Scale, ends};
use crate::{Ending, Format, Streams};

mod braille;
mod svg;
mod terminal;

/// What to draw.
#[derive(Clone, Copy)]
pub(super) struct Area {
    pub(super) from: Quantity,
    pub(super) to: Quantity,
    pub(super) columns: u16,
}

/// A curve between two amounts, and the scales that fit it.
struct Picture<'a> {
    program: &'a Program,
    horizontal: Scale,
    vertical: Scale,
}

pub(super) fn run(
    program: &Program,
    area: Area,
    file: Option<&Path>,
    format: Format,
    streams: &mut Streams<'_>,
) -> io::Result<Ending> {
    let bounds = Ratio::from_quantity(area.from).zip(Ratio::from_quantity(area.to));
    let Some((from, to)) = bounds.filter(|(from, to)| from < to && from.signum() >= 0) else {
        let message = format!("--to {} must be above --from {}, and neither negative", area.to, area.from);
        return Err(io::Error::other(message));
    };
    let Some(picture) = Picture::new(program, from, to) else {
        return Err(io::Error::other("the numbers of this curve are too long to be drawn; draw a smaller part of it"));
    };
    match format {
        Format::Text => {
            write!(streams.out, "{}", terminal::draw(&picture, usize::from(area.columns)))?;
            for (name, words) in shape::lines(program, from, Some(to)) {
                writeln!(streams.out, "{name:<10} {words}")?;
            }
        }
        Format::Json => {
            let mut answer = header(program);
            answer["shape"] = shape::json(program);
            answer["points"] = picture.corners().iter().map(|(x, y)| [x.to_string(), y.to_string()]).collect();
            write_json(streams, &answer)?;
        }
    }
    if let Some(file) = file {
        fs::write(file, svg::draw(&picture))
            .map_err(|error| io::Error::new(error.kind(), format!("cannot write {}: {error}", file.display())))?;
        writeln!(streams.err, "wrote {}", file.display())?;
    }
    Ok(Ending::Fine)
}

impl<'a> Picture<'a> {
    /// `None` where numbers do not fit.
    fn new(program: &'a Program, from: Ratio, to: Ratio) -> Option<Self> {
        let range = program.analysis().range(from, Some(to))?;
        let (low, high) = ends(range)?;
        let resource = program.field().resource;
        let horizontal = Scale::exact(from, to, resource)?;
        // From zero, so that steepness can be compared between pictures.
        let vertical = Scale::rounded(low.min(Ratio::ZERO), high.max(Ratio::ZERO), resource)?;
        Some(Self { program, horizontal, vertical })
    }

    fn value_at(&self, x: Ratio) -> Option<Ratio> {
        self.program.analysis().value_at(x)
    }

    /// The knees inside the picture.
    fn knees(&self) -> Vec<(Ratio, Ratio)> {
        let inside = |at: Ratio| at > self.horizontal.low && at < self.horizontal.high;
        let knees = self.program.analysis().knees().filter(|knee| inside(knee.at));
        knees.filter_map(|knee| Some((knee.at, knee.value?))).collect()
    }

    /// Where the straight lines begin and end.
    fn corners(&self) -> Vec<(Ratio, Ratio)> {
        let end = |x| self.value_at(x).map(|y| (x, y));
        let mut corners: Vec<(Ratio, Ratio)> = end(self.horizontal.low).into_iter().collect();
        corners.extend(self.knees());
        corners.extend(end(self.horizontal.high));
        corners
    }
}
