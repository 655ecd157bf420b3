//! The explanation for programs. Fields may be added, and none changes its meaning.

use pillion_rightsize::{Amounts, ContainerType, Explanation, Mode, ResourceExplanation};
use serde_json::{Value, json};

use super::steps::rows;
use super::subject::{Container, Subject};

pub(super) fn json(subject: &Subject) -> Value {
    let own = &subject.autoscaler;
    let mode = own.own_mode.filter(|_| own.mode == Mode::Off).unwrap_or(own.mode);
    json!({
        "namespace": own.namespace,
        "name": own.name,
        "target": {"kind": own.target.kind, "name": own.target.name},
        "mode": format!("{mode:?}"),
        "recommender": own.recommender,
        "pods": subject.pods,
        "conditions": subject.conditions,
        "containers": subject.containers.iter().map(container).collect::<Vec<_>>(),
    })
}

fn container(container: &Container) -> Value {
    let requests = |resource| {
        let all = container.requests(resource).into_iter();
        all.map(|(amount, pods)| json!({"amount": amount, "pods": pods})).collect::<Vec<_>>()
    };
    let published = container.published.as_ref().map(|own| {
        json!({"lower": list(own.lower), "target": list(own.target), "upper": list(own.upper), "uncapped": list(own.uncapped)})
    });
    let ooms = container.ooms.iter().map(|oom| json!({"at": oom.at, "pod": oom.pod, "memory": oom.memory}));
    let mut shown = json!({
        "name": container.name,
        "type": match container.kind { ContainerType::App => "container", ContainerType::NativeSidecar => "nativeSidecar" },
        "isRunning": container.is_running,
        "written": container.written.map(|at| at.to_string()),
        "published": published,
        "requests": {"cpu": requests(pillion_quantity::Resource::Cpu), "memory": requests(pillion_quantity::Resource::Memory)},
        "outOfMemory": ooms.collect::<Vec<_>>(),
    });
    match &container.learned {
        Err(why) => shown["unknown"] = json!(why),
        Ok(explanation) => shown["learned"] = learned(explanation),
    }
    shown
}

fn learned(explanation: &Explanation) -> Value {
    let (first, last) = explanation.span.map(|(first, last)| (first.to_string(), last.to_string())).unzip();
    json!({
        "samples": explanation.samples,
        "firstSample": first,
        "lastSample": last,
        "notServed": explanation.not_served,
        "cpu": resource(&explanation.cpu),
        "memory": resource(&explanation.memory),
    })
}

fn resource(explanation: &ResourceExplanation) -> Value {
    let steps = rows(explanation).into_iter().map(|row| {
        let [lower, target, upper] = row.amounts;
        json!({"step": row.words, "lower": lower, "target": target, "upper": upper})
    });
    let bars = explanation.bars.iter().map(|bar| json!({"from": bar.from, "to": bar.to, "part": bar.part}));
    json!({
        "absent": explanation.absent,
        // Without history it is not a number of JSON.
        "confidence": explanation.confidence.is_finite().then_some(explanation.confidence),
        "steps": steps.collect::<Vec<_>>(),
        "histogram": bars.collect::<Vec<_>>(),
    })
}

fn list(amounts: Amounts) -> Value {
    json!({"cpuMillicores": amounts.cpu, "memoryBytes": amounts.memory})
}
