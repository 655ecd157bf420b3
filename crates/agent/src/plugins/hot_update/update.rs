//! Carries an update out, step by step as the course says.

use std::time::Duration;

use pillion_agent_api::{HotUpdate, Wanted};

use crate::stop::Stop;
use crate::talk::tell;

use super::course::{Action, Course, Event};
use super::failure::{Failure, Kind};
use super::fetch::{Fetcher, Resolver};
use super::intake::{self, Demand};
use super::line::Patience;
use super::record::Good;
use super::reload::{Reloader, Told};
use super::signature::{self, Signed};
use super::source::{Place, allow};
use super::store::{Entry, ORIGINAL, Store, check_name};

/// The note beside a stored file that holds its signature.
const SIGNATURE_NOTE: &str = ".minisig";
/// What a disk needs besides the file itself.
const MARGIN: u64 = 256 * 1024;

/// An update that the rules allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) good: Good,
    place: Place,
}

impl Target {
    /// What is to be got for what was asked; refuses what the rules do not allow.
    pub(super) fn of(wanted: &Wanted, config: &HotUpdate) -> Result<Self, Failure> {
        let wanted = wanted.clone().check().map_err(Failure::refused)?;
        let place = Place::parse(&wanted.url).map_err(Failure::refused)?;
        let place = allow(&config.sources, place).map_err(Failure::refused)?.place;
        let Wanted { version, sha256, .. } = wanted;
        let listed = config.digests.get(&version).map(|digest| digest.to_ascii_lowercase());
        let sha256 = match (sha256, listed) {
            (Some(asked), Some(listed)) if asked != listed => {
                return Err(Failure::refused(format!(
                    "sha256 {asked} is not the one that digests of the configuration lists for {version}"
                )));
            }
            (Some(digest), _) | (None, Some(digest)) => digest,
            (None, None) => {
                return Err(Failure::refused(format!(
                    "no digest: write sha256 (what sha256sum prints) beside version and url, or list {version} in digests of the \
                     configuration"
                )));
            }
        };
        let file = config.file_name.clone().unwrap_or_else(|| place.last_segment().to_owned());
        check_name(&file).map_err(Failure::refused)?;
        Ok(Self { good: Good { version, sha256, file }, place })
    }
}

/// What an update is carried out with.
pub(super) struct Updater<'a> {
    pub(super) config: &'a HotUpdate,
    pub(super) store: &'a Store,
    pub(super) reloader: &'a Reloader,
    pub(super) resolver: &'a dyn Resolver,
    pub(super) stop: &'a Stop,
}

