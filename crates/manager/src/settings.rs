//! What a process is told when it starts.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Error, Result};
use clap::{Parser, ValueEnum};
use pillion_api::SetMode;
use pillion_quantity::Quantity;
use pillion_runtime::telemetry::LogFormat;
use pillion_runtime::tls::Clients;
use serde_json::{Map, Value, json};

use crate::agents::AllowedTarget;
use crate::sizing_settings::SizingSettings;

/// Looks after the sidecars of a cluster.
#[derive(Clone, Debug, Parser)]
#[command(name = "pillion-manager", version)]
pub struct Settings {
    /// What this process does; more than one is possible
    #[arg(required = true, value_enum)]
    pub roles: Vec<Role>,
    /// The namespace this installation lives in
    #[arg(long, env = "POD_NAMESPACE")]
    pub namespace: String,
    /// The name of this replica
    #[arg(long, env = "POD_NAME", default_value = "pillion-manager")]
    pub name: String,
    /// A kubeconfig, for a process outside the cluster
    #[arg(long)]
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig
    #[arg(long)]
    pub context: Option<String>,
    /// Where reviews are answered
    #[arg(long, default_value = "0.0.0.0:9443")]
    pub webhook_address: SocketAddr,
    /// Where health and metrics are told
    #[arg(long, default_value = "0.0.0.0:8080")]
    pub admin_address: SocketAddr,
    /// The Service by which the API server finds the webhook
    #[arg(long, default_value = "pillion-webhook")]
    pub service: String,
    /// A URL instead of the Service, for a process outside the cluster
    #[arg(long)]
    pub webhook_url: Option<http::Uri>,
    /// A file with certificates (PEM) of the authority whose clients alone may call the webhook
    #[arg(long)]
    pub webhook_client_ca: Option<PathBuf>,
    /// Common names of those clients; without any, every client of the authority may call
    #[arg(long, value_delimiter = ',', requires = "webhook_client_ca")]
    pub webhook_client_names: Vec<String>,
    /// Inject; or Observe, which changes no pod and tells what would be changed
    #[arg(long, default_value = "Inject", value_parser = parse_mode)]
    pub mode: SetMode,
    /// Features to switch on or off, such as A=true,B=false
    #[arg(long, default_value = "")]
    pub feature_gates: String,
    /// Image of the agent that ends sidecars of mode Wrap; without it pods that need it are refused
    #[arg(long)]
    pub agent_image: Option<String>,
    /// Names of Secrets to pull the agent's image with
    #[arg(long, value_delimiter = ',')]
    pub agent_pull_secrets: Vec<String>,
    /// What the init container that brings the agent asks for and may use
    #[arg(long, default_value = "cpu=50m,memory=16Mi", value_parser = parse_amounts)]
    pub agent_resources: Amounts,
    /// Fields of other objects that agents in pods may be given: group/version/resource and a JSON pointer
    #[arg(long, value_delimiter = ',')]
    pub agent_targets: Vec<AllowedTarget>,
    /// How many running pods are told of a hot update in a second, in the whole cluster
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub agent_updates_per_second: u32,
    /// How lines of log look: text or json
    #[arg(long, default_value = "text")]
    pub log_format: LogFormat,
    /// Which lines of log there are
    #[arg(long, default_value = "info")]
    pub log_level: String,
    /// How long callers are still served after the signal to end
    #[arg(long, default_value = "12s", value_parser = parse_duration, overrides_with = "drain")]
    pub drain: Duration,
    /// How long the authority lasts; a new one is made when a third of it is left
    #[arg(long, default_value = "8760h", value_parser = parse_duration)]
    pub ca_lifetime: Duration,
    /// How long the certificate of a replica lasts; a new one is made when a third of it is left
    #[arg(long, default_value = "24h", value_parser = parse_duration)]
    pub leaf_lifetime: Duration,
    /// Evict pods that should carry a sidecar and do not, so that their workload makes them again
    #[arg(long)]
    pub recreate_missed: bool,
    /// How many such pods are evicted in a minute, in the whole cluster
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=6000))]
    pub evictions_per_minute: u32,
    /// How many such pods of one workload are evicted at a time; the next waits until they are back and ready
    #[arg(long, default_value_t = 1)]
    pub evictions_per_workload: usize,
    /// How many running pods are updated in a second, in the whole cluster
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub updates_per_second: u32,
    /// How long after the leader was last heard of another replica takes its place; whole seconds
    #[arg(long, default_value = "15s", value_parser = parse_duration)]
    pub lease: Duration,
    /// Of right-sizing
    #[command(flatten)]
    pub sizing: SizingSettings,
}

