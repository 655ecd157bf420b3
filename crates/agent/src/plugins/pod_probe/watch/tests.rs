use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use super::*;
use crate::board::PodFacts;
use crate::plugins::pod_probe::list;

fn probe(text: &str) -> Probe {
    let text = format!(r#"[{{"name":"n","containerName":"c","podConditionType":"T","probe":{text}}}]"#);
    list::read(&text).0.remove(0)
}

fn answered(is_success: bool, message: &str) -> Outcome {
    Outcome::Answered { is_success, message: message.to_owned() }
}

#[test]
fn thresholds_count_what_comes_in_a_row() {
    let mut watched =
        Watched::new("x".to_owned(), probe(r#"{"tcpSocket":{"port":1},"successThreshold":2,"failureThreshold":3}"#));
    let mut told = |is_success, message: &str| {
        let condition = watched.take(answered(is_success, message));
        condition.map(|condition| format!("{} {} {}", condition.status.as_str(), condition.reason, condition.message))
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(told(true, "1"), None);
    assert_eq!(told(true, "2"), some("True ProbeSucceeded 2"));
    // Another word for the same outcome is told at once.
    assert_eq!(told(true, "3"), some("True ProbeSucceeded 3"));
    assert_eq!([told(false, "no"), told(false, "no")], [None, None]);
    // Back before the third: it was never down.
    assert_eq!(told(true, "4"), some("True ProbeSucceeded 4"));
    assert_eq!([told(false, "no"), told(false, "no")], [None, None]);
    assert_eq!(told(false, "no"), some("False ProbeFailed no"));
}

#[test]
fn what_cannot_be_asked_is_unknown() {
    let exec = probe(r#"{"exec":{"command":["true"]}}"#);
    let outcome = exec.ask(None);
    let condition = Watched::new("x".to_owned(), exec).take(outcome).unwrap();
    assert_eq!((condition.status, condition.reason.as_str()), (ConditionStatus::Unknown, "ExecNotPossible"));
}

#[test]
fn named_ports_are_found_in_what_the_api_server_told() {
    let named = probe(r#"{"tcpSocket":{"port":"web"}}"#);
    assert_eq!(named.ask(None), Outcome::NotYet);
    let message = "container c has no port named web".to_owned();
    assert_eq!(named.ask(Some(&PodFacts::default())), Outcome::Cannot { reason: "PortNotFound", message });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let ports = BTreeMap::from([(("c".to_owned(), "web".to_owned()), port)]);
    // An address that is not there any more does not hold it up.
    let facts = PodFacts { ip: Some("127.0.0.2".to_owned()), ports };
    assert_eq!(named.ask(Some(&facts)), answered(true, ""));
}

#[test]
fn http_is_judged_as_the_kubelet_does() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        for status in ["200 OK", "302 Found", "404 Not Found"] {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]);
            write!(stream, "HTTP/1.1 {status}\r\nLocation: http://10.0.0.1/\r\n\r\n 7 players \n").unwrap();
        }
    });
    let http = probe(&format!(r#"{{"httpGet":{{"path":"/","port":{port}}},"timeoutSeconds":20}}"#));
    assert_eq!(http.ask(None), answered(true, "7 players"));
    assert_eq!(http.ask(None), answered(true, "7 players"));
    assert_eq!(http.ask(None), answered(false, "it answers 404"));
    server.join().unwrap();
    let Outcome::Answered { is_success: false, message } = http.ask(None) else { panic!("nobody is there") };
    assert_eq!(message, format!("[::1]:{port}: nobody listens"));
    assert_eq!(http.timeout, Duration::from_secs(20));
}
