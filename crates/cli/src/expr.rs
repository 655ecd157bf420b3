//! `pillion expr`: the workbench for resource expressions.

use std::io;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use pillion_expr::{Error, Field, Input, Program};
use pillion_quantity::Quantity;
use serde_json::{Value, json};

use crate::{Ending, Format, Streams};

mod check;
mod eval;
mod explain;
mod plot;
mod shape;

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Print what an expression comes to.
    Eval {
        #[command(flatten)]
        expression: Expression,
        #[command(flatten)]
        amount: Amount,
    },
    /// Show the arithmetic, part by part.
    Explain {
        #[command(flatten)]
        expression: Expression,
        #[command(flatten)]
        amount: Amount,
    },
    /// Check an expression for every pod there can be: errors, knees, slopes, where it is negative.
    Check {
        #[command(flatten)]
        expression: Expression,
    },
    /// Draw an expression.
    Plot {
        #[command(flatten)]
        expression: Expression,
        /// The smallest pod to draw.
        #[arg(long, value_name = "QUANTITY", default_value = "0")]
        from: Quantity,
        /// The largest pod to draw, such as 12 (cores) or 16Gi.
        #[arg(long, value_name = "QUANTITY")]
        to: Quantity,
        /// Also write a picture.
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
        /// Width of the drawing.
        #[arg(long, env = "COLUMNS", default_value_t = 80, value_parser = clap::value_parser!(u16).range(40..=400))]
        columns: u16,
    },
}

#[derive(Args)]
pub(crate) struct Expression {
    /// The expression, such as 'max(cpu*50%, 50m)'.
    #[arg(value_name = "EXPRESSION", allow_hyphen_values = true)]
    text: String,
    /// The field it computes: requests.cpu, requests.memory, limits.cpu or limits.memory.
    #[arg(long)]
    field: Field,
    /// Format of the output.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Amount {
    /// What the pod's containers come to, such as 600m or 2Gi.
    #[arg(long)]
    value: Option<Quantity>,
    /// One of the pod's containers has no limit.
    #[arg(long)]
    unlimited: bool,
}

impl Amount {
    fn input(&self) -> Input {
        self.value.map_or(Input::Unlimited, Input::Amount)
    }
}

pub(crate) fn run(verb: &Verb, streams: &mut Streams<'_>) -> io::Result<Ending> {
    let (Verb::Eval { expression, .. }
    | Verb::Explain { expression, .. }
    | Verb::Check { expression }
    | Verb::Plot { expression, .. }) = verb;
    let program = match Program::compile(&expression.text, expression.field) {
        Ok(program) => program,
        Err(error) => return refuse(expression, &error, streams),
    };
    let format = expression.output;
    match verb {
        Verb::Eval { amount, .. } => eval::run(&program, amount.input(), format, streams),
        Verb::Explain { amount, .. } => explain::run(&program, amount.input(), format, streams),
        Verb::Check { .. } => check::run(&program, format, streams),
        Verb::Plot { from, to, svg, columns, .. } => {
            let area = plot::Area { from: *from, to: *to, columns: *columns };
            plot::run(&program, area, svg.as_deref(), format, streams)
        }
    }
}

/// Says what is wrong with an expression that does not compile.
fn refuse(expression: &Expression, error: &Error, streams: &mut Streams<'_>) -> io::Result<Ending> {
    match expression.output {
        Format::Text => {
            write!(streams.err, "{}", error.render(&expression.text, &expression.field.to_string()))?;
        }
        Format::Json => write_json(
            streams,
            &json!({
                "expression": expression.text, "field": expression.field.to_string(),
                "error": {"code": error.code.as_str(), "message": error.message, "help": error.help,
                          "span": {"start": error.span.start, "end": error.span.end}},
            }),
        )?,
    }
    Ok(Ending::Finding)
}

/// What every answer about a program begins with.
fn header(program: &Program) -> Value {
    json!({"expression": program.source(), "field": program.field().to_string()})
}

fn write_json(streams: &mut Streams<'_>, value: &Value) -> io::Result<()> {
    writeln!(streams.out, "{value:#}")
}
