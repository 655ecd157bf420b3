//! The language: types, signs, refusals and how they are drawn, explanations.

use pillion_expr::{ErrorCode, Field, Program, Sign};

use crate::asking::{CPU, MEMORY, amount, compile, eval, negative_where, refusal};

type Refusal = (&'static str, Field, ErrorCode, &'static str, &'static str);

/// Expression, field, code, token, help.
const REFUSED: &[Refusal] = &[
    (
        "cpu*50% + 100Mi",
        CPU,
        ErrorCode::OtherQuantity,
        "100Mi",
        "cpu takes `m`, `u`, `n` or a bare number of cores: `100m` is 0.1 core",
    ),
    ("memory + 100m", MEMORY, ErrorCode::OtherQuantity, "100m", "did you mean `100M` or `100Mi`?"),
    ("memory*2", CPU, ErrorCode::OtherVariable, "memory", "the variable here is `cpu`"),
    ("cpu*2", MEMORY, ErrorCode::OtherVariable, "cpu", "the variable here is `memory`"),
    (
        "100m*50m",
        CPU,
        ErrorCode::ProductOfAmounts,
        "100m*50m",
        "one of the factors must be a plain number, such as `0.5` or `50%`",
    ),
    ("cpu/100m", CPU, ErrorCode::DivisorNotNumber, "100m", "the divisor must be a plain number"),
    ("cpu/(1-1)", CPU, ErrorCode::DivisionByZero, "(1-1)", "divide by another number"),
    ("max(cpu)", CPU, ErrorCode::ArgumentCount, "max(cpu)", "write `max(x, y)`"),
    ("max()", CPU, ErrorCode::ArgumentCount, "max()", "write `max(x, y)`"),
    ("min", CPU, ErrorCode::ArgumentCount, "min", "write `min(x, y)` with two or more arguments"),
    ("avg(cpu, 1)", CPU, ErrorCode::UnknownName, "avg", "the functions are `max` and `min`"),
    ("cpu 2", CPU, ErrorCode::ExpectedOperator, "2", "write `*` to multiply"),
    ("2(cpu)", CPU, ErrorCode::ExpectedOperator, "(", "write `*` to multiply"),
    ("cpu(2)", CPU, ErrorCode::ExpectedOperator, "(", "write `*` to multiply"),
    (
        "1,5*cpu",
        CPU,
        ErrorCode::ExpectedOperator,
        ",",
        "commas separate the arguments of `max` and `min`; a decimal point is `.`",
    ),
    ("cpu)", CPU, ErrorCode::UnopenedParenthesis, ")", "remove it, or add a `(` before"),
    ("cpu*", CPU, ErrorCode::ExpectedOperand, "", "add a number, a quantity or a variable"),
    ("*cpu", CPU, ErrorCode::ExpectedOperand, "*", "add a number, a quantity or a variable before it"),
    ("+1", CPU, ErrorCode::ExpectedOperand, "+", "numbers take no `+` sign: leave it out"),
    ("50 %", CPU, ErrorCode::UnexpectedCharacter, "%", "put the percent sign directly after a number: `50%`"),
    ("cpu × 2", CPU, ErrorCode::UnexpectedCharacter, "×", "multiply with `*`"),
    (
        "1.2.3",
        CPU,
        ErrorCode::MalformedNumber,
        "1.2.3",
        "cpu takes `m`, `u`, `n` or a bare number of cores: `100m` is 0.1 core",
    ),
    (".", CPU, ErrorCode::MalformedNumber, ".", "write a digit before or after the point"),
    ("1e3Mi", MEMORY, ErrorCode::UnknownSuffix, "1e3Mi", "an exponent takes no suffix: write one or the other"),
    ("1GiB", MEMORY, ErrorCode::UnknownSuffix, "1GiB", "did you mean `1Gi`?"),
    ("1K", MEMORY, ErrorCode::UnknownSuffix, "1K", "did you mean `1k` or `1Ki`?"),
    ("1gi", MEMORY, ErrorCode::UnknownSuffix, "1gi", "did you mean `1Gi`?"),
    ("  ", CPU, ErrorCode::Empty, "", "write one such as `max(cpu*50%, 50m)`, or leave the field out"),
    ("cpu*1e12", CPU, ErrorCode::TooPrecise, "cpu*1e12", "use smaller numbers or fewer digits"),
    (
        "min(cpu, -1m)",
        CPU,
        ErrorCode::AlwaysNegative,
        "min(cpu, -1m)",
        "no container can have a negative amount: use `max(0, …)` or another expression",
    ),
];

#[test]
fn types_follow_the_resource_of_the_field() {
    for (expression, field, input, result) in [
        ("(1+2)*cpu", CPU, "1", "3"),
        ("cpu*(1-20%)", CPU, "1", "800m"),
        ("max(50%, 20%)*cpu", CPU, "1", "500m"),
        ("1/4*memory", MEMORY, "1Gi", "256Mi"),
        ("memory-2", MEMORY, "1Ki", "1022"),
        ("max(1, 2, cpu, 3)", CPU, "1", "3"),
        ("--cpu", CPU, "1", "1"),
        ("-(-cpu)", CPU, "1", "1"),
        ("2*-3*-cpu", CPU, "1", "6"),
        ("8/4/2", CPU, "1", "1"),
        ("8-4-2", CPU, "1", "2"),
        ("2+3*4", CPU, "1", "14"),
        ("1e3*1m", CPU, "1", "1"),
        (".5+1.", CPU, "1", "1500m"),
        ("1e-3*1e2%", CPU, "1", "1m"),
        (" \t\n2 ", CPU, "1", "2"),
        ("5E - 4E", MEMORY, "1", "1E"),
    ] {
        assert_eq!(eval(expression, field, input).unwrap(), result, "{expression}");
    }
}

#[test]
fn refusals_point_at_the_token_and_name_the_way_out() {
    for &(expression, field, code, token, help) in REFUSED {
        let expected = (code, token.to_owned(), help.to_owned());
        assert_eq!(refusal(expression, field), expected, "{expression}");
    }
}

#[test]
fn signs_are_exact_intervals() {
    for (expression, negative) in [
        ("cpu", vec![]),
        ("-cpu", vec!["(0, ∞)"]),
        ("1-cpu", vec!["(1, ∞)"]),
        ("cpu-1/3", vec!["[0, 1/3)"]),
        ("max(cpu-2, 1-cpu)", vec!["(1, 2)"]),
        ("min(cpu-1, 3-cpu)", vec!["[0, 1)", "(3, ∞)"]),
        // It touches zero at 2, and is negative on both sides.
        ("min(cpu-2, 2-cpu)", vec!["[0, 2)", "(2, ∞)"]),
        ("max(min(cpu-2, 2-cpu), -1)", vec!["[0, 2)", "(2, ∞)"]),
    ] {
        assert_eq!(negative_where(expression, CPU), negative, "{expression}");
    }
    assert_eq!(compile("-cpu", CPU).analysis().sign(), Sign::SometimesNegative);
}

#[test]
fn limits_of_zero_are_found() {
    for (expression, zero) in [
        ("cpu*50%", vec![]),
        ("max(0, cpu-2)", vec!["cpu in [0, 2]"]),
        ("0*cpu", vec!["cpu in [0, ∞)"]),
        ("max(cpu-2, 2-cpu)", vec!["cpu = 2"]),
        ("max(0, min(cpu, 4-cpu))", vec!["cpu in [4, ∞)"]),
        ("max(0, min(cpu-1, 3-cpu)) + max(0, cpu-5)", vec!["cpu in [0, 1]", "cpu in [3, 5]"]),
        // Next to negative amounts it is one of them that is put right.
        ("cpu-2", vec![]),
        ("min(cpu, 3-cpu)", vec![]),
        ("max(-1, min(0, cpu-2))", vec!["cpu in [2, ∞)"]),
    ] {
        let zeros = |field| compile(expression, field).zero_limits();
        let shown: Vec<String> = zeros(CPU).iter().map(|found| found.human(CPU.resource)).collect();
        assert_eq!(shown, zero, "{expression}");
        assert_eq!(zeros(Field::REQUESTS_CPU), [], "{expression}");
    }
}

#[test]
fn where_one_expression_is_below_another_is_found() {
    for (one, other, below) in [
        ("cpu", "cpu", vec![]),
        ("min(cpu, 2)", "cpu*50%", vec!["cpu in (4, ∞)"]),
        ("cpu*50%", "50m", vec!["cpu in [0, 0.1)"]),
        ("max(cpu, 1)", "max(cpu*2, 1) - max(0, cpu*2-4)", vec!["cpu in (0.5, 4)"]),
        ("1", "2", vec!["cpu in [0, ∞)"]),
        ("1", "max(cpu-3, 3-cpu)", vec!["cpu in [0, 2)", "cpu in (4, ∞)"]),
    ] {
        let [one, other] = [one, other].map(|expression| compile(expression, CPU));
        let found = one.analysis().below(&other.analysis()).unwrap();
        let shown: Vec<String> = found.iter().map(|found| found.human(CPU.resource)).collect();
        assert_eq!(shown, below, "{} {}", one.source(), other.source());
    }
}

#[test]
fn out_of_range_amounts_are_refused() {
    let program = compile("cpu*2", CPU);
    for (input, message) in [
        ("-1", "cpu cannot be -1: it is negative"),
        ("1e19", "more than 9223372036854775807 cpu is out of range, where cpu is 10000000000000000000"),
        ("9223372036854775807", "more than 9223372036854775807 cpu is out of range, where cpu is 9223372036854775807"),
    ] {
        assert_eq!(program.eval(amount(input)).unwrap_err().to_string(), message);
    }
    let most = compile("cpu", CPU).eval(amount("9223372036854775807")).unwrap();
    assert_eq!(most.human(CPU.resource).to_string(), "9223372036854775807");
}

#[test]
fn refusals_are_drawn_under_their_token() {
    let draw = |expression: &str, field: Field| {
        let error = Program::compile(expression, field).unwrap_err();
        error.render(expression, &field.to_string())
    };
    assert_eq!(
        draw("max(memory*50%, 200MB)", MEMORY),
        "\
error[EX203]: `200MB` has the unknown suffix `MB`
 --> limits.memory:1:17
  |
1 | max(memory*50%, 200MB)
  |                 ^^^^^
  = help: did you mean `200M` or `200Mi`?
"
    );
    assert_eq!(
        draw("max(cpu,\n\t2×)", CPU),
        "\
error[EX201]: unexpected '×'
 --> limits.cpu:2:3
  |
2 |  2×)
  |   ^
  = help: multiply with `*`
"
    );
    assert_eq!(
        draw("cpu*", CPU),
        "\
error[EX205]: the expression ends where an operand is missing
 --> limits.cpu:1:5
  |
1 | cpu*
  |     ^
  = help: add a number, a quantity or a variable
"
    );
    // What goes over several lines is quoted on one.
    assert_eq!(
        draw("1e31\n+ cpu*0", CPU),
        "\
error[EX308]: `1e31 + cpu*0` cannot be computed exactly: its numbers are too large or too long
 --> limits.cpu:1:1
  |
1 | 1e31
  | ^^^^
  = help: use smaller numbers or fewer digits
"
    );
    let long = format!("{} + foo + {}", "1+".repeat(50) + "1", "1+".repeat(50) + "1");
    assert_eq!(
        draw(&long, CPU),
        format!(
            "\
error[EX301]: there is no variable `foo`
 --> limits.cpu:1:105
  |
1 | …{}1 + foo + {}…
  |  {}^^^
  = help: the variable here is `cpu`
",
            "1+".repeat(28),
            "1+".repeat(28) + "1",
            " ".repeat(60),
        )
    );
}

