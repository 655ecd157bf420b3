//! How an answer begins.

use std::io::{self, BufRead, Read};

use super::Framing;

/// More than any head of the API server.
const MOST_HEAD_BYTES: u64 = 64 * 1024;

/// How an answer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status.
    pub status: u16,
    /// How the end of the body is told.
    pub framing: Framing,
}

/// Reads it from a connection, up to the first byte of the body.
pub fn read_head(connection: &mut impl BufRead) -> io::Result<Head> {
    read_head_with(connection, |_, _| {})
}

/// As [`read_head`], and shows every header: its name as it came, and its value without blanks around it.
pub fn read_head_with(connection: &mut impl BufRead, mut show: impl FnMut(&str, &str)) -> io::Result<Head> {
    let mut bytes = connection.take(MOST_HEAD_BYTES);
    let mut line = String::new();
    let mut next = |line: &mut String| {
        line.clear();
        bytes.read_line(line)?;
        if line.ends_with('\n') { Ok(()) } else { Err(io::Error::from(io::ErrorKind::UnexpectedEof)) }
    };
    next(&mut line)?;
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)?.trim_end().parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("{:?} is not the begin of HTTP", line.trim_end())))?;
    let mut framing = Framing::UntilClosed;
    loop {
        next(&mut line)?;
        if line.trim_end().is_empty() {
            // These never have a body, whatever their heads say.
            let framing = if matches!(status, 204 | 304) { Framing::Length(0) } else { framing };
            return Ok(Head { status, framing });
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        let value = value.trim();
        show(name, value);
        if name.eq_ignore_ascii_case("transfer-encoding") && value.eq_ignore_ascii_case("chunked") {
            framing = Framing::Chunked;
        } else if name.eq_ignore_ascii_case("content-length") && framing != Framing::Chunked {
            let length =
                value.parse().map_err(|_| io::Error::other(format!("{value:?} is not the length of a body")))?;
            framing = Framing::Length(length);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head(text: &str) -> Result<(u16, Framing), String> {
        let head = read_head(&mut text.as_bytes()).map_err(|error| error.to_string())?;
        Ok((head.status, head.framing))
    }

    #[test]
    fn status_and_framing_are_read_from_a_head() {
        for (text, expected) in [
            ("HTTP/1.1 200 OK\r\nA: b\r\n\r\n{}", (200, Framing::UntilClosed)),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n", (200, Framing::Chunked)),
            ("HTTP/1.0 403 Forbidden\r\n\r\n", (403, Framing::UntilClosed)),
            ("HTTP/1.1 200\r\ncontent-length:  7 \r\n\r\n", (200, Framing::Length(7))),
            ("HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n", (204, Framing::Length(0))),
            // Two ways to tell the end are a way to smuggle; the parts say it themselves.
            ("HTTP/1.1 200 OK\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n", (200, Framing::Chunked)),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 7\r\n\r\n", (200, Framing::Chunked)),
        ] {
            assert_eq!(head(text), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_head_is_refused() {
        assert_eq!(head("SSH-2.0\r\n\r\n"), Err("\"SSH-2.0\" is not the begin of HTTP".to_owned()));
        assert_eq!(head("HTTP/1.1 200 OK\r\nA: b\r\n"), Err("unexpected end of file".to_owned()));
        assert_eq!(
            head("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
            Err("\"-1\" is not the length of a body".to_owned())
        );
        let long = format!("HTTP/1.1 200 OK\r\n{}\r\n\r\n", "a".repeat(100_000));
        assert_eq!(head(&long), Err("unexpected end of file".to_owned()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_head_or_an_error(bytes: Vec<u8>) {
            let _ = read_head(&mut bytes.as_slice());
        }
    }
}
