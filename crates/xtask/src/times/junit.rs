//! The `JUnit` report of cargo-nextest, as far as times and flaky tests go.

use anyhow::Context;

/// One test that ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The binary that holds the test.
    pub suite: String,
    /// The path of the test in its binary.
    pub name: String,
    /// Seconds of its last try.
    pub seconds: f64,
    /// It failed and passed when it was tried again.
    pub is_flaky: bool,
    /// It failed in every try.
    pub is_failed: bool,
}

/// Every test of a report.
pub fn parse(report: &str) -> anyhow::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for part in report.split("<testcase ").skip(1) {
        let (head, rest) = part.split_once('>').context("a test case does not end")?;
        // Every attribute after a space: `name` is also the end of `classname`.
        let attributes = format!(" {head}");
        let body = if head.ends_with('/') { "" } else { rest.split("</testcase>").next().unwrap_or_default() };
        let attribute = |name: &str| {
            let value = attributes.split_once(&format!(" {name}=\"")).and_then(|(_, rest)| rest.split_once('"'));
            value.map(|(value, _)| unescape(value)).with_context(|| format!("a test case has no {name}: {head}"))
        };
        let is_flaky = body.contains("<flakyFailure");
        cases.push(Case {
            suite: attribute("classname")?,
            name: attribute("name")?,
            seconds: attribute("time")?.parse().context("the time of a test case is no number")?,
            is_flaky,
            // A flaky test that counts as failed has both.
            is_failed: body.contains("<failure") && !is_flaky,
        });
    }
    Ok(cases)
}

fn unescape(text: &str) -> String {
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")]
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="2" failures="0" errors="0" time="3.000">
    <testsuite name="pillion-e2e::all" tests="2" disabled="0" errors="0" failures="0">
        <testcase name="smoke_node::a_pod_runs" classname="pillion-e2e::all" timestamp="2026-11-16T08:00:00.000+00:00" time="1.500"/>
        <testcase name="smoke_node::a&lt;b" classname="pillion-e2e::all" timestamp="2026-11-16T08:00:00.000+00:00" time="0.250">
            <flakyFailure message="m" type="test failure">text</flakyFailure>
        </testcase>
        <testcase name="smoke_node::c" classname="pillion-e2e::all" timestamp="2026-11-16T08:00:00.000+00:00" time="0.500">
            <failure message="m" type="test failure">text</failure>
        </testcase>
    </testsuite>
</testsuites>"#;

    #[test]
    fn tests_have_their_time_and_flaky_ones_are_known() {
        let case = |name: &str, seconds, is_flaky| Case {
            suite: "pillion-e2e::all".to_owned(),
            name: name.to_owned(),
            seconds,
            is_flaky,
            is_failed: false,
        };
        assert_eq!(
            parse(REPORT).unwrap(),
            [
                case("smoke_node::a_pod_runs", 1.5, false),
                case("smoke_node::a<b", 0.25, true),
                Case { is_failed: true, ..case("smoke_node::c", 0.5, false) },
            ]
        );
    }

    #[test]
    fn a_case_without_a_time_is_an_error() {
        let error = parse("<testcase name=\"a\" classname=\"b\"/>").unwrap_err().to_string();
        assert_eq!(error, "a test case has no time: name=\"a\" classname=\"b\"/");
    }
}
