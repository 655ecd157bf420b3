use std::sync::Mutex;

use pillion_agent_api::Target;
use serde_json::{Value, json};

use super::*;
use crate::board::local::apply;
use crate::board::{Condition, ConditionStatus, Marks};

const NOW: Timestamp = Timestamp(1_794_700_000);

/// A pod that the test changes too, and answers that go wrong when the test says so.
#[derive(Default)]
struct World {
    pod: Value,
    looks: usize,
    patches: Vec<Value>,
    fields: BTreeMap<String, String>,
    /// Places whose patches are refused.
    refused: Vec<String>,
    is_down: bool,
}

struct Fake(Arc<Mutex<World>>);

fn down() -> ApiError {
    ApiError::Refused { status: 503, message: "down".to_owned() }
}

impl Sink for Fake {
    fn look(&mut self) -> Result<Shown, ApiError> {
        let mut world = self.0.lock().unwrap();
        world.looks += 1;
        if world.is_down { Err(down()) } else { Ok(serde_json::from_value(world.pod.clone()).unwrap()) }
    }

    fn write(&mut self, patch: &Value) -> Result<Shown, ApiError> {
        let mut world = self.0.lock().unwrap();
        if world.is_down {
            return Err(down());
        }
        if world.refused.iter().any(|word| patch.to_string().contains(word)) {
            return Err(ApiError::Refused { status: 422, message: "the fence says no".to_owned() });
        }
        world.patches.push(patch.clone());
        apply(&mut world.pod, patch);
        Ok(serde_json::from_value(world.pod.clone()).unwrap())
    }

    fn look_at(&mut self, target: &Target) -> Result<Option<String>, ApiError> {
        Ok(self.0.lock().unwrap().fields.get(&target.name).cloned())
    }

    fn write_to(&mut self, target: &Target, value: &str) -> Result<(), ApiError> {
        let mut world = self.0.lock().unwrap();
        world.patches.push(json!({target.name.clone(): value}));
        world.fields.insert(target.name.clone(), value.to_owned());
        Ok(())
    }
}

struct Scene {
    board: Arc<Board>,
    world: Arc<Mutex<World>>,
    writer: Writer<Fake>,
    start: Instant,
}

impl Scene {
    fn new() -> Self {
        let (board, world) =
            (Arc::<Board>::default(), Arc::new(Mutex::new(World { pod: json!({}), ..World::default() })));
        let start = Instant::now();
        let writer = Writer::new(Arc::clone(&board), Fake(Arc::clone(&world)), start);
        Self { board, world, writer, start }
    }

    fn post_label(&self, key: &str, value: &str) {
        let labels = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        self.board.post(key, Marks { labels, ..Marks::default() });
    }

    /// A step after so many seconds; returns in how many whole seconds the next one is due.
    fn step(&mut self, after: u64) -> Option<u64> {
        let now = self.start + Duration::from_secs(after);
        let next = self.writer.step(now, Timestamp(NOW.0 + after));
        next.map(|next| next.saturating_duration_since(now).as_secs())
    }

    fn patches(&self) -> Vec<Value> {
        std::mem::take(&mut self.world.lock().unwrap().patches)
    }
}

fn label(key: &str, value: &str) -> Value {
    json!({"metadata": {"labels": {key: value}}})
}

#[test]
fn nothing_wanted_is_nothing_asked() {
    let mut scene = Scene::new();
    assert_eq!(scene.step(0), None);
    assert_eq!(scene.world.lock().unwrap().looks, 0);
    // Facts are asked for once.
    assert_eq!(scene.board.facts(), None);
    scene.step(1);
    assert!(scene.board.facts().is_some());
    assert_eq!(scene.step(100), None);
    assert_eq!(scene.world.lock().unwrap().looks, 1);
}

#[test]
fn a_change_is_written_once_and_then_looked_after() {
    let mut scene = Scene::new();
    scene.post_label("a", "1");
    let next = scene.step(0).unwrap();
    assert!((60..=72).contains(&next), "{next}");
    assert_eq!(scene.patches(), [label("a", "1")]);
    scene.step(1);
    assert_eq!((scene.patches(), scene.world.lock().unwrap().looks), (vec![], 1));
    scene.step(100);
    assert_eq!((scene.patches(), scene.world.lock().unwrap().looks), (vec![], 2));
    assert_eq!(scene.board.counters(), crate::board::Counters { writes: 1, ..Default::default() });
}

#[test]
fn what_is_overwritten_is_set_again_and_counted_by_writer() {
    let mut scene = Scene::new();
    scene.board.set_reassert(Some(Duration::from_secs(5)));
    scene.post_label("a", "1");
    scene.step(0);
    scene.patches();
    for round in 1..=3 {
        scene.world.lock().unwrap().pod = json!({"metadata": {"managedFields": [{"manager": "virtual-kubelet"}]}});
        let next = scene.step(round * 10).unwrap();
        assert!((5..=6).contains(&next), "{next}");
        assert_eq!(scene.patches(), [label("a", "1")]);
        assert_eq!(scene.board.counters().reasserts, BTreeMap::from([("virtual-kubelet".to_owned(), round)]));
    }
    // A change of our own is none.
    scene.post_label("a", "2");
    scene.step(100);
    assert_eq!(scene.board.counters().reasserts.values().sum::<u64>(), 3);
}

