//! Text for a terminal: words in lines of eighty columns, tables as wide as there is room.

use std::io;

mod table;

pub(crate) use table::{Column, table};

/// The width lines aim at.
pub(crate) const WIDTH: usize = 80;
/// What is taken where a terminal does not say how large it is.
const USUAL: Size = Size { rows: 24, columns: WIDTH };
/// No column becomes narrower than this; the line is longer instead.
const NARROWEST: usize = 24;

/// How large a terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

/// How large the terminal is now; people change it.
pub(crate) fn terminal() -> Size {
    let Ok(found) = rustix::termios::tcgetwinsize(io::stdout()) else { return USUAL };
    let or = |found: u16, usual| if found == 0 { usual } else { usize::from(found) };
    Size { rows: or(found.ws_row, USUAL.rows), columns: or(found.ws_col, USUAL.columns) }
}

/// Names of one team begin alike and end otherwise, so both ends are kept.
pub(crate) fn shortened(title: &str, room: usize) -> String {
    let length = title.chars().count();
    if length <= room {
        return title.to_owned();
    }
    let begin = room / 2;
    let end = length - (room - begin - 1);
    let kept = |from, to| title.chars().skip(from).take(to - from).collect::<String>();
    format!("{}…{}", kept(0, begin), kept(end, length))
}

/// Breaks words into lines; the first begins after `used` columns, the others are indented by as many.
pub(crate) fn hanging(used: usize, words: &str) -> String {
    let width = WIDTH.saturating_sub(used).max(NARROWEST);
    let mut lines = vec![String::new()];
    for word in words.split_whitespace() {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join(&format!("\n{}", " ".repeat(used)))
}

/// One indented line, or more where it is too long.
pub(crate) fn indented(indent: usize, words: &str) -> String {
    format!("{}{}\n", " ".repeat(indent), hanging(indent, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_over_lines_at_eighty_columns() {
        let words = "word ".repeat(20);
        let text = indented(2, &words);
        assert_eq!(text.lines().map(str::len).collect::<Vec<_>>(), [76, 26]);
        assert!(text.lines().all(|line| line.starts_with("  word")), "{text}");
        assert_eq!(indented(3, " a  b "), "   a b\n");
        assert_eq!(
            hanging(76, "one two three four five six seven"),
            format!("one two three four five\n{}six seven", " ".repeat(76))
        );
    }
}
