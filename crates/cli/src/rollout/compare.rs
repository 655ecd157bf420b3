//! `pillion rollout diff`: what one revision of a set changes against another, and on the pods there are.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;

use clap::Args;
use pillion_api::{Meaning, PodRevisions, REVISIONS, Template};
use pillion_inject::{Candidate, Choice, Installation, LimitRange, fill_in, inject, marks, uninjected};
use pillion_rollout::history::Revision;
use pillion_rollout::{Difference, Place, Pod};
use serde_json::{Map, Value, json};

use super::gather::Rollout;
use super::history::{counts, plural};
use crate::layout::{hanging, indented};
use crate::live::kinds::set_named;
use crate::live::{Connection, Failure, run as run_live};
use crate::{Ending, Format, Streams, pod_diff};

/// Characters of a revision's name after that of its set.
const HASH: usize = 10;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The set, as scs/mesh, and two of its revisions by name, number or custom version; or two names alone. Without
    /// revisions: from the one most pods have to the newest.
    #[arg(value_name = "SET|REVISION", num_args = 1..=3, required = true)]
    words: Vec<String>,
    /// How many different pods are shown.
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    examples: usize,
    /// Format of the answer.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    connection: Connection,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Question {
    set: String,
    from: Option<String>,
    to: Option<String>,
}

impl Question {
    fn read(words: &[String]) -> Result<Self, String> {
        let set = |word: &str| set_named(word);
        match words {
            [one] => Ok(Self { set: set(one)?, from: None, to: None }),
            [one, other] if one.contains('/') => Ok(Self { set: set(one)?, from: Some(other.clone()), to: None }),
            [one, other] => match (set_of(one), set_of(other)) {
                (Some(set), Some(same)) if set == same => {
                    Ok(Self { set: set.to_owned(), from: Some(one.clone()), to: Some(other.clone()) })
                }
                (Some(set), Some(another)) => {
                    Err(format!("{one} is a revision of set {set}, and {other} of set {another}: name two of one set"))
                }
                _ => Err(format!("{one} {other}: name the set as well, such as scs/mesh {one} {other}")),
            },
            [one, from, to] => Ok(Self { set: set(one)?, from: Some(from.clone()), to: Some(to.clone()) }),
            _ => Err("name a set, and at most two revisions".to_owned()),
        }
    }
}

/// The set a revision is of, by its name.
fn set_of(revision: &str) -> Option<&str> {
    revision.rsplit_once('-').filter(|(set, hash)| !set.is_empty() && hash.len() == HASH).map(|(set, _)| set)
}

pub(super) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<Ending> {
    let question = Question::read(&arguments.words).map_err(io::Error::other)?;
    run_live(&arguments.connection, streams, async |cluster, streams| {
        let rollout = match Rollout::gathered(cluster, &arguments.connection, &question.set, streams).await? {
            Ok(rollout) => rollout,
            Err(ending) => return Ok(ending),
        };
        let comparison = Comparison::of(&rollout, &question).map_err(Failure::Usage)?;
        match arguments.output {
            Format::Text => write!(streams.out, "{}", comparison.text(arguments.examples))?,
            Format::Json => writeln!(streams.out, "{:#}", comparison.json())?,
        }
        Ok(if comparison.samples.iter().any(|sample| sample.refusal.is_some()) {
            Ending::Finding
        } else {
            Ending::Fine
        })
    })
}

/// Two revisions of a set.
struct Comparison {
    set: String,
    from: Revision,
    to: Revision,
    newest: String,
    /// The words of the user, field by field.
    changes: Vec<String>,
    /// How pods that run follow: in which way, and what.
    ways: Vec<(Way, Vec<String>)>,
    /// A pod of each workload.
    samples: Vec<Sample>,
}

/// How a change reaches pods that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    InPlace,
    Resize,
    Later,
    Recreate,
}

/// What changes in a pod of a workload.
struct Sample {
    workload: String,
    pods: usize,
    pod: String,
    /// What differs, as lines.
    diff: Vec<String>,
    /// Why one of the two cannot be given to it.
    refusal: Option<String>,
}

impl Way {
    /// For people and for programs, and what it means.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::InPlace => ("in place", "inPlace", "the container restarts, its pod stays"),
            Self::Resize => ("resize", "resize", "without a restart"),
            Self::Later => ("later", "later", "pods that are created from now on"),
            Self::Recreate => ("recreate", "recreate", "pods follow only when they are created again"),
        }
    }
}

impl Comparison {
    fn of(rollout: &Rollout, question: &Question) -> Result<Self, String> {
        let set = &rollout.meaning;
        let (from, to) = chosen(rollout, question)?;
        let readable = |revision: &Revision| {
            let words =
                || format!("revision {} is of another version of the product, and cannot be read", revision.name);
            revision.template.clone().ok_or_else(words)
        };
        let (old, new) = (readable(from)?, readable(to)?);
        Ok(Self {
            set: set.name.clone(),
            from: from.clone(),
            to: to.clone(),
            newest: set.revision.clone(),
            changes: pod_diff::lines(&pod_diff::diff(&written(&from.fields), &written(&to.fields))),
            ways: ways(&Difference::between(&old, &new), set.update.resize),
            samples: samples(rollout, (&from.name, &old), (&to.name, &new)),
        })
    }

