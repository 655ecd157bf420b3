//! What the plugin `http_probe` is told.

use std::collections::BTreeMap;

use crate::Storage;

/// Asks addresses again and again, and tells what they say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpProbe {
    /// Before the first question.
    pub start_delay_seconds: u32,
    /// Between two questions.
    pub interval_seconds: u32,
    /// How often the pod is looked at, to set again what another writer has overwritten.
    pub reassert_seconds: u32,
    /// Whom to ask.
    pub endpoints: Vec<Endpoint>,
}

/// One address that is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Where it is.
    pub address: Address,
    /// For the whole question.
    pub timeout_seconds: u32,
    /// So many answers of the same kind in a row make a success, 1 or more.
    pub success_threshold: u32,
    /// So many failures in a row make one, 1 or more.
    pub failure_threshold: u32,
    /// The state that failures make, such as `unknown`.
    pub failure_state: String,
    /// Where in the body the state is; the whole of it without one.
    pub json_path: Option<JsonPath>,
    /// Where the state is told.
    pub storage: Storage,
}

/// Where to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Over HTTP: `http://host:port/path`.
    Http {
        /// The whole URL.
        url: String,
        /// GET, HEAD or POST.
        method: String,
        /// Headers of the request.
        headers: BTreeMap<String, String>,
        /// The answer that is a success.
        expected_status: u16,
    },
    /// Whether a port takes connections: `tcp://host:port`. The state of a success is `open`.
    Tcp {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    },
}

/// Where in a JSON body the state is: keys and positions with dots between them, as `players.0.state`; a leading `$.` is
/// allowed, `\.` is a dot in a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPath(pub Vec<String>);
