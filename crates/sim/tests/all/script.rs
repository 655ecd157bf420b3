//! What happens in one run.

use pillion_generators::Random;
use serde::Serialize;

/// What happens in one run; everything else follows from it.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Script {
    pub(crate) pods: u32,
    pub(crate) workloads: u32,
    pub(crate) max_unavailable: String,
    pub(crate) partition: String,
    pub(crate) probe: bool,
    pub(crate) rollback: bool,
    pub(crate) native: bool,
    /// How many seconds the watch is behind.
    pub(crate) lag: i64,
    /// Until the old container ends, until the new one runs, until it is ready.
    pub(crate) habits: [u32; 3],
    /// What happens, each so many seconds after the one before.
    pub(crate) events: Vec<(u32, Event)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Event {
    /// The set gets an image with this tag; a number makes it one that runs.
    Image(&'static str),
    Paused(bool),
    Partition(u32),
    MaxUnavailable(u32),
    /// The so many-th pod is deleted.
    Delete(u32),
    Create,
    /// The app in the so many-th pod.
    App(u32, bool),
    /// The manager ends after so many more writes, and begins anew.
    Crash(u32),
    /// The answer to a write is lost; the write is not, or is as well.
    LostAnswer {
        is_written: bool,
    },
    Lag(i64),
}

const GOOD: [&str; 4] = ["2", "3", "4", "5"];
const BAD: [&str; 3] = ["missing", "crash", "sick"];

impl Script {
    /// A run in which pods neither come nor go nor become unready by themselves.
    pub(crate) fn steady(seed: u64) -> Self {
        Self::drawn(seed, false)
    }

    /// A run in which they do.
    pub(crate) fn restless(seed: u64) -> Self {
        Self::drawn(seed, true)
    }

    fn drawn(seed: u64, is_restless: bool) -> Self {
        let random = &mut Random::new(seed);
        let pods = 1 + below(random, 12);
        let count = |random: &mut Random| match below(random, 3) {
            0 => format!("{}%", [1, 20, 34, 50, 99, 100][random.up_to(5)]),
            _ => below(random, pods + 1).to_string(),
        };
        let max_unavailable = match count(random) {
            none if none == "0" => "1".to_owned(),
            some => some,
        };
        let mut script = Self {
            pods,
            workloads: 1 + below(random, 3),
            max_unavailable,
            partition: if random.chance(60) { "0".to_owned() } else { count(random) },
            probe: random.chance(50),
            rollback: random.chance(30),
            native: random.chance(50),
            lag: i64::from(below(random, 7)),
            habits: [random.one_of(&[0, 1, 3, 8]), below(random, 3), below(random, 3)],
            events: vec![(1, Event::Image("1"))],
        };
        for _ in 0..below(random, 12) {
            let event = drawn_event(random, pods, is_restless);
            let after = random.one_of(&[0, 1, 2, 5, 12, 70]);
            script.events.push((after, event));
        }
        script
    }
}

fn drawn_event(random: &mut Random, pods: u32, is_restless: bool) -> Event {
    match below(random, if is_restless { 14 } else { 10 }) {
        0 | 1 => Event::Image(random.one_of(&GOOD)),
        2 | 3 => Event::Image(random.one_of(&BAD)),
        4 => Event::Paused(random.chance(50)),
        5 => Event::Partition(below(random, pods + 1)),
        6 => Event::MaxUnavailable(1 + below(random, pods)),
        7 => Event::Crash(below(random, 4)),
        8 => Event::LostAnswer { is_written: random.chance(50) },
        9 => Event::Lag(random.one_of(&[0, 1, 3, 8, 25])),
        10 => Event::Delete(below(random, pods)),
        11 => Event::Create,
        _ => Event::App(below(random, pods), random.chance(50)),
    }
}

fn below(random: &mut Random, bound: u32) -> u32 {
    u32::try_from(random.below(u64::from(bound))).unwrap()
}
