//! What the `securityContext` of a pod and that of a container have in common.

use serde_json::Value;

use super::{Found, Level, Report, Setting, is_filled, is_on, is_one_of};

const SELINUX_TYPES: [&str; 5] = ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

/// Judges what is given. What is not given is for the container to miss.
pub(super) fn judge<'a>(context: &'a Value, setting: Setting<'_>, report: &mut Report<'a>) {
    let host_process = &context["windowsOptions"]["hostProcess"];
    if is_on(host_process) {
        let field = "securityContext.windowsOptions.hostProcess";
        report.add(Level::Privileged, field, Found::of(host_process), "set it to false");
    }
    for (profile, field) in [
        (&context["appArmorProfile"], "securityContext.appArmorProfile.type"),
        (&context["seccompProfile"], "securityContext.seccompProfile.type"),
    ] {
        if !profile.is_null() && !is_confined(profile) {
            let found = Found::of(&profile["type"]);
            report.add(Level::Privileged, field, found, "use RuntimeDefault or Localhost");
        }
    }
    judge_selinux(&context["seLinuxOptions"], report);
    if !setting.has_user_namespace() {
        judge_user(context, report);
    }
}

/// Whether a seccomp or `AppArmor` profile is one that confines.
pub(super) fn is_confined(profile: &Value) -> bool {
    is_one_of(&profile["type"], &["RuntimeDefault", "Localhost"])
}

fn judge_selinux<'a>(options: &'a Value, report: &mut Report<'a>) {
    let type_ = &options["type"];
    if !type_.is_null() && !is_one_of(type_, &SELINUX_TYPES) {
        let way_out = "use container_t, container_init_t, container_kvm_t or container_engine_t, or remove it";
        report.add(Level::Privileged, "securityContext.seLinuxOptions.type", Found::of(type_), way_out);
    }
    for (value, field) in [
        (&options["user"], "securityContext.seLinuxOptions.user"),
        (&options["role"], "securityContext.seLinuxOptions.role"),
    ] {
        if is_filled(value) {
            report.add(Level::Privileged, field, Found::of(value), "remove it");
        }
    }
}

fn judge_user<'a>(context: &'a Value, report: &mut Report<'a>) {
    let non_root = &context["runAsNonRoot"];
    if !non_root.is_null() && non_root != true {
        report.add(Level::Baseline, "securityContext.runAsNonRoot", Found::of(non_root), "set it to true");
    }
    let user = &context["runAsUser"];
    if !user.is_null() && user.as_i64().is_none_or(|user| user == 0) {
        report.add(Level::Baseline, "securityContext.runAsUser", Found::of(user), "use another user, or remove it");
    }
}
