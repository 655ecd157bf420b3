//! Feature gates: the caller declares a table, a flag such as `Canary=true,Fitting=false` overrides its defaults.

use std::fmt;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// How far a feature has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Maturity {
    /// May change or go at any time.
    Alpha,
    /// Stays, its details may change.
    Beta,
    /// Stays as it is.
    Stable,
}

/// One feature that can be switched on or off.
#[derive(Debug, PartialEq, Eq)]
pub struct Gate {
    /// The name in the flag.
    pub name: &'static str,
    /// Whether it is on where the flag does not name it.
    pub default: bool,
    /// How far it has come.
    pub maturity: Maturity,
    /// What it does, in one line.
    pub meaning: &'static str,
}

/// The gates of a program, each on or off.
#[derive(Clone, Debug)]
pub struct Gates {
    table: &'static [Gate],
    /// In the order of the table.
    enabled: Vec<bool>,
}

/// Why a flag's text is no setting of gates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// There is no such gate.
    #[error("there is no feature gate {name:?}; there are {known}")]
    Unknown {
        /// What was named.
        name: String,
        /// What could have been named.
        known: String,
    },
    /// The text is not `Name=true` or `Name=false`.
    #[error("{setting:?} sets no feature gate: write it as Name=true or Name=false")]
    NotASetting {
        /// The text.
        setting: String,
    },
    /// A gate is set more than once.
    #[error("the feature gate {name} is set twice: keep one of the two")]
    Twice {
        /// Its name.
        name: &'static str,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    name: &'static str,
    maturity: String,
}

impl Maturity {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alpha => "alpha",
            Self::Beta => "beta",
            Self::Stable => "stable",
        }
    }
}

impl fmt::Display for Maturity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl Gates {
    /// The gates of `table` with the defaults overridden by a text such as `A=true,B=false`; an empty text overrides none.
    pub fn parse(table: &'static [Gate], text: &str) -> Result<Self, GateError> {
        let mut set: Vec<Option<bool>> = vec![None; table.len()];
        for setting in text.split(',').map(str::trim).filter(|setting| !setting.is_empty()) {
            let (name, value) = parse_setting(setting)?;
            let position = table.iter().position(|gate| gate.name == name).ok_or_else(|| unknown(table, name))?;
            if set[position].replace(value).is_some() {
                return Err(GateError::Twice { name: table[position].name });
            }
        }
        let enabled = table.iter().zip(set).map(|(gate, set)| set.unwrap_or(gate.default)).collect();
        Ok(Self { table, enabled })
    }

    /// Whether a gate is on. One that is not in the table is as it is by default.
    pub fn is_on(&self, gate: &Gate) -> bool {
        self.iter().find(|(known, _)| known.name == gate.name).map_or(gate.default, |(_, enabled)| enabled)
    }

    /// All gates in the order of the table, and whether each is on.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Gate, bool)> {
        self.table.iter().zip(self.enabled.iter().copied())
    }

    /// Adds one gauge per gate to the metrics: 1 for on, 0 for off.
    pub fn register(&self, registry: &mut Registry) {
        let family = Family::<Labels, Gauge>::default();
        for (gate, enabled) in self.iter() {
            let labels = Labels { name: gate.name, maturity: gate.maturity.to_string() };
            family.get_or_create(&labels).set(enabled.into());
        }
        registry.register("feature_enabled", "Whether a feature gate is on", family);
    }
}

/// As the flag would be written with every gate named.
impl fmt::Display for Gates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (gate, enabled)) in self.iter().enumerate() {
            let separator = if position == 0 { "" } else { "," };
            write!(formatter, "{separator}{}={enabled}", gate.name)?;
        }
        Ok(())
    }
}

fn parse_setting(setting: &str) -> Result<(&str, bool), GateError> {
    let wrong = || GateError::NotASetting { setting: setting.to_owned() };
    let (name, value) = setting.split_once('=').ok_or_else(wrong)?;
    Ok((name.trim(), value.trim().parse().map_err(|_| wrong())?))
}

fn unknown(table: &[Gate], name: &str) -> GateError {
    let known: Vec<&str> = table.iter().map(|gate| gate.name).collect();
    GateError::Unknown { name: name.to_owned(), known: known.join(", ") }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    static CANARY: Gate =
        Gate { name: "Canary", default: false, maturity: Maturity::Alpha, meaning: "share out revisions" };
    static ELSEWHERE: Gate = Gate { name: "Elsewhere", default: true, maturity: Maturity::Beta, meaning: "not ours" };
    static TABLE: [Gate; 2] = [
        Gate { name: "Canary", default: false, maturity: Maturity::Alpha, meaning: "share out revisions" },
        Gate { name: "Repair", default: true, maturity: Maturity::Stable, meaning: "mend what was missed" },
    ];

    #[test]
    fn a_gate_that_is_not_named_is_as_the_table_says() {
        assert_eq!(Gates::parse(&TABLE, "").unwrap().to_string(), "Canary=false,Repair=true");
    }

    #[test]
    fn the_text_overrides_the_table() {
        let gates = Gates::parse(&TABLE, " Canary=true, Repair = false,").unwrap();
        assert_eq!(gates.to_string(), "Canary=true,Repair=false");
        assert!(gates.is_on(&CANARY));
        assert!(gates.is_on(&ELSEWHERE), "a gate of another table has its default");
    }

    #[test]
    fn wrong_texts_are_refused_with_the_way_out() {
        for (text, message) in [
            ("canary=true", "there is no feature gate \"canary\"; there are Canary, Repair"),
            ("Canary", "\"Canary\" sets no feature gate: write it as Name=true or Name=false"),
            ("Canary=yes", "\"Canary=yes\" sets no feature gate: write it as Name=true or Name=false"),
            ("Canary=true,Canary=true", "the feature gate Canary is set twice: keep one of the two"),
        ] {
            assert_eq!(Gates::parse(&TABLE, text).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn the_metrics_show_every_gate() {
        let mut registry = Registry::default();
        Gates::parse(&TABLE, "Canary=true,Repair=false").unwrap().register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let mut gauges: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        gauges.sort_unstable();
        assert_eq!(
            gauges,
            [
                "feature_enabled{name=\"Canary\",maturity=\"alpha\"} 1",
                "feature_enabled{name=\"Repair\",maturity=\"stable\"} 0",
            ]
        );
    }
}
