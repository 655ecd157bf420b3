//! metrics-server as a process on the host's side, registered as an aggregated API.

use serde_json::{Value, json};

use crate::error::Error;
use crate::keeper::Part;
use crate::pki::{Authority, Identity};
use crate::site::Site;

const PORT: u16 = 4443;
const USER: &str = "metrics-server";

/// The process.
pub(crate) fn part(site: &Site) -> Result<Part, Error> {
    let host = site.slot.host().to_string();
    let serves = [host.clone(), "metrics-server.kube-system.svc".to_owned()];
    site.pki.issue(Authority::Cluster, &Identity { file: USER, user: USER, group: None, serves: &serves })?;
    let kubeconfig = site.kubeconfig(USER)?;
    let kubeconfig = kubeconfig.display();
    let (certificate, key) = (site.pki.certificate(USER), site.pki.key(USER));
    site.part(
        "metrics-server",
        vec![
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            format!("--secure-port={PORT}"),
            format!("--bind-address={host}"),
            format!("--tls-cert-file={}", certificate.display()),
            format!("--tls-private-key-file={}", key.display()),
            "--kubelet-preferred-address-types=InternalIP".to_owned(),
            format!("--kubelet-certificate-authority={}", site.pki.certificate("ca").display()),
            format!("--kubelet-client-certificate={}", certificate.display()),
            format!("--kubelet-client-key={}", key.display()),
            // Simulated nodes serve on KWOK's port.
            "--kubelet-use-node-status-port".to_owned(),
            "--kubelet-request-timeout=5s".to_owned(),
            "--metric-resolution=10s".to_owned(),
        ],
    )
}

/// Its rights, and its registration as `metrics.k8s.io`.
pub(crate) fn objects(site: &Site) -> Vec<Value> {
    let subject = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}]);
    let bound_to =
        |kind: &str, role: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role});
    let ca = site.pki.authority_bundle();
    vec![
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": USER}, "rules": [
            {"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]},
            {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]}]}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": USER},
            "roleRef": bound_to("ClusterRole", USER), "subjects": subject}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": format!("{USER}-auth-delegator")},
            "roleRef": bound_to("ClusterRole", "system:auth-delegator"), "subjects": subject}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": USER, "namespace": "kube-system"},
            "roleRef": bound_to("Role", "extension-apiserver-authentication-reader"), "subjects": subject}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": USER, "namespace": "kube-system"},
            "spec": {"ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": PORT}]}}),
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": USER, "namespace": "kube-system", "labels": {"kubernetes.io/service-name": USER}},
            "endpoints": [{"addresses": [site.slot.host().to_string()], "conditions": {"ready": true}}],
            "ports": [{"name": "https", "port": PORT, "protocol": "TCP"}]}),
        json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": "v1beta1.metrics.k8s.io"},
            "spec": {"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
                     "caBundle": ca, "service": {"name": USER, "namespace": "kube-system"}}}),
    ]
}
