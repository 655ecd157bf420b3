//! What pictures share: scales that people can read, and the numbers and words of SVG.

use pillion_expr::Ratio;

mod scale;

pub(crate) use scale::{Scale, ends};

/// Where a value of the scale lies between two pixels; the first for the low end.
pub(crate) fn position(scale: &Scale, value: Ratio, low: i128, high: i128) -> Ratio {
    let share = || value.checked_sub(scale.low)?.checked_div(scale.high.checked_sub(scale.low)?);
    let place = share().and_then(|share| share.checked_mul(Ratio::whole(high - low))?.checked_add(Ratio::whole(low)));
    place.unwrap_or(Ratio::whole(low))
}

/// A coordinate with two digits.
pub(crate) fn pixels(place: Ratio) -> String {
    let hundredths = place.checked_mul(Ratio::whole(100)).map_or(0, Ratio::floor);
    let sign = if hundredths < 0 { "-" } else { "" };
    let (whole, rest) = (hundredths.abs() / 100, hundredths.abs() % 100);
    if rest == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{rest:02}") }
}

/// Text as SVG has it.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
