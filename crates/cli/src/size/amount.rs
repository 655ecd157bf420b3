//! Amounts that were summed or measured, rounded for people: three digits tell enough.

const NANO: i128 = 1_000_000_000;
const MILLI: i128 = 1_000_000;
const KIB: i128 = 1 << 10;

/// Nanocores as `240m`, `1.2` or `124` cores.
pub(super) fn cores(nano: i128) -> String {
    match rounded(nano, MILLI) {
        milli @ ..1000 => format!("{milli}m"),
        _ => with_tenths(nano, NANO),
    }
}

/// The same in words: `240m cpu`, `1.2 cores`.
pub(super) fn cores_in_words(nano: i128) -> String {
    let word = if rounded(nano, MILLI) < 1000 { "cpu" } else { "cores" };
    format!("{} {word}", cores(nano))
}

/// Bytes as `12Ki`, `240Mi` or `1.2Gi`.
pub(super) fn bytes(amount: i128) -> String {
    if amount == 0 {
        return "0".to_owned();
    }
    let (mut unit, mut suffix) = (KIB, "Ki");
    for larger in ["Mi", "Gi", "Ti", "Pi"] {
        // What would be written with four digits is written with the next unit.
        if rounded(amount, unit) < KIB {
            break;
        }
        (unit, suffix) = (unit * KIB, larger);
    }
    match suffix {
        "Ki" | "Mi" => format!("{}{suffix}", rounded(amount, unit)),
        _ => format!("{}{suffix}", with_tenths(amount, unit)),
    }
}

/// Whole percents of a whole; `None` of nothing.
pub(super) fn percent(part: i128, whole: i128) -> Option<i128> {
    (whole > 0).then(|| rounded(100 * part, whole))
}

/// With one digit after the point as long as that is one of three.
fn with_tenths(amount: i128, unit: i128) -> String {
    match rounded(10 * amount, unit) {
        tenths @ ..1000 => format!("{}.{}", tenths / 10, tenths % 10),
        _ => rounded(amount, unit).to_string(),
    }
}

/// Half a unit counts as a whole one.
fn rounded(amount: i128, unit: i128) -> i128 {
    (2 * amount + unit).div_euclid(2 * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_told_with_three_digits() {
        let told = [0, 400_000, 500_000, 240 * MILLI, 999_499_999, 999_500_000, 1_249 * MILLI, 99_949 * MILLI];
        assert_eq!(told.map(cores), ["0m", "0m", "1m", "240m", "999m", "1.0", "1.2", "99.9"]);
        assert_eq!([99_950 * MILLI, 1_234 * NANO].map(cores), ["100", "1234"]);
        assert_eq!([240 * MILLI, 12_400 * MILLI].map(cores_in_words), ["240m cpu", "12.4 cores"]);
    }

    #[test]
    fn bytes_are_told_with_three_digits_and_a_suffix() {
        let (mebi, gibi) = (1_i128 << 20, 1_i128 << 30);
        let told = [0, 600, 20 * mebi, 1023 * mebi, 1024 * mebi - 1, gibi, 30 * gibi + gibi / 5, 2048 * gibi];
        assert_eq!(told.map(bytes), ["0", "1Ki", "20Mi", "1023Mi", "1.0Gi", "1.0Gi", "30.2Gi", "2.0Ti"]);
    }

    #[test]
    fn percents_are_whole_and_of_something() {
        assert_eq!(percent(11_300, 12_400), Some(91));
        assert_eq!(percent(-5, 10), Some(-50));
        assert_eq!(percent(1, 0), None);
    }
}
