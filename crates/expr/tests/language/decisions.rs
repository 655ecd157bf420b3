//! What `OpenKruise` does with an expression, and what we decided to do instead.

use pillion_expr::{ErrorCode, Growth};

use crate::asking::{CPU, MEMORY, compile, eval, negative_where, refusal};

/// The twelve texts `OpenKruise` turns into 0 without a word.
#[test]
fn no_text_is_silently_zero() {
    use ErrorCode::{MalformedNumber, OtherQuantity, UnknownSuffix};
    for (text, code, help) in [
        ("100MB", UnknownSuffix, "did you mean `100M` or `100Mi`?"),
        ("1GB", UnknownSuffix, "did you mean `1G` or `1Gi`?"),
        ("200mb", UnknownSuffix, "did you mean `200M` or `200Mi`?"),
        ("1e", UnknownSuffix, "an exponent needs digits, such as `1e3`"),
        ("2cpu", UnknownSuffix, "write `2 * cpu`"),
        ("0.5cpu", UnknownSuffix, "write `0.5 * cpu`"),
        ("50%cpu", MalformedNumber, "write `50% * cpu`"),
        ("5%5", MalformedNumber, "put an operator after `5%`"),
        ("100u", OtherQuantity, "memory takes `k M G T P E`, `Ki Mi Gi Ti Pi Ei` or a bare number of bytes"),
        ("100n", OtherQuantity, "memory takes `k M G T P E`, `Ki Mi Gi Ti Pi Ei` or a bare number of bytes"),
    ] {
        for expression in [text.to_owned(), format!("max(memory*50%, {text})")] {
            let refused = refusal(&expression, MEMORY);
            assert_eq!(refused, (code, text.to_owned(), help.to_owned()), "{expression}");
        }
    }
    for text in ["100MB", "1GB", "200mb", "1e", "2cpu", "0.5cpu", "50%cpu", "5%5"] {
        assert_eq!(refusal(text, CPU).1, text, "in a cpu field");
    }
    // `1e+` is a number with a wrong suffix, then a plus with nothing behind it.
    assert_eq!(refusal("1e+", CPU).1, "1e");
    assert_eq!(refusal("1e+", MEMORY).1, "1e");
    // Legal quantities are evaluated as such.
    assert_eq!(eval("5E", MEMORY, "1").unwrap(), "5E");
    assert_eq!(refusal("5E", CPU).0, OtherQuantity);
    assert_eq!(eval("100u", CPU, "1").unwrap(), "1m");
    assert_eq!(eval("100u*100", CPU, "1").unwrap(), "10m");
    assert_eq!(eval("100n", CPU, "1").unwrap(), "1m");
    assert_eq!(eval("100n*1e6", CPU, "1").unwrap(), "100m");
    assert_eq!(eval("1Ei", MEMORY, "1").unwrap(), "1Ei");
}

/// `OpenKruise` validates by evaluating at the number 1.
#[test]
fn validation_looks_at_every_amount() {
    assert_eq!(refusal("cpu*cpu", CPU).0, ErrorCode::ProductOfAmounts);
    assert_eq!(refusal("cpu*cpu", CPU).1, "cpu*cpu");
    assert_eq!(refusal("2/cpu", CPU).0, ErrorCode::DivisorNotNumber);
    assert_eq!(refusal("2/cpu", CPU).1, "cpu");
    assert_eq!(refusal("10/(cpu-1)", CPU).0, ErrorCode::DivisorNotNumber);
    assert_eq!(refusal("10/(cpu-1)", CPU).1, "(cpu-1)");

    assert_eq!(eval("cpu-2", CPU, "6").unwrap(), "4");
    assert_eq!(negative_where("cpu-2", CPU), ["[0, 2)"]);
    assert_eq!(eval("memory-100Mi", MEMORY, "256Mi").unwrap(), "156Mi");
    assert_eq!(negative_where("memory-100Mi", MEMORY), ["[0, 104857600)"]);
    assert_eq!(eval("max(0, memory-100Mi)", MEMORY, "64Mi").unwrap(), "0");
    assert_eq!(eval("max(0, memory-100Mi)", MEMORY, "256Mi").unwrap(), "156Mi");
    assert_eq!(negative_where("max(0, memory-100Mi)", MEMORY), [""; 0]);
    assert_eq!(eval("MEMORY*50%", MEMORY, "256Mi").unwrap(), "128Mi");
    assert_eq!(eval("Max(Cpu*50%, MIN(CPU, 1))", CPU, "600m").unwrap(), "600m");
}

