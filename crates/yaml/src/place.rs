//! Where in a file a field was written.

use std::collections::BTreeMap;

use crate::scalar;

/// A place to point at. Lines and columns are counted from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1.
    pub column: usize,
    /// Characters to point at, on this line; at least one.
    pub length: usize,
}

/// A text with its lines.
#[derive(Debug)]
pub struct Source {
    text: String,
    /// Where each line begins.
    starts: Vec<usize>,
}

/// Bytes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first.
    pub start: usize,
    /// The end, not in it.
    pub end: usize,
}

/// Where a value stands, and all values below it.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its key, where it is a field.
    pub key: Option<Span>,
    /// The text of a scalar; of anything else just the place where it begins.
    pub at: Span,
    /// What is below it.
    pub below: Below,
}

/// What is below a value.
#[derive(Clone, Debug)]
pub enum Below {
    /// Nothing: it is a text, a number, true, false or null.
    Scalar,
    /// A list.
    Items(Vec<Node>),
    /// A map, by key.
    Fields(BTreeMap<String, Node>),
}

/// One step of a way into a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Into a map.
    Field(&'a str),
    /// Into a list, counted from zero.
    Index(usize),
}

impl Source {
    /// Finds the lines of a text.
    pub fn new(text: &str) -> Self {
        let mut starts = vec![0];
        let bytes = text.as_bytes();
        for (at, byte) in bytes.iter().enumerate() {
            let ends_line = *byte == b'\n' || (*byte == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
            if ends_line {
                starts.push(at + 1);
            }
        }
        Self { text: text.to_owned(), starts }
    }

    /// A line, counted from 1, without its end.
    pub fn line(&self, number: usize) -> &str {
        let Some(start) = number.checked_sub(1).and_then(|at| self.starts.get(at)) else { return "" };
        let end = self.starts.get(number).copied().unwrap_or(self.text.len());
        self.text[*start..end].trim_end_matches(['\n', '\r'])
    }

    /// Where bytes of the text are, for people; no more than the first line of them.
    pub fn place(&self, span: Span) -> Place {
        let line = self.line_of(span.start);
        let start = self.starts[line - 1];
        let end = span.end.min(start + self.line(line).len());
        let characters = |from: usize, to: usize| self.text.get(from..to).map_or(0, |text| text.chars().count());
        Place { line, column: characters(start, span.start) + 1, length: characters(span.start, end).max(1) }
    }

    /// Where a part of a scalar's text stands.
    pub fn part(&self, scalar: Span, text: &str, start: usize, end: usize) -> Option<Place> {
        let raw = self.text.get(scalar.start..scalar.end)?;
        let indent = self.place(scalar).column - 1;
        let (from, to) = scalar::part(raw, text, indent, start, end)?;
        Some(self.place(Span { start: scalar.start + from, end: scalar.start + to }))
    }

    /// From a place to the end of its line.
    fn rest_of_line(&self, from: usize) -> Span {
        let line = self.line_of(from);
        Span { start: from, end: from.max(self.starts[line - 1] + self.line(line).trim_end().len()) }
    }

    /// The first line starts at zero, so every place has one.
    fn line_of(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }
}

impl Node {
    /// The value a way leads to, and true; where the way ends early, the last value on it, and false.
    pub fn nearest<'a>(&self, way: impl IntoIterator<Item = Step<'a>>) -> (&Self, bool) {
        let mut reached = self;
        for step in way {
            let next = match (&reached.below, step) {
                (Below::Items(items), Step::Index(at)) => items.get(at),
                (Below::Fields(fields), Step::Field(name)) => fields.get(name),
                _ => None,
            };
            match next {
                Some(next) => reached = next,
                None => return (reached, false),
            }
        }
        (reached, true)
    }

    /// What to point at: a text is pointed at itself, all else is best found by its key.
    pub fn pointed(&self, source: &Source) -> Span {
        let has_text = matches!(self.below, Below::Scalar) && self.at.end > self.at.start;
        match self.key {
            Some(key) if !has_text => key,
            _ if self.at.end > self.at.start => self.at,
            _ => source.rest_of_line(self.at.start),
        }
    }

    /// Takes the items of a list out.
    pub fn take_items(&mut self, name: &str) -> Vec<Self> {
        let Below::Fields(fields) = &mut self.below else { return Vec::new() };
        match fields.remove(name).map(|node| node.below) {
            Some(Below::Items(items)) => items,
            _ => Vec::new(),
        }
    }
}
