//! The worker with real files, a server and an app: what it makes of words, orders and kills.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::thread;

use pillion_agent_api::names;

use super::super::rig::{App, DEADLINE, FileServer, TestResolver, config, sha256, until, whole};
use super::*;
use crate::board::ConditionStatus;
use crate::pod::PodIdentity;

const V1: &[u8] = b"first";
const V2: &[u8] = b"second";

/// A pod with an agent that can be ended and started again.
struct Pod {
    dir: tempfile::TempDir,
    app: App,
    config: HotUpdate,
    board: Arc<Board>,
    identity: Arc<PodIdentity>,
}

impl Pod {
    fn new(server: &FileServer) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let files = dir.path().join("files");
        fs::create_dir(&files).unwrap();
        let app = App::start(files.join("game.conf"));
        let config = config(&files, app.reload(), vec![server.source()]);
        let identity = PodIdentity {
            name: "p".to_owned(),
            namespace: "n".to_owned(),
            uid: "u".to_owned(),
            annotations_file: dir.path().join("annotations"),
        };
        Self { app, config, board: Arc::default(), identity: Arc::new(identity), dir }
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("files/game.conf")
    }

    fn content(&self) -> String {
        fs::read_to_string(self.file()).unwrap_or_default()
    }

    fn annotate(&self, wanted: &Wanted) {
        let text = serde_json::to_string(wanted).unwrap();
        let line = format!("{}={}", names::WANTED, serde_json::to_string(&text).unwrap());
        fs::write(&self.identity.annotations_file, line).unwrap();
    }

    /// Runs an agent while something is done; the desk and a way to order are given to it.
    fn run<T>(&self, server: &FileServer, doing: impl FnOnce(&dyn Fn(Wanted) -> Ordered) -> T) -> T {
        let (stop, desk) = (Stop::default(), Desk::default());
        let (order_tx, order_rx) = sync_channel(1);
        let order = |wanted: Wanted| {
            let Some(seat) = desk.take() else { return Ordered::Busy };
            let (outcome_tx, outcome_rx) = channel();
            order_tx.send(Order { wanted, seat, outcome_tx }).unwrap();
            Ordered::Taken(outcome_rx)
        };
        thread::scope(|scope| {
            let shared = (Arc::clone(&self.board), stop.clone(), desk.clone());
            let (config, identity) = (&self.config, Arc::clone(&self.identity));
            let resolver = TestResolver(server.address);
            scope.spawn(move || {
                let store = Store::open(std::path::Path::new(&config.file_dir)).unwrap();
                let reloader = Reloader::new(config, &shared.1).unwrap();
                Worker::new(config, &store, &reloader, &resolver, shared)
                    .run(&Trigger::Annotation(identity), &order_rx);
            });
            let _ending = Ending(stop);
            doing(&order)
        })
    }

    fn outcome(&self) -> Option<Outcome> {
        let marks = self.board.posted(SOURCE)?;
        marks.annotations.get(names::RESULT).map(|text| serde_json::from_str(text).unwrap())
    }

    fn wait(&self, version: &str, state: OutcomeState) -> Outcome {
        until(&format!("{version} is {state:?}"), || {
            self.outcome().is_some_and(|outcome| outcome.version == version && outcome.state == state)
        });
        self.outcome().unwrap()
    }
}

/// Ends the agent also when a test fails.
struct Ending(Stop);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.stop();
    }
}

enum Ordered {
    Busy,
    Taken(Receiver<Result<String, Failure>>),
}

impl Ordered {
    fn outcome(self) -> Result<(), (Kind, String)> {
        match self {
            Self::Busy => panic!("the agent is busy"),
            Self::Taken(outcome_rx) => {
                let outcome = outcome_rx.recv_timeout(DEADLINE).expect("an outcome");
                outcome.map(drop).map_err(|failure| (failure.kind, failure.message))
            }
        }
    }
}

fn files() -> FileServer {
    FileServer::with_files(&[("/v1", V1), ("/v2", V2), ("/bad", b"bad")])
}