#[test]
fn explanations_show_the_arithmetic() {
    let explain = |expression, field, input| compile(expression, field).explain(amount(input)).unwrap().to_string();
    assert_eq!(
        explain("max(cpu*50%, 50m)", CPU, "600m"),
        "\
cpu = 600m
cpu*50% = 600m * 50% = 300m
max(cpu*50%, 50m) = max(300m, 50m) = 300m
limits.cpu = 300m"
    );
    assert_eq!(
        explain("max(cpu*50%, 50m)", CPU, "unlimited"),
        "\
cpu = unlimited
cpu*50% = unlimited * 50% = unlimited
max(cpu*50%, 50m) = max(unlimited, 50m) = unlimited
limits.cpu = unlimited"
    );
    assert_eq!(
        explain("cpu/3 + (cpu-1)*2", CPU, "1"),
        "\
cpu = 1
cpu/3 = 1 / 3 = (1000/3)m
(cpu-1) = 1 - 1 = 0
(cpu-1)*2 = 0 * 2 = 0
cpu/3 + (cpu-1)*2 = (1000/3)m + 0 = (1000/3)m
limits.cpu = 334m"
    );
    assert_eq!(
        explain("1Gi-memory*10%", MEMORY, "20Gi"),
        "\
memory = 20Gi
memory*10% = 20Gi * 10% = 2Gi
1Gi-memory*10% = 1Gi - 2Gi = -1Gi
limits.memory is refused: the result is negative: -1Gi where memory is 20Gi"
    );
}

#[test]
fn codes_are_unique_and_in_order() {
    let codes: Vec<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    let mut sorted = codes.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(codes, sorted);
    assert_eq!(codes.len(), 22);
}

#[test]
fn lines_that_cross_where_one_of_them_bends_make_one_knee() {
    // Both are 2 at 2 cores, where the second bends and the first goes on.
    for (expression, before, after) in
        [("max(cpu, min(cpu*50% + 1, 2))", "0.5", "1"), ("min(cpu, max(cpu*50% + 1, 2))", "1", "0.5")]
    {
        let program = compile(expression, CPU);
        let segments: Vec<_> =
            program.analysis().segments().map(|it| (it.from.to_string(), it.slope.to_string())).collect();
        let expected = [("0", before), ("2", after)].map(|(from, slope)| (from.to_owned(), slope.to_owned()));
        assert_eq!(segments, expected, "{expression}");
    }
}
