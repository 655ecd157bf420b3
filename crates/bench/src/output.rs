//! Output of a measurement: its progress, and its table.

/// Prints a line of progress.
#[expect(clippy::print_stderr, reason = "progress, for people")]
pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}

/// Prints the result.
#[expect(clippy::print_stdout, reason = "the result")]
pub(crate) fn print(text: &str) {
    println!("{text}");
}
