//! What was used, as bars, and what is marked on them. The terminal and the picture draw the same.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use pillion_expr::Ratio;
use pillion_quantity::Resource;
use pillion_rightsize::{Bar, ResourceExplanation, Step, Taken};

use super::steps::shown;
use super::subject::Container;
use crate::drawing::Scale;
use crate::rollout::plural;

/// What the bars of a terminal leave for their numbers and marks.
const BESIDE: usize = 52;
const NARROWEST: usize = 16;
const WIDEST: usize = 60;
/// Before the words of marks.
const ARROW: &str = "  ◄ ";
/// So many different requests are marked.
const REQUESTS: usize = 3;
/// A mark that is so many times as far as all others is not worth a picture that shows nothing else.
const FAR: i64 = 2;

/// Something to be seen beside what was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Millicores or bytes.
    pub(super) at: i64,
    pub(super) kind: MarkKind,
    pub(super) words: String,
}

/// What is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkKind {
    /// What part of the samples is below.
    Percentile,
    /// What pods ask for.
    Request,
    /// What they should ask for.
    Target,
    /// A pod outside is changed.
    Bound,
    /// A container ran out of memory.
    Oom,
}

/// Bars and marks on one scale that begins at zero.
#[derive(Debug)]
pub(super) struct Chart {
    pub(super) resource: Resource,
    pub(super) bars: Vec<Bar>,
    /// Those on the scale, from low to high.
    pub(super) marks: Vec<Mark>,
    /// Those beyond its end.
    pub(super) beyond: Vec<Mark>,
    /// The end of the scale, in millicores or bytes.
    pub(super) end: i64,
}

impl Chart {
    /// `None` where nothing was used.
    pub(super) fn new(container: &Container, explanation: &ResourceExplanation) -> Option<Self> {
        let resource = explanation.resource;
        let bars = explanation.bars.clone();
        let used = whole(bars.last()?.to);
        let mut marks = marks(container, explanation);
        marks.sort_by_key(|mark| mark.at);
        let near = |mark: &&Mark| matches!(mark.kind, MarkKind::Request | MarkKind::Target | MarkKind::Oom);
        let needed = marks.iter().filter(near).map(|mark| mark.at).max().unwrap_or(0).max(used);
        let most = if needed > FAR.saturating_mul(4).saturating_mul(used) { used.saturating_mul(FAR) } else { needed };
        let far = marks.iter().map(|mark| mark.at).filter(|at| *at <= most.saturating_mul(FAR));
        let end = far.max().unwrap_or(0).max(most);
        let (on, beyond) = marks.into_iter().partition(|mark| mark.at <= end);
        Some(Self { resource, bars, marks: on, beyond, end })
    }

    /// The scale, in cores or bytes, with its end moved out to a whole step.
    pub(super) fn scale(&self) -> Option<Scale> {
        Scale::rounded(Ratio::ZERO, amount(self.resource, self.end)?, self.resource)
    }

    /// How much of what was used is between two amounts; a bar that is cut counts in part.
    fn share(&self, from: f64, to: f64) -> f64 {
        let inside = |bar: &Bar| {
            let overlap = (bar.to.min(to) - bar.from.max(from)).max(0.0);
            if bar.to > bar.from { bar.part * overlap / (bar.to - bar.from) } else { 0.0 }
        };
        self.bars.iter().map(inside).sum()
    }

