//! What a process is told about right-sizing. Names and defaults are upstream's, where upstream has the flag.
#![expect(clippy::doc_markdown, reason = "comments of flags are what `--help` prints")]

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use jiff::SignedDuration;
use pillion_quantity::Resource;
use pillion_rightsize::{Amounts, Percentiles, Settings as Estimation, UpdaterSettings};

use crate::settings::parse_duration;

const MEBIBYTE: i64 = 1 << 20;

/// What a process is told about right-sizing.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Right-sizing")]
pub struct SizingSettings {
    /// VerticalPodAutoscalers are served: the webhook sizes pods, and the controller leaves the containers they size alone
    #[arg(long)]
    pub rightsizing: bool,
    /// Serve VerticalPodAutoscalers that name this recommender
    #[arg(long, default_value = "pillion")]
    pub recommender_name: String,
    /// Serve every VerticalPodAutoscaler, whatever recommender it names
    #[arg(long)]
    pub claim_all: bool,
    /// How often samples are taken and sizes recommended
    #[arg(long, default_value = "1m", value_parser = parse_duration)]
    pub recommender_interval: Duration,
    /// How often pods are compared with what is recommended
    #[arg(long, default_value = "1m", value_parser = parse_duration)]
    pub updater_interval: Duration,
    /// How often checkpoints of VerticalPodAutoscalers that are gone are removed
    #[arg(long, default_value = "10m", value_parser = parse_duration)]
    pub checkpoints_gc_interval: Duration,
    /// What was learned is kept at the latest after this long; sooner where it is a tenth more than what is kept
    #[arg(long, default_value = "10m", value_parser = parse_duration)]
    pub checkpoints_interval: Duration,
    /// Where samples come from
    #[arg(long, value_enum, default_value_t = MetricsSource::MetricsServer)]
    pub metrics_source: MetricsSource,
    /// The most cpu a container gets for its start
    #[arg(long, value_parser = parse_cpu)]
    pub max_allowed_cpu_boost: Option<i64>,
    #[command(flatten)]
    kubelet: KubeletSettings,
    #[command(flatten)]
    updating: UpdatingSettings,
    #[command(flatten)]
    estimation: EstimationSettings,
}

/// Where samples come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MetricsSource {
    /// The API metrics.k8s.io, one list each time
    MetricsServer,
    /// The kubelet of every node, without anything between
    Kubelet,
}

/// How kubelets are asked.
#[derive(Clone, Debug, Args)]
pub struct KubeletSettings {
    /// Certificates of the authority of kubelets; without it the one of the account
    #[arg(long, default_value = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")]
    pub kubelet_ca_file: PathBuf,
    /// Ask kubelets without looking at their certificates, which many make themselves
    #[arg(long)]
    pub kubelet_insecure_skip_tls_verify: bool,
    /// The token to show to kubelets
    #[arg(long, default_value = "/var/run/secrets/kubernetes.io/serviceaccount/token")]
    pub kubelet_token_file: PathBuf,
    /// How long one kubelet may take
    #[arg(long, default_value = "10s", value_parser = parse_duration)]
    pub kubelet_timeout: Duration,
    /// How many kubelets are asked at a time
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub kubelets_at_once: u16,
}

#[derive(Clone, Debug, Args)]
struct UpdatingSettings {
    /// The fewest pods of a workload of which one is disturbed
    #[arg(long, default_value_t = 2)]
    min_replicas: u32,
    /// The part of a workload's pods that may be missing
    #[arg(long, default_value_t = 0.5, value_parser = parse_part)]
    eviction_tolerance: f64,
    /// How many pods are evicted in a second; without bound where it is not above zero
    #[arg(long, default_value_t = -1.0, allow_negative_numbers = true)]
    eviction_rate_limit: f64,
    /// How many at once beyond that
    #[arg(long, default_value_t = 1)]
    eviction_rate_burst: u32,
    /// A resize that restarts nothing is no disturbance
    #[arg(long)]
    in_place_skip_disruption_budget: bool,
    /// Smaller differences are not worth a change, as a part of what a pod asks for
    #[arg(long, default_value_t = 0.1, value_parser = parse_part)]
    pod_update_threshold: f64,
    /// How long a pod stays as it is while it is within the bounds
    #[arg(long, default_value = "12h", value_parser = parse_duration)]
    in_recommendation_bounds_eviction_lifetime_threshold: Duration,
    /// How soon after its start a container that ran out of memory did so quickly
    #[arg(long, default_value = "10m", value_parser = parse_duration)]
    evict_after_oom_threshold: Duration,
    /// How long a node may have no room for a resize before the pod is evicted
    #[arg(long, default_value = "5m", value_parser = parse_duration)]
    in_place_deferred_timeout: Duration,
    /// How long a resize may take before the pod is evicted
    #[arg(long, default_value = "1h", value_parser = parse_duration)]
    in_place_progress_timeout: Duration,
    /// How often others may change back what a container got before it is left alone
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    max_resets: u32,
}

