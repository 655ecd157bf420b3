//! Numbers and quantities as they are written, and what was probably meant where they are not.

use pillion_quantity::Resource;

use crate::{Error, ErrorCode, Field, Ratio, Span};

/// A number as written: `1.5`, with an exponent, a percent sign or letters behind it.
pub(crate) struct Literal<'a> {
    pub(crate) digits: &'a str,
    /// Digits after the point.
    pub(crate) places: usize,
    pub(crate) exponent: &'a str,
    pub(crate) percent: bool,
    pub(crate) tail: &'a str,
    pub(crate) span: Span,
}

pub(crate) enum Meaning {
    Number(Ratio),
    Quantity(Ratio),
}

impl Literal<'_> {
    pub(crate) fn read(&self, source: &str, field: Field) -> Result<Meaning, Error> {
        let text = self.span.of(source);
        if self.tail.is_empty() {
            let power = if self.percent { -2 } else { 0 };
            return Ok(Meaning::Number(self.value(text, power, 0)?));
        }
        if self.percent {
            return Err(self.after_percent(text));
        }
        let suffix = if self.exponent.is_empty() { suffix(self.tail) } else { None };
        let Some((resource, power, shift)) = suffix else {
            return Err(self.unknown_suffix(text, field));
        };
        if resource != field.resource {
            return Err(self.other_resource(text, field));
        }
        Ok(Meaning::Quantity(self.value(text, power, shift)?))
    }

    /// `digits × 10^(exponent + power - places) × 2^shift`
    fn value(&self, text: &str, power: i64, shift: u32) -> Result<Ratio, Error> {
        let number = self.digits.bytes().filter(u8::is_ascii_digit);
        let mantissa = number
            .clone()
            .try_fold(0_i128, |value, digit| value.checked_mul(10)?.checked_add(i128::from(digit - b'0')));
        let exponent = match self.exponent {
            "" => Some(0),
            exponent => exponent.parse::<i64>().ok(),
        };
        let places = i64::try_from(self.places).ok();
        mantissa
            .zip(exponent)
            .zip(places)
            .and_then(|((mantissa, exponent), places)| {
                let power = exponent.checked_add(power)?.checked_sub(places)?;
                let scale = 10_i128.checked_pow(u32::try_from(power.unsigned_abs()).ok()?)?;
                let mantissa = Ratio::whole(mantissa.checked_mul(1_i128 << shift)?);
                if power < 0 {
                    mantissa.checked_div(Ratio::whole(scale))
                } else {
                    mantissa.checked_mul(Ratio::whole(scale))
                }
            })
            .ok_or_else(|| {
                Error::new(
                    ErrorCode::NumberOutOfRange,
                    self.span,
                    format!("`{}` is too large or too precise to compute with", short(text)),
                    "use a smaller number or fewer digits",
                )
            })
    }

    fn after_percent(&self, text: &str) -> Error {
        let number = &text[..text.len() - self.tail.len()];
        let help = if is_name(self.tail) {
            format!("write `{number} * {}`", self.tail)
        } else {
            format!("put an operator after `{number}`")
        };
        Error::new(ErrorCode::MalformedNumber, self.span, format!("`{}` is not a number", short(text)), help)
    }

    fn unknown_suffix(&self, text: &str, field: Field) -> Error {
        let number = &text[..text.len() - self.tail.len()];
        let code = if self.tail.contains('.') { ErrorCode::MalformedNumber } else { ErrorCode::UnknownSuffix };
        Error::new(
            code,
            self.span,
            match code {
                ErrorCode::MalformedNumber => format!("`{}` is not a number", short(text)),
                _ => format!("`{}` has the unknown suffix `{}`", short(text), short(self.tail)),
            },
            self.suggestion(number, field),
        )
    }

    fn suggestion(&self, number: &str, field: Field) -> String {
        let lower = self.tail.to_ascii_lowercase();
        if lower == "cpu" || lower == "memory" {
            return format!("write `{number} * {lower}`");
        }
        if !self.exponent.is_empty() {
            return "an exponent takes no suffix: write one or the other".to_owned();
        }
        if lower == "e" {
            return format!("an exponent needs digits, such as `{number}e3`");
        }
        match field.resource {
            Resource::Cpu => CPU_HELP.to_owned(),
            Resource::Memory => likely_memory(&lower)
                .map_or_else(|| MEMORY_HELP.to_owned(), |(decimal, binary)| did_you_mean(number, decimal, binary)),
        }
    }

    fn other_resource(&self, text: &str, field: Field) -> Error {
        let number = &text[..text.len() - self.tail.len()];
        let (kind, help) = match field.resource {
            Resource::Cpu => (Resource::Memory, CPU_HELP.to_owned()),
            Resource::Memory => (
                Resource::Cpu,
                likely_memory(self.tail)
                    .map_or_else(|| MEMORY_HELP.to_owned(), |(decimal, binary)| did_you_mean(number, decimal, binary)),
            ),
        };
        Error::new(
            ErrorCode::OtherQuantity,
            self.span,
            format!("`{}` is a {kind} quantity in an expression for {field}", short(text)),
            help,
        )
    }
}

