//! The formats, on a set with three mistakes.

use serde_json::Value;

use crate::asking::{Files, command, lint, repository, set};

const MISTAKES: &str = "examples/mistakes";

#[test]
fn three_mistakes_are_three_diagnostics_in_one_run() {
    let seen = lint(&[MISTAKES]);
    assert_eq!(seen.matches("error[").count(), 3);
    insta::assert_snapshot!(seen);
}

#[test]
fn programs_get_the_same_as_json() {
    insta::assert_snapshot!(lint(&[MISTAKES, "-o", "json"]));
}

#[test]
fn github_gets_the_same_as_commands() {
    insta::assert_snapshot!(lint(&[MISTAKES, "-o", "github"]));
}

#[test]
fn colours_are_only_added() {
    let run = |variable: &str| {
        let output = command(&repository(), &[MISTAKES]).env(variable, "1").output().expect("pillion runs");
        String::from_utf8(output.stdout).expect("it prints UTF-8")
    };
    let coloured = run("CLICOLOR_FORCE");
    let first = coloured.lines().next().expect("it prints something");
    assert_eq!(
        first,
        "\u{1b}[1m\u{1b}[31merror[PL102]: \u{1b}[0m\u{1b}[1munknown field failurepolicy: it would be dropped\u{1b}[0m"
    );
    let mut plain = String::new();
    for part in coloured.split('\u{1b}') {
        plain.push_str(if plain.is_empty() && part.is_empty() {
            ""
        } else {
            part.split_once('m').map_or(part, |it| it.1)
        });
    }
    assert_eq!(plain, run("NO_COLOR"));
}

#[test]
fn warnings_are_findings_only_where_that_is_asked_for() {
    let files = Files::new(&[("set.yaml", &set("a", "  containers:\n    - name: proxy\n      image: proxy:1\n"))]);
    insta::assert_snapshot!(files.lint(&["set.yaml"]));
    assert!(files.lint(&["set.yaml", "--strict"]).starts_with("status 1\n"));
    let json = files.lint(&["set.yaml", "-o", "json"]);
    let (_, json) = json.split_once("--- stdout\n").expect("it prints something");
    let (json, _) = json.split_once("--- stderr\n").expect("it says something");
    let report: Value = serde_json::from_str(json).expect("it is JSON");
    assert_eq!((&report["errors"], &report["warnings"]), (&0.into(), &1.into()));
}