    /// In characters.
    pub(super) fn lines(&self, room: usize) -> String {
        let Some(scale) = self.scale() else { return String::new() };
        let ticks = scale.ticks();
        // Two rows for a step: where it begins, and its middle.
        let middle =
            |one: &Ratio, next: &Ratio| one.checked_add(*next).and_then(|sum| sum.checked_mul(Ratio::new(1, 2)?));
        let mut edges: Vec<Ratio> = Vec::new();
        for [one, next] in ticks.array_windows() {
            edges.push(*one);
            edges.extend(middle(one, next));
        }
        edges.extend(ticks.last());
        let edges: Vec<i64> = edges.iter().filter_map(|edge| own_unit(self.resource, *edge)).collect();
        let rows: Vec<(i64, i64, f64)> =
            edges.array_windows().map(|[from, to]| (*from, *to, self.share(float(*from), float(*to)))).collect();
        let width = room.saturating_sub(BESIDE).clamp(NARROWEST, WIDEST);
        let highest = rows.iter().map(|(_, _, share)| *share).fold(0.0, f64::max);
        let label = edges.iter().map(|edge| shown(self.resource, *edge).chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for (from, to, share) in &rows {
            let is_last = Some(to) == edges.last();
            let here = self.marks.iter().filter(|mark| mark.at >= *from && (mark.at < *to || is_last));
            let here: Vec<&str> = here.map(|mark| mark.words.as_str()).collect();
            let part = if *share > 0.0 { format!("{:.0} %", (share * 100.0).max(1.0)) } else { String::new() };
            let bar = bar(*share, highest, width);
            let from = shown(self.resource, *from);
            let line = format!("  {from:>label$} ┤{bar:width$} {part:>5}");
            let mut said = joined(&here, room.saturating_sub(line.chars().count() + ARROW.chars().count())).into_iter();
            let first = said.next().map(|words| format!("{ARROW}{words}")).unwrap_or_default();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{}", format!("{line}{first}").trim_end());
            let indent = line.chars().count() + ARROW.chars().count();
            for words in said {
                let _ = writeln!(text, "{:indent$}{words}", "");
            }
        }
        for mark in &self.beyond {
            let _ = writeln!(text, "  {:>label$}  beyond: {}", "", mark.words);
        }
        text
    }
}

/// Words in lines of so many columns, at least one in each.
fn joined(words: &[&str], room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 2 + word.chars().count() <= room => {
                line.push_str(", ");
                line.push_str(word);
            }
            _ => lines.push((*word).to_owned()),
        }
    }
    lines
}

/// A bar in eighths of a character; what is there at all is seen.
fn bar(share: f64, highest: f64, width: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    if share <= 0.0 || highest <= 0.0 {
        return String::new();
    }
    let eighths = usize::try_from(whole(share / highest * float(8 * i64::try_from(width).unwrap_or(0)))).unwrap_or(0);
    let eighths = eighths.max(1);
    let mut bar = "█".repeat(eighths / 8);
    if eighths % 8 > 0 {
        bar.push(EIGHTHS[eighths % 8]);
    }
    bar
}

fn marks(container: &Container, explanation: &ResourceExplanation) -> Vec<Mark> {
    let resource = explanation.resource;
    let mark = |at: i64, kind, words: &str| Mark { at, kind, words: format!("{words} {}", shown(resource, at)) };
    let percentile = |way: &[Taken]| {
        way.iter().find_map(|taken| match taken.step {
            Step::Percentile { part } => {
                Some(mark(taken.amount, MarkKind::Percentile, &format!("p{:.0}", part * 100.0)))
            }
            _ => None,
        })
    };
    let ways = [&explanation.lower, &explanation.target, &explanation.upper];
    let mut marks: Vec<Mark> = ways.into_iter().filter_map(|way| percentile(way)).collect();
    let bounds = [("lower", MarkKind::Bound), ("target", MarkKind::Target), ("upper", MarkKind::Bound)];
    for (way, (words, kind)) in ways.into_iter().zip(bounds) {
        marks.extend(ResourceExplanation::amount(way).map(|at| mark(at, kind, words)));
    }
    for (at, pods) in container.requests(resource).into_iter().take(REQUESTS) {
        let words = format!("request {} ({})", shown(resource, at), plural(pods, "pod"));
        marks.push(Mark { at, kind: MarkKind::Request, words });
    }
    if resource == Resource::Memory {
        // One that was ended again and again stands there once.
        let ooms: BTreeSet<i64> = container.ooms.iter().filter_map(|oom| oom.memory).collect();
        marks.extend(ooms.into_iter().map(|at| mark(at, MarkKind::Oom, "OOM at")));
    }
    marks
}

/// Millicores or bytes as cores or bytes.
pub(super) fn amount(resource: Resource, own: i64) -> Option<Ratio> {
    match resource {
        Resource::Cpu => Ratio::new(own.into(), 1000),
        Resource::Memory => Some(Ratio::whole(own.into())),
    }
}

/// Cores or bytes as millicores or bytes.
fn own_unit(resource: Resource, amount: Ratio) -> Option<i64> {
    match resource {
        Resource::Cpu => i64::try_from(amount.checked_mul(Ratio::whole(1000))?.floor()).ok(),
        Resource::Memory => i64::try_from(amount.floor()).ok(),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "what is too large for it is drawn at its end")]
pub(super) fn whole(value: f64) -> i64 {
    value.round() as i64
}

#[expect(clippy::cast_precision_loss, reason = "a picture has fewer pixels")]
pub(super) fn float(value: i64) -> f64 {
    value as f64
}
