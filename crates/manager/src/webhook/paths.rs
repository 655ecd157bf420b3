//! The paths at which the API server calls the webhook.
//!
//! Each path holds a token of 256 bits, another one for each webhook of the registrations, so that whoever merely reaches the
//! port cannot call. Tokens follow from the key of the authority: every replica knows them from the CA Secret, and a new
//! authority brings new ones. The API server prints a path to users when a webhook that fails closed cannot be called, so a
//! token is never the only check, and is replaced after an outage.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use pillion_runtime::server::{Entrance, Entry};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::names;

/// A path that is in no registration any more is accepted for this long: an API server may not have heard of it yet.
pub const LINGERS: Duration = Duration::from_mins(5);

/// A pod has at most 3 MiB as the API server reads it; as JSON it may be larger.
const POD_ENTRY: Entry = Entry { path: names::POD_PATH, body: 8 << 20 };
/// An update carries a set twice, and a set has at most 2 MiB.
const SET_ENTRY: Entry = Entry { path: names::SET_PATH, body: 5 << 20 };

/// Each webhook of the registrations, and what its path leads to.
const WEBHOOKS: [(&str, Entry); 3] =
    [(names::POD_WEBHOOK, POD_ENTRY), (names::REQUIRED_POD_WEBHOOK, POD_ENTRY), (names::SET_WEBHOOK, SET_ENTRY)];

/// A digest of a path. Paths are compared by it: how long a comparison takes then says nothing about a token.
type PathDigest = [u8; 32];

/// Returns the path of one of our webhooks under an authority with this key.
pub fn path(webhook: &str, key: &str) -> String {
    let base = WEBHOOKS.iter().find(|(name, _)| *name == webhook).map_or("", |(_, entry)| entry.path);
    let digest = Sha256::new().chain_update("pillion webhook path\0").chain_update(webhook).chain_update("\0");
    format!("{base}/{:x}", digest.chain_update(key).finalize())
}

/// The paths of a registration, as the API server has it.
fn registered(registration: &Value) -> impl Iterator<Item = (String, Entry)> {
    let webhooks = registration["webhooks"].as_array().into_iter().flatten();
    webhooks.filter_map(|webhook| {
        let (_, entry) = WEBHOOKS.iter().find(|(name, _)| webhook["name"] == *name)?;
        let config = &webhook["clientConfig"];
        let path = match (config["service"]["path"].as_str(), config["url"].as_str()) {
            (Some(path), _) => path.to_owned(),
            (None, Some(url)) => url.parse::<http::Uri>().ok()?.path().to_owned(),
            (None, None) => return None,
        };
        Some((path, *entry))
    })
}

/// Remembers which paths are accepted, and until when.
#[derive(Clone, Debug, Default)]
pub struct Memory(BTreeMap<String, (Entry, Timestamp)>);

impl Memory {
    /// Takes in the authorities of which this replica knows and the registrations; forgets what neither has had for a while.
    pub fn keep<'a>(
        &mut self,
        keys: impl IntoIterator<Item = &'a str>,
        registrations: impl IntoIterator<Item = &'a Value>,
        now: Timestamp,
    ) {
        let until = now.saturating_add(LINGERS).unwrap_or(Timestamp::MAX);
        let of_key = |key: &'a str| WEBHOOKS.map(|(webhook, entry)| (path(webhook, key), entry));
        let wanted = keys.into_iter().flat_map(of_key).chain(registrations.into_iter().flat_map(registered));
        self.0.extend(wanted.map(|(path, entry)| (path, (entry, until))));
        self.0.retain(|_, (_, until)| *until > now);
    }

    fn digests(&self) -> BTreeMap<PathDigest, Entry> {
        self.0.iter().map(|(path, (entry, _))| (digest(path), *entry)).collect()
    }
}

/// The paths that are accepted now. Clones see the same.
#[derive(Clone, Debug, Default)]
pub struct AcceptedPaths(Arc<ArcSwap<BTreeMap<PathDigest, Entry>>>);

