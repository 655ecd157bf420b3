//! Which containers count, and what they add up to.
#![expect(clippy::unwrap_used, reason = "a test")]

use pillion_expr::{Amounts, Container, Field, Input, Mode, NamePattern, PatternError, Quantity, Targets};
use pillion_quantity::Format;

fn container<'a>(name: &'a str, request: Option<&str>, limit: Option<&str>) -> Container<'a> {
    let amounts = |text: Option<&str>| Amounts { cpu: text.map(|text| text.parse().unwrap()), memory: None };
    Container { name, requests: amounts(request), limits: amounts(limit) }
}

fn amount(text: &str) -> Input {
    Input::Amount(text.parse().unwrap())
}

#[test]
fn a_missing_limit_is_unlimited_and_a_missing_request_is_zero() {
    let all = [
        container("app", Some("100m"), Some("1")),
        container("web", None, None),
        container("app-cache", Some("250m"), Some("500m")),
    ];
    for (pattern, mode, request, limit) in [
        (".*", Mode::Sum, amount("350m"), Input::Unlimited),
        (".*", Mode::Max, amount("250m"), Input::Unlimited),
        ("app", Mode::Sum, amount("350m"), amount("1500m")),
        ("app", Mode::Max, amount("250m"), amount("1")),
        ("^app$", Mode::Sum, amount("100m"), amount("1")),
        ("^(web)$", Mode::Sum, amount("0"), Input::Unlimited),
        ("cache|web", Mode::Max, amount("250m"), Input::Unlimited),
        (r"-\w+$", Mode::Sum, amount("250m"), amount("500m")),
    ] {
        let targets = Targets::select(all, &NamePattern::new(pattern).unwrap()).unwrap();
        let aggregate = |field| targets.aggregate(field, mode).unwrap();
        assert_eq!(aggregate(Field::REQUESTS_CPU), request, "{pattern} {mode}");
        assert_eq!(aggregate(Field::LIMITS_CPU), limit, "{pattern} {mode}");
        assert_eq!(aggregate(Field::REQUESTS_MEMORY), amount("0"), "{pattern} {mode}");
        assert_eq!(aggregate(Field::LIMITS_MEMORY), Input::Unlimited, "{pattern} {mode}");
    }
}

#[test]
fn no_target_names_the_pattern_and_what_there_was() {
    let all = [container("app", None, None), container("web", None, None)];
    let error = Targets::select(all, &NamePattern::new("^engine").unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "no container matches \"^engine\" (there are: app, web): change the pattern");
}

#[test]
fn a_sum_that_does_not_fit_names_the_container() {
    let most = Quantity::from_nano(i128::MAX, Format::DecimalSi);
    let limits = Amounts { cpu: Some(most), memory: None };
    let all = ["one", "two"].map(|name| Container { name, requests: limits, limits });
    let targets = Targets::select(all, &NamePattern::new(NamePattern::DEFAULT).unwrap()).unwrap();
    let error = targets.aggregate(Field::LIMITS_CPU, Mode::Sum).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the sum of limits.cpu over the containers up to \"two\" is out of range: lower one of them"
    );
    let largest = targets.aggregate(Field::LIMITS_CPU, Mode::Max).unwrap();
    assert_eq!(largest, Input::Amount(most));
}

#[test]
fn patterns_have_bounds() {
    assert_eq!(NamePattern::new(&"a".repeat(1025)).unwrap_err(), PatternError::TooLong(1025));
    assert!(NamePattern::new(&"a".repeat(1024)).unwrap().is_match(&"a".repeat(2000)));
    assert_eq!(NamePattern::new("((a{100}){100}){100}").unwrap_err(), PatternError::TooCostly);
    assert_eq!(
        NamePattern::new("(app").unwrap_err().to_string(),
        "the name pattern is not a regular expression: unclosed group"
    );
    assert_eq!("mean".parse::<Mode>().unwrap_err().to_string(), "unknown mode \"mean\": use sum or max");
}
