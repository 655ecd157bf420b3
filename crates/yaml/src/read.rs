//! YAML as kubectl reads it, with the place of every value.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Location, Spanned, UserMessageFormatter};

use crate::{Below, Node, Span};

/// What one level takes of the caller's stack at most, four times over, in a build without optimisation.
pub const STACK_PER_LEVEL: usize = 160 << 10;

/// What is read of one text; more is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Levels of lists and maps within one another.
    pub depth: usize,
    /// Values, keys included.
    pub values: usize,
    /// What anchors may hold in all; more is a text that is made to grow.
    pub anchored: usize,
}

/// Where a text is not YAML, or not what Kubernetes takes for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    /// What is wrong there.
    pub message: String,
}

/// All documents that are not empty.
pub fn documents(text: &str, limits: Limits) -> Result<Vec<(Value, Node)>, Wrong> {
    let budget = serde_saphyr::budget! {
        max_depth: limits.depth,
        max_nodes: limits.values,
        max_events: 2 * limits.values,
        max_documents: limits.values,
        max_recorded_anchor_events: limits.anchored,
    };
    // kubectl reads YAML 1.1, where 0777 is octal.
    let options = serde_saphyr::options! { budget: budget, legacy_octal_numbers: true, with_snippet: false };
    match serde_saphyr::from_multiple_with_options::<Spanned<Content>>(text, options) {
        Ok(documents) => Ok(documents.into_iter().map(|found| found.value.with_place(None, found.defined)).collect()),
        Err(error) => Err(wrong(&error, limits)),
    }
}

fn wrong(error: &serde_saphyr::Error, limits: Limits) -> Wrong {
    let (line, column) = error.location().map_or((1, 1), |place| (place.line(), place.column()));
    let message = if let serde_saphyr::Error::Budget { .. } = error {
        let Limits { depth, values, .. } = limits;
        format!("too much for one file: at most {depth} levels and {values} values are read")
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
