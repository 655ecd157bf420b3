//! The explanation as a picture: one SVG file without scripts, fonts or links. Each container has a panel for cpu and one
//! for memory.

use std::fmt::Write as _;

use pillion_expr::Ratio;
use pillion_quantity::Resource;

use super::bars::{Chart, Mark, MarkKind, amount, whole};
use super::subject::Subject;
use crate::drawing::{Scale, escaped, pixels, position};

const WIDTH: i128 = 860;
const LEFT: i128 = 56;
const RIGHT: i128 = WIDTH - 32;
const TITLE: i128 = 64;
/// Height of a panel with all its words.
const PANEL: i128 = 330;
/// Where bars begin and end in it. Above are the words of marks, a line for each.
const TOP: i128 = 150;
const BOTTOM: i128 = PANEL - 60;
const LINE: i128 = 16;
const LINES: i128 = 6;

/// The whole file.
pub(super) fn draw(subject: &Subject) -> String {
    let charts: Vec<(&str, Chart)> = subject
        .containers
        .iter()
        .filter_map(|container| Some((container, container.learned.as_ref().ok()?)))
        .flat_map(|(container, learned)| {
            [&learned.cpu, &learned.memory]
                .into_iter()
                .filter_map(|resource| Some((container.name.as_str(), Chart::new(container, resource)?)))
        })
        .collect();
    let height = TITLE + PANEL * i128::try_from(charts.len().max(1)).unwrap_or(1);
    let title = format!("VerticalPodAutoscaler {}/{}", subject.autoscaler.namespace, subject.autoscaler.name);
    let title = escaped(&title);
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif" font-size="13">
<title>{title}</title>
<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>
<text x="{LEFT}" y="30" font-size="17" font-weight="600" fill="#1a1a1a">{title}</text>
<text x="{LEFT}" y="50" fill="#444444">what was used, older samples counting less, and what is asked for and recommended</text>
"##
    );
    if charts.is_empty() {
        let y = TITLE + LINE;
        let _ = writeln!(svg, r##"<text x="{LEFT}" y="{y}" fill="#1a1a1a">no samples are kept yet</text>"##);
    }
    for (at, (container, chart)) in charts.iter().enumerate() {
        let top = TITLE + PANEL * i128::try_from(at).unwrap_or(0);
        let _ = writeln!(svg, r#"<g transform="translate(0 {top})">"#);
        panel(container, chart, &mut svg);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

fn panel(container: &str, chart: &Chart, svg: &mut String) {
    let Some(scale) = chart.scale() else { return };
    let resource = chart.resource;
    let unit = match resource {
        Resource::Cpu => "cpu, in cores: samples",
        Resource::Memory => "memory: peaks of a day",
    };
    let _ = writeln!(
        svg,
        r##"<text x="{LEFT}" y="24" font-size="15" font-weight="600" fill="#1a1a1a">{}: {resource}</text>"##,
        escaped(container)
    );
    for tick in scale.ticks() {
        let x = across(&scale, tick);
        let _ = writeln!(svg, r##"<line x1="{x}" y1="{TOP}" x2="{x}" y2="{BOTTOM}" stroke="#f0f0f0"/>"##);
        let label = tick.human(resource);
        let _ =
            writeln!(svg, r##"<text x="{x}" y="{BOTTOM}" dy="18" text-anchor="middle" fill="#444444">{label}</text>"##);
    }
    draw_bars(chart, &scale, svg);
    let _ = writeln!(svg, r##"<line x1="{LEFT}" y1="{BOTTOM}" x2="{RIGHT}" y2="{BOTTOM}" stroke="#888888"/>"##);
    let middle = i128::midpoint(LEFT, RIGHT);
    let _ =
        writeln!(svg, r##"<text x="{middle}" y="{BOTTOM}" dy="38" text-anchor="middle" fill="#444444">{unit}</text>"##);
    for (line, mark) in (0..).zip(&chart.marks) {
        draw_mark(chart, &scale, mark, line % LINES, svg);
    }
    for (line, mark) in (0..).zip(&chart.beyond) {
        let y = 24 + LINE * line;
        let _ = writeln!(
            svg,
            r##"<text x="{RIGHT}" y="{y}" text-anchor="end" fill="#444444">{} →</text>"##,
            escaped(&mark.words)
        );
    }
}

/// Areas are compared, so a wide bar of the same part is lower.
fn draw_bars(chart: &Chart, scale: &Scale, svg: &mut String) {
    let density = |part: f64, from: f64, to: f64| if to > from { part / (to - from) } else { 0.0 };
    let highest = chart.bars.iter().map(|bar| density(bar.part, bar.from, bar.to)).fold(0.0, f64::max);
    for bar in &chart.bars {
        let ends = [bar.from, bar.to].map(|end| amount(chart.resource, whole(end)).unwrap_or(Ratio::ZERO));
        let [left, right] = ends.map(|end| position(scale, end, LEFT, RIGHT));
        let share = if highest > 0.0 { density(bar.part, bar.from, bar.to) / highest } else { 0.0 };
        // What is there at all is seen.
        let height = whole(share * 100.0).max(1);
        let height = Ratio::new(i128::from(height) * (BOTTOM - TOP), 100).unwrap_or(Ratio::ONE);
        let top = Ratio::whole(BOTTOM).checked_sub(height).unwrap_or(Ratio::whole(TOP));
        let width = right.checked_sub(left).unwrap_or(Ratio::ONE);
        let _ = writeln!(
            svg,
            r##"<rect x="{}" y="{}" width="{}" height="{}" fill="#0b62a8" fill-opacity="0.55" stroke="#ffffff" stroke-width="0.5"><title>{:.1} %</title></rect>"##,
            pixels(left),
            pixels(top),
            pixels(width),
            pixels(height),
            bar.part * 100.0
        );
    }
}

fn draw_mark(chart: &Chart, scale: &Scale, mark: &Mark, line: i128, svg: &mut String) {
    let Some(at) = amount(chart.resource, mark.at) else { return };
    let (colour, dashes, width) = match mark.kind {
        MarkKind::Percentile => ("#6b6b6b", "2 3", "1"),
        MarkKind::Request => ("#1a1a1a", "", "2"),
        MarkKind::Target => ("#b8500c", "", "2.5"),
        MarkKind::Bound => ("#b8500c", "6 4", "1.5"),
        MarkKind::Oom => ("#b3261e", "1 2", "2.5"),
    };
    let x = across(scale, at);
    let y = TOP - 12 - LINE * (LINES - 1 - line);
    let _ = writeln!(
        svg,
        r#"<line x1="{x}" y1="{y}" x2="{x}" y2="{BOTTOM}" stroke="{colour}" stroke-width="{width}" stroke-dasharray="{dashes}"/>"#
    );
    if mark.kind == MarkKind::Oom {
        let _ = writeln!(svg, r#"<circle cx="{x}" cy="{BOTTOM}" r="5" fill="{colour}"/>"#);
    }
    let is_right = position(scale, at, LEFT, RIGHT) > Ratio::whole(LEFT + (RIGHT - LEFT) * 2 / 3);
    let (anchor, shift) = if is_right { ("end", -5) } else { ("start", 5) };
    let words = escaped(&mark.words);
    let _ = writeln!(
        svg,
        r##"<text x="{x}" y="{y}" dx="{shift}" dy="4" text-anchor="{anchor}" fill="{colour}" stroke="#ffffff" stroke-width="4" paint-order="stroke">{words}</text>"##
    );
}

fn across(scale: &Scale, value: Ratio) -> String {
    pixels(position(scale, value, LEFT, RIGHT))
}
