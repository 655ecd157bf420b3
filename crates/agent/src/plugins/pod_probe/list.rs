//! The annotation: a JSON list of probes as Kubernetes has them, each with the condition that tells its outcome.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::asking::Request;

/// More than any pod needs; each has a thread.
const MOST_PROBES: usize = 32;

/// One probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    /// The type of the condition that tells its outcome.
    pub(super) condition: String,
    pub(super) container: String,
    pub(super) handler: Handler,
    pub(super) initial_delay: Duration,
    pub(super) period: Duration,
    pub(super) timeout: Duration,
    pub(super) success_threshold: u32,
    pub(super) failure_threshold: u32,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Handler {
    Http {
        port: Port,
        is_tls: bool,
        request: Request,
    },
    Tcp {
        port: Port,
    },
    /// What an agent cannot or must not do: why, as one word and for people.
    Cannot {
        reason: &'static str,
        message: String,
    },
}

/// A port, by number or by the name that a container gives it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum Port {
    Number(u16),
    Name(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    #[serde(default)]
    name: String,
    #[serde(default)]
    container_name: String,
    probe: ListedProbe,
    #[serde(default)]
    pod_condition_type: String,
}

/// Fields that we do not know are for others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedProbe {
    exec: Option<IgnoredAny>,
    grpc: Option<IgnoredAny>,
    http_get: Option<HttpGet>,
    tcp_socket: Option<TcpSocket>,
    #[serde(default)]
    initial_delay_seconds: i64,
    #[serde(default)]
    period_seconds: i64,
    #[serde(default)]
    timeout_seconds: i64,
    #[serde(default)]
    success_threshold: i64,
    #[serde(default)]
    failure_threshold: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HttpGet {
    #[serde(default)]
    path: String,
    port: Port,
    #[serde(default)]
    host: String,
    #[serde(default)]
    scheme: String,
    #[serde(default)]
    http_headers: Vec<Header>,
}

#[derive(Deserialize)]
struct TcpSocket {
    port: Port,
    #[serde(default)]
    host: String,
}

#[derive(Deserialize)]
struct Header {
    name: String,
    #[serde(default)]
    value: String,
}

