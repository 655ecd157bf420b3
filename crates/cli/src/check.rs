//! `pillion check`: whether the installation of the product in a cluster is well.
//!
//! Everything is read first; then each check looks at what was read. What may not be read is a warning, not an end.

use std::io;

use clap::Args;
use jiff::Timestamp;
use pillion_api::names::{CA_SECRET, REGISTRATION, SWITCH};
use serde_json::{Value, json};

use crate::installation::{DEFAULT_PROBE_NAMESPACE, DEPLOYMENTS};
use crate::live::kinds::{
    ADMISSION_POLICY, ADMISSION_POLICY_BINDING, CONFIG_MAP, CUSTOM_RESOURCE, DEPLOYMENT, MUTATING_REGISTRATION,
    NAMESPACE, POD, SECRET, SIDECAR_SET, VALIDATING_REGISTRATION,
};
use crate::live::{Cluster, Connection, DryRun, Failure, Query, run as run_live};
use crate::{Ending, Format, Streams, chain, layout};

mod bystanders;
mod certificates;
mod cluster;
mod manager;
mod probe;
mod registration;
mod seen;
#[cfg(test)]
mod tests;

use seen::{Asked, Seen};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Namespace in which the API server is asked to try a pod, which is not created.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_PROBE_NAMESPACE)]
    probe_namespace: String,
    /// Format of the answer.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    #[command(flatten)]
    connection: Connection,
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    /// What was looked at, in one word.
    pub(crate) name: &'static str,
    pub(crate) level: Level,
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
}

/// How well something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// As it should be.
    Ok,
    /// Somebody should know.
    Warn,
    /// Sidecars are missing, or will be.
    Fail,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

impl Check {
    fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, level: Level::Ok, message: message.into(), hint: None }
    }

    fn warn(name: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { name, level: Level::Warn, message: message.into(), hint: Some(hint.into()) }
    }

    fn fail(name: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { level: Level::Fail, ..Self::warn(name, message, hint) }
    }

    /// What may not be read can still be well.
    fn unread(name: &'static str, why: &str) -> Self {
        Self::warn(name, why, "ask with rights to read it")
    }
}

pub(crate) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<Ending> {
    run_live(&arguments.connection, streams, async |cluster, streams| {
        let seen = see(cluster, arguments).await?;
        let checks = checks(&seen);
        write!(streams.out, "{}", shown(&checks, arguments.output))?;
        writeln!(streams.err, "{}", summary(&checks))?;
        let has_failed = checks.iter().any(|check| check.level == Level::Fail);
        Ok(if has_failed { Ending::Finding } else { Ending::Fine })
    })
}

/// All checks, from the ground up.
fn checks(seen: &Seen) -> Vec<Check> {
    let mut all = vec![cluster::version(seen), cluster::clock(seen), cluster::definition(seen), cluster::sets(seen)];
    all.extend(manager::checks(seen));
    all.extend(registration::checks(seen));
    all.extend(certificates::checks(seen));
    all.push(probe::check(seen));
    all.push(bystanders::check(seen));
    all.push(registration::neighbours(seen));
    all.push(registration::open_kruise(seen));
    all
}

fn shown(checks: &[Check], output: Format) -> String {
    match output {
        Format::Text => checks.iter().map(line).collect(),
        Format::Json => {
            let checks = checks.iter().map(|check| {
                json!({"check": check.name, "status": check.level.word(), "message": check.message, "hint": check.hint})
            });
            format!("{:#}\n", json!({"checks": checks.collect::<Vec<_>>()}))
        }
    }
}

fn line(check: &Check) -> String {
    let begin = format!("{:4}  {:14}  ", check.level.word(), check.name);
    let indent = begin.chars().count();
    let mut text = format!("{begin}{}\n", layout::hanging(indent, &check.message));
    if let Some(hint) = &check.hint {
        text.push_str(&layout::indented(indent, &format!("→ {hint}")));
    }
    text
}

fn summary(checks: &[Check]) -> String {
    let count = |level: Level| checks.iter().filter(|check| check.level == level).count();
    format!("{} ok, {} to know, {} failed", count(Level::Ok), count(Level::Warn), count(Level::Fail))
}

/// Reads everything. Only a cluster that does not answer at all is an end.
async fn see(cluster: &Cluster, arguments: &Arguments) -> Result<Seen, Failure> {
    let namespace = arguments.connection.pillion_namespace.as_str();
    let probe_namespace = arguments.probe_namespace.as_str();
    let (version, date) = cluster.version().await?;
    let mut deployments = Vec::new();
    for name in DEPLOYMENTS {
        deployments.push(asked(cluster.get(DEPLOYMENT, Some(namespace), name).await));
    }
    Ok(Seen {
        namespace: namespace.to_owned(),
        now: Timestamp::now(),
        version,
        date,
        definition: asked(cluster.get(CUSTOM_RESOURCE, None, "sidecarsets.apps.kruise.io").await),
        sets: asked(cluster.list(SIDECAR_SET, Query::default()).await),
        deployments: deployments
            .into_iter()
            .collect::<Asked<Vec<Option<Value>>>>()
            .map(|it| it.into_iter().flatten().collect()),
        switch: asked(cluster.get(CONFIG_MAP, Some(namespace), SWITCH).await),
        secret: asked(cluster.get(SECRET, Some(namespace), CA_SECRET).await),
        mutating: asked(cluster.list(MUTATING_REGISTRATION, Query::default()).await),
        validating: asked(cluster.get(VALIDATING_REGISTRATION, None, REGISTRATION).await),
        policies: asked(cluster.list(ADMISSION_POLICY, Query::default()).await),
        bindings: asked(cluster.list(ADMISSION_POLICY_BINDING, Query::default()).await),
        probe_namespace: asked(cluster.get(NAMESPACE, None, probe_namespace).await),
        probe: asked(cluster.create(POD, Some(probe_namespace), &probe::pod(), DryRun::Yes).await),
    })
}

/// What was read, or why it was not.
fn asked<T>(answer: Result<T, Failure>) -> Asked<T> {
    answer.map_err(|failure| chain(&failure))
}
