//! Every e2e test, in one program: one link, and a test's name starts with its subject (`smoke_…`).
//!
//! Modules ending in `_own_bed` start beds of their own; all others use the bed of `just e2e`.
#![forbid(unsafe_code)]

mod agent_clobber_own_bed;
mod agent_controller_own_bed;
mod agent_fence_own_bed;
mod agent_page_own_bed;
mod agent_pod_probe_own_bed;
mod agent_probe_own_bed;
mod agent_update_own_bed;
mod canary_cost_own_bed;
mod canary_deployment_own_bed;
mod canary_exact_own_bed;
mod finish_convert_own_bed;
mod finish_jobs_own_bed;
mod finish_phases_own_bed;
mod finish_why_own_bed;
mod inject_again;
mod inject_chart_own_bed;
mod inject_cli_own_bed;
mod inject_controller_own_bed;
mod inject_crd;
mod inject_fences_own_bed;
mod inject_hostile_own_bed;
mod inject_load_own_bed;
mod inject_order_own_bed;
mod inject_pod_security;
mod inject_quickstart_own_bed;
mod inject_rbac_own_bed;
mod inject_server_defaults;
mod inject_stories_own_bed;
mod inject_templates;
mod inject_twin_own_bed;
mod inject_webhook_own_bed;
#[expect(dead_code, reason = "what our own code says of a pod is for its own tests")]
#[path = "../../../crates/inject/src/pod_security/table.rs"]
mod pod_security_table;
mod rollout_adoption_own_bed;
mod rollout_cli_own_bed;
mod rollout_node_own_bed;
mod rollout_promises_own_bed;
mod rollout_replay;
mod rollout_scenarios_own_bed;
mod rollout_strategies_own_bed;
mod runtime_lease;
mod runtime_watch_own_bed;
mod safe_annotations_own_bed;
mod safe_break_glass_own_bed;
mod safe_bystanders_own_bed;
mod safe_pod_resources;
mod safe_templates;
mod safe_webhook_access_own_bed;
#[expect(dead_code, reason = "the API server does not name places as our own code does")]
#[path = "../../../crates/api/tests/all/sets.rs"]
mod sets;
mod size_admission_own_bed;
mod size_applying_own_bed;
mod size_cli_own_bed;
mod size_fence_own_bed;
mod size_gate_own_bed;
mod size_node_own_bed;
mod size_oom_own_bed;
mod size_targets_own_bed;
mod smoke_admission;
mod smoke_fleet;
mod smoke_metrics;
mod smoke_node;
mod smoke_own_bed;
mod traces;
