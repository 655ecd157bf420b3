//! `pillion convert`: manifests with `sidecar: true`, a field that Kubernetes does not have, as valid ones.
//!
//! Documents without it are printed as they were, byte by byte; one that is changed is written anew, and loses its comments.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::{fs, str};

use clap::Args;
use serde_json::Value;

use crate::manifest;
use crate::{Ending, Streams, yaml_text};

mod object;
#[cfg(test)]
mod tests;

use object::{Change, Conversion};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Manifests: files, or - for stdin. May hold several documents, lists, and whatever else is to stay as it is.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Write sidecars as init containers with restartPolicy Always, which needs nothing of the product; without it they
    /// are named in the annotation pillion.dev/sidecars.
    #[arg(long)]
    native: bool,
    /// Let the agent end them: adds the annotation pillion.dev/finish-mode: Wrap.
    #[arg(long, conflicts_with = "native")]
    wrap: bool,
    /// Take this container for a sidecar, as if it had sidecar: true.
    #[arg(long = "sidecar", value_name = "NAME", value_delimiter = ',')]
    sidecars: Vec<String>,
    #[arg(
        long = "entrypoint",
        value_name = "NAME=COMMAND",
        value_parser = entrypoint,
        conflicts_with = "native",
        help = "Command for a container that has none, such as app=[\"/bin/app\",\"--serve\"]: the agent must know what to run"
    )]
    entrypoints: Vec<(String, Vec<String>)>,
}

fn entrypoint(text: &str) -> Result<(String, Vec<String>), String> {
    let wrong = || "write it as name=[\"/bin/app\",\"argument\"]".to_owned();
    let (name, command) = text.split_once('=').ok_or_else(wrong)?;
    let command: Vec<String> = serde_json::from_str(command).map_err(|_| wrong())?;
    if name.is_empty() || command.is_empty() { Err(wrong()) } else { Ok((name.to_owned(), command)) }
}

pub(crate) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<Ending> {
    let mut conversion = Conversion {
        is_native: arguments.native,
        is_wrap: arguments.wrap,
        sidecars: &arguments.sidecars,
        entrypoints: &arguments.entrypoints,
        found: Vec::new(),
    };
    let mut converted = Vec::new();
    for path in &arguments.files {
        let (file, bytes) = read(path)?;
        let text = str::from_utf8(&bytes).map_err(|_| manifest::ReadError::NotText { file: file.clone() })?;
        let Converted { text, notes } = convert(&file, text, &mut conversion)?;
        for note in notes {
            writeln!(streams.err, "note: {note}")?;
        }
        converted.push(text);
    }
    if let Some(name) = conversion.missing() {
        return Err(io::Error::other(format!("no pod that is given has a container {name}: correct its name")));
    }
    write!(streams.out, "{}", joined(&converted))?;
    Ok(Ending::Fine)
}

fn read(path: &Path) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let file = if path == Path::new("-") { "<stdin>".to_owned() } else { path.display().to_string() };
    let read = if path == Path::new("-") { io::stdin().read_to_end(&mut bytes).map(|_| bytes) } else { fs::read(path) };
    let bytes = read.map_err(|source| manifest::ReadError::Unreadable { file: file.clone(), source })?;
    Ok((file, bytes))
}

/// What came of one file.
struct Converted {
    text: String,
    notes: Vec<String>,
}

/// Converts the documents of one file.
fn convert(file: &str, text: &str, conversion: &mut Conversion<'_>) -> io::Result<Converted> {
    let mut converted = Converted { text: String::new(), notes: Vec::new() };
    let mut lines_before = 0;
    for part in parts(text) {
        // Places in messages are those of the whole file.
        let padded = format!("{}{part}", "\n".repeat(lines_before));
        lines_before += part.matches('\n').count();
        let (separator, body) = split_separator(part);
        let mut values = manifest::values(file, padded.as_bytes())?;
        let value = values.first_mut().filter(|value| value.is_object());
        let changed = match value {
            None => Change::None,
            Some(value) => conversion.object(value).map_err(|what| io::Error::other(format!("{file}: {what}")))?,
        };
        match (changed, values.first()) {
            (Change::Some(title), Some(value)) => {
                if has_comment(body) {
                    converted.notes.push(format!("{file}: {title} is written anew, without its comments"));
                }
                converted.text.push_str(separator);
                converted.text.push_str(&written(body, value));
            }
            _ => converted.text.push_str(part),
        }
    }
    Ok(converted)
}

/// The documents of a file, each with the line that begins it.
fn parts(text: &str) -> Vec<&str> {
    let mut starts = vec![0];
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if at > 0 && is_separator(line) {
            starts.push(at);
        }
        at += line.len();
    }
    starts.push(text.len());
    starts.windows(2).map(|ends| &text[ends[0]..ends[1]]).filter(|part| !part.is_empty()).collect()
}

fn is_separator(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|rest| rest.trim().is_empty() || rest.trim_start().starts_with('#'))
}

fn split_separator(part: &str) -> (&str, &str) {
    let end = part.find('\n').map_or(part.len(), |at| at + 1);
    if is_separator(&part[..end]) { part.split_at(end) } else { ("", part) }
}

/// Whether a text may have a comment. A text in quotes may look like one, and costs a word too many.
fn has_comment(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with('#') || line.contains(" #"))
}

/// In the format it came in.
fn written(body: &str, value: &Value) -> String {
    if body.trim_start().starts_with('{') { format!("{value:#}\n") } else { yaml_text::document(value) }
}

/// All files as one, with a line between them where there is none.
fn joined(texts: &[String]) -> String {
    let mut all = String::new();
    for text in texts.iter().filter(|text| !text.trim().is_empty()) {
        if !all.is_empty() {
            if !all.ends_with('\n') {
                all.push('\n');
            }
            if !is_separator(text.lines().next().unwrap_or_default()) {
                all.push_str("---\n");
            }
        }
        all.push_str(text);
    }
    all
}
