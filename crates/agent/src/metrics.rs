//! Metrics on a port, as Prometheus reads them. The port is opened only where a configuration names it, and it answers one
//! question: `GET /metrics`.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::asking::Timed;
use crate::board::Board;
use crate::plugin::STACK_BYTES;
use crate::stop::Stop;

/// For a whole request: whoever is slower is not served, and nobody else meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);
/// More than any scraper sends.
const MOST_REQUEST_BYTES: u64 = 8 * 1024;

/// An open port, closed when dropped.
#[derive(Debug)]
pub(crate) struct MetricsPort {
    address: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl MetricsPort {
    /// Opens it on all addresses of the pod.
    pub(crate) fn open(port: u16, board: Arc<Board>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))
            .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))?;
        let address = listener.local_addr()?;
        let stop = Stop::default();
        let thread = thread::Builder::new().name("metrics".to_owned()).stack_size(STACK_BYTES).spawn({
            let stop = stop.clone();
            move || serve(&listener, &board, &stop)
        })?;
        Ok(Self { address, stop, thread: Some(thread) })
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for MetricsPort {
    fn drop(&mut self) {
        self.stop.stop();
        // It sleeps until somebody connects.
        let own: SocketAddr = if self.address.is_ipv4() {
            (Ipv4Addr::LOCALHOST, self.port()).into()
        } else {
            (Ipv6Addr::LOCALHOST, self.port()).into()
        };
        if TcpStream::connect_timeout(&own, PATIENCE).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, board: &Board, stop: &Stop) {
    for stream in listener.incoming() {
        if stop.is_stopped() {
            return;
        }
        match stream {
            // A scraper that goes away is its own business.
            Ok(stream) => drop(answer(stream, board)),
            // Too many open files, for one: it will pass.
            Err(_) => drop(stop.wait(Duration::from_millis(100))),
        }
    }
}

fn answer(stream: TcpStream, board: &Board) -> io::Result<()> {
    let mut request = BufReader::with_capacity(1024, Timed::new(stream, Instant::now() + PATIENCE));
    let mut head = (&mut request).take(MOST_REQUEST_BYTES);
    let mut first = String::new();
    head.read_line(&mut first)?;
    let mut line = String::new();
    while !matches!(line.as_str(), "\r\n" | "\n") {
        line.clear();
        if head.read_line(&mut line)? == 0 {
            return Ok(());
        }
    }
    let mut words = first.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, body) = match (method, path.split('?').next()) {
        ("GET", Some("/metrics")) => ("200 OK", text_of(board)),
        (_, Some("/metrics")) => ("405 Method Not Allowed", String::new()),
        _ => ("404 Not Found", String::new()),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    request.get_mut().write_all(answer.as_bytes())
}

fn text_of(board: &Board) -> String {
    let mut text = String::new();
    for (name, value) in board.metrics() {
        let _ = write!(text, "# TYPE {name} gauge\n{name} {value}\n");
    }
    let counters = board.counters();
    for (name, help, count) in [
        ("writes", "Writes that the API server took.", counters.writes),
        ("write_failures", "Writes that failed or were refused.", counters.failures),
    ] {
        let name = format!("pillion_agent_{name}_total");
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {count}\n");
    }
    if !counters.reasserts.is_empty() {
        let name = "pillion_agent_reasserts_total";
        let _ = write!(text, "# HELP {name} Marks that were set again.\n# TYPE {name} counter\n");
        for (writer, count) in &counters.reasserts {
            let writer = writer.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = writeln!(text, "{name}{{overwritten_by=\"{writer}\"}} {count}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::board::Marks;

    fn ask(port: u16, request: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn metrics(name: &str, value: f64) -> Marks {
        Marks { metrics: BTreeMap::from([(name.to_owned(), value)]), ..Marks::default() }
    }

    /// Another implementation panics at the first sample, and at the second plugin that has a metric.
    #[test]
    fn b06_every_source_may_have_gauges() {
        let board = Arc::<Board>::default();
        let port = MetricsPort::open(0, Arc::clone(&board)).unwrap();
        board.post("http_probe/0", metrics("players", 7.0));
        board.post("http_probe/1", metrics("load", 0.5));
        board.count(|counters| counters.reasserts.extend([("a\"b".to_owned(), 3)]));
        let expected = "# TYPE load gauge\nload 0.5\n# TYPE players gauge\nplayers 7\n\
            # HELP pillion_agent_writes_total Writes that the API server took.\n\
            # TYPE pillion_agent_writes_total counter\npillion_agent_writes_total 0\n\
            # HELP pillion_agent_write_failures_total Writes that failed or were refused.\n\
            # TYPE pillion_agent_write_failures_total counter\npillion_agent_write_failures_total 0\n\
            # HELP pillion_agent_reasserts_total Marks that were set again.\n\
            # TYPE pillion_agent_reasserts_total counter\n\
            pillion_agent_reasserts_total{overwritten_by=\"a\\\"b\"} 3\n";
        let answer = ask(port.port(), "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(answer.split_once("\r\n\r\n").unwrap().1, expected);
        // A gauge whose state is no number any more is gone.
        board.post("http_probe/0", Marks::default());
        assert!(!ask(port.port(), "GET /metrics HTTP/1.1\r\n\r\n").contains("players"));
    }

    /// Another implementation answers on every port whatever any of its parts registered.
    #[test]
    fn b07_the_port_answers_nothing_but_metrics() {
        let port = MetricsPort::open(0, Arc::default()).unwrap();
        for (request, status) in [
            ("GET /metrics?x=y HTTP/1.1\r\n\r\n", "200"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
            ("GET /hot-update HTTP/1.1\r\n\r\n", "404"),
            ("POST /hot-update HTTP/1.1\r\n\r\n", "404"),
            ("GET / HTTP/1.1\r\n\r\n", "404"),
            ("\r\n\r\n", "404"),
        ] {
            assert_eq!(ask(port.port(), request).split(' ').nth(1), Some(status), "{request:?}");
        }
        // One that sends for ever is cut off.
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port.port())).unwrap();
        let part = vec![b'a'; 64 * 1024];
        assert!((0..1_000).any(|_| stream.write_all(&part).is_err()), "it took 64 MB of one line");
        // So is one that sends a little now and then.
        let begin = Instant::now();
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port.port())).unwrap();
        while stream.write_all(b"a").is_ok() {
            assert!(begin.elapsed() < PATIENCE * 10, "it waits for ever");
            thread::sleep(PATIENCE / 10);
        }
    }

    #[test]
    fn a_closed_port_can_be_opened_again() {
        let first = MetricsPort::open(0, Arc::default()).unwrap();
        let number = first.port();
        drop(first);
        assert_eq!(MetricsPort::open(number, Arc::default()).unwrap().port(), number);
    }
}
