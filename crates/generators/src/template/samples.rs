//! Values that the API server accepts, and the fields that it needs beside them.

use serde_json::{Map, Value, json};

/// Samples by the end of the field's path; the first that fits is taken.
const SAMPLES: [(&str, &str); 94] = [
    (".volumeMounts[].name", "files"),
    (".volumeDevices[].name", "device"),
    (".env[].name", "A"),
    (".envFrom[].prefix", "A_"),
    (".claims[].name", "claim"),
    (".claims[].request", "r"),
    (".ports[].name", "http"),
    (".ports[].protocol", "TCP"),
    (".rbd.image", "a"),
    (".image", "proxy:1"),
    (".imagePullPolicy", "Always"),
    (".pullPolicy", "Always"),
    (".terminationMessagePolicy", "File"),
    (".scheme", "HTTP"),
    (".stopSignal", "SIGTERM"),
    (".resizePolicy[].restartPolicy", "NotRequired"),
    (".restartPolicy", "Always"),
    (".resourceName", "cpu"),
    (".action", "Restart"),
    (".exitCodes.operator", "In"),
    (".operator", "Exists"),
    (".mountPath", "/data"),
    (".devicePath", "/dev/a"),
    (".mountPropagation", "None"),
    (".recursiveReadOnly", "Disabled"),
    (".procMount", "Unmasked"),
    (".hostPath.type", "Directory"),
    (".seccompProfile.type", "RuntimeDefault"),
    (".appArmorProfile.type", "RuntimeDefault"),
    (".seccompProfile.localhostProfile", "a"),
    (".iqn", "iqn.2001-04.com.example:a"),
    (".initiatorName", "iqn.2001-04.com.example:a"),
    (".diskURI", "https://a"),
    (".cachingMode", "None"),
    (".azureDisk.kind", "Shared"),
    (".dataSource.kind", "PersistentVolumeClaim"),
    (".dataSourceRef.kind", "PersistentVolumeClaim"),
    (".registry", "a:1"),
    (".nfs.path", "/a"),
    (".hostPath.path", "/a"),
    (".httpGet.path", "/a"),
    (".fieldPath", "metadata.name"),
    (".resource", "limits.cpu"),
    (".apiVersion", "v1"),
    (".signerName", "example.com/a"),
    (".keyType", "ED25519"),
    (".accessModes[]", "ReadWriteOnce"),
    (".volumeMode", "Filesystem"),
    (".fileKeyRef.volumeName", "files"),
    (".fileKeyRef.key", "A"),
    (".resourceFieldRef.containerName", "app"),
    (".creationTimestamp", "2026-01-01T00:00:00Z"),
    (".deletionTimestamp", "2026-01-01T00:00:00Z"),
    (".managedFields[].time", "2026-01-01T00:00:00Z"),
    (".hostIP", "10.0.0.1"),
    (".capabilities.add[]", "NET_ADMIN"),
    (".capabilities.drop[]", "ALL"),
    (".fsType", "ext4"),
    (".runAsUserName", "User"),
    (".gmsaCredentialSpec", "{}"),
    (".gmsaCredentialSpecName", "a"),
    (".medium", "Memory"),
    (".apiGroup", "example.com"),
    (".monitors[]", "10.0.0.1:6789"),
    (".portals[]", "10.0.0.1"),
    (".targetPortal", "10.0.0.1"),
    (".targetWWNs[]", "50060e801049cfd1"),
    (".workingDir", "/a"),
    (".terminationMessagePath", "/a"),
    (".command[]", "true"),
    (".args[]", "a"),
    (".value", "a"),
    (".driver", "example.com"),
    (".claimName", "a"),
    (".secretName", "a"),
    (".configMap.name", "a"),
    (".secretRef.name", "a"),
    (".volumeID", "a"),
    (".datasetName", "a"),
    (".datasetUUID", "a"),
    (".pdName", "a"),
    (".pdID", "a"),
    (".repository", "a"),
    (".directory", "a"),
    (".endpoints", "a"),
    (".gateway", "a"),
    (".system", "a"),
    (".volumePath", "a"),
    (".shareName", "a"),
    (".diskName", "a"),
    (".reference", "a:1"),
    (".path", "a"),
    (".key", "a"),
    (".name", "a"),
];

/// Numbers by the end of the field's path.
const NUMBERS: [(&str, i64); 4] =
    [(".expirationSeconds", 600), (".maxExpirationSeconds", 3600), (".port", 80), (".containerPort", 80)];

