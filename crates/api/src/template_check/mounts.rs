//! Volumes and devices that a container mounts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::field::{Field, Problems};
use super::syntax::{NO_BACKSTEPS_HELP, RELATIVE_HELP, has_no_backsteps, is_relative};
use crate::Reason;
use crate::problem::{FieldPath, Problem};

/// The volumes of a SidecarSet, by name. Other volumes are the pod's, and only the pod decides about them.
pub(super) type Volumes<'a> = BTreeMap<&'a str, &'a Value>;

pub(super) fn check(container: &Field<'_>, volumes: &Volumes<'_>, problems: &mut Problems) {
    let of_devices = |field: &str| -> BTreeSet<&str> {
        container.items("volumeDevices").map(|device| device.text(field)).filter(|text| !text.is_empty()).collect()
    };
    let (device_names, device_paths) = (of_devices("name"), of_devices("devicePath"));
    let mut paths = BTreeMap::new();
    for mount in container.items("volumeMounts") {
        check_mount(container, &mount, problems);
        check_unique(&mount, "mountPath", &mut paths, problems);
        let (name, path) = (mount.text("name"), mount.text("mountPath"));
        if device_names.contains(name) {
            let message = format!("volume {name} is in volumeDevices as well");
            problems.error(mount.at("name"), message, "keep it in one of the two lists");
        }
        if device_paths.contains(path) {
            let message = format!("{path} is the path of a device as well");
            problems.error(mount.at("mountPath"), message, "choose another path");
        }
    }
    let (mut names, mut paths) = (BTreeMap::new(), BTreeMap::new());
    for device in container.items("volumeDevices") {
        check_unique(&device, "name", &mut names, problems);
        check_unique(&device, "devicePath", &mut paths, problems);
        problems.syntax(&device, "devicePath", has_no_backsteps, NO_BACKSTEPS_HELP);
        let name = device.text("name");
        let has_claim =
            |volume: &Value| ["persistentVolumeClaim", "ephemeral"].iter().any(|it| volume.get(it).is_some());
        if volumes.get(name).is_some_and(|volume| !has_claim(volume)) {
            let message = format!("volume {name} is no block device");
            let help = "use a volume of persistentVolumeClaim or ephemeral, or move it to volumeMounts";
            problems.error(device.at("name"), message, help);
        }
    }
    check_env_files(container, volumes, problems);
}

fn check_mount(container: &Field<'_>, mount: &Field<'_>, problems: &mut Problems) {
    for path in ["subPath", "subPathExpr"] {
        problems.syntax(mount, path, is_relative, RELATIVE_HELP);
    }
    if !mount.text("subPath").is_empty() && !mount.text("subPathExpr").is_empty() {
        problems.error(mount.at("subPathExpr"), "subPath and subPathExpr are both set", "keep one of them");
    }
    problems.one_of(mount, "mountPropagation", &["None", "HostToContainer", "Bidirectional"]);
    let propagation = mount.text("mountPropagation");
    let is_privileged = container.get("securityContext").is_some_and(|context| context.is_true("privileged"));
    if propagation == "Bidirectional" && !is_privileged {
        let message = "only privileged containers can use Bidirectional";
        problems.error(mount.at("mountPropagation"), message, "use HostToContainer, or set securityContext.privileged");
    }
    problems.one_of(mount, "recursiveReadOnly", &["Disabled", "IfPossible", "Enabled"]);
    if matches!(mount.text("recursiveReadOnly"), "IfPossible" | "Enabled") {
        if !mount.is_true("readOnly") {
            let message = "recursiveReadOnly is set without readOnly";
            problems.error(mount.at("recursiveReadOnly"), message, "set readOnly: true");
        }
        if mount.has("mountPropagation") && propagation != "None" {
            let message = format!("recursiveReadOnly is set together with mountPropagation {propagation}");
            problems.error(mount.at("recursiveReadOnly"), message, "remove mountPropagation");
        }
    }
}

fn check_unique<'a>(item: &Field<'a>, name: &str, seen: &mut BTreeMap<&'a str, FieldPath>, problems: &mut Problems) {
    let text = item.text(name);
    if text.is_empty() {
        return;
    }
    if let Some(first) = seen.get(text) {
        let message = format!("Duplicate value: {text:?}");
        let problem = Problem::error(Reason::InvalidContainer, item.at(name), message, "change or remove one of them");
        problems.0.push(problem.with_also(first.clone()));
    } else {
        seen.insert(text, item.at(name));
    }
}

/// Checks that variables from files use volumes of files that the pod itself writes.
fn check_env_files(container: &Field<'_>, volumes: &Volumes<'_>, problems: &mut Problems) {
    let sources = container.items("env").filter_map(|variable| variable.get("valueFrom")?.get("fileKeyRef"));
    for source in sources {
        let name = source.text("volumeName");
        // A volume without a source is an emptyDir.
        let is_other =
            |volume: &Value| volume.get("emptyDir").is_none() && volume.as_object().is_some_and(|it| it.len() > 1);
        if volumes.get(name).is_some_and(|volume| is_other(volume)) {
            let message = format!("volume {name} is no emptyDir");
            problems.error(source.at("volumeName"), message, "use a volume of emptyDir");
        }
    }
}
