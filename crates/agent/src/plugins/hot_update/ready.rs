//! `pillion-agent ready`: whether the pod may be held ready, from what is on disk alone.
//!
//! It is while nothing is asked for, when the version is in place, and also while or after a running app is given another
//! one: it then has a version that it took, and an update is not to take it out of service. Only a pod that never had a
//! version is held back.

use std::path::Path;

use pillion_agent_api::{HotUpdate, OutcomeState, TriggerFrom};

use crate::pod::PodIdentity;

use super::record::{Asked, Record};
use super::store::peek_state;
use super::wanted::{Word, in_annotations};

/// Why the pod is not ready, if it is not.
pub(crate) fn ready(config: &HotUpdate, pod: &PodIdentity) -> Result<(), String> {
    let text = peek_state(Path::new(&config.file_dir));
    let word = match config.trigger {
        TriggerFrom::Annotation => in_annotations(pod),
        TriggerFrom::ConfigMap(_) => Word::Unknown,
    };
    decide(&word, text.as_deref())
}

fn decide(word: &Word, state: Option<&str>) -> Result<(), String> {
    let record = Record::parse(state);
    if record.good.is_some() {
        return Ok(());
    }
    match (word, &record.asked) {
        (Word::Odd(why), _) => Err(why.clone()),
        (Word::Wanted(wanted), asked) => {
            Err(because(&wanted.version, asked.as_ref().filter(|asked| asked.wanted == *wanted)))
        }
        // What the running agent has found, once it has looked.
        (Word::Unknown, _) if state.is_none() => {
            Err("the agent has not looked yet which version is asked for".to_owned())
        }
        (Word::Nothing, _) | (Word::Unknown, None) => Ok(()),
        (Word::Unknown, Some(asked)) => Err(because(&asked.wanted.version, Some(asked))),
    }
}

fn because(version: &str, asked: Option<&Asked>) -> String {
    match asked {
        Some(Asked { state: OutcomeState::Failed, message, .. }) => format!("{version} is not in place: {message}"),
        _ => format!("{version} is not in place yet"),
    }
}

#[cfg(test)]
mod tests {
    use pillion_agent_api::Wanted;

    use super::super::record::Good;
    use super::*;

    fn wanted(version: &str) -> Wanted {
        Wanted { version: version.to_owned(), url: "https://a/b".to_owned(), sha256: None }
    }

    fn state(asked: Option<(&str, OutcomeState)>, good: Option<&str>) -> String {
        let asked = asked.map(|(version, state)| Asked {
            wanted: wanted(version),
            state,
            message: "why".to_owned(),
            given_up: false,
        });
        let good =
            good.map(|version| Good { version: version.to_owned(), sha256: "a".repeat(64), file: "f".to_owned() });
        Record { owner: None, asked, good }.to_text()
    }

    #[test]
    fn a_pod_is_held_back_until_its_first_version_is_in_place() {
        let v1 = Word::Wanted(wanted("v1"));
        let not_yet = Err("v1 is not in place yet".to_owned());
        assert_eq!(decide(&v1, None), not_yet);
        assert_eq!(decide(&v1, Some(&state(Some(("v1", OutcomeState::Working)), None))), not_yet);
        assert_eq!(
            decide(&v1, Some(&state(Some(("v1", OutcomeState::Failed)), None))),
            Err("v1 is not in place: why".to_owned())
        );
        assert_eq!(decide(&v1, Some(&state(Some(("v1", OutcomeState::Done)), Some("v1")))), Ok(()));
        assert_eq!(decide(&Word::Odd("odd".to_owned()), None), Err("odd".to_owned()));
        assert_eq!(decide(&Word::Nothing, None), Ok(()));
    }

    #[test]
    fn an_update_takes_no_running_pod_out_of_service() {
        let v2 = Word::Wanted(wanted("v2"));
        for what in [OutcomeState::Working, OutcomeState::Failed, OutcomeState::Done] {
            assert_eq!(decide(&v2, Some(&state(Some(("v2", what)), Some("v1")))), Ok(()));
        }
    }

    #[test]
    fn what_a_config_map_asks_for_is_known_by_the_running_agent() {
        assert_eq!(
            decide(&Word::Unknown, None),
            Err("the agent has not looked yet which version is asked for".to_owned())
        );
        assert_eq!(decide(&Word::Unknown, Some(&state(None, None))), Ok(()));
        assert_eq!(
            decide(&Word::Unknown, Some(&state(Some(("v1", OutcomeState::Working)), None))),
            Err("v1 is not in place yet".to_owned())
        );
    }
}
