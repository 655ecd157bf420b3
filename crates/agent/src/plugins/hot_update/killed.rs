//! kill -9 at every step: an agent in a process of its own is killed again and again, at moments that are spread over an
//! update, and the app always has the old version or the new one, whole.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use pillion_agent_api::{OutcomeState, Reload, Source, Wanted, names};

use super::desk::Desk;
use super::record::Record;
use super::reload::Reloader;
use super::rig::{App, DEADLINE, FileServer, TestResolver, config, until, whole};
use super::store::{Store, peek_state};
use super::wanted::Trigger;
use super::worker::Worker;
use crate::pod::PodIdentity;
use crate::stop::Stop;

/// Where the process that is killed finds what it needs: lines of folder, address and authorities of the server, its
/// prefix, and the URL of the app.
const SCENE: &str = "PILLION_TEST_KILLED";

/// The process that is killed. Without a scene it is no test.
#[test]
fn agent() {
    let Ok(scene) = env::var(SCENE) else { return };
    let [dir, address, ca_file, prefix, url] = *scene.lines().collect::<Vec<_>>() else { panic!("{scene}") };
    let files = Path::new(dir).join("files");
    let source = Source {
        prefix: prefix.to_owned(),
        ca_file: Some(ca_file.to_owned()),
        allow_private: true,
        ..Source::default()
    };
    let reload = Reload::Request { url: url.to_owned(), method: "POST".to_owned() };
    let config = config(&files, reload, vec![source]);
    let identity = PodIdentity {
        name: String::new(),
        namespace: String::new(),
        uid: String::new(),
        annotations_file: Path::new(dir).join("annotations"),
    };
    let stop = Stop::default();
    let store = Store::open(&files).unwrap();
    let reloader = Reloader::new(&config, &stop).unwrap();
    let resolver = TestResolver(address.parse().unwrap());
    let (_order_tx, order_rx) = sync_channel(1);
    let shared = (Arc::default(), stop, Desk::default());
    Worker::new(&config, &store, &reloader, &resolver, shared).run(&Trigger::Annotation(Arc::new(identity)), &order_rx);
}

struct Scene {
    dir: tempfile::TempDir,
    server: FileServer,
    app: App,
}

