//! Objects as YAML that kubectl reads as the same values: what people know first comes first, the rest by name.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;
use serde_saphyr::{LitStr, SingleQuoted};

/// Fields that stand before all others, in this order.
const FIRST: [&str; 7] = ["apiVersion", "kind", "metadata", "name", "generateName", "namespace", "image"];

/// Fields whose keys people choose: those have no order but that of their names.
pub(crate) const MAPS: [&str; 7] =
    ["labels", "annotations", "limits", "requests", "overhead", "nodeSelector", "matchLabels"];

/// One document, with a line break at its end.
pub(crate) fn document(value: &Value) -> String {
    // Folded text would lose a space at its end.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let text = serde_saphyr::to_string_with_options(&Ordered { name: "", value }, options)
        .expect("JSON can be written as YAML");
    // Empty lines of a block are written with its indentation, which editors take away.
    let lines = text.trim_end_matches('\n').split('\n').map(|line| if line.trim().is_empty() { "" } else { line });
    format!("{}\n", lines.collect::<Vec<_>>().join("\n"))
}

/// Several documents, with the lines between them that kubectl expects.
pub(crate) fn documents<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    let texts: Vec<String> = values.into_iter().map(document).collect();
    texts.join("---\n")
}

/// A value on one line: a text as YAML would write it, all else as JSON.
pub(crate) fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if !text.contains('\n') => document(value).trim_end().to_owned(),
        other => other.to_string(),
    }
}

/// What the fields of the object of this name are sorted by.
pub(crate) fn order<'k>(object: &str, field: &'k str) -> (usize, &'k str) {
    let rank = FIRST.iter().position(|first| *first == field && !MAPS.contains(&object));
    (rank.unwrap_or(FIRST.len()), field)
}

/// A value and the name of the field it is in.
struct Ordered<'a> {
    name: &'a str,
    value: &'a Value,
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::Object(fields) => {
                let mut sorted: Vec<_> = fields.iter().collect();
                sorted.sort_by_key(|(name, _)| order(self.name, name));
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (name, value) in sorted {
                    map.serialize_entry(name, &Ordered { name, value })?;
                }
                map.end()
            }
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for value in items {
                    list.serialize_element(&Ordered { name: "", value })?;
                }
                list.end()
            }
            Value::String(text) if reads_well_as_block(text) => LitStr(text).serialize(serializer),
            Value::String(text) if reads_well_in_quotes(text) => SingleQuoted(text).serialize(serializer),
            other => other.serialize(serializer),
        }
    }
}

/// A script reads best as it is. What cannot be seen there stays in quotes, and so does what YAML may take for its own.
fn reads_well_as_block(text: &str) -> bool {
    let is_seen = |c: char| c == ' ' || c.is_ascii_graphic() || (c.is_alphanumeric() && !c.is_ascii());
    let plain = |line: &str| line.chars().all(is_seen) && !line.ends_with(' ');
    let begins_well = text.starts_with(|c: char| c.is_ascii_graphic());
    text.contains('\n') && begins_well && !text.ends_with("\n\n") && text.lines().all(plain)
}

/// JSON within YAML is easier to read without a mark before every quote.
fn reads_well_in_quotes(text: &str) -> bool {
    text.contains('"') && text.chars().all(|c| c == ' ' || c.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        let options = serde_saphyr::options! { legacy_octal_numbers: true };
        serde_saphyr::from_str_with_options(text, options).unwrap()
    }

    #[test]
    fn what_people_know_comes_first() {
        let pod = json!({"kind": "Pod", "apiVersion": "v1", "spec": {"containers": [{"command": ["a"], "image": "b", "name": "c"}]},
            "metadata": {"labels": {"kind": "a", "app": "b"}, "name": "web", "annotations": {"yes": "no", "script": "set -e\necho '#1'\n"}}});
        assert_eq!(
            document(&pod),
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  annotations:\n    script: |\n      set -e\n      echo '#1'\n    \
             \"yes\": \"no\"\n  labels:\n    app: b\n    kind: a\nspec:\n  containers:\n  - name: c\n    image: b\n    command:\n    - a\n"
        );
        assert_eq!(documents([&json!(1), &json!({"a": null, "b": {}})]), "1\n---\na: null\nb: {}\n");
    }

    #[test]
    fn what_cannot_be_seen_is_quoted() {
        for (text, written) in [
            ("a\nb", "|-\n  a\n  b\n"),
            ("a\n\n  b\n", "|\n  a\n\n    b\n"),
            ("a\n\n", "\"a\\n\\n\"\n"),
            ("a \nb", "\"a \\nb\"\n"),
            ("\na", "\"\\na\"\n"),
            ("a\tb\nc", "\"a\\tb\\nc\"\n"),
        ] {
            assert_eq!(document(&json!({ "k": text })), format!("k: {written}"));
        }
    }

    #[test]
    fn a_value_fits_on_a_line() {
        for (value, text) in [
            (json!("a"), "a"),
            (json!("true"), "\"true\""),
            (json!(true), "true"),
            (json!("{\"a\": 'b'}"), "'{\"a\": ''b''}'"),
            (json!("a\nb"), "\"a\\nb\""),
            (json!({"a": [1]}), "{\"a\":[1]}"),
        ] {
            assert_eq!(scalar(&value), text);
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
                "[ -~]{0,12}",
                "([ -~]{0,6}\n){1,4}[ -~]{0,3}",
                "\\PC{0,8}",
            "[ -~]{0,6}\"[ -~]{0,6}",
                "[a-z0-9:.,#'\"\\[\\]{}&*!|>%@`\t\n -]{0,12}",
                Just("word ".repeat(40)),
                proptest::sample::select(
                    &[
                        "yes",
                        "no",
                        "on",
                        "y",
                        "null",
                        "~",
                        "0777",
                        "1_000",
                        "1e3",
                        "=",
                        "<<",
                        "-",
                        "2001-01-01",
                        "12:30"
                    ][..]
                )
                .prop_map(str::to_owned),
            ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            text.prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[ -~]{1,8}", inner, 0..4).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn what_is_written_reads_as_the_same(value in values()) {
            let text = document(&value);
            prop_assert_eq!(read(&text), value, "{}", text);
        }
    }
}