#[derive(Clone, Debug, Args)]
struct EstimationSettings {
    /// What is added to what was used, as a part of it
    #[arg(long, default_value_t = 0.15, value_parser = parse_fraction)]
    recommendation_margin_fraction: f64,
    /// The least cpu of a pod, which its app containers share
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(i64).range(0..))]
    pod_recommendation_min_cpu_millicores: i64,
    /// The least memory of a pod, which its app containers share
    #[arg(long, default_value_t = 250, value_parser = clap::value_parser!(i64).range(0..=1_000_000_000))]
    pod_recommendation_min_memory_mb: i64,
    /// The least cpu of a native sidecar
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(i64).range(0..))]
    sidecar_recommendation_min_cpu_millicores: i64,
    /// The least memory of a native sidecar
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(i64).range(0..=1_000_000_000))]
    sidecar_recommendation_min_memory_mb: i64,
    /// Which part of the samples of cpu the target covers
    #[arg(long, default_value_t = 0.9, value_parser = parse_part)]
    target_cpu_percentile: f64,
    /// Which part of the samples of cpu the lower bound covers
    #[arg(long, default_value_t = 0.5, value_parser = parse_part)]
    recommendation_lower_bound_cpu_percentile: f64,
    /// Which part of the samples of cpu the upper bound covers
    #[arg(long, default_value_t = 0.95, value_parser = parse_part)]
    recommendation_upper_bound_cpu_percentile: f64,
    /// Which part of the peaks of memory the target covers
    #[arg(long, default_value_t = 0.9, value_parser = parse_part)]
    target_memory_percentile: f64,
    /// Which part of the peaks of memory the lower bound covers
    #[arg(long, default_value_t = 0.5, value_parser = parse_part)]
    recommendation_lower_bound_memory_percentile: f64,
    /// Which part of the peaks of memory the upper bound covers
    #[arg(long, default_value_t = 0.95, value_parser = parse_part)]
    recommendation_upper_bound_memory_percentile: f64,
    /// How much history of cpu makes bounds twice as wide as they could be
    #[arg(long, default_value = "24h", value_parser = parse_duration)]
    confidence_interval_cpu: Duration,
    /// How much history of memory makes bounds twice as wide as they could be
    #[arg(long, default_value = "24h", value_parser = parse_duration)]
    confidence_interval_memory: Duration,
    /// Round cpu up to multiples of this
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(i64).range(1..))]
    round_cpu_millicores: i64,
    /// Round memory up to multiples of this
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(i64).range(1..))]
    round_memory_bytes: i64,
    /// Of how long a window only the peak of memory counts
    #[arg(long, default_value = "24h", value_parser = parse_duration)]
    memory_aggregation_interval: Duration,
    /// So many windows without a sample, and what was learned is forgotten
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    memory_aggregation_interval_count: u32,
    /// After this time a peak of memory counts half
    #[arg(long, default_value = "24h", value_parser = parse_duration)]
    memory_histogram_decay_half_life: Duration,
    /// After this time a sample of cpu counts half
    #[arg(long, default_value = "24h", value_parser = parse_duration)]
    cpu_histogram_decay_half_life: Duration,
    /// A container that ran out of memory is taken to need so many times what it had
    #[arg(long, default_value_t = 1.2, value_parser = parse_ratio)]
    oom_bump_up_ratio: f64,
    /// And at least so many bytes more
    #[arg(long, default_value_t = 100 * MEBIBYTE, value_parser = clap::value_parser!(i64).range(0..))]
    oom_min_bump_up_bytes: i64,
    /// The most cpu of a container whose policy has no maximum, such as 4
    #[arg(long, value_parser = parse_cpu)]
    container_recommendation_max_allowed_cpu: Option<i64>,
    /// The most memory of a container whose policy has no maximum, such as 8Gi
    #[arg(long, value_parser = parse_memory)]
    container_recommendation_max_allowed_memory: Option<i64>,
    /// Give whole cores to containers that an annotation names
    #[arg(long)]
    cpu_integer_post_processor_enabled: bool,
    /// With fewer samples of cpu nothing is recommended for a container
    #[arg(long, default_value_t = 1)]
    min_samples: u64,
}

impl SizingSettings {
    /// How kubelets are asked.
    pub fn kubelet(&self) -> &KubeletSettings {
        &self.kubelet
    }

    /// What holds for changes of running pods.
    pub fn updating(&self) -> UpdaterSettings {
        let own = &self.updating;
        let signed = |duration| SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
        UpdaterSettings {
            min_replicas: own.min_replicas,
            eviction_tolerance: own.eviction_tolerance,
            eviction_rate_limit: own.eviction_rate_limit,
            eviction_rate_burst: own.eviction_rate_burst,
            in_place_skip_disruption_budget: own.in_place_skip_disruption_budget,
            pod_update_threshold: own.pod_update_threshold,
            in_recommendation_bounds_eviction_lifetime_threshold: signed(
                own.in_recommendation_bounds_eviction_lifetime_threshold,
            ),
            evict_after_oom_threshold: signed(own.evict_after_oom_threshold),
            deferred_timeout: signed(own.in_place_deferred_timeout),
            in_progress_timeout: signed(own.in_place_progress_timeout),
            max_resets: own.max_resets,
        }
    }

