//! Pods that another injector made. The watch brings only their metadata, so they are read whole: a few at a time, again
//! when their metadata changes, and again from time to time, because no watch tells how they are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pillion_runtime::watch::Key;
use tokio::time::Instant;

use super::super::pods::KeptPod;

/// So many are read at the same time.
const AT_ONCE: usize = 8;
/// One is read again after so long.
const READ_AGAIN: Duration = Duration::from_secs(15);

/// All of them, each as it was when it was last read.
#[derive(Default)]
pub(super) struct Adoptees {
    all: BTreeMap<Key, Adoptee>,
    reading: usize,
}

#[derive(Default)]
struct Adoptee {
    pod: Option<Arc<KeptPod>>,
    is_being_read: bool,
    /// When it is to be read; `None` for at once.
    read_at: Option<Instant>,
}

impl Adoptees {
    /// One is there, or its metadata has changed.
    pub(super) fn changed(&mut self, key: Key) {
        self.all.entry(key).or_default().read_at = None;
    }

    pub(super) fn forget(&mut self, key: &Key) {
        self.all.remove(key);
    }

    /// One as it was when it was last read.
    pub(super) fn get(&self, key: &Key) -> Option<Arc<KeptPod>> {
        self.all.get(key)?.pod.clone()
    }

    /// Those to be read now, as far as there is room; each is to be followed by [`Self::read`].
    pub(super) fn begin_reads(&mut self, now: Instant) -> Vec<Key> {
        let room = AT_ONCE.saturating_sub(self.reading);
        let due = self.all.iter_mut().filter(|(_, it)| !it.is_being_read && it.read_at.is_none_or(|at| at <= now));
        let due: Vec<Key> = due
            .take(room)
            .map(|(key, adoptee)| {
                adoptee.is_being_read = true;
                adoptee.read_at = Some(now + READ_AGAIN);
                key.clone()
            })
            .collect();
        self.reading += due.len();
        due
    }

    /// One was read. Gives what is known of it now: what could not be read stays as it was.
    pub(super) fn read(&mut self, key: &Key, pod: Result<Option<Arc<KeptPod>>, String>) -> Option<Arc<KeptPod>> {
        self.reading = self.reading.saturating_sub(1);
        let adoptee = self.all.get_mut(key)?;
        adoptee.is_being_read = false;
        if let Ok(pod) = pod {
            adoptee.pod = pod;
        }
        adoptee.pod.clone()
    }

    /// When one is to be read though nothing happens. While there is no room, the end of a read is what happens.
    pub(super) fn wake(&self) -> Option<Instant> {
        if self.reading >= AT_ONCE {
            return None;
        }
        self.all.values().filter(|it| !it.is_being_read).filter_map(|it| it.read_at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::pods::SlimPod;
    use super::*;

    fn key(at: usize) -> Key {
        Key::new("shop", &format!("web-{at:02}"))
    }

    fn kept(at: usize) -> Arc<KeptPod> {
        let pod = serde_json::json!({"metadata": {"name": format!("web-{at:02}"), "namespace": "shop", "uid": at.to_string()}});
        Arc::new(serde_json::from_value::<SlimPod>(pod).unwrap().kept.unwrap())
    }

    #[test]
    fn a_few_are_read_at_a_time_and_all_in_the_end() {
        let (mut adoptees, now) = (Adoptees::default(), Instant::now());
        (0..20).for_each(|at| adoptees.changed(key(at)));
        let first = adoptees.begin_reads(now);
        assert_eq!(first, (0..8).map(key).collect::<Vec<_>>());
        assert_eq!((adoptees.begin_reads(now).len(), adoptees.wake()), (0, None));
        for one in &first[..3] {
            adoptees.read(one, Ok(None));
        }
        assert_eq!(adoptees.begin_reads(now), (8..11).map(key).collect::<Vec<_>>());
    }

    #[test]
    fn one_is_read_again_when_it_changes_and_from_time_to_time() {
        let (mut adoptees, now) = (Adoptees::default(), Instant::now());
        adoptees.changed(key(1));
        assert_eq!(adoptees.begin_reads(now), [key(1)]);
        // It changes while it is being read, so what was read may be old.
        adoptees.changed(key(1));
        assert_eq!(adoptees.begin_reads(now).len(), 0);
        adoptees.read(&key(1), Ok(Some(kept(1))));
        assert_eq!(adoptees.begin_reads(now), [key(1)]);
        adoptees.read(&key(1), Ok(Some(kept(1))));
        assert_eq!((adoptees.begin_reads(now).len(), adoptees.wake()), (0, Some(now + READ_AGAIN)));
        assert_eq!(adoptees.begin_reads(now + READ_AGAIN), [key(1)]);
    }

    #[test]
    fn one_that_cannot_be_read_stays_as_it_was() {
        let (mut adoptees, now) = (Adoptees::default(), Instant::now());
        adoptees.changed(key(1));
        adoptees.begin_reads(now);
        let uid = |pod: Option<Arc<KeptPod>>| pod.map(|kept| kept.pod.uid.to_string());
        assert_eq!(uid(adoptees.read(&key(1), Ok(Some(kept(1))))), Some("1".to_owned()));
        adoptees.begin_reads(now + READ_AGAIN);
        assert_eq!(uid(adoptees.read(&key(1), Err("no answer in time".to_owned()))), Some("1".to_owned()));
        assert_eq!(uid(adoptees.get(&key(1))), Some("1".to_owned()));
        adoptees.begin_reads(now + READ_AGAIN * 2);
        assert_eq!(uid(adoptees.read(&key(1), Ok(None))), None);
        // One that was forgotten meanwhile is not brought back.
        adoptees.changed(key(2));
        adoptees.begin_reads(now + READ_AGAIN * 2);
        adoptees.forget(&key(2));
        assert_eq!(uid(adoptees.read(&key(2), Ok(Some(kept(2))))), None);
    }
}
