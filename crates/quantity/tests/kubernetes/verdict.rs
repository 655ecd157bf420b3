//! One answer of the Go program, and whether this crate agrees with it.

use pillion_quantity::{Format, ParseError, Quantity};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(crate) struct Verdict {
    #[serde(rename = "in")]
    input: String,
    ok: bool,
    #[serde(default)]
    text: String,
    #[serde(default)]
    canonical: String,
    #[serde(default)]
    format: String,
    nano: Option<String>,
    value: i64,
    milli: i64,
}

impl Verdict {
    pub(crate) fn text_in(&self) -> &str {
        &self.input
    }

    pub(crate) fn is_ok(&self) -> bool {
        self.ok
    }

    pub(crate) fn is_refused_by_us(&self) -> bool {
        self.ok && self.input.parse::<Quantity>().is_err()
    }

    /// What is wrong, if anything is.
    pub(crate) fn objection(&self) -> Option<String> {
        self.judge().err().map(|why| format!("{:?}: {why}; Kubernetes says {self:?}", self.input))
    }

    fn judge(&self) -> Result<(), String> {
        let ours = self.input.parse::<Quantity>();
        if !self.ok {
            return match ours {
                Err(_) => Ok(()),
                Ok(ours) => Err(format!("accepted as {ours}")),
            };
        }
        let ours = match ours {
            Ok(ours) => ours,
            Err(error) if self.may_be_refused(error) => return Ok(()),
            Err(error) => return Err(format!("refused: {error}")),
        };
        let nano = ours.nano().to_string();
        same("nano", Some(&nano), self.nano.as_ref())?;
        same("format", name(ours.format()), self.format.as_str())?;
        let printed = ours.to_string();
        same("canonical", self.as_kubernetes_prints(&printed).as_str(), self.canonical.as_str())?;
        if self.text != self.canonical {
            // The library keeps a text it takes to be canonical already.
            same("String()", &self.input, &self.text)?;
        }
        let again: Quantity = printed.parse().map_err(|error| format!("{printed}: {error}"))?;
        same("printed and read again", again.nano(), ours.nano())?;
        same("printed twice", &again.to_string(), &printed)?;
        // Value() and MilliValue() misround negative fractions and wrap where they overflow.
        if ours.nano() >= 0 {
            for (what, ours, theirs) in [("value", ours.value(), self.value), ("milli", ours.milli_value(), self.milli)]
            {
                if ours <= i128::from(i64::MAX) {
                    same(what, ours, i128::from(theirs))?;
                }
            }
        }
        Ok(())
    }

    /// The two refusals the crate documents, and nothing else.
    fn may_be_refused(&self, error: ParseError) -> bool {
        match error {
            ParseError::TooLarge => {
                self.nano.as_ref().is_none_or(|nano| nano.trim_start_matches('-').parse::<i128>().is_err())
            }
            ParseError::Exponent => {
                let at = self.input.find(['e', 'E']).unwrap();
                let exponent: i64 = self.input[at + 1..].parse().unwrap();
                i32::try_from(exponent).is_err()
            }
            _ => false,
        }
    }

    /// Past `E` the library has no suffix to write and leaves the zeros out all the same.
    fn as_kubernetes_prints(&self, ours: &str) -> String {
        match ours.strip_suffix('E') {
            Some(mut mantissa) if self.format == "DecimalSI" => {
                let mut lost = false;
                while let Some(shorter) = mantissa.strip_suffix("000") {
                    mantissa = shorter;
                    lost = true;
                }
                if lost { mantissa.to_owned() } else { ours.to_owned() }
            }
            _ => ours.to_owned(),
        }
    }
}

fn same<T: Copy + PartialEq + std::fmt::Debug>(what: &str, ours: T, theirs: T) -> Result<(), String> {
    if ours == theirs { Ok(()) } else { Err(format!("{what} is {ours:?}, not {theirs:?}")) }
}

fn name(format: Format) -> &'static str {
    match format {
        Format::DecimalSi => "DecimalSI",
        Format::BinarySi => "BinarySI",
        Format::DecimalExponent => "DecimalExponent",
    }
}
