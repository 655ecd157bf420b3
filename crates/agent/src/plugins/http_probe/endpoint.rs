//! One endpoint: asked, understood, told.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use anyhow::{anyhow, ensure};
use pillion_agent_api::{Address, Endpoint, JsonPath, Storage, Url};

use super::course::{Course, NO_STATE};
use crate::asking::{self, Answer, Failure, Request};
use crate::json_field;
use crate::plugin::Context;
use crate::talk::tell;

/// No answer that holds a state is longer.
const MOST_BODY_BYTES: usize = 64 * 1024;
/// The state of a port that takes connections.
const OPEN: &str = "open";

/// An endpoint that is asked.
#[derive(Debug)]
pub(super) struct Asked {
    source: String,
    host: String,
    port: u16,
    /// A port alone is not asked for anything.
    question: Option<Question>,
    timeout: Duration,
    course: Course,
    storage: Storage,
}

#[derive(Debug)]
struct Question {
    request: Request,
    expected_status: u16,
    json_path: Option<JsonPath>,
}

impl Asked {
    pub(super) fn new(source: String, endpoint: &Endpoint) -> anyhow::Result<Self> {
        let (host, port, question) = match &endpoint.address {
            Address::Tcp { host, port } => (host.clone(), *port, None),
            Address::Http { url, method, headers, expected_status } => {
                let Url { scheme, host, port, path, query } =
                    Url::parse(url).map_err(|why| anyhow!("{url} cannot be asked: it {why}"))?;
                ensure!(scheme == "http", "{url} cannot be asked: a probe asks inside the pod, write http://{host}");
                let port = port.unwrap_or(80);
                let query = query.map(|query| format!("?{query}")).unwrap_or_default();
                let path = if path.is_empty() { "/" } else { path };
                let bracketed = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
                let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
                let request = Request::new(method, &format!("{bracketed}:{port}"), &format!("{path}{query}"), headers)?;
                let json_path = endpoint.json_path.clone();
                (host.to_owned(), port, Some(Question { request, expected_status: *expected_status, json_path }))
            }
        };
        Ok(Self {
            source,
            host,
            port,
            question,
            timeout: Duration::from_secs(u64::from(endpoint.timeout_seconds).max(1)),
            course: Course::new(endpoint),
            storage: endpoint.storage.clone(),
        })
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Asks until it is time to end.
    pub(super) fn watch(&mut self, context: &Context, interval: Duration) {
        loop {
            let answer = self.ask();
            if context.stop.is_stopped() {
                return;
            }
            let failure = answer.as_ref().err().map(|failure| failure.message.clone());
            if let Some(finding) = self.course.take(answer) {
                let Self { source, host, port, .. } = self;
                let because = failure.map(|message| format!(", because {message}")).unwrap_or_default();
                tell(format_args!("{source}: {host}:{port} is {:?}{because}", finding.state));
                context.store(source, &self.storage, finding);
            }
            if context.stop.wait(interval) {
                return;
            }
        }
    }

    fn ask(&self) -> Result<String, Failure> {
        let end = Instant::now() + self.timeout;
        let addresses = self.addresses()?;
        let Some(question) = &self.question else {
            return asking::ask_port(&addresses, end).map(|()| OPEN.to_owned());
        };
        let stream = asking::connect(&addresses, end)?;
        let answer = asking::ask(stream, &question.request, MOST_BODY_BYTES)?;
        question.state_in(&answer)
    }

    fn addresses(&self) -> Result<Vec<SocketAddr>, Failure> {
        // No name server is asked for it, as that would wait for longer than the question may take.
        if self.host == "localhost" {
            let own = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
            return Ok(own.map(|ip| SocketAddr::new(ip, self.port)).to_vec());
        }
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        Ok(found.map_err(|error| Failure::new("NoAddress", format!("{}: {error}", self.host)))?.collect())
    }
}

impl Question {
    fn state_in(&self, answer: &Answer) -> Result<String, Failure> {
        if answer.status != self.expected_status {
            let message = format!("it answers {} and not {}", answer.status, self.expected_status);
            return Err(Failure::new("UnexpectedStatus", message));
        }
        if answer.has_more {
            return Err(Failure::new(NO_STATE, format!("the answer is longer than {MOST_BODY_BYTES} bytes")));
        }
        match &self.json_path {
            Some(JsonPath(path)) => json_field::find(answer.body.as_slice(), path)
                .map_err(|error| Failure::new(NO_STATE, format!("of the answer: {error}"))),
            None => str::from_utf8(&answer.body)
                .map(|text| text.trim().to_owned())
                .map_err(|_| Failure::new(NO_STATE, "the answer is no text")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// An answer that is longer than any that holds a state.
    static LONG: [u8; 70_000] = {
        let mut bytes = [b'a'; 70_000];
        let head = *b"HTTP/1.1 200 OK\r\n\r\n";
        let mut at = 0;
        while at < head.len() {
            bytes[at] = head[at];
            at += 1;
        }
        bytes
    };

    fn endpoint(address: Address) -> Endpoint {
        Endpoint {
            address,
            timeout_seconds: 1,
            success_threshold: 1,
            failure_threshold: 1,
            failure_state: "unknown".to_owned(),
            json_path: None,
            storage: Storage::default(),
        }
    }

    fn http(port: u16) -> Address {
        Address::Http {
            url: format!("http://127.0.0.1:{port}/state"),
            method: "GET".to_owned(),
            headers: BTreeMap::new(),
            expected_status: 200,
        }
    }

    /// Asks a server that answers one connection with these bytes, one after the other with this pause.
    fn asked(
        answer: &'static [u8],
        pause: Duration,
        json_path: Option<&str>,
    ) -> Result<String, (&'static str, String)> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint {
            json_path: json_path.map(|path| JsonPath(path.split('.').map(str::to_owned).collect())),
            ..endpoint(http(listener.local_addr().unwrap().port()))
        };
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 1024];
            let _ = stream.read(&mut head);
            if pause.is_zero() {
                let _ = stream.write_all(answer);
            } else {
                for byte in answer {
                    if stream.write_all(&[*byte]).is_err() {
                        return;
                    }
                    thread::sleep(pause);
                }
            }
        });
        let asked = Asked::new("x".to_owned(), &endpoint).unwrap();
        asked.ask().map_err(|failure| (failure.reason, failure.message))
    }