impl Settings {
    /// The clients that may call the webhook; `None` where all may.
    pub(crate) fn webhook_clients(&self) -> Result<Option<Clients>> {
        let Some(path) = &self.webhook_client_ca else { return Ok(None) };
        let read = || Clients::new(&fs::read_to_string(path)?, self.webhook_client_names.clone()).map_err(Error::msg);
        let clients = read().with_context(|| format!("--webhook-client-ca: cannot use {}", path.display()))?;
        Ok(Some(clients))
    }
}

/// Resources of a container, the same as request and as limit, so that they change no pod's quality of service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amounts(BTreeMap<String, String>);

impl Amounts {
    /// As a pod has them.
    pub fn as_pod(&self) -> Map<String, Value> {
        if self.0.is_empty() {
            return Map::new();
        }
        ["limits", "requests"].into_iter().map(|side| (side.to_owned(), json!(self.0))).collect()
    }
}

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Answers the API server: injects into pods, checks sets
    Webhook,
    /// Looks after sets and pods: status, events, what was missed
    Controller,
    /// Gives agents in pods what they need, and tells them of hot updates; needs its feature gate
    AgentController,
    /// Recommends sizes for the workloads of vertical pod autoscalers, and applies them to running pods
    Rightsizer,
}

/// Reads `cpu=50m,memory=16Mi`.
fn parse_amounts(text: &str) -> Result<Amounts, String> {
    let mut amounts = BTreeMap::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (resource, amount) = part.split_once('=').ok_or("write resource=amount, such as cpu=50m,memory=16Mi")?;
        let quantity = amount.parse::<Quantity>().map_err(|error| format!("{part}: {error}"))?;
        if resource.is_empty() || quantity.is_negative() {
            return Err(format!("{part} is no amount of a resource: write it as cpu=50m"));
        }
        if amounts.insert(resource.to_owned(), amount.to_owned()).is_some() {
            return Err(format!("{resource} is given twice: keep one of the two"));
        }
    }
    Ok(Amounts(amounts))
}

fn parse_mode(text: &str) -> Result<SetMode, String> {
    match text {
        "Inject" => Ok(SetMode::Inject),
        "Observe" => Ok(SetMode::Observe),
        _ => Err("choose Inject or Observe".to_owned()),
    }
}

/// Reads `90s`, `5m`, `24h`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || "write a number and s, m or h, such as 90s".to_owned();
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_a_number_and_a_unit() {
        for (text, seconds) in [("0s", Ok(0)), ("90s", Ok(90)), ("5m", Ok(300)), ("24h", Ok(86_400))] {
            assert_eq!(parse_duration(text).map(|duration| duration.as_secs()), seconds);
        }
        for text in ["", "s", "5", "5 s", "-5s", "1d", "µ", "99999999999999999999s", "9999999999999999999h"] {
            assert_eq!(parse_duration(text), Err("write a number and s, m or h, such as 90s".to_owned()), "{text}");
        }
    }

    #[test]
    fn amounts_are_quantities_by_resource() {
        let amounts = BTreeMap::from([("cpu", "50m"), ("memory", "16Mi")].map(|(k, v)| (k.to_owned(), v.to_owned())));
        assert_eq!(parse_amounts("cpu=50m, memory=16Mi"), Ok(Amounts(amounts)));
        assert_eq!(parse_amounts("").map(|none| none.as_pod()), Ok(Map::new()));
        for (text, wrong) in [
            ("cpu", "write resource=amount, such as cpu=50m,memory=16Mi"),
            ("cpu=-1", "cpu=-1 is no amount of a resource: write it as cpu=50m"),
            ("=1", "=1 is no amount of a resource: write it as cpu=50m"),
            ("cpu=1,cpu=2", "cpu is given twice: keep one of the two"),
        ] {
            assert_eq!(parse_amounts(text), Err(wrong.to_owned()), "{text}");
        }
        assert!(parse_amounts("cpu=much").unwrap_err().starts_with("cpu=much: "));
    }

    #[test]
    fn one_process_may_have_both_roles() {
        let settings = Settings::parse_from(["pillion-manager", "webhook", "controller", "--namespace", "here"]);
        assert_eq!(settings.roles, [Role::Webhook, Role::Controller]);
        assert_eq!(settings.mode, SetMode::Inject);
    }
}
