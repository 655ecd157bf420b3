//! What the pod's owner asks for: in an annotation of the pod, or in one named `ConfigMap`.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use pillion_agent_api::{TriggerFrom, Wanted, names};
use serde::Deserialize;

use crate::api_server::{ApiServer, Patience};
use crate::pause::{Pauses, spread};
use crate::plugin::{Context, STACK_BYTES};
use crate::pod::PodIdentity;
use crate::stop::Stop;
use crate::talk::tell;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// The API server ends a watch after so long; the agent's end goes unnoticed for no longer.
const WATCH_SECONDS: u32 = 240;
const PATIENCE: Patience = Patience { step: Duration::from_secs(5), silence: Some(Duration::from_mins(5)) };

/// What was found where the owner asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// Nobody has looked yet, or nobody could.
    Unknown,
    /// Nothing is asked for.
    Nothing,
    /// This is.
    Wanted(Wanted),
    /// Something that makes no sense, for this reason.
    Odd(String),
}

/// Where the owner asks.
pub(super) enum Trigger {
    Annotation(Arc<PodIdentity>),
    ConfigMap(Arc<Mutex<Word>>),
}

impl Trigger {
    /// Begins to look.
    pub(super) fn start(from: &TriggerFrom, context: &Context) -> anyhow::Result<Self> {
        let name = match from {
            TriggerFrom::Annotation => return Ok(Self::Annotation(Arc::clone(&context.pod))),
            TriggerFrom::ConfigMap(name) => name.clone(),
        };
        let word = Arc::new(Mutex::new(Word::Unknown));
        let Some(api_server) = context.api_server.clone() else {
            tell(format_args!("ConfigMap {name} is not looked at without an API server"));
            return Ok(Self::ConfigMap(word));
        };
        let watch = Watch {
            folder: format!("/api/v1/namespaces/{}/configmaps", context.pod.namespace),
            name,
            api_server,
            word: Arc::clone(&word),
            stop: context.stop.clone(),
        };
        let thread = thread::Builder::new().name("wanted".to_owned()).stack_size(STACK_BYTES);
        thread.spawn(move || watch.run()).context("cannot start a thread")?;
        Ok(Self::ConfigMap(word))
    }

    /// What is asked for now.
    pub(super) fn look(&self) -> Word {
        match self {
            Self::Annotation(pod) => in_annotations(pod),
            Self::ConfigMap(word) => word.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

/// What the annotation of a pod asks for.
pub(super) fn in_annotations(pod: &PodIdentity) -> Word {
    match pod.annotations() {
        Ok(annotations) => read(annotations.get(names::WANTED), &format!("annotation {}", names::WANTED)),
        // A pod without annotations may have no such file on some nodes.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Word::Nothing,
        Err(error) => Word::Odd(format!("cannot read {}: {error}", pod.annotations_file.display())),
    }
}

fn read(text: Option<&String>, place: &str) -> Word {
    match text {
        None => Word::Nothing,
        Some(text) => match Wanted::parse(text) {
            Ok(wanted) => Word::Wanted(wanted),
            Err(why) => Word::Odd(format!("{place}: {why}")),
        },
    }
}

/// A `ConfigMap` that is watched.
struct Watch {
    name: String,
    folder: String,
    api_server: Arc<ApiServer>,
    word: Arc<Mutex<Word>>,
    stop: Stop,
}

/// A line of a watch.
#[derive(Debug, Deserialize)]
struct Change {
    #[serde(rename = "type")]
    kind: String,
    object: Object,
}

/// A `ConfigMap`, or the error that ends a watch.
#[derive(Debug, Deserialize)]
struct Object {
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
    #[serde(default)]
    code: Option<u16>,
}

impl Watch {
    fn run(&self) {
        let mut pauses = Pauses::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut last_error = String::new();
        while !self.stop.is_stopped() {
            let followed = self.follow(&mut pauses);
            // The API server ends every watch after a while; and what has been said is not said again.
            if let Err(error) = followed {
                let error = format!("{error:#}");
                if error != last_error {
                    tell(format_args!("cannot watch ConfigMap {}, will try again: {error}", self.name));
                    last_error = error;
                }
            }
            if self.stop.wait(spread(pauses.grow())) {
                return;
            }
        }
    }

    fn follow(&self, pauses: &mut Pauses) -> anyhow::Result<()> {
        // A watch of what does not exist says nothing, so it is asked for first.
        match self.api_server.get(&format!("{}/{}", self.folder, self.name), &PATIENCE) {
            Ok(body) => {
                let object = serde_json::from_reader(io::BufReader::new(body))?;
                self.tell(in_object(&object, &self.name));
            }
            Err(error) if error.status() == Some(404) => self.tell(Word::Nothing),
            Err(error) => return Err(error.into()),
        }
        let query = format!("fieldSelector=metadata.name%3D{}&watch=1&timeoutSeconds={WATCH_SECONDS}", self.name);
        let body = self.api_server.get(&format!("{}?{query}", self.folder), &PATIENCE)?;
        for change in changes(body) {
            let change = change?;
            if self.stop.is_stopped() {
                return Ok(());
            }
            if let Some(code) = change.object.code {
                anyhow::bail!("the API server ends the watch with {code}");
            }
            pauses.reset();
            self.tell(in_change(&change, &self.name));
        }
        Ok(())
    }

    fn tell(&self, word: Word) {
        *self.word.lock().unwrap_or_else(PoisonError::into_inner) = word;
    }
}

fn in_change(change: &Change, name: &str) -> Word {
    if change.kind == "DELETED" { Word::Nothing } else { in_object(&change.object, name) }
}

fn in_object(object: &Object, name: &str) -> Word {
    let text = object.data.as_ref().and_then(|data| data.get(names::WANTED_KEY));
    read(text, &format!("key {} of ConfigMap {name}", names::WANTED_KEY))
}

fn changes(body: impl Read) -> impl Iterator<Item = serde_json::Result<Change>> {
    serde_json::Deserializer::from_reader(io::BufReader::new(body)).into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_tells_what_is_asked_for() {
        let text = r#"{"type":"ADDED","object":{"data":{"wanted":"{\"version\":\"v1\",\"url\":\"u\"}"}}}
            {"type":"MODIFIED","object":{"data":{"wanted":"x"},"binaryData":{"a":"b"}}}
            {"type":"MODIFIED","object":{}}
            {"type":"DELETED","object":{"data":{"wanted":"x"}}}"#;
        let words: Vec<Word> = changes(text.as_bytes()).map(|change| in_change(&change.unwrap(), "trigger")).collect();
        let wanted = Wanted { version: "v1".to_owned(), url: "u".to_owned(), sha256: None };
        assert_eq!(words[0], Word::Wanted(wanted));
        assert!(matches!(&words[1], Word::Odd(why) if why.starts_with("key wanted of ConfigMap trigger: is no JSON")));
        assert_eq!(words[2..], [Word::Nothing, Word::Nothing]);
    }
}
