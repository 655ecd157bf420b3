//! The autoscalers among some manifests.

use pillion_api::{FieldPath, Problem, Reason, VerticalPodAutoscaler, check_autoscaler};
use pillion_rightsize::review;

use crate::manifest::Manifest;

/// Whether it is an autoscaler, ours or of another recommender: all are written alike.
pub(crate) fn is_autoscaler(manifest: &Manifest) -> bool {
    manifest.kind() == "VerticalPodAutoscaler" && manifest.api_version() == "autoscaling.k8s.io/v1"
}

/// What is to be said about an autoscaler.
pub(crate) fn judged(manifest: &Manifest) -> Vec<Problem> {
    let mut problems = check_autoscaler(&manifest.value);
    if problems.iter().any(|problem| problem.reason != Reason::UnknownField) {
        return problems;
    }
    let object = match serde_json::from_value::<VerticalPodAutoscaler>(manifest.value.clone()) {
        Ok(object) => object,
        Err(error) => {
            let help = "write it as `kubectl explain vpa` shows it";
            problems.push(Problem::error(Reason::SchemaViolation, FieldPath::root(), error.to_string(), help));
            return problems;
        }
    };
    // What has no effect here may have one with upstream's recommender, which has no name of its own.
    let is_upstreams = object.spec.recommenders.iter().flatten().all(|own| own.name == "default");
    let found = review(&object).into_iter();
    let ours = found.filter(|problem| !(is_upstreams && problem.reason == Reason::AutoscalerFieldIgnored));
    problems.into_iter().chain(ours).collect()
}