    fn at_once(answer: &'static [u8], json_path: Option<&str>) -> Result<String, (&'static str, String)> {
        asked(answer, Duration::ZERO, json_path)
    }

    #[test]
    fn the_state_is_the_trimmed_body_or_a_part_of_it() {
        assert_eq!(at_once(b"HTTP/1.1 200 OK\r\n\r\n idle\r\n", None), Ok("idle".to_owned()));
        let json = b"HTTP/1.1 200 OK\r\n\r\n{\"players\":[{\"count\":7}]}";
        assert_eq!(at_once(json, Some("players.0.count")), Ok("7".to_owned()));
    }

    #[test]
    fn every_other_answer_is_a_failure_with_its_reason() {
        let no_state = |message: &str| Err(("NoState", message.to_owned()));
        assert_eq!(
            at_once(b"HTTP/1.1 404 Not Found\r\n\r\nidle", None),
            Err(("UnexpectedStatus", "it answers 404 and not 200".to_owned()))
        );
        assert_eq!(at_once(b"HTTP/1.1 200 OK\r\n\r\n\xff", None), no_state("the answer is no text"));
        assert_eq!(at_once(b"HTTP/1.1 200 OK\r\n\r\n{}", Some("a")), no_state("of the answer: it has nothing at a"));
        assert_eq!(at_once(&LONG, None), no_state("the answer is longer than 65536 bytes"));
        assert_eq!(at_once(b"SSH-2.0\r\n", None).unwrap_err().0, "BrokenAnswer");
    }

    #[test]
    fn the_time_is_for_the_whole_question() {
        // Each byte comes soon after the one before, and all of them never.
        let slow = asked(b"HTTP/1.1 200 OK\r\n\r\nidle idle idle idle", Duration::from_millis(100), None);
        assert_eq!(slow.unwrap_err().0, "TimedOut");
    }

    #[test]
    fn what_cannot_be_asked_is_refused() {
        let refused = |url: &str| {
            let Address::Http { method, headers, expected_status, .. } = http(1) else { panic!("it is http") };
            let address = Address::Http { url: url.to_owned(), method, headers, expected_status };
            Asked::new("x".to_owned(), &endpoint(address)).unwrap_err().to_string()
        };
        assert_eq!(
            refused("https://localhost/x"),
            "https://localhost/x cannot be asked: a probe asks inside the pod, write http://localhost"
        );
        assert_eq!(refused("localhost"), "localhost cannot be asked: it has no scheme");
    }

    #[test]
    fn a_port_is_open_or_nobody_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let tcp = |host: &str| endpoint(Address::Tcp { host: host.to_owned(), port });
        let asked = Asked::new("x".to_owned(), &tcp("127.0.0.1")).unwrap();
        let by_name = Asked::new("x".to_owned(), &tcp("localhost")).unwrap();
        assert_eq!(by_name.ask(), Ok("open".to_owned()));
        assert_eq!(asked.ask(), Ok("open".to_owned()));
        drop(listener);
        let message = format!("127.0.0.1:{port}: nobody listens");
        assert_eq!(asked.ask(), Err(Failure::new("ConnectionRefused", message)));
    }
}
