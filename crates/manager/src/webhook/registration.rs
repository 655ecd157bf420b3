//! What the API server is told about us: which objects it asks us about, where, and what it does when we do not answer.

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::paths::path;
use crate::names;

/// Seconds the API server waits for a review of a pod: each pod of an unreachable webhook waits this long.
const POD_TIMEOUT: u32 = 3;
/// Seconds the API server waits for a review of a set.
const SET_TIMEOUT: u32 = 5;

/// How the API server reaches us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// By a Service.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// By the base of a URL, for a process outside the cluster.
    Url(String),
}

/// What a registration depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// How we are reached.
    pub endpoint: Endpoint,
    /// Our own namespace, whose pods are never reviewed.
    pub namespace: String,
    /// Whether pods are reviewed at all.
    pub reviews_pods: bool,
    /// The objects that own the registrations: when they go, these go.
    pub owners: Vec<Value>,
}

impl Endpoint {
    /// The names a certificate must have for the API server to believe it.
    pub fn certificate_names(&self) -> Vec<String> {
        match self {
            Self::Service { namespace, name } => vec![format!("{name}.{namespace}.svc")],
            Self::Url(base) => {
                let uri = base.parse::<http::Uri>().ok();
                uri.and_then(|uri| uri.host().map(|host| host.trim_matches(['[', ']']).to_owned()))
                    .into_iter()
                    .collect()
            }
        }
    }

    fn client_config(&self, path: &str, bundle: &str) -> Value {
        let bundle = ByteString(bundle.as_bytes().to_vec());
        match self {
            Self::Service { namespace, name } => {
                json!({"service": {"namespace": namespace, "name": name, "path": path, "port": 443}, "caBundle": bundle})
            }
            Self::Url(base) => json!({"url": format!("{}{path}", base.trim_end_matches('/')), "caBundle": bundle}),
        }
    }
}

impl Wanted {
    /// The registration for pods. Every default of the API server is written out, so that what is stored can be compared.
    /// `key` is that of the authority whose paths are called.
    pub fn mutating(&self, bundle: &str, key: &str) -> Value {
        let (label, required) = names::INJECTION_LABEL;
        let webhook = |name: &str, operator: &str, failure_policy: &str| {
            json!({
                "name": name,
                "clientConfig": self.endpoint.client_config(&path(name, key), bundle),
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"], "scope": "Namespaced"}],
                "failurePolicy": failure_policy,
                "matchPolicy": "Equivalent",
                "namespaceSelector": {"matchExpressions": [
                    {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [names::NEVER_REVIEWED, self.namespace]},
                    {"key": label, "operator": operator, "values": [required]},
                ]},
                "objectSelector": {},
                "matchConditions": [{"name": "not-a-mirror-pod",
                    "expression": "!('kubernetes.io/config.mirror' in object.metadata.?annotations.orValue({}))"}],
                "sideEffects": "NoneOnDryRun",
                "timeoutSeconds": POD_TIMEOUT,
                "admissionReviewVersions": ["v1"],
                "reinvocationPolicy": "IfNeeded",
            })
        };
        let webhooks = if self.reviews_pods {
            vec![webhook(names::POD_WEBHOOK, "NotIn", "Ignore"), webhook(names::REQUIRED_POD_WEBHOOK, "In", "Fail")]
        } else {
            Vec::new()
        };
        self.object("MutatingWebhookConfiguration", &webhooks)
    }

    /// The registration for sets.
    pub fn validating(&self, bundle: &str, key: &str) -> Value {
        let webhook = json!({
            "name": names::SET_WEBHOOK,
            "clientConfig": self.endpoint.client_config(&path(names::SET_WEBHOOK, key), bundle),
            "rules": [{"apiGroups": ["apps.kruise.io"], "apiVersions": ["v1alpha1"], "operations": ["CREATE", "UPDATE"],
                "resources": ["sidecarsets"], "scope": "Cluster"}],
            // A set nobody checked could refuse every pod; and whoever repairs us needs no set for it.
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
            "sideEffects": "None",
            "timeoutSeconds": SET_TIMEOUT,
            "admissionReviewVersions": ["v1"],
        });
        self.object("ValidatingWebhookConfiguration", &[webhook])
    }

    fn object(&self, kind: &str, webhooks: &[Value]) -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": names::REGISTRATION, "ownerReferences": self.owners,
                "labels": {"app.kubernetes.io/name": "pillion", "app.kubernetes.io/managed-by": "pillion-manager"}},
            "webhooks": webhooks,
        })
    }
}

/// Whether a stored registration has what is wanted, and no webhook of ours that is not.
pub fn is_as_wanted(stored: &Value, wanted: &Value) -> bool {
    has(&stored["metadata"], &wanted["metadata"]) && our_webhooks(stored).eq(our_webhooks(wanted))
}