impl AcceptedPaths {
    /// Accepts what is remembered, and nothing else.
    pub fn accept(&self, memory: &Memory) {
        self.0.store(Arc::new(memory.digests()));
    }

    /// The entrance of a server that accepts these paths.
    pub fn entrance(&self) -> Entrance {
        let paths = Arc::clone(&self.0);
        Arc::new(move |uri| paths.load().get(&digest(uri.path())).copied())
    }
}

fn digest(path: &str) -> PathDigest {
    Sha256::digest(path).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(minutes: u64) -> Timestamp {
        "2026-11-16T12:00:00Z".parse::<Timestamp>().unwrap() + Duration::from_mins(minutes)
    }

    #[test]
    fn attack_paths_are_different_for_each_webhook_and_authority_and_cannot_be_guessed() {
        let paths: Vec<String> =
            ["one key", "other key"].iter().flat_map(|key| WEBHOOKS.map(|(webhook, _)| path(webhook, key))).collect();
        for path in &paths {
            let token = path.rsplit('/').next().unwrap();
            assert_eq!((token.len(), token.bytes().all(|byte| byte.is_ascii_hexdigit())), (64, true), "{path}");
            assert_eq!(paths.iter().filter(|other| other.ends_with(token)).count(), 1);
        }
        assert!(
            paths[0].starts_with("/pods/") && paths[1].starts_with("/pods/") && paths[2].starts_with("/sidecarsets/")
        );
        assert_eq!(
            path(names::POD_WEBHOOK, "key"),
            "/pods/30ceed4529df68fb735c69a6775a961b9570623ddf74a5f442b9000a65be540b"
        );
    }

    #[test]
    fn old_and_new_paths_are_accepted_until_every_api_server_has_heard() {
        let registration = |key: &str| {
            json!({"webhooks": [
                {"name": names::POD_WEBHOOK, "clientConfig": {"service": {"path": path(names::POD_WEBHOOK, key)}}},
                {"name": "theirs", "clientConfig": {"service": {"path": "/theirs"}}}]})
        };
        let (accepted, mut memory) = (AcceptedPaths::default(), Memory::default());
        let entrance = accepted.entrance();
        let is_accepted = |path: &str| entrance(&path.parse().unwrap()).map(|entry| entry.path);
        let [old, new] = ["old", "new"].map(|key| path(names::POD_WEBHOOK, key));
        assert_eq!(is_accepted(&old), None);

        memory.keep(["old", "new"], [&registration("old")], at(0));
        accepted.accept(&memory);
        for known in [&old, &new] {
            assert_eq!(is_accepted(&format!("{known}?timeout=3s")), Some("/pods"));
        }
        for unknown in ["/pods", "/pods/", "/", "/theirs", &format!("{old}/"), &old[..old.len() - 1]] {
            assert_eq!(is_accepted(unknown), None, "{unknown}");
        }

        memory.keep(["new"], [&registration("new")], at(4));
        accepted.accept(&memory);
        assert_eq!((is_accepted(&old), is_accepted(&new)), (Some("/pods"), Some("/pods")));
        memory.keep(["new"], [&registration("new")], at(6));
        accepted.accept(&memory);
        assert_eq!((is_accepted(&old), is_accepted(&new)), (None, Some("/pods")));
    }

    #[test]
    fn a_replica_accepts_the_path_that_it_finds_registered() {
        let mut memory = Memory::default();
        let url = json!({"webhooks": [{"name": names::SET_WEBHOOK, "clientConfig": {"url": "https://10.0.0.1:9443/sidecarsets/0a"}}]});
        memory.keep([], [&url, &json!({}), &json!({"webhooks": [{"name": names::SET_WEBHOOK}]})], at(0));
        let accepted = AcceptedPaths::default();
        accepted.accept(&memory);
        let entry = accepted.entrance()(&"/sidecarsets/0a".parse().unwrap()).unwrap();
        assert_eq!((entry.path, entry.body), ("/sidecarsets", 5 << 20));
    }
}
