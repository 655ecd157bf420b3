//! Volumes and their sources.

use super::downward::{Use, check_field_ref, check_resource_ref};
use super::field::{Field, Problems};
use super::syntax::{
    LABEL_HELP, NO_BACKSTEPS_HELP, RELATIVE_HELP, SUBDOMAIN_HELP, has_no_backsteps, is_dns_label, is_dns_subdomain,
    is_file_in_volume, is_relative,
};
use super::{claims, disks, projected};

const HIGHEST_MODE: i64 = 0o777;
const HOST_PATH_TYPES: [&str; 8] =
    ["", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"];

/// Checks one volume. A volume without a source is an emptyDir.
pub(super) fn check(volume: &Field<'_>, problems: &mut Problems) {
    problems.syntax(volume, "name", is_dns_label, LABEL_HELP);
    let fields = volume.value.as_object().into_iter().flatten();
    let sources: Vec<&str> = fields.map(|(name, _)| name.as_str()).filter(|name| is_source(name)).collect();
    problems.at_most_one(volume, &sources, "volume sources");
    check_files(volume, problems);
    disks::check(volume, problems);
    claims::check(volume, problems);
    if let Some(source) = volume.get("projected") {
        projected::check(&source, problems);
    }
}

/// Returns true for a source that the schema knows. The schema reports other fields.
fn is_source(name: &str) -> bool {
    name != "name" && crate::schema_check::is_volume_field(name)
}

/// Checks sources of files: directories, Secrets, ConfigMaps and images.
fn check_files(volume: &Field<'_>, problems: &mut Problems) {
    if let Some(source) = volume.get("hostPath") {
        problems.syntax(&source, "path", has_no_backsteps, NO_BACKSTEPS_HELP);
        problems.one_of(&source, "type", &HOST_PATH_TYPES);
    }
    if let Some(source) = volume.get("gitRepo") {
        problems.syntax(&source, "directory", is_relative, RELATIVE_HELP);
    }
    for (kind, name) in [("secret", "secretName"), ("configMap", "name")] {
        let Some(source) = volume.get(kind) else { continue };
        problems.require(&source, name);
        problems.in_range(&source, "defaultMode", 0, HIGHEST_MODE);
        for item in source.items("items") {
            check_key_to_path(&item, problems);
        }
    }
    if let Some(source) = volume.get("downwardAPI") {
        problems.in_range(&source, "defaultMode", 0, HIGHEST_MODE);
        for file in source.items("items") {
            check_downward_file(&file, problems);
        }
    }
    if let Some(source) = volume.get("csi") {
        let driver = source.text("driver");
        if !driver.is_empty() && (driver.len() > 63 || !is_dns_subdomain(&driver.to_ascii_lowercase())) {
            let help = "use at most 63 letters, digits, dashes and dots";
            problems.error(source.at("driver"), format!("{driver:?} is invalid"), help);
        }
        if let Some(secret) = source.get("nodePublishSecretRef") {
            problems.require(&secret, "name");
            problems.syntax(&secret, "name", is_dns_subdomain, SUBDOMAIN_HELP);
        }
    }
    if let Some(source) = volume.get("image") {
        problems.require(&source, "reference");
        problems.one_of(&source, "pullPolicy", &["", "Always", "IfNotPresent", "Never"]);
    }
}

/// Checks an item of a Secret or ConfigMap.
pub(super) fn check_key_to_path(item: &Field<'_>, problems: &mut Problems) {
    problems.syntax(item, "path", is_file_in_volume, RELATIVE_HELP);
    problems.in_range(item, "mode", 0, HIGHEST_MODE);
}

/// Checks a file with a field of the pod.
pub(super) fn check_downward_file(file: &Field<'_>, problems: &mut Problems) {
    problems.syntax(file, "path", is_file_in_volume, RELATIVE_HELP);
    problems.in_range(file, "mode", 0, HIGHEST_MODE);
    let references = ["fieldRef", "resourceFieldRef"];
    if problems.at_most_one(file, &references, "references") == 0 {
        problems.error(file.path.clone(), "the file has no content", "set fieldRef or resourceFieldRef");
    }
    if let Some(reference) = file.get("fieldRef") {
        check_field_ref(&reference, Use::File, problems);
    }
    if let Some(reference) = file.get("resourceFieldRef") {
        check_resource_ref(&reference, Use::File, problems);
    }
}

/// Checks the mode of files for which no other mode is set.
pub(super) fn check_default_mode(source: &Field<'_>, problems: &mut Problems) {
    problems.in_range(source, "defaultMode", 0, HIGHEST_MODE);
}