    /// What holds for estimation; native sidecars by their gate.
    pub fn estimation(&self, native_sidecars: bool) -> Estimation {
        let own = &self.estimation;
        Estimation {
            margin_fraction: own.recommendation_margin_fraction,
            cpu_percentiles: Percentiles {
                lower: own.recommendation_lower_bound_cpu_percentile,
                target: own.target_cpu_percentile,
                upper: own.recommendation_upper_bound_cpu_percentile,
            },
            memory_percentiles: Percentiles {
                lower: own.recommendation_lower_bound_memory_percentile,
                target: own.target_memory_percentile,
                upper: own.recommendation_upper_bound_memory_percentile,
            },
            cpu_confidence_interval: own.confidence_interval_cpu,
            memory_confidence_interval: own.confidence_interval_memory,
            pod_min: least(own.pod_recommendation_min_cpu_millicores, own.pod_recommendation_min_memory_mb),
            sidecar_min: least(own.sidecar_recommendation_min_cpu_millicores, own.sidecar_recommendation_min_memory_mb),
            max_allowed: Amounts {
                cpu: own.container_recommendation_max_allowed_cpu,
                memory: own.container_recommendation_max_allowed_memory,
            },
            round_cpu_millicores: own.round_cpu_millicores,
            round_memory_bytes: own.round_memory_bytes,
            whole_cores: own.cpu_integer_post_processor_enabled,
            memory_interval: own.memory_aggregation_interval,
            memory_interval_count: own.memory_aggregation_interval_count,
            cpu_half_life: own.cpu_histogram_decay_half_life,
            memory_half_life: own.memory_histogram_decay_half_life,
            oom_bump_ratio: own.oom_bump_up_ratio,
            oom_min_bump_bytes: own.oom_min_bump_up_bytes,
            min_samples: own.min_samples,
            native_sidecars,
        }
    }
}

fn least(millicores: i64, mebibytes: i64) -> Amounts {
    Amounts { cpu: Some(millicores), memory: Some(mebibytes.saturating_mul(MEBIBYTE)) }
}

fn parse_number(text: &str, least: f64, most: f64, hint: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| hint.to_owned())?;
    if (least..=most).contains(&number) { Ok(number) } else { Err(hint.to_owned()) }
}

fn parse_part(text: &str) -> Result<f64, String> {
    parse_number(text, 0.0, 1.0, "write a part from 0 to 1, such as 0.9")
}

fn parse_fraction(text: &str) -> Result<f64, String> {
    parse_number(text, 0.0, 100.0, "write a part of what was used, such as 0.15")
}

fn parse_ratio(text: &str) -> Result<f64, String> {
    parse_number(text, 1.0, 100.0, "write how many times as much, from 1, such as 1.2")
}

fn parse_cpu(text: &str) -> Result<i64, String> {
    Amounts::read(Resource::Cpu, text).ok_or_else(|| "write an amount of cpu, such as 4 or 500m".to_owned())
}

fn parse_memory(text: &str) -> Result<i64, String> {
    Amounts::read(Resource::Memory, text).ok_or_else(|| "write an amount of memory, such as 8Gi".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        sizing: SizingSettings,
    }

    fn parsed(flags: &[&str]) -> Result<SizingSettings, String> {
        let words = ["program"].iter().chain(flags);
        Program::try_parse_from(words).map(|program| program.sizing).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_said_is_as_upstream_has_it() {
        assert_eq!(parsed(&[]).unwrap().estimation(false), Estimation::default());
        let on = Estimation { native_sidecars: true, ..Estimation::default() };
        assert_eq!(parsed(&[]).unwrap().estimation(true), on);
        assert_eq!(parsed(&[]).unwrap().updating(), UpdaterSettings::default());
        assert_eq!(parsed(&["--eviction-rate-limit=-1"]).unwrap().updating(), UpdaterSettings::default());
    }

    #[test]
    fn flags_have_upstreams_names() {
        let flags = [
            "--target-cpu-percentile=0.5",
            "--pod-recommendation-min-memory-mb=10",
            "--memory-aggregation-interval=2m",
            "--container-recommendation-max-allowed-memory=1Gi",
            "--oom-bump-up-ratio=2",
        ];
        let own = parsed(&flags).unwrap().estimation(false);
        assert_eq!((own.cpu_percentiles.target, own.oom_bump_ratio), (0.5, 2.0));
        assert_eq!((own.pod_min.memory, own.max_allowed.memory), (Some(10 * MEBIBYTE), Some(1 << 30)));
        assert_eq!(own.memory_interval, Duration::from_mins(2));
        for (flag, hint) in [
            ("--target-cpu-percentile=90", "write a part from 0 to 1, such as 0.9"),
            ("--target-cpu-percentile=NaN", "write a part from 0 to 1, such as 0.9"),
            ("--oom-bump-up-ratio=0.5", "write how many times as much, from 1, such as 1.2"),
            ("--container-recommendation-max-allowed-cpu=much", "write an amount of cpu, such as 4 or 500m"),
        ] {
            let error = parsed(&[flag]).unwrap_err();
            assert!(error.contains(hint), "{flag}: {error}");
        }
    }
}
