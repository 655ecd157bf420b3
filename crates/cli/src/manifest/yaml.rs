//! YAML as kubectl reads it, with the place of every value.

use std::collections::BTreeMap;
use std::{fmt, thread};

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Location, Spanned, UserMessageFormatter};

use super::place::{Below, Node, Span};

/// Deeper than any Kubernetes object.
pub(super) const MAX_DEPTH: usize = 100;
/// Enough for that depth four times over, in a build without optimisation.
const STACK: usize = 16 << 20;
/// Enough for the output of a large chart; a file above it is no manifest.
const MAX_NODES: usize = 2_000_000;
/// What anchors may hold in all; more is a text that is made to grow.
const MAX_ANCHORED: usize = 100_000;

/// Where a text is not YAML, or not what Kubernetes takes for it.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) message: String,
}

/// All documents that are not empty.
pub(super) fn documents(text: &str) -> Result<Vec<(Value, Node)>, Wrong> {
    // Reading takes a lot of stack for each level, and how much there is here is not ours to say.
    thread::scope(|scope| {
        let reader = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || parse(text));
        reader.expect("a thread can be started").join().expect("reading YAML does not panic")
    })
}

fn parse(text: &str) -> Result<Vec<(Value, Node)>, Wrong> {
    let budget = serde_saphyr::budget! {
        max_depth: MAX_DEPTH,
        max_nodes: MAX_NODES,
        max_events: 2 * MAX_NODES,
        max_documents: MAX_NODES,
        max_recorded_anchor_events: MAX_ANCHORED,
    };
    // kubectl reads YAML 1.1, where 0777 is octal.
    let options = serde_saphyr::options! { budget: budget, legacy_octal_numbers: true, with_snippet: false };
    match serde_saphyr::from_multiple_with_options::<Spanned<Content>>(text, options) {
        Ok(documents) => Ok(documents.into_iter().map(|found| found.value.with_place(None, found.defined)).collect()),
        Err(error) => Err(wrong(&error)),
    }
}

fn wrong(error: &serde_saphyr::Error) -> Wrong {
    let (line, column) = error.location().map_or((1, 1), |place| (place.line(), place.column()));
    let message = if let serde_saphyr::Error::Budget { .. } = error {
        format!("too much for a manifest: at most {MAX_DEPTH} levels and {MAX_NODES} values are read from one file")
    } else {
        let told = error.render_with_formatter(&UserMessageFormatter);
        // The place is said once, by whoever reports this.
        told.split_once(" at line ").map_or(told.as_str(), |(message, _)| message).to_owned()
    };
    Wrong { line: number(line), column: number(column), message }
}

/// A value without its own place, but with those below it.
struct Content {
    value: Value,
    below: Below,
}

impl Content {
    fn scalar(value: impl Into<Value>) -> Self {
        Self { value: value.into(), below: Below::Scalar }
    }

    /// Aliases stand where their text is.
    fn with_place(self, key: Option<Location>, defined: Location) -> (Value, Node) {
        (self.value, Node { key: key.map(span), at: span(defined), below: self.below })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::scalar(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::scalar(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::scalar(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::scalar(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Content, E> {
        Ok(Content::scalar(whole(value).map_or_else(|| Value::from(value), Value::Number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Content, E> {
        Ok(Content::scalar(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Content, A::Error> {
        let (mut values, mut nodes) = (Vec::new(), Vec::new());
        while let Some(item) = access.next_element::<Spanned<Content>>()? {
            let (value, node) = item.value.with_place(None, item.defined);
            values.push(value);
            nodes.push(node);
        }
        Ok(Content { value: Value::Array(values), below: Below::Items(nodes) })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Content, A::Error> {
        let (mut values, mut nodes) = (Map::new(), BTreeMap::new());
        while let Some((key, item)) = access.next_entry::<Spanned<Key>, Spanned<Content>>()? {
            let (value, node) = item.value.with_place(Some(key.defined), item.defined);
            let Key(name) = key.value;
            // 1 and "1" are two keys to YAML, and one to JSON.
            if values.insert(name.clone(), value).is_some() {
                return Err(A::Error::custom(format_args!("the key {name} is given twice")));
            }
            nodes.insert(name, node);
        }
        Ok(Content { value: Value::Object(values), below: Below::Fields(nodes) })
    }
}

/// A key; what YAML reads as something else than a text becomes one, as kubectl does it: `on` is `true`.
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeyVisitor)
    }
}

struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text as key")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Key, E> {
        Ok(Key(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Key, E> {
        Ok(Key(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Key, E> {
        Ok(Key(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Key, E> {
        Ok(Key(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Key, E> {
        Ok(Key(value.to_owned()))
    }
}

/// kubectl sends `1.0` and `1e3` as 1 and 1000.
fn whole(value: f64) -> Option<Number> {
    // Written out, a whole number has no point.
    value.to_string().parse::<i64>().ok().map(Number::from)
}

fn span(location: Location) -> Span {
    let span = location.span();
    let start = span.byte_offset().map_or(0, number);
    Span { start, end: start + span.byte_len().map_or(0, number) }
}

fn number(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