#[test]
fn one_that_is_refused_does_not_keep_the_others_back() {
    let mut scene = Scene::new();
    scene.world.lock().unwrap().refused.push("\"b\"".to_owned());
    for key in ["a", "b", "c"] {
        scene.post_label(key, "1");
    }
    let next = scene.step(0).unwrap();
    assert!((5..=10).contains(&next), "{next}");
    assert_eq!(scene.patches(), [label("a", "1"), label("c", "1")]);
    // Not tried before its time.
    scene.post_label("c", "2");
    scene.step(1);
    assert_eq!((scene.patches(), scene.board.counters().failures), (vec![label("c", "2")], 1));
    scene.step(11);
    assert_eq!((scene.patches(), scene.board.counters().failures), (vec![], 2));
    scene.world.lock().unwrap().refused.clear();
    scene.step(60);
    assert_eq!(scene.patches(), [label("b", "1")]);
}

#[test]
fn a_server_that_is_down_is_asked_less_and_less() {
    let mut scene = Scene::new();
    scene.world.lock().unwrap().is_down = true;
    scene.post_label("a", "1");
    let mut after = 0;
    for most in [1, 2, 4, 8, 16, 32, 60, 60] {
        let next = scene.step(after).unwrap();
        assert!(next >= most / 2 && next <= most, "{next} of {most}");
        // A change does not make it faster.
        let looks = scene.world.lock().unwrap().looks;
        scene.post_label("b", &after.to_string());
        scene.writer.step(scene.start + Duration::from_millis(after * 1_000 + 100), NOW);
        assert_eq!(scene.world.lock().unwrap().looks, looks);
        after += most + 1;
    }
    scene.world.lock().unwrap().is_down = false;
    scene.step(after);
    assert_eq!(scene.patches().len(), 1);
}

#[test]
fn a_state_that_changes_all_the_time_is_written_now_and_then() {
    let mut scene = Scene::new();
    for second in 0..100 {
        scene.post_label("a", &second.to_string());
        scene.step(second);
    }
    let patches = scene.patches();
    assert!((10..=30).contains(&patches.len()), "{}", patches.len());
    // The last one is not lost.
    let next = scene.step(100).unwrap();
    scene.step(100 + next + 1);
    assert_eq!(scene.world.lock().unwrap().pod, label("a", "99"));
}

#[test]
fn a_target_is_written_where_it_differs_and_looked_after() {
    let mut scene = Scene::new();
    let target = Target {
        group: "game.kruise.io".to_owned(),
        version: "v1alpha1".to_owned(),
        resource: "gameservers".to_owned(),
        namespace: "n".to_owned(),
        name: "g".to_owned(),
        pointer: "/spec/opsState".to_owned(),
    };
    let post = |scene: &Scene, value: &str| {
        scene.board.post("x", Marks { targets: vec![(target.clone(), value.to_owned())], ..Marks::default() });
    };
    post(&scene, "None");
    scene.step(0);
    scene.step(1);
    assert_eq!(scene.patches(), [json!({"g": "None"})]);
    scene.world.lock().unwrap().fields.insert("g".to_owned(), "Kill".to_owned());
    scene.step(100);
    assert_eq!(scene.patches(), [json!({"g": "None"})]);
    assert_eq!(scene.board.counters().reasserts.values().sum::<u64>(), 1);
    // No value for a state: what is there stays.
    scene.board.post("x", Marks::default());
    scene.step(200);
    assert_eq!((scene.patches(), scene.world.lock().unwrap().fields["g"].as_str()), (vec![], "None"));
}

#[test]
fn a_condition_of_another_writer_is_not_written_until_it_is_gone() {
    let mut scene = Scene::new();
    let fields = json!({"f:status": {"f:conditions": {"k:{\"type\":\"A\"}": {}}}});
    scene.world.lock().unwrap().pod = json!({
        "metadata": {"managedFields": [{"manager": "kruise-manager", "fieldsV1": fields}]},
        "status": {"conditions": [{"type": "A", "status": "False"}]},
    });
    let condition = Condition { status: ConditionStatus::True, reason: "R".to_owned(), message: "m".to_owned() };
    let conditions = BTreeMap::from([("A".to_owned(), condition)]);
    scene.board.post("x", Marks { conditions, ..Marks::default() });
    scene.step(0);
    assert_eq!(scene.patches(), Vec::<Value>::new());
    scene.world.lock().unwrap().pod = json!({});
    scene.step(100);
    assert_eq!(scene.patches().len(), 1);
}
