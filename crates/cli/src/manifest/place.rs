//! Where in a file a field was written.

use std::collections::BTreeMap;

use pillion_api::Segment;

use super::scalar;

/// A place to point at. Lines and columns are counted from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
    /// Characters to point at, on this line; at least one.
    pub(crate) length: usize,
}

/// A text with its lines.
#[derive(Debug)]
pub(super) struct Source {
    text: String,
    /// Where each line begins.
    starts: Vec<usize>,
}

/// Bytes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Where a value stands, and all values below it.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Its key, where it is a field.
    pub(super) key: Option<Span>,
    /// The text of a scalar; of anything else just the place where it begins.
    pub(super) at: Span,
    pub(super) below: Below,
}

#[derive(Clone, Debug)]
pub(super) enum Below {
    Scalar,
    Items(Vec<Node>),
    Fields(BTreeMap<String, Node>),
}

impl Source {
    pub(super) fn new(text: &str) -> Self {
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
    pub(super) fn line(&self, number: usize) -> &str {
        let Some(start) = number.checked_sub(1).and_then(|at| self.starts.get(at)) else { return "" };
        let end = self.starts.get(number).copied().unwrap_or(self.text.len());
        self.text[*start..end].trim_end_matches(['\n', '\r'])
    }

    pub(super) fn place(&self, span: Span) -> Place {
        let line = self.line_of(span.start);
        let start = self.starts[line - 1];
        let end = span.end.min(start + self.line(line).len());
        let characters = |from: usize, to: usize| self.text.get(from..to).map_or(0, |text| text.chars().count());
        Place { line, column: characters(start, span.start) + 1, length: characters(span.start, end).max(1) }
    }

    /// Where a part of a scalar's text stands.
    pub(super) fn part(&self, scalar: Span, text: &str, start: usize, end: usize) -> Option<Place> {
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
    pub(super) fn nearest(&self, way: &[Segment]) -> (&Self, bool) {
        let Some((first, rest)) = way.split_first() else { return (self, true) };
        let next = match (&self.below, first) {
            (Below::Items(items), Segment::Index(at)) => items.get(*at),
            (Below::Fields(fields), Segment::Field(name) | Segment::Key(name)) => fields.get(name),
            _ => None,
        };
        next.map_or((self, false), |next| next.nearest(rest))
    }

    /// What to point at: a text is pointed at itself, all else is best found by its key.
    pub(super) fn pointed(&self, source: &Source) -> Span {
        let has_text = matches!(self.below, Below::Scalar) && self.at.end > self.at.start;
        match self.key {
            Some(key) if !has_text => key,
            _ if self.at.end > self.at.start => self.at,
            _ => source.rest_of_line(self.at.start),
        }
    }

    /// Takes the items of a list out.
    pub(super) fn take_items(&mut self, name: &str) -> Vec<Self> {
        let Below::Fields(fields) = &mut self.below else { return Vec::new() };
        match fields.remove(name).map(|node| node.below) {
            Some(Below::Items(items)) => items,
            _ => Vec::new(),
        }
    }
}
