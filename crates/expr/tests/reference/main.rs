//! Random expressions, compared with an evaluator that is too naive to be wrong.
//!
//! `PILLION_SEED` repeats a run; `PILLION_EXPRESSIONS` and `PILLION_DOMAINS` say how many to try.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod generator;
mod shape;
mod tree;

use num_rational::BigRational;
use num_traits::{Signed, Zero};
use pillion_expr::{ErrorCode, EvalError, Field, Input, Outcome, Program, Quantity};
use pillion_generators::settings;

use generator::Generator;
use tree::{Tree, Value, units};

/// Refusals that depend on sizes only; the share of them must stay small.
const BOUNDS: [ErrorCode; 2] = [ErrorCode::TooPrecise, ErrorCode::TooManyPieces];

/// 2^63 - 1 units in nano-units.
const LARGEST: i128 = i64::MAX as i128 * 1_000_000_000;

#[test]
fn evaluation_agrees() {
    let seed = settings::number("PILLION_SEED").unwrap_or_else(settings::seed_from_clock);
    let count = settings::number("PILLION_EXPRESSIONS").unwrap_or(5_000);
    println!("PILLION_SEED={seed} PILLION_EXPRESSIONS={count}");
    let mut generator = Generator::new(seed);
    let (mut compared, mut refused, mut out_of_bounds, mut negative) = (0_u64, 0_u64, 0_u64, 0_u64);
    for _ in 0..count {
        let (field, text, tree) = generator.expression();
        let wrong = |what: String| panic!("{text:?} for {field}, seed {seed}: {what}");
        match Program::compile(&text, field) {
            Ok(program) => {
                for input in generator.inputs(&program) {
                    let ours = program.eval(input);
                    let expected = expected(&tree, field, input);
                    if ours != expected {
                        wrong(format!("{input:?} gives {ours:?}, not {expected:?}"));
                    }
                    negative += u64::from(ours.is_err());
                    compared += 1;
                }
                explanation_agrees(&program, &tree, generator.some_inputs()[2]);
                explanation_agrees(&program, &tree, Input::Unlimited);
            }
            Err(error) if BOUNDS.contains(&error.code) => out_of_bounds += 1,
            Err(error) if error.code == ErrorCode::AlwaysNegative => {
                negative += 1;
                for input in generator.some_inputs() {
                    let value = tree.value(&tree::bind(input)).unwrap();
                    if !value.is_negative() {
                        wrong(format!("refused as always negative, but {input:?} gives {value:?}"));
                    }
                }
            }
            Err(error) => {
                refused += 1;
                let fault = tree.value(&tree::bind(Input::Unlimited)).err();
                if fault.is_none() || !tree::FAULTS.contains(&error.code) {
                    wrong(format!("refused with {error:?}, not for {fault:?}"));
                }
            }
        }
    }
    println!(
        "{compared} values compared ({negative} negative or too large), {refused} ill-typed, {out_of_bounds} past the bounds"
    );
    assert!(compared > count * 3, "too few values were compared");
    assert!(refused > count / 200, "too few ill-typed expressions");
    assert!(out_of_bounds <= count / 50, "too many expressions past the bounds");
}

#[test]
fn analysis_is_exact() {
    let seed = settings::number("PILLION_SEED").unwrap_or_else(settings::seed_from_clock);
    let count = settings::number("PILLION_DOMAINS").unwrap_or(1_000);
    println!("PILLION_SEED={seed} PILLION_DOMAINS={count}");
    let mut generator = Generator::new(seed);
    let (mut checked, mut knees, mut skipped, mut compared) = (0, 0, 0, 0);
    let mut last: Option<(Program, Tree)> = None;
    while checked < count {
        let (field, text, tree) = generator.expression();
        let Ok(program) = Program::compile(&text, field) else {
            skipped += 1;
            assert!(skipped < 1000 + count, "too few expressions compile");
            continue;
        };
        let domain = generator.domain(&program);
        if let Err(why) = shape::check(&program, &tree, domain, &mut generator) {
            panic!("{text:?} for {field} over {domain:?}, seed {seed}: {why}");
        }
        if let Some((other, of_other)) = &last {
            match shape::check_below((&program, &tree), (other, of_other), &mut generator) {
                Ok(said) => compared += u64::from(said),
                Err(why) => panic!("{text:?} and {:?}, seed {seed}: {why}", other.source()),
            }
        }
        knees += program.analysis().knees().len();
        checked += 1;
        last = Some((program, tree));
    }
    println!("{checked} pairs of expression and domain, {knees} knees, {compared} pairs of expressions");
    assert!(knees as u64 > count * 7 / 10, "too few knees to be a test");
    assert!(compared > count * 9 / 10, "too few pairs of expressions");
}

/// What the program must answer, by the naive way.
fn expected(tree: &Tree, field: Field, input: Input) -> Result<Outcome, EvalError> {
    let resource = field.resource;
    let value = tree.value(&tree::bind(input)).unwrap();
    if value.infinite.is_positive() {
        return Ok(Outcome::Unlimited);
    }
    if value.is_negative() {
        let nano = value.infinite.is_zero().then(|| &value.finite * units(1_000_000_000));
        let result = nano.map(|nano| tree::quantity(&nano.floor()));
        return Err(EvalError::Negative { input, result, resource });
    }
    let steps = &value.finite * units(1_000_000_000) / units(resource.step());
    let nano = steps.ceil() * units(resource.step());
    if nano > units(i128::from(i64::MAX) * 1_000_000_000) {
        return Err(EvalError::TooLarge { input, resource });
    }
    Ok(Outcome::Amount(tree::quantity(&nano)))
}

fn explanation_agrees(program: &Program, tree: &Tree, input: Input) {
    let Ok(explanation) = program.explain(input) else {
        return;
    };
    assert_eq!(explanation.result, program.eval(input));
    let expected = tree.value(&tree::bind(input)).unwrap();
    let shown = Value::from(explanation.root.value);
    assert_eq!((shown.finite, shown.infinite), (expected.finite, expected.infinite));
}

fn big(ratio: pillion_expr::Ratio) -> BigRational {
    BigRational::new(ratio.numerator().into(), ratio.denominator().into())
}

fn nano(nano: i128) -> Input {
    Input::Amount(Quantity::from_nano(nano, pillion_quantity::Format::DecimalSi))
}
