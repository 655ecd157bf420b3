//! The explanation for people.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use pillion_quantity::Resource;
use pillion_rightsize::{ContainerRecommendation, ContainerType, Explanation, Mode, ResourceExplanation};

use super::bars::Chart;
use super::steps::{rows, shown};
use super::subject::{Container, Subject};
use crate::layout::{Column, hanging, indented, table};
use crate::rollout::{age, plural};

/// What is published may lie so many hundredths beside what is explained: the recommender has newer samples.
const TOLERANCE: i64 = 1;

/// All of it, in so many columns.
pub(super) fn text(subject: &Subject, room: usize) -> String {
    let mut sections = vec![head(subject)];
    sections.extend(subject.containers.iter().map(|container| section(subject, container, room)));
    sections.join("\n")
}

fn head(subject: &Subject) -> String {
    let own = &subject.autoscaler;
    let target = &own.target;
    let mode = match own.own_mode {
        Some(mode) if own.mode == Mode::Off => format!("{mode:?} by annotation, Off for others"),
        _ => format!("{:?}", own.mode),
    };
    let words = format!(
        "VerticalPodAutoscaler {}/{}: {} {}, {}, mode {mode}, recommender {}",
        own.namespace,
        own.name,
        target.kind,
        target.name,
        plural(subject.pods, "pod"),
        own.recommender
    );
    let mut text = indented(0, &words);
    // That there is a recommendation is seen below.
    for condition in subject
        .conditions
        .iter()
        .filter(|it| (it.kind.as_str(), it.status.as_str()) != ("RecommendationProvided", "True"))
    {
        let said = condition.message.as_deref().or(condition.reason.as_deref()).unwrap_or_default();
        text.push_str(&indented(2, &format!("{} is {}: {said}", condition.kind, condition.status)));
    }
    if subject.containers.is_empty() {
        text.push_str("  nothing is known of any container: no pod, no checkpoint, no recommendation\n");
    }
    text
}

fn section(subject: &Subject, container: &Container, room: usize) -> String {
    let kind = match container.kind {
        ContainerType::App => "container",
        ContainerType::NativeSidecar => "native sidecar",
    };
    let mut text = format!("{kind} {}", container.name);
    if !container.is_running && subject.pods > 0 {
        text.push_str(" (no pod has it any more)");
    }
    text.push('\n');
    match &container.learned {
        Err(why) => {
            text.push_str(&indented(2, why));
            if let Some(published) = &container.published {
                text.push_str(&indented(2, &format!("published: {}", amounts(published))));
            }
        }
        Ok(explanation) => {
            text.push_str(&history(subject, container, explanation));
            for resource in [&explanation.cpu, &explanation.memory] {
                text.push('\n');
                text.push_str(&numbers(container, resource, room));
            }
        }
    }
    text
}

/// Which samples, and how much old ones count.
fn history(subject: &Subject, container: &Container, explanation: &Explanation) -> String {
    let mut words = match explanation.span {
        None => "no sample of cpu yet".to_owned(),
        Some((first, last)) => format!(
            "{} of cpu from {} to {}",
            plural(usize::try_from(explanation.samples).unwrap_or(usize::MAX), "sample"),
            minute(first),
            minute(last)
        ),
    };
    // Writing to a String cannot fail.
    let _ = write!(
        words,
        "; one counts half after {}, and of memory only the peak of each {} counts",
        hours(subject.settings.cpu_half_life),
        hours(subject.settings.memory_interval)
    );
    if let Some(written) = container.written {
        let _ = write!(words, "; kept {} ago", age(subject.now.duration_since(written)));
    }
    if let Some(why) = &explanation.not_served {
        let _ = write!(words, "; not recommended for: {why}");
    }
    for oom in &container.ooms {
        let _ = write!(words, "; pod {} ran out of memory {}", oom.pod, oom.at);
    }
    format!("  {}\n", hanging(2, &words))
}

fn numbers(container: &Container, explanation: &ResourceExplanation, room: usize) -> String {
    let resource = explanation.resource;
    let title = match resource {
        Resource::Cpu => "  CPU",
        Resource::Memory => "  MEMORY",
    };
    if let Some(why) = &explanation.absent {
        return format!("{title}  {why}\n");
    }
    let columns = [
        Column::of_names(title),
        Column::of_numbers("LOWER"),
        Column::of_numbers("TARGET"),
        Column::of_numbers("UPPER"),
    ];
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut before: [Option<i64>; 3] = [None; 3];
    for row in rows(explanation) {
        let mut cells = vec![format!("  {}", row.words)];
        for (amount, last) in row.amounts.iter().zip(&mut before) {
            // What a step does not change is not said again.
            cells.push(match amount {
                Some(amount) if *last == Some(*amount) => "=".to_owned(),
                Some(amount) => shown(resource, *amount),
                None => String::new(),
            });
            *last = amount.or(*last);
        }
        lines.push(cells);
    }
    let published = container.published.as_ref();
    let published = published.map(|own| [own.lower, own.target, own.upper].map(|amounts| amounts.get(resource)));
    if let Some(published) = published {
        let cell = |amount: Option<i64>| amount.map_or_else(|| "-".to_owned(), |amount| shown(resource, amount));
        lines.push([vec!["  published".to_owned()], published.map(cell).to_vec()].concat());
    }
    let mut text = table(&columns, &lines, room);
    if published.is_some_and(|published| differ(published[1], before[1])) {
        text.push_str(&indented(
            2,
            "what is published is not what follows from the checkpoint: the recommender has newer samples, or other settings than the defaults",
        ));
    }
    if let Some(chart) = Chart::new(container, explanation) {
        let _ = write!(text, "\n{}", chart.lines(room));
    }
    text
}

fn differ(one: Option<i64>, other: Option<i64>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            let far = (i128::from(one) - i128::from(other)).abs() * 100;
            far > i128::from(TOLERANCE) * i128::from(one.max(other))
        }
        (one, other) => one != other,
    }
}

fn amounts(published: &ContainerRecommendation) -> String {
    let target = published.target.iter().map(|(resource, amount)| format!("{resource} {}", shown(resource, amount)));
    target.collect::<Vec<_>>().join(", ")
}

fn minute(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M").to_string()
}

fn hours(duration: Duration) -> String {
    match duration.as_secs() {
        seconds if seconds % 3600 == 0 => format!("{}h", seconds / 3600),
        seconds if seconds % 60 == 0 => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}