/// An unlimited aggregate is no special case: no expression fails for it that would not fail anyway.
#[test]
fn unlimited_is_the_limit_of_the_expression() {
    for (expression, field, result) in [
        ("200Mi", MEMORY, "200Mi"),
        ("min(cpu*50%, 2)", CPU, "2"),
        ("max(cpu*50%, 50m)", CPU, "unlimited"),
        ("cpu+1", CPU, "unlimited"),
        ("cpu*0.001", CPU, "unlimited"),
        ("cpu-cpu", CPU, "0"),
        ("0*cpu", CPU, "0"),
        ("cpu-cpu+1", CPU, "1"),
        ("max(cpu, 2*cpu) - 2*cpu + 3", CPU, "3"),
        ("min(cpu, 2*cpu, 7)", CPU, "7"),
        ("max(1-cpu, 50m)", CPU, "50m"),
        ("0.5*cpu - 0.3*max(0, cpu-4) + 0.3*max(0, cpu-8)", CPU, "unlimited"),
        ("0.5*cpu - 0.5*max(0, cpu-4)", CPU, "2"),
    ] {
        assert_eq!(eval(expression, field, "unlimited").unwrap(), result, "{expression}");
    }
    let refused = eval("1-cpu", CPU, "unlimited").unwrap_err();
    assert_eq!(refused.to_string(), "the result is negative: it falls without end where cpu is unlimited");
    assert_eq!(compile("1-cpu", CPU).analysis().growth(), Growth::Falls);
}

/// Exact fractions throughout, one rounding.
#[test]
fn rounding_is_up_and_only_at_the_end() {
    for (expression, field, input, result) in [
        ("memory*10%", MEMORY, "128Mi", "13421773"),
        ("cpu*29%", CPU, "100m", "29m"),
        ("cpu*57%", CPU, "100m", "57m"),
        ("cpu*58%", CPU, "100m", "58m"),
        ("cpu/3", CPU, "100m", "34m"),
        ("cpu/3*3", CPU, "100m", "100m"),
        ("1.005", CPU, "1", "1005m"),
        ("cpu/3 + cpu/3 + cpu/3", CPU, "1", "1"),
        ("memory*0.1*10", MEMORY, "1", "1"),
        ("0.5n + 0.5n", CPU, "1", "1m"),
    ] {
        assert_eq!(eval(expression, field, input).unwrap(), result, "{expression}");
    }
}

/// Expressions that were measured on `OpenKruise`; the app has requests 100m / 128Mi and limits 500m / 256Mi.
#[test]
fn measured_rows() {
    let both = |expression, resource: &str| {
        let field = |side: &str| format!("{side}.{resource}").parse().unwrap();
        let (limit, request) = match resource {
            "cpu" => ("500m", "100m"),
            _ => ("256Mi", "128Mi"),
        };
        (eval(expression, field("limits"), limit).unwrap(), eval(expression, field("requests"), request).unwrap())
    };
    for (expression, resource, limit, request) in [
        ("max(cpu*50%,50m)", "cpu", "250m", "50m"),
        ("cpu*0", "cpu", "0", "0"),
        ("cpu*29%", "cpu", "145m", "29m"),
        ("memory*10%", "memory", "26843546", "13421773"),
        ("100", "memory", "100", "100"),
        ("1Gi", "memory", "1Gi", "1Gi"),
        ("max(memory*0.1,100Mi)", "memory", "100Mi", "100Mi"),
        ("MEMORY*50%", "memory", "128Mi", "64Mi"),
        ("memory-100Mi", "memory", "156Mi", "28Mi"),
    ] {
        let expected = (limit.to_owned(), request.to_owned());
        assert_eq!(both(expression, resource), expected, "{expression}");
    }
    for (expression, field, code, token) in [
        ("200MB", MEMORY, ErrorCode::UnknownSuffix, "200MB"),
        ("50%cpu", CPU, ErrorCode::MalformedNumber, "50%cpu"),
        ("cpu/0", CPU, ErrorCode::DivisionByZero, "0"),
        ("-1", CPU, ErrorCode::AlwaysNegative, "-1"),
        ("-1", MEMORY, ErrorCode::AlwaysNegative, "-1"),
        ("max(memory*0.1,100Mi", MEMORY, ErrorCode::UnclosedParenthesis, "("),
        ("max(memory*50%, 100MB)", MEMORY, ErrorCode::UnknownSuffix, "100MB"),
        ("1e", CPU, ErrorCode::UnknownSuffix, "1e"),
        ("0.5cpu", CPU, ErrorCode::UnknownSuffix, "0.5cpu"),
        ("cpu*cpu", CPU, ErrorCode::ProductOfAmounts, "cpu*cpu"),
        ("2/cpu", CPU, ErrorCode::DivisorNotNumber, "cpu"),
        ("memory*1e400", MEMORY, ErrorCode::NumberOutOfRange, "1e400"),
        ("foo*2", CPU, ErrorCode::UnknownName, "foo"),
    ] {
        let refused = refusal(expression, field);
        assert_eq!((refused.0, refused.1.as_str()), (code, token), "{expression}");
    }
    // Negative for this pod only: the pod is refused, with the numbers, and not the set.
    let refused = eval("cpu-2", CPU, "500m").unwrap_err();
    assert_eq!(refused.to_string(), "the result is negative: -1500m where cpu is 500m");
}
