//! Any text as a checkpoint: refused in words, or loaded, and then saved, loaded and recommended from without surprise.
#![no_main]

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use pillion_api::VerticalPodAutoscalerCheckpointStatus;
use pillion_rightsize::{Aggregate, ContainerPolicy, ContainerType, Instance, Oom, Settings, Usage, recommend};

fuzz_target!(|text: &str| {
    let Ok(stored) = serde_json::from_str::<VerticalPodAutoscalerCheckpointStatus>(text) else { return };
    let settings = Settings::default();
    let mut own = match Aggregate::load(&stored, &settings) {
        Ok(own) => own,
        Err(why) => return assert!(why.starts_with("status."), "{why}"),
    };
    let at = Timestamp::from_second(1_767_225_600).expect("a moment of 2026");
    let mut instance = Instance::default();
    own.add(&mut instance, &Usage { at, cpu: Some(100), memory: Some(100 << 20) }, &settings);
    own.add_oom(&mut instance, &Oom { at, memory_used: 100 << 20 }, &settings);
    let recommended = recommend(&[("app", ContainerType::App, &own)], |_| ContainerPolicy::default(), &settings);
    for container in &recommended.containers {
        let all = [container.lower, container.target, container.upper, container.uncapped];
        assert!(all.iter().flat_map(|amounts| amounts.iter()).all(|(_, amount)| amount >= 0), "{container:?}");
    }
    let saved = own.save([&instance], at);
    let again = Aggregate::load(&saved, &settings).expect("what we wrote can be read");
    let _ = (again.is_expired(at, &settings), again.save([], at));
});
