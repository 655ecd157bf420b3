//! What a pod says of itself, for all its containers.

use serde_json::Value;

use super::{Found, Level, Report, Setting, is_on, is_one_of, items, security_context};

/// They concern the pod alone, not its node.
const SAFE_SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
];
/// An annotation of this prefix chooses the profile of the container whose name follows.
const APP_ARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

pub(super) fn judge<'a>(spec: &'a Value, report: &mut Report<'a>) {
    for field in ["hostNetwork", "hostPID", "hostIPC"] {
        if is_on(&spec[field]) {
            report.add(Level::Privileged, field, Found::of(&spec[field]), "remove it");
        }
    }
    let context = &spec["securityContext"];
    security_context::judge(context, Setting(spec), report);
    for (index, sysctl) in items(&context["sysctls"]).enumerate() {
        let name = &sysctl["name"];
        if !is_one_of(name, &SAFE_SYSCTLS) {
            let field = format!("securityContext.sysctls[{index}].name");
            report.add(Level::Privileged, field, Found::of(name), "remove it");
        }
    }
}

pub(super) fn judge_annotation<'a>(key: &'a str, value: &'a str, report: &mut Report<'a>) {
    let is_confined = value.is_empty() || value == "runtime/default" || value.starts_with("localhost/");
    if key.starts_with(APP_ARMOR_ANNOTATION) && !is_confined {
        let way_out = "use runtime/default or localhost/<profile>, or remove it";
        report.add(Level::Privileged, format!("annotations[{key}]"), Found::Text(value), way_out);
    }
}
