//! Of which type a volume is.

use serde_json::Value;

use super::{Found, Level, Report};

/// Types that show nothing of the node, and name no storage that only administrators should name.
const RESTRICTED_TYPES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

pub(super) fn judge<'a>(volume: &'a Value, report: &mut Report<'a>) {
    // A volume of no type is an emptyDir. A type that is unknown here is of a newer Kubernetes, and not known to be harmless.
    let types = volume.as_object().into_iter().flatten().filter(|(key, value)| *key != "name" && !value.is_null());
    for (type_, _) in types {
        let allowed = match type_.as_str() {
            "hostPath" => Level::Privileged,
            type_ if RESTRICTED_TYPES.contains(&type_) => continue,
            _ => Level::Baseline,
        };
        let way_out = "use another type, such as emptyDir or persistentVolumeClaim";
        report.add(allowed, type_.clone(), Found::Something, way_out);
    }
}
