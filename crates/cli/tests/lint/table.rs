//! The verdicts of the command line on the table of sets.

use serde_json::Value;

use crate::asking::Files;
use crate::sets::{Case, Verdict};

/// Each set on a line of its own.
fn files(cases: &[Case]) -> Files {
    let lines: Vec<String> = cases.iter().map(|case| case.set().to_string()).collect();
    Files::new(&[("sets.yaml", &lines.join("\n---\n"))])
}

#[test]
fn every_set_of_the_table_gets_its_code() {
    let cases = Case::all();
    let seen = files(&cases).lint(&["sets.yaml", "-o", "json"]);
    let (_, rest) = seen.split_once("--- stdout\n").expect("it prints something");
    let (json, summary) = rest.split_once("--- stderr\n").expect("it says something");
    let report: Value = serde_json::from_str(json).expect("it is JSON");
    assert!(seen.starts_with("status 1\n") && summary.ends_with(&format!(" in {} sets\n", cases.len())), "{summary}");
    let mut wrong = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let all = report["findings"].as_array().expect("it is a list");
        let findings: Vec<_> = all.iter().filter(|it| it["line"] == 2 * number + 1).collect();
        let is_refused = findings.iter().any(|finding| finding["severity"] == "error");
        let found = case.expect.as_ref().is_none_or(|expected| {
            // Lint names the field of a template, where the table names only the template.
            let is_at = |path: &Value| path.as_str().is_some_and(|path| path.starts_with(&expected.path));
            findings.iter().any(|it| it["code"] == expected.code.as_str() && is_at(&it["path"]))
        });
        // The table says nothing about requests, which only a cluster may want.
        let others = findings.iter().filter(|it| it["code"] != "PL159").count();
        let expected = usize::from(case.expect.is_some());
        if is_refused != (case.verdict == Verdict::Refused) || !found || others != expected {
            wrong.push(format!("{}: {findings:#?}", case.name));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn no_diagnostic_is_wider_than_a_terminal() {
    let seen = files(&Case::all()).lint(&["sets.yaml"]);
    let wide: Vec<&str> = seen.lines().filter(|line| line.chars().count() > 80).collect();
    assert_eq!(wide, Vec::<&str>::new());
    assert!(seen.lines().filter(|line| line.contains('^')).count() >= 100);
}
