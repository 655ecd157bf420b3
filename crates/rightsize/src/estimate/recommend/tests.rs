use jiff::{SignedDuration, Timestamp};

use crate::estimate::{Explanation, Instance, Origin, Step, Usage, explain};

use super::*;

const MEBIBYTE: i64 = 1024 * 1024;

fn at(minutes: i64) -> Timestamp {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    start.saturating_add(SignedDuration::from_mins(minutes)).unwrap()
}

/// A day of samples.
fn day(cpu: i64, memory: i64) -> Aggregate {
    let settings = Settings::default();
    let (mut own, mut instance) = (Aggregate::new(at(0), &settings), Instance::default());
    for minute in 0..1440 {
        let usage = Usage { at: at(minute), cpu: Some(cpu), memory: Some(memory * MEBIBYTE) };
        own.add(&mut instance, &usage, &settings);
    }
    own
}

fn none() -> Aggregate {
    Aggregate::new(at(0), &Settings::default())
}

fn amounts(cpu: i64, memory: i64) -> Amounts {
    Amounts { cpu: Some(cpu), memory: Some(memory) }
}

fn gate(native_sidecars: bool) -> Settings {
    Settings { native_sidecars, ..Settings::default() }
}

fn anything(_: &str) -> ContainerPolicy {
    ContainerPolicy::default()
}

fn names(own: &Recommendation) -> Vec<&str> {
    own.containers.iter().map(|own| own.container.as_str()).collect()
}

#[test]
fn size_no_recommendation_without_samples() {
    let (idle, empty) = (day(1, 1), none());
    let own = recommend(
        &[("idle", ContainerType::App, &idle), ("new", ContainerType::App, &empty)],
        anything,
        &Settings::default(),
    );
    assert_eq!(names(&own), ["idle"]);
    // The new one has its part of the floor already, so that its first sample does not change the other.
    assert_eq!(own.containers[0].target, amounts(12, 125 * MEBIBYTE));
    let explained = explain("new", ContainerType::App, &empty, &anything(""), 2, &Settings::default());
    assert_eq!(explained.cpu.absent.as_deref(), Some("there are no samples of cpu yet"));
    assert_eq!((explained.not_served, explained.memory.target), (None, Vec::new()));
}

#[test]
fn few_samples_can_be_too_few() {
    let (own, settings) = (day(100, 100), Settings { min_samples: 1441, ..Settings::default() });
    let recommended = |settings| names(&recommend(&[("app", ContainerType::App, &own)], anything, settings)).len();
    assert_eq!((recommended(&settings), recommended(&Settings { min_samples: 1440, ..settings.clone() })), (0, 1));
    let explained = explain("app", ContainerType::App, &own, &anything(""), 1, &settings);
    assert_eq!(explained.memory.absent.as_deref(), Some("there are 1440 samples, and 1441 are needed"));
}

#[test]
fn size_memory_alone_is_recommended_for() {
    let settings = Settings::default();
    let mut own = none();
    let usage = Usage { at: at(0), cpu: None, memory: Some(1024 * MEBIBYTE) };
    own.add(&mut Instance::default(), &usage, &settings);
    let own = recommend(&[("job", ContainerType::App, &own)], anything, &settings);
    let job = own.of("job").unwrap();
    assert_eq!(job.target, Amounts { cpu: None, memory: Some(1_238_659_775) });
    // Nothing is known of how it changes, so the bounds are as wide as can be.
    assert_eq!((job.lower.memory, job.upper.memory), (Some(250 * MEBIBYTE), Some(100_000_000_000_000)));
}

