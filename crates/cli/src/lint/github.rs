//! Findings as workflow commands, which GitHub Actions shows beside the lines of a change.

use pillion_api::Severity;

use super::finding::Finding;
use crate::diagnostic::docs;

pub(super) fn command(finding: &Finding<'_>) -> String {
    let (problem, place) = (&finding.problem, finding.place);
    let word = match problem.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let title = format!("{} {}", problem.reason.code(), problem.reason.name());
    let mut text = format!("{}\nhelp: {}", problem.message, problem.help);
    for other in &finding.also {
        text = format!("{text}\nsee also: {}:{}:{}", other.manifest.file, other.place.line, other.place.column);
    }
    text = format!("{text}\ndocs: {}", docs(problem.reason));
    format!(
        "::{word} file={},line={},col={},endColumn={},title={}::{}",
        property(&finding.manifest.file),
        place.line,
        place.column,
        place.column + place.length,
        property(&title),
        data(&text)
    )
}

/// A command is one line, and a percent sign begins what stands for something else.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Before the text, colons and commas mean something too.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_in_a_command_is_written_otherwise() {
        assert_eq!(data("50%\r\na: b, c"), "50%25%0D%0Aa: b, c");
        assert_eq!(property("C:\\a,b\n%0A"), "C%3A\\a%2Cb%0A%250A");
    }
}
