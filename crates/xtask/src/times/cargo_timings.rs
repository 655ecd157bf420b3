//! The report of `cargo --timings`: an HTML page that holds its data as JSON.

use anyhow::Context;
use serde::Deserialize;

/// A unit of work of cargo: a crate in one mode.
#[derive(Deserialize)]
struct Unit {
    name: String,
    /// Library or not, and whether it is a test: ` bed "bin" (test)`, ` (check)`, ` build-script (run)`.
    target: String,
    duration: f64,
}

/// Every unit that was built, as `crate target (profile)`, with its seconds. Linking is part of a binary's or a test's time.
pub fn parse(report: &str) -> anyhow::Result<Vec<(String, f64)>> {
    let profile = between(report, "<td>Profile:</td><td>", "</td>").context("no profile in the report of cargo")?;
    let data = between(report, "const UNIT_DATA = ", "];").context("no units in the report of cargo")?;
    let units: Vec<Unit> = serde_json::from_str(&format!("{data}]")).context("the units are not JSON")?;
    Ok(units.into_iter().map(|unit| (name(&unit, profile), unit.duration)).collect())
}

fn name(unit: &Unit, profile: &str) -> String {
    let target = unit.target.trim().replace('"', "");
    let target = if target.is_empty() { "lib".to_owned() } else { target };
    format!("{} {target} ({profile})", unit.name)
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    Some(text.split_once(before)?.1.split_once(after)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"<tr>
    <td>Profile:</td><td>dev</td>
  </tr>
<script>
const UNIT_DATA = [
  {"i": 0, "name": "serde", "version": "1.0.0", "mode": "todo", "target": "", "features": [], "start": 0.4,
   "duration": 1.25, "unblocked_units": [], "unblocked_rmeta_units": [], "sections": null},
  {"i": 1, "name": "pillion-cli", "version": "0.1.0", "mode": "todo", "target": " pillion \"bin\"", "features": [],
   "start": 0.4, "duration": 20.0, "unblocked_units": [], "unblocked_rmeta_units": [], "sections": null}
];
const CONCURRENCY_DATA = [];
"#;

    #[test]
    fn units_have_their_crate_target_and_profile() {
        assert_eq!(
            parse(REPORT).unwrap(),
            [("serde lib (dev)".to_owned(), 1.25), ("pillion-cli pillion bin (dev)".to_owned(), 20.0)]
        );
    }

    #[test]
    fn a_report_of_another_shape_is_an_error() {
        assert_eq!(parse("<html>").unwrap_err().to_string(), "no profile in the report of cargo");
        let without = REPORT.replace("UNIT_DATA", "UNITS");
        assert_eq!(parse(&without).unwrap_err().to_string(), "no units in the report of cargo");
    }
}