#[test]
fn gap_07_ours_05_the_floor_of_an_app_is_the_same_with_the_gate_on_and_off() {
    let (app, sidecar) = (day(1, 10), day(1, 1));
    let containers = [("app", ContainerType::App, &app), ("a-proxy", ContainerType::NativeSidecar, &sidecar)];
    let (off, on) = (recommend(&containers, anything, &gate(false)), recommend(&containers, anything, &gate(true)));
    assert_eq!(off.of("app").unwrap().target, amounts(25, 250 * MEBIBYTE));
    assert_eq!(on.of("app"), off.of("app"));
    assert_eq!((names(&off), names(&on)), (vec!["app"], vec!["a-proxy", "app"]));
    // A sidecar has a floor of its own, and all of it.
    assert_eq!(on.of("a-proxy").unwrap().target, amounts(11, 20 * MEBIBYTE));
}

#[test]
fn size_gate_on_off_on_gives_the_same_numbers() {
    let (app, sidecar) = (day(100, 300), day(30, 60));
    let containers = [("app", ContainerType::App, &app), ("proxy", ContainerType::NativeSidecar, &sidecar)];
    let of = |is_on| recommend(&containers, anything, &gate(is_on));
    let (first, second, third) = (of(true), of(false), of(true));
    assert_eq!((first.of("app"), &first), (second.of("app"), &third));
    assert_eq!(second.of("proxy"), None);
}

#[test]
fn gap_12_with_the_gate_off_the_checkpoint_of_a_sidecar_is_not_published() {
    let on = gate(true);
    let saved = day(100, 100).save(&[], at(1440));
    let loaded = Aggregate::load(&saved, &on).unwrap();
    let containers = [("proxy", ContainerType::NativeSidecar, &loaded)];
    assert_eq!(names(&recommend(&containers, anything, &on)), ["proxy"]);
    assert_eq!(names(&recommend(&containers, anything, &gate(false))), Vec::<&str>::new());
    assert!(!ContainerType::NativeSidecar.is_served(&gate(false)) && ContainerType::App.is_served(&gate(false)));
    let explained = explain("proxy", ContainerType::NativeSidecar, &loaded, &anything(""), 1, &gate(false));
    assert_eq!(explained.not_served.as_deref(), Some("it is a native sidecar, and the gate NativeSidecar is off"));
}

#[test]
fn size_the_policy_of_every_container_holds_for_sidecars_and_is_named() {
    let (app, sidecar) = (day(1000, 1024), day(1000, 1024));
    let max = Amounts { cpu: Some(50), memory: None };
    let policy = |name: &str| match name {
        "own" => ContainerPolicy { max: Amounts { cpu: Some(70), memory: None }, ..ContainerPolicy::default() },
        _ => ContainerPolicy { max, is_of_every_container: true, ..ContainerPolicy::default() },
    };
    let proxies = |name| [("app", ContainerType::App, &app), (name, ContainerType::NativeSidecar, &sidecar)];
    let target = |name| recommend(&proxies(name), policy, &gate(true)).of(name).unwrap().target.cpu;
    assert_eq!((target("proxy"), target("own")), (Some(50), Some(70)));
    let last = |name: &str| {
        let explained = explain(name, ContainerType::NativeSidecar, &sidecar, &policy(name), 1, &gate(true));
        explained.cpu.target.last().unwrap().step
    };
    assert_eq!(last("proxy"), Step::MaxAllowed { most: 50, origin: Origin::EveryContainer });
    assert_eq!(last("own"), Step::MaxAllowed { most: 70, origin: Origin::Own });
}

#[test]
fn containers_that_are_off_have_no_part_of_the_floor() {
    let own = day(1, 1);
    let policy = |name: &str| ContainerPolicy { is_off: name == "off", ..ContainerPolicy::default() };
    let all = [("on", ContainerType::App, &own), ("off", ContainerType::App, &own)];
    let recommended = recommend(&all, policy, &Settings::default());
    assert_eq!((names(&recommended), recommended.containers[0].target.cpu), (vec!["on"], Some(25)));
    let explained = explain("off", ContainerType::App, &own, &policy("off"), 1, &Settings::default());
    assert_eq!(explained.not_served.as_deref(), Some("its policy says Off"));
}

