use proptest::prelude::*;

use crate::{Format, ParseError, Quantity, Resource};

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap()
}

#[test]
fn addition_keeps_the_first_notation_unless_it_is_zero() {
    for (left, right, sum) in [
        ("1Gi", "1M", "1074741824"),
        ("1Gi", "512Mi", "1536Mi"),
        ("0", "1Gi", "1Gi"),
        ("1M", "1Mi", "2048576"),
        ("200m", "400m", "600m"),
        ("1e3", "1", "1001"),
    ] {
        let added = quantity(left).checked_add(quantity(right)).unwrap();
        assert_eq!(added.to_string(), sum, "{left} + {right}");
        let back = added.checked_sub(quantity(right)).unwrap();
        assert_eq!(back, quantity(left), "{left} + {right} - {right}");
    }
}

#[test]
fn arithmetic_that_does_not_fit_is_none() {
    let most = Quantity::from_nano(i128::MAX, Format::DecimalSi);
    let least = Quantity::from_nano(i128::MIN, Format::DecimalSi);
    let one = Quantity::from_nano(1, Format::DecimalSi);
    assert_eq!(most.checked_add(one), None);
    assert_eq!(least.checked_sub(one), None);
    assert_eq!(most.checked_mul(2), None);
    assert_eq!(least.checked_neg(), None);
    assert_eq!(most.round_up(Resource::Cpu), None);
    assert_eq!(most.checked_sub(one).unwrap().nano(), i128::MAX - 1);
}

#[test]
fn rounding_goes_up_to_what_the_resource_can_hold() {
    for (text, cpu, memory) in [
        ("0", "0", "0"),
        ("1n", "1m", "1"),
        ("29m", "29m", "1"),
        ("1000001u", "1001m", "2"),
        ("13421772800m", "13421772800m", "13421773"),
        ("-1500u", "-1m", "0"),
        ("1.5Gi", "1536Mi", "1536Mi"),
    ] {
        let rounded = |resource| quantity(text).round_up(resource).unwrap().to_string();
        assert_eq!(rounded(Resource::Cpu), cpu, "{text} of cpu");
        assert_eq!(rounded(Resource::Memory), memory, "{text} of memory");
    }
}

#[test]
fn people_read_the_suffix_they_would_write() {
    for (text, cpu, memory) in [
        ("0", "0", "0"),
        ("300m", "300m", "0.3"),
        ("2", "2", "2"),
        ("2000", "2000", "2k"),
        ("1.5", "1500m", "1.5"),
        ("1500u", "1500u", "0.0015"),
        ("13421772800m", "13421772800m", "13421772.8"),
        ("13421773", "13421773", "13421773"),
        ("157286400", "157286400", "150Mi"),
        ("200M", "200000000", "200M"),
        ("1024000", "1024000", "1000Ki"),
        ("1.5Gi", "1610612736", "1536Mi"),
        ("-1.5Gi", "-1610612736", "-1536Mi"),
        ("-0.5", "-500m", "-0.5"),
    ] {
        let quantity = quantity(text);
        assert_eq!(quantity.human(Resource::Cpu).to_string(), cpu, "{text}");
        assert_eq!(quantity.human(Resource::Memory).to_string(), memory, "{text}");
    }
    assert_eq!(format!("[{:>6}]", quantity("300m").human(Resource::Cpu)), "[  300m]");
    assert_eq!(format!("[{:<6}]", quantity("1.5Ki")), "[1536  ]");
}

#[test]
fn value_and_milli_value_round_away_from_zero() {
    for (text, value, milli) in [
        ("1.1111111111", 2, 1112),
        ("-1.1111111111", -2, -1112),
        ("-0.1n", -1, -1),
        ("1000E", 1_000_000_000_000_000_000_000, 1_000_000_000_000_000_000_000_000),
    ] {
        assert_eq!(quantity(text).value(), value, "{text}");
        assert_eq!(quantity(text).milli_value(), milli, "{text}");
    }
}

