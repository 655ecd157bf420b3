//! Where the carets stand.

use crate::asking::{CONTAINER, Files, set};

/// Every line in eighty columns.
fn checked(seen: String) -> String {
    for line in seen.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    seen
}

fn lint(text: &str) -> String {
    checked(Files::new(&[("set.yaml", text)]).lint(&["set.yaml"]))
}

fn with_limit(expression: &str) -> String {
    let start = "  containers:\n    - name: proxy\n      image: proxy:1\n      resourcesPolicy:\n        \
                 targetContainerMode: sum\n        resourceExpr:\n          requests: {cpu: 1m, memory: 1Mi}\n          limits:\n";
    set("a", &format!("{start}            cpu: {expression}\n"))
}

#[test]
fn a_token_is_found_in_every_way_to_write_a_text() {
    for (expression, line, caret) in [
        ("max(cpu, 1Gi)", "            cpu: max(cpu, 1Gi)", "                          ^^^"),
        ("'max(cpu, 1Gi)'", "            cpu: 'max(cpu, 1Gi)'", "                           ^^^"),
        (
            "\"max(\\x63pu\\u002C 1Gi)\"",
            "            cpu: \"max(\\x63pu\\u002C 1Gi)\"",
            "                                   ^^^",
        ),
        ("|\n              max(cpu,\n                1Gi)", "                1Gi)", "                ^^^"),
        (">-\n              max(cpu,\n              1Gi)", "              1Gi)", "              ^^^"),
        ("max(cpu,\n              1Gi)", "              1Gi)", "              ^^^"),
        ("\"max(cpu,\n              1Gi)\"", "              1Gi)\"", "              ^^^"),
        ("cpu *", "            cpu: cpu *", "                      ^"),
        ("'cpu * # no'", "            cpu: 'cpu * # no'", "                        ^"),
        ("!!str 1Gi", "            cpu: !!str 1Gi", "                       ^^^"),
    ] {
        let seen = lint(&with_limit(expression));
        let expected = format!("| {line}\n   | {caret}\n");
        assert!(seen.contains(&expected), "{expected}\nis not in\n{seen}");
    }
}

#[test]
fn anchors_are_followed_to_their_text() {
    let text = with_limit("&limit cpu + 1Gi\n            memory: *limit");
    insta::assert_snapshot!(lint(&text));
}

#[test]
fn long_lines_are_cut_around_the_caret_and_long_words_broken() {
    let long = "cpu + ".repeat(40);
    for expression in [format!("1Gi + {long}1"), format!("{long}1Gi"), format!("{long}1Gi + {long}1")] {
        insta::assert_snapshot!(lint(&with_limit(&format!("\"{expression}\""))));
    }
    let selector = format!("  namespaceSelector:\n    matchLabels: {{{}: b}}\n", "k".repeat(200));
    insta::assert_snapshot!(lint(&set("a", &format!("{CONTAINER}{selector}"))));
}

#[test]
fn a_caret_behind_the_last_character_is_in_the_picture_too() {
    for spaces in 40..80 {
        let seen = lint(&with_limit(&format!("cpu{:spaces$}*", "")));
        let lines: Vec<&str> = seen.lines().collect();
        let caret = lines.iter().position(|line| line.ends_with('^')).expect("there is a caret");
        assert_eq!(lines[caret].chars().count(), lines[caret - 1].chars().count() + 1, "{seen}");
    }
}

#[test]
fn what_would_move_the_caret_or_the_terminal_is_not_printed() {
    let seen = lint(&set("a", &format!("{CONTAINER}  labels: {{\"a\":\t\"b \\e c\"}}\n")));
    insta::assert_snapshot!(seen);
}

#[test]
fn what_is_missing_is_named() {
    insta::assert_snapshot!(lint(&set(
        "a",
        "  containers:\n    - name: proxy\n      resources: {limits: {cpu: 1, memory: 1Gi}}\n"
    )));
}

#[test]
fn clashes_show_both_files() {
    let files = Files::new(&[
        ("logs.yaml", &set("logs", &format!("{CONTAINER}  labels: {{tier: logs}}\n"))),
        ("mesh.yaml", &set("mesh", &format!("  labels:\n    tier: mesh\n{CONTAINER}"))),
        ("other.yaml", &set("other", CONTAINER).replace("app: web", "app: api")),
        // Another state of the same set.
        ("old/mesh.yaml", &set("mesh", CONTAINER).replace("app: web", "app: old")),
    ]);
    insta::assert_snapshot!(checked(files.lint(&["."])));
    assert_eq!(files.lint(&["mesh.yaml"]), "status 0\n--- stderr\nno problems in 1 set\n");
}
