//! Who a caller is: the API server is asked.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use crate::api_server::ApiServer;

/// Says who has a token.
pub(super) trait TokenCheck: Send + Sync {
    /// The user of a token that is valid for an audience; none if it is not.
    fn user_of(&self, token: &str, audience: &str) -> anyhow::Result<Option<String>>;
}

/// Asks the API server, by a `TokenReview`.
pub(super) struct ApiServerCheck(pub(super) Arc<ApiServer>);

impl TokenCheck for ApiServerCheck {
    fn user_of(&self, token: &str, audience: &str) -> anyhow::Result<Option<String>> {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [audience]},
        });
        let answer = self.0.create("/apis/authentication.k8s.io/v1/tokenreviews", &review)?;
        Ok(user_in(Review::deserialize(answer)?, audience))
    }
}

#[derive(Debug, Default, Deserialize)]
struct Review {
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    authenticated: bool,
    audiences: Vec<String>,
    user: User,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct User {
    username: String,
}

/// An API server that knows no audiences leaves them out, and vouches for a token that was meant for others.
fn user_in(review: Review, audience: &str) -> Option<String> {
    let Status { authenticated, audiences, user } = review.status;
    let is_for_us = audiences.iter().any(|granted| granted == audience);
    (authenticated && is_for_us && !user.username.is_empty()).then_some(user.username)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(status: &str) -> Option<String> {
        let review = serde_json::from_str(&format!(r#"{{"kind":"TokenReview","spec":{{}},"status":{status}}}"#));
        user_in(review.unwrap(), "hot-update")
    }

    #[test]
    fn a_token_must_be_valid_and_for_us() {
        let good = r#"{"authenticated":true,"audiences":["hot-update"],"user":{"username":"me","groups":["g"]}}"#;
        assert_eq!(user(good), Some("me".to_owned()));
        for bad in [
            "{}",
            r#"{"authenticated":false,"audiences":["hot-update"],"user":{"username":"me"}}"#,
            r#"{"authenticated":true,"user":{"username":"me"}}"#,
            r#"{"authenticated":true,"audiences":["https://kubernetes.default.svc"],"user":{"username":"me"}}"#,
            r#"{"authenticated":true,"audiences":["hot-update"],"user":{}}"#,
            r#"{"authenticated":true,"audiences":["hot-update"]}"#,
        ] {
            assert_eq!(user(bad), None, "{bad}");
        }
        assert!(user_in(Review::default(), "").is_none());
    }
}