#[test]
fn refusals_name_their_cause() {
    for (text, cause) in [
        ("", ParseError::Empty),
        ("1 Ki", ParseError::Malformed),
        ("200MB", ParseError::Malformed),
        ("1ki", ParseError::Suffix),
        ("1e", ParseError::Suffix),
        (".Ei", ParseError::NoDigits),
        ("1e4294967299", ParseError::Exponent),
        ("1e30", ParseError::TooLarge),
        ("170141183460469231731687303715.884105728", ParseError::TooLarge),
    ] {
        assert_eq!(text.parse::<Quantity>(), Err(cause), "{text}");
    }
    let most = quantity("170141183460469231731687303715.884105727");
    assert_eq!(most.nano(), i128::MAX);
}

#[test]
fn exabytes_print_what_they_are() {
    assert_eq!(quantity("1000E").to_string(), "1000E");
    assert_eq!(quantity("1e21").to_string(), "1e21");
}

#[test]
fn a_long_text_is_read_in_one_pass() {
    let zeros = "0".repeat(1 << 20);
    assert_eq!(quantity(&format!("0.{zeros}1")).nano(), 1);
    assert_eq!(quantity(&format!("{zeros}7")).nano(), 7_000_000_000);
    assert_eq!(quantity(&format!("0.{zeros}1Ei")).nano(), 1);
    assert_eq!(quantity("1e-2147483648").nano(), 1);
    assert_eq!("1e2147483647".parse::<Quantity>(), Err(ParseError::TooLarge));
    assert_eq!(quantity("0e2147483647").nano(), 0);
}

#[test]
fn json_takes_texts_and_whole_numbers() {
    for (json, printed) in [
        (r#""1.5Gi""#, r#""1536Mi""#),
        (r#"" 500m ""#, r#""500m""#),
        ("2", r#""2""#),
        ("-1", r#""-1""#),
        ("18446744073709551615", r#""18446744073709551615""#),
    ] {
        let read: Quantity = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), printed, "{json}");
    }
    let error = serde_json::from_str::<Quantity>(r#""200MB""#).unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"200MB\": not a quantity: write digits and at most one suffix, such as 500m, 1.5Gi or 2e3 at line 1 column 7"
    );
    assert!(serde_json::from_str::<Quantity>("0.5").is_err());
}

fn any_quantity() -> impl Strategy<Value = Quantity> {
    let nano = prop_oneof![
        any::<i128>(),
        any::<i64>().prop_map(i128::from),
        (any::<i32>(), 0_u32..19).prop_map(|(n, zeros)| i128::from(n) * 10_i128.pow(zeros)),
        (any::<i32>(), 0_u32..32).prop_map(|(n, shift)| (i128::from(n) * 1_000_000_000) << shift),
    ];
    let format = prop_oneof![Just(Format::DecimalSi), Just(Format::BinarySi), Just(Format::DecimalExponent)];
    (nano, format).prop_map(|(nano, format)| Quantity::from_nano(nano, format))
}

proptest! {
    #[test]
    fn what_is_printed_reads_back_exactly(quantity in any_quantity()) {
        // Binary notation is capped on the way in, as Kubernetes caps it.
        let cap = i128::from(i64::MAX) * 1_000_000_000;
        prop_assume!(quantity.format() != Format::BinarySi || quantity.nano().abs() <= cap);
        // The text of i128::MIN has a magnitude that does not fit.
        prop_assume!(quantity.nano() != i128::MIN);
        let printed = quantity.to_string();
        prop_assert_eq!(printed.parse::<Quantity>().unwrap().nano(), quantity.nano());
    }

    #[test]
    fn human_spelling_reads_back_exactly(nano in any::<i64>(), whole in any::<i32>()) {
        for nano in [i128::from(nano), i128::from(whole) * 1_000_000_000] {
            let quantity = Quantity::from_nano(nano, Format::DecimalSi);
            for resource in [Resource::Cpu, Resource::Memory] {
                let printed = quantity.human(resource).to_string();
                prop_assert_eq!(printed.parse::<Quantity>().unwrap(), quantity, "{}", printed);
            }
        }
    }

    #[test]
    fn rounding_up_is_the_least_that_holds(nano in -(1_i128 << 90)..(1_i128 << 90)) {
        for resource in [Resource::Cpu, Resource::Memory] {
            let rounded = Quantity::from_nano(nano, Format::DecimalSi).round_up(resource).unwrap().nano();
            prop_assert_eq!(rounded % resource.step(), 0);
            prop_assert!(rounded >= nano && rounded - nano < resource.step());
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,40}") {
        let _ = text.parse::<Quantity>();
    }
}
