//! Which labels, annotations and conditions of a pod an agent may set, and which it never may, whatever a configuration
//! says: those that other controllers act on, that choose pods, or that the policies on agents read.

/// What is wrong with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadKey {
    pub(crate) message: String,
    pub(crate) help: &'static str,
}

/// Written by Kubernetes, so that controllers find their pods.
const IDENTITY_LABELS: [&str; 7] = [
    "pod-template-hash",
    "pod-template-generation",
    "controller-revision-hash",
    "controller-uid",
    "job-name",
    "app",
    "k8s-app",
];
/// What people set on pods of these domains while they run, and nobody takes an agent's word for more than it is.
const ALLOWED_ANNOTATIONS: [&str; 2] =
    ["controller.kubernetes.io/pod-deletion-cost", "cluster-autoscaler.kubernetes.io/safe-to-evict"];
/// Keys of these domains, and of those below them, are read by others as orders.
const DOMAINS: [(&str, &str); 4] = [
    ("pillion.dev", "Pillion writes it itself"),
    ("kruise.io", "OpenKruise acts on it"),
    ("kubernetes.io", "Kubernetes acts on it"),
    ("k8s.io", "Kubernetes acts on it"),
];
/// The kubelet and the scheduler write these.
const BUILT_IN_CONDITIONS: [&str; 9] = [
    "Ready",
    "Initialized",
    "PodScheduled",
    "ContainersReady",
    "DisruptionTarget",
    "PodReadyToStartContainers",
    "PodResizePending",
    "PodResizeInProgress",
    "AllContainersRestarting",
];
const OWN_KEY: &str = "choose a key of your own, such as example.com/state";

/// Whether an agent may set a label of its pod.
pub(crate) fn label(key: &str) -> Result<(), BadKey> {
    qualified_name(key)?;
    if IDENTITY_LABELS.contains(&key) {
        let message = format!("an agent must not set the label {key}: controllers and services choose pods by it");
        return Err(BadKey { message, help: OWN_KEY });
    }
    foreign("label", key)
}

/// Whether an agent may set an annotation of its pod.
pub(crate) fn annotation(key: &str) -> Result<(), BadKey> {
    qualified_name(key)?;
    if ALLOWED_ANNOTATIONS.contains(&key) { Ok(()) } else { foreign("annotation", key) }
}

/// Whether an agent may set a condition of its pod.
pub(crate) fn condition(kind: &str) -> Result<(), BadKey> {
    qualified_name(kind)?;
    if BUILT_IN_CONDITIONS.contains(&kind) {
        let message = format!("an agent must not set the condition {kind}: Kubernetes does");
        return Err(BadKey { message, help: "choose a type of your own, such as example.com/Idle" });
    }
    // Game servers read conditions of their own domain: that is what these are for.
    if kind.starts_with("game.kruise.io/") { Ok(()) } else { foreign("condition", kind) }
}

/// Whether a text can be the value of a label.
pub(crate) fn label_value(value: &str) -> bool {
    value.is_empty() || is_name(value)
}

fn foreign(what: &str, key: &str) -> Result<(), BadKey> {
    let Some((domain, _)) = key.split_once('/') else { return Ok(()) };
    let is_of = |of: &str| domain == of || domain.strip_suffix(of).is_some_and(|rest| rest.ends_with('.'));
    match DOMAINS.iter().find(|(of, _)| is_of(of)) {
        Some((_, why)) => {
            Err(BadKey { message: format!("an agent must not set the {what} {key}: {why}"), help: OWN_KEY })
        }
        None => Ok(()),
    }
}

/// `name` or `domain/name`, as Kubernetes has it.
fn qualified_name(key: &str) -> Result<(), BadKey> {
    let (domain, name) = key.split_once('/').map_or((None, key), |(domain, name)| (Some(domain), name));
    if is_name(name) && domain.is_none_or(is_domain) {
        return Ok(());
    }
    let help = "write letters, digits, dashes, underscores and dots, at most 63, maybe after a domain and a slash";
    Err(BadKey { message: format!("{key:?} is no key"), help })
}

fn is_name(text: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let bytes = text.as_bytes();
    bytes.len() <= 63 && is_end(bytes.first()) && is_end(bytes.last()) && text.bytes().all(is_good)
}

/// Whether a text can be the name of a `ConfigMap`, or the domain of a key.
pub(crate) fn is_domain(text: &str) -> bool {
    let is_label = |label: &str| is_name(label) && label.bytes().all(|byte| !byte.is_ascii_uppercase() && byte != b'_');
    text.len() <= 253 && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(result: Result<(), BadKey>) -> String {
        result.map_or_else(|bad| bad.message, |()| "fine".to_owned())
    }

    #[test]
    fn keys_of_ones_own_are_fine() {
        for key in ["gameserver-idle", "example.com/state", "game.example.com/x_y.z", "a"] {
            assert_eq!((label(key), annotation(key), condition(key)), (Ok(()), Ok(()), Ok(())), "{key}");
        }
        assert_eq!(annotation("controller.kubernetes.io/pod-deletion-cost"), Ok(()));
        assert_eq!(annotation("cluster-autoscaler.kubernetes.io/safe-to-evict"), Ok(()));
        assert_eq!(annotation("app"), Ok(()));
        assert_eq!(condition("game.kruise.io/idle"), Ok(()));
        assert_eq!(label("notkubernetes.io/x"), Ok(()));
    }

    #[test]
    fn what_chooses_pods_or_orders_others_is_refused() {
        for key in ["pod-template-hash", "controller-revision-hash", "app", "job-name"] {
            let expected = format!("an agent must not set the label {key}: controllers and services choose pods by it");
            assert_eq!(told(label(key)), expected);
        }
        for key in [
            "statefulset.kubernetes.io/pod-name",
            "batch.kubernetes.io/job-name",
            "app.kubernetes.io/name",
            "controller.kubernetes.io/pod-deletion-cost",
        ] {
            assert_eq!(told(label(key)), format!("an agent must not set the label {key}: Kubernetes acts on it"));
        }
        // Who may write this one may name conditions that the policies then allow.
        let probes = crate::names::POD_PROBES;
        let expected = format!("an agent must not set the annotation {probes}: OpenKruise acts on it");
        assert_eq!(told(annotation(probes)), expected);
        for key in [crate::names::WANTED, crate::names::RESULT, "x.pillion.dev/y"] {
            let expected = format!("an agent must not set the annotation {key}: Pillion writes it itself");
            assert_eq!(told(annotation(key)), expected);
        }
        assert_eq!(told(condition("Ready")), "an agent must not set the condition Ready: Kubernetes does");
        assert_eq!(
            told(condition("a.k8s.io/X")),
            "an agent must not set the condition a.k8s.io/X: Kubernetes acts on it"
        );
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for key in ["", "-a", "a b", "a/b/c", "/a", "a/", "A.example/x", "ü", &"x".repeat(64)] {
            assert_eq!(told(label(key)), format!("{key:?} is no key"));
        }
        assert!(label_value("") && label_value("a.B_1") && !label_value("a b") && !label_value(&"x".repeat(64)));
    }
}