#[test]
fn what_the_owner_asks_for_is_made_and_told() {
    let server = files();
    let pod = Pod::new(&server);
    pod.annotate(&server.wanted("v1", "/v1", V1));
    pod.run(&server, |_| {
        let outcome = pod.wait("v1", OutcomeState::Done);
        assert_eq!(outcome.current.as_deref(), Some("v1"));
        assert_eq!(pod.content(), "first");
        pod.annotate(&server.wanted("v2", "/v2", V2));
        pod.wait("v2", OutcomeState::Done);
        assert_eq!(pod.content(), "second");
        let condition = &pod.board.posted(SOURCE).unwrap().conditions[names::CONDITION];
        assert_eq!((condition.status, condition.reason.as_str()), (ConditionStatus::True, "Done"));
    });
}

#[test]
fn b13_a_rollback_by_the_owner_holds_after_a_restart() {
    let server = files();
    let pod = Pod::new(&server);
    for (version, path, content) in [("v2", "/v2", V2), ("v1", "/v1", V1)] {
        pod.annotate(&server.wanted(version, path, content));
        pod.run(&server, |_| pod.wait(version, OutcomeState::Done));
    }
    let requests = server.requests();
    pod.run(&server, |order| {
        // An order that the rules refuse is answered after the first look.
        let _ = order(server.wanted("v0", "/v0", V1)).outcome();
        assert_eq!((pod.content().as_str(), server.requests()), ("first", requests));
        assert_eq!(pod.outcome().map(|outcome| outcome.version).as_deref(), Some("v1"));
    });
}

#[test]
fn an_owner_that_makes_no_sense_is_told_so() {
    let server = files();
    let pod = Pod::new(&server);
    fs::write(&pod.identity.annotations_file, format!("{}=\"latest\"", names::WANTED)).unwrap();
    pod.run(&server, |_| {
        let outcome = pod.wait("", OutcomeState::Failed);
        assert!(outcome.message.starts_with("annotation pillion.dev/hot-update: is no JSON object"), "{outcome:?}");
        fs::write(&pod.identity.annotations_file, "").unwrap();
        until("it is no longer told", || pod.outcome().is_none());
    });
}

#[test]
fn what_was_rolled_back_is_left_alone_until_it_is_asked_anew() {
    let server = files();
    let mut pod = Pod::new(&server);
    pod.annotate(&server.wanted("v1", "/v1", V1));
    pod.run(&server, |_| pod.wait("v1", OutcomeState::Done));
    pod.config.check = Some(pod.app.check("bad"));
    pod.annotate(&server.wanted("v2", "/bad", b"bad"));
    pod.run(&server, |_| {
        let outcome = pod.wait("v2", OutcomeState::Failed);
        assert_eq!(outcome.current.as_deref(), Some("v1"));
        assert!(outcome.message.ends_with("; the app has v1 again"), "{outcome:?}");
        assert_eq!(pod.content(), "first");
    });
    let reloads = pod.app.reloads.load(Ordering::Acquire);
    pod.run(&server, |order| {
        let _ = order(server.wanted("v0", "/v0", V1)).outcome();
        assert_eq!(pod.app.reloads.load(Ordering::Acquire), reloads);
        fs::write(&pod.identity.annotations_file, "").unwrap();
        until("the owner's silence is seen", || {
            fs::read_to_string(pod.dir.path().join("files/.versions/state")).unwrap().contains("\"owner\":null")
        });
        pod.annotate(&server.wanted("v2", "/bad", b"bad"));
        until("it is tried again", || pod.app.reloads.load(Ordering::Acquire) > reloads);
    });
}