    fn text(&self, examples: usize) -> String {
        let title = |revision: &Revision| {
            let newest = if revision.name == self.newest { " (newest)" } else { "" };
            format!("{} {}{newest}", revision.number, revision.name)
        };
        let mut text = format!("SidecarSet {}: {} → {}\n\n", self.set, title(&self.from), title(&self.to));
        if self.changes.is_empty() {
            text.push_str("  no difference\n");
            return text;
        }
        for line in &self.changes {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {line}");
        }
        text.push_str("\n  pods that run\n");
        for (way, what) in &self.ways {
            let (word, _, means) = way.words();
            let _ = writeln!(text, "    {word:8}  {}", hanging(14, &format!("{}: {means}", what.join(", "))));
        }
        if let Some(conclusion) = self.conclusion() {
            text.push_str(&indented(4, conclusion));
        }
        let mut groups: Vec<(&Sample, usize, usize)> = Vec::new();
        for sample in &self.samples {
            let alike = groups.iter_mut().find(|(it, ..)| (&it.diff, &it.refusal) == (&sample.diff, &sample.refusal));
            match alike {
                Some((_, workloads, pods)) => {
                    *workloads += 1;
                    *pods += sample.pods;
                }
                None => groups.push((sample, 1, sample.pods)),
            }
        }
        for (sample, workloads, pods) in groups.iter().take(examples) {
            let more = if *workloads > 1 { format!(" and {} more", workloads - 1) } else { String::new() };
            let head = format!("{}{more}, {}, such as pod {}", sample.workload, plural(*pods, "pod"), sample.pod);
            let _ = write!(text, "\n{}", indented(2, &head));
            if let Some(refusal) = &sample.refusal {
                text.push_str(&indented(4, &format!("refused: {refusal}")));
            } else if sample.diff.is_empty() {
                text.push_str("    no difference\n");
            }
            for line in &sample.diff {
                let _ = writeln!(text, "    {line}");
            }
        }
        if groups.len() > examples {
            let _ = write!(text, "\n  and {} more that differ; --examples shows them\n", groups.len() - examples);
        }
        text
    }

    /// A pod follows as a whole.
    fn conclusion(&self) -> Option<&'static str> {
        let has = |way: Way| self.ways.iter().any(|(own, _)| *own == way);
        let other = has(Way::InPlace) || has(Way::Resize);
        (has(Way::Recreate) && other).then_some("a pod follows as a whole: with all of it, when it is created again")
    }

    /// The same. Fields may be added, and none changes its meaning.
    fn json(&self) -> Value {
        let revision =
            |it: &Revision| json!({"number": it.number, "name": it.name, "isNewest": it.name == self.newest});
        let ways = self.ways.iter().map(|(way, what)| (way.words().1.to_owned(), json!(what)));
        let samples = self.samples.iter().map(|sample| {
            json!({"workload": sample.workload, "pods": sample.pods, "pod": sample.pod, "diff": sample.diff,
                "refusal": sample.refusal})
        });
        json!({
            "set": self.set,
            "from": revision(&self.from),
            "to": revision(&self.to),
            "changes": self.changes,
            "runningPods": ways.collect::<Map<_, _>>(),
            "workloads": samples.collect::<Vec<_>>(),
        })
    }
}

/// The two revisions that are meant.
fn chosen<'a>(rollout: &'a Rollout, question: &Question) -> Result<(&'a Revision, &'a Revision), String> {
    let (set, revisions) = (&rollout.meaning, &rollout.revisions);
    let called = |word: &String| revisions.called(&set.name, word);
    let to = match &question.to {
        Some(word) => called(word)?,
        None => revisions.newest().ok_or_else(|| {
            format!(
                "revision {} is the newest of set {} and not stored yet: does the controller run?",
                set.revision, set.name
            )
        })?,
    };
    if let Some(word) = &question.from {
        return Ok((called(word)?, to));
    }
    let by_pods = counts(&set.name, &rollout.pods).into_iter().filter_map(|(name, count)| Some((count, name?)));
    let known = by_pods.filter_map(|(count, name)| Some((count, revisions.named(name)?)));
    let others = known.filter(|(_, revision)| revision.name != to.name);
    let most = others.max_by_key(|(count, revision)| (*count, revision.number)).map(|(_, revision)| revision);
    let from = most.or_else(|| revisions.previous()).ok_or_else(|| {
        format!("set {} has no other revision than {}: there is nothing to compare", set.name, to.name)
    })?;
    Ok((from, to))
}

