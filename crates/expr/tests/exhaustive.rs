//! Every common size with every percentage: none may be off by one, none may be a fraction.

use pillion_expr::{Field, Input, Outcome, Program, Quantity};
use pillion_quantity::Format;

#[test]
fn no_cpu_percentage_is_wrong() {
    let mut cases = 0;
    for percent in 1..=99_i64 {
        let program = Program::compile(&format!("cpu*{percent}%"), Field::LIMITS_CPU).unwrap();
        for milli in (50..=64_000).step_by(50) {
            let exact = milli * percent;
            let expected = Quantity::from_milli(exact / 100 + i64::from(exact % 100 != 0));
            let result = program.eval(Input::Amount(Quantity::from_milli(milli)));
            assert_eq!(result, Ok(Outcome::Amount(expected)), "{milli}m * {percent}%");
            cases += 1;
        }
    }
    assert_eq!(cases, 126_720);
}

#[test]
fn no_memory_percentage_is_a_fraction_of_a_byte() {
    let sizes = (0..=45)
        .flat_map(|shift| [1_i64 << shift, 3 << shift, 5 << shift, 1000 << shift])
        .chain((0..=15).flat_map(|power| [10_i64.pow(power), 15 * 10_i64.pow(power)]))
        .chain([64, 100, 128, 200, 256, 300, 400, 500, 512, 600, 750, 800, 1200].map(|mebi| mebi << 20));
    let sizes: Vec<i64> = sizes.collect();
    for percent in 1..=99_i64 {
        let program = Program::compile(&format!("memory*{percent}%"), Field::LIMITS_MEMORY).unwrap();
        for &size in &sizes {
            let exact = i128::from(size) * i128::from(percent);
            let expected = exact / 100 + i128::from(exact % 100 != 0);
            let input = Input::Amount(Quantity::from_units(size, Format::BinarySi));
            let Outcome::Amount(result) = program.eval(input).unwrap() else {
                unreachable!("a finite amount is never unlimited");
            };
            assert_eq!(result.nano(), expected * 1_000_000_000, "{size} * {percent}%");
            // What goes into the pod is what was computed, in whole bytes.
            for printed in [result.to_string(), result.human(program.field().resource).to_string()] {
                assert!(!printed.ends_with('m') && !printed.contains('.'), "{printed}");
                assert_eq!(printed.parse::<Quantity>().unwrap(), result, "{printed}");
            }
        }
    }
    assert_eq!(sizes.len() * 99, 22_671);
}
