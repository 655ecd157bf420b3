//! The curve in characters.

use std::fmt::Write as _;

use pillion_expr::Ratio;

use super::Picture;
use super::braille::Canvas;

const ROWS: usize = 12;
/// Every how many dots a dot of a knee's line stands.
const DOTTED: usize = 3;

/// The picture in at most `columns` columns, with scales.
pub(super) fn draw(picture: &Picture<'_>, columns: usize) -> String {
    let resource = picture.program.field().resource;
    let labels = row_labels(picture);
    let margin = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let mut canvas = Canvas::new(columns.saturating_sub(margin + 2).max(10), ROWS);
    draw_knees(picture, &mut canvas);
    draw_curve(picture, &mut canvas);

    let mut text = format!("{} as a function of {resource}\n", picture.program.field());
    for (label, row) in labels.iter().zip(canvas.rows()) {
        let _ = writeln!(text, "{}", format!("{label:>margin$} │{row}").trim_end());
    }
    let width = canvas.width() / 2;
    let _ = writeln!(text, "{:>margin$} └{}", "", "─".repeat(width));
    let _ = writeln!(text, "{:>margin$}  {}", "", column_labels(picture, width));
    text
}

/// The label of each row from the top: a tick where one falls into the row.
fn row_labels(picture: &Picture<'_>) -> Vec<String> {
    let resource = picture.program.field().resource;
    let mut labels = vec![String::new(); ROWS];
    for tick in picture.vertical.ticks() {
        let row = picture.vertical.place(tick, ROWS * 4).map(|dot| ROWS - 1 - dot / 4);
        if let Some(label) = row.and_then(|row| labels.get_mut(row)) {
            *label = tick.human(resource);
        }
    }
    labels
}

/// The ends, and the knees where there is room between what is there already.
fn column_labels(picture: &Picture<'_>, width: usize) -> String {
    let scale = &picture.horizontal;
    let resource = picture.program.field().resource;
    let mut line: Vec<char> = vec![' '; width];
    let knees = picture.knees().into_iter().map(|(at, _)| at);
    for at in [scale.low, scale.high].into_iter().chain(knees).chain(scale.ticks()) {
        let label: Vec<char> = at.human(resource).chars().collect();
        let Some(middle) = scale.place(at, width) else { continue };
        let start = middle.saturating_sub(label.len() / 2).min(width.saturating_sub(label.len()));
        let around = start.saturating_sub(1)..(start + label.len() + 1).min(width);
        if label.len() <= width && line[around].iter().all(|place| *place == ' ') {
            line[start..start + label.len()].copy_from_slice(&label);
        }
    }
    line.into_iter().collect::<String>().trim_end().to_owned()
}

fn draw_knees(picture: &Picture<'_>, canvas: &mut Canvas) {
    for (at, _) in picture.knees() {
        if let Some(x) = picture.horizontal.place(at, canvas.width()) {
            for y in (0..canvas.height()).step_by(DOTTED) {
                canvas.set(x, y);
            }
        }
    }
}

fn draw_curve(picture: &Picture<'_>, canvas: &mut Canvas) {
    let (width, height) = (canvas.width(), canvas.height());
    let dot = |x: usize| -> Option<usize> {
        let amount: Ratio = picture.horizontal.value(x, width)?;
        picture.vertical.place(picture.value_at(amount)?, height)
    };
    let mut last = None;
    for x in 0..width {
        let Some(y) = dot(x) else { continue };
        // Where the curve is steep, the dots between two columns are set too.
        let from = last.map_or(y, |last: usize| if last < y { last + 1 } else { y });
        let to = last.map_or(y, |last: usize| if last > y { last - 1 } else { y });
        for between in from.min(y)..=to.max(y) {
            canvas.set(x, between);
        }
        last = Some(y);
    }
}
