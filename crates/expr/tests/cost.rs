//! Evaluation allocates nothing; hostile texts are refused quickly and in little memory.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "the test, unlike the crate, looks at the clock"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use allocation_counter::measure;
use pillion_expr::{Error, ErrorCode, Field, Input, MAX_DEPTH, NamePattern, PatternError, Program, Quantity};

const STORY: &str = "0.5*cpu - 0.3*max(0, cpu-4) + 0.3*max(0, cpu-8)";

#[test]
fn evaluation_allocates_nothing() {
    let program = Program::compile(STORY, Field::LIMITS_CPU).unwrap();
    let falling = Program::compile("2-cpu", Field::LIMITS_CPU).unwrap();
    let info = measure(|| {
        for milli in 0..20_000 {
            let input = Input::Amount(Quantity::from_milli(milli));
            let _ = black_box(program.eval(black_box(input)));
            let _ = black_box(falling.eval(black_box(input)));
        }
        let _ = black_box(program.eval(Input::Unlimited));
        let _ = black_box(falling.eval(Input::Unlimited));
    });
    assert_eq!((info.count_total, info.bytes_total), (0, 0));
    // The counter counts: compiling does allocate.
    let info = measure(|| {
        let _ = black_box(Program::compile(STORY, Field::LIMITS_CPU));
    });
    assert!(info.count_total > 0);
}

fn hostile() -> Vec<(&'static str, String)> {
    let mebibyte = 1 << 20;
    let fill = |text: &str| text.repeat(mebibyte / text.len());
    vec![
        ("parentheses", fill("(")),
        ("calls", fill("max(")),
        ("signs", fill("-")),
        ("digits", fill("9")),
        ("exponent", format!("1e{}", fill("9"))),
        ("sum", fill("cpu+") + "1"),
        ("arguments", format!("max({}1)", fill("cpu,"))),
        ("blanks", fill(" ")),
        ("letters", fill("x")),
        ("non-ascii", fill("é")),
    ]
}

/// The least of several runs: the machine may be busy, the work is always the same.
fn fastest<T>(run: impl Fn() -> T) -> Duration {
    (0..20)
        .map(|_| {
            let start = Instant::now();
            let _ = black_box(run());
            start.elapsed()
        })
        .min()
        .unwrap()
}

#[test]
fn a_mebibyte_is_refused_at_once() {
    for (name, text) in hostile() {
        let refuse = || Program::compile(&text, Field::LIMITS_CPU).unwrap_err();
        assert_eq!(refuse().code, ErrorCode::TooLong, "{name}");
        let took = fastest(refuse);
        assert!(took < Duration::from_millis(1), "{name} took {took:?}");
        let drawn = |error: &Error| error.render(&text, "limits.cpu");
        let info = measure(|| assert!(drawn(&refuse()).len() < 4096));
        assert!(info.bytes_max < 1 << 20, "{name} took {} bytes", info.bytes_max);
    }
    let pattern = "(a|b)*".repeat((1 << 20) / 6);
    let refuse = || NamePattern::new(&pattern).unwrap_err();
    assert_eq!(refuse(), PatternError::TooLong(pattern.len()));
    assert!(fastest(refuse) < Duration::from_millis(1));
    assert!(measure(|| drop(refuse())).bytes_max < 1 << 20);
}

#[test]
fn what_fits_the_length_meets_the_other_bounds() {
    for (text, code) in [
        ("(".repeat(4096), ErrorCode::TooDeep),
        ("-".repeat(4096), ErrorCode::TooDeep),
        ("max(1,".repeat(600), ErrorCode::TooDeep),
        ("9".repeat(4096), ErrorCode::NumberOutOfRange),
        (format!("1e{}", "9".repeat(4000)), ErrorCode::NumberOutOfRange),
        ("1e999999999".to_owned(), ErrorCode::NumberOutOfRange),
        ("1e-999999999".to_owned(), ErrorCode::NumberOutOfRange),
        (format!(".{}1", "0".repeat(4000)), ErrorCode::NumberOutOfRange),
        ("cpu+".repeat(1000) + "1", ErrorCode::TooManyParts),
        (format!("max({}1)", "cpu,".repeat(1000)), ErrorCode::TooManyParts),
        (bends(80), ErrorCode::TooManyPieces),
        (divisors(60), ErrorCode::TooPrecise),
    ] {
        let refuse = || Program::compile(&text, Field::LIMITS_CPU).unwrap_err();
        let start = &text[..text.len().min(40)];
        assert_eq!(refuse().code, code, "{start}");
        let info = measure(|| drop(refuse()));
        assert!(info.bytes_max < 1 << 20, "{start} took {} bytes", info.bytes_max);
        println!("{code} in {:?}, {} bytes: {start}", fastest(refuse), info.bytes_max);
    }
    let deepest = format!("{}cpu{}", "(".repeat(MAX_DEPTH), ")".repeat(MAX_DEPTH));
    assert!(Program::compile(&deepest, Field::LIMITS_CPU).is_ok());
    let too_deep = format!("({deepest})");
    let error = Program::compile(&too_deep, Field::LIMITS_CPU).unwrap_err();
    assert_eq!(error.code, ErrorCode::TooDeep);
}

/// A maximum of so many tangents, each of which shows.
fn bends(count: i32) -> String {
    let lines: Vec<String> = (1..=count).map(|n| format!("{n}*cpu-{}", n * n)).collect();
    format!("max({})", lines.join(","))
}

fn divisors(count: i32) -> String {
    let parts: Vec<String> = (1..=count).map(|n| format!("cpu/{}", 1_000_003 + 2 * n)).collect();
    parts.join("+")
}

#[test]
fn pieces_up_to_the_bound_are_exact() {
    // Sixty tangents of a parabola: knees halfway between the points they touch it at.
    let program = Program::compile(&bends(60), Field::LIMITS_CPU).unwrap();
    let knees: Vec<String> = program.analysis().knees().map(|knee| knee.at.to_string()).collect();
    let expected: Vec<String> = (1..60).map(|n| (2 * n + 1).to_string()).collect();
    assert_eq!(knees, expected);
}
