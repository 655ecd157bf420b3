//! One question of a probe to the pod itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Instant;

use rustls::StreamOwned;

use super::list::{Handler, Port, Probe};
use super::unverified;
use crate::asking::{self, Answer, Failure, Request};
use crate::board::PodFacts;

/// As much as a message can hold, and blanks around it.
const MOST_BODY_BYTES: usize = 10 * 1024;

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A success or a failure, with what the app said.
    Answered { is_success: bool, message: String },
    /// It cannot be asked: why, as one word and for people.
    Cannot { reason: &'static str, message: String },
    /// What is needed to ask is not known yet.
    NotYet,
}

impl Probe {
    pub(super) fn ask(&self, facts: Option<&PodFacts>) -> Outcome {
        let port = match &self.handler {
            Handler::Http { port, .. } | Handler::Tcp { port } => port,
            Handler::Cannot { reason, message } => return Outcome::Cannot { reason, message: message.clone() },
        };
        let port = match self.number_of(port, facts) {
            Ok(port) => port,
            Err(outcome) => return outcome,
        };
        let ip = facts.and_then(|facts| facts.ip.as_ref()?.parse::<IpAddr>().ok());
        let own = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        let addresses: Vec<SocketAddr> = ip.into_iter().chain(own).map(|ip| SocketAddr::new(ip, port)).collect();
        let end = Instant::now() + self.timeout;
        let answered = match &self.handler {
            Handler::Http { is_tls, request, .. } => ask_http(&addresses, end, request, *is_tls),
            _ => asking::ask_port(&addresses, end).map(|()| (true, String::new())),
        };
        let (is_success, message) = answered.unwrap_or_else(|failure| (false, failure.message));
        Outcome::Answered { is_success, message }
    }

    fn number_of(&self, port: &Port, facts: Option<&PodFacts>) -> Result<u16, Outcome> {
        let name = match port {
            Port::Number(0) => {
                return Err(Outcome::Cannot { reason: "PortNotFound", message: "0 is not a port".to_owned() });
            }
            Port::Number(number) => return Ok(*number),
            Port::Name(name) => name,
        };
        let key = (self.container.clone(), name.clone());
        let found = facts.map(|facts| facts.ports.get(&key).copied());
        match (found, name.parse()) {
            (Some(Some(number)), _) | (_, Ok(number)) => Ok(number),
            (None, Err(_)) => Err(Outcome::NotYet),
            (Some(None), Err(_)) => {
                let message = format!("container {} has no port named {name}", self.container);
                Err(Outcome::Cannot { reason: "PortNotFound", message })
            }
        }
    }
}

fn ask_http(
    addresses: &[SocketAddr],
    end: Instant,
    request: &Request,
    is_tls: bool,
) -> Result<(bool, String), Failure> {
    let stream = asking::connect(addresses, end)?;
    let Answer { status, body, .. } = if is_tls {
        let session = unverified::session().map_err(|error| Failure::new("NoTls", format!("{error:#}")))?;
        asking::ask(StreamOwned::new(session, stream), request, MOST_BODY_BYTES)?
    } else {
        asking::ask(stream, request, MOST_BODY_BYTES)?
    };
    // As the kubelet judges it; a redirect is an answer of the app, and is not followed.
    if (200..400).contains(&status) {
        Ok((true, String::from_utf8_lossy(&body).trim().to_owned()))
    } else {
        Ok((false, format!("it answers {status}")))
    }
}
