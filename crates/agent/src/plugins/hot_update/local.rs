//! Requests to the app itself: plain HTTP to an address of this pod, a small answer.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use pillion_agent_api::Url;

use crate::asking::{Request, ask};

use super::line::{Line, Patience};

/// More of an answer is not read.
const MOST_BYTES: usize = 64 * 1024;

/// Where in this pod to ask, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Local {
    addresses: Vec<SocketAddr>,
    authority: String,
    target: String,
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) text: String,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NoAnswer {
    /// Whether nobody listens at all.
    pub(super) is_nobody_there: bool,
    pub(super) message: String,
}

impl Local {
    /// Reads a URL; says why it is not one of this pod.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|why| format!("{text:?} {why}"))?;
        if url.scheme != "http" || !url.is_local() {
            return Err(format!("{text:?} is not of this pod: write http://127.0.0.1:PORT/PATH"));
        }
        let port = url.port.unwrap_or(80);
        // Not looked up: the name means this pod, whatever a resolver says.
        let addresses: Vec<IpAddr> = match url.host {
            "127.0.0.1" => vec![Ipv4Addr::LOCALHOST.into()],
            "::1" => vec![Ipv6Addr::LOCALHOST.into()],
            _ => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
        };
        let host = if url.host.contains(':') { format!("[{}]", url.host) } else { url.host.to_owned() };
        let path = if url.path.is_empty() { "/" } else { url.path };
        Ok(Self {
            addresses: addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect(),
            authority: format!("{host}:{port}"),
            target: url.query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}")),
        })
    }

    /// Asks once.
    pub(super) fn ask(&self, method: &str, patience: &Patience) -> Result<Answer, NoAnswer> {
        let line = self.connect(patience).map_err(|error| NoAnswer {
            is_nobody_there: error.kind() == io::ErrorKind::ConnectionRefused,
            message: error.to_string(),
        })?;
        let broken = |message: String| NoAnswer { is_nobody_there: false, message };
        let request =
            Request::new(method, &self.authority, &self.target, []).map_err(|error| broken(error.to_string()))?;
        let answer = ask(line, &request, MOST_BYTES).map_err(|failure| broken(failure.message))?;
        Ok(Answer { status: answer.status, text: String::from_utf8_lossy(&answer.body).into_owned() })
    }

    fn connect(&self, patience: &Patience) -> io::Result<Line> {
        let mut tries = self.addresses.iter().map(|address| Line::connect(address, patience));
        let first = tries.next().unwrap_or_else(|| Err(io::ErrorKind::AddrNotAvailable.into()));
        first.or_else(|error| tries.find_map(Result::ok).ok_or(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_pod_is_asked() {
        let local = Local::parse("http://localhost:8080/reload?now").unwrap();
        assert_eq!((local.authority.as_str(), local.target.as_str()), ("localhost:8080", "/reload?now"));
        assert_eq!(local.addresses, ["127.0.0.1:8080".parse().unwrap(), "[::1]:8080".parse().unwrap()]);
        assert_eq!(Local::parse("http://[::1]").unwrap().addresses, ["[::1]:80".parse().unwrap()]);
        for url in ["http://10.0.0.1/", "http://169.254.169.254/", "https://127.0.0.1/", "http://localhost.evil/", "x"]
        {
            assert!(Local::parse(url).is_err(), "{url}");
        }
    }
}