/// Whoever adds one of theirs to our registration may keep it; nobody but them could take it away.
fn our_webhooks(registration: &Value) -> impl Iterator<Item = &Value> {
    let ours = [names::POD_WEBHOOK, names::REQUIRED_POD_WEBHOOK, names::SET_WEBHOOK];
    let webhooks = registration["webhooks"].as_array().into_iter().flatten();
    webhooks.filter(move |webhook| webhook["name"].as_str().is_some_and(|name| ours.contains(&name)))
}

/// Whether an object has all fields of another.
fn has(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Object(stored), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, value)| is_empty(value) || stored.get(key).is_some_and(|stored| has(stored, value))),
        (stored, wanted) => stored == wanted,
    }
}

/// The API server leaves empty lists out.
fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

/// The certificates the API server trusts us by, of all webhooks: what it holds for each of them.
pub fn trusted_bundles(stored: &Value) -> Vec<String> {
    let bundles = our_webhooks(stored).map(|webhook| {
        let bundle = serde_json::from_value::<ByteString>(webhook["clientConfig"]["caBundle"].clone());
        bundle.ok().and_then(|bundle| String::from_utf8(bundle.0).ok()).unwrap_or_default()
    });
    bundles.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> Wanted {
        Wanted {
            endpoint: Endpoint::Service { namespace: "here".to_owned(), name: "hook".to_owned() },
            namespace: "here".to_owned(),
            reviews_pods: true,
            owners: Vec::new(),
        }
    }

    #[test]
    fn the_two_pod_webhooks_share_out_all_namespaces() {
        let registration = wanted().mutating("pem", "key");
        let selectors: Vec<_> = registration["webhooks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|webhook| (webhook["failurePolicy"].clone(), webhook["namespaceSelector"]["matchExpressions"].clone()))
            .collect();
        let never =
            json!({"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "here"]});
        let label =
            |operator: &str| json!({"key": "pillion.dev/injection", "operator": operator, "values": ["required"]});
        assert_eq!(
            selectors,
            [(json!("Ignore"), json!([never, label("NotIn")])), (json!("Fail"), json!([never, label("In")]))]
        );
    }

    #[test]
    fn whoever_is_switched_off_is_asked_about_no_pod() {
        let off = Wanted { reviews_pods: false, ..wanted() };
        assert_eq!(off.mutating("pem", "key")["webhooks"], json!([]));
        assert_eq!(off.validating("pem", "key"), wanted().validating("pem", "key"));
    }

    #[test]
    fn certificates_are_for_the_name_that_is_called() {
        assert_eq!(wanted().endpoint.certificate_names(), ["hook.here.svc"]);
        for (url, name) in [
            ("https://10.0.0.1:9443", vec!["10.0.0.1"]),
            ("https://[fd00::1]:9443/", vec!["fd00::1"]),
            ("https://hook.example", vec!["hook.example"]),
            ("", vec![]),
        ] {
            assert_eq!(Endpoint::Url(url.to_owned()).certificate_names(), name, "{url}");
        }
    }

    #[test]
    fn a_url_is_called_with_the_path() {
        let url = Wanted { endpoint: Endpoint::Url("https://10.0.0.1:9443/".to_owned()), ..wanted() };
        assert_eq!(
            url.validating("x", "key")["webhooks"][0]["clientConfig"],
            json!({"url": format!("https://10.0.0.1:9443{}", path(names::SET_WEBHOOK, "key")), "caBundle": "eA=="})
        );
    }

    #[test]
    fn a_change_of_any_field_is_seen() {
        let owner = json!({"apiVersion": "v1", "kind": "ClusterRole", "name": "r", "uid": "1"});
        let wanted = Wanted { owners: vec![owner], ..wanted() }.mutating("pem", "key");
        let mut stored = wanted.clone();
        stored["metadata"]["resourceVersion"] = "5".into();
        stored["metadata"]["labels"]["added"] = "by another".into();
        assert!(is_as_wanted(&stored, &wanted));
        for pointer in [
            "/metadata/ownerReferences/0/uid",
            "/metadata/labels/app.kubernetes.io~1name",
            "/webhooks/0/clientConfig/caBundle",
            "/webhooks/0/clientConfig/service/path",
            "/webhooks/0/namespaceSelector/matchExpressions/0/values/1",
            "/webhooks/1/failurePolicy",
            "/webhooks/1/timeoutSeconds",
        ] {
            let mut changed = stored.clone();
            *changed.pointer_mut(pointer).unwrap() = "changed".into();
            assert!(!is_as_wanted(&changed, &wanted), "{pointer}");
        }
        let mut another = stored.clone();
        another["webhooks"].as_array_mut().unwrap().push(json!({"name": "theirs"}));
        assert!(is_as_wanted(&another, &wanted));
        another["webhooks"].as_array_mut().unwrap().remove(0);
        assert!(!is_as_wanted(&another, &wanted));
    }

    #[test]
    fn the_trusted_certificates_are_read_back() {
        assert_eq!(trusted_bundles(&wanted().mutating("pem", "key")), ["pem", "pem"]);
        assert_eq!(trusted_bundles(&json!({"webhooks": [{"name": "pods.pillion.dev", "clientConfig": {}}]})), [""]);
    }
}
