//! What a person sets for a run of tests, so that it can be repeated or made longer.

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

/// The number in a variable of the environment, if it is set.
#[expect(clippy::panic, reason = "a test that runs with other numbers than were asked for misleads")]
pub fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|error| panic!("{name}={text} is not a number: {error}")))
}

/// A seed that differs from run to run, for tests that are to see something new each time. They must print it.
pub fn seed_from_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970").as_secs()
}
