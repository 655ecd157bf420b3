//! The part of a page between two markers: the rest belongs to people.

use anyhow::Context;

/// Both markers with nothing between them.
pub(super) fn empty(name: &str) -> String {
    format!("{}\n{}\n", begin(name), end(name))
}

/// The page with `body` between the markers; `body` ends with a newline.
pub(super) fn replace(page: &str, name: &str, body: &str) -> anyhow::Result<String> {
    let (begin, end) = (begin(name), end(name));
    let found =
        page.split_once(&format!("{begin}\n")).and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
    let (before, after) = found.with_context(|| {
        format!("has no line {begin} before a line {end}: add both where the generated part belongs")
    })?;
    Ok(format!("{before}{begin}\n{body}{end}{after}"))
}

fn begin(name: &str) -> String {
    format!("<!-- {name}:begin -->")
}

fn end(name: &str) -> String {
    format!("<!-- {name}:end -->")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let page = "before\n<!-- x:begin -->\nold\n<!-- x:end -->\nafter\n";
        let expected = "before\n<!-- x:begin -->\nnew\n<!-- x:end -->\nafter\n";
        assert_eq!(replace(page, "x", "new\n").unwrap(), expected);
        assert_eq!(replace(expected, "x", "new\n").unwrap(), expected);
        assert_eq!(replace(&empty("x"), "x", "new\n").unwrap(), "<!-- x:begin -->\nnew\n<!-- x:end -->\n");
    }

    #[test]
    fn markers_that_are_missing_or_in_the_wrong_order_are_refused() {
        for page in ["", "<!-- x:begin -->\n", "<!-- x:end -->\n<!-- x:begin -->\n"] {
            assert_eq!(
                replace(page, "x", "new\n").unwrap_err().to_string(),
                "has no line <!-- x:begin --> before a line <!-- x:end -->: add both where the generated part belongs"
            );
        }
    }
}
