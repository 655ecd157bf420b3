//! The report as tables, as JSON and as CSV.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::tax::{By, DEFAULT_CONTAINER, Group, Kin, LEAST_WORKLOADS, Line, Pair, Sums, Tax, UNKNOWN_SET};
use crate::layout::{Column, hanging, table};
use crate::rollout::plural;
use crate::size::amount::{bytes, cores, cores_in_words, percent};

/// So many lines of each table are enough where all tables are shown.
const TOP: usize = 10;
/// In so many columns there is room to say where a container comes from.
const ROOMY: usize = 100;
const MILLI: i128 = 1_000_000;

/// First and last moment of the measurement.
type Span = (String, String);

/// How much of it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    /// In so many columns; of several tables the first lines.
    Columns(usize),
    /// All there is.
    Wide,
}

/// For people.
pub(super) fn text(tax: &Tax, span: Option<&Span>, by: Option<By>, detail: Detail) -> String {
    let mut sections = vec![headline(tax)];
    for one in by.map_or_else(|| vec![By::Set, By::Container, By::Namespace], |by| vec![by]) {
        let lines = tax.lines(one);
        if lines.is_empty() {
            continue;
        }
        let is_cut = by.is_none() && detail != Detail::Wide && lines.len() > TOP + 1;
        let shown = if is_cut { TOP } else { lines.len() };
        let mut text = lines_of(&lines[..shown], one, detail);
        if is_cut {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "and {} more: --by {} shows all", lines.len() - shown, flag(one));
        }
        sections.push(text);
    }
    sections.push(legend(tax, span));
    sections.join("\n")
}

fn lines_of(lines: &[Line], by: By, detail: Detail) -> String {
    let (room, is_wide) = match detail {
        Detail::Columns(room) => (room, false),
        Detail::Wide => (usize::MAX, true),
    };
    let has_origin = by == By::Container && room >= ROOMY;
    let mut columns = vec![Column::of_names(title(by))];
    if has_origin {
        columns.extend([Column::of_names("FROM"), Column::of_names("IMAGE")]);
    }
    if is_wide {
        columns.extend([Column::of_numbers("NAMESPACES"), Column::of_numbers("WORKLOADS")]);
    }
    columns.extend(NUMBERS);
    if is_wide {
        columns.push(Column::of_numbers("NOT MEASURED"));
    }
    let rows = lines.iter().map(|line| {
        let mut cells = vec![line.name.clone()];
        if has_origin {
            cells.extend([from(line), line.repository.as_deref().unwrap_or_default().to_owned()]);
        }
        if is_wide {
            cells.extend([line.namespaces.to_string(), line.sums.workloads.len().to_string()]);
        }
        cells.extend(numbers(&line.sums));
        if is_wide {
            cells.push((line.sums.containers - line.sums.measured).to_string());
        }
        cells
    });
    table(&columns, &rows.collect::<Vec<_>>(), room)
}

const NUMBERS: [Column; 7] = [
    Column::of_numbers("SIDECARS"),
    Column::of_numbers("CPU"),
    Column::of_numbers("USED"),
    Column::of_numbers("IDLE"),
    Column::of_numbers("MEMORY"),
    Column::of_numbers("USED"),
    Column::of_numbers("IDLE"),
];

fn numbers(sums: &Sums) -> [String; 7] {
    let used = |text: String| if sums.measured == 0 { "-".to_owned() } else { text };
    [
        sums.containers.to_string(),
        cores(sums.requested.cpu),
        used(cores(sums.used.cpu)),
        idle(sums, |pair| pair.cpu),
        bytes(sums.requested.memory),
        used(bytes(sums.used.memory)),
        idle(sums, |pair| pair.memory),
    ]
}

/// How much of what was asked for is not used; a line that uses more than it asks for has nothing idle.
fn idle(sums: &Sums, of: impl Fn(&Pair) -> i128) -> String {
    match percent(of(&sums.compared) - of(&sums.used), of(&sums.compared)) {
        Some(share) => format!("{} %", share.max(0)),
        None => "-".to_owned(),
    }
}

fn title(by: By) -> &'static str {
    match by {
        By::Set => "SIDECARSET",
        By::Container => "CONTAINER",
        By::Namespace => "NAMESPACE",
    }
}

fn flag(by: By) -> &'static str {
    match by {
        By::Set => "set",
        By::Container => "container",
        By::Namespace => "namespace",
    }
}

fn from(line: &Line) -> String {
    match &line.kin {
        Some(Kin::Set(set)) => format!("set {}", set.as_deref().unwrap_or(UNKNOWN_SET)),
        Some(Kin::Native) => "native".to_owned(),
        Some(Kin::Shared) => "shared".to_owned(),
        None => "several".to_owned(),
    }
}

/// What it comes to, in a few lines.
fn headline(tax: &Tax) -> String {
    let Tax { sidecars, all, pods, .. } = tax;
    let pods = plural(*pods, "pod");
    if sidecars.containers == 0 {
        return format!("no sidecar was found in {pods}\n");
    }
    let compared = |asked: String, used: String, of: &dyn Fn(&Pair) -> i128| {
        let (asked_for, in_use) = (of(&sidecars.compared), of(&sidecars.used));
        match percent(asked_for - in_use, asked_for) {
            _ if sidecars.measured == 0 => format!("{asked}, and nothing tells what they use"),
            None => format!("{asked} and use {used}"),
            Some(share) if share < 0 => format!("{asked} and use {used}: more than they ask for"),
            Some(share) => format!("{asked} and use {used}: {share} % is not used"),
        }
    };
    let cpu = cores_in_words(sidecars.compared_or_all().cpu);
    let memory = bytes(sidecars.compared_or_all().memory);
    let share = |part, whole| percent(part, whole).unwrap_or(0);
    format!(
        "sidecars ask for {}\nand for {}\nof all that {pods} ask for, sidecars take {} % of cpu and {} % of memory\n",
        compared(cpu, cores_in_words(sidecars.used.cpu), &|pair| pair.cpu),
        compared(format!("{memory} of memory"), bytes(sidecars.used.memory), &|pair| pair.memory),
        share(sidecars.requested.cpu, all.cpu),
        share(sidecars.requested.memory, all.memory),
    )
}

