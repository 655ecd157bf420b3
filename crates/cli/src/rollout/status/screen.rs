//! Where a watched rollout is shown: drawn in place for a person, a line for every change otherwise.

use std::io::{self, IsTerminal as _, Write};

use anstream::{AutoStream, ColorChoice};

/// A place that is drawn over.
#[derive(Debug, Default)]
pub(super) struct Screen {
    /// Lines that were drawn last.
    drawn: usize,
}

/// Whether stdout is a terminal of a person who wants to see it move.
pub(super) fn is_drawn_on() -> bool {
    let stdout = io::stdout();
    stdout.is_terminal() && AutoStream::choice(&stdout) != ColorChoice::Never
}

impl Screen {
    /// Draws over what was drawn before.
    pub(super) fn draw(&mut self, out: &mut dyn Write, text: &str, columns: usize) -> io::Result<()> {
        // In one write, so that nobody sees half of it.
        let mut frame = String::new();
        if self.drawn > 0 {
            frame = format!("\x1b[{}F\x1b[J", self.drawn);
        }
        let mut lines = 0;
        for line in text.lines() {
            // A line that goes over the edge would be two.
            frame.extend(line.chars().take(columns));
            frame.push('\n');
            lines += 1;
        }
        self.drawn = lines;
        out.write_all(frame.as_bytes())?;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_picture_is_drawn_over_the_first() {
        let mut out = Vec::new();
        let mut screen = Screen::default();
        screen.draw(&mut out, "one\ntwo\n", 80).unwrap();
        screen.draw(&mut out, "three is long\n", 5).unwrap();
        screen.draw(&mut out, "four\n", 80).unwrap();
        let expected = "one\ntwo\n\x1b[2F\x1b[Jthree\n\x1b[1F\x1b[Jfour\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
