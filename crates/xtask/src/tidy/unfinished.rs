//! Nothing unfinished without an issue that says so. A marker in backticks, as in `TODO`, is only talked about.

use crate::finding::Finding;
use crate::source_tree::{SourceTree, TextFile};

/// Put together here, so that this file does not find itself.
const NOTES: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const UNFINISHED_CODE: [&str; 2] = [concat!("todo", "!("), concat!("unimplemented", "!(")];
const IGNORED_TEST: &str = concat!("#[", "ignore");

/// Lists of hashes, which may spell anything.
const HASH_LISTS: [&str; 2] = ["go.sum", "Cargo.lock"];

/// Looks at every line of every text file that people write.
pub fn check(tree: &SourceTree) -> Vec<Finding> {
    tree.texts().filter(|file| !HASH_LISTS.iter().any(|name| file.path.ends_with(name))).flat_map(check_file).collect()
}

fn check_file(file: TextFile<'_>) -> Vec<Finding> {
    let is_rust = file.path.extension() == Some("rs".as_ref());
    let mut findings = Vec::new();
    for (number, line) in file.numbered_lines() {
        let mut find = |message: String| {
            findings.push(Finding::of_line(file.path, number, message));
        };
        for note in NOTES.into_iter().filter(|note| has_note_without_issue(line, note)) {
            find(format!("has a {note} without an issue: write {note}(#123), or do it"));
        }
        if !is_rust {
            continue;
        }
        for code in UNFINISHED_CODE.into_iter().filter(|code| is_in_code(line, code)) {
            find(format!("has {code}): write the code, or return an error that names what is missing"));
        }
        if is_in_code(line, IGNORED_TEST) {
            find(format!("has {IGNORED_TEST}]: mend the test, or move it to a crate that is run by name"));
        }
    }
    findings
}

fn has_note_without_issue(line: &str, note: &str) -> bool {
    line.match_indices(note).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + note.len()..]);
        let is_part_of_a_word = before.ends_with(is_word) || after.starts_with(is_word);
        !is_part_of_a_word && !before.ends_with('`') && !has_issue(after)
    })
}

fn is_in_code(line: &str, code: &str) -> bool {
    line.match_indices(code).any(|(at, _)| {
        let before = &line[..at];
        !before.ends_with('`') && !before.ends_with(is_word)
    })
}

fn has_issue(after: &str) -> bool {
    let number = after.strip_prefix("(#").and_then(|rest| rest.split_once(')')).map(|(number, _)| number);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, lines: &[&str]) -> Vec<String> {
        let text = lines.join("\n");
        let tree = SourceTree::of_texts([(path, text.as_str())]);
        check(&tree).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn notes_with_an_issue_words_and_mentions_are_no_findings() {
        let lines = [
            concat!("// TO", "DO(#12): later"),
            concat!("mktemp bed-XX", "XXXX"),
            concat!("const TO", "DO_LIST: u8 = 1;"),
            concat!("no `TO", "DO` without an issue"),
            concat!("no `todo", "!()` either"),
            concat!("not_todo", "!()"),
        ];
        assert_eq!(messages("a.rs", &lines), Vec::<String>::new());
        let hash = concat!("h1:+XX", "X/TO", "DO=");
        assert_eq!(messages("testbed/go/etcd/go.sum", &[hash]), Vec::<String>::new());
        assert_eq!(messages("a.md", &[concat!("#[", "ignore]")]), Vec::<String>::new());
    }

    #[test]
    fn notes_without_an_issue_are_found() {
        for note in NOTES {
            let expected = format!("a.md:1: has a {note} without an issue: write {note}(#123), or do it");
            for line in [
                format!("# {note}: later"),
                note.to_owned(),
                format!("<!-- {note}(anna) -->"),
                format!("{note}(#)"),
                format!("{note}(#12"),
                format!("{note}(#12) and {note}"),
            ] {
                assert_eq!(messages("a.md", &[&line]), [expected.as_str()], "{line}");
            }
        }
    }

    #[test]
    fn unfinished_code_and_ignored_tests_are_found() {
        let lines = [
            concat!("    todo", "!()"),
            concat!("    unimplemented", "!(\"later\")"),
            concat!("#[", "ignore = \"slow\"]"),
        ];
        assert_eq!(
            messages("a.rs", &lines),
            [
                concat!("a.rs:1: has todo", "!(): write the code, or return an error that names what is missing"),
                concat!(
                    "a.rs:2: has unimplemented",
                    "!(): write the code, or return an error that names what is missing"
                ),
                concat!("a.rs:3: has #[", "ignore]: mend the test, or move it to a crate that is run by name"),
            ]
        );
    }
}
