//! Strict validation of container and volume templates.

use pillion_api::{MAX_PROBLEMS, Problem, Reason, ratchet, review, validate_write};
use serde_json::{Value, json};

use crate::sets::good;

fn with_spec(spec: &Value) -> Value {
    let mut object = good("mesh");
    json_patch::merge(&mut object, &json!({"spec": spec}));
    object
}

fn container(fields: &Value) -> Value {
    let mut container = json!({"name": "proxy", "image": "proxy:1"});
    json_patch::merge(&mut container, fields);
    container
}

/// The errors of a `SidecarSet`, each as `path: message: help`.
fn errors(spec: &Value) -> Vec<String> {
    let validation = validate_write(&with_spec(spec));
    validation.errors().map(|it| format!("{}: {}: {}", it.path, it.message, it.help)).collect()
}

fn of_container(fields: &Value) -> Vec<String> {
    errors(&json!({"containers": [container(fields)]}))
}

fn of_init(fields: &Value) -> Vec<String> {
    errors(&json!({"containers": null, "initContainers": [container(fields)]}))
}

fn of_volume(fields: &Value) -> Vec<String> {
    let mut volume = json!({"name": "data"});
    json_patch::merge(&mut volume, fields);
    let mount = json!([{"name": "data", "mountPath": "/data"}]);
    errors(&json!({"containers": [container(&json!({"volumeMounts": mount}))], "volumes": [volume]}))
}

