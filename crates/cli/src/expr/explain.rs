//! `pillion expr explain`: the arithmetic, part by part.

use std::io;

use pillion_expr::{Input, Program, Step};
use serde_json::{Value, json};

use super::{eval, header, write_json};
use crate::{Ending, Format, Streams};

pub(super) fn run(program: &Program, input: Input, format: Format, streams: &mut Streams<'_>) -> io::Result<Ending> {
    let Ok(explanation) = program.explain(input) else {
        // The input is refused, or a part is too long to be written down: the plain answer remains.
        return eval::run(program, input, format, streams);
    };
    match format {
        Format::Text => writeln!(streams.out, "{explanation}")?,
        Format::Json => {
            let mut answer = header(program);
            answer["input"] = input.human(program.field().resource).to_string().into();
            answer["steps"] = tree(&explanation.root);
            answer["outcome"] = eval::outcome(program, &explanation.result);
            write_json(streams, &answer)?;
        }
    }
    Ok(eval::ending(&explanation.result))
}

fn tree(step: &Step) -> Value {
    json!({
        "text": step.text,
        "value": step.value.to_string(),
        "span": {"start": step.span.start, "end": step.span.end},
        "parts": step.children.iter().map(tree).collect::<Vec<_>>(),
    })
}
