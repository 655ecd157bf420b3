//! `pillion expr eval`: just the quantity.

use std::io;

use pillion_expr::{EvalError, Input, Outcome, Program};
use serde_json::{Value, json};

use super::{header, write_json};
use crate::{Ending, Format, Streams};

pub(super) fn run(program: &Program, input: Input, format: Format, streams: &mut Streams<'_>) -> io::Result<Ending> {
    let result = program.eval(input);
    match (format, &result) {
        (Format::Text, Ok(outcome)) => writeln!(streams.out, "{}", outcome.human(program.field().resource))?,
        (Format::Text, Err(error)) => writeln!(streams.err, "error: {}: {error}", program.field())?,
        (Format::Json, _) => {
            let mut answer = header(program);
            answer["input"] = input.human(program.field().resource).to_string().into();
            answer["outcome"] = outcome(program, &result);
            write_json(streams, &answer)?;
        }
    }
    Ok(ending(&result))
}

/// A result as JSON: `{"result": "300m", "unlimited": false}`, or `{"error": …}`.
pub(super) fn outcome(program: &Program, result: &Result<Outcome, EvalError>) -> Value {
    match result {
        Ok(outcome) => json!({
            "result": outcome.human(program.field().resource).to_string(),
            "unlimited": *outcome == Outcome::Unlimited,
        }),
        Err(error) => json!({"error": error.to_string()}),
    }
}

pub(super) fn ending(result: &Result<Outcome, EvalError>) -> Ending {
    if result.is_ok() { Ending::Fine } else { Ending::Finding }
}
