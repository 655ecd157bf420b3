//! kube-apiserver: RBAC, service accounts, aggregation and the audit log on, as in a real cluster.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::error::Error;
use crate::keeper::Part;
use crate::network::{KUBERNETES_SERVICE, SERVICE_NETWORK};
use crate::parts::etcd;
use crate::pki::{Authority, Identity};
use crate::site::{API_PORT, Site};

/// Port of the second API server.
pub(crate) const SECOND_API_PORT: u16 = 6444;
/// Name of the first API server's part and log.
pub(crate) const FIRST: &str = "kube-apiserver";
/// Name of the second API server's part and log.
pub(crate) const SECOND: &str = "kube-apiserver-2";

/// Every write, and every read of pods, that the API server of this name took.
pub(crate) fn audit_log(site: &Site, name: &str) -> PathBuf {
    site.folder.join(format!("{name}.audit.jsonl"))
}

/// Makes the certificates that the API server serves and calls with.
pub(crate) fn identities(site: &Site) -> Result<(), Error> {
    let names = [
        site.slot.host().to_string(),
        site.slot.loopback().to_string(),
        KUBERNETES_SERVICE.to_owned(),
        "localhost".to_owned(),
        "kubernetes.default.svc".to_owned(),
    ];
    let server = Identity { file: "kube-apiserver", user: "kube-apiserver", group: None, serves: &names };
    site.pki.issue(Authority::Cluster, &server)?;
    let kubelet_client = Identity { file: "kubelet-client", user: KUBELET_CLIENT, group: None, serves: &[] };
    site.pki.issue(Authority::Cluster, &kubelet_client)?;
    let webhook_client = Identity { file: "webhook-client", user: WEBHOOK_CLIENT, group: None, serves: &[] };
    site.pki.issue(Authority::Cluster, &webhook_client)?;
    let front_proxy = Identity { file: "front-proxy", user: "front-proxy-client", group: None, serves: &[] };
    site.pki.issue(Authority::FrontProxy, &front_proxy)
}

/// User as which the API server asks kubelets for logs and exec; the bed binds it to `system:kubelet-api-admin`.
pub(crate) const KUBELET_CLIENT: &str = "apiserver-kubelet-client";

/// User of the certificate that the API server shows to webhooks that ask for one.
pub const WEBHOOK_CLIENT: &str = "apiserver-webhook-client";

/// The configuration of admission: every webhook may ask for a certificate of the API server.
fn admission(site: &Site) -> Result<PathBuf, Error> {
    let (certificate, key) = (site.pki.certificate("webhook-client"), site.pki.key("webhook-client"));
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config",
        "users": [{"name": "*", "user": {"client-certificate": certificate, "client-key": key}}]});
    let kubeconfig = site.write_json("webhooks.kubeconfig", &kubeconfig)?;
    let plugin = |name: &str| {
        json!({"name": name, "configuration": {"apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": kubeconfig}})
    };
    let plugins = ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"].map(plugin);
    let admission =
        json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins});
    site.write_json("admission.json", &admission)
}

/// The first API server, or the second one on the same etcd.
pub(crate) fn part(site: &Site, second: bool) -> Result<Part, Error> {
    let host = site.slot.host();
    let (certificate, key) = (|name| site.pki.certificate(name), |name| site.pki.key(name));
    let policy = site.write_json("audit-policy.json", &audit_policy())?;
    let (name, port) = if second { (SECOND, SECOND_API_PORT) } else { (FIRST, API_PORT) };
    let flags = [
        ("etcd-servers", etcd::endpoint(site)),
        ("bind-address", host.to_string()),
        ("advertise-address", host.to_string()),
        ("secure-port", port.to_string()),
        ("tls-cert-file", certificate("kube-apiserver").display().to_string()),
        ("tls-private-key-file", key("kube-apiserver").display().to_string()),
        ("client-ca-file", certificate("ca").display().to_string()),
        ("service-account-issuer", "https://kubernetes.default.svc".to_owned()),
        ("service-account-key-file", site.pki.public_key("service-accounts").display().to_string()),
        ("service-account-signing-key-file", key("service-accounts").display().to_string()),
        ("service-cluster-ip-range", SERVICE_NETWORK.to_owned()),
        ("authorization-mode", "Node,RBAC".to_owned()),
        ("enable-admission-plugins", "NodeRestriction".to_owned()),
        ("admission-control-config-file", admission(site)?.display().to_string()),
        // As installers set it. Without it a privileged container is invalid, and no Pod Security profile is ever asked.
        ("allow-privileged", "true".to_owned()),
        ("kubelet-client-certificate", certificate("kubelet-client").display().to_string()),
        ("kubelet-client-key", key("kubelet-client").display().to_string()),
        ("kubelet-certificate-authority", certificate("ca").display().to_string()),
        ("kubelet-preferred-address-types", "InternalIP".to_owned()),
        ("requestheader-client-ca-file", certificate("front-proxy-ca").display().to_string()),
        ("requestheader-allowed-names", "front-proxy-client".to_owned()),
        ("requestheader-username-headers", "X-Remote-User".to_owned()),
        ("requestheader-group-headers", "X-Remote-Group".to_owned()),
        ("requestheader-extra-headers-prefix", "X-Remote-Extra-".to_owned()),
        ("proxy-client-cert-file", certificate("front-proxy").display().to_string()),
        ("proxy-client-key-file", key("front-proxy").display().to_string()),
        // Services are resolved to their EndpointSlices, so webhooks and aggregated APIs need no kube-proxy.
        ("enable-aggregator-routing", "true".to_owned()),
        ("audit-policy-file", policy.display().to_string()),
        ("audit-log-path", audit_log(site, name).display().to_string()),
        ("audit-log-mode", "blocking".to_owned()),
        ("profiling", "false".to_owned()),
    ];
    let mut arguments: Vec<String> = flags.iter().map(|(flag, value)| format!("--{flag}={value}")).collect();
    if second {
        // Else it would put its own port into the Endpoints of `kubernetes`.
        arguments.push("--endpoint-reconciler-type=none".to_owned());
    }
    let part = site.part("kube-apiserver", arguments)?;
    Ok(Part { name: name.to_owned(), log: site.logs.join(format!("{name}.log")), ..part })
}

/// Whole bodies of writes to pods and to what they are counted by, since later checks replay them; other writes, and reads
/// of pods, by name.
fn audit_policy() -> Value {
    json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "None", "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}]},
            {"level": "Metadata", "verbs": ["get", "list"], "resources": [{"group": "", "resources": ["pods"]}]},
            {"level": "None", "verbs": ["get", "list", "watch"]},
            {"level": "RequestResponse", "resources": [{"group": "", "resources": [
                "pods", "pods/status", "pods/resize", "pods/eviction", "pods/binding"]},
                {"group": "pillion.dev", "resources": ["injectionledgers"]}]},
            {"level": "Metadata"},
        ],
    })
}
