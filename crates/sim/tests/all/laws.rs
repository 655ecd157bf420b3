//! What holds in every run: at each write by what is really so, and at the end.

use pillion_generators::law;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::script::{Event, Script};
use crate::world::World;

const CASES: u32 = 200;
/// Long enough for every pod to be given up on, one after the other.
const LONG: u32 = 2_000;
/// Nothing takes longer than this without a write.
const QUIET: u32 = 150;

/// Runs a script, and then lets everything settle with a good image.
fn run(script: &Script, is_restless: bool) -> Result<World, TestCaseError> {
    let fail = |why: String| TestCaseError::fail(format!("{why}\n{script:?}"));
    let mut world = World::new(script, is_restless);
    for (after, event) in &script.events {
        world.seconds_pass(*after).map_err(fail)?;
        world.happens(*event);
    }
    // People are done, and what they want can be had.
    world.happens(Event::Paused(false));
    world.happens(Event::Image("9"));
    (0..100).for_each(|number| world.happens(Event::App(number, true)));
    let (mut quiet, mut writes) = (0, world.writes);
    for _ in 0..LONG {
        world.seconds_pass(1).map_err(fail)?;
        quiet = if world.writes == writes { quiet + 1 } else { 0 };
        writes = world.writes;
        if quiet == QUIET {
            break;
        }
    }
    Ok(world)
}

/// Every pod that the partition does not keep has the newest revision and runs it; then nothing is written any more.
fn has_ended(world: &mut World) -> Result<(), TestCaseError> {
    let all = world.cluster.uids().count();
    let kept = pillion_rollout::pinned_target(world.set.update.partition, all);
    let progress = world.pass().map_err(TestCaseError::fail)?;
    prop_assert!(progress.blocked.is_empty() && progress.stalled.is_none() || kept > 0, "{progress:#?}");
    // New pods have the newest revision whatever the partition says, so there may be more of those.
    prop_assert!(world.newest() >= all - kept, "{} of {all}, {kept} kept", world.newest());
    let uids: Vec<String> = world.cluster.uids().map(str::to_owned).collect();
    for uid in uids {
        let is_newest = world.revisions(&uid).of("mesh").unwrap().is == world.set.revision;
        prop_assert!(!is_newest || world.cluster.runs_what_is_stored(&uid), "{uid} does not run what it was given");
    }
    let (writes, refused) = (world.writes, world.refused);
    world.seconds_pass(300).map_err(TestCaseError::fail)?;
    prop_assert_eq!((world.writes, world.refused), (writes, refused), "it never stops writing");
    let progress = world.pass().map_err(TestCaseError::fail)?;
    prop_assert_eq!(progress.counts.pods, all);
    prop_assert_eq!(progress.counts.updated, world.newest());
    prop_assert_eq!(progress.wake_at, None);
    Ok(())
}

#[test]
fn by_what_is_so_no_write_breaks_a_rule_and_every_update_ends() {
    law(CASES, &any::<u64>().no_shrink(), |seed| {
        let script = Script::steady(seed);
        let mut world = run(&script, false)?;
        has_ended(&mut world).map_err(|why| TestCaseError::fail(format!("{why}\n{script:?}")))?;
        let all = world.cluster.uids().count();
        let kept = pillion_rollout::pinned_target(world.set.update.partition, all);
        prop_assert_eq!(world.newest(), all - kept, "exactly as many as the partition says\n{:?}", script);
        Ok(())
    });
}

#[test]
fn with_pods_that_come_and_go_too() {
    law(CASES, &any::<u64>().no_shrink(), |seed| has_ended(&mut run(&Script::restless(seed), true)?));
}

/// Counting only what the watch shows is not enough.
#[test]
fn a_manager_that_forgets_what_it_wrote_breaks_a_rule() {
    let script = Script {
        pods: 6,
        workloads: 1,
        max_unavailable: "1".to_owned(),
        partition: "0".to_owned(),
        lag: 4,
        habits: [3, 1, 1],
        ..Script::default()
    };
    let run = |forgets: bool| {
        let mut world = World::new(&script, true);
        world.forgets = forgets;
        world.seconds_pass(10).unwrap();
        // The watch shows this while it does not show yet what is written next.
        world.happens(Event::App(3, false));
        world.seconds_pass(1).unwrap();
        world.happens(Event::Image("1"));
        world.seconds_pass(60)
    };
    assert_eq!(run(false), Ok(()));
    let broken = run(true).unwrap_err();
    assert!(broken.contains("by what is so") && broken.contains("Availability"), "{broken}");
}