/// Reads the annotation: its probes, and what is wrong with it.
pub(super) fn read(text: &str) -> (Vec<Probe>, Vec<String>) {
    if text.trim().is_empty() {
        return (Vec::new(), Vec::new());
    }
    let listed: Vec<Listed> = match serde_json::from_str(text) {
        Ok(listed) => listed,
        Err(error) => return (Vec::new(), vec![format!("it is not a list of probes: {error}")]),
    };
    let (mut probes, mut problems, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    for Listed { name, container_name, probe, pod_condition_type } in listed {
        // Its outcome would be told nowhere.
        if pod_condition_type.is_empty() {
            continue;
        }
        if probes.len() == MOST_PROBES {
            problems.push(format!("it lists more than {MOST_PROBES} probes: {name} and those after it are not run"));
            break;
        }
        if !seen.insert(pod_condition_type.clone()) {
            problems.push(format!("{name}: condition {pod_condition_type} is told by another probe: it is not run"));
            continue;
        }
        probes.push(probe.complete(pod_condition_type, container_name));
    }
    (probes, problems)
}

impl ListedProbe {
    fn complete(self, condition: String, container: String) -> Probe {
        // Not given and not sensible are the same, as in OpenKruise's daemon.
        let or_one = |number: i64| u32::try_from(number).unwrap_or(if number > 0 { u32::MAX } else { 1 }).max(1);
        let seconds = |number| Duration::from_secs(u64::from(or_one(number)));
        Probe {
            condition,
            container,
            initial_delay: seconds(self.initial_delay_seconds),
            period: seconds(self.period_seconds),
            timeout: seconds(self.timeout_seconds),
            success_threshold: or_one(self.success_threshold),
            failure_threshold: or_one(self.failure_threshold),
            handler: self.handler(),
        }
    }

    fn handler(self) -> Handler {
        let cannot = |reason, message: &str| Handler::Cannot { reason, message: message.to_owned() };
        let other_host = |host: &str| {
            cannot("HostNotAllowed", &format!("a probe asks the pod itself and not {host}: leave host out"))
        };
        match self {
            Self { exec: Some(_), .. } => cannot(
                "ExecNotPossible",
                "an agent in the pod cannot run a program in another container: use httpGet or tcpSocket",
            ),
            Self { grpc: Some(_), .. } => {
                cannot("GrpcNotPossible", "the agent does not ask over gRPC: use httpGet or tcpSocket")
            }
            Self { http_get: Some(get), .. } if !get.host.is_empty() => other_host(&get.host),
            Self { http_get: Some(get), .. } => get.handler(),
            Self { tcp_socket: Some(socket), .. } if !socket.host.is_empty() => other_host(&socket.host),
            Self { tcp_socket: Some(TcpSocket { port, .. }), .. } => Handler::Tcp { port },
            _ => cannot("NothingToAsk", "the probe says neither httpGet nor tcpSocket"),
        }
    }
}

impl HttpGet {
    fn handler(self) -> Handler {
        let Self { path, port, scheme, http_headers, .. } = self;
        let is_tls = match scheme.as_str() {
            "" | "HTTP" => false,
            "HTTPS" => true,
            _ => {
                let message = format!("{scheme} is not a scheme: write HTTP or HTTPS");
                return Handler::Cannot { reason: "WrongScheme", message };
            }
        };
        let path = if path.starts_with('/') { path } else { format!("/{path}") };
        let headers = http_headers.iter().map(|header| (header.name.as_str(), header.value.as_str()));
        match Request::new("GET", "localhost", &path, headers) {
            Ok(request) => Handler::Http { port, is_tls, request },
            Err(error) => Handler::Cannot { reason: "WrongRequest", message: error.to_string() },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read_one(probe: &serde_json::Value) -> Probe {
        let text = json!([{"name": "n", "containerName": "c", "probe": probe, "podConditionType": "T"}]).to_string();
        let (mut probes, problems) = read(&text);
        assert_eq!((probes.len(), problems), (1, vec![]));
        probes.remove(0)
    }

    fn reason(probe: &serde_json::Value) -> &'static str {
        match read_one(probe).handler {
            Handler::Cannot { reason, .. } => reason,
            handler => panic!("{handler:?} is possible"),
        }
    }

    #[test]
    fn a_probe_is_read_with_the_defaults_of_openkruise() {
        let second = Duration::from_secs(1);
        let tcp = Handler::Tcp { port: Port::Number(8080) };
        let expected = Probe {
            condition: "T".to_owned(),
            container: "c".to_owned(),
            handler: tcp,
            initial_delay: second,
            period: second,
            timeout: second,
            success_threshold: 1,
            failure_threshold: 1,
        };
        assert_eq!(read_one(&json!({"tcpSocket": {"port": 8080}, "periodSeconds": 0, "timeoutSeconds": -3})), expected);
        let given = json!({"tcpSocket": {"port": 8080}, "periodSeconds": 3, "timeoutSeconds": 5, "initialDelaySeconds": 10,
            "successThreshold": 2, "failureThreshold": 4, "terminationGracePeriodSeconds": 1, "somethingNew": {}});
        let expected = Probe {
            initial_delay: second * 10,
            period: second * 3,
            timeout: second * 5,
            success_threshold: 2,
            failure_threshold: 4,
            ..expected
        };
        assert_eq!(read_one(&given), expected);
    }

    #[test]
    fn http_is_asked_as_it_is_listed() {
        let probe = json!({"httpGet": {"path": "ok?x", "port": "web", "scheme": "HTTPS",
            "httpHeaders": [{"name": "X-A", "value": "b"}]}});
        let request = Request::new("GET", "localhost", "/ok?x", [("X-A", "b")]).unwrap();
        let handler = Handler::Http { port: Port::Name("web".to_owned()), is_tls: true, request };
        assert_eq!(read_one(&probe).handler, handler);
    }

    #[test]
    fn what_the_agent_must_not_or_cannot_do_is_said() {
        for (probe, expected) in [
            (json!({"exec": {"command": ["sh"]}}), "ExecNotPossible"),
            (json!({"grpc": {"port": 1}}), "GrpcNotPossible"),
            (json!({"httpGet": {"port": 80, "host": "169.254.169.254"}}), "HostNotAllowed"),
            (json!({"tcpSocket": {"port": 80, "host": "10.0.0.1"}}), "HostNotAllowed"),
            (json!({"httpGet": {"port": 80, "scheme": "FTP"}}), "WrongScheme"),
            (json!({"httpGet": {"port": 80, "path": "/a\r\nb"}}), "WrongRequest"),
            (json!({}), "NothingToAsk"),
        ] {
            assert_eq!(reason(&probe), expected, "{probe}");
        }
    }

    #[test]
    fn probes_without_a_condition_are_for_others() {
        let probe = json!({"tcpSocket": {"port": 1}});
        let listed = |name: &str, kind: &str| json!({"name": name, "probe": probe, "podConditionType": kind});
        let text = json!([{"name": "a", "probe": probe}, listed("b", "T"), listed("c", "T")]).to_string();
        let (probes, problems) = read(&text);
        assert_eq!(probes.len(), 1);
        assert_eq!(problems, ["c: condition T is told by another probe: it is not run"]);
        let many: Vec<_> = (0..40).map(|at| listed(&format!("n{at}"), &format!("T{at}"))).collect();
        let (probes, problems) = read(&json!(many).to_string());
        assert_eq!(probes.len(), 32);
        assert_eq!(problems, ["it lists more than 32 probes: n32 and those after it are not run"]);
        assert_eq!(read(""), (vec![], vec![]));
        assert_eq!(read("{").1.len(), 1);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String, port: i64, period: i64) {
            read(&text);
            read(&json!([{"probe": {"tcpSocket": {"port": port}, "periodSeconds": period}, "podConditionType": text}]).to_string());
        }
    }
}
