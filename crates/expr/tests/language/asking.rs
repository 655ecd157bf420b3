//! How the tests ask: one expression, one field, one answer.

use pillion_expr::{Error, ErrorCode, EvalError, Field, Input, Program};

pub(crate) const CPU: Field = Field::LIMITS_CPU;
pub(crate) const MEMORY: Field = Field::LIMITS_MEMORY;

pub(crate) fn compile(expression: &str, field: Field) -> Program {
    Program::compile(expression, field).unwrap_or_else(|error| unreachable_render(&error, expression, field))
}

#[expect(clippy::panic, reason = "a test that shows the caret is easier to mend")]
fn unreachable_render(error: &Error, expression: &str, field: Field) -> ! {
    panic!("{}", error.render(expression, &field.to_string()))
}

pub(crate) fn amount(text: &str) -> Input {
    match text {
        "unlimited" => Input::Unlimited,
        text => Input::Amount(text.parse().unwrap()),
    }
}

pub(crate) fn eval(expression: &str, field: Field, input: &str) -> Result<String, EvalError> {
    let outcome = compile(expression, field).eval(amount(input))?;
    Ok(outcome.human(field.resource).to_string())
}

pub(crate) fn refusal(expression: &str, field: Field) -> (ErrorCode, String, String) {
    let error = Program::compile(expression, field).unwrap_err();
    let token = error.span.of(expression).to_owned();
    (error.code, token, error.help)
}

pub(crate) fn negative_where(expression: &str, field: Field) -> Vec<String> {
    compile(expression, field)
        .analysis()
        .negative()
        .iter()
        .map(|interval| {
            let bracket = if interval.from_included { '[' } else { '(' };
            let to = interval.to.map_or("∞".to_owned(), |to| to.to_string());
            format!("{bracket}{}, {to})", interval.from)
        })
        .collect()
}
