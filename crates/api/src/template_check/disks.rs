//! Volumes on disks and network storage.

use pillion_quantity::Quantity;

use super::field::{Field, Problems};
use super::resources::quantity_text;
use super::syntax::{LABEL_HELP, is_dns_label};

/// The longest name of a volume and its portal, where the initiator is named.
const LONGEST_PORTAL: usize = 64;
const LONGEST_TENANT: usize = 64;

pub(super) fn check(volume: &Field<'_>, problems: &mut Problems) {
    if let Some(source) = volume.get("emptyDir") {
        check_size_limit(&source, problems);
    }
    for disk in ["gcePersistentDisk", "awsElasticBlockStore"].iter().filter_map(|name| volume.get(name)) {
        problems.in_range(&disk, "partition", 0, 255);
    }
    if let Some(source) = volume.get("nfs") {
        let path = source.text("path");
        if !path.is_empty() && !path.starts_with('/') {
            problems.error(source.at("path"), format!("{path:?} is not absolute"), "start the path with /");
        }
    }
    if let Some(source) = volume.get("iscsi") {
        check_iscsi(volume, &source, problems);
    }
    if let Some(source) = volume.get("fc") {
        check_fibre_channel(&source, problems);
    }
    if let Some(source) = volume.get("flocker") {
        let (name, uuid) = (source.text("datasetName"), source.text("datasetUUID"));
        if name.is_empty() == uuid.is_empty() {
            let message = "exactly one of datasetName and datasetUUID must be set";
            problems.error(source.path.clone(), message, "set one of them");
        }
        problems.syntax(&source, "datasetName", |name| !name.contains('/'), "use a name without /");
    }
    if let Some(source) = volume.get("flexVolume") {
        check_flex_options(&source, problems);
    }
    if let Some(source) = volume.get("quobyte") {
        check_quobyte(&source, problems);
    }
    if let Some(source) = volume.get("azureDisk") {
        check_azure_disk(&source, problems);
    }
    if let Some(source) = volume.get("scaleIO") {
        problems.require(&source, "volumeName");
    }
    if let Some(source) = volume.get("storageos") {
        problems.require(&source, "volumeName");
        problems.syntax(&source, "volumeName", is_dns_label, LABEL_HELP);
        problems.syntax(&source, "volumeNamespace", is_dns_label, LABEL_HELP);
    }
    let with_secret = ["cinder", "storageos"].iter().filter_map(|name| volume.get(name)?.get("secretRef"));
    for secret in with_secret {
        problems.require(&secret, "name");
    }
}

fn check_size_limit(source: &Field<'_>, problems: &mut Problems) {
    let limit = source.get("sizeLimit").map(|limit| quantity_text(limit.value));
    if let Some(limit) = limit.filter(|limit| limit.parse::<Quantity>().is_ok_and(Quantity::is_negative)) {
        problems.error(source.at("sizeLimit"), format!("{limit} is negative"), "write 0 or more");
    }
}

fn check_iscsi(volume: &Field<'_>, source: &Field<'_>, problems: &mut Problems) {
    let help = "write a name that starts with iqn, eui or naa, such as iqn.2001-04.com.example:storage";
    problems.syntax(source, "iqn", is_iscsi_name, help);
    let initiator = source.get("initiatorName").and_then(|name| name.value.as_str());
    if let Some(initiator) = initiator {
        if !is_iscsi_name(initiator) {
            problems.error(source.at("initiatorName"), format!("{initiator:?} is invalid"), help);
        }
        let length = volume.text("name").len() + 1 + source.text("targetPortal").len();
        if length > LONGEST_PORTAL {
            let message = format!("with initiatorName, NAME:targetPortal has {length} characters");
            problems.error(volume.at("name"), message, format!("use at most {LONGEST_PORTAL}"));
        }
    }
    problems.in_range(source, "lun", 0, 255);
    let uses_secret = source.is_true("chapAuthDiscovery") || source.is_true("chapAuthSession");
    if uses_secret && !source.has("secretRef") {
        problems.error(source.at("secretRef"), "Required value", "name the Secret that CHAP authentication uses");
    }
}

/// Returns true for the name of an iSCSI node in one of its three notations.
fn is_iscsi_name(name: &str) -> bool {
    let is_hexadecimal = |rest: &str, length| {
        // One separator, then letters and digits.
        let mut characters = rest.chars();
        characters.next().is_some_and(|separator| separator != '\n')
            && characters.as_str().len() == length
            && characters.all(|c| c.is_ascii_alphanumeric())
    };
    if name.starts_with("iqn") {
        // The pattern of the API server is anchored at the end only.
        return name.match_indices("iqn.").any(|(at, start)| is_qualified_iscsi_name(&name[at + start.len()..]));
    }
    name.strip_prefix("eui").is_some_and(|rest| is_hexadecimal(rest, 16))
        || name.strip_prefix("naa").is_some_and(|rest| is_hexadecimal(rest, 32))
}

