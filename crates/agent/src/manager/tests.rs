use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::mpsc;

use anyhow::bail;
use pillion_agent_api::{self as agent_api, Address, Endpoint, Form, HttpProbe, PodProbe, Storage};

use super::*;
use crate::board::{Board, Marks};
use crate::pod::PodIdentity;

const DEADLINE: Duration = Duration::from_secs(30);

/// Tells what happens to it, and fails as often as it is told to.
struct Fake {
    config: PluginConfig,
    event_tx: Sender<String>,
    failures: u32,
}

impl Plugin for Fake {
    fn name(&self) -> &'static str {
        self.config.name()
    }

    fn config_type(&self) -> &'static str {
        "Fake"
    }

    fn init(&mut self, _: &PluginConfig) -> anyhow::Result<()> {
        self.event_tx.send(format!("init {}", self.name()))?;
        Ok(())
    }

    fn start(&mut self, context: &Context) -> anyhow::Result<()> {
        if self.failures > 0 {
            self.failures -= 1;
            bail!("no luck");
        }
        self.event_tx.send(format!("start {}", self.name()))?;
        while !context.stop.wait(Duration::from_secs(1)) {}
        self.event_tx.send(format!("stop {}", self.name()))?;
        Ok(())
    }
}

fn context(board: &Arc<Board>) -> Context {
    let pod = PodIdentity {
        name: "p".to_owned(),
        namespace: "n".to_owned(),
        uid: "u".to_owned(),
        annotations_file: "/dev/null".into(),
    };
    Context { stop: Stop::default(), board: Arc::clone(board), pod: Arc::new(pod), api_server: None }
}

fn pod_probe() -> PluginConfig {
    PluginConfig::PodProbe(PodProbe { reassert_seconds: 60 })
}

/// Asks whether these ports are open, and says so in labels `portN`.
fn http_probe(ports: &[u16]) -> PluginConfig {
    let endpoint = |port: &u16| Endpoint {
        address: Address::Tcp { host: "127.0.0.1".to_owned(), port: *port },
        timeout_seconds: 1,
        success_threshold: 1,
        failure_threshold: 1,
        failure_state: "closed".to_owned(),
        json_path: None,
        storage: Storage { label_key: Some(format!("port{port}")), ..Storage::default() },
    };
    PluginConfig::HttpProbe(HttpProbe {
        start_delay_seconds: 0,
        interval_seconds: 1,
        reassert_seconds: 60,
        endpoints: ports.iter().map(endpoint).collect(),
    })
}

fn add(manager: &mut Manager, boot_order: i64, config: PluginConfig, failures: u32) -> Receiver<String> {
    let (event_tx, event_rx) = mpsc::channel();
    let plugin = Fake { config: config.clone(), event_tx, failures };
    manager.add(boot_order, Box::new(plugin), config).unwrap();
    event_rx
}

