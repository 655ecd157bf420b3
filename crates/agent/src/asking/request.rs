//! A question over HTTP.

use std::fmt::Write as _;
use std::io::{BufReader, Read, Write};

use super::Failure;
use crate::http::{Body, Framing, read_head};

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// All of it, as it is sent.
    text: String,
    has_body: bool,
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// At most so much as was wanted, and whether there was more.
    pub(crate) body: Vec<u8>,
    pub(crate) has_more: bool,
}

impl Request {
    /// Refuses what would be two requests, or none. Headers of the caller go before ours.
    pub(crate) fn new<'a>(
        method: &str,
        host: &str,
        path: &str,
        headers: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> anyhow::Result<Self> {
        let is_word = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        anyhow::ensure!(is_word(method) && is_word(host), "{method} {host} cannot be asked");
        anyhow::ensure!(
            path.starts_with('/') && is_word(path),
            "{path:?} is not a path: begin with / and escape blanks"
        );
        let mut ours = vec![
            ("Host", host),
            ("User-Agent", concat!("pillion-agent/", env!("CARGO_PKG_VERSION"))),
            ("Accept", "*/*"),
        ];
        if method == "POST" {
            ours.push(("Content-Length", "0"));
        }
        let mut text = format!("{method} {path} HTTP/1.1\r\n");
        for (name, value) in headers {
            let is_token = is_word(name)
                && !name
                    .contains([':', '(', ')', '<', '>', '@', ',', ';', '"', '/', '[', ']', '?', '=', '{', '}', '\\']);
            anyhow::ensure!(is_token, "{name:?} is not the name of a header");
            anyhow::ensure!(
                !value.contains(|c: char| c.is_control() && c != '\t'),
                "header {name} holds a control character"
            );
            let is_reserved = ["connection", "content-length", "transfer-encoding", "upgrade"]
                .iter()
                .any(|reserved| name.eq_ignore_ascii_case(reserved));
            anyhow::ensure!(!is_reserved, "header {name} is the agent's own");
            ours.retain(|(own, _)| !own.eq_ignore_ascii_case(name));
            let _ = write!(text, "{name}: {value}\r\n");
        }
        for (name, value) in ours {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        text += "Connection: close\r\n\r\n";
        Ok(Self { text, has_body: method != "HEAD" })
    }
}

/// Asks, and reads at most so many bytes of the body.
pub(crate) fn ask(mut stream: impl Read + Write, request: &Request, most: usize) -> Result<Answer, Failure> {
    let broken = |error: &std::io::Error| match Failure::of_io(error, "the answer breaks off") {
        Failure { reason: "BrokenConnection", message } => Failure { reason: "BrokenAnswer", message },
        failure => failure,
    };
    stream.write_all(request.text.as_bytes()).and_then(|()| stream.flush()).map_err(|error| broken(&error))?;
    let mut stream = BufReader::with_capacity(4096, stream);
    let head = loop {
        let head = read_head(&mut stream).map_err(|error| broken(&error))?;
        // 1xx come before the answer.
        if head.status >= 200 {
            break head;
        }
    };
    let framing = if request.has_body { head.framing } else { Framing::Length(0) };
    let mut body = Vec::new();
    let most_and_one = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    Body::new(stream, framing).take(most_and_one).read_to_end(&mut body).map_err(|error| broken(&error))?;
    let has_more = body.len() > most;
    body.truncate(most);
    Ok(Answer { status: head.status, body, has_more })
}

#[cfg(test)]
mod tests {
    use std::io;

    use proptest::prelude::*;

    use super::*;

    /// Takes what is asked, and answers with what it holds.
    struct Peer {
        answer: io::Cursor<Vec<u8>>,
        asked: Vec<u8>,
    }

    impl Read for Peer {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.answer.read(buffer)
        }
    }

    impl Write for Peer {
        fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
            self.asked.write(buffer)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn answered(method: &str, answer: &[u8]) -> Result<Answer, Failure> {
        let request = Request::new(method, "h", "/", []).unwrap();
        ask(Peer { answer: io::Cursor::new(answer.to_vec()), asked: vec![] }, &request, 4)
    }

    fn text_of(method: &str, path: &str, headers: &[(&str, &str)]) -> Result<String, String> {
        let request = Request::new(method, "localhost:80", path, headers.iter().copied());
        request.map(|request| request.text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_question_is_one_request_with_the_headers_that_were_given() {
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            text_of("GET", "/a?b=c", &[("X-A", "1 2"), ("host", "other")]),
            Ok(format!(
                "GET /a?b=c HTTP/1.1\r\nX-A: 1 2\r\nhost: other\r\nUser-Agent: pillion-agent/{version}\r\n\
                 Accept: */*\r\nConnection: close\r\n\r\n"
            ))
        );
        assert!(text_of("POST", "/", &[]).unwrap().contains("\r\nContent-Length: 0\r\n"));
    }

    #[test]
    fn what_would_be_two_requests_is_refused() {
        for (path, headers, told) in [
            ("a", &[][..], "\"a\" is not a path: begin with / and escape blanks"),
            ("/a b", &[], "\"/a b\" is not a path: begin with / and escape blanks"),
            ("/\r\nX: y", &[], "\"/\\r\\nX: y\" is not a path: begin with / and escape blanks"),
            ("/", &[("X", "a\r\nY: b")], "header X holds a control character"),
            ("/", &[("X: y", "a")], "\"X: y\" is not the name of a header"),
            ("/", &[("", "a")], "\"\" is not the name of a header"),
            ("/", &[("Transfer-encoding", "chunked")], "header Transfer-encoding is the agent's own"),
        ] {
            assert_eq!(text_of("GET", path, headers), Err(told.to_owned()));
        }
    }

    #[test]
    fn answers_are_read_up_to_what_is_wanted() {
        let answer = |status, body: &[u8], has_more| Ok(Answer { status, body: body.to_vec(), has_more });
        assert_eq!(answered("GET", b"HTTP/1.1 200 OK\r\n\r\nidle"), answer(200, b"idle", false));
        assert_eq!(answered("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nidle"), answer(200, b"id", false));
        assert_eq!(answered("GET", b"HTTP/1.1 503 No\r\n\r\nidle!"), answer(503, b"idle", true));
        assert_eq!(answered("GET", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"), answer(200, b"", false));
        assert_eq!(answered("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), answer(200, b"", false));
        let broken = answered("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nid").unwrap_err();
        assert_eq!(
            (broken.reason, broken.message.as_str()),
            ("BrokenAnswer", "the answer breaks off: unexpected end of file")
        );
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_refused(answer: Vec<u8>) {
            if let Ok(answer) = answered("GET", &answer) {
                prop_assert!(answer.body.len() <= 4);
            }
        }
    }
}
