//! `pillion expr check`: what can be said of an expression for every pod there can be.

use std::io;

use pillion_expr::{Program, Ratio};

use super::{header, shape, write_json};
use crate::{Ending, Format, Streams};

pub(super) fn run(program: &Program, format: Format, streams: &mut Streams<'_>) -> io::Result<Ending> {
    let warnings = warnings(program);
    match format {
        Format::Text => {
            writeln!(streams.out, "{}: valid", program.field())?;
            for (name, words) in shape::lines(program, Ratio::ZERO, None) {
                writeln!(streams.out, "  {name:<10} {words}")?;
            }
            for warning in &warnings {
                writeln!(streams.err, "warning: {warning}")?;
            }
        }
        Format::Json => {
            let mut answer = header(program);
            answer["shape"] = shape::json(program);
            answer["warnings"] = warnings.into();
            write_json(streams, &answer)?;
        }
    }
    Ok(Ending::Fine)
}

/// Pods that the expression would refuse.
fn warnings(program: &Program) -> Vec<String> {
    let resource = program.field().resource;
    let refused = |interval| {
        format!(
            "the result is negative for {}: such pods are refused; wrap it in max(0, …) if that is not meant",
            shape::interval(interval, resource)
        )
    };
    program.analysis().negative().iter().map(refused).collect()
}
