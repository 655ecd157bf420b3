//! The store: what readers see of lists and changes.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{FutureExt as _, StreamExt as _, stream};
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Client;
use kube::api::ObjectMeta;
use kube::client::Body;
use kube::core::Status;
use proptest::prelude::*;
use serde_json::{Value, json};
use tower::BoxError;

use super::*;

fn key(name: &str) -> Key {
    Key::new("team", name)
}

fn keys(names: &[&str]) -> BTreeSet<Key> {
    names.iter().map(|name| key(name)).collect()
}

fn list(store: &Store<u32>, objects: &[(&str, u32)]) {
    store.list_begins();
    for (name, value) in objects {
        store.list_brings(key(name), Some(*value));
    }
    store.list_ends();
}

fn shown(store: &Store<u32>) -> Vec<(String, u32)> {
    store.snapshot().into_iter().map(|(key, value)| (key.name.into(), value)).collect()
}

fn of(objects: &[(&str, u32)]) -> Vec<(String, u32)> {
    objects.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

#[test]
fn keys_name_objects_with_and_without_a_namespace() {
    let metadata = |namespace: Option<&str>| ObjectMeta {
        name: Some("web".to_owned()),
        namespace: namespace.map(str::to_owned),
        ..ObjectMeta::default()
    };
    let pod = Pod { metadata: metadata(Some("team")), ..Pod::default() };
    let namespace = Namespace { metadata: metadata(None), ..Namespace::default() };
    assert_eq!(Key::of(&pod).to_string(), "team/web");
    assert_eq!(Key::of(&namespace).to_string(), "web");
}

#[test]
fn nothing_of_a_list_is_seen_before_its_end() {
    let store = Store::new();
    assert_eq!(store.check_complete(), Err("not listed yet: the first list is under way".to_owned()));
    store.list_begins();
    store.list_brings(key("a"), Some(1));
    assert!(store.is_empty() && !store.is_complete());
    store.list_ends();
    assert_eq!((shown(&store), store.is_complete(), store.check_complete()), (of(&[("a", 1)]), true, Ok(())));

    // And again: while a later list is under way the store shows what was there before.
    store.list_begins();
    store.list_brings(key("a"), Some(2));
    store.list_brings(key("b"), Some(3));
    assert_eq!(shown(&store), of(&[("a", 1)]));
    store.list_ends();
    assert_eq!(shown(&store), of(&[("a", 2), ("b", 3)]));
}

#[test]
fn a_list_that_was_broken_off_leaves_no_trace() {
    let store = Store::new();
    list(&store, &[("a", 1), ("b", 2)]);
    store.list_begins();
    store.list_brings(key("a"), Some(9));
    store.list_brings(key("b"), Some(2));
    list(&store, &[("a", 1)]);
    assert_eq!(shown(&store), of(&[("a", 1)]));
}

#[test]
fn a_list_holds_twice_only_what_it_changes() {
    let store = Store::new();
    list(&store, &[("a", 1), ("b", 2), ("c", 3)]);
    store.list_begins();
    for (name, value) in [("a", 1), ("b", 9), ("c", 3), ("d", 4)] {
        store.list_brings(key(name), Some(value));
    }
    let pending: Vec<Key> = store.pending_keys();
    assert_eq!(pending, [key("b"), key("d")]);
}

#[test]
fn an_object_that_is_not_kept_any_more_goes() {
    let store = Store::new();
    list(&store, &[("a", 1), ("b", 2)]);
    store.apply(key("a"), None);
    assert_eq!(shown(&store), of(&[("b", 2)]));
    // Twice in one list: kept first, then not; and the other way round.
    store.list_begins();
    store.list_brings(key("b"), Some(2));
    store.list_brings(key("b"), None);
    store.list_brings(key("c"), None);
    store.list_brings(key("c"), Some(3));
    store.list_ends();
    assert_eq!(shown(&store), of(&[("c", 3)]));
}

#[test]
fn a_list_that_is_asked_for_is_the_next_one_that_begins() {
    let store = Store::<u32>::new();
    assert_eq!(store.list_wanted().now_or_never(), None);
    store.list_starts();
    store.list_begins();
    // The list under way may have passed what it is asked for.
    let first = store.list_again();
    let second = store.list_again();
    store.list_ends();
    assert!(!store.has_listed(first));
    assert_eq!(store.list_wanted().now_or_never(), Some(()));
    assert_eq!(store.list_wanted().now_or_never(), Some(()), "asked until it is started");
    // One list serves all who asked before it.
    store.list_starts();
    store.list_begins();
    assert_eq!(store.list_wanted().now_or_never(), None);
    assert!(!store.has_listed(first));
    store.list_ends();
    assert!(store.has_listed(first) && store.has_listed(second));
    assert_eq!(store.list_wanted().now_or_never(), None);
}

/// An API server that streams a list of one pod, after a second, and then says nothing more. It has no patience with those
/// who ask again and again.
fn slow_server(requests: &Arc<AtomicUsize>) -> Client {
    let requests = Arc::clone(requests);
    let service = tower::service_fn(move |_: http::Request<Body>| {
        let count = requests.fetch_add(1, Ordering::SeqCst);
        assert!(count < 10, "it was asked {count} times");
        async {
            sleep(Duration::from_secs(1)).await;
            let pod = |metadata: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata});
            let end = json!({"resourceVersion": "5", "annotations": {"k8s.io/initial-events-end": "true"}});
            let lines = [
                json!({"type": "ADDED", "object": pod(json!({"name": "a", "namespace": "team", "resourceVersion": "4"}))}),
                json!({"type": "BOOKMARK", "object": pod(end)}),
            ];
            let frames = lines.map(|line| Ok::<_, Infallible>(Frame::data(Bytes::from(format!("{line}\n")))));
            let body = StreamBody::new(stream::iter(frames).chain(stream::pending()));
            Ok::<_, BoxError>(http::Response::new(body))
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_asked_for_is_made_once_however_slowly_it_begins() {
    let requests = Arc::new(AtomicUsize::new(0));
    let api = Api::<Pod>::all(slow_server(&requests));
    let selection = Selection { freshness: Freshness::Any, ..Selection::default() };
    let (store, driver) = watch("pods", api, selection, &WatchMetrics::default(), |pod| Some(Key::of(&pod)));
    let reader = async {
        store.completed().await;
        assert_eq!(requests.load(Ordering::SeqCst), 1);
        let listing = store.list_again();
        while !store.has_listed(listing) {
            sleep(Duration::from_millis(100)).await;
        }
        assert_eq!((requests.load(Ordering::SeqCst), store.len()), (2, 1));
    };
    tokio::select! {
        () = reader => {}
        () = driver => unreachable!("a watch does not end by itself"),
    }
}

#[test]
fn readers_see_one_namespace_or_all() {
    let store = Store::new();
    for (namespace, name) in [("a", "x"), ("b", "x"), ("b", "y"), ("bb", "x"), ("", "b")] {
        store.apply(Key::new(namespace, name), Some(name.to_owned()));
    }
    let found = store.read(|objects| objects.in_namespace("b").map(|(key, _)| key.to_string()).collect::<Vec<_>>());
    assert_eq!(found, ["b/x", "b/y"]);
    assert_eq!(store.get(&Key::new("bb", "x")), Some("x".to_owned()));
    assert_eq!(store.len(), 5);
}

#[test]
fn a_reader_is_told_each_key_once_however_often_it_changed() {
    let store = Store::new();
    list(&store, &[("a", 1), ("b", 2)]);
    let mut changes = store.changes();
    let mut next = || changes.next().now_or_never();
    assert_eq!(next(), Some(keys(&["a", "b"])), "what was there before");
    assert_eq!(next(), None);
    for value in 3..9 {
        store.apply(key("a"), Some(value));
    }
    store.apply(key("b"), Some(2));
    assert_eq!(next(), Some(keys(&["a"])), "b is as it was");
    store.apply(key("gone"), None);
    assert_eq!(next(), None, "what was not there cannot go");
    list(&store, &[("a", 8), ("c", 3)]);
    assert_eq!(next(), Some(keys(&["b", "c"])), "what a list changed, and nothing else");
    store.apply(key("a"), None);
    assert_eq!(next(), Some(keys(&["a"])));
}

#[tokio::test]
async fn a_waiting_reader_is_woken() {
    let store = Store::new();
    let mut changes = store.changes();
    let reader = tokio::spawn(async move { changes.next().await });
    let waits_for_all = store.clone();
    let completion = tokio::spawn(async move { waits_for_all.completed().await });
    tokio::task::yield_now().await;
    list(&store, &[("a", 1)]);
    assert_eq!(reader.await.unwrap(), keys(&["a"]));
    completion.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_failure_lasts_from_its_first_error_until_something_is_heard() {
    let store = Store::<u32>::new();
    let wait = tokio::time::advance;
    let seconds = Duration::from_secs;
    assert_eq!(store.failing_for(), None);
    store.failed("connection refused".to_owned());
    assert_eq!(store.check_complete(), Err("not listed yet: connection refused".to_owned()));
    wait(seconds(100)).await;
    store.failed("connection refused".to_owned());
    wait(seconds(20)).await;
    assert_eq!(store.failing_for(), Some(seconds(120)));
    list(&store, &[]);
    assert_eq!(store.failing_for(), None);

    // An error that is followed by quiet was overcome.
    store.failed("cut".to_owned());
    wait(seconds(181)).await;
    assert_eq!(store.failing_for(), None);
    store.failed("cut".to_owned());
    wait(seconds(1)).await;
    assert_eq!(store.failing_for(), Some(seconds(1)));
}

#[test]
fn what_kube_would_repeat_for_ever_is_begun_anew() {
    let refused = |code| {
        let status = Status { code, ..Status::default() };
        kube::Error::Api(Box::new(status))
    };
    for (error, recovery) in [
        (watcher::Error::WatchStartFailed(refused(410)), Recovery::Relist),
        (watcher::Error::WatchStartFailed(refused(422)), Recovery::RelistInPages),
        (watcher::Error::WatchStartFailed(refused(403)), Recovery::Resume),
        (watcher::Error::InitialListFailed(refused(410)), Recovery::Resume),
        (watcher::Error::NoResourceVersion, Recovery::Resume),
    ] {
        assert_eq!(Recovery::of(&error), recovery, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn pauses_grow_to_a_bound_and_start_small_again() {
    let mut pauses = Pauses::new();
    let first: Vec<Duration> = (0..10).map(|_| pauses.next()).collect();
    for (number, pause) in first.iter().enumerate() {
        let least = (SHORTEST_PAUSE * (1 << number.min(8))).min(LONGEST_PAUSE);
        assert!(least <= *pause && *pause <= least * 2, "{number}: {pause:?}");
    }
    tokio::time::advance(Duration::from_secs(181)).await;
    assert!(pauses.next() <= SHORTEST_PAUSE * 2);
}

/// What a watch may bring.
#[derive(Clone, Debug)]
enum Told {
    Apply(u8, Option<u32>),
    /// A list, and whether it comes to its end.
    List(Vec<(u8, Option<u32>)>, bool),
}

fn told() -> impl Strategy<Value = Told> {
    let value = || prop::option::weighted(0.8, 0..4_u32);
    prop_oneof![
        3 => (0..6_u8, value()).prop_map(|(name, value)| Told::Apply(name, value)),
        1 => (prop::collection::vec((0..6_u8, value()), 0..8), any::<bool>())
            .prop_map(|(objects, ends)| Told::List(objects, ends)),
    ]
}

proptest! {
    #[test]
    fn the_store_is_what_was_told_last_and_changes_name_every_difference(story in prop::collection::vec(told(), 0..30)) {
        let store = Store::new();
        let mut changes = store.changes();
        let mut expected = BTreeMap::new();
        for told in story {
            let before = expected.clone();
            match told {
                Told::Apply(name, value) => {
                    let key = key(&name.to_string());
                    store.apply(key.clone(), value);
                    match value {
                        Some(value) => expected.insert(key, value),
                        None => expected.remove(&key),
                    };
                }
                Told::List(objects, ends) => {
                    store.list_begins();
                    let mut listed = BTreeMap::new();
                    for (name, value) in objects {
                        let key = key(&name.to_string());
                        store.list_brings(key.clone(), value);
                        match value {
                            Some(value) => listed.insert(key, value),
                            None => listed.remove(&key),
                        };
                    }
                    if ends {
                        store.list_ends();
                        expected = listed;
                    }
                }
            }
            prop_assert_eq!(store.snapshot(), expected.clone());
            let differs: BTreeSet<Key> = before.keys().chain(expected.keys())
                .filter(|key| before.get(key) != expected.get(key)).cloned().collect();
            prop_assert_eq!(changes.next().now_or_never().unwrap_or_default(), differs);
        }
    }
}
