//! A connection that gives up: after a silence, at its end of time, or when the agent ends.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::stop::Stop;

/// How long the agent's end may go unnoticed.
const SLICE: Duration = Duration::from_millis(500);

/// How long to wait.
#[derive(Clone, Debug)]
pub(super) struct Patience {
    /// To connect.
    pub(super) connect: Duration,
    /// Without a byte.
    pub(super) silence: Duration,
    /// For everything.
    pub(super) end: Instant,
    pub(super) stop: Stop,
}

/// A connection with its patience.
#[derive(Debug)]
pub(super) struct Line {
    socket: TcpStream,
    patience: Patience,
}

impl Patience {
    /// As long as an update may take from now on.
    pub(super) fn new(connect: Duration, silence: Duration, total: Duration, stop: &Stop) -> Self {
        let now = Instant::now();
        // A time that the clock cannot show is no limit that anybody meant.
        let end = now.checked_add(total).unwrap_or(now);
        Self { connect, silence, end, stop: stop.clone() }
    }

    fn left(&self) -> io::Result<Duration> {
        if self.stop.is_stopped() {
            return Err(io::Error::new(ErrorKind::ConnectionAborted, "the agent is told to end"));
        }
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::Error::new(ErrorKind::TimedOut, "it took too long in all")) } else { Ok(left) }
    }
}

impl Line {
    pub(super) fn connect(address: &SocketAddr, patience: &Patience) -> io::Result<Self> {
        let socket = TcpStream::connect_timeout(address, patience.connect.min(patience.left()?))?;
        Ok(Self::new(socket, patience.clone()))
    }

    pub(super) fn new(socket: TcpStream, patience: Patience) -> Self {
        Self { socket, patience }
    }

    /// Begins to wait anew.
    pub(super) fn renew(&mut self, patience: Patience) {
        self.patience = patience;
    }

    /// Does one thing with the socket, in slices, until it is done or patience is over.
    fn patiently(&mut self, mut act: impl FnMut(&mut TcpStream, Duration) -> io::Result<usize>) -> io::Result<usize> {
        let silent_since = Instant::now();
        loop {
            let left = self.patience.left()?;
            let silence_left = self.patience.silence.saturating_sub(silent_since.elapsed());
            if silence_left.is_zero() {
                return Err(io::Error::new(ErrorKind::TimedOut, "it was silent for too long"));
            }
            match act(&mut self.socket, SLICE.min(left).min(silence_left)) {
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {
                }
                done => return done,
            }
        }
    }
}

impl Read for Line {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.patiently(|socket, slice| {
            socket.set_read_timeout(Some(slice))?;
            socket.read(buffer)
        })
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.patiently(|socket, slice| {
            socket.set_write_timeout(Some(slice))?;
            socket.write(bytes)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn pair(silence: Duration, total: Duration, stop: &Stop) -> (Line, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let patience = Patience::new(Duration::from_secs(5), silence, total, stop);
        let line = Line::connect(&listener.local_addr().unwrap(), &patience).unwrap();
        (line, listener.accept().unwrap().0)
    }

    fn why(line: &mut Line) -> String {
        line.read(&mut [0; 8]).unwrap_err().to_string()
    }

    #[test]
    fn a_silent_one_is_given_up() {
        let (mut line, _other) = pair(Duration::from_millis(50), Duration::from_mins(1), &Stop::default());
        assert_eq!(why(&mut line), "it was silent for too long");
    }

    #[test]
    fn attack_slow_body_is_given_up_at_the_end_of_time() {
        let (mut line, mut other) = pair(Duration::from_mins(1), Duration::from_millis(300), &Stop::default());
        let drip = thread::spawn(move || {
            while other.write_all(b"x").is_ok() {
                thread::yield_now();
            }
        });
        let error = loop {
            if let Err(error) = line.read(&mut [0; 1]) {
                break error;
            }
        };
        assert_eq!(error.to_string(), "it took too long in all");
        drop(line);
        drip.join().unwrap();
    }

    #[test]
    fn it_ends_with_the_agent() {
        let stop = Stop::default();
        let (mut line, _other) = pair(Duration::from_mins(1), Duration::from_mins(1), &stop);
        stop.stop();
        assert_eq!(why(&mut line), "the agent is told to end");
    }
}