impl Sums {
    /// What is compared with what is used; where nothing was measured, all of it.
    fn compared_or_all(&self) -> Pair {
        if self.measured == 0 { self.requested } else { self.compared }
    }
}

/// What the words mean, and how sure the numbers are.
fn legend(tax: &Tax, span: Option<&Span>) -> String {
    let mut text = String::new();
    let mut note = |words: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "- {}", hanging(2, words));
    };
    note(&format!(
        "a sidecar: injected by a SidecarSet (set), an init container with restartPolicy Always (native), or beside the \
         main container under the same name and image repository in pods of at least {LEAST_WORKLOADS} workloads (shared)"
    ));
    note(&format!("the main container: named by annotation {DEFAULT_CONTAINER}, else the first that no set injected"));
    if let Some((first, last)) = span {
        let when = if first == last { first.clone() } else { format!("{first} to {last}") };
        note(&format!("used: one measurement of metrics-server, {when}; ask again at another time of the day"));
    }
    let Sums { containers, measured, .. } = &tax.sidecars;
    if *measured > 0 && measured < containers {
        let missing = containers - measured;
        note(&format!(
            "{} of {} not measured: asked for, but not in the comparison",
            missing,
            plural(*containers, "sidecar")
        ));
    }
    text
}

/// For programs. Fields may be added, and none changes its meaning.
pub(super) fn json(tax: &Tax, span: Option<&Span>) -> Value {
    let lines = |by| {
        let lines = tax.lines(by).into_iter().map(|line| {
            let mut shown = sums(&line.sums);
            shown["name"] = json!(line.name);
            shown["from"] = json!(from(&line));
            shown["image"] = json!(line.repository.as_deref());
            shown["namespaces"] = json!(line.namespaces);
            shown
        });
        lines.collect::<Vec<_>>()
    };
    json!({
        "headline": headline(tax).lines().collect::<Vec<_>>(),
        "pods": tax.pods,
        "measured": span.map(|(first, last)| json!({"from": first, "to": last})),
        "sidecars": sums(&tax.sidecars),
        "allContainers": pair(&tax.all),
        "sets": lines(By::Set),
        "containers": lines(By::Container),
        "namespaces": lines(By::Namespace),
    })
}

fn sums(sums: &Sums) -> Value {
    let used = (sums.measured > 0).then(|| pair(&sums.used));
    json!({
        "sidecars": sums.containers,
        "measured": sums.measured,
        "workloads": sums.workloads.len(),
        "requested": pair(&sums.requested),
        "requestedByMeasured": pair(&sums.compared),
        "used": used,
    })
}

fn pair(pair: &Pair) -> Value {
    json!({"cpuMillicores": millicores(pair), "memoryBytes": u64::try_from(pair.memory).unwrap_or(0)})
}

/// Half a millicore counts as a whole one.
fn millicores(pair: &Pair) -> u64 {
    u64::try_from((pair.cpu + MILLI / 2) / MILLI).unwrap_or(0)
}

/// For spreadsheets.
pub(super) fn csv(tax: &Tax, by: Option<By>) -> String {
    const NUMBERS: &str = "workloads,sidecars,measured,cpu_requested_millicores,cpu_requested_by_measured_millicores,\
                           cpu_used_millicores,memory_requested_bytes,memory_requested_by_measured_bytes,memory_used_bytes";
    let numbers = |sums: &Sums| {
        let Sums { containers, measured, requested, compared, used, workloads } = sums;
        let (cpu, memory) =
            ([requested, compared, used].map(millicores), [requested, compared, used].map(|it| it.memory));
        let numbers = [workloads.len(), *containers, *measured].map(|count| count.to_string());
        let amounts = cpu.map(|it| it.to_string()).into_iter().chain(memory.map(|it| it.to_string()));
        numbers.into_iter().chain(amounts).collect::<Vec<_>>().join(",")
    };
    let mut text = String::new();
    // Writing to a String cannot fail.
    match by {
        None => {
            let _ = writeln!(text, "from,set,container,image,namespace,{NUMBERS}");
            for (Group { kin, container, repository, namespace }, sums) in &tax.groups {
                let (from, set) = match kin {
                    Kin::Set(set) => ("set", set.as_deref().unwrap_or_default()),
                    Kin::Native => ("native", ""),
                    Kin::Shared => ("shared", ""),
                };
                let names = [from, set, container, repository, namespace].map(field).join(",");
                let _ = writeln!(text, "{names},{}", numbers(sums));
            }
        }
        Some(by) => {
            let _ = writeln!(text, "{},from,image,namespaces,{NUMBERS}", flag(by));
            for line in tax.lines(by) {
                let image = line.repository.as_deref().unwrap_or_default();
                let names = [&line.name, from(&line).as_str(), image].map(field).join(",");
                let _ = writeln!(text, "{names},{},{}", line.namespaces, numbers(&line.sums));
            }
        }
    }
    text
}

/// A field of a CSV file; names of Kubernetes need no quotes, but images are free text.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
