//! Waiting on a condition with a deadline; the only way a bed or a test waits.

use std::future::Future;
use std::time::Duration;

use pillion_stopwatch::Stopwatch;

use crate::error::Error;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// What one look at a condition saw.
#[derive(Debug)]
pub enum Look<T> {
    /// It is true.
    Done(T),
    /// Not yet; what was seen, for the message when time is up.
    NotYet(String),
}

/// Looks until it is done or this machine had `limit`, without the time that its host gave to others. An error ends the wait at
/// once.
pub async fn until<T, F>(what: &str, limit: Duration, mut look: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<Look<T>, Error>>,
{
    let stopwatch = Stopwatch::start();
    loop {
        let seen = match look().await? {
            Look::Done(value) => return Ok(value),
            Look::NotYet(seen) => seen,
        };
        if stopwatch.elapsed().had() > limit {
            return Err(Error::TimedOut { what: what.to_owned(), limit, seen });
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn returns_the_value_of_the_first_look_that_is_done() {
        let mut looks = 0;
        let value = until("three looks", Duration::from_secs(5), || {
            looks += 1;
            let look = if looks == 3 { Look::Done(looks) } else { Look::NotYet(format!("look {looks}")) };
            async { Ok(look) }
        });
        assert_eq!(value.await.unwrap(), 3);
    }

    #[tokio::test]
    async fn names_the_condition_and_what_was_seen_last_when_time_is_up() {
        let error = until::<(), _>("the moon", Duration::ZERO, || async { Ok(Look::NotYet("clouds".to_owned())) });
        assert_eq!(error.await.unwrap_err().to_string(), "waited 0 s for the moon; clouds");
    }
}
