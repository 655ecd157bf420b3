//! How long a request may take: what its caller said, within our own limit.

use std::time::Duration;

use http::Uri;
use tokio::time::Instant;

/// Until when the caller waits for an answer. In the extensions of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline(pub(super) Instant);

impl Deadline {
    /// How long the caller still waits.
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// The time the API server gives, in the query as `timeout=10s`; at most `limit`, which also counts where none is given.
pub(super) fn allowed(uri: &Uri, limit: Duration) -> Duration {
    let query = uri.query().unwrap_or_default();
    let given = query.split('&').find_map(|pair| pair.strip_prefix("timeout="));
    given.and_then(parse).map_or(limit, |given| given.min(limit))
}

/// Reads a duration as Go writes it: `3s`, `1m30s`, `1.5s`, `250ms`.
fn parse(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let unit_at = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, after) = rest.split_at(unit_at);
        let unit_end = after.find(|letter: char| letter.is_ascii_digit() || letter == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        seconds += number.parse::<f64>().ok()? * seconds_in(unit)?;
        rest = after;
    }
    Duration::try_from_secs_f64(seconds).ok().filter(|_| !text.is_empty())
}

fn seconds_in(unit: &str) -> Option<f64> {
    Some(match unit {
        "h" => 3600.0,
        "m" => 60.0,
        "s" => 1.0,
        "ms" => 1e-3,
        "us" | "µs" | "%C2%B5s" => 1e-6,
        "ns" => 1e-9,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        let millis = |millis| Some(Duration::from_millis(millis));
        for (text, duration) in [
            ("3s", millis(3_000)),
            ("30s", millis(30_000)),
            ("1m30s", millis(90_000)),
            ("1h0m0s", millis(3_600_000)),
            ("1.5s", millis(1_500)),
            ("250ms", millis(250)),
            ("0s", millis(0)),
            ("", None),
            ("3", None),
            ("s", None),
            ("3 s", None),
            ("-3s", None),
            ("1.2.3s", None),
            ("3d", None),
        ] {
            assert_eq!(parse(text), duration, "{text:?}");
        }
    }

    #[test]
    fn the_caller_may_ask_for_less_than_the_limit_but_not_for_more() {
        let limit = Duration::from_secs(10);
        for (uri, seconds) in [
            ("/mutate?timeout=3s", 3),
            ("/mutate?dry=1&timeout=3s", 3),
            ("/mutate?timeout=30s", 10),
            ("/mutate?timeout=soon", 10),
            ("/mutate?atimeout=3s", 10),
            ("/mutate", 10),
        ] {
            assert_eq!(allowed(&uri.parse().unwrap(), limit), Duration::from_secs(seconds), "{uri}");
        }
    }
}
