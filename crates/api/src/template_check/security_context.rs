//! Security contexts of containers.

use super::field::{Field, Problems};
use super::syntax::{RELATIVE_HELP, SUBDOMAIN_HELP, is_dns_label, is_dns_subdomain, is_relative};

const PROFILES: [&str; 4] = ["", "Localhost", "RuntimeDefault", "Unconfined"];
const LONGEST_PROFILE: usize = 4095;
const LONGEST_CREDENTIALS: usize = 64 * 1024;
const LONGEST_DOMAIN: usize = 255;
const LONGEST_USER: usize = 104;

pub(super) fn check(container: &Field<'_>, problems: &mut Problems) {
    let Some(context) = container.get("securityContext") else { return };
    for id in ["runAsUser", "runAsGroup"] {
        problems.in_range(&context, id, 0, i64::from(i32::MAX));
    }
    problems.one_of(&context, "procMount", &["Default", "Unmasked"]);
    if context.is_false("allowPrivilegeEscalation") {
        let privileges = context.get("capabilities").map(|it| it.items("add").collect::<Vec<_>>()).unwrap_or_default();
        if context.is_true("privileged") {
            let message = "a privileged container always allows privilege escalation";
            problems.error(context.at("allowPrivilegeEscalation"), message, "remove privileged or set it to true");
        }
        if privileges.iter().any(|capability| capability.value == "CAP_SYS_ADMIN") {
            let message = "a container with CAP_SYS_ADMIN always allows privilege escalation";
            problems.error(context.at("allowPrivilegeEscalation"), message, "remove the capability or set it to true");
        }
    }
    check_seccomp(&context, problems);
    check_app_armor(&context, problems);
    if let Some(options) = context.get("windowsOptions") {
        check_windows(&options, problems);
    }
}

fn check_seccomp(context: &Field<'_>, problems: &mut Problems) {
    let Some(profile) = context.get("seccompProfile") else { return };
    problems.one_of(&profile, "type", &PROFILES);
    check_localhost(&profile, problems);
    problems.syntax(&profile, "localhostProfile", is_relative, RELATIVE_HELP);
}

fn check_app_armor(context: &Field<'_>, problems: &mut Problems) {
    let Some(profile) = context.get("appArmorProfile") else { return };
    problems.one_of(&profile, "type", &PROFILES);
    check_localhost(&profile, problems);
    let Some(name) = profile.get("localhostProfile").and_then(|name| name.value.as_str()) else { return };
    if profile.text("type") == "Localhost" && (name.is_empty() || name.trim() != name || name.len() > LONGEST_PROFILE) {
        let help = format!("write the name without spaces around it, with at most {LONGEST_PROFILE} characters");
        problems.error(profile.at("localhostProfile"), format!("{name:?} is invalid"), help);
    }
}

/// Checks that a local profile is named where the type says so, and only there.
fn check_localhost(profile: &Field<'_>, problems: &mut Problems) {
    let (is_local, kind) = (profile.text("type") == "Localhost", profile.text("type"));
    if is_local && !profile.has("localhostProfile") {
        problems.error(profile.at("localhostProfile"), "Required value", "name the profile, or choose another type");
    }
    if !is_local && profile.has("localhostProfile") {
        let message = format!("localhostProfile is set for type {kind}");
        problems.error(profile.at("localhostProfile"), message, "remove it, or set type: Localhost");
    }
}

fn check_windows(options: &Field<'_>, problems: &mut Problems) {
    if let Some(name) = options.get("gmsaCredentialSpecName").and_then(|name| name.value.as_str())
        && !is_dns_subdomain(name)
    {
        problems.error(options.at("gmsaCredentialSpecName"), format!("{name:?} is invalid"), SUBDOMAIN_HELP);
    }
    let credentials = options.get("gmsaCredentialSpec").and_then(|text| text.value.as_str()).map(str::len);
    if let Some(length) = credentials.filter(|length| !(1..=LONGEST_CREDENTIALS).contains(length)) {
        let message = format!("it has {length} bytes");
        let help = format!("write 1 to {LONGEST_CREDENTIALS} bytes, or remove it");
        problems.error(options.at("gmsaCredentialSpec"), message, help);
    }
    let user = options.get("runAsUserName").and_then(|user| user.value.as_str());
    if let Some(user) = user.filter(|user| !is_windows_user(user)) {
        let help = "write USER or DOMAIN\\USER without control characters and \"/:;|=,+*?<>@[]";
        problems.error(options.at("runAsUserName"), format!("{user:?} is not the name of a Windows user"), help);
    }
}

fn is_windows_user(name: &str) -> bool {
    let (domain, user) = match name.split_once('\\') {
        Some((domain, user)) => (Some(domain), user),
        None => (None, name),
    };
    let is_forbidden = |c: char| c.is_ascii_control() || "\"/\\:;|=,+*?<>@[]".contains(c);
    (1..=LONGEST_USER).contains(&user.len())
        && !user.contains(is_forbidden)
        && user.contains(|c| c != '.' && c != ' ')
        && domain.is_none_or(is_windows_domain)
}

/// Returns true for a NetBIOS name, or a DNS name in any case.
fn is_windows_domain(domain: &str) -> bool {
    let is_net_bios = (1..=15).contains(&domain.chars().count())
        && !domain.starts_with('.')
        && !domain.contains(|c| "\\/:*?\"<>|".contains(c));
    let is_dns = domain.split('.').all(|label| is_dns_label(&label.to_ascii_lowercase()));
    domain.len() <= LONGEST_DOMAIN && !domain.contains(|c: char| c.is_ascii_control()) && (is_net_bios || is_dns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_windows_user_may_have_a_domain() {
        for valid in ["User", "CORP\\user", "corp.example.com\\user", "NT AUTHORITY\\SYSTEM", "a.b"] {
            assert!(is_windows_user(valid), "{valid}");
        }
        let long = "u".repeat(105);
        for invalid in ["", "\\user", "a\\b\\c", "a\\", "..", " ", "a:b", "a\nb", ".corp\\user", &long] {
            assert!(!is_windows_user(invalid), "{invalid}");
        }
    }
}
