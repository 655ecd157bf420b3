//! The one mistake of indentation that a configuration is forgiven, because the proposal prints it: the keys of
//! `inKube` beside it instead of below it, each a little further in than the one before.
//!
//! ```text
//! inKube:                          inKube:
//! annotationKey: http_probe          annotationKey: http_probe
//!  target:                 is read    target:
//!      resource: gameservers   as         resource: gameservers
//!   markerPolices:                    markerPolices:
//! ```
//!
//! Every key keeps what is below it; nothing else of a text is touched, and nothing at all where the first key below
//! `inKube` is further in than `inKube` itself.

use crate::keys::{IN_KUBE, Key};

/// A text, repaired where it had to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Repaired {
    pub(crate) text: String,
    /// How many blanks each line has got, by line; empty where nothing was repaired.
    pub(crate) added: Vec<usize>,
    /// Lines of `inKube` whose keys were moved, counted from zero, and the keys.
    pub(crate) moved: Vec<(usize, Vec<String>)>,
}

/// A line that says something.
struct Line<'a> {
    indent: usize,
    text: &'a str,
}

/// Repairs a text.
pub(crate) fn repair(text: &str) -> Repaired {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut added = vec![0; lines.len()];
    let mut moved = Vec::new();
    for (at, text) in lines.iter().enumerate() {
        let is_in_kube = line(text).is_some_and(|it| is_key(it.text, "inKube") && value_of(it.text).is_empty());
        if is_in_kube && let Some(block) = Block::of(&lines, at) {
            block.indent(&mut added);
            moved.push((at, block.keys));
        }
    }
    if moved.is_empty() {
        return Repaired { text: text.to_owned(), added: Vec::new(), moved };
    }
    let repaired: Vec<String> =
        lines.iter().zip(&added).map(|(line, added)| format!("{}{line}", " ".repeat(*added))).collect();
    Repaired { text: repaired.join("\n"), added, moved }
}

/// The keys that stand beside an `inKube`, each with what is below it.
struct Block {
    /// First line, the line after the last, and the indentation of each child.
    children: Vec<(usize, usize, usize)>,
    keys: Vec<String>,
    /// Of the children, once repaired.
    indent: usize,
}

impl Block {
    fn of(lines: &[&str], in_kube: usize) -> Option<Self> {
        let outer = line(lines[in_kube])?.indent;
        let mut block = Self { children: Vec::new(), keys: Vec::new(), indent: outer + 2 };
        let mut takes_more = false;
        for (number, text) in lines.iter().enumerate().skip(in_kube + 1) {
            let Some(Line { indent, text }) = line(text) else { continue };
            if let Some((_, end, of_child)) = block.children.last_mut() {
                // A list may stand as far out as its key.
                let is_below = indent > *of_child || (indent == *of_child && is_item(text));
                if is_below && (takes_more || child_key(text).is_none()) {
                    *end = number + 1;
                    continue;
                }
            }
            let child = child_key(text).filter(|_| indent >= outer);
            // A key that is further in from the start is where it belongs.
            let Some(name) = child.filter(|_| !block.children.is_empty() || indent == outer) else {
                break;
            };
            takes_more = value_of(text).is_empty();
            block.indent = block.indent.max(indent);
            block.keys.push(name.to_owned());
            block.children.push((number, number + 1, indent));
        }
        (!block.children.is_empty()).then_some(block)
    }

    fn indent(&self, added: &mut [usize]) {
        for (first, end, indent) in &self.children {
            added[*first..*end].iter_mut().for_each(|added| *added += self.indent - indent);
        }
    }
}

/// A line without its indentation; none where it is empty or a comment.
fn line(text: &str) -> Option<Line<'_>> {
    let rest = text.trim_start_matches(' ');
    let says_something = !rest.trim().is_empty() && !rest.starts_with('#');
    says_something.then(|| Line { indent: text.len() - rest.len(), text: rest.trim_end() })
}

fn is_item(text: &str) -> bool {
    text == "-" || text.starts_with("- ")
}

/// The key of `inKube` that a line gives a value.
fn child_key(text: &str) -> Option<&'static str> {
    let spellings = |key: &'static Key| [key.name].into_iter().chain(key.also.iter().copied());
    IN_KUBE.iter().flat_map(spellings).find(|name| is_key(text, name))
}

fn is_key(text: &str, name: &str) -> bool {
    text.split_once(':').is_some_and(|(key, rest)| {
        key.trim_end().eq_ignore_ascii_case(name) && (rest.is_empty() || rest.starts_with([' ', '\t']))
    })
}

/// What follows the key of a line, without a comment; of a block just its beginning is no value.
fn value_of(text: &str) -> &str {
    let value = text.split_once(':').map_or("", |(_, value)| value.trim());
    if value.starts_with('#') { "" } else { value }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_beside_in_kube_are_moved_below_it_with_all_they_hold() {
        let printed = "\
storage:
  inKube:   # where
  annotationKey: a
   target:
       group: g

     # a comment
       name: n
   jsonPath: /x
    markerPolices:
    - state: s
      labels:
        target: t
  type: InKube
rest: 1
";
        let meant = "\
storage:
  inKube:   # where
    annotationKey: a
    target:
        group: g
 
      # a comment
        name: n
    jsonPath: /x
    markerPolices:
    - state: s
      labels:
        target: t
  type: InKube
rest: 1
";
        let repaired = repair(printed);
        assert_eq!(repaired.text, meant);
        let keys = ["annotationKey", "target", "jsonPath", "markerPolices"].map(str::to_owned);
        assert_eq!(repaired.moved, [(1, keys.into())]);
        assert_eq!(repaired.added, [0, 0, 2, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]);
        // What is as it was meant stays as it is.
        assert_eq!(repair(meant).text, meant);
    }

    #[test]
    fn what_is_below_in_kube_stays() {
        for text in [
            "inKube:\n labelKey: a\n target:\n   version: v1\n",
            "inKube: {labelKey: a}\nlabelKey: b\n",
            "inKube:\ntype: InKube\nlabelKey: b\n",
            "inKube:\nother: 1\n",
            "inKube:",
            "- inKube\nlabelKey: a\n",
            "inKube:\nlabelKeys: a\n",
        ] {
            assert_eq!(repair(text), Repaired { text: text.to_owned(), added: vec![], moved: vec![] });
        }
    }

    #[test]
    fn two_of_them_are_repaired_in_any_case_and_with_any_line_end() {
        let repaired =
            repair("a:\r\n  inkube:\r\n  LABELKEY: x\r\nb:\r\n  INKUBE:\r\n  markerpolicy:\r\n  - state: s\r\n");
        assert_eq!(
            repaired.text,
            "a:\r\n  inkube:\r\n    LABELKEY: x\r\nb:\r\n  INKUBE:\r\n    markerpolicy:\r\n    - state: s\r\n"
        );
        assert_eq!(repaired.moved, [(1, vec!["labelKey".to_owned()]), (4, vec!["markerPolicy".to_owned()])]);
    }

    proptest! {
        #[test]
        fn only_blanks_are_added(text in "([ ]{0,5}(inKube:|labelKey: a|target:|x: y|- state: s|#|)\n){0,12}") {
            let repaired = repair(&text);
            let bare = |text: &str| text.lines().map(|line| line.trim_start().to_owned()).collect::<Vec<_>>();
            prop_assert_eq!(bare(&repaired.text), bare(&text));
            prop_assert_eq!(repair(&repaired.text).moved, vec![]);
        }
    }
}
