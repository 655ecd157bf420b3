//! The verdicts of this crate on the table of sets.

use std::collections::BTreeSet;

use pillion_api::{Group, Reason, Severity, review};
use serde_json::json;

use crate::sets::{Case, Verdict, good};

/// Codes that a review does not give: they are about a cluster, or about two sets.
const ELSEWHERE: [Reason; 3] = [Reason::NoRequest, Reason::ConflictsWithSet, Reason::MayClashWithSet];

#[test]
fn every_set_gets_its_verdict_and_the_words_for_it() {
    let mut wrong = Vec::new();
    for case in Case::all() {
        let review = review(&case.set());
        let verdict = match review.problems.iter().map(|problem| problem.severity).min() {
            Some(Severity::Error) => Verdict::Refused,
            Some(Severity::Warning) => Verdict::Warned,
            None => Verdict::Accepted,
        };
        let told: Vec<String> = review.problems.iter().map(ToString::to_string).collect();
        let found = case.expect.as_ref().is_none_or(|expected| {
            review.problems.iter().any(|problem| {
                problem.reason.code() == expected.code
                    && problem.path.to_string() == expected.path
                    && format!("{}: {}", problem.message, problem.help).contains(&expected.message)
                    && problem.also.iter().map(ToString::to_string).collect::<Vec<_>>() == expected.also
            })
        });
        let one = usize::from(case.expect.is_some());
        if verdict != case.verdict || !found || told.len() != one {
            wrong.push(format!("{}: {verdict:?} {told:#?}", case.name));
        }
        assert_eq!(review.meaning.is_some(), verdict != Verdict::Refused, "{}", case.name);
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn the_table_is_large_enough_and_has_every_code_of_sets() {
    let cases = Case::all();
    let count = |verdict, schema: bool| {
        cases
            .iter()
            .filter(|case| case.verdict == verdict)
            .filter(|case| case.is_judged_by_the_schema() == schema)
            .count()
    };
    assert!(count(Verdict::Refused, true) >= 30, "{}", count(Verdict::Refused, true));
    assert!(count(Verdict::Refused, false) >= 15, "{}", count(Verdict::Refused, false));
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len());
    let codes: BTreeSet<&str> =
        cases.iter().filter_map(|case| case.expect.as_ref()).map(|it| it.code.as_str()).collect();
    let all = Reason::ALL.iter().filter(|reason| reason.group() == Group::Spec && !ELSEWHERE.contains(reason));
    assert_eq!(codes, all.map(|reason| reason.code()).collect());
}

#[test]
fn all_mistakes_are_told_at_once_and_an_expression_with_its_caret() {
    let mut object = good("good");
    json_patch::merge(
        &mut object,
        &json!({"spec": {"Mode": "Inject", "labels": {"a": "b c"}, "containers": [{"name": "proxy", "image": "proxy:1",
            "resourcesPolicy": {"targetContainerMode": "sum", "resourceExpr": {"limits": {"memory": "max(memory, 200MB)"}}}}]}}),
    );
    let review = review(&object);
    let codes: Vec<&str> = review.problems.iter().map(|problem| problem.reason.code()).collect();
    assert_eq!(codes, ["PL102", "PL115", "PL121"]);
    let excerpt = review.problems[1].excerpt.as_ref().unwrap();
    assert_eq!(&excerpt.text[excerpt.start..excerpt.end], "200MB");
    let lines: Vec<&str> = excerpt.drawn.lines().collect();
    assert_eq!(lines[3..5], ["1 | max(memory, 200MB)", "  |             ^^^^^"]);
}
