//! What the plugin `hot_update` is told.

use std::collections::BTreeMap;

use crate::Storage;

/// Brings files into the pod, and has the app load them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotUpdate {
    /// The folder that agent and app share.
    pub file_dir: String,
    /// The name of the file in it; the last part of the URL without one.
    pub file_name: Option<String>,
    /// How the app is told.
    pub reload: Reload,
    /// How it is seen that the app has loaded the file.
    pub check: Option<Check>,
    /// Where the wanted version is told.
    pub trigger: TriggerFrom,
    /// A port that takes requests; none without it.
    pub listener: Option<Listener>,
    /// Where files may come from; nowhere else.
    pub sources: Vec<Source>,
    /// Digests by version, for requests that bring none.
    pub digests: BTreeMap<String, String>,
    /// A minisign public key, as base64. With it every file must be signed, at its URL with `.minisig`.
    pub public_key: Option<String>,
    /// Whether a lower version may follow a higher one, where the pod was asked for it by a request.
    pub allow_downgrade: bool,
    /// What no update may exceed.
    pub bounds: Bounds,
    /// Where the result is told, besides [`names::RESULT`](crate::names::RESULT) and the condition
    /// [`names::CONDITION`](crate::names::CONDITION).
    pub storage: Storage,
}

/// How the app is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reload {
    /// By a signal.
    Signal(Signal),
    /// By a request; success is any 2xx.
    Request {
        /// `http://127.0.0.1:8080/reload`.
        url: String,
        /// POST or GET.
        method: String,
    },
}

/// A signal to exactly one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    /// How its command line, with blanks between the words, begins.
    pub process_name: String,
    /// SIGHUP, SIGUSR1, SIGUSR2 or SIGWINCH.
    pub signal_name: String,
    /// Asked instead, where the agent sees no processes but its own or may not signal them: URL of a request.
    pub fallback_url: Option<String>,
}

/// How it is seen that the app has loaded a file: an answer that contains a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Who knows.
    pub url: String,
    /// What a good answer contains; `{version}` and `{sha256}` stand for those of the update.
    pub contains: String,
    /// For how long it is asked.
    pub timeout_seconds: u32,
}

/// Where the wanted version is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TriggerFrom {
    /// In the annotation [`names::WANTED`](crate::names::WANTED) of the pod.
    Annotation,
    /// In a `ConfigMap` of the pod's namespace, under the key `wanted`.
    ConfigMap(String),
}

/// A port that takes requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The port, on the pod's address.
    pub port: u16,
    /// PEM file with the certificate chain.
    pub certificate: String,
    /// PEM file with its key.
    pub key: String,
    /// The audience tokens must be for.
    pub audience: String,
    /// Users that may ask, such as `system:serviceaccount:games:operator`.
    pub users: Vec<String>,
}

/// Where files may come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// `https://host[:port]/path/`: the URL must begin with it, whole path segments.
    pub prefix: String,
    /// File with the value of the Authorization header.
    pub authorization_file: Option<String>,
    /// PEM file with the authorities to trust, instead of those of the public web.
    pub ca_file: Option<String>,
    /// Whether the host may have a private address.
    pub allow_private: bool,
    /// `http://host:port` of a proxy; the addresses are then its business, and the list of hosts protects alone.
    pub proxy: Option<String>,
}

/// What no update may exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of one file.
    pub max_bytes: u64,
    /// To connect.
    pub connect_seconds: u32,
    /// Without a byte.
    pub silence_seconds: u32,
    /// For the whole file.
    pub total_seconds: u32,
    /// Between the beginnings of two updates.
    pub min_interval_seconds: u32,
    /// Versions that are kept, the current one included; 2 or more.
    pub keep: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            max_bytes: 1 << 30,
            connect_seconds: 10,
            silence_seconds: 30,
            total_seconds: 900,
            min_interval_seconds: 1,
            keep: 3,
        }
    }
}