const CPU_HELP: &str = "cpu takes `m`, `u`, `n` or a bare number of cores: `100m` is 0.1 core";
const MEMORY_HELP: &str = "memory takes `k M G T P E`, `Ki Mi Gi Ti Pi Ei` or a bare number of bytes";

fn did_you_mean(number: &str, decimal: &str, binary: &str) -> String {
    if decimal.is_empty() {
        format!("did you mean `{number}{binary}`?")
    } else {
        format!("did you mean `{number}{decimal}` or `{number}{binary}`?")
    }
}

/// The resource, power of ten and power of two of a suffix Kubernetes knows.
fn suffix(text: &str) -> Option<(Resource, i64, u32)> {
    let (resource, power, shift) = match text {
        "n" => (Resource::Cpu, -9, 0),
        "u" => (Resource::Cpu, -6, 0),
        "m" => (Resource::Cpu, -3, 0),
        "k" => (Resource::Memory, 3, 0),
        "M" => (Resource::Memory, 6, 0),
        "G" => (Resource::Memory, 9, 0),
        "T" => (Resource::Memory, 12, 0),
        "P" => (Resource::Memory, 15, 0),
        "E" => (Resource::Memory, 18, 0),
        "Ki" => (Resource::Memory, 0, 10),
        "Mi" => (Resource::Memory, 0, 20),
        "Gi" => (Resource::Memory, 0, 30),
        "Ti" => (Resource::Memory, 0, 40),
        "Pi" => (Resource::Memory, 0, 50),
        "Ei" => (Resource::Memory, 0, 60),
        _ => return None,
    };
    Some((resource, power, shift))
}

/// The decimal and binary suffix somebody who wrote `mb` or `GiB` may have had in mind.
fn likely_memory(tail: &str) -> Option<(&'static str, &'static str)> {
    let lower = tail.to_ascii_lowercase();
    let prefix = ["ibytes", "bytes", "ib", "byte", "b", ""]
        .into_iter()
        .find_map(|ending| lower.strip_suffix(ending).map(|prefix| (prefix, ending)));
    let (prefix, ending) = prefix?;
    let binary_only = ending.starts_with('i') || prefix.ends_with('i');
    let (decimal, binary) = match prefix.trim_end_matches('i') {
        "k" => ("k", "Ki"),
        "m" => ("M", "Mi"),
        "g" => ("G", "Gi"),
        "t" => ("T", "Ti"),
        "p" => ("P", "Pi"),
        "e" => ("E", "Ei"),
        _ => return None,
    };
    Some((if binary_only { "" } else { decimal }, binary))
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Messages quote tokens and parts; those can be as long as the expression, and go over lines.
pub(crate) fn short(text: &str) -> String {
    let (shown, dots) = match text.char_indices().nth(32) {
        Some((at, _)) => (&text[..at], "…"),
        None => (text, ""),
    };
    let line: String = shown.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    line + dots
}
