//! `pillion render`: the pods that workloads would become, and why.

use std::env;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use pillion_inject::{Outcome, WorkloadPod, marks, mentions_variable};
use serde_json::{Value, json};

use crate::installation::{AGENT_IMAGE, Facts};
use crate::layout::indented;
use crate::manifest::{self, Manifest};
use crate::preview::{Branch, Given, Preview, Role, Subject, Trouble, json, why};
use crate::{Ending, Streams, pod_diff, yaml_text};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Workloads: files, folders, or - for stdin. May hold sets, namespaces and limit ranges as well.
    #[arg(short, long = "filename", value_name = "PATH", num_args = 1.., required = true)]
    filenames: Vec<PathBuf>,
    /// Sets, namespaces and limit ranges: files, folders, or - for stdin.
    #[arg(short, long, value_name = "PATH", num_args = 1..)]
    sets: Vec<PathBuf>,
    /// Namespace of objects that do not name theirs.
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// Labels of the workloads' namespaces, besides those of namespaces that are given.
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', value_parser = label)]
    namespace_labels: Vec<(String, String)>,
    /// Limit ranges whose defaults containers get. One that names no namespace holds in all.
    #[arg(long, value_name = "FILE")]
    limit_range: Vec<PathBuf>,
    /// Show the pods that get this revision of a set, by the name of its revision object. Without it, where a set keeps a
    /// proportion between two revisions, a pod of each is shown.
    #[arg(long, value_name = "NAME")]
    revision: Option<String>,
    #[arg(
        long,
        value_name = "IMAGE",
        default_value = AGENT_IMAGE,
        help = "Image of the agent, for pods whose sidecars it ends. Sidecars are shown as with the feature gate SidecarFinish on"
    )]
    agent_image: String,
    /// Show what changes.
    #[arg(long)]
    diff: bool,
    /// Show what every set decides, and the arithmetic.
    #[arg(long)]
    why: bool,
    /// Format of the pods.
    #[arg(short, long, value_enum, default_value_t, conflicts_with_all = ["diff", "why"])]
    output: Output,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// The pods.
    #[default]
    Yaml,
    /// The pods with verdicts, patches and all reasons.
    Json,
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as key=value")?;
    if key.is_empty() {
        Err("the key is empty: write it as key=value".to_owned())
    } else {
        Ok((key.to_owned(), value.to_owned()))
    }
}

pub(crate) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<Ending> {
    let given = match given(arguments)? {
        Ok(given) => given,
        Err(Trouble::Usage(message)) => return Err(io::Error::other(message)),
        Err(Trouble::InvalidSets(errors)) => {
            for error in errors {
                writeln!(streams.err, "error: {error}")?;
            }
            writeln!(streams.err, "note: nothing is rendered while a set is invalid; pillion lint draws the places")?;
            return Ok(Ending::Finding);
        }
    };
    for note in given.notes.iter().chain(&given.unused_limit_ranges()) {
        writeln!(streams.err, "note: {note}")?;
    }
    let subjects: Vec<Subject<'_>> =
        given.workloads.iter().map(|(file, workload)| Subject::new(&given, file, workload)).collect();
    let previews = subjects.iter().map(|subject| match &arguments.revision {
        Some(name) => Ok(vec![subject.preview_of(Branch::Asked(name))?]),
        None => subject.previews(),
    });
    let previews = previews.collect::<Result<Vec<_>, String>>().map_err(io::Error::other)?;
    let previews: Vec<Preview<'_>> = previews.into_iter().flatten().collect();
    match (arguments.output, arguments.why || arguments.diff) {
        (_, true) => write_text(&previews, arguments, streams)?,
        (Output::Json, _) => {
            let objects: Vec<Value> = previews.iter().map(json).collect();
            writeln!(streams.out, "{:#}", json!({ "objects": objects }))?;
        }
        (Output::Yaml, _) => {
            for preview in &previews {
                write!(streams.err, "{}", summary(preview))?;
            }
            write!(streams.out, "{}", yaml_text::documents(previews.iter().filter_map(Preview::pod)))?;
        }
    }
    let is_refused = previews.iter().any(|preview| preview.decision.is_refused());
    Ok(if is_refused { Ending::Finding } else { Ending::Fine })
}

/// Reads all files.
fn given(arguments: &Arguments) -> io::Result<Result<Given, Trouble>> {
    let from_stdin = |paths: &[PathBuf]| paths.iter().filter(|path| *path == Path::new("-")).count();
    if from_stdin(&arguments.filenames) + from_stdin(&arguments.sets) > 1 {
        return Err(io::Error::other("- is given twice: stdin can be read once"));
    }
    let workloads = manifest::read(&arguments.filenames)?;
    let surroundings = manifest::read(&arguments.sets)?;
    let limit_ranges = manifest::read(&arguments.limit_range)?;
    if let Some(other) = limit_ranges.iter().find(|manifest| manifest.kind() != "LimitRange") {
        let Manifest { file, .. } = other;
        return Err(io::Error::other(format!(
            "{file}: --limit-range takes LimitRanges, this is {}",
            named(other.kind())
        )));
    }
    let sources =
        [(&workloads[..], Role::Anything), (&surroundings, Role::Surroundings), (&limit_ranges, Role::Surroundings)];
    let sorted = Given::sort(&sources, &arguments.namespace);
    Ok(sorted.and_then(|mut given| {
        given.facts = Facts::offline(&arguments.agent_image);
        given.add_labels(arguments.namespace_labels.iter().cloned());
        if given.workloads.is_empty() {
            return Err(Trouble::Usage("nothing in -f creates pods: give a Pod, a Deployment or the like".to_owned()));
        }
        if let Some(name) = &arguments.revision
            && !given.revisions.has(name, given.sets.sets().map(AsRef::as_ref))
        {
            let message = format!("no set that is given has revision {name}: give its ControllerRevision with -s");
            return Err(Trouble::Usage(message));
        }
        if given.sets.sets().len() == 0 && given.workloads.iter().all(|(_, workload)| !has_sidecars(workload)) {
            return Err(Trouble::Usage("no SidecarSet is given: name its file or folder with -s".to_owned()));
        }
        Ok(given)
    }))
}

