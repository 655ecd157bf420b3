//! What rules ask of JSON. A field that is null counts as absent: the API server drops it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::meaning::PodField;

fn field<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    value.get(name).filter(|field| !field.is_null())
}

pub(super) fn has_all(value: &Value, names: &[&str]) -> bool {
    names.iter().all(|name| field(value, name).is_some())
}

pub(super) fn has_any(value: &Value, names: &[&str]) -> bool {
    names.iter().any(|name| field(value, name).is_some())
}

pub(super) fn has_one(value: &Value, names: &[&str]) -> bool {
    names.iter().filter(|name| field(value, name).is_some()).count() == 1
}

/// Entries of a list or map; none where it is absent.
pub(super) fn len(value: &Value, name: &str) -> usize {
    match field(value, name) {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(fields)) => fields.len(),
        _ => 0,
    }
}

pub(super) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    field(value, name).and_then(Value::as_str).unwrap_or_default()
}

fn items<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    field(value, name).and_then(Value::as_array).into_iter().flatten()
}

pub(super) fn name_is_a_label_value(object: &Value) -> bool {
    // An object that has no name yet gets one from generateName.
    let name = object.get("metadata").map(|metadata| text(metadata, "name")).unwrap_or_default();
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.is_empty()
        || (name.len() <= 63
            && name.chars().all(|c| inner(c) || c == '-')
            && name.starts_with(inner)
            && name.ends_with(inner))
}

/// The first name that a container and an init container share.
pub(super) fn shared_name(spec: &Value) -> Option<&str> {
    let names: BTreeSet<&str> = items(spec, "containers").map(|container| text(container, "name")).collect();
    items(spec, "initContainers").map(|init| text(init, "name")).find(|name| names.contains(name))
}

pub(super) fn app_volumes_exist(spec: &Value) -> bool {
    let names: BTreeSet<&str> = items(spec, "volumes").map(|volume| text(volume, "name")).collect();
    items(spec, "appVolumeMounts").all(|mount| names.contains(text(mount, "volume")))
}

pub(super) fn no_hot_upgrade(container: &Value) -> bool {
    field(container, "upgradeStrategy").is_none_or(|strategy| {
        matches!(text(strategy, "upgradeType"), "ColdUpgrade") || field(strategy, "upgradeType").is_none()
    } && field(strategy, "hotUpgradeEmptyImage").is_none())
}

/// Keys that are neither cpu nor memory, in order.
pub(super) fn other_resources(expressions: &Value) -> Vec<&str> {
    let keys = expressions.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
    keys.filter(|key| !matches!(*key, "cpu" | "memory")).collect()
}

pub(super) fn is_number_of_pods(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let digits = text.strip_suffix('%').unwrap_or_default();
            let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !(digits.len() > 1 && digits.starts_with('0'));
            plain && digits.parse::<u8>().is_ok_and(|percent| percent <= 100)
        }
        other => other.as_i64().is_some_and(|number| number >= 0),
    }
}

/// Which field of a pod a path means.
pub(crate) fn pod_field(path: &str) -> Option<PodField> {
    let key = |rest: &str| {
        let key = rest.strip_prefix("['")?.strip_suffix("']")?;
        (!key.is_empty() && !key.contains('\'')).then(|| key.to_owned())
    };
    if path == "metadata.name" {
        return Some(PodField::Name);
    }
    if let Some(rest) = path.strip_prefix("metadata.labels") {
        return key(rest).map(PodField::Label);
    }
    key(path.strip_prefix("metadata.annotations")?).map(PodField::Annotation)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_of_pods() {
        for good in [json!(0), json!(3), json!("0%"), json!("7%"), json!("100%")] {
            assert!(is_number_of_pods(&good), "{good}");
        }
        for bad in
            [json!(-1), json!("3"), json!("101%"), json!("-1%"), json!("05%"), json!("%"), json!("1.5%"), json!("")]
        {
            assert!(!is_number_of_pods(&bad), "{bad}");
        }
    }

    #[test]
    fn fields_of_pods() {
        assert_eq!(pod_field("metadata.name"), Some(PodField::Name));
        assert_eq!(pod_field("metadata.labels['a/b']"), Some(PodField::Label("a/b".to_owned())));
        assert_eq!(pod_field("metadata.annotations['x']"), Some(PodField::Annotation("x".to_owned())));
        for bad in [
            "",
            "metadata.labels",
            "metadata.labels['']",
            "metadata.labels['a'",
            "metadata.labels['a'b']",
            "spec.nodeName",
        ] {
            assert_eq!(pod_field(bad), None, "{bad}");
        }
    }

    #[test]
    fn null_is_absent() {
        let value = json!({"a": null, "b": 1});
        assert!(!has_any(&value, &["a"]) && has_one(&value, &["a", "b"]) && !has_all(&value, &["a", "b"]));
    }
}
