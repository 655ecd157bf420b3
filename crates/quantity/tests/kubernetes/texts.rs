//! Quantity texts, legal and not, from a seed.

use pillion_generators::Random;

const SUFFIXES: [&str; 16] = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const STRAY: [&str; 24] = [
    "K", "ki", "mi", "B", "MB", "MiB", "i", "e", "E+", "e-", "%", "x", " ", "\t", "é", "_", "-", "+", ".", "Kim", "mm",
    "e3m", "e1.5", "EiE",
];
const EDGES: [&str; 14] = [
    "9223372036854775807",
    "9223372036854775808",
    "9007199254740992",
    "8",
    "7",
    "1023",
    "1024",
    "1048576",
    "999999999",
    "1000000000",
    "170141183460469231731687303715",
    "170141183460469231731687303716",
    "1000",
    "0",
];

/// An endless stream of texts; the same seed gives the same texts.
pub(crate) struct Texts {
    random: Random,
}

impl Texts {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Random::new(seed) }
    }

    fn digits(&mut self, most: u64) -> String {
        let count = self.random.below(most + 1);
        let mut digits = String::new();
        while digits.len() < usize::try_from(count).unwrap() {
            // Runs of zeros and nines are where rounding and suffix choice turn.
            match self.random.below(4) {
                0 => digits.push_str(self.random.one_of(&["000", "00", "999", "024"])),
                _ => digits.push_str(&self.random.below(10).to_string()),
            }
        }
        digits
    }

    fn whole(&mut self) -> String {
        match self.random.below(8) {
            0 => self.random.one_of(&EDGES).to_owned(),
            1 => self.digits(45),
            2 => self.digits(0),
            3 => format!("00{}", self.digits(4)),
            _ => self.digits(9),
        }
    }

    fn fraction(&mut self) -> String {
        match self.random.below(6) {
            0 => format!(".{}", self.digits(3)),
            1 => format!(".{}", self.digits(12)),
            2 => format!(".{}{}", "0".repeat(8), self.digits(40)),
            _ => String::new(),
        }
    }

    fn exponent(&mut self) -> String {
        let letter = self.random.one_of(&["e", "E"]);
        let sign = self.random.one_of(&["", "", "+", "-"]);
        let most = self.random.one_of(&[4, 12, 30, 400]);
        format!("{letter}{sign}{}", self.random.below(most))
    }

    fn any_text(&mut self) -> String {
        let sign = self.random.one_of(&["", "", "", "-", "+"]);
        let whole = self.whole();
        let fraction = self.fraction();
        let suffix = self.suffix();
        let mut text = format!("{sign}{whole}{fraction}{suffix}");
        if self.random.below(6) == 0 {
            let stray = self.random.one_of(&STRAY);
            let at = usize::try_from(self.random.below(text.len() as u64 + 1)).unwrap();
            text.insert_str(at, stray);
        }
        text
    }

    /// The Go library needs time and memory without bound for exponents such as `e-999999999`.
    fn is_harmless(text: &str) -> bool {
        text.rsplit(['e', 'E']).next().is_none_or(|tail| tail.len() == text.len() || tail.len() <= 4)
    }

    fn suffix(&mut self) -> String {
        match self.random.below(8) {
            0 | 1 => self.exponent(),
            2 => self.random.one_of(&["Pi", "Ei", "E", "n"]).to_owned(),
            _ => self.random.one_of(&SUFFIXES).to_owned(),
        }
    }
}

impl Iterator for Texts {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        loop {
            let text = self.any_text();
            if Self::is_harmless(&text) {
                return Some(text);
            }
        }
    }
}
