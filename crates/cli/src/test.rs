//! `pillion test`: suites of pods that must come out as they are written down.
//!
//! An expected pod is compared byte for byte with what `--update` would write, so nothing that changes goes unseen: no
//! value, no order, no comment.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::manifest;
use crate::{Ending, Streams};

mod case;
mod junit;
mod suite;

use case::CaseResult;
use suite::Suite;

/// The name that makes a file a suite.
pub(crate) const SUITE: &str = "pillion-test.yaml";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Folders to search for suites, which are files named pillion-test.yaml; or suites.
    #[arg(value_name = "DIR", default_value = ".")]
    paths: Vec<PathBuf>,
    /// Write the expected pods as they come out now.
    #[arg(long)]
    update: bool,
    /// Format of the report.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// Also write a report for build servers, in the format of junit.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    #[default]
    Text,
    /// For build servers, in the format of junit.
    Junit,
}

/// A suite that was run.
struct Ran {
    suite: Suite,
    /// What came of each case, in their order.
    results: Vec<CaseResult>,
}

pub(crate) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<Ending> {
    let suites = read(&arguments.paths)?;
    let mut all = Vec::new();
    for suite in suites {
        // In the other format stdout holds nothing but the report.
        let talk: &mut dyn io::Write = if arguments.output == Output::Text { streams.out } else { streams.err };
        writeln!(talk, "{}: {}", suite.file, suite.name)?;
        let mut results = Vec::new();
        for case in &suite.cases {
            let result = case::run(&suite, case, arguments.update);
            write!(talk, "{}", told(&case.name, &result))?;
            results.push(result);
        }
        all.push(Ran { suite, results });
    }
    let report = junit::report(&all);
    if let Some(file) = &arguments.junit {
        fs::write(file, &report)
            .map_err(|error| io::Error::new(error.kind(), format!("cannot write {}: {error}", file.display())))?;
        writeln!(streams.err, "wrote {}", file.display())?;
    }
    match arguments.output {
        Output::Text => writeln!(streams.out, "{}", summary(&all))?,
        Output::Junit => {
            write!(streams.out, "{report}")?;
            writeln!(streams.err, "{}", summary(&all))?;
        }
    }
    let is_fine = all.iter().flat_map(|ran| &ran.results).all(CaseResult::is_fine);
    Ok(if is_fine { Ending::Fine } else { Ending::Finding })
}

/// All suites, each path's in the order of their names. All mistakes in them are told at once.
fn read(paths: &[PathBuf]) -> io::Result<Vec<Suite>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for path in paths {
        for file in manifest::files_below(path, |file| file.file_name() == Some(OsStr::new(SUITE)))? {
            // `./` before every path would only be noise.
            let file = file.strip_prefix(".").unwrap_or(&file);
            if !files.iter().any(|earlier| earlier == file) {
                files.push(file.to_owned());
            }
        }
    }
    if files.is_empty() {
        let places: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(io::Error::other(format!("no {SUITE} below {}", places.join(", "))));
    }
    let (mut suites, mut errors) = (Vec::new(), Vec::new());
    for file in files {
        match Suite::read(&file)? {
            Ok(suite) => suites.push(suite),
            Err(mistakes) => errors.extend(mistakes),
        }
    }
    if errors.is_empty() { Ok(suites) } else { Err(io::Error::other(errors.join("\nerror: "))) }
}

/// The line of a case, with what is wrong below it.
fn told(name: &str, result: &CaseResult) -> String {
    let (word, lines) = match result {
        CaseResult::Passed => ("ok", Vec::new()),
        CaseResult::Updated(file) => ("ok", vec![format!("wrote {file}")]),
        CaseResult::Failed(lines) => ("FAIL", lines.clone()),
        CaseResult::Broken(lines) => ("ERROR", lines.clone()),
    };
    let mut text = format!("  {word:5}  {name}\n");
    for line in lines {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "         {line}");
    }
    text
}

/// `3 cases: 2 passed, 1 failed`
fn summary(all: &[Ran]) -> String {
    let results: Vec<&CaseResult> = all.iter().flat_map(|ran| &ran.results).collect();
    let count = |is_meant: fn(&CaseResult) -> bool| results.iter().filter(|result| is_meant(result)).count();
    let cases = if results.len() == 1 { "case" } else { "cases" };
    let mut text = format!("{} {cases}: {} passed", results.len(), count(CaseResult::is_fine));
    for (number, word) in [
        (count(|result| matches!(result, CaseResult::Updated(_))), "of them updated"),
        (count(|result| matches!(result, CaseResult::Failed(_))), "failed"),
        (count(|result| matches!(result, CaseResult::Broken(_))), "could not be run"),
    ] {
        if number > 0 {
            // Writing to a String cannot fail.
            let _ = write!(text, ", {number} {word}");
        }
    }
    text
}

/// A path that a suite names, from where it is run.
fn beside(suite: &Path, path: &str) -> PathBuf {
    suite.parent().unwrap_or(Path::new("")).join(path)
}

#[cfg(test)]
mod tests;
