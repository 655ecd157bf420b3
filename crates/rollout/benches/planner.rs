//! What one plan costs for 10,000 pods. The budget is that planning for a fleet of that size takes well under two milliseconds,
//! so that every change of a pod can be answered with a plan of its own.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use jiff::Timestamp;
use pillion_api::{Meaning, PodRevision, PodRevisions, Template, review};
use pillion_plan::check;
use pillion_rollout::{Container, Fleet, List, OwnWrites, Owner, Pod, Sizers, State, Status, ground, plan};
use serde_json::json;

const PODS: usize = 10_000;
const NOW: i64 = 1_800_000_000;

fn set(image: &str) -> Meaning {
    let object = json!({
        "metadata": {"name": "mesh"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "updateStrategy": {"maxUnavailable": "10%"},
            "containers": [{"name": "proxy", "image": image}],
        },
    });
    review(&object).meaning.expect("the set is valid")
}

fn time(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("it is a time")
}

/// One of 10,000 pods of 200 workloads. `given`: what it was given and whether it runs it.
fn pod(number: usize, revision: &str, updated: Option<(&str, bool)>) -> Pod {
    let mut entry = PodRevision::new(revision);
    if let Some((from, _)) = updated {
        (entry.since, entry.from) = (Some(NOW - 20), Some(from.to_owned()));
        entry.was = BTreeMap::from([("proxy".to_owned(), "0 0123456789ab".to_owned())]);
    }
    let revisions = PodRevisions(BTreeMap::from([("mesh".to_owned(), entry)]));
    let created = time(NOW - 100_000 + i64::try_from(number * 7919 % PODS).unwrap_or_default());
    let (workload, is_done) = (number / 50, updated.is_some_and(|(_, is_done)| is_done));
    let labels = [("app", "web"), ("pod-template-hash", "5d8c7b9f4"), ("team", "shop"), ("version", "1.2.3")];
    Pod {
        namespace: format!("team-{}", workload % 20).into(),
        name: format!("web-{workload}-5d8c7b9f4-{number:05}").into(),
        uid: format!("{:08x}-0000-4000-8000-000000000000", number.wrapping_mul(2_654_435_761) & 0xffff_ffff).into(),
        labels: labels.map(|(key, value)| (key.into(), value.into())).into(),
        created,
        owner: Some(Owner {
            api_version: "apps/v1".into(),
            kind: "ReplicaSet".into(),
            name: format!("web-{workload}-5d8c7b9f4").into(),
            uid: format!("{:08x}-0000-4000-9000-000000000000", workload.wrapping_mul(2_654_435_761) & 0xffff_ffff)
                .into(),
        }),
        is_assigned: true,
        is_ready: true,
        ready_since: Some(created),
        record: Some(revisions.render().into()),
        revisions,
        is_listed: true,
        containers: Box::new([Container {
            list: List::Main,
            index: 1,
            name: "proxy".into(),
            image: "proxy:1".into(),
            resources: None,
            has_startup_probe: false,
            status: Some(Status {
                restarts: u32::from(is_done),
                id: if is_done { "fedcba987654".into() } else { "0123456789ab".into() },
                state: State::Running(Some(created)),
                is_ready: true,
            }),
        }]),
        ..Pod::default()
    }
}

fn plans(criterion: &mut Criterion) {
    let (old, new) = (set("proxy:1"), set("proxy:2"));
    let templates: BTreeMap<String, Arc<Template>> =
        [&old, &new].map(|set| (set.revision.clone(), Arc::new(set.template.clone()))).into();
    let fleet_of = |updated: usize, under_way: usize| -> Vec<Pod> {
        let pods = (0..PODS).map(|number| {
            let is_updated = number % 10 < updated;
            let given = is_updated.then_some((old.revision.as_str(), number / 10 % 10 >= under_way));
            pod(number, if is_updated { &new.revision } else { &old.revision }, given)
        });
        pods.collect()
    };
    for (name, pods, starts) in [
        ("all done", fleet_of(10, 0), 0),
        ("half done, the budget spent", fleet_of(5, 2), 0),
        ("half done, 500 start", fleet_of(5, 1), 500),
        ("one in ten done, 1000 start", fleet_of(1, 0), 1000),
    ] {
        let pods: Vec<&Pod> = pods.iter().collect();
        let fleet = Fleet {
            set: &new,
            templates: &templates,
            pods: &pods,
            budgets: &[],
            troubles: &BTreeMap::new(),
            own_writes: &OwnWrites::default(),
            sizers: &Sizers::default(),
            left_alone: &["kube-system"],
            now: time(NOW),
            is_off: false,
        };
        let made = plan(&fleet).0;
        assert_eq!(made.actions.len(), starts, "{name}");
        criterion.bench_with_input(BenchmarkId::new("plan", name), &fleet, |bencher, fleet| {
            bencher.iter(|| plan(black_box(fleet)));
        });
        if starts > 0 {
            criterion.bench_with_input(BenchmarkId::new("check", name), &fleet, |bencher, fleet| {
                bencher.iter(|| check(&made, &ground(black_box(fleet), &made)).is_ok());
            });
        }
    }
}

criterion_group!(benches, plans);
criterion_main!(benches);