/// Half a megabyte that says which version it is from the first byte to the last.
fn content(version: usize) -> Vec<u8> {
    format!("{version:07}\n").repeat(1 << 16).into_bytes()
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("files")).unwrap();
        let server = FileServer::start(|head, out| {
            let number = head.split(['/', ' ']).nth(2).and_then(|number| number.parse().ok()).unwrap_or_default();
            whole(out, "200 OK", &content(number))
        });
        let app = App::start(dir.path().join("files/game.conf"));
        Self { dir, server, app }
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("files/game.conf")
    }

    fn annotate(&self, version: usize) {
        let wanted: Wanted = self.server.wanted(&format!("v{version}"), &format!("/{version}"), &content(version));
        let text = serde_json::to_string(&serde_json::to_string(&wanted).unwrap()).unwrap();
        fs::write(self.dir.path().join("annotations"), format!("{}={text}", names::WANTED)).unwrap();
    }

    fn start(&self) -> Agent {
        let scene = [
            self.dir.path().display().to_string(),
            self.server.address.to_string(),
            self.server.ca_file(),
            self.server.url("/"),
            format!("http://{}/reload", self.app.address),
        ];
        let module = module_path!().split_once("::").expect("the crate comes first").1;
        let child = Command::new(env::current_exe().unwrap())
            .args(["--exact", &format!("{module}::agent")])
            .env(SCENE, scene.join("\n"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Agent(child)
    }

    fn is_done(&self, version: usize) -> bool {
        let record = Record::parse(peek_state(&self.dir.path().join("files")).as_deref());
        record
            .asked
            .is_some_and(|asked| asked.wanted.version == format!("v{version}") && asked.state == OutcomeState::Done)
    }

    /// The last version that was seen to be loaded.
    fn loaded(&self) -> usize {
        let record = Record::parse(peek_state(&self.dir.path().join("files")).as_deref());
        record.good.expect("there was a version").version[1..].parse().unwrap()
    }

    /// The version that the app would read, which is whole.
    fn version(&self) -> Option<usize> {
        let found = fs::read(self.file()).ok()?;
        let version = String::from_utf8(found[..7].to_vec()).unwrap().parse().unwrap();
        assert!(found == content(version), "{version} is not whole");
        Some(version)
    }
}

struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn attack_kill_9_at_every_step_ends_in_the_old_version_or_the_new_one() {
    const ROUNDS: u32 = 40;
    const AFTER_THE_SWITCH: u32 = 4;
    let scene = Scene::new();
    // What was there before us is a version too.
    fs::write(scene.file(), content(0)).unwrap();
    scene.annotate(1);
    // How long an update takes here.
    let began = Instant::now();
    let agent = scene.start();
    until("the first update is done", || scene.is_done(1));
    let takes = began.elapsed();
    drop(agent);
    assert_eq!(scene.version(), Some(1));
    let (mut current, mut finished) = (1, 0);
    for round in 0..ROUNDS {
        let wanted = current + 1;
        // One that was placed and never seen to be loaded is taken back before the next one.
        let loaded = scene.loaded();
        let is_right = |seen: Option<usize>| seen.is_some_and(|seen| [loaded, current, wanted].contains(&seen));
        scene.annotate(wanted);
        let agent = scene.start();
        // Somewhere between the start and the end, as long as one took before; the last ones after the switch, however long
        // the machine takes for it now.
        let at = takes * round / (ROUNDS - AFTER_THE_SWITCH);
        let (end, latest) = (Instant::now() + at, Instant::now() + DEADLINE);
        let is_late = round >= ROUNDS - AFTER_THE_SWITCH;
        // The app reads all the time, and not only after the kill.
        loop {
            let seen = scene.version();
            assert!(is_right(seen), "round {round}: {seen:?}");
            if (is_late && seen == Some(wanted)) || (!is_late && Instant::now() >= end) {
                break;
            }
            assert!(Instant::now() < latest, "round {round}: no switch within {DEADLINE:?}");
        }
        drop(agent);
        let left = scene.version();
        assert!(is_right(left), "round {round}: {left:?}, and {loaded}, {current} or {wanted} were to be");
        if left == Some(wanted) {
            finished += 1;
        }
        // The next agent finishes what was begun, whatever was left.
        if round % 4 == 3 {
            let agent = scene.start();
            until("the update is done", || scene.is_done(wanted));
            drop(agent);
            assert_eq!(scene.version(), Some(wanted));
        }
        current = scene.version().expect("there is a version");
    }
    assert!((AFTER_THE_SWITCH..ROUNDS).contains(&finished), "{finished} of {ROUNDS} kills came after the switch");
    let left: Vec<String> = fs::read_dir(scene.dir.path().join("files/.versions"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(left.len() <= 6, "{left:?}");
}

/// Kills when a certain thing is seen on disk: steps that are too short to be met by the clock.
#[test]
fn attack_kill_9_at_what_is_seen_on_disk() {
    let scene = Scene::new();
    scene.annotate(1);
    let agent = scene.start();
    until("the first update is done", || scene.is_done(1));
    drop(agent);
    let files = scene.dir.path().join("files");
    let mut current = 1;
    let sights: [(&str, &dyn Fn(usize) -> bool); 4] = [
        ("a download", &|_| files.join(".versions/.new/game.conf").exists()),
        ("a stored version", &|wanted| {
            fs::read_dir(files.join(".versions"))
                .unwrap()
                .flatten()
                .any(|entry| entry.file_name().to_string_lossy().starts_with(&format!("v{wanted}-")))
        }),
        ("the switch", &|wanted| {
            fs::read_link(files.join("current")).unwrap().to_string_lossy().contains(&format!("/v{wanted}-"))
        }),
        ("the record", &|wanted| scene.is_done(wanted)),
    ];
    for round in 0..12 {
        let (what, is_seen) = sights[round % sights.len()];
        let wanted = current + 1;
        scene.annotate(wanted);
        let agent = scene.start();
        let end = Instant::now() + DEADLINE;
        while !is_seen(wanted) && !scene.is_done(wanted) {
            assert!(Instant::now() < end, "{what} is seen");
            thread::sleep(Duration::from_micros(200));
        }
        drop(agent);
        let left = scene.version().expect("there is a version");
        assert!(left == current || left == wanted, "{what}: {left}, and {current} or {wanted} were to be");
        let agent = scene.start();
        until("the update is done", || scene.is_done(wanted));
        drop(agent);
        current = wanted;
        assert_eq!(scene.version(), Some(current));
    }
}
