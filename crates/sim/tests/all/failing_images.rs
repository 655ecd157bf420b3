//! A failing image stops where it should, and a good one recovers.

use crate::script::{Event, Script};
use crate::world::World;

fn script(probe: bool, native: bool) -> Script {
    Script {
        pods: 10,
        workloads: 2,
        max_unavailable: "3".to_owned(),
        partition: "0".to_owned(),
        probe,
        native,
        lag: 2,
        habits: [2, 1, 1],
        ..Script::default()
    }
}

/// How many pods got an image that does not run, and how many have the good one in the end.
fn reached(probe: bool, native: bool, tag: &'static str) -> (usize, usize) {
    let mut world = World::new(&script(probe, native), false);
    world.seconds_pass(5).unwrap();
    world.happens(Event::Image(tag));
    world.seconds_pass(600).unwrap();
    let reached = world.newest();
    assert_eq!(world.writes, reached, "one write for each");
    let progress = world.pass().unwrap();
    assert!(progress.stalled.is_some());
    world.happens(Event::Image("7"));
    world.seconds_pass(300).unwrap();
    assert_eq!(world.pass().unwrap().stalled, None);
    (reached, world.newest())
}

#[test]
fn with_the_first_pod_tried_alone_it_stops_at_one() {
    for tag in ["missing", "crash", "sick"] {
        for native in [false, true] {
            assert_eq!(reached(true, native, tag), (1, 10), "{tag}, native: {native}");
        }
    }
}

#[test]
fn without_it_stops_at_as_many_as_may_be_unavailable() {
    for tag in ["missing", "crash", "sick"] {
        for native in [false, true] {
            assert_eq!(reached(false, native, tag), (3, 10), "{tag}, native: {native}");
        }
    }
}
