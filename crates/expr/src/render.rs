//! Drawing a refusal under the expression it is about.

use std::fmt::Write as _;

use crate::Error;

/// How much of a line is shown on either side of the span.
const CONTEXT: usize = 60;

impl Error {
    /// The refusal with its expression and a caret under the token; plain text, no colour.
    ///
    /// `origin` names where the expression comes from, such as `limits.cpu`.
    pub fn render(&self, source: &str, origin: &str) -> String {
        let start = floor_boundary(source, self.span.start.min(source.len()));
        let end = floor_boundary(source, self.span.end.clamp(start, source.len()));
        let line_start = source[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = source[start..].find('\n').map_or(source.len(), |at| start + at);
        let line = source[..start].matches('\n').count() + 1;
        let column = source[line_start..start].chars().count() + 1;

        let before = last_characters(&source[line_start..start], CONTEXT);
        let shown = first_characters(&source[start..end.min(line_end)], CONTEXT);
        let after = first_characters(&source[start + shown.len()..line_end], CONTEXT);
        let lead = if before.len() < start - line_start { "…" } else { "" };
        let trail = if start + shown.len() + after.len() < line_end { "…" } else { "" };

        let indent = " ".repeat(lead.chars().count() + before.chars().count());
        let carets = "^".repeat(shown.chars().count().max(1));
        let gutter = " ".repeat(line.to_string().len());
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "error[{code}]: {message}\n\
             {gutter}--> {origin}:{line}:{column}\n\
             {gutter} |\n\
             {line} | {lead}{before}{shown}{after}{trail}\n\
             {gutter} | {indent}{carets}\n\
             {gutter} = help: {help}\n",
            code = self.code,
            message = self.message,
            before = flat(before),
            shown = flat(shown),
            after = flat(after),
            help = self.help,
        );
        text
    }
}

/// Control characters, tabs among them, would move the caret away from its token.
fn flat(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn floor_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn first_characters(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(at, _)| &text[..at])
}

fn last_characters(text: &str, most: usize) -> &str {
    text.char_indices().rev().nth(most.saturating_sub(1)).map_or(text, |(at, _)| &text[at..])
}
