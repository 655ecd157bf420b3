//! The version a pod is to have, and what became of it.

use serde::{Deserialize, Serialize};

use crate::Version;

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

/// More than any value of it that is meant.
const MOST_BYTES: usize = 16 * 1024;
const DIGITS_OF_A_DIGEST: usize = 64;

impl Wanted {
    /// Reads the JSON of it; says why it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MOST_BYTES {
            return Err(format!("is longer than {MOST_BYTES} bytes"));
        }
        let wanted: Self = serde_json::from_str(text)
            .map_err(|error| format!("is no JSON object with version, url and sha256 as texts: {error}"))?;
        wanted.check()
    }

    /// Takes one whose version and digest have their shape, the digest in lower case; says why otherwise.
    pub fn check(mut self) -> Result<Self, String> {
        self.version.parse::<Version>().map_err(|error| error.to_string())?;
        if let Some(digest) = &mut self.sha256 {
            if !is_digest(digest) {
                return Err("sha256 is no digest: write the 64 digits that sha256sum prints".to_owned());
            }
            digest.make_ascii_lowercase();
        }
        Ok(self)
    }
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

/// Whether a text has the shape of a sha256 digest, in either case.
pub fn is_digest(text: &str) -> bool {
    text.len() == DIGITS_OF_A_DIGEST && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a text is a [`Version`].
pub fn is_version(text: &str) -> bool {
    text.parse::<Version>().is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DIGEST: &str = "E3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_wanted_version_is_read() {
        let text = format!(r#"{{"version":"v1.2","url":"https://a/b","sha256":"{DIGEST}"}}"#);
        let wanted = Wanted {
            version: "v1.2".to_owned(),
            url: "https://a/b".to_owned(),
            sha256: Some(DIGEST.to_ascii_lowercase()),
        };
        assert_eq!(Wanted::parse(&text), Ok(wanted));
    }

    #[test]
    fn what_is_none_is_refused_with_the_way_out() {
        let refusal = |text: &str| Wanted::parse(text).unwrap_err();
        assert_eq!(
            refusal(r#"{"version":"latest","url":"x"}"#),
            "\"latest\" is no version: write v and one to four numbers with dots between them, as v1.20"
        );
        for digest in ["", "abc", &"g".repeat(64), &"a".repeat(65)] {
            assert_eq!(
                refusal(&format!(r#"{{"version":"v1","url":"x","sha256":"{digest}"}}"#)),
                "sha256 is no digest: write the 64 digits that sha256sum prints"
            );
        }
        let unknown = refusal(r#"{"version":"v1","url":"x","path":"/etc"}"#);
        assert!(
            unknown.starts_with("is no JSON object with version, url and sha256 as texts: unknown field"),
            "{unknown}"
        );
        assert_eq!(refusal(&" ".repeat(20_000)), "is longer than 16384 bytes");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}|\\{\"(version|url|sha256)\":\"?[v0-9.]{0,6}\"?,?.{0,20}\\}") {
            if let Ok(wanted) = Wanted::parse(&text) {
                let again = Wanted::parse(&serde_json::to_string(&wanted).unwrap());
                prop_assert_eq!(again, Ok(wanted));
            }
        }
    }
}
