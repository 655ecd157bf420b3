//! The version a pod is to have, and what became of it.

use serde::{Deserialize, Serialize};

/// What a pod is asked for: the value of the annotation [`names::WANTED`](crate::names::WANTED), or of the key `wanted` of a
/// `ConfigMap`, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// `v` and up to four numbers with dots between them, as `v1.20`.
    pub version: String,
    /// Where the file is.
    pub url: String,
    /// Its digest, 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// What became of it: the value of the annotation [`names::RESULT`](crate::names::RESULT), as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The version that was asked for.
    pub version: String,
    /// What became of it.
    pub state: OutcomeState,
    /// The version the app has now; none before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What became of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutcomeState {
    /// It is being made.
    Working,
    /// The app has it.
    Done,
    /// It could not be made; the app has what it had before.
    Failed,
}

/// Whether a text is a version: `v` and one to four whole numbers with dots between them.
pub fn is_version(text: &str) -> bool {
    let is_number = |part: &str| (1..=9).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = text.strip_prefix('v').map(|numbers| numbers.split('.').collect::<Vec<_>>());
    parts.is_some_and(|parts| parts.len() <= 4 && parts.iter().all(|part| is_number(part)))
}
