//! `pillion size revert`: the amounts of a workload's template back into its running pods, in place.

use std::fmt::Write as _;
use std::io;

use clap::Args;
use pillion_api::VerticalPodAutoscaler;
use pillion_inject::{Origins, pod_of};
use pillion_rightsize::{Autoscaler, Mode, UPDATE_MODE};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::live::kinds::{AUTOSCALER, Kind, POD, templated};
use crate::live::{Cluster, Connection, DryRun, Failure, Patched, Query, run as run_live};
use crate::rollout::plural;
use crate::{Ending, Format, Streams};

mod plan;

use plan::PodPlan;

/// An autoscaler that is not off would size the pods again, so it must be switched off first.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The workload: deploy/web, sts/db, ds/agent.
    #[arg(value_name = "KIND/NAME", value_parser = templated)]
    workload: (Kind, String),
    /// Namespace of the workload; without it the one of the context.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Do it; without it the plan is only shown.
    #[arg(long)]
    yes: bool,
    /// Do it also while an autoscaler sizes the pods.
    #[arg(long)]
    force: bool,
    /// Format of the plan.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    connection: Connection,
}

pub(super) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<Ending> {
    let (kind, name) = &arguments.workload;
    run_live(&arguments.connection, streams, async |cluster, streams| {
        let namespace = arguments.namespace.as_deref().unwrap_or_else(|| cluster.default_namespace());
        let workload = cluster.get(*kind, Some(namespace), name).await?;
        let workload = workload.ok_or_else(|| {
            Failure::Usage(format!("there is no {} {namespace}/{name}: correct the name or -n", kind.name))
        })?;
        let template = pod_of(&workload, namespace).map_err(|error| Failure::Usage(error.to_string()))?;
        let template = template.ok_or_else(|| Failure::Usage(format!("{} {name} has no template", kind.name)))?.pod;
        let pods = cluster.list(POD, Query { namespace: Some(namespace), ..Query::default() }).await?;
        let pods: Vec<&Value> = pods.iter().filter(|pod| belongs(pod, *kind, name)).collect();
        let autoscalers = cluster.list(AUTOSCALER, Query { namespace: Some(namespace), ..Query::default() }).await?;
        let acting = acting(&autoscalers, *kind, name, &pods, &arguments.connection.flags());
        for words in &acting {
            writeln!(streams.err, "{}: {words}", if arguments.force { "note" } else { "error" })?;
        }
        if !acting.is_empty() && !arguments.force {
            return Ok(Ending::Finding);
        }
        let plans: Vec<PodPlan> = pods.iter().filter_map(|pod| plan::plan(pod, &template)).collect();
        match arguments.output {
            Format::Text => write!(streams.out, "{}", text(namespace, &plans))?,
            Format::Json => writeln!(streams.out, "{:#}", document(namespace, &plans))?,
        }
        let changed: Vec<&PodPlan> = plans.iter().filter(|plan| !plan.changes.is_empty()).collect();
        if changed.is_empty() {
            return Ok(Ending::Fine);
        }
        if !arguments.yes {
            writeln!(streams.err, "nothing is written: --yes resizes {} in place", plural(changed.len(), "pod"))?;
            return Ok(Ending::Fine);
        }
        resize(cluster, namespace, &changed, streams).await
    })
}

async fn resize(
    cluster: &Cluster,
    namespace: &str,
    plans: &[&PodPlan],
    streams: &mut Streams<'_>,
) -> Result<Ending, Failure> {
    let mut ending = Ending::Fine;
    for plan in plans {
        let patch = serde_json::from_value(plan.patch()).expect("what is written here is a JSON patch");
        match cluster.resize(namespace, &plan.name, patch, DryRun::No).await {
            Ok(Patched::Done(_)) => writeln!(streams.out, "pod/{} resized", plan.name)?,
            Ok(Patched::Outdated) => {
                writeln!(streams.err, "error: pod/{} was changed meanwhile: look, and try again", plan.name)?;
                ending = Ending::Finding;
            }
            // One pod that cannot be is no reason to leave the others.
            Err(Failure::Cluster { doing, source }) if matches!(*source, kube::Error::Api(_)) => {
                writeln!(streams.err, "error: cannot {doing}: {source}")?;
                ending = Ending::Finding;
            }
            Err(failure) => return Err(failure),
        }
    }
    writeln!(
        streams.err,
        "the node carries it out: condition PodResizePending of a pod tells what has to wait; \
         annotations such as vpaUpdates stay until the pod is created again"
    )?;
    Ok(ending)
}