fn next(event_rx: &Receiver<String>) -> String {
    event_rx.recv_timeout(DEADLINE).expect("something happens")
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "waited for: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Another implementation starts plugins in the order of a hash map, and panics when it is to stop.
#[test]
fn b09_plugins_start_in_boot_order_and_end_in_the_other() {
    let mut manager = Manager::new(context(&Arc::default()));
    let (event_tx, event_rx) = mpsc::channel();
    for (boot_order, config) in [(5, pod_probe()), (-1, http_probe(&[]))] {
        let plugin = Fake { config: config.clone(), event_tx: event_tx.clone(), failures: 0 };
        manager.add(boot_order, Box::new(plugin), config).unwrap();
    }
    assert_eq!(manager.status("http_probe").map(|status| status.is_running), Some(false));
    manager.start();
    let mut events: Vec<String> = (0..4).map(|_| next(&event_rx)).collect();
    events.retain(|event| event.starts_with("init"));
    assert_eq!(events, ["init http_probe", "init pod_probe"]);
    assert_eq!(manager.status("http_probe").map(|status| status.is_running), Some(true));
    manager.stop();
    assert_eq!([next(&event_rx), next(&event_rx)], ["stop pod_probe", "stop http_probe"]);
    assert_eq!(manager.status("http_probe").map(|status| status.is_running), Some(false));
}

/// Another implementation ends with the first plugin that fails.
#[test]
fn b10_a_plugin_that_fails_is_started_again_and_the_others_go_on() {
    let mut manager = Manager::new(context(&Arc::default()));
    let failing_rx = add(&mut manager, 0, pod_probe(), 2);
    let good_rx = add(&mut manager, 1, http_probe(&[]), 0);
    manager.start();
    assert_eq!([next(&good_rx), next(&good_rx)], ["init http_probe", "start http_probe"]);
    let events = [(); 4].map(|()| next(&failing_rx));
    assert_eq!(events, ["init pod_probe", "init pod_probe", "init pod_probe", "start pod_probe"]);
    let status = manager.status("pod_probe").unwrap();
    let expected = PluginStatus {
        name: "pod_probe",
        version: env!("CARGO_PKG_VERSION"),
        is_running: true,
        failures: 2,
        last_failure: Some("no luck".to_owned()),
    };
    assert_eq!(status, expected);
    assert_eq!(manager.status("http_probe").map(|status| status.failures), Some(0));
    manager.stop();
}

#[test]
fn there_is_one_plugin_of_each_name() {
    let mut manager = Manager::new(context(&Arc::default()));
    let _event_rx = add(&mut manager, 0, pod_probe(), 0);
    let (event_tx, _) = mpsc::channel();
    let second = Box::new(Fake { config: pod_probe(), event_tx, failures: 0 });
    let refused = manager.add(0, second, pod_probe()).unwrap_err().to_string();
    assert_eq!(refused, "plugin pod_probe is there already");
    assert_eq!(manager.remove("hot_update").unwrap_err().to_string(), "there is no plugin hot_update");
    manager.remove("pod_probe").unwrap();
    assert_eq!(manager.status("pod_probe"), None);
    assert_eq!(manager.version(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_changed_configuration_changes_only_what_it_must() {
    let board = Arc::<Board>::default();
    let mut manager = Manager::new(context(&board));
    let event_rx = add(&mut manager, 0, pod_probe(), 0);
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let ports = listeners.each_ref().map(|listener| listener.local_addr().unwrap().port());
    let config = |plugins: Vec<PluginConfig>| Config {
        plugins: plugins.into_iter().map(|config| agent_api::Plugin { boot_order: 0, config }).collect(),
        form: Form::default(),
        metrics_port: None,
    };
    let label = |at: usize| BTreeMap::from([(format!("port{}", ports[at]), "open".to_owned())]);
    let labels = |source: &str| board.posted(source).map(|marks| marks.labels);
    manager.load(&config(vec![pod_probe(), http_probe(&ports[..2])]));
    wait_until("both ports to be told", || labels("http_probe/1") == Some(label(1)));
    wait_until("both ports to be told", || labels("http_probe/0") == Some(label(0)));
    // Another port instead of both: what the second showed is gone, and the first is replaced.
    manager.load(&config(vec![pod_probe(), http_probe(&ports[2..])]));
    wait_until("the third port to be told", || labels("http_probe/0") == Some(label(2)));
    assert_eq!(labels("http_probe/1"), None);
    manager.load(&config(vec![pod_probe()]));
    assert_eq!((labels("http_probe/0"), manager.status("http_probe")), (None, None));
    // The other one was not disturbed.
    assert_eq!([next(&event_rx), next(&event_rx)], ["init pod_probe", "start pod_probe"]);
    manager.stop();
    assert_eq!(next(&event_rx), "stop pod_probe");
    assert_eq!(event_rx.try_recv().ok(), None);
}

/// Another implementation shares a map between threads without a lock.
#[test]
fn b08_many_threads_use_one_board() {
    let board = Arc::<Board>::default();
    thread::scope(|scope| {
        for source in 0..8 {
            let board = &board;
            scope.spawn(move || {
                for round in 0..200 {
                    let labels = BTreeMap::from([(format!("key{source}"), format!("{round}"))]);
                    board.post(&format!("s{source}"), Marks { labels, ..Marks::default() });
                    board.wanted();
                    board.count(|counters| counters.writes += 1);
                }
            });
        }
    });
    let values: Vec<String> =
        (0..8).map(|at| board.posted(&format!("s{at}")).unwrap().labels[&format!("key{at}")].clone()).collect();
    assert_eq!((values, board.counters().writes), (vec!["199".to_owned(); 8], 1_600));
}
