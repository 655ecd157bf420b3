//! Durations and sizes as people write them on a command line.

use std::time::Duration;

/// Parses `500ms`, `2s`, `3m` or `1h`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let expected = || "expected a whole number and a unit, for example 500ms, 2s, 3m or 1h".to_owned();
    let unit_start = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(expected)?;
    let (digits, unit) = text.split_at(unit_start);
    let amount: u64 = digits.parse().map_err(|_| expected())?;
    let milliseconds_per_unit: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(expected()),
    };
    amount.checked_mul(milliseconds_per_unit).map(Duration::from_millis).ok_or_else(|| format!("{text} is too long"))
}

/// Parses a number of bytes: `4096`, `64Ki`, `64Mi` or `1Gi`.
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let units: [(&str, usize); 3] = [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30)];
    let (digits, bytes_per_unit) =
        units.iter().find_map(|(suffix, bytes)| Some((text.strip_suffix(suffix)?, *bytes))).unwrap_or((text, 1));
    let amount: usize =
        digits.parse().map_err(|_| "expected bytes, or a number with Ki, Mi or Gi, for example 64Mi".to_owned())?;
    amount.checked_mul(bytes_per_unit).ok_or_else(|| format!("{text} is more than this machine can address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, milliseconds) in [("0s", 0), ("500ms", 500), ("2s", 2_000), ("3m", 180_000), ("1h", 3_600_000)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn a_duration_needs_a_number_and_a_known_unit() {
        let expected = Err("expected a whole number and a unit, for example 500ms, 2s, 3m or 1h".to_owned());
        for text in ["", "5", "s", "1.5s", "-1s", "2 s", "1d"] {
            assert_eq!(parse_duration(text), expected, "{text:?}");
        }
        assert_eq!(parse_duration("18446744073709551615h"), Err("18446744073709551615h is too long".to_owned()));
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [("0", 0), ("4096", 4096), ("2Ki", 2048), ("64Mi", 67_108_864), ("1Gi", 1_073_741_824)] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn a_size_needs_a_number_and_a_known_suffix() {
        let expected = Err("expected bytes, or a number with Ki, Mi or Gi, for example 64Mi".to_owned());
        for text in ["", "Mi", "1M", "1.5Gi", "-1"] {
            assert_eq!(parse_size(text), expected, "{text:?}");
        }
        assert_eq!(parse_size("99999999999Gi"), Err("99999999999Gi is more than this machine can address".to_owned()));
    }
}