fn belongs(pod: &Value, kind: Kind, name: &str) -> bool {
    Origins::of_pod(pod).workloads().iter().any(|owner| owner.kind() == kind.name && owner.name() == name)
}

/// Autoscalers that would size the pods again, each with the way out.
fn acting(autoscalers: &[Value], kind: Kind, name: &str, pods: &[&Value], flags: &str) -> Vec<String> {
    let is_target = |autoscaler: &Autoscaler| {
        let target = &autoscaler.target;
        let of_pods = || pods.iter().flat_map(|pod| Origins::of_pod(pod).workloads());
        (target.kind == kind.name && target.name == name)
            || of_pods().any(|owner| owner.kind() == target.kind && owner.name() == target.name)
    };
    let read = autoscalers.iter().filter_map(|object| VerticalPodAutoscaler::deserialize(object).ok());
    let read = read.filter_map(|object| Autoscaler::read(&object).ok());
    let acting = read.filter(|autoscaler| autoscaler.effective_mode(false) != Mode::Off && is_target(autoscaler));
    acting.map(|autoscaler| {
        let Autoscaler { namespace, name, .. } = &autoscaler;
        let cure = if autoscaler.mode == Mode::Off {
            format!("kubectl{flags} -n {namespace} annotate vpa {name} {UPDATE_MODE}-")
        } else {
            let patch = r#"{"spec":{"updatePolicy":{"updateMode":"Off"}}}"#;
            format!("kubectl{flags} -n {namespace} patch vpa {name} --type merge -p '{patch}'")
        };
        format!("VerticalPodAutoscaler {namespace}/{name} would size the pods again: switch it off first, or use --force\n  {cure}")
    })
    .collect()
}

fn text(namespace: &str, plans: &[PodPlan]) -> String {
    // Writing to a String cannot fail.
    let mut text = String::new();
    let alike = plans.iter().filter(|plan| plan.changes.is_empty()).count();
    for plan in plans.iter().filter(|plan| !plan.changes.is_empty() || !plan.stays.is_empty()) {
        let _ = writeln!(text, "pod {namespace}/{}", plan.name);
        for change in &plan.changes {
            for (field, is, says) in &change.fields {
                let is = is.as_deref().unwrap_or("nothing");
                let _ = writeln!(text, "  ~ {} {field}: {is} → {says}", change.name);
            }
        }
        for words in &plan.stays {
            let _ = writeln!(text, "  · {words}");
        }
    }
    match (plans.len(), alike) {
        (0, _) => text.push_str("no pod of it is running\n"),
        (all, alike) => {
            let _ = writeln!(text, "{} to resize, {alike} as the template says", plural(all - alike, "pod"));
        }
    }
    text
}

/// The same for programs. Fields may be added, and none changes its meaning.
fn document(namespace: &str, plans: &[PodPlan]) -> Value {
    let pods = plans.iter().map(|plan| {
        let changes = plan.changes.iter().flat_map(|change| {
            let fields = change.fields.iter();
            fields
                .map(|(field, is, says)| json!({"container": change.name, "field": field, "is": is, "template": says}))
        });
        json!({"namespace": namespace, "name": plan.name, "changes": changes.collect::<Vec<_>>(), "stays": plan.stays,
            "patch": if plan.changes.is_empty() { Value::Null } else { plan.patch() }})
    });
    json!({"pods": pods.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests;
