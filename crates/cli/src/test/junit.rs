//! The report that build servers read.

use std::fmt::Write as _;

use super::Ran;
use super::case::CaseResult;

/// One document of XML. It says nothing of times, so that it is the same every time.
pub(super) fn report(all: &[Ran]) -> String {
    let every: Vec<&CaseResult> = all.iter().flat_map(|ran| &ran.results).collect();
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "<testsuites name=\"pillion test\" {}>", counts(&every));
    for Ran { suite, results } in all {
        let name = escaped(&suite.name);
        let file = escaped(&suite.file);
        let _ = writeln!(
            text,
            "  <testsuite name=\"{name}\" file=\"{file}\" {}>",
            counts(&results.iter().collect::<Vec<_>>())
        );
        for (case, result) in suite.cases.iter().zip(results) {
            let head = format!("    <testcase classname=\"{name}\" name=\"{}\" file=\"{file}\"", escaped(&case.name));
            let (element, lines) = match result {
                CaseResult::Passed | CaseResult::Updated(_) => {
                    let _ = writeln!(text, "{head}/>");
                    continue;
                }
                CaseResult::Failed(lines) => ("failure", lines),
                CaseResult::Broken(lines) => ("error", lines),
            };
            let message = lines.first().map(|line| escaped(line)).unwrap_or_default();
            let body = escaped(&lines.join("\n"));
            let _ =
                writeln!(text, "{head}>\n      <{element} message=\"{message}\">{body}</{element}>\n    </testcase>");
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

fn counts(results: &[&CaseResult]) -> String {
    let failures = results.iter().filter(|result| matches!(result, CaseResult::Failed(_))).count();
    let errors = results.iter().filter(|result| matches!(result, CaseResult::Broken(_))).count();
    format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\"", results.len())
}

/// Characters that XML cannot hold are replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(c),
            '\r' => escaped.push_str("&#13;"),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_would_misread_is_escaped() {
        assert_eq!(escaped("a<b> & \"c\" → \u{7}\r\n"), "a&lt;b&gt; &amp; &quot;c&quot; → \u{fffd}&#13;\n");
    }
}