#[test]
fn only_resources_of_the_policy_are_recommended() {
    let own = day(1000, 1024);
    let policy = |_: &str| ContainerPolicy { sizes_memory: false, ..ContainerPolicy::default() };
    let recommended = recommend(&[("app", ContainerType::App, &own)], policy, &Settings::default());
    assert_eq!(recommended.containers[0].target, Amounts { cpu: Some(1168), memory: None });
    let explained = explain("app", ContainerType::App, &own, &policy(""), 1, &Settings::default());
    assert_eq!(explained.memory.absent.as_deref(), Some("its policy does not control memory"));
    let nothing = |_: &str| ContainerPolicy { sizes_cpu: false, sizes_memory: false, ..ContainerPolicy::default() };
    assert_eq!(names(&recommend(&[("app", ContainerType::App, &own)], nothing, &Settings::default())).len(), 0);
}

#[test]
fn bounds_of_policies_hold_and_the_target_without_them_is_kept() {
    let own = day(1000, 1024);
    let settings = Settings { max_allowed: amounts(1, 400 * MEBIBYTE), ..Settings::default() };
    // Zero is no bound; the settings hold where the policy says nothing of a resource.
    let policy = |_: &str| ContainerPolicy {
        min: amounts(2000, 0),
        max: Amounts { cpu: Some(2100), memory: None },
        ..ContainerPolicy::default()
    };
    let recommended = recommend(&[("app", ContainerType::App, &own)], policy, &settings);
    let app = recommended.of("app").unwrap();
    assert_eq!((app.lower.cpu, app.target.cpu, app.upper.cpu), (Some(2000), Some(2000), Some(2100)));
    assert_eq!((app.target.memory, app.uncapped), (Some(400 * MEBIBYTE), amounts(1168, 1_238_659_775)));
}

#[test]
fn amounts_are_rounded_up_where_it_is_set() {
    let own = day(1000, 1024);
    let settings =
        Settings { round_cpu_millicores: 50, round_memory_bytes: MEBIBYTE, whole_cores: true, ..Settings::default() };
    let target = |policy: ContainerPolicy, settings: &Settings| {
        let all = [("app", ContainerType::App, &own)];
        let app = recommend(&all, |_| policy.clone(), settings).containers.remove(0);
        assert_eq!(app.target, app.uncapped);
        app.target
    };
    assert_eq!(target(ContainerPolicy::default(), &settings), amounts(1200, 1182 * MEBIBYTE));
    let whole = ContainerPolicy { whole_cores: true, ..ContainerPolicy::default() };
    assert_eq!(target(whole.clone(), &settings).cpu, Some(2000));
    assert_eq!(target(whole, &Settings::default()).cpu, Some(1168), "the annotation alone is not enough");
}

#[test]
fn every_step_to_a_number_is_explained() {
    let own = day(100, 100);
    let policy = ContainerPolicy { min: amounts(30, 0), ..ContainerPolicy::default() };
    let Explanation { samples, span, cpu, memory, .. } =
        explain("app", ContainerType::App, &own, &policy, 2, &Settings::default());
    assert_eq!((samples, span), (1440, Some((at(0), at(1439)))));
    let steps: Vec<(Step, i64)> = cpu.lower.iter().map(|taken| (taken.step, taken.amount)).collect();
    let confidence = 1439.0 / 1440.0;
    let narrowed: f64 = 1.0 + 0.001 / confidence;
    assert_eq!(
        steps,
        [
            (Step::Percentile { part: 0.5 }, 110),
            (Step::Margin { fraction: 0.15 }, 126),
            (Step::Confidence { confidence, factor: 1.0 / (narrowed * narrowed) }, 125),
            (Step::Floor { least: 12, shared_by: Some(2) }, 125),
            (Step::MinAllowed { least: 30, origin: Origin::Own }, 125),
        ]
    );
    let floor = memory.target.last().map(|taken| (taken.step, taken.amount));
    assert_eq!(floor, Some((Step::Floor { least: 125 * MEBIBYTE, shared_by: Some(2) }, 125 * MEBIBYTE)));
}
