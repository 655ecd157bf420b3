//! One value of a JSON text, found while the text is read: nothing else of it is kept.

use std::fmt;
use std::io::Read;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Why there is no value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoValue {
    /// The text is not JSON.
    #[error("it is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// The text has nothing at this place.
    #[error("it has nothing at {0}")]
    Missing(String),
    /// The value is null, a list or a map.
    #[error("{0} is not a text, a number, true or false")]
    NotScalar(String),
}

/// The text, number or truth value at the end of a path of keys and positions, as text.
pub(crate) fn find(json: impl Read, path: &[String]) -> Result<String, NoValue> {
    let mut text = serde_json::Deserializer::from_reader(json);
    let found = At(path).deserialize(&mut text).and_then(|found| text.end().map(|()| found));
    match found.map_err(NoValue::NotJson)? {
        Found::Value(value) => Ok(value),
        Found::Nothing => Err(NoValue::Missing(path.join("."))),
        Found::Other => Err(NoValue::NotScalar(path.join("."))),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Found {
    Value(String),
    /// There is no such place.
    Nothing,
    /// Something that is no single value.
    Other,
}

/// The rest of the path.
#[derive(Clone, Copy)]
struct At<'a>(&'a [String]);

impl At<'_> {
    fn scalar(self, value: &impl ToString) -> Found {
        if self.0.is_empty() { Found::Value(value.to_string()) } else { Found::Nothing }
    }
}

impl<'de> DeserializeSeed<'de> for At<'_> {
    type Value = Found;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Found, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for At<'_> {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Found, E> {
        Ok(self.scalar(&value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Found, E> {
        Ok(self.scalar(&value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Found, E> {
        Ok(self.scalar(&value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Found, E> {
        Ok(self.scalar(&value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Found, E> {
        Ok(self.scalar(&value))
    }

    fn visit_unit<E: Error>(self) -> Result<Found, E> {
        Ok(if self.0.is_empty() { Found::Other } else { Found::Nothing })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found, A::Error> {
        let Some((key, rest)) = self.0.split_first() else {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(Found::Other);
        };
        let mut found = Found::Nothing;
        while let Some(name) = map.next_key::<String>()? {
            if name == *key {
                // As in most readers of JSON, the last of two with one name counts.
                found = map.next_value_seed(At(rest))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Found, A::Error> {
        let Some((position, rest)) = self.0.split_first() else {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Found::Other);
        };
        let position: Option<usize> = position.parse().ok();
        let mut found = Found::Nothing;
        for at in 0.. {
            let next = if Some(at) == position {
                list.next_element_seed(At(rest))?.map(|value| found = value)
            } else {
                list.next_element::<IgnoredAny>()?.map(drop)
            };
            if next.is_none() {
                break;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn find_in(json: &str, path: &str) -> Result<String, String> {
        let path: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        find(json.as_bytes(), &path).map_err(|error| error.to_string())
    }

    /// Another implementation stopped at the first number, because it took every value for a text.
    #[test]
    fn b05_every_single_value_is_a_state() {
        let json = r#"{"a":{"text":"idle","count":7,"minus":-3,"share":0.5,"on":true,"list":[10,{"b":"c"}]}}"#;
        for (path, state) in [
            ("a/text", "idle"),
            ("a/count", "7"),
            ("a/minus", "-3"),
            ("a/share", "0.5"),
            ("a/on", "true"),
            ("a/list/0", "10"),
            ("a/list/1/b", "c"),
        ] {
            assert_eq!(find_in(json, path), Ok(state.to_owned()), "{path}");
        }
        assert_eq!(find_in("\"idle\"", ""), Ok("idle".to_owned()));
    }

    #[test]
    fn where_there_is_no_value_it_is_said_why() {
        let json = r#"{"a":{"none":null,"list":[1]},"b":1}"#;
        for (path, told) in [
            ("c", "it has nothing at c"),
            ("b/c", "it has nothing at b.c"),
            ("a/none", "a.none is not a text, a number, true or false"),
            ("a/none/x", "it has nothing at a.none.x"),
            ("a/list", "a.list is not a text, a number, true or false"),
            ("a/list/1", "it has nothing at a.list.1"),
            ("a/list/x", "it has nothing at a.list.x"),
            ("a", "a is not a text, a number, true or false"),
        ] {
            assert_eq!(find_in(json, path), Err(told.to_owned()), "{path}");
        }
        assert_eq!(find_in("{\"a\":1", "a"), Err("it is not JSON".to_owned()));
        assert_eq!(find_in("{\"a\":1} x", "a"), Err("it is not JSON".to_owned()));
        assert_eq!(find_in(&"[".repeat(10_000), "0"), Err("it is not JSON".to_owned()));
    }

    proptest! {
        #[test]
        fn it_finds_what_a_pointer_finds(number: i64, text: String, before: Vec<bool>) {
            let mut list: Vec<serde_json::Value> = before.into_iter().map(Into::into).collect();
            list.push(serde_json::json!({"number": number, "text": text}));
            let at = (list.len() - 1).to_string();
            let json = serde_json::Value::from(list).to_string();
            let path = |key: &str| [at.clone(), key.to_owned()];
            prop_assert_eq!(find(json.as_bytes(), &path("number")).unwrap(), number.to_string());
            prop_assert_eq!(find(json.as_bytes(), &path("text")).unwrap(), text);
        }
    }
}