/// Whether a pod has something to show without any set.
fn has_sidecars(workload: &WorkloadPod) -> bool {
    workload.pod.pointer("/metadata/annotations").is_some_and(|all| all.get(marks::SIDECARS).is_some())
        || mentions_variable(&workload.pod.to_string())
}

fn named(kind: &str) -> &str {
    if kind.is_empty() { "no object" } else { kind }
}

/// One line for a pod, and more only for what a person should not miss.
fn summary(preview: &Preview<'_>) -> String {
    let title = preview.title();
    let verdicts = &preview.decision.verdicts;
    if preview.decision.is_refused() {
        let refusals = preview.decision.refusals();
        let told = refusals
            .map(|verdict| format!("{title}: refused by {}: {}: {}\n", verdict.set, verdict.reason, verdict.message));
        let of_pod = preview.decision.refusal.iter();
        let of_pod = of_pod.map(|refusal| format!("{title}: refused: {}: {}\n", refusal.reason, refusal.message));
        return told.chain(of_pod).collect();
    }
    let present: Vec<&str> = preview.present().map(|verdict| verdict.set).collect();
    let (count, all) = (present.len(), preview.all().len());
    let names = if present.is_empty() { String::new() } else { format!(": {}", present.join(", ")) };
    // Writing to a String cannot fail.
    let mut text = format!("{title}: {count} of {all} sets applied{names}\n");
    for verdict in verdicts.iter().filter(|verdict| verdict.outcome == Outcome::Ignored) {
        let _ =
            writeln!(text, "warning: {title}: {} is left out: {}: {}", verdict.set, verdict.reason, verdict.message);
    }
    for (set, warning) in verdicts.iter().flat_map(|it| it.warnings.iter().map(move |warning| (it.set, warning))) {
        let _ = writeln!(text, "warning: {title}: {set}: {}: {}", warning.reason, warning.message);
    }
    for ending in &preview.decision.endings {
        let _ = writeln!(text, "{title}: sidecar {}: {}: {}", ending.container, ending.reason, ending.message);
    }
    text
}

fn write_text(previews: &[Preview<'_>], arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<()> {
    let colour = is_coloured(io::stdout().is_terminal(), env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty()));
    for (at, preview) in previews.iter().enumerate() {
        if at > 0 {
            writeln!(streams.out)?;
        }
        let what = if preview.subject.origin().is_template() { " → 1 pod template" } else { "" };
        writeln!(streams.out, "{}{what}\n", preview.title())?;
        if arguments.why {
            writeln!(streams.out, "{}", why(preview))?;
        }
        if arguments.diff {
            write_diff(preview, colour, streams)?;
        }
        write!(streams.out, "{}", conclusion(preview))?;
    }
    Ok(())
}

fn write_diff(preview: &Preview<'_>, colour: bool, streams: &mut Streams<'_>) -> io::Result<()> {
    let Some(after) = preview.pod() else { return Ok(()) };
    let lines = pod_diff::lines(&pod_diff::diff(&preview.subject.pod, after));
    if lines.is_empty() {
        writeln!(streams.out, "  no difference")?;
    }
    for line in lines {
        let line = if colour { pod_diff::painted(&line) } else { line };
        writeln!(streams.out, "  {line}")?;
    }
    writeln!(streams.out)
}

fn conclusion(preview: &Preview<'_>) -> String {
    match &preview.effect {
        None => indented(2, "the pod is refused: nothing is created"),
        Some(Ok(effect)) => effect.to_string().lines().map(|line| indented(2, line)).collect(),
        Some(Err(unreadable)) => indented(2, &format!("pod requests are not known: {unreadable}")),
    }
}

fn is_coloured(is_terminal: bool, is_unwanted: bool) -> bool {
    is_terminal && !is_unwanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_for_terminals_of_people_who_want_it() {
        assert!(is_coloured(true, false));
        assert!(!is_coloured(true, true) && !is_coloured(false, false));
    }

    #[test]
    fn labels_are_pairs() {
        assert_eq!(label("tier=prod"), Ok(("tier".to_owned(), "prod".to_owned())));
        assert_eq!(label("tier="), Ok(("tier".to_owned(), String::new())));
        assert_eq!(label("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert!(label("tier").is_err() && label("=prod").is_err());
    }
}