/// Exactly one error, whose text starts with the first part and contains the second.
fn assert_one(found: &[String], start: &str, part: &str, case: &Value) {
    assert!(found.len() == 1 && found[0].starts_with(start) && found[0].contains(part), "{case}: {found:#?}");
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table with a line for each rule")]
fn containers_that_the_api_server_rejects_are_errors() {
    let key_ref = |name: &str, key: &str| json!({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": name, "key": key}}}]});
    let field_ref = |path: &str| json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": path}}}]});
    let divisor = |resource: &str, divisor: &str| json!({"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": resource, "divisor": divisor}}}]});
    let probe = |probe: Value| json!({"livenessProbe": probe});
    let mount = |mount: Value| {
        let mut whole = json!({"name": "v", "mountPath": "/v"});
        json_patch::merge(&mut whole, &mount);
        json!({"volumeMounts": [whole]})
    };
    let security = |context: Value| json!({"securityContext": context});
    for (fields, start, part) in [
        (json!({"image": " a"}), "image", "remove the spaces"),
        (json!({"imagePullPolicy": "Foo"}), "imagePullPolicy", "use one of Always, IfNotPresent, Never"),
        (json!({"imagePullPolicy": 1}), "imagePullPolicy", "must be of type string"),
        (json!({"terminationMessagePolicy": "Log"}), "terminationMessagePolicy", "FallbackToLogsOnError"),
        (json!({"args": ["a", 1]}), "args[1]", "must be of type string"),
        (json!({"livenesProbe": {}}), "livenesProbe", "did you mean livenessProbe?"),
        (json!({"shareVolumePolicyy": {}}), "shareVolumePolicyy", "did you mean shareVolumePolicy?"),
        (json!({"env": [{"name": "A=B"}]}), "env[0].name", "\"A=B\" is invalid: use printable"),
        (json!({"env": [{"value": "a"}]}), "env[0].name", "Required value"),
        (json!({"env": [{"name": "A", "valueFrom": {}}]}), "env[0].valueFrom", "no source"),
        (
            json!({"env": [{"name": "A", "value": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}),
            "env[0].valueFrom",
            "both set",
        ),
        (key_ref("A", "a"), "env[0].valueFrom.secretKeyRef.name", "\"A\" is invalid"),
        (key_ref("", "a"), "env[0].valueFrom.secretKeyRef.name", "Required value"),
        (key_ref("a", "a/b"), "env[0].valueFrom.secretKeyRef.key", "\"a/b\" is invalid"),
        (field_ref("spec.nodename"), "env[0].valueFrom.fieldRef.fieldPath", "spec.nodeName"),
        (field_ref("metadata.labels"), "env[0].valueFrom.fieldRef.fieldPath", "metadata.labels['KEY']"),
        (field_ref("metadata.labels['a b']"), "env[0].valueFrom.fieldRef.fieldPath", "Unsupported"),
        (divisor("limits.gpu", "1"), "env[0].valueFrom.resourceFieldRef.resource", "limits.cpu"),
        (divisor("limits.cpu", "1Mi"), "env[0].valueFrom.resourceFieldRef.divisor", "use 1 or 1m"),
        (divisor("limits.memory", "2Mi"), "env[0].valueFrom.resourceFieldRef.divisor", "such as 1k"),
        (json!({"envFrom": [{"prefix": "a=", "secretRef": {"name": "a-"}}]}), "envFrom[0].prefix", "is invalid"),
        (json!({"envFrom": [{"configMapRef": {}}]}), "envFrom[0].configMapRef.name", "Required value"),
        (json!({"ports": [{"containerPort": 99999}]}), "ports[0].containerPort", "99999 is not between 1 and 65535"),
        (json!({"ports": [{"containerPort": 0}]}), "ports[0].containerPort", "from 1 to 65535"),
        (json!({"ports": [{"containerPort": 1, "hostPort": -1}]}), "ports[0].hostPort", "-1 is not"),
        (json!({"ports": [{"containerPort": 1, "protocol": "tcp"}]}), "ports[0].protocol", "use one of TCP, UDP, SCTP"),
        (json!({"ports": [{"containerPort": 1, "name": "HTTP"}]}), "ports[0].name", "lower-case"),
        (
            json!({"ports": [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]}),
            "ports[1].name",
            "Duplicate",
        ),
        (
            json!({"ports": [{"containerPort": 1, "hostPort": 5}, {"containerPort": 2, "hostPort": 5}]}),
            "ports[1].hostPort",
            "used twice",
        ),
        (probe(json!({"periodSeconds": 1})), "livenessProbe", "there is no handler: set one of exec, httpGet"),
        (probe(json!({"exec": {}})), "livenessProbe.exec.command", "Required value"),
        (
            probe(json!({"tcpSocket": {"port": 1}, "grpc": {"port": 1}})),
            "livenessProbe.grpc",
            "2 handlers are set (tcpSocket, grpc)",
        ),
        (
            probe(json!({"tcpSocket": {"port": "HTTP"}})),
            "livenessProbe.tcpSocket.port",
            "neither the number nor the name",
        ),
        (probe(json!({"tcpSocket": {"port": 70000}})), "livenessProbe.tcpSocket.port", "70000"),
        (probe(json!({"tcpSocket": {}})), "livenessProbe.tcpSocket.port", "Required value"),
        (probe(json!({"httpGet": {"port": 1, "scheme": "FTP"}})), "livenessProbe.httpGet.scheme", "HTTP, HTTPS"),
        (
            probe(json!({"httpGet": {"port": 1, "httpHeaders": [{"name": "a b", "value": ""}]}})),
            "livenessProbe.httpGet.httpHeaders[0].name",
            "is invalid",
        ),
        (probe(json!({"grpc": {"port": 1}, "successThreshold": 2})), "livenessProbe.successThreshold", "2 is not 1"),
        (probe(json!({"grpc": {"port": 1}, "timeoutSeconds": -1})), "livenessProbe.timeoutSeconds", "-1 is negative"),
        (
            probe(json!({"grpc": {"port": 1}, "terminationGracePeriodSeconds": 0})),
            "livenessProbe.terminationGracePeriodSeconds",
            "above 0",
        ),
        (
            json!({"readinessProbe": {"grpc": {"port": 1}, "terminationGracePeriodSeconds": 1}}),
            "readinessProbe.terminationGracePeriodSeconds",
            "remove it",
        ),
        (json!({"lifecycle": {"preStop": {}}}), "lifecycle.preStop", "set one of exec, httpGet, tcpSocket, sleep"),
        (json!({"lifecycle": {"preStop": {"sleep": {"seconds": -1}}}}), "lifecycle.preStop.sleep.seconds", "negative"),
        (json!({"lifecycle": {"stopSignal": "TERM"}}), "lifecycle.stopSignal", "such as SIGTERM"),
        (
            json!({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}),
            "resources.requests[cpu]",
            "the cpu request 2 is above the limit 1",
        ),
        (
            json!({"resources": {"requests": {"cores": "2"}}}),
            "resources.requests[cores]",
            "is not a resource of containers",
        ),
        (json!({"resources": {"requests": {"cpu": "1 GB"}}}), "resources.requests[cpu]", "is no quantity"),
        (json!({"resources": {"limits": {"cpu": "-1"}}}), "resources.limits[cpu]", "negative"),
        (json!({"resources": {"limits": {"a.io/gpu": "500m"}}}), "resources.limits[a.io/gpu]", "whole number"),
        (json!({"resources": {"requests": {"a.io/gpu": 1}}}), "resources.requests[a.io/gpu]", "has no limit"),
        (
            json!({"resources": {"limits": {"hugepages-2Mi": "3Mi", "cpu": 1}}}),
            "resources.limits[hugepages-2Mi]",
            "multiple of 2Mi",
        ),
        (json!({"resources": {"limits": {"hugepages-2Mi": "2Mi"}}}), "resources", "without cpu or memory"),
        (json!({"resources": {"claims": [{"name": "a"}, {"name": "a"}]}}), "resources.claims[1]", "Duplicate"),
        (
            json!({"resources": {"claims": [{"name": "a", "request": "r"}, {"name": "a"}]}}),
            "resources.claims[1]",
            "Duplicate",
        ),
        (
            json!({"resizePolicy": [{"resourceName": "gpu", "restartPolicy": "NotRequired"}]}),
            "resizePolicy[0].resourceName",
            "cpu, memory",
        ),
        (json!({"restartPolicy": "Maybe"}), "restartPolicy", "Always, Never, OnFailure"),
        (
            json!({"restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In"}}]}),
            "restartPolicy",
            "without a restartPolicy",
        ),
        (
            json!({"restartPolicy": "Never", "restartPolicyRules": [{"action": "Restart"}]}),
            "restartPolicyRules[0].exitCodes",
            "Required value",
        ),
        (mount(json!({"mountPath": null})), "volumeMounts[0].mountPath", "Required value"),
        (mount(json!({"subPath": "../a"})), "volumeMounts[0].subPath", "without .."),
        (mount(json!({"subPath": "a", "subPathExpr": "b"})), "volumeMounts[0].subPathExpr", "both set"),
        (mount(json!({"mountPropagation": "Bidirectional"})), "volumeMounts[0].mountPropagation", "only privileged"),
        (mount(json!({"mountPropagation": "both"})), "volumeMounts[0].mountPropagation", "HostToContainer"),
        (mount(json!({"recursiveReadOnly": "Enabled"})), "volumeMounts[0].recursiveReadOnly", "without readOnly"),
        (
            json!({"volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "w", "mountPath": "/a"}]}),
            "volumeMounts[1].mountPath",
            "Duplicate",
        ),
        (
            json!({"volumeMounts": [{"name": "v", "mountPath": "/a"}], "volumeDevices": [{"name": "w", "devicePath": "/a"}]}),
            "volumeMounts[0].mountPath",
            "path of a device",
        ),
        (
            json!({"volumeDevices": [{"name": "v", "devicePath": "/a"}, {"name": "v", "devicePath": "/b"}]}),
            "volumeDevices[1].name",
            "Duplicate",
        ),
        (security(json!({"runAsUser": -1})), "securityContext.runAsUser", "-1"),
        (security(json!({"procMount": "Masked"})), "securityContext.procMount", "Default, Unmasked"),
        (
            security(json!({"privileged": true, "allowPrivilegeEscalation": false})),
            "securityContext.allowPrivilegeEscalation",
            "privileged",
        ),
        (
            security(json!({"capabilities": {"add": ["CAP_SYS_ADMIN"]}, "allowPrivilegeEscalation": false})),
            "securityContext.allowPrivilegeEscalation",
            "CAP_SYS_ADMIN",
        ),
        (
            security(json!({"seccompProfile": {"type": "Localhost"}})),
            "securityContext.seccompProfile.localhostProfile",
            "Required value",
        ),
        (
            security(json!({"seccompProfile": {"type": "Unconfined", "localhostProfile": "a"}})),
            "securityContext.seccompProfile.localhostProfile",
            "type Unconfined",
        ),
        (
            security(json!({"appArmorProfile": {"type": "Localhost", "localhostProfile": " a"}})),
            "securityContext.appArmorProfile.localhostProfile",
            "is invalid",
        ),
        (
            security(json!({"windowsOptions": {"runAsUserName": "a:b"}})),
            "securityContext.windowsOptions.runAsUserName",
            "Windows user",
        ),
        (
            security(json!({"windowsOptions": {"gmsaCredentialSpec": ""}})),
            "securityContext.windowsOptions.gmsaCredentialSpec",
            "0 bytes",
        ),
    ] {
        assert_one(&of_container(&fields), &format!("spec.containers[0].{start}: "), part, &fields);
    }
}

