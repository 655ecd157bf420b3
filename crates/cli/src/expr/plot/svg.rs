//! The curve as a picture: one SVG file without scripts, fonts or links.

use std::fmt::Write as _;

use pillion_expr::Ratio;

use super::Picture;
use crate::drawing::{escaped, pixels, position};

const WIDTH: i128 = 760;
const HEIGHT: i128 = 440;
const LEFT: i128 = 72;
const RIGHT: i128 = WIDTH - 32;
const TOP: i128 = 56;
const BOTTOM: i128 = HEIGHT - 64;
/// Characters of the expression that fit above the curve.
const CAPTION: usize = 80;

/// The whole file.
pub(super) fn draw(picture: &Picture<'_>) -> String {
    let program = picture.program;
    let resource = program.field().resource;
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="system-ui, sans-serif" font-size="13">
<title>{field} = {source}</title>
<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>
<text x="{LEFT}" y="24" font-size="15" font-weight="600" fill="#1a1a1a">{field}</text>
<text x="{LEFT}" y="43" font-family="ui-monospace, monospace" fill="#444444">{caption}</text>
"##,
        field = program.field(),
        source = escaped(program.source()),
        caption = escaped(&caption(program.source())),
    );
    draw_scales(picture, &mut svg);
    draw_negative(picture, &mut svg);
    let corners = picture.corners();
    let points: Vec<String> = corners.iter().map(|corner| point(picture, *corner)).collect();
    let _ = writeln!(
        svg,
        r##"<polyline points="{}" fill="none" stroke="#0b62a8" stroke-width="2.5" stroke-linejoin="round"/>"##,
        points.join(" ")
    );
    draw_slopes(picture, &corners, &mut svg);
    for (at, value) in picture.knees() {
        let (x, y) = (across(picture, at), down(picture, value));
        let words = format!("{} → {}", at.human(resource), value.human(resource));
        let _ = writeln!(
            svg,
            r##"<circle cx="{x}" cy="{y}" r="4.5" fill="#ffffff" stroke="#0b62a8" stroke-width="2.5"/>"##
        );
        let _ = writeln!(svg, r##"<text x="{x}" y="{y}" dx="10" dy="18" fill="#1a1a1a">{words}</text>"##);
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_scales(picture: &Picture<'_>, svg: &mut String) {
    let field = picture.program.field();
    let resource = field.resource;
    for tick in picture.vertical.ticks() {
        let y = down(picture, tick);
        let colour = if tick == Ratio::ZERO { "#888888" } else { "#e2e2e2" };
        let _ = writeln!(svg, r#"<line x1="{LEFT}" y1="{y}" x2="{RIGHT}" y2="{y}" stroke="{colour}"/>"#);
        let label = tick.human(resource);
        let _ = writeln!(
            svg,
            r##"<text x="{LEFT}" y="{y}" dx="-8" dy="4" text-anchor="end" fill="#444444">{label}</text>"##
        );
    }
    for tick in picture.horizontal.ticks() {
        let x = across(picture, tick);
        let _ = writeln!(svg, r##"<line x1="{x}" y1="{TOP}" x2="{x}" y2="{BOTTOM}" stroke="#f0f0f0"/>"##);
        let label = tick.human(resource);
        let _ =
            writeln!(svg, r##"<text x="{x}" y="{BOTTOM}" dy="20" text-anchor="middle" fill="#444444">{label}</text>"##);
    }
    let middle = i128::midpoint(LEFT, RIGHT);
    let _ = writeln!(
        svg,
        r##"<text x="{middle}" y="{HEIGHT}" dy="-16" text-anchor="middle" fill="#444444">{side} of the pod's containers, {resource}</text>"##,
        side = field.side,
    );
}

/// A veil over the amounts for which pods are refused.
fn draw_negative(picture: &Picture<'_>, svg: &mut String) {
    let scale = &picture.horizontal;
    for interval in picture.program.analysis().negative() {
        let from = interval.from.max(scale.low);
        let to = interval.to.unwrap_or(scale.high).min(scale.high);
        if from >= to {
            continue;
        }
        let (left, right) = (position(scale, from, LEFT, RIGHT), position(scale, to, LEFT, RIGHT));
        let width = right.checked_sub(left).unwrap_or(Ratio::ZERO);
        let _ = writeln!(
            svg,
            r##"<rect x="{}" y="{TOP}" width="{}" height="{}" fill="#b3261e" fill-opacity="0.12"><title>negative: pods are refused</title></rect>"##,
            pixels(left),
            pixels(width),
            BOTTOM - TOP
        );
    }
}

fn draw_slopes(picture: &Picture<'_>, corners: &[(Ratio, Ratio)], svg: &mut String) {
    let slopes = picture.program.analysis();
    for [from, to] in corners.array_windows() {
        let half = Ratio::new(1, 2);
        let middle = from.0.checked_add(to.0).zip(half).and_then(|(sum, half)| sum.checked_mul(half));
        let Some((x, y)) = middle.and_then(|middle| Some((middle, picture.value_at(middle)?))) else { continue };
        let Some(segment) = slopes.segments().find(|segment| segment.to.is_none_or(|end| x < end)) else { continue };
        let _ = writeln!(
            svg,
            r##"<text x="{}" y="{}" dy="-10" text-anchor="end" fill="#0b62a8">slope {}</text>"##,
            across(picture, x),
            down(picture, y),
            segment.slope
        );
    }
}

fn point(picture: &Picture<'_>, (x, y): (Ratio, Ratio)) -> String {
    format!("{},{}", across(picture, x), down(picture, y))
}

fn across(picture: &Picture<'_>, x: Ratio) -> String {
    pixels(position(&picture.horizontal, x, LEFT, RIGHT))
}

fn down(picture: &Picture<'_>, y: Ratio) -> String {
    pixels(position(&picture.vertical, y, BOTTOM, TOP))
}

fn caption(source: &str) -> String {
    let shown: String = source.chars().take(CAPTION).collect();
    if shown.len() < source.len() { format!("{shown}…") } else { shown }
}