/// Fields that an object needs, by the end of its path, unless one of the others is set.
const NEEDED: [(&str, &str, &[&str]); 30] = [
    ("Probe", r#"{"tcpSocket": {"port": 80}}"#, &["exec", "httpGet", "tcpSocket", "grpc"]),
    (".lifecycle.postStart", r#"{"tcpSocket": {"port": 80}}"#, &["exec", "httpGet", "tcpSocket", "sleep"]),
    (".lifecycle.preStop", r#"{"tcpSocket": {"port": 80}}"#, &["exec", "httpGet", "tcpSocket", "sleep"]),
    (".exec", r#"{"command": ["true"]}"#, &["command"]),
    (".configMapKeyRef", r#"{"name": "a"}"#, &[]),
    (".secretKeyRef", r#"{"name": "a"}"#, &[]),
    (".envFrom[]", r#"{"secretRef": {"name": "a"}}"#, &["configMapRef", "secretRef"]),
    (".configMapRef", r#"{"name": "a"}"#, &[]),
    (".envFrom[].secretRef", r#"{"name": "a"}"#, &[]),
    (".restartPolicyRules[]", r#"{"exitCodes": {"operator": "In", "values": [1]}}"#, &["exitCodes"]),
    (".sources[].secret", r#"{"name": "a"}"#, &[]),
    (".secret", r#"{"secretName": "a"}"#, &[]),
    (".configMap", r#"{"name": "a"}"#, &[]),
    (".downwardAPI.items[]", r#"{"fieldRef": {"fieldPath": "metadata.name"}}"#, &["fieldRef", "resourceFieldRef"]),
    (".items[].resourceFieldRef", r#"{"containerName": "app"}"#, &[]),
    (".clusterTrustBundle", r#"{"name": "a"}"#, &["signerName", "labelSelector"]),
    (".podCertificate", r#"{"keyPath": "a"}"#, &["credentialBundlePath", "certificateChainPath"]),
    (".csi.nodePublishSecretRef", r#"{"name": "a"}"#, &[]),
    (".cinder.secretRef", r#"{"name": "a"}"#, &[]),
    (".storageos.secretRef", r#"{"name": "a"}"#, &[]),
    (".storageos", r#"{"volumeName": "a"}"#, &[]),
    (".scaleIO", r#"{"volumeName": "a"}"#, &[]),
    (".fc", r#"{"wwids": ["a"]}"#, &["targetWWNs"]),
    (".flocker", r#"{"datasetName": "a"}"#, &["datasetUUID"]),
    (
        ".volumeClaimTemplate.spec",
        r#"{"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}"#,
        &[],
    ),
    (".volumeClaimTemplate.spec.resources", r#"{"requests": {"storage": "1Gi"}}"#, &[]),
    (".image", r#"{"reference": "a:1"}"#, &[]),
    (".dataSource", r#"{"kind": "PersistentVolumeClaim"}"#, &[]),
    (".dataSourceRef", r#"{"kind": "PersistentVolumeClaim"}"#, &[]),
    (".matchExpressions[]", r#"{"operator": "Exists"}"#, &["values"]),
];

/// Fields that an object needs beside one of its fields.
const NEEDED_BESIDE: [(&str, &str, &str); 10] = [
    ("", "restartPolicyRules", r#"{"restartPolicy": "Never"}"#),
    (".seccompProfile", "localhostProfile", r#"{"type": "Localhost"}"#),
    (".appArmorProfile", "localhostProfile", r#"{"type": "Localhost"}"#),
    (".fc", "targetWWNs", r#"{"lun": 1}"#),
    (".clusterTrustBundle", "labelSelector", r#"{"signerName": "example.com/a"}"#),
    (".volumeMounts[]", "recursiveReadOnly", r#"{"readOnly": true}"#),
    (".iscsi", "chapAuthSession", r#"{"secretRef": {"name": "a"}}"#),
    (".iscsi", "chapAuthDiscovery", r#"{"secretRef": {"name": "a"}}"#),
    (".matchExpressions[]", "values", r#"{"operator": "In"}"#),
    (".resources", "requests", r#"{"limits": {"cpu": "1"}}"#),
];

/// The key of an entry of a map.
pub(super) fn key(place: &str) -> &'static str {
    match place {
        _ if place.ends_with(".spec.resources.requests") || place.ends_with(".spec.resources.limits") => "storage",
        _ if place.ends_with(".resources.requests") || place.ends_with(".resources.limits") => "cpu",
        _ => "example.com/a",
    }
}

/// A value that most API servers accept in a field.
pub(super) fn sample(schema: &Value, place: &str) -> Value {
    if schema["format"] == "quantity" {
        return json!("1");
    }
    match schema["type"].as_str() {
        Some("string") => {
            let known = SAMPLES.iter().find(|(end, _)| place.ends_with(end));
            // The template's own name.
            let name = if place == ".name" { Some("proxy") } else { None };
            json!(name.or(known.map(|(_, text)| *text)).unwrap_or("a"))
        }
        Some("integer") => json!(NUMBERS.iter().find(|(end, _)| place.ends_with(end)).map_or(1, |(_, number)| *number)),
        Some("boolean") => json!(true),
        Some("array") => json!([sample(&schema["items"], &format!("{place}[]"))]),
        Some("object") if schema.get("additionalProperties").is_some() => {
            json!({key(place): sample(&schema["additionalProperties"], &format!("{place}{{}}"))})
        }
        Some("object") => base(schema, place, None).into(),
        _ => json!(80),
    }
}

/// The fields that an object needs, for one of its fields.
pub(super) fn base(schema: &Value, place: &str, field: Option<&str>) -> Map<String, Value> {
    let mut fields = Map::new();
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        fields.insert(name.to_owned(), sample(&schema["properties"][name], &format!("{place}.{name}")));
    }
    let parse = |text: &str| serde_json::from_str::<Map<String, Value>>(text).expect("the table holds objects");
    if place.is_empty() && schema["properties"].get("imagePullPolicy").is_some() {
        fields.insert("image".to_owned(), json!("proxy:1"));
    }
    if !place.is_empty()
        && let Some((_, needed, others)) = NEEDED.iter().find(|(end, ..)| place.ends_with(end))
        && !field.is_some_and(|field| others.contains(&field))
    {
        let known = |name: &str| schema["properties"].get(name).is_some();
        fields.extend(parse(needed).into_iter().filter(|(name, _)| known(name)));
    }
    let beside =
        NEEDED_BESIDE.iter().filter(|(end, ..)| if end.is_empty() { place.is_empty() } else { place.ends_with(end) });
    for (.., needed) in beside.filter(|(_, name, _)| field == Some(name)) {
        fields.extend(parse(needed));
    }
    fields
}
