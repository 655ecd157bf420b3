//! JSON of any form, and objects of which some fields may be left out.

use proptest::strategy::Strategy;
use serde_json::{Map, Value, json};

use crate::drawn::Drawn;
use crate::random::Random;

/// Names that no version of Kubernetes knows; some need escaping in a JSON pointer.
const UNKNOWN_FIELDS: [&str; 6] = ["fieldOfTomorrow", "x-extra", "odd/name", "odd~name", "~1", "ünknown field"];
const DEPTH: u32 = 3;

/// Any JSON, as a field of tomorrow might have it.
pub fn any_json() -> impl Strategy<Value = Value> + Clone {
    Drawn::new(value, |_| true)
}

/// Any JSON, as a field of tomorrow might have it.
pub(crate) fn value(random: &mut Random) -> Value {
    nested(random, DEPTH)
}

fn nested(random: &mut Random, depth: u32) -> Value {
    let kinds = if depth == 0 { 5 } else { 8 };
    match random.below(kinds) {
        0 => Value::Null,
        1 => random.chance(50).into(),
        2 => random.one_of(&[0, 1, -1, 42, i64::MIN, i64::MAX]).into(),
        3 => random.one_of(&[0.5, -1.25, 1e9]).into(),
        4 => random.one_of(&["", "text", "128Mi", "$(POD_NAME)", "two\nlines", "\u{1F4A5}"]).into(),
        5 => (0..random.up_to(3)).map(|_| nested(random, depth - 1)).collect(),
        _ => {
            let keys = random.up_to(3);
            let keys = random.some_of(&["name", "a", "b/c", "d~e", ""], keys);
            keys.into_iter().map(|key| (key.to_owned(), nested(random, depth - 1))).collect()
        }
    }
}

/// Adds a field that nobody knows.
pub(crate) fn add_unknown(fields: &mut Map<String, Value>, random: &mut Random) {
    let name = random.one_of(&UNKNOWN_FIELDS);
    fields.insert(name.to_owned(), value(random));
}

/// The fields that are there.
pub(crate) fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// A field that is there.
pub(crate) fn given(name: &str, value: impl Into<Value>) -> (&str, Option<Value>) {
    (name, Some(value.into()))
}

/// The items of a list of an object; none where it is absent.
pub(crate) fn items<'a>(object: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    object.get(list).and_then(Value::as_array).into_iter().flatten()
}

/// A key of pairs with one of its values.
pub(crate) fn pair(random: &mut Random, pairs: &[(&'static str, &'static [&'static str])]) -> (String, Value) {
    let (key, values) = random.one_of(pairs);
    (key.to_owned(), json!(random.one_of(values)))
}
