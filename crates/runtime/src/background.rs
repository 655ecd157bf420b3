//! Work that must not slow down anything else in the process.

use std::io;
use std::thread;

use rustix::process::setpriority_process;
use tokio::sync::oneshot;
use tracing::debug;

/// The nice value of such work. It counts against the other threads of the process: containers share CPU time by their requests.
const NICE: i32 = 19;

/// Runs work on a thread of its own, at the lowest priority. Whoever drops the future does not end the work.
pub fn run<T, W>(name: &str, work: W) -> io::Result<impl Future<Output = Option<T>> + Send + use<T, W>>
where
    T: Send + 'static,
    W: FnOnce() -> T + Send + 'static,
{
    let (done_tx, done_rx) = oneshot::channel();
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        // Of this thread alone. Without it the work is done all the same.
        if let Err(error) = setpriority_process(None, NICE) {
            debug!(%error, "cannot lower the priority of a thread");
        }
        // Nobody may wait any more.
        let _ = done_tx.send(work());
    })?;
    // A thread that panicked has dropped its end.
    Ok(async move { done_rx.await.ok() })
}

#[cfg(test)]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    #[tokio::test]
    async fn work_has_the_lowest_priority_and_a_panic_is_no_answer() {
        let before = getpriority_process(None).unwrap();
        assert_eq!(run("test", || getpriority_process(None).unwrap()).unwrap().await, Some(NICE));
        assert_eq!(getpriority_process(None).unwrap(), before, "only of that thread");
        assert_eq!(run::<(), _>("test", || std::panic::resume_unwind(Box::new(()))).unwrap().await, None);
    }
}
