//! Says when what a set adds would lower the Pod Security level of a pod.

use pillion_api::Reason;
use serde_json::Value;

use crate::decision::Warning;
use crate::namespace::Namespace;
use crate::pod_security::{Level, Violation, judge_pod, level};

const ENFORCE_LABEL: &str = "pod-security.kubernetes.io/enforce";

/// What a pod and its namespace ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Security {
    before: Level,
    enforced: Level,
}

impl Security {
    pub(crate) fn of(pod: &Value, namespace: &Namespace) -> Self {
        let enforced = match namespace.label(ENFORCE_LABEL) {
            Some("restricted") => Level::Restricted,
            Some("baseline") => Level::Baseline,
            _ => Level::Privileged,
        };
        Self { before: level(&judge_pod(pod)), enforced }
    }

    /// What is to be said about an addition with these violations.
    pub(crate) fn warning(self, violations: &[Violation<'_>]) -> Option<Warning> {
        let after = level(violations);
        if after >= self.before {
            return None;
        }
        let mut worst = violations.iter().filter(|violation| violation.allowed == after);
        let (first, more) = (worst.next()?, worst.count());
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let refused = if after < self.enforced {
            format!("; the namespace enforces {}: the API server will refuse the pod", self.enforced)
        } else {
            String::new()
        };
        let message = format!("the pod would go from {} to {after}: {first}{more}{refused}", self.before);
        Some(Warning { reason: Reason::LowersPodSecurity, message })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::pod_security::judge;

    fn restricted_pod() -> Value {
        json!({"spec": {
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{"name": "app", "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}}],
        }})
    }

    fn said(pod: &Value, enforced: Option<&str>, addition: &Value) -> Option<String> {
        let labels: BTreeMap<_, _> =
            enforced.map(|level| (ENFORCE_LABEL.to_owned(), level.to_owned())).into_iter().collect();
        let namespace = Namespace { name: "shop".to_owned(), labels };
        let violations = judge(&pod["spec"], [addition], []);
        Security::of(pod, &namespace).warning(&violations).map(|warning| warning.message)
    }

    #[test]
    fn an_addition_that_lowers_the_level_is_named() {
        let plain = json!({"name": "proxy"});
        let message = "the pod would go from restricted to baseline: container proxy: securityContext.allowPrivilegeEscalation is not set: set it to false, and 1 more";
        assert_eq!(said(&restricted_pod(), None, &plain).as_deref(), Some(message));
        let refused = format!("{message}; the namespace enforces restricted: the API server will refuse the pod");
        assert_eq!(said(&restricted_pod(), Some("restricted"), &plain), Some(refused));
        assert_eq!(said(&restricted_pod(), Some("baseline"), &plain).as_deref(), Some(message));
    }

    #[test]
    fn an_addition_to_a_pod_that_is_no_better_is_not() {
        let pod = json!({"spec": {"containers": [{"name": "app"}]}});
        assert_eq!(said(&pod, None, &json!({"name": "proxy"})), None);
        let privileged = json!({"name": "proxy", "securityContext": {"privileged": true}});
        let message = "the pod would go from baseline to privileged: container proxy: securityContext.privileged is true: set it to false";
        assert_eq!(said(&pod, None, &privileged).as_deref(), Some(message));
    }
}
