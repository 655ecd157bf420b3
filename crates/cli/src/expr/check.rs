//! `pillion expr check`: what can be said of an expression for every pod there can be.

use std::io;

use pillion_api::{FieldPath, expression_warnings};
use pillion_expr::{Program, Ratio};

use super::{header, shape, write_json};
use crate::{Ending, Format, Streams};

pub(super) fn run(program: &Program, format: Format, streams: &mut Streams<'_>) -> io::Result<Ending> {
    let warnings: Vec<String> = expression_warnings(program, &FieldPath::root())
        .into_iter()
        .map(|warning| format!("{}; {}", warning.message, warning.help))
        .collect();
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
