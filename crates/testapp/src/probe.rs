//! `testapp probe`: as much of an HTTP client as a test needs inside a container that has no other.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

const PATIENCE: Duration = Duration::from_secs(5);

/// Gets, or posts a text, and prints the body; success is a 200 whose body contains the text.
pub(crate) fn probe(url: &str, post: Option<&str>, contains: Option<&str>) -> anyhow::Result<ExitCode> {
    let target = Target::parse(url)?;
    let answer = target.ask(post).with_context(|| format!("cannot get {url}"))?;
    let answer = Answer::parse(&answer).with_context(|| format!("cannot read the answer of {url}"))?;
    io::stdout().write_all(answer.body)?;
    ensure!(answer.status == 200, "{url} answered {}, not 200", answer.status);
    if let Some(text) = contains {
        ensure!(String::from_utf8_lossy(answer.body).contains(text), "the answer of {url} does not contain {text:?}");
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Debug, PartialEq, Eq)]
struct Target {
    authority: String,
    address: String,
    path: String,
}

impl Target {
    fn parse(url: &str) -> anyhow::Result<Self> {
        let Some(rest) = url.strip_prefix("http://") else {
            bail!("{url:?} is not a plain http URL: write http://HOST:PORT/PATH");
        };
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, "/"),
        };
        ensure!(!authority.is_empty(), "{url:?} has no host: write http://HOST:PORT/PATH");
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        Ok(Self {
            authority: authority.to_owned(),
            address: if has_port { authority.to_owned() } else { format!("{authority}:80") },
            path: path.to_owned(),
        })
    }

    fn ask(&self, post: Option<&str>) -> anyhow::Result<Vec<u8>> {
        let address =
            self.address.to_socket_addrs()?.next().with_context(|| format!("{} has no address", self.address))?;
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        // In one write: a server that answers the first bytes and closes would break a second one.
        let posted = post.map(|text| format!("Content-Length: {}\r\n", text.len()));
        let request = format!(
            "{} {} HTTP/1.1\r\nHost: {}\r\n{}Connection: close\r\n\r\n{}",
            if post.is_some() { "POST" } else { "GET" },
            self.path,
            self.authority,
            posted.unwrap_or_default(),
            post.unwrap_or_default()
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer)
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Answer<'a> {
    status: u16,
    body: &'a [u8],
}

impl<'a> Answer<'a> {
    /// The connection was closed after the answer, so the body is all that follows the headers.
    fn parse(bytes: &'a [u8]) -> anyhow::Result<Self> {
        let head_end = bytes.windows(4).position(|window| window == b"\r\n\r\n").context("it has no end of headers")?;
        let head = std::str::from_utf8(&bytes[..head_end]).context("its headers are not text")?;
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.strip_prefix("HTTP/1."))
            .and_then(|rest| rest.split(' ').nth(1))
            .and_then(|status| status.parse().ok())
            .context("it has no HTTP/1 status line")?;
        let chunked = lines.any(|line| line.to_ascii_lowercase().starts_with("transfer-encoding:"));
        ensure!(!chunked, "its body has a transfer encoding, which this client does not undo");
        Ok(Self { status, body: &bytes[head_end + 4..] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        for (url, authority, address, path) in [
            ("http://127.0.0.1:8080/state", "127.0.0.1:8080", "127.0.0.1:8080", "/state"),
            ("http://web/a?b=c", "web", "web:80", "/a?b=c"),
            ("http://web:81", "web:81", "web:81", "/"),
            ("http://[::1]:81/", "[::1]:81", "[::1]:81", "/"),
        ] {
            assert_eq!(
                Target::parse(url).unwrap(),
                Target { authority: authority.to_owned(), address: address.to_owned(), path: path.to_owned() }
            );
        }
    }

    #[test]
    fn a_url_of_another_kind_is_refused() {
        assert_eq!(
            Target::parse("https://web/").unwrap_err().to_string(),
            "\"https://web/\" is not a plain http URL: write http://HOST:PORT/PATH"
        );
        assert_eq!(
            Target::parse("http:///state").unwrap_err().to_string(),
            "\"http:///state\" has no host: write http://HOST:PORT/PATH"
        );
    }

    #[test]
    fn answers() {
        assert_eq!(
            Answer::parse(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nno\r\n").unwrap(),
            Answer { status: 503, body: b"no\r\n" }
        );
        assert_eq!(Answer::parse(b"HTTP/1.0 200 OK\r\n\r\n").unwrap(), Answer { status: 200, body: b"" });
    }

    #[test]
    fn an_answer_that_cannot_be_read_says_why() {
        for (bytes, why) in [
            (&b"HTTP/1.1 200 OK\r\n"[..], "it has no end of headers"),
            (b"SSH-2.0\r\n\r\n", "it has no HTTP/1 status line"),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                "its body has a transfer encoding, which this client does not undo",
            ),
        ] {
            assert_eq!(Answer::parse(bytes).unwrap_err().to_string(), why);
        }
    }
}
