//! A connection that is given up at a moment, not after a silence: one that sends a byte a second would never end.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::Failure;

/// A connection with an end.
#[derive(Debug)]
pub(crate) struct Timed {
    stream: TcpStream,
    end: Instant,
}

impl Timed {
    /// Gives a connection an end.
    pub(crate) fn new(stream: TcpStream, end: Instant) -> Self {
        Self { stream, end }
    }
}

/// Connects to the first of these addresses that takes it: an app may listen on one family alone.
pub(crate) fn connect(addresses: &[SocketAddr], end: Instant) -> Result<Timed, Failure> {
    let mut failure = Failure::new("NoAddress", "there is no address to ask");
    for address in addresses {
        let connected = left_until(end).and_then(|left| TcpStream::connect_timeout(address, left));
        match connected {
            Ok(stream) => return Ok(Timed::new(stream, end)),
            Err(error) => failure = Failure::of_io(&error, &address.to_string()),
        }
    }
    Err(failure)
}

fn left_until(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(left_until(self.end)?))?;
        self.stream.read(buffer)
    }
}

impl Write for Timed {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(left_until(self.end)?))?;
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
