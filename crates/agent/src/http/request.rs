//! How a request begins, as far as a port of the agent reads one. What is odd is refused: nobody who means well is odd
//! here.

use std::io::{self, BufRead, ErrorKind, Read};

const MOST_HEAD_BYTES: u64 = 16 * 1024;
const MOST_BODY_BYTES: u64 = 16 * 1024;

/// How a request begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// As it came.
    pub method: String,
    /// What comes before `?`, still encoded.
    pub path: String,
    /// What follows `?`, still encoded.
    pub query: String,
    /// Of `Authorization: Bearer`.
    pub token: Option<String>,
    /// In lower case, without parameters.
    pub content_type: String,
    /// Bytes of the body.
    pub length: u64,
}

fn bad(message: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, message.to_owned())
}

/// Reads the head of a request. What is none is `InvalidData`; a connection that fails fails as it does.
pub fn read_request(connection: &mut impl BufRead) -> io::Result<Request> {
    let mut bytes = connection.take(MOST_HEAD_BYTES);
    let mut request = first_line(&next_line(&mut bytes)?)?;
    let mut has_length = false;
    loop {
        let line = next_line(&mut bytes)?;
        if line.is_empty() {
            return Ok(request);
        }
        let (name, value) = line.split_once(':').ok_or_else(|| bad("a header has no colon"))?;
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "authorization" if request.token.is_some() => return Err(bad("there are two Authorization headers")),
            "authorization" => request.token = Some(bearer(value)?),
            "content-type" => {
                request.content_type = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            }
            "content-length" if has_length => return Err(bad("there are two Content-Length headers")),
            "content-length" => {
                has_length = true;
                request.length = value.parse().map_err(|_| bad("Content-Length is no number"))?;
                if request.length > MOST_BODY_BYTES {
                    return Err(bad("the body is too large"));
                }
            }
            "transfer-encoding" => return Err(bad("send the body with its Content-Length, not in parts")),
            _ => {}
        }
    }
}

/// Reads the body that follows it.
pub fn read_body(connection: &mut impl Read, request: &Request) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    connection.by_ref().take(request.length).read_to_end(&mut body)?;
    if body.len() as u64 == request.length { Ok(body) } else { Err(bad("the body broke off")) }
}

fn next_line(bytes: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    bytes.read_until(b'\n', &mut line)?;
    let text = line.strip_suffix(b"\n").ok_or_else(|| bad("the head broke off or is too large"))?;
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    let is_text = text.iter().all(|byte| (b' '..=b'~').contains(byte) || *byte == b'\t');
    if is_text { Ok(String::from_utf8_lossy(text).into_owned()) } else { Err(bad("the head is not ASCII")) }
}

fn first_line(line: &str) -> io::Result<Request> {
    let words: Vec<&str> = line.split(' ').collect();
    let [method, target, "HTTP/1.1" | "HTTP/1.0"] = words.as_slice() else {
        return Err(bad("this is no request of HTTP/1.1"));
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    Ok(Request { method: (*method).to_owned(), path: path.to_owned(), query: query.to_owned(), ..Request::default() })
}

fn bearer(value: &str) -> io::Result<String> {
    let (scheme, token) = value.split_once(' ').unwrap_or_default();
    let token = token.trim();
    let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    if scheme.eq_ignore_ascii_case("bearer") && is_token {
        Ok(token.to_owned())
    } else {
        Err(bad("Authorization is not a bearer token"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(text: &str) -> Result<Request, String> {
        read_request(&mut text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_request_is_read() {
        let text = "POST /hot-update?version=v1 HTTP/1.1\r\nHost: a\r\nauthorization: bearer a.b.c\r\n\
                    Content-Type: application/json; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}";
        let expected = Request {
            method: "POST".to_owned(),
            path: "/hot-update".to_owned(),
            query: "version=v1".to_owned(),
            token: Some("a.b.c".to_owned()),
            content_type: "application/json".to_owned(),
            length: 2,
        };
        assert_eq!(request(text), Ok(expected.clone()));
        assert_eq!(read_body(&mut "{}".as_bytes(), &expected).unwrap(), b"{}");
        assert_eq!(read_body(&mut "{".as_bytes(), &expected).unwrap_err().to_string(), "the body broke off");
    }

    #[test]
    fn what_is_odd_is_refused() {
        let long = format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "a".repeat(20_000));
        for (text, why) in [
            ("", "the head broke off or is too large"),
            ("GET / HTTP/1.1\r\nA: b\r\n", "the head broke off or is too large"),
            (long.as_str(), "the head broke off or is too large"),
            ("GET /\r\n\r\n", "this is no request of HTTP/1.1"),
            ("GET  / HTTP/1.1\r\n\r\n", "this is no request of HTTP/1.1"),
            ("\u{16}\u{3}\u{1}\n\n", "the head is not ASCII"),
            ("GET / HTTP/1.1\r\nA\r\n\r\n", "a header has no colon"),
            ("GET / HTTP/1.1\r\nAuthorization: Basic YQ==\r\n\r\n", "Authorization is not a bearer token"),
            ("GET / HTTP/1.1\r\nAuthorization: Bearer\r\n\r\n", "Authorization is not a bearer token"),
            (
                "GET / HTTP/1.1\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n",
                "there are two Authorization headers",
            ),
            (
                "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                "there are two Content-Length headers",
            ),
            ("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "Content-Length is no number"),
            ("POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", "the body is too large"),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
                "send the body with its Content-Length, not in parts",
            ),
        ] {
            assert_eq!(request(text), Err(why.to_owned()), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_an_error(
            bytes: Vec<u8>,
            lines in prop::collection::vec("[A-Za-z-]{0,20}:? ?[ -~]{0,20}", 0..5),
        ) {
            let _ = read_request(&mut bytes.as_slice());
            let text = format!("POST /x?y HTTP/1.1\r\n{}\r\n\r\n", lines.join("\r\n"));
            if let Ok(request) = read_request(&mut text.as_bytes()) {
                prop_assert!(request.length <= MOST_BODY_BYTES);
            }
        }
    }
}
