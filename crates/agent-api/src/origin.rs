//! Where the text of a configuration comes from, so that every place that is told is one of the text a person wrote.

use pillion_yaml::{Below, Limits, Node, Place, STACK_PER_LEVEL, Source, Span, Wrong};
use serde_json::Value;

use crate::names::CONFIG_KEY;
use crate::repair::{Repaired, repair};

/// Four times as much as the largest sensible configuration.
pub(crate) const LIMITS: Limits = Limits { depth: 24, values: 50_000, anchored: 5_000 };

/// What [`Config::parse`](crate::Config::parse) may take of the caller's stack, in a build without optimisation; a
/// quarter of it and less with.
pub const PARSE_STACK: usize = LIMITS.depth * STACK_PER_LEVEL;

/// More than a `ConfigMap` can hold.
const MAX_BYTES: usize = 1 << 20;

/// The text that was given, and the one that is read.
pub(crate) struct Origin {
    given: Source,
    /// Where the configuration stands in a manifest, and its text there.
    within: Option<(Span, String)>,
    repaired: Repaired,
    read: Source,
}

/// A text with its values; or where it is no YAML, in the words of the place it was found at.
pub(crate) struct Opened {
    pub(crate) origin: Origin,
    pub(crate) document: Result<(Value, Node), (Place, String)>,
}

/// Finds the configuration in a text: the text itself, or what the `ConfigMap` in it holds.
pub(crate) fn open(text: &str) -> Opened {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let given = Source::new(text);
    let refused = |given: Source, message: String| Opened {
        origin: Origin { given, within: None, repaired: repair(""), read: Source::new("") },
        document: Err((Place { line: 1, column: 1, length: 1 }, message)),
    };
    if text.len() > MAX_BYTES {
        return refused(given, format!("too long: at most {MAX_BYTES} bytes are read"));
    }
    let as_given = pillion_yaml::documents(text, LIMITS);
    let manifest = as_given.as_ref().ok().and_then(|documents| documents.iter().find(|it| is_config_map(&it.0)));
    let within = match manifest {
        None => None,
        Some((value, node)) => match held(value, node) {
            Some(within) => Some(within),
            None => return refused(given, format!("the ConfigMap has no text under the key {CONFIG_KEY}")),
        },
    };
    let repaired = repair(within.as_ref().map_or(text, |(_, text)| text));
    let documents = match as_given {
        as_given if within.is_none() && repaired.moved.is_empty() => as_given,
        _ => pillion_yaml::documents(&repaired.text, LIMITS),
    };
    let origin = Origin { given, within, read: Source::new(&repaired.text), repaired };
    let document = documents.map_err(|Wrong { line, column, message }| {
        let place = Place { line, column, length: 1 };
        (origin.given_place(place), message)
    });
    let document = document.and_then(|mut documents| match documents.len() {
        1 => Ok(documents.remove(0)),
        0 => Err((origin.given_place(Place { line: 1, column: 1, length: 1 }), "there is nothing in it".to_owned())),
        count => Err((origin.place(documents[1].1.at), format!("there are {count} documents, and one is read"))),
    });
    Opened { origin, document }
}

impl Origin {
    /// Where bytes of the text that is read were given.
    pub(crate) fn place(&self, span: Span) -> Place {
        self.given_place(self.read.place(span))
    }

    /// Where a value was given: its text, or else its key.
    pub(crate) fn place_of(&self, node: &Node) -> Place {
        self.place(node.pointed(&self.read))
    }

    /// Where a part of a text was given; the whole of it where that cannot be told.
    pub(crate) fn part(&self, node: &Node, text: &str, start: usize, end: usize) -> Place {
        let part = self.read.part(node.at, text, start, end).map(|place| self.given_place(place));
        part.unwrap_or_else(|| self.place_of(node))
    }

    /// The lines of `inKube` whose keys were moved, and the keys.
    pub(crate) fn moved(&self) -> impl Iterator<Item = (usize, &[String])> {
        self.repaired.moved.iter().map(|(line, keys)| {
            let place = self.given_place(Place { line: line + 1, column: 1, length: 1 });
            (place.line, keys.as_slice())
        })
    }

    /// From the text that is read back to the one that was given.
    fn given_place(&self, place: Place) -> Place {
        let added = self.repaired.added.get(place.line.saturating_sub(1)).copied().unwrap_or(0);
        let place = Place { column: place.column.saturating_sub(added).max(1), ..place };
        let Some((span, text)) = &self.within else { return place };
        let (start, end) = bytes(text, place);
        self.given.part(*span, text, start, end).unwrap_or_else(|| self.given.place(*span))
    }
}

/// The bytes of a place in a text.
fn bytes(text: &str, place: Place) -> (usize, usize) {
    let line = text.split_inclusive('\n').take(place.line - 1).map(str::len).sum::<usize>();
    let rest = &text[line..];
    let width = |characters: usize| rest.char_indices().nth(characters).map_or(rest.len(), |(at, _)| at);
    (line + width(place.column - 1), line + width(place.column - 1 + place.length))
}

fn is_config_map(value: &Value) -> bool {
    value.get("kind").is_some_and(|kind| kind == "ConfigMap")
}

/// What a `ConfigMap` holds, and where.
fn held(value: &Value, node: &Node) -> Option<(Span, String)> {
    let text = value.get("data")?.get(CONFIG_KEY)?.as_str()?;
    let Below::Fields(fields) = &node.below else { return None };
    let Below::Fields(data) = &fields.get("data")?.below else { return None };
    Some((data.get(CONFIG_KEY)?.at, text.to_owned()))
}