#[test]
fn init_containers_have_rules_of_their_own() {
    let probe = json!({"tcpSocket": {"port": 80}});
    for (fields, start, part) in [
        (json!({"livenessProbe": probe}), "livenessProbe", "without restartPolicy: Always"),
        (json!({"readinessProbe": probe}), "readinessProbe", "set restartPolicy: Always"),
        (json!({"startupProbe": probe}), "startupProbe", "has no startupProbe"),
        (json!({"lifecycle": {}}), "lifecycle", "has no lifecycle"),
        (
            json!({"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}),
            "resizePolicy[0].restartPolicy",
            "NotRequired",
        ),
    ] {
        assert_one(&of_init(&fields), &format!("spec.initContainers[0].{start}: "), part, &fields);
        let mut native = fields.clone();
        native["restartPolicy"] = "Always".into();
        assert_eq!(of_init(&native), Vec::<String>::new(), "{native}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table with a line for each rule")]
fn volumes_that_the_api_server_rejects_are_errors() {
    let token = |fields: Value| json!({"projected": {"sources": [{"serviceAccountToken": fields}]}});
    let certificate = |fields: Value| {
        let mut whole = json!({"signerName": "example.com/a", "keyType": "ED25519", "keyPath": "k"});
        json_patch::merge(&mut whole, &fields);
        json!({"projected": {"sources": [{"podCertificate": whole}]}})
    };
    let claim = |fields: Value| {
        let mut spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        json_patch::merge(&mut spec, &fields);
        json!({"ephemeral": {"volumeClaimTemplate": {"spec": spec}}})
    };
    let item = |item: Value| json!({"secret": {"secretName": "a", "items": [item]}});
    let downward = |file: Value| json!({"downwardAPI": {"items": [file]}});
    for (fields, start, part) in [
        (
            json!({"emptyDir": {}, "hostPath": {"path": "/a"}}),
            "hostPath",
            "2 volume sources are set (emptyDir, hostPath)",
        ),
        (json!({"emptyDir": {"sizeLimit": "-1"}}), "emptyDir.sizeLimit", "negative"),
        (json!({"emptyDirr": {}}), "emptyDirr", "did you mean emptyDir?"),
        (json!({"hostPath": {}}), "hostPath.path", "Required value"),
        (json!({"hostPath": {"path": "/a/../b"}}), "hostPath.path", "without .."),
        (json!({"hostPath": {"path": "/a", "type": "Folder"}}), "hostPath.type", "DirectoryOrCreate"),
        (json!({"gitRepo": {"repository": "a", "directory": "/a"}}), "gitRepo.directory", "relative"),
        (json!({"secret": {}}), "secret.secretName", "Required value"),
        (json!({"configMap": {"defaultMode": 1000}}), "configMap.name", "Required value"),
        (item(json!({"key": "a", "path": "../b"})), "secret.items[0].path", "relative"),
        (item(json!({"key": "a", "path": "b", "mode": 512})), "secret.items[0].mode", "511"),
        (item(json!({"path": "b"})), "secret.items[0].key", "Required value"),
        (downward(json!({"path": "a"})), "downwardAPI.items[0]", "fieldRef or resourceFieldRef"),
        (
            downward(json!({"path": "a", "fieldRef": {"fieldPath": "spec.nodeName"}})),
            "downwardAPI.items[0].fieldRef.fieldPath",
            "metadata.labels",
        ),
        (
            downward(json!({"path": "a", "resourceFieldRef": {"resource": "limits.cpu"}})),
            "downwardAPI.items[0].resourceFieldRef.containerName",
            "Required",
        ),
        (json!({"csi": {"driver": "a_b"}}), "csi.driver", "is invalid"),
        (
            json!({"csi": {"driver": "a", "nodePublishSecretRef": {}}}),
            "csi.nodePublishSecretRef.name",
            "Required value",
        ),
        (json!({"image": {"pullPolicy": "Always"}}), "image.reference", "Required value"),
        (json!({"nfs": {"server": "a", "path": "a"}}), "nfs.path", "start the path with /"),
        (json!({"iscsi": {"targetPortal": "a", "iqn": "a", "lun": 0}}), "iscsi.iqn", "starts with iqn"),
        (json!({"iscsi": {"targetPortal": "a", "iqn": "iqn.2001-04.com.example:a", "lun": 256}}), "iscsi.lun", "256"),
        (
            json!({"iscsi": {"targetPortal": "a", "iqn": "iqn.2001-04.com.example:a", "chapAuthSession": true}}),
            "iscsi.secretRef",
            "CHAP",
        ),
        (json!({"fc": {}}), "fc.targetWWNs", "exactly one"),
        (json!({"fc": {"targetWWNs": ["a"]}}), "fc.lun", "Required value"),
        (json!({"flocker": {}}), "flocker", "exactly one"),
        (
            json!({"flexVolume": {"driver": "a", "options": {"k8s.io/a": "b"}}}),
            "flexVolume.options[k8s.io/a]",
            "reserved",
        ),
        (json!({"quobyte": {"registry": "a", "volume": "b"}}), "quobyte.registry", "HOST:PORT"),
        (json!({"azureDisk": {"diskName": "a", "diskURI": "b"}}), "azureDisk.diskURI", "https://"),
        (json!({"azureDisk": {"diskName": "a", "diskURI": "https://b", "kind": "Big"}}), "azureDisk.kind", "Shared"),
        (json!({"storageos": {"volumeName": "A"}}), "storageos.volumeName", "is invalid"),
        (json!({"scaleIO": {"gateway": "a", "system": "b"}}), "scaleIO.volumeName", "Required value"),
        (json!({"cinder": {"volumeID": "a", "secretRef": {}}}), "cinder.secretRef.name", "Required value"),
        (json!({"gcePersistentDisk": {"pdName": "a", "partition": 256}}), "gcePersistentDisk.partition", "255"),
        (json!({"persistentVolumeClaim": {}}), "persistentVolumeClaim.claimName", "Required value"),
        (json!({"ephemeral": {}}), "ephemeral.volumeClaimTemplate", "Required value"),
        (
            claim(json!({"accessModes": ["ReadWriteOncePod", "ReadOnlyMany"]})),
            "ephemeral.volumeClaimTemplate.spec.accessModes",
            "together",
        ),
        (
            claim(json!({"resources": null})),
            "ephemeral.volumeClaimTemplate.spec.resources.requests[storage]",
            "Required value",
        ),
        (claim(json!({"volumeMode": "File"})), "ephemeral.volumeClaimTemplate.spec.volumeMode", "Filesystem"),
        (
            claim(json!({"dataSource": {"kind": "A", "name": "b"}})),
            "ephemeral.volumeClaimTemplate.spec.dataSource.kind",
            "apiGroup",
        ),
        (
            claim(json!({"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}})),
            "ephemeral.volumeClaimTemplate.spec.selector.matchExpressions[0].values",
            "at least one",
        ),
        (
            token(json!({"path": "a", "expirationSeconds": 60})),
            "projected.sources[0].serviceAccountToken.expirationSeconds",
            "600",
        ),
        (token(json!({"path": "/a"})), "projected.sources[0].serviceAccountToken.path", "relative"),
        (certificate(json!({"keyType": "RSA1"})), "projected.sources[0].podCertificate.keyType", "ED25519"),
        (certificate(json!({"keyPath": null})), "projected.sources[0].podCertificate", "no file"),
        (certificate(json!({"signerName": "a"})), "projected.sources[0].podCertificate.signerName", "example.com"),
        (
            json!({"projected": {"sources": [{"secret": {"name": "a"}, "configMap": {"name": "a"}}]}}),
            "projected.sources[0].configMap",
            "2 sources",
        ),
        (
            json!({"projected": {"sources": [{"clusterTrustBundle": {"path": "a"}}]}}),
            "projected.sources[0].clusterTrustBundle",
            "name or signerName",
        ),
        (
            json!({"projected": {"sources": [{"secret": {"name": "a", "items": [{"key": "a", "path": "x"}]}}, {"configMap": {"name": "a", "items": [{"key": "a", "path": "x"}]}}]}}),
            "projected.sources[1].configMap.items[0].path",
            "two sources write the file x",
        ),
    ] {
        // One case has a second mistake, so that errors are shown in order.
        let found: Vec<String> = of_volume(&fields).into_iter().take(1).collect();
        assert_one(&found, &format!("spec.volumes[0].{start}: "), part, &fields);
    }
}

#[test]
fn metadata_of_a_claim_has_annotations_and_labels_alone_and_a_zero_value_is_absent() {
    let claim = |metadata: Value| {
        let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        json!({"ephemeral": {"volumeClaimTemplate": {"metadata": metadata, "spec": spec}}})
    };
    for absent in [json!({"generation": 0}), json!({"name": ""}), json!({"creationTimestamp": null})] {
        assert_eq!(of_volume(&claim(absent)), Vec::<String>::new());
    }
    for field in [json!({"generation": 1}), json!({"name": "a"}), json!({"deletionGracePeriodSeconds": 0})] {
        let found = of_volume(&claim(field.clone()));
        let start = "spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.";
        assert_one(&found, start, "cannot be set", &field);
    }
}

#[test]
fn devices_and_files_of_variables_need_fitting_volumes_of_the_set() {
    let volumes = json!([{"name": "files", "hostPath": {"path": "/a"}}]);
    let device = json!({"volumeDevices": [{"name": "files", "devicePath": "/a"}]});
    let variable = json!({"volumeMounts": [{"name": "files", "mountPath": "/a"}], "env": [{"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "files", "path": "a", "key": "A"}}}]});
    for (fields, path) in [(device, "volumeDevices[0].name"), (variable, "env[0].valueFrom.fileKeyRef.volumeName")] {
        let found = errors(&json!({"containers": [container(&fields)], "volumes": volumes}));
        assert_one(&found, &format!("spec.containers[0].{path}: "), "volume files is no", &fields);
        // A volume of the pod may be anything.
        assert_eq!(of_container(&fields), Vec::<String>::new());
    }
}

#[test]
fn templates_that_the_api_server_accepts_are_accepted() {
    for fields in [
        json!({"ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "UDP"}], "env": [{"name": "A"}, {"name": "A"}]}),
        json!({"env": [{"name": "1 odd name", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['A.io/b']"}}}]}),
        json!({"livenessProbe": {"httpGet": {"port": "http", "httpHeaders": [{"name": "a"}]}}, "lifecycle": {"preStop": {"sleep": {}}}}),
        json!({"resources": {"limits": {"a.io/gpu": 1, "hugepages-2Mi": "4Mi", "cpu": 0.5}, "requests": {"memory": 1e6}}}),
        json!({"restartPolicy": "OnFailure", "image": null}),
        json!({"securityContext": null, "volumeMounts": [], "stdin": true}),
    ] {
        let mut fields = fields;
        fields["image"] = "proxy:1".into();
        assert_eq!(of_container(&fields), Vec::<String>::new(), "{fields}");
    }
    for fields in [json!({}), json!({"emptyDir": {"sizeLimit": "1Gi"}}), json!({"projected": {"sources": [{}]}})] {
        assert_eq!(of_volume(&fields), Vec::<String>::new(), "{fields}");
    }
}

#[test]
fn a_field_of_a_newer_kubernetes_is_a_warning() {
    let object = with_spec(&json!({"containers": [container(&json!({"somethingNew": {"a": 1}}))]}));
    let problems = validate_write(&object).problems;
    let [problem] = problems.as_slice() else { unreachable!("{problems:?}") };
    assert_eq!((problem.is_error(), problem.reason), (false, Reason::UnknownField));
    assert_eq!(problem.path.to_string(), "spec.containers[0].somethingNew");
}

#[test]
fn a_stored_set_with_invalid_templates_keeps_its_meaning() {
    let object = with_spec(&json!({"containers": [container(&json!({"imagePullPolicy": "Foo"}))]}));
    assert!(review(&object).meaning.is_some() && review(&object).problems.is_empty());
    let validation = validate_write(&object);
    assert_eq!(validation.meaning, review(&object).meaning);
    assert_eq!(validation.errors().count(), 1);
}

#[test]
fn at_most_a_hundred_problems_are_reported_and_errors_first() {
    let unknown: serde_json::Map<String, Value> = (0..150).map(|at| (format!("unknown{at}"), json!(1))).collect();
    let mut broken = container(&Value::Object(unknown));
    broken["env"] = (0..70).map(|_| json!({"name": "A=B"})).collect();
    let validation = validate_write(&with_spec(&json!({"containers": [broken]})));
    assert_eq!(validation.problems.len(), 220);
    let capped = validation.capped();
    assert_eq!((capped.problems.len(), MAX_PROBLEMS), (100, 100));
    assert!(capped.problems[..70].iter().all(Problem::is_error) && !capped.problems[70].is_error());
}

#[test]
fn an_update_is_not_rejected_for_what_it_does_not_touch() {
    let set = |policy: &str, paused: bool| {
        let fields = json!({"imagePullPolicy": policy, "resources": {"requests": {"cpu": 2}, "limits": {"cpu": 1}}});
        with_spec(&json!({"containers": [container(&fields)], "injectStrategy": {"paused": paused}}))
    };
    let errors = |new: &Value, old: &Value| {
        let problems = ratchet((new, validate_write(new).problems), (old, &validate_write(old).problems));
        problems.iter().filter(|problem| problem.is_error()).map(|it| it.path.to_string()).collect::<Vec<_>>()
    };
    let old = set("Foo", false);
    assert_eq!(errors(&set("Foo", true), &old), Vec::<String>::new());
    assert_eq!(errors(&set("Bar", true), &old), ["spec.containers[0].imagePullPolicy"]);
    // The value is the same, but the limit next to it made it invalid in another way.
    let mut lower = set("Foo", false);
    lower["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "500m".into();
    assert_eq!(errors(&lower, &old), ["spec.containers[0].resources.requests[cpu]"]);
    // A place that was valid before is not excused by another one.
    let mut second = set("Foo", false);
    second["spec"]["containers"] =
        json!([second["spec"]["containers"][0], container(&json!({"name": "b", "imagePullPolicy": "Foo"}))]);
    assert_eq!(errors(&second, &old), ["spec.containers[1].imagePullPolicy"]);
}
