//! What one pass costs for a large cluster: 150,000 containers of 5,000 autoscalers, each container with a sample, then a
//! recommendation and a checkpoint for all. The budget for everything around it is ten seconds.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use jiff::Timestamp;
use pillion_rightsize::{Aggregate, ContainerPolicy, ContainerType, Instance, Settings, Usage, recommend};

const AUTOSCALERS: usize = 5_000;
const PODS: usize = 15;
const NAMES: [(&str, ContainerType); 2] = [("app", ContainerType::App), ("proxy", ContainerType::NativeSidecar)];

/// What is known of one autoscaler: an aggregate for each container, and the containers of its pods.
struct Learned {
    aggregates: [Aggregate; 2],
    instances: [[Instance; PODS]; 2],
}

fn at(pass: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + pass * 60).expect("it is a time")
}

/// Numbers that look like samples; no two passes have the same.
fn usage(pass: i64, number: usize) -> Usage {
    let mixed = number.wrapping_add(usize::try_from(pass).unwrap_or_default()).wrapping_mul(2_654_435_761) >> 7;
    let part = i64::try_from(mixed % 1000).unwrap_or_default();
    Usage { at: at(pass), cpu: Some(50 + part / 7), memory: Some((80 << 20) + part * 100_000) }
}

fn add(all: &mut [Learned], pass: i64, settings: &Settings) {
    for (number, own) in all.iter_mut().enumerate() {
        for (aggregate, instances) in own.aggregates.iter_mut().zip(&mut own.instances) {
            for (pod, instance) in instances.iter_mut().enumerate() {
                aggregate.add(instance, &usage(pass, number * PODS + pod), settings);
            }
        }
    }
}

fn pass(criterion: &mut Criterion) {
    let settings = Settings { native_sidecars: true, ..Settings::default() };
    let new = || Learned {
        aggregates: [Aggregate::new(at(0), &settings), Aggregate::new(at(0), &settings)],
        instances: [[Instance::default(); PODS]; 2],
    };
    let mut all: Vec<Learned> = (0..AUTOSCALERS).map(|_| new()).collect();
    let mut now = 0;
    for _ in 0..20 {
        now += 1;
        add(&mut all, now, &settings);
    }
    let mut group = criterion.benchmark_group("150000 containers");
    group.sample_size(10);
    group.bench_function("samples", |bencher| {
        bencher.iter(|| {
            now += 1;
            add(&mut all, now, &settings);
        });
    });
    group.bench_function("recommendations", |bencher| {
        bencher.iter(|| {
            for own in &all {
                let [app, proxy] = &own.aggregates;
                let containers = [(NAMES[0].0, NAMES[0].1, app), (NAMES[1].0, NAMES[1].1, proxy)];
                black_box(recommend(&containers, |_| ContainerPolicy::default(), &settings));
            }
        });
    });
    group.bench_function("checkpoints", |bencher| {
        bencher.iter(|| {
            for own in &all {
                for (aggregate, instances) in own.aggregates.iter().zip(&own.instances) {
                    black_box(aggregate.save(instances, at(now)));
                }
            }
        });
    });
    group.finish();
}

criterion_group!(benches, pass);
criterion_main!(benches);
