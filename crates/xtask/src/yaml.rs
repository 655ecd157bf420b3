//! YAML, read and written in one place. What is written, kubectl reads as the same values.

use anyhow::Context;
use serde_json::Value;

/// A document with a line on top that says where it comes from.
pub fn generated(document: &Value) -> anyhow::Result<String> {
    // Block scalars lose a space at the end of a long text.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let text = serde_saphyr::to_string_with_options(document, options).context("cannot write YAML")?;
    Ok(format!("# Written by `cargo xtask codegen`; change the types in crates/api instead.\n{}\n", text.trim_end()))
}

/// Reads one document.
pub fn parse(text: &str) -> anyhow::Result<Value> {
    serde_saphyr::from_str(text).context("cannot read YAML")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_reads_as_the_same() {
        let document = json!({"a": ["yes", "n", "0777", "1_000", "^a: [b]$", "it's \"so\"", ""], "b": {"c": 1, "d": true},
            "long": "word ".repeat(100), "lines": "a\nb"});
        let text = generated(&document).unwrap();
        assert_eq!(
            text.lines().next(),
            Some("# Written by `cargo xtask codegen`; change the types in crates/api instead.")
        );
        assert_eq!(parse(&text).unwrap(), document);
        assert_eq!(generated(&document).unwrap(), text);
    }
}
