//! Text for a terminal of eighty columns.

/// The width lines aim at.
pub(crate) const WIDTH: usize = 80;
/// No column becomes narrower than this; the line is longer instead.
const NARROWEST: usize = 24;

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
