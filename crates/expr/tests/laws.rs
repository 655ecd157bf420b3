//! Laws that hold for every text, however odd.
#![expect(clippy::unwrap_used, reason = "a test")]

use pillion_expr::{Field, Input, Program, Ratio};
use proptest::prelude::*;

/// Pieces of expressions in any order: mostly wrong, often nearly right.
fn token_soup() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "cpu",
        "CPU",
        "memory",
        "max(",
        "min(",
        "(",
        ")",
        ",",
        "+",
        "-",
        "*",
        "/",
        " ",
        "\n",
        "1",
        "0",
        "0.5",
        ".5",
        "1.",
        "50%",
        "1e3",
        "1e",
        "100m",
        "5n",
        "1Mi",
        "5E",
        "200MB",
        "é",
        "%",
        "1/3",
        "cpu-4",
        "max(0,cpu)",
        "99999999999999999999",
    ]);
    prop::collection::vec(token, 0..24).prop_map(|tokens| tokens.concat())
}

fn field() -> impl Strategy<Value = Field> {
    prop::sample::select(Field::ALL.to_vec())
}

fn judge(text: &str, field: Field) -> Result<(), TestCaseError> {
    match Program::compile(text, field) {
        Ok(program) => {
            prop_assert_eq!(program.source(), text);
            let outcome = program.eval(Input::Unlimited);
            prop_assert_eq!(program.explain(Input::Unlimited).unwrap().result, outcome);
            prop_assert!(program.analysis().range(Ratio::ZERO, None).is_some());
        }
        Err(error) => {
            prop_assert!(text.get(error.span.start..error.span.end).is_some());
            prop_assert!(!error.message.is_empty() && !error.help.is_empty());
            prop_assert!(error.message.len() + error.help.len() < 500);
            let drawn = error.render(text, "limits.cpu");
            prop_assert_eq!(drawn.lines().count(), 6);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn soup_is_read_or_refused_in_its_place(text in token_soup(), field in field()) {
        judge(&text, field)?;
    }

    #[test]
    fn any_text_is_read_or_refused_in_its_place(text in "\\PC{0,60}", field in field()) {
        judge(&text, field)?;
    }
}

#[test]
fn fields_are_read_as_they_are_printed() {
    let names = ["requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];
    for (field, name) in Field::ALL.into_iter().zip(names) {
        assert_eq!(field.to_string(), name);
        assert_eq!(name.parse(), Ok(field));
    }
    assert_eq!(
        "limits.gpu".parse::<Field>().unwrap_err().to_string(),
        "unknown field \"limits.gpu\": use requests.cpu, requests.memory, limits.cpu or limits.memory"
    );
}

#[test]
fn ranges_are_of_sensible_domains() {
    let program = Program::compile("max(cpu, 2)", Field::LIMITS_CPU).unwrap();
    let analysis = program.analysis();
    let whole = Ratio::whole;
    assert_eq!(analysis.range(whole(3), Some(whole(1))), None);
    assert_eq!(analysis.range(whole(-1), None), None);
    assert_eq!(analysis.value_at(whole(-1)), None);
    assert_eq!(analysis.value_at(whole(1)), Some(whole(2)));
    assert_eq!(analysis.value_at(whole(5)), Some(whole(5)));
}