#[test]
fn b12_the_record_of_a_pod_is_its_own_and_does_not_grow() {
    let server = FileServer::start(|head, out| whole(out, "200 OK", head.split(' ').nth(1).unwrap().as_bytes()));
    let pod = Pod::new(&server);
    let state = pod.dir.path().join("files/.versions/state");
    let mut sizes = Vec::new();
    pod.run(&server, |order| {
        for number in 10..20 {
            let path = format!("/{number}");
            order(server.wanted(&format!("v{number}"), &path, path.as_bytes())).outcome().unwrap();
            until("the record is written", || fs::read_to_string(&state).is_ok_and(|text| text.contains("Done")));
            sizes.push(fs::metadata(&state).unwrap().len());
        }
    });
    assert_eq!(sizes, [sizes[0]; 10]);
    let versions = fs::read_dir(pod.dir.path().join("files/.versions")).unwrap().count();
    assert_eq!(versions, usize::try_from(pod.config.bounds.keep).unwrap() + 1);
}

#[test]
fn b15_a_digest_in_the_configuration_is_used() {
    let server = files();
    let mut pod = Pod::new(&server);
    pod.config.digests = [("v1".to_owned(), sha256(V1)), ("v2".to_owned(), sha256(V1))].into();
    pod.run(&server, |order| {
        let asked = |version, path| order(Wanted { sha256: None, ..server.wanted(version, path, V1) }).outcome();
        assert_eq!(asked("v1", "/v1"), Ok(()));
        // The file is not what the configuration says.
        let (kind, message) = asked("v2", "/v2").unwrap_err();
        assert_eq!(kind, Kind::Unfit);
        assert_eq!(message, format!("the file has sha256 {}, and {} was asked for", sha256(V2), sha256(V1)));
        assert_eq!(pod.content(), "first");
        // And without one nothing is fetched.
        let requests = server.requests();
        assert_eq!(asked("v3", "/v1").unwrap_err().0, Kind::Refused);
        assert_eq!(server.requests(), requests);
    });
}

#[test]
fn attack_a_request_for_an_old_version() {
    let server = files();
    let mut pod = Pod::new(&server);
    let lower = || server.wanted("v1.9", "/v1", V1);
    pod.run(&server, |order| {
        assert_eq!(order(server.wanted("v1.10", "/v2", V2)).outcome(), Ok(()));
        let (kind, message) = order(lower()).outcome().unwrap_err();
        assert_eq!(kind, Kind::Refused);
        assert_eq!(
            message,
            "v1.9 is lower than v1.10, which the app has: set allowDowngrade, or ask by the annotation of the pod"
        );
        assert_eq!(pod.content(), "second");
    });
    pod.config.allow_downgrade = true;
    pod.run(&server, |order| assert_eq!(order(lower()).outcome(), Ok(())));
}

#[test]
fn attack_two_concurrent_updates() {
    let (open_tx, open_rx) = channel::<()>();
    let open_rx = std::sync::Mutex::new(open_rx);
    let server = FileServer::start(move |head, out| {
        if head.starts_with("GET /v1 ") {
            let _ = open_rx.lock().unwrap().recv_timeout(DEADLINE);
            return whole(out, "200 OK", V1);
        }
        whole(out, "200 OK", V2)
    });
    let pod = Pod::new(&server);
    pod.run(&server, |order| {
        let first = order(server.wanted("v1", "/v1", V1));
        until("the first is on its way", || server.requests() == 1);
        assert!(matches!(order(server.wanted("v2", "/v2", V2)), Ordered::Busy));
        // The owner's word waits too.
        pod.annotate(&server.wanted("v2", "/v2", V2));
        assert_eq!(server.requests(), 1);
        open_tx.send(()).unwrap();
        assert_eq!(first.outcome(), Ok(()));
        pod.wait("v2", OutcomeState::Done);
        assert_eq!((pod.content().as_str(), server.requests()), ("second", 2));
    });
}

#[test]
fn two_updates_are_so_far_apart() {
    let server = files();
    let mut pod = Pod::new(&server);
    pod.config.bounds.min_interval_seconds = 60;
    pod.run(&server, |order| {
        assert_eq!(order(server.wanted("v1", "/v1", V1)).outcome(), Ok(()));
        let refusal = order(server.wanted("v2", "/v2", V2)).outcome();
        assert_eq!(refusal, Err((Kind::Busy, "the last update began less than 60 s ago".to_owned())));
    });
}