/// Returns true for `YYYY-MM.DOMAIN:NAME`.
fn is_qualified_iscsi_name(rest: &str) -> bool {
    let Some((date, rest)) = rest.split_once('.') else { return false };
    let is_number = |text: &str, length| text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_date = date.split_once('-').is_some_and(|(year, month)| is_number(year, 4) && is_number(month, 2));
    let Some((domain, name)) = rest.split_once(':') else { return false };
    let is_domain = !domain.is_empty() && domain.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'));
    let is_forbidden = |c: char| c.is_ascii_whitespace() || ",;*&$|".contains(c);
    is_date && is_domain && !name.is_empty() && !name.contains(is_forbidden)
}

fn check_fibre_channel(source: &Field<'_>, problems: &mut Problems) {
    let (targets, ids) = (source.len("targetWWNs"), source.len("wwids"));
    if (targets == 0) == (ids == 0) {
        let message = "exactly one of targetWWNs and wwids must be set";
        problems.error(source.at("targetWWNs"), message, "set one of them");
    }
    if targets > 0 {
        if !source.has("lun") {
            problems.error(source.at("lun"), "Required value", "set lun: targetWWNs needs it");
        }
        problems.in_range(source, "lun", 0, 255);
    }
}

fn check_flex_options(source: &Field<'_>, problems: &mut Problems) {
    for (key, option) in source.entries("options") {
        let domain = key.split_once('/').map_or(key, |(domain, _)| domain).to_lowercase();
        let is_reserved =
            |own: &str| domain.strip_suffix(own).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        if is_reserved("kubernetes.io") || is_reserved("k8s.io") {
            problems.error(option.path.clone(), format!("{key} is reserved for Kubernetes"), "use another domain");
        }
    }
}

fn check_quobyte(source: &Field<'_>, problems: &mut Problems) {
    let registry = source.text("registry");
    if registry.is_empty() {
        return;
    }
    let tenant = source.text("tenant");
    if tenant.len() > LONGEST_TENANT {
        let message = format!("{} characters are more than {LONGEST_TENANT}", tenant.len());
        problems.error(source.at("tenant"), message, "write the UUID of the tenant");
    } else if !registry.split(',').all(is_host_and_port) {
        let message = format!("{registry:?} is not a list of HOST:PORT");
        problems.error(source.at("registry"), message, "write HOST:PORT, separated by commas");
    }
}

fn is_host_and_port(pair: &str) -> bool {
    let Some((host, port)) = pair.rsplit_once(':') else { return false };
    let is_plain = |text: &str| !text.contains(['[', ']', ':']);
    match host.strip_prefix('[') {
        Some(address) => address.strip_suffix(']').is_some_and(|it| !it.contains(['[', ']'])) && is_plain(port),
        None => is_plain(host) && is_plain(port),
    }
}

fn check_azure_disk(source: &Field<'_>, problems: &mut Problems) {
    problems.one_of(source, "cachingMode", &["None", "ReadOnly", "ReadWrite"]);
    problems.one_of(source, "kind", &["Shared", "Dedicated", "Managed"]);
    // The default kind is Shared.
    let prefix = if source.text("kind") == "Managed" { "/subscriptions/" } else { "https://" };
    let uri = source.text("diskURI");
    if !uri.is_empty() && !uri.starts_with(prefix) {
        let message = format!("{uri:?} is not the URI of such a disk");
        problems.error(source.at("diskURI"), message, format!("start it with {prefix}, or set kind"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iscsi_names_have_three_notations() {
        let naa = format!("naa.{}", "0".repeat(32));
        for valid in ["iqn.2001-04.com.example:storage", "eui.0123456789abcdef", &naa] {
            assert!(is_iscsi_name(valid), "{valid}");
        }
        for invalid in ["", "iqn.2001-4.com:x", "iqn.2001-04.com", "iqn.2001-04.com:a b", "eui.0", "xyz", "naa.0"] {
            assert!(!is_iscsi_name(invalid), "{invalid}");
        }
    }

    #[test]
    fn a_registry_is_a_host_and_a_port() {
        for valid in ["a:1", "[::1]:80", ":1", "a:"] {
            assert!(is_host_and_port(valid), "{valid}");
        }
        for invalid in ["a", "a:b:1", "[::1]", "[::1:80", ""] {
            assert!(!is_host_and_port(invalid), "{invalid}");
        }
    }
}
