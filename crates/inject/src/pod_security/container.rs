//! What a container says of itself, and what it must say.

use serde_json::Value;

use super::{Found, Level, Report, Setting, is_filled, is_on, is_one_of, items, security_context};

/// The capability that lets a process listen on ports below 1024.
const LOW_PORTS: &str = "NET_BIND_SERVICE";
/// What the baseline profile lets a container add. Runtimes give these by default.
const BASELINE_CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    LOW_PORTS,
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

pub(super) fn judge<'a>(container: &'a Value, setting: Setting<'_>, report: &mut Report<'a>) {
    let context = &container["securityContext"];
    judge_privileges(context, setting, report);
    security_context::judge(context, setting, report);
    judge_network(container, report);
    judge_omissions(context, setting, report);
}

fn judge_privileges<'a>(context: &'a Value, setting: Setting<'_>, report: &mut Report<'a>) {
    let privileged = &context["privileged"];
    if is_on(privileged) {
        report.add(Level::Privileged, "securityContext.privileged", Found::of(privileged), "set it to false");
    }
    for (index, capability) in items(&context["capabilities"]["add"]).enumerate() {
        let allowed = if !is_one_of(capability, &BASELINE_CAPABILITIES) {
            Level::Privileged
        } else if capability != LOW_PORTS && !setting.is_windows() {
            Level::Baseline
        } else {
            continue;
        };
        let field = format!("securityContext.capabilities.add[{index}]");
        report.add(allowed, field, Found::of(capability), "remove it");
    }
    let proc_mount = &context["procMount"];
    if !proc_mount.is_null() && proc_mount != "Default" {
        let allowed = if setting.has_user_namespace() { Level::Baseline } else { Level::Privileged };
        report.add(allowed, "securityContext.procMount", Found::of(proc_mount), "use Default, or remove it");
    }
}

fn judge_network<'a>(container: &'a Value, report: &mut Report<'a>) {
    for (index, port) in items(&container["ports"]).enumerate() {
        let port = &port["hostPort"];
        if !port.is_null() && port != 0 {
            report.add(Level::Privileged, format!("ports[{index}].hostPort"), Found::of(port), "remove it");
        }
    }
    // The kubelet calls them, from the node's network.
    for (handler, name) in [
        (&container["livenessProbe"], "livenessProbe"),
        (&container["readinessProbe"], "readinessProbe"),
        (&container["startupProbe"], "startupProbe"),
        (&container["lifecycle"]["postStart"], "lifecycle.postStart"),
        (&container["lifecycle"]["preStop"], "lifecycle.preStop"),
    ] {
        for action in ["httpGet", "tcpSocket"] {
            let host = &handler[action]["host"];
            if is_filled(host) {
                let field = format!("{name}.{action}.host");
                report.add(Level::Privileged, field, Found::of(host), "remove it");
            }
        }
    }
}

/// What the restricted profile wants to be said, by the container or by the pod for all of them.
fn judge_omissions<'a>(context: &'a Value, setting: Setting<'_>, report: &mut Report<'a>) {
    if context["runAsNonRoot"].is_null() && !setting.gives_non_root() && !setting.has_user_namespace() {
        let way_out = "set it to true here or in the pod";
        report.add(Level::Baseline, "securityContext.runAsNonRoot", Found::Nothing, way_out);
    }
    if setting.is_windows() {
        return;
    }
    let escalation = &context["allowPrivilegeEscalation"];
    if escalation != false {
        let field = "securityContext.allowPrivilegeEscalation";
        report.add(Level::Baseline, field, Found::of(escalation), "set it to false");
    }
    let dropped = &context["capabilities"]["drop"];
    if !items(dropped).any(|capability| capability == "ALL") {
        report.add(Level::Baseline, "securityContext.capabilities.drop", Found::of(dropped), "add ALL");
    }
    if context["seccompProfile"].is_null() && !setting.gives_seccomp_profile() {
        let way_out = "use RuntimeDefault or Localhost here or in the pod";
        report.add(Level::Baseline, "securityContext.seccompProfile.type", Found::Nothing, way_out);
    }
}