#[test]
fn attack_disk_full() {
    // A disk of its own, of 2 MiB; only where mounts may be made.
    let server = FileServer::start(|head, out| {
        if head.starts_with("GET /v1 ") {
            return whole(out, "200 OK", V1);
        }
        let block = vec![b'x'; 64 * 1024];
        if head.starts_with("GET /told ") {
            return whole(out, "200 OK", &block.repeat(64));
        }
        write!(out, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
        (0..64).try_for_each(|_| out.write_all(&block))
    });
    let pod = Pod::new(&server);
    let files = pod.dir.path().join("files");
    let flags = rustix::mount::MountFlags::empty();
    if rustix::mount::mount("tmpfs", &files, "tmpfs", flags, Some(c"size=2m")).is_err() {
        return;
    }
    let _unmounting = Unmounting(files.clone());
    let big = vec![b'x'; 64 * 64 * 1024];
    pod.run(&server, |order| {
        assert_eq!(order(server.wanted("v1", "/v1", V1)).outcome(), Ok(()));
        let (kind, message) = order(server.wanted("v2", "/told", &big)).outcome().unwrap_err();
        assert_eq!(kind, Kind::Disk);
        assert!(message.starts_with("the file has 4194304 bytes and ") && message.contains(" are free: "), "{message}");
        let (kind, message) = order(server.wanted("v3", "/untold", &big)).outcome().unwrap_err();
        assert_eq!(
            (kind, message.as_str()),
            (Kind::Disk, "cannot write the file: No space left on device (os error 28)")
        );
        assert_eq!(pod.content(), "first");
        // The room is given back, and the next one that fits is made.
        let outcome = order(server.wanted("v4", "/v1", V1)).outcome();
        assert_eq!(outcome, Ok(()));
    });
}

struct Unmounting(PathBuf);

impl Drop for Unmounting {
    fn drop(&mut self) {
        rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH).unwrap();
    }
}

#[test]
fn a_version_somebody_removed_is_brought_back_at_the_start() {
    let server = files();
    let pod = Pod::new(&server);
    pod.annotate(&server.wanted("v1", "/v1", V1));
    pod.run(&server, |_| pod.wait("v1", OutcomeState::Done));
    fs::remove_dir_all(pod.dir.path().join("files/.versions").join(format!("v1-{}", &sha256(V1)[..12]))).unwrap();
    assert_eq!(pod.content(), "");
    pod.run(&server, |_| until("it is brought back", || pod.content() == "first"));
}

#[test]
fn what_only_the_record_asks_for_is_not_fetched() {
    let server = files();
    let pod = Pod::new(&server);
    let versions = pod.dir.path().join("files/.versions");
    fs::create_dir(&versions).unwrap();
    let wanted = serde_json::to_string(&server.wanted("v2", "/v2", V2)).unwrap();
    let forged = format!(r#"{{"asked":{{"wanted":{wanted},"state":"Working"}}}}"#);
    fs::write(versions.join("state"), forged).unwrap();
    pod.run(&server, |_| {
        let outcome = pod.wait("v2", OutcomeState::Failed);
        assert_eq!(
            outcome.message,
            "the agent was started again before the file was there, and nobody asks for it now: ask again"
        );
        assert_eq!((server.requests(), pod.content().as_str()), (0, ""));
    });
}

#[test]
fn what_could_not_be_reached_is_tried_again() {
    let server = FileServer::start(|_, out| whole(out, "503 Service Unavailable", b""));
    let pod = Pod::new(&server);
    pod.annotate(&server.wanted("v1", "/v1", V1));
    pod.run(&server, |_| {
        let outcome = pod.wait("v1", OutcomeState::Failed);
        assert!(outcome.message.ends_with(" answers 503; it will be tried again"), "{outcome:?}");
    });
    // A new agent does not wait for the pause.
    pod.run(&server, |_| until("it is asked again", || server.requests() > 1));
}
