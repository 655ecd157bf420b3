//! The body of an answer, without the marks that HTTP puts between its parts.

use std::io::{self, BufRead, Read};

/// More than any line with the size of a part.
const MOST_SIZE_BYTES: u64 = 1024;

/// How the end of a body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// In parts, each with its size before it; the last one is empty.
    Chunked,
    /// By its length, told before.
    Length(u64),
    /// By the end of the connection.
    UntilClosed,
}

/// A body that is read while it comes.
#[derive(Debug)]
pub struct Body<R> {
    connection: R,
    part: Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The connection is the body.
    Whole,
    /// So many bytes are left of the body.
    LeftOfAll(u64),
    /// A size comes next.
    Size,
    /// So many bytes are left of this part; the end of a line comes after it.
    Left(u64),
    /// The last one is over.
    Ended,
}

impl<R: BufRead> Body<R> {
    /// The body that comes next on this connection.
    pub fn new(connection: R, framing: Framing) -> Self {
        let part = match framing {
            Framing::Chunked => Part::Size,
            Framing::Length(length) => Part::LeftOfAll(length),
            Framing::UntilClosed => Part::Whole,
        };
        Self { connection, part }
    }

    fn read_size(&mut self) -> io::Result<u64> {
        let line = self.read_line()?;
        // What follows a semicolon is for others.
        let digits = line.split(';').next().unwrap_or_default().trim();
        u64::from_str_radix(digits, 16).map_err(|_| io::Error::other(format!("{digits:?} is not the size of a part")))
    }

    /// Reads at least one and at most so many bytes.
    fn read_of(&mut self, left: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.connection.by_ref().take(left).read(buffer)?;
        if count == 0 && !buffer.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(count) }
    }

    fn read_line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.connection.by_ref().take(MOST_SIZE_BYTES).read_line(&mut line)?;
        if line.ends_with('\n') { Ok(line) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl<R: BufRead> Read for Body<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.part {
                Part::Whole => return self.connection.read(buffer),
                Part::Ended | Part::LeftOfAll(0) => return Ok(0),
                Part::LeftOfAll(left) => {
                    let count = self.read_of(left, buffer)?;
                    self.part = Part::LeftOfAll(left - count as u64);
                    return Ok(count);
                }
                Part::Size => {
                    let size = self.read_size()?;
                    self.part = if size == 0 { Part::Ended } else { Part::Left(size) };
                }
                Part::Left(0) => {
                    self.read_line()?;
                    self.part = Part::Size;
                }
                Part::Left(left) => {
                    let count = self.read_of(left, buffer)?;
                    self.part = Part::Left(left - count as u64);
                    return Ok(count);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &[u8], framing: Framing) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let read = Body::new(text, framing).read_to_end(&mut bytes);
        read.map(|_| bytes).map_err(|error| error.to_string())
    }

    #[test]
    fn a_body_in_parts_is_put_together() {
        let text = b"3\r\nabc\r\nA;name=value\r\n0123456789\r\n0\r\n\r\nrest";
        assert_eq!(read(text, Framing::Chunked), Ok(b"abc0123456789".to_vec()));
        assert_eq!(read(b"abcd", Framing::Length(3)), Ok(b"abc".to_vec()));
        assert_eq!(read(b"", Framing::Length(0)), Ok(vec![]));
        assert_eq!(read(b"3\r\nabc", Framing::UntilClosed), Ok(b"3\r\nabc".to_vec()));
    }

    #[test]
    fn a_body_that_breaks_off_is_no_whole_one() {
        for text in ["", "3", "3\r\n", "3\r\nab", "3\r\nabc", "3\r\nabc\r\n"] {
            assert_eq!(read(text.as_bytes(), Framing::Chunked), Err("unexpected end of file".to_owned()), "{text:?}");
        }
        assert_eq!(read(b"ab", Framing::Length(3)), Err("unexpected end of file".to_owned()));
        assert_eq!(read(b"x\r\n", Framing::Chunked), Err("\"x\" is not the size of a part".to_owned()));
    }

    proptest! {
        #[test]
        fn any_parts_give_the_same_body(parts: Vec<Vec<u8>>) {
            let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            let mut text = Vec::new();
            for part in &parts {
                text.extend(format!("{:x}\r\n", part.len()).into_bytes());
                text.extend(part);
                text.extend(b"\r\n");
            }
            text.extend(b"0\r\n\r\n");
            prop_assert_eq!(read(&text, Framing::Chunked), Ok(parts.concat()));
        }
    }
}
