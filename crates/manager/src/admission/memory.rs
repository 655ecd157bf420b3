//! The memory that a review needs.

/// Bytes of an object: a node of a map has room for eleven entries, however few it holds. Without entries there is no node.
const OBJECT: usize = 640;
/// Bytes of an element of an array, or of the text of a key.
const ELEMENT: usize = 48;

/// An upper estimate of the memory that the values of a JSON text take, read from its punctuation. A text of `{"":0}` takes a
/// hundred times its length.
pub fn memory_of(json: &[u8]) -> usize {
    let (mut bytes, mut in_text, mut is_escaped) = (json.len(), false, false);
    for (at, byte) in json.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' if json.get(at + 1) != Some(&b'}') => bytes += OBJECT,
            b'[' | b',' => bytes += ELEMENT,
            _ => {}
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attack_many_small_values_are_estimated_by_what_they_take() {
        let many = |value: &str| format!("[{}]", vec![value; 1_000].join(","));
        for (json, at_least) in [(many(r#"{"":0}"#), 640_000), (many("[]"), 48_000), (many("0"), 48_000)] {
            let bytes = memory_of(json.as_bytes());
            assert!((at_least..2 * at_least + 200_000).contains(&bytes), "{bytes}");
        }
        let text = format!(r#"["{}"]"#, r#"{[,\"{\\"#.repeat(1_000));
        assert_eq!(memory_of(text.as_bytes()), text.len() + ELEMENT);
        // `managedFields` are full of empty objects.
        assert_eq!(memory_of(br#"{"f:name":{},"f:value":{}}"#), 26 + OBJECT + ELEMENT);
    }
}
