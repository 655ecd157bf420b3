//! `pillion agent lint`: what is wrong with configurations, and what agents with them may do.

use std::io;
use std::path::PathBuf;

use clap::Args;
use pillion_agent_api::{Problem, Reading, Rights, Severity};
use pillion_yaml::{Place, Source};
use serde_json::{Value, json};

use super::{reading_of, rights, text_of};
use crate::diagnostic::{Diagnostic, Excerpt};
use crate::lint::counted;
use crate::{Ending, Format, Streams};

#[derive(Args)]
pub(crate) struct Arguments {
    #[arg(value_name = "FILE", required = true, help = "Configurations, or ConfigMaps that hold one; - for stdin")]
    files: Vec<PathBuf>,
    /// Format of the output.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    /// End with status 1 for warnings too.
    #[arg(long)]
    strict: bool,
}

pub(super) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<Ending> {
    let mut read = Vec::new();
    for path in &arguments.files {
        let (file, text) = text_of(path)?;
        let reading = reading_of(&text);
        read.push((file, Source::new(&text), reading));
    }
    let count = |severity| {
        let problems = read.iter().flat_map(|(_, _, reading)| &reading.problems);
        problems.filter(|problem| problem.severity == severity).count()
    };
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    match arguments.output {
        Format::Text => {
            for (file, source, reading) in &read {
                write!(streams.out, "{}", text(file, source, reading))?;
            }
        }
        Format::Json => {
            let files: Vec<_> = read.iter().map(|(file, _, reading)| of_file(file, reading)).collect();
            let report = json!({"errors": errors, "warnings": warnings, "files": files});
            writeln!(streams.out, "{report:#}")?;
        }
    }
    let counts = [(errors, "error"), (warnings, "warning")];
    let counts: Vec<_> = counts.into_iter().filter(|(count, _)| *count > 0).map(counted).collect();
    let found = if counts.is_empty() { "no problems".to_owned() } else { counts.join(", ") };
    writeln!(streams.err, "{found} in {}", counted((read.len(), "configuration")))?;
    let ends_badly = errors > 0 || (arguments.strict && warnings > 0);
    Ok(if ends_badly { Ending::Finding } else { Ending::Fine })
}

/// Problems with their places, then repairs, then rights.
fn text(file: &str, source: &Source, reading: &Reading) -> String {
    let mut text = String::new();
    for problem in &reading.problems {
        text.push_str(&drawn(file, source, problem));
        text.push('\n');
    }
    for repair in &reading.repairs {
        text.push_str(&crate::layout::hanging(2, &format!("{file}: repaired: {repair}")));
        text.push('\n');
    }
    if let Some(config) = &reading.config {
        let names: Vec<_> = config.plugins.iter().map(|plugin| plugin.config.name()).collect();
        let may = rights::text(&Rights::of(config));
        return format!("{text}{file}: runs {}\n{may}", names.join(", "));
    }
    text
}

/// One problem, as `pillion lint` draws it.
fn drawn(file: &str, source: &Source, problem: &Problem) -> String {
    let Problem { line, column, length, .. } = *problem;
    let severity = match problem.severity {
        Severity::Error => pillion_api::Severity::Error,
        Severity::Warning => pillion_api::Severity::Warning,
    };
    let message = match problem.path.as_str() {
        "" => problem.message.clone(),
        path => format!("{path}: {}", problem.message),
    };
    let excerpt = Excerpt { file, line: source.line(line), place: Place { line, column, length } };
    Diagnostic { severity, reason: None, message: &message, help: &problem.help, excerpts: vec![excerpt] }.draw()
}

fn of_file(file: &str, reading: &Reading) -> Value {
    let problem = |problem: &Problem| {
        json!({
            "severity": match problem.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            "path": problem.path,
            "message": problem.message,
            "help": problem.help,
            "line": problem.line,
            "column": problem.column,
            "endColumn": problem.column + problem.length,
        })
    };
    json!({
        "file": file,
        "problems": reading.problems.iter().map(problem).collect::<Vec<_>>(),
        "repairs": reading.repairs.iter()
            .map(|repair| json!({"line": repair.line, "message": repair.message})).collect::<Vec<_>>(),
        "rights": reading.config.as_ref().map(|config| rights::json(&Rights::of(config))),
    })
}