/// What the user wrote; a field that is null was not written.
fn written(fields: &Map<String, Value>) -> Value {
    fields
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect::<Map<_, _>>()
        .into()
}

fn ways(difference: &Difference, may_resize: bool) -> Vec<(Way, Vec<String>)> {
    let of = |field: &str, places: &[Place]| {
        places.iter().map(|place| format!("{field} of container {}", place.name)).collect::<Vec<_>>()
    };
    let mut recreate = difference.recreate.clone();
    let mut resize = of("resources", &difference.resources);
    if !may_resize {
        recreate.extend(resize.drain(..).map(|words| format!("{words} (updateStrategy.resize is not true)")));
    }
    let all = [
        (Way::InPlace, of("image", &difference.images)),
        (Way::Resize, resize),
        (Way::Later, difference.later.clone()),
        (Way::Recreate, recreate),
    ];
    all.into_iter().filter(|(_, what)| !what.is_empty()).collect()
}

fn samples(rollout: &Rollout, old: (&str, &Template), new: (&str, &Template)) -> Vec<Sample> {
    let mut pods: BTreeMap<_, usize> = BTreeMap::new();
    for pod in &rollout.pods {
        *pods.entry(key(pod)).or_default() += 1;
    }
    let samples = rollout.samples.iter().map(|(workload, pod)| {
        let bare = bare(rollout, pod);
        let (before, after) = (decided(rollout, &bare, old), decided(rollout, &bare, new));
        let (diff, refusal) = match (before, after) {
            (Ok(before), Ok(after)) => (pod_diff::lines(&pod_diff::diff(&before, &after)), None),
            (Err(refusal), _) | (_, Err(refusal)) => (Vec::new(), Some(refusal)),
        };
        let (namespace, kind, name) = workload;
        Sample {
            workload: format!("{kind} {namespace}/{name}"),
            pods: pods.get(workload).copied().unwrap_or(0),
            pod: pod["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            diff,
            refusal,
        }
    });
    samples.collect()
}

fn key(pod: &Pod) -> (String, String, String) {
    let workload = pod.workload();
    (workload.namespace.to_owned(), workload.kind.to_owned(), workload.name.to_owned())
}

/// A pod as its workload would create it again.
fn bare(rollout: &Rollout, pod: &Value) -> Value {
    let own = pod["metadata"]["annotations"][REVISIONS].as_str().and_then(PodRevisions::parse);
    let own = own.and_then(|own| own.of(&rollout.meaning.name).map(|it| it.is.clone()));
    let own = own.and_then(|name| rollout.revisions.named(&name)?.template.clone());
    // What is to be taken out is what it was given, and not what the set gives now.
    let template = own.map_or_else(|| rollout.meaning.template.clone(), |own| (*own).clone());
    let had = Meaning { template, ..rollout.meaning.clone() };
    let given = &rollout.world.given;
    let known = |name: &str| if name == had.name { Some(&had) } else { given.sets.get(name).map(AsRef::as_ref) };
    let mut bare = uninjected(pod, known);
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
    let ranges: Vec<&LimitRange> = given.limit_ranges(namespace).collect();
    fill_in(&mut bare, namespace, &ranges);
    bare
}

/// The pod with a revision of the set, and all other sets as they stand; or why it would be refused.
fn decided(rollout: &Rollout, pod: &Value, (name, template): (&str, &Template)) -> Result<Value, String> {
    let given = &rollout.world.given;
    let namespace = given.namespace(pod["metadata"]["namespace"].as_str().unwrap_or_default());
    let labels = pod["metadata"]["labels"].as_object().into_iter().flatten();
    let labels: Vec<(&str, &str)> = labels.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect();
    let sets = given.sets.matching(&labels, &namespace);
    let candidates = sets.into_iter().map(|set| {
        if set.name == rollout.meaning.name {
            Candidate { choice: Choice::Revision { name, template }, ..Candidate::latest(set) }
        } else {
            Candidate::latest(set)
        }
    });
    // What the revisions do is what counts, not whether injection is on now.
    let (own_namespace, finish) = (Some(given.facts.namespace.as_str()), given.facts.finishing());
    let installation = Installation { own_namespace, finish, ..Installation::default() };
    let decision = inject(pod, &namespace, candidates, installation);
    if let Some(refusal) = decision.refusals().next() {
        return Err(format!("with {name}: {} [{}]", refusal.message, refusal.reason));
    }
    if let Some(refusal) = &decision.refusal {
        return Err(format!("with {name}: {} [{}]", refusal.message, refusal.reason));
    }
    let mut pod = decision.pod.clone().unwrap_or_else(|| pod.clone());
    let annotations = pod.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if let Some(annotations) = annotations {
        // They say which revision it is, which is known.
        annotations.remove(REVISIONS);
        annotations.remove(marks::DECISION);
    }
    Ok(pod)
}

#[cfg(test)]
mod tests;
