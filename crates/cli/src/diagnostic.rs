//! What is wrong in a file, drawn for people: the line with a caret below, in eighty columns, readable without colour.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use pillion_api::{Reason, Severity};

use crate::manifest::{Manifest, Place};

const COLUMNS: usize = 80;
/// How much of a long line is shown before the caret, at least.
const BEFORE: usize = 24;
const CUT: &str = "…";

const BOLD: Style = Style::new().bold();
const FRAME: Style = AnsiColor::Blue.on_default().bold();

/// One thing to tell a person about.
pub(crate) struct Diagnostic<'a> {
    pub(crate) severity: Severity,
    /// Its code, where it has one.
    pub(crate) reason: Option<Reason>,
    pub(crate) message: &'a str,
    pub(crate) help: &'a str,
    /// Where it is, then where its other halves are.
    pub(crate) excerpts: Vec<Excerpt<'a>>,
}

/// A place of a file, with the line it is in.
pub(crate) struct Excerpt<'a> {
    pub(crate) file: &'a str,
    pub(crate) line: &'a str,
    pub(crate) place: Place,
}

impl<'a> Excerpt<'a> {
    pub(crate) fn of(manifest: &'a Manifest, place: Place) -> Self {
        Self { file: &manifest.file, line: manifest.line(place.line), place }
    }
}

impl Diagnostic<'_> {
    /// Several lines, with colours; whoever prints them takes the colours out where they are not wanted.
    pub(crate) fn draw(&self) -> String {
        let (word, colour) = match self.severity {
            Severity::Error => ("error", AnsiColor::Red),
            Severity::Warning => ("warning", AnsiColor::Yellow),
        };
        let accent = colour.on_default().bold();
        let mut drawn = String::new();
        let code = self.reason.map(|reason| format!("[{reason}]")).unwrap_or_default();
        let lead = format!("{word}{code}: ");
        paragraph(&mut drawn, (&lead, accent), self.message, BOLD);

        let width = self.excerpts.iter().map(|excerpt| excerpt.place.line.to_string().len()).max().unwrap_or(1);
        for (number, Excerpt { file, line: text, place }) in self.excerpts.iter().enumerate() {
            let is_first = number == 0;
            let arrow = if is_first { "-->" } else { ":::" };
            let Place { line, column, .. } = place;
            let file = flat(file);
            // Writing to a String cannot fail.
            let _ = writeln!(drawn, "{:width$}{FRAME}{arrow}{FRAME:#} {file}:{line}:{column}", "");
            let (mark, style) = if is_first { ('^', accent) } else { ('-', FRAME) };
            excerpt(&mut drawn, text, *place, width, (mark, style));
        }
        let page = self.reason.map(docs);
        for (name, text) in [("help", self.help)].into_iter().chain(page.as_ref().map(|page| ("docs", page.as_str()))) {
            paragraph(&mut drawn, (&format!("{:width$} = {name}: ", ""), FRAME), text, Style::new());
        }
        drawn
    }
}

/// Where a code is explained.
pub(crate) fn docs(reason: Reason) -> String {
    let anchor = format!("{}-{}", reason.code(), reason.name()).to_lowercase();
    format!("docs/reason-codes.md#{anchor}")
}

/// A text in several lines, all below the beginning of the first.
fn paragraph(drawn: &mut String, (lead, of_lead): (&str, Style), text: &str, of_text: Style) {
    let indent = lead.chars().count();
    for (number, line) in wrapped(&flat(text), COLUMNS - indent).iter().enumerate() {
        let lead = if number == 0 { lead.to_owned() } else { " ".repeat(indent) };
        let _ = writeln!(drawn, "{of_lead}{lead}{of_lead:#}{of_text}{line}{of_text:#}");
    }
}

/// Lines of at most so many characters; only a word that is longer is broken.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        loop {
            let line = lines.last_mut().expect("there is a first line");
            let space = usize::from(!line.is_empty());
            let room = width.saturating_sub(line.chars().count() + space);
            if word.len() > room && !line.is_empty() {
                lines.push(String::new());
                continue;
            }
            line.extend(std::iter::repeat_n(' ', space));
            line.extend(word.drain(..word.len().min(room)));
            if word.is_empty() {
                break;
            }
        }
    }
    lines
}

/// The line and, below, what is meant of it.
fn excerpt(drawn: &mut String, line: &str, place: Place, width: usize, (mark, style): (char, Style)) {
    let line: Vec<char> = flat(line).chars().collect();
    let room = COLUMNS - width - " | ".len();
    let at = place.column - 1;
    // The caret may stand just behind the last character.
    let end = line.len().max(at + 1);
    // Where a line is cut, a mark takes the place of a character.
    let start = if end <= room { 0 } else { at.saturating_sub(BEFORE).min(end - (room - 1)) };
    let (lead, room) = if start == 0 { ("", room) } else { (CUT, room - 1) };
    let rest = &line[start.min(line.len())..];
    let (shown, trail) = if rest.len() <= room { (rest, "") } else { (&rest[..room - 1], CUT) };
    let shown: String = shown.iter().collect();

    let before = lead.chars().count() + at - start;
    let length = place.length.min(COLUMNS - width - " | ".len() - before).max(1);
    let marks = mark.to_string().repeat(length);
    let _ = writeln!(drawn, "{:width$} {FRAME}|{FRAME:#}", "");
    let _ = writeln!(drawn, "{FRAME}{:>width$} |{FRAME:#} {lead}{shown}{trail}", place.line);
    let _ = writeln!(drawn, "{:width$} {FRAME}|{FRAME:#} {:before$}{style}{marks}{style:#}", "", "");
}

/// Control characters would move the caret, or the terminal.
fn flat(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}
