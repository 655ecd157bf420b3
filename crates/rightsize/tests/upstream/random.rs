//! Series that nobody thought of.

use jiff::{SignedDuration, Timestamp};

use crate::series::{Event, Series, Set};

/// A generator of series; one seed, one list of them.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        // SplitMix64: enough for samples.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn signed(&mut self, end: u64) -> i64 {
        i64::try_from(self.below(end)).unwrap()
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    fn some<T>(&mut self, value: T) -> Option<T> {
        self.one_in(4).then_some(value)
    }

    fn part(&mut self, from: f64, to: f64) -> f64 {
        let thousandth = f64::from(u32::try_from(self.below(1000)).unwrap()) / 1000.0;
        from + (to - from) * thousandth
    }

    fn set(&mut self) -> Set {
        if !self.one_in(3) {
            return Set::default();
        }
        let (margin, lower, target, upper) =
            (self.part(0.0, 0.5), self.part(0.1, 0.6), self.part(0.6, 0.95), self.part(0.9, 1.0));
        let hours = |own: &mut Self, least, more| {
            let hours = least + own.below(more);
            own.some(hours)
        };
        Set {
            margin: self.some(margin),
            lower: self.some(lower),
            target: self.some(target),
            upper: self.some(upper),
            pod_min_cpu_milli: self.some(7),
            pod_min_memory_mib: self.some(33),
            confidence_hours: hours(self, 1, 100),
            // With much shorter ones, upstream's rounding of weights near zero shows in checkpoints of few samples.
            cpu_half_life_hours: hours(self, 24, 100),
            memory_half_life_hours: hours(self, 24, 100),
            memory_interval_hours: hours(self, 1, 50),
            oom_ratio: self.some(1.5),
            oom_min_bytes: self.some(12_345_678),
        }
    }

    /// Containers that come and go, use something around a level of their own, are measured at odd times, and run out of
    /// memory now and then.
    pub(crate) fn series(&mut self, name: String) -> Series {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let start = start.saturating_add(SignedDuration::from_secs(self.signed(400 * 24 * 3600))).unwrap();
        let instances = 1 + self.below(4);
        let step = 30 + self.signed(1200);
        let count = 1 + self.below(1500);
        let (cpu, memory) = (1 + self.below(4000), 1 + self.below(4_000_000_000));
        let mut events = Vec::new();
        for index in 0..count {
            for instance in 0..instances {
                if self.one_in(10) {
                    continue;
                }
                let second = i64::try_from(index).unwrap() * step + self.signed(60) - 20;
                let spike = if self.one_in(200) { 20 } else { 1 };
                events.push(Event {
                    instance: usize::try_from(instance).unwrap(),
                    second,
                    cpu: (!self.one_in(50)).then(|| self.signed(cpu * spike)),
                    memory: (!self.one_in(50)).then(|| 1 + self.signed(memory * spike)),
                    oom: self.one_in(300).then(|| self.signed(2 * memory)),
                });
            }
        }
        let now = i64::try_from(count).unwrap() * step - self.signed(2 * 24 * 3600);
        let containers = 1 + usize::try_from(self.below(5)).unwrap();
        Series { name, start, now, containers, settings: self.set(), checkpoint: None, events }
    }
}
