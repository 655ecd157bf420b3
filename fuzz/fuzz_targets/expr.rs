//! Any text: refused with a span inside it, or compiled to something that evaluates as its own analysis says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pillion_expr::{Field, Input, Outcome, Program, Quantity, Ratio};

fuzz_target!(|text: &str| {
    for field in Field::ALL {
        let program = match Program::compile(text, field) {
            Ok(program) => program,
            Err(error) => {
                assert!(error.span.start <= error.span.end && error.span.end <= text.len(), "{error:?}");
                assert!(!error.render(text, "fuzz").is_empty());
                continue;
            }
        };
        let analysis = program.analysis();
        for amount in ["0", "1n", "1", "600m", "4", "3Gi", "1E"] {
            let amount: Quantity = amount.parse().expect("a quantity");
            let exact = Ratio::from_quantity(amount).and_then(|amount| analysis.value_at(amount));
            match (program.eval(Input::Amount(amount)), exact) {
                (Ok(Outcome::Amount(result)), Some(exact)) => {
                    let result = Ratio::from_quantity(result).expect("results fit");
                    assert!(result >= exact, "{text} at {amount} is {result}, below {exact}");
                    assert!(exact.signum() >= 0);
                }
                (Ok(Outcome::Unlimited), _) => panic!("{text} is unlimited at {amount}"),
                _ => {}
            }
        }
        let _ = program.eval(Input::Unlimited);
        let _ = program.explain(Input::Unlimited);
    }
});