impl Updater<'_> {
    /// Takes back what a kill has left between two versions: neither the last one that the app took nor this one.
    pub(super) fn settle(&self, target: Option<&Target>, before: Option<&Good>) {
        let known = [target.map(|target| &target.good), before].into_iter().flatten();
        let mut folders: Vec<String> = known.map(|good| good.entry().folder).collect();
        if before.is_none() {
            folders.push(ORIGINAL.to_owned());
        }
        if self.store.current().is_some_and(|current| !folders.contains(&current)) {
            let now = self.restore(before);
            tell(format_args!("hot_update: an update was interrupted: {now}"));
        }
    }

    /// Carries an update out; `before` is the last version that the app took. Returns what is to be known of a success.
    pub(super) fn run(&self, target: &Target, before: Option<&Good>, may_fetch: bool) -> Result<String, Failure> {
        let entry = target.good.entry();
        let is_first = before.is_none();
        let (mut course, mut action) = Course::begin(may_fetch);
        let mut told: Told = None;
        loop {
            let event = match action {
                Action::Look => Event::Looked { is_stored: self.is_stored(&target.good) },
                Action::Fetch => Event::Fetched(self.fetch(target, before)),
                Action::Place => Event::Placed(
                    self.store
                        .place(&entry)
                        .map_err(|error| Failure::disk(format!("cannot put the file in place: {error}"))),
                ),
                Action::Reload => Event::Reloaded(self.reloader.reload(is_first).map(|(reloaded, process)| {
                    told = process;
                    reloaded
                })),
                Action::Check => {
                    let Good { version, sha256, .. } = &target.good;
                    Event::Checked(self.reloader.check(&told, version, sha256))
                }
                Action::Restore => Event::Restored(self.restore(before)),
                Action::End(ending) => return ending,
            };
            action = course.take(event);
        }
    }

    /// Whether a version is stored as it should be.
    pub(super) fn is_stored(&self, good: &Good) -> bool {
        let entry = good.entry();
        let Some(mut file) = self.store.file(&entry) else { return false };
        let signed = match &self.config.public_key {
            None => None,
            Some(key) => {
                let note = self.store.note(&entry, SIGNATURE_NOTE).unwrap_or_default();
                let Ok(signed) = Signed::new(key, &note) else { return false };
                Some(signed)
            }
        };
        let Ok(signature) = signed.as_ref().map(Signed::check).transpose() else { return false };
        let demand = Demand { sha256: &good.sha256, most_bytes: u64::MAX, signature };
        intake::holds(&mut file, demand).unwrap_or(false)
    }

    fn fetch(&self, target: &Target, before: Option<&Good>) -> Result<(), Failure> {
        let outcome = self.fetch_and_keep(target, before);
        if outcome.is_err() {
            // Best effort: the room it takes is given back now, or with the next try.
            let _ = self.store.discard();
        }
        outcome.map_err(
            |failure| if self.stop.is_stopped() { Failure { kind: Kind::Stopped, ..failure } } else { failure },
        )
    }

    fn fetch_and_keep(&self, target: &Target, before: Option<&Good>) -> Result<(), Failure> {
        let Target { good, place } = target;
        let bounds = &self.config.bounds;
        let seconds = |count: u32| Duration::from_secs(count.into());
        let fetcher = Fetcher {
            sources: &self.config.sources,
            resolver: self.resolver,
            patience: Patience::new(
                seconds(bounds.connect_seconds),
                seconds(bounds.silence_seconds),
                seconds(bounds.total_seconds),
                self.stop,
            ),
        };
        // Before the download: it needs the room.
        let spared: Vec<Entry> = before.map(Good::entry).into_iter().collect();
        self.prune(bounds.keep.saturating_sub(1), &spared)?;
        let note = match &self.config.public_key {
            Some(_) => Some(
                fetcher
                    .text(place.with_suffix(signature::SUFFIX), signature::MOST_BYTES)
                    .map_err(|failure| Failure { message: format!("no signature: {}", failure.message), ..failure })?,
            ),
            None => None,
        };
        let signed = match (&self.config.public_key, &note) {
            (Some(key), Some(note)) => Some(Signed::new(key, note)?),
            _ => None,
        };
        let signature = signed.as_ref().map(Signed::check).transpose()?;
        let mut incoming = fetcher.get(place.clone())?;
        self.check_room(incoming.length)?;
        let disk = |error: std::io::Error| Failure::disk(format!("cannot write the file: {error}"));
        let mut unfinished = self.store.begin(&good.file).map_err(disk)?;
        let demand = Demand { sha256: &good.sha256, most_bytes: bounds.max_bytes, signature };
        intake::take_in(&mut incoming.body, &mut unfinished.file, demand)?;
        self.store.finish(unfinished, &good.entry(), note.as_deref().map(|note| (SIGNATURE_NOTE, note))).map_err(disk)
    }

    fn check_room(&self, length: Option<u64>) -> Result<(), Failure> {
        let Some(length) = length else { return Ok(()) };
        let most = self.config.bounds.max_bytes;
        if length > most {
            return Err(intake::too_large(most));
        }
        let free =
            self.store.free_bytes().map_err(|error| Failure::disk(format!("cannot see the room left: {error}")))?;
        if length.saturating_add(MARGIN) > free {
            return Err(Failure::disk(format!(
                "the file has {length} bytes and {free} are free: give the volume more, or keep fewer versions"
            )));
        }
        Ok(())
    }

    fn prune(&self, keep: u32, spared: &[Entry]) -> Result<(), Failure> {
        let spared: Vec<&str> = spared.iter().map(|entry| entry.folder.as_str()).collect();
        let keep = usize::try_from(keep).unwrap_or(usize::MAX);
        self.store
            .prune(keep, &spared)
            .map_err(|error| Failure::disk(format!("cannot remove old versions: {error}")))?;
        Ok(())
    }

    /// After a success: what is no longer needed goes.
    pub(super) fn tidy(&self, good: &Good) {
        // What stays is tried again with the next version.
        let _ = self.store.remove_other_links(&good.file);
        let _ = self.prune(self.config.bounds.keep, &[good.entry()]);
    }

    /// Gives the app what it had, and says what it has.
    fn restore(&self, before: Option<&Good>) -> String {
        let (restored, what) = match before {
            Some(good) => (self.store.place(&good.entry()), good.version.clone()),
            None => (self.store.restore_original(), "what it had before".to_owned()),
        };
        if let Err(error) = restored {
            return format!("cannot go back to {what}: {error}");
        }
        // It may not be there any more: it then loads what is there when it starts again.
        match self.reloader.reload(true) {
            Ok(_) => format!("the app has {what} again"),
            Err(failure) => format!("the files are those of {what} again, but the app was not told: {failure}"),
        }
    }
}

#[cfg(test)]
mod tests;
