//! What was asked, and what became of it: kept in the shared folder, so that an agent that is started again goes on, and
//! `pillion-agent ready` needs no network.
//!
//! The app can change it, and wins nothing: what it says is never fetched, only taken from the store if it is there with
//! its digest.

use pillion_agent_api::{OutcomeState, Wanted};
use serde::{Deserialize, Serialize};

use super::store::{Entry, check_name};

/// What was asked, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// What the pod's owner asked for when it was looked at last.
    #[serde(default)]
    pub(super) owner: Option<Wanted>,
    /// What was asked for last, by the owner or by a request.
    #[serde(default)]
    pub(super) asked: Option<Asked>,
    /// The last version that the app took.
    #[serde(default)]
    pub(super) good: Option<Good>,
}

/// Something that was asked for, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) wanted: Wanted,
    pub(super) state: OutcomeState,
    #[serde(default)]
    pub(super) message: String,
    /// Whether it is not tried again until somebody asks anew.
    #[serde(default)]
    pub(super) given_up: bool,
}

/// A version that the app took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Good {
    pub(super) version: String,
    pub(super) sha256: String,
    pub(super) file: String,
}

impl Record {
    /// Reads it; what cannot be read, or names what we would not have written, is as if nothing had been.
    pub(super) fn parse(text: Option<&str>) -> Self {
        let record: Option<Self> = text.and_then(|text| serde_json::from_str(text).ok());
        record.filter(Self::is_ours).unwrap_or_default()
    }

    /// Versions, digests and names become parts of paths.
    fn is_ours(&self) -> bool {
        let Self { owner, asked, good } = self;
        let good = good.as_ref().is_none_or(|good| {
            let wanted =
                Wanted { version: good.version.clone(), url: String::new(), sha256: Some(good.sha256.clone()) };
            wanted.check().is_ok() && check_name(&good.file).is_ok()
        });
        good && owner.iter().chain(asked.iter().map(|asked| &asked.wanted)).all(|wanted| wanted.clone().check().is_ok())
    }

    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(self).expect("texts and enums are JSON")
    }
}

impl Good {
    pub(super) fn entry(&self) -> Entry {
        Entry::of(&self.version, &self.sha256, &self.file)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(version: &str, digest: &str, file: &str) -> Record {
        let wanted = Wanted { version: "v1".to_owned(), url: "https://a/b".to_owned(), sha256: None };
        Record {
            owner: Some(wanted.clone()),
            asked: Some(Asked { wanted, state: OutcomeState::Done, message: "m".to_owned(), given_up: false }),
            good: Some(Good { version: version.to_owned(), sha256: digest.to_owned(), file: file.to_owned() }),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let record = record("v1.2.3.4", &"a".repeat(64), "game.conf");
        assert_eq!(Record::parse(Some(&record.to_text())), record);
        assert_eq!(Record::parse(None), Record::default());
    }

    #[test]
    fn attack_a_record_of_the_app_cannot_name_paths() {
        let digest = "a".repeat(64);
        for bad in [
            record("../../etc", &digest, "x"),
            record("v1", "../../../../etc/passwd", "x"),
            record("v1", &digest, "../x"),
            record("v1", &digest, "a/b"),
        ] {
            assert_eq!(Record::parse(Some(&bad.to_text())), Record::default());
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_record_or_none(text in "\\PC{0,60}") {
            let read = Record::parse(Some(&text));
            prop_assert_eq!(Record::parse(Some(&read.to_text())), read);
        }
    }
}
