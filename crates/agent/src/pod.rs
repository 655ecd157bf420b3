//! The pod around the agent: who it is, and what its annotations say.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

/// Which pod this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodIdentity {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its uid.
    pub uid: String,
    /// The file in which the node keeps its annotations, as `key="value"` lines.
    pub annotations_file: PathBuf,
}

impl PodIdentity {
    /// The annotations as the node has written them last. They need no right, and follow the pod after some seconds.
    pub fn annotations(&self) -> io::Result<BTreeMap<String, String>> {
        fs::read_to_string(&self.annotations_file).map(|text| read_annotations(&text))
    }
}

/// Reads lines of `key="value"`, in which values are quoted as Go does it.
fn read_annotations(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(key, value)| (key.to_owned(), unquote(value))).collect()
}

fn unquote(quoted: &str) -> String {
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(quoted);
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner.chars();
    while let Some(next) = rest.next() {
        if next != '\\' {
            text.push(next);
            continue;
        }
        let meant = match rest.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('v') => '\u{b}',
            Some('x') => coded(&mut rest, 2),
            Some('u') => coded(&mut rest, 4),
            Some('U') => coded(&mut rest, 8),
            Some(other) => other,
            None => '\\',
        };
        text.push(meant);
    }
    text
}

fn coded(rest: &mut impl Iterator<Item = char>, digits: usize) -> char {
    let hex: String = rest.take(digits).collect();
    u32::from_str_radix(&hex, 16).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_read_as_the_node_writes_them() {
        let text =
            "a=\"1\"\nkruise.io/podprobe=\"[{\\\"name\\\":\\\"x=y\\\"}]\"\nlines=\"one\\ntwo \\\\ \\u00fc\\x07 ü\"\n";
        let expected = [("a", "1"), ("kruise.io/podprobe", "[{\"name\":\"x=y\"}]"), ("lines", "one\ntwo \\ ü\u{7} ü")];
        assert_eq!(read_annotations(text), expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    }

    #[test]
    fn what_is_no_line_of_the_node_breaks_nothing() {
        let odd = read_annotations("no equals\nb=plain\nc=\"\\\nd=\"\\u12\"");
        let expected = [("b", "plain"), ("c", "\"\\"), ("d", "\u{12}")];
        assert_eq!(odd, expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    }
}
