//! `pillion off` and `pillion on`: stop and start injection, of everything or of one set.
//!
//! Off needs nothing of ours to run: the switch is written for the manager, and the registration is emptied for the API
//! server. On takes the switch away; a manager that runs registers itself again.

use std::io;

use clap::Args;
use pillion_api::names::{REGISTRATION, SWITCH};
use serde_json::Value;

use crate::installation::DEPLOYMENTS;
use crate::live::kinds::{CONFIG_MAP, DEPLOYMENT, MUTATING_REGISTRATION, NAMESPACE, SIDECAR_SET};
use crate::live::{Cluster, Connection, DryRun, Failure, run as run_live};
use crate::{Ending, Streams, chain};

mod plan;

use plan::{Direction, Found, Verb, Write, plan, plan_of_set};

/// Sets are not taken unchecked, so that one of them cannot be paused while nobody checks it.
const UNCHECKED: &str = "the webhook that checks sets does not answer; `pillion off` without --set does not need it";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Only this set: new pods do not get it, and running pods do not follow it.
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
    /// Let the API server try it without storing anything.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) fn off(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<Ending> {
    run(arguments, Direction::Off, streams)
}

pub(crate) fn on(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<Ending> {
    run(arguments, Direction::On, streams)
}

fn run(arguments: &Arguments, direction: Direction, streams: &mut Streams<'_>) -> io::Result<Ending> {
    let connection = &arguments.connection;
    run_live(connection, streams, async |cluster, streams| {
        let plan = match &arguments.set {
            Some(name) => {
                let set = cluster.get(SIDECAR_SET, None, name).await?;
                let set = set.ok_or_else(|| Failure::Usage(format!("there is no SidecarSet {name}")))?;
                plan_of_set(direction, &set)
            }
            None => plan(direction, &connection.pillion_namespace, &found(cluster, connection).await?),
        };
        for write in &plan.writes {
            let dry_run = if arguments.dry_run { DryRun::Yes } else { DryRun::No };
            if let Err(failure) = carry_out(cluster, write, dry_run).await {
                if chain(&failure).contains("failed calling webhook") {
                    writeln!(streams.err, "note: {UNCHECKED}")?;
                }
                return Err(failure);
            }
            let tried = if arguments.dry_run { " (dry run)" } else { "" };
            writeln!(streams.out, "{} {}{tried}", write.title(), write.done())?;
        }
        for note in &plan.notes {
            writeln!(streams.err, "note: {note}")?;
        }
        if !plan.writes.is_empty() {
            writeln!(streams.err, "the same by hand:")?;
        }
        for write in &plan.writes {
            writeln!(streams.err, "  {}", write.kubectl(&connection.flags()))?;
        }
        Ok(Ending::Fine)
    })
}

async fn found(cluster: &Cluster, connection: &Connection) -> Result<Found, Failure> {
    let namespace = connection.pillion_namespace.as_str();
    let mut is_running = false;
    for name in DEPLOYMENTS {
        let deployment = cluster.get(DEPLOYMENT, Some(namespace), name).await?;
        let ready = deployment.as_ref().and_then(|it| it.pointer("/status/readyReplicas")).and_then(Value::as_u64);
        // The controller alone registers nothing.
        is_running |= name != "pillion-controller" && ready.unwrap_or(0) > 0;
    }
    Ok(Found {
        has_namespace: cluster.get(NAMESPACE, None, namespace).await?.is_some(),
        switch: cluster.get(CONFIG_MAP, Some(namespace), SWITCH).await?,
        registration: cluster.get(MUTATING_REGISTRATION, None, REGISTRATION).await?,
        is_running,
    })
}

async fn carry_out(cluster: &Cluster, write: &Write, dry_run: DryRun) -> Result<(), Failure> {
    let namespace = write.namespace.as_deref();
    match write.verb {
        Verb::Create => {
            cluster.create(write.kind, namespace, &write.body, dry_run).await?;
        }
        Verb::Patch => {
            let patched = cluster.merge(write.kind, namespace, &write.name, &write.body, dry_run).await?;
            patched.ok_or_else(|| Failure::Usage(format!("{} went away meanwhile: try again", write.title())))?;
        }
    }
    Ok(())
}
