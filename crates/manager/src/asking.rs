//! Asking the API server for a write: only while this replica leads, and no longer than it may take.

use std::time::Duration;

use kube::core::Status;
use pillion_runtime::lease::Leadership;
use tokio::time::timeout;

/// Why something was not written.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The API server said no.
    Answered(Box<Status>),
    /// It was not asked, or there was no answer: it may have arrived.
    Unanswered(String),
}

impl Failed {
    /// The code of the answer.
    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            Self::Answered(status) => Some(status.code),
            Self::Unanswered(_) => None,
        }
    }

    /// Whether the object is gone or going, or is another one, or has changed: what a watch tells.
    pub(crate) fn is_gone(&self) -> bool {
        let Self::Answered(status) = self else { return false };
        // Of a JSON patch a test did not hold: it is another object.
        let is_another = status.code == 422
            && (status.message.contains("the server rejected our request") || status.message.contains("testing"));
        matches!(status.code, 404 | 409) || status.message.contains("being terminated") || is_another
    }

    /// In words.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Answered(status) => &status.message,
            Self::Unanswered(why) => why,
        }
    }
}

/// Asks for a write.
pub(crate) async fn asked<T>(
    leadership: &Leadership,
    patience: Duration,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, Failed> {
    if !leadership.is_held_for(patience) {
        return Err(Failed::Unanswered("this replica does not lead for long enough".to_owned()));
    }
    match timeout(patience, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) => Err(Failed::Answered(status)),
        Ok(Err(error)) => Err(Failed::Unanswered(error.to_string())),
        Err(_) => Err(Failed::Unanswered("no answer in time".to_owned())),
    }
}
