//! From what is known of an autoscaler to its status, pure; and the write.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::{Patch, PatchParams};
use pillion_api::{
    AutoscalerCondition, Problem, RecommendedContainerResources, RecommendedPodResources, ResourceList,
    VerticalPodAutoscaler, VerticalPodAutoscalerStatus,
};
use pillion_quantity::Resource;
use pillion_rightsize::{Amounts, Autoscaler, Recommendation};
use pillion_runtime::watch::Key;
use serde_json::json;

use super::Context;
use super::learn::Findings;
use crate::asking::Failed;
use crate::conditions::MAX_MESSAGE;

/// Bounds draw closer with every sample. They are published where they moved by more than this part, or with a target that
/// did: nothing that is decided by them depends on less, and most writes of a quiet cluster would be this.
const DRIFT_PART: i64 = 100;

const PROVIDED: &str = "RecommendationProvided";
const NO_PODS: &str = "NoPodsMatched";
const UNSUPPORTED: &str = "ConfigUnsupported";
const LOW_CONFIDENCE: &str = "LowConfidence";
/// Containers of the recommendation that are native sidecars, which the list itself does not tell.
const SIDECARS: &str = "pillion.dev/NativeSidecars";
/// Whether what is recommended is applied in the way the object says.
const APPLYING: &str = "pillion.dev/Applying";
/// Conditions that are ours to take away.
const OURS: [&str; 6] = [PROVIDED, NO_PODS, UNSUPPORTED, LOW_CONFIDENCE, SIDECARS, APPLYING];

/// Why something is not applied as the object says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hindrance {
    /// In one word.
    pub(super) reason: &'static str,
    /// And in a sentence.
    pub(super) message: String,
}

/// What is known of an autoscaler.
pub(super) struct Stands<'a> {
    pub(super) generation: i64,
    /// What the object means, where that can be said.
    pub(super) meaning: Option<&'a Autoscaler>,
    /// `None` where its target cannot be found: what was recommended then stays.
    pub(super) findings: Option<&'a Findings>,
    /// Why the object cannot be served, or its target not be found.
    pub(super) unsupported: Option<&'a str>,
    /// What is wrong with the object, or has no effect, though it is served.
    pub(super) problems: &'a [Problem],
    pub(super) hindrance: Option<&'a Hindrance>,
}

/// The status of an autoscaler.
pub(super) fn status(
    stands: &Stands<'_>,
    before: Option<&VerticalPodAutoscalerStatus>,
    now: Timestamp,
) -> VerticalPodAutoscalerStatus {
    let stays = || before.and_then(|before| before.recommendation.clone());
    let recommendation = match stands.findings {
        Some(findings) if findings.recommendation.containers.is_empty() => None,
        Some(findings) => Some(settled(published(findings, stands.meaning, before), before)),
        None => stays(),
    };
    let mut conditions: Vec<AutoscalerCondition> = before
        .and_then(|before| before.conditions.clone())
        .unwrap_or_default()
        .into_iter()
        .filter(|condition| !OURS.contains(&condition.kind.as_str()))
        .collect();
    for (kind, holds, reason, message) in told(stands, recommendation.is_some()) {
        conditions.push(condition(kind, holds, reason, &message, before, now));
    }
    conditions.sort_by(|one, other| one.kind.cmp(&other.kind));
    VerticalPodAutoscalerStatus {
        recommendation,
        conditions: Some(conditions),
        observed_generation: Some(stands.generation),
    }
}

fn told(stands: &Stands<'_>, is_provided: bool) -> Vec<(&'static str, bool, &'static str, String)> {
    let mut told = Vec::new();
    let no_pods = stands.findings.is_some_and(|findings| findings.pods == 0);
    let no_pods_message = "no pod of the target runs: is its selector right?".to_owned();
    match (is_provided, no_pods, stands.unsupported) {
        (true, ..) => told.push((PROVIDED, true, "", String::new())),
        (false, _, Some(why)) => told.push((PROVIDED, false, UNSUPPORTED, why.to_owned())),
        (false, true, None) => told.push((PROVIDED, false, NO_PODS, no_pods_message.clone())),
        (false, false, None) => {
            told.push((PROVIDED, false, "NoSamples", "nothing was measured of its containers yet".to_owned()));
        }
    }
    if no_pods {
        told.push((NO_PODS, true, NO_PODS, no_pods_message));
    }
    match (stands.unsupported, stands.problems) {
        (Some(why), _) => told.push((UNSUPPORTED, true, UNSUPPORTED, why.to_owned())),
        (None, []) => {}
        (None, problems @ [first, ..]) => {
            let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
            told.push((UNSUPPORTED, true, first.reason.name(), all.join("; ")));
        }
    }
    if let Some(findings) = stands.findings {
        if !findings.little.is_empty() {
            let message = format!("there is little history of {}", findings.little.join(", "));
            told.push((LOW_CONFIDENCE, true, "LittleHistory", message));
        }
        if !findings.sidecars.is_empty() {
            told.push((SIDECARS, true, "NativeSidecar", findings.sidecars.join(", ")));
        }
    }
    if let Some(Hindrance { reason, message }) = stands.hindrance {
        told.push((APPLYING, false, reason, message.clone()));
    }
    told
}

fn condition(
    kind: &str,
    holds: bool,
    reason: &str,
    message: &str,
    before: Option<&VerticalPodAutoscalerStatus>,
    now: Timestamp,
) -> AutoscalerCondition {
    let status = if holds { "True" } else { "False" };
    let mut before = before.and_then(|before| before.conditions.as_ref()).into_iter().flatten();
    let same = before.find(|condition| condition.kind == kind && condition.status == status);
    let since = same.and_then(|condition| condition.last_transition_time.clone());
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    AutoscalerCondition {
        kind: kind.to_owned(),
        status: status.to_owned(),
        last_transition_time: Some(since.unwrap_or(Time(now))),
        reason: text(reason),
        message: text(&message[..message.floor_char_boundary(MAX_MESSAGE)]),
        observed_generation: None,
    }
}

/// What is found, and of containers of which only a checkpoint is known, what was published before, within the policies as
/// they are now.
fn published(
    findings: &Findings,
    meaning: Option<&Autoscaler>,
    before: Option<&VerticalPodAutoscalerStatus>,
) -> RecommendedPodResources {
    let mut found = findings.recommendation.clone();
    let before = before.and_then(|before| before.recommendation.as_ref());
    let before = before.filter(|_| !findings.stale.is_empty()).map(Recommendation::read).unwrap_or_default();
    for own in found.containers.iter_mut().filter(|own| findings.stale.contains(&own.container)) {
        if let Some(same) = before.of(&own.container) {
            *own = meaning.map_or_else(|| same.clone(), |meaning| same.within(&meaning.policy(&same.container)));
        }
    }
    found.write()
}

/// What is published: bounds that have only drifted stay.
fn settled(found: RecommendedPodResources, before: Option<&VerticalPodAutoscalerStatus>) -> RecommendedPodResources {
    let published = before.and_then(|before| before.recommendation.as_ref());
    match published {
        Some(published) if has_only_drifted(published, &found) => published.clone(),
        _ => found,
    }
}

fn has_only_drifted(before: &RecommendedPodResources, after: &RecommendedPodResources) -> bool {
    let (before, after) = (containers(before), containers(after));
    before.len() == after.len() && before.iter().zip(after).all(|(before, after)| is_near(before, after))
}

fn containers(recommended: &RecommendedPodResources) -> &[RecommendedContainerResources] {
    recommended.container_recommendations.as_deref().unwrap_or_default()
}

fn is_near(before: &RecommendedContainerResources, after: &RecommendedContainerResources) -> bool {
    let amounts = |list: &Option<ResourceList>| list.as_ref().map(Amounts::from_list).unwrap_or_default();
    let is_same = |before: Amounts, after: Amounts| before == after;
    let has_drifted = |before: Amounts, after: Amounts| {
        let near = |resource: Resource| match (before.get(resource), after.get(resource)) {
            (Some(before), Some(after)) => (before - after).saturating_abs() <= before / DRIFT_PART,
            (before, after) => before == after,
        };
        Amounts::RESOURCES.into_iter().all(near)
    };
    before.container_name == after.container_name
        && is_same(Amounts::from_list(&before.target), Amounts::from_list(&after.target))
        && is_same(amounts(&before.uncapped_target), amounts(&after.uncapped_target))
        && has_drifted(amounts(&before.lower_bound), amounts(&after.lower_bound))
        && has_drifted(amounts(&before.upper_bound), amounts(&after.upper_bound))
}

impl Context {
    /// Writes the status of an autoscaler, and of no other of its name.
    pub(super) async fn write_status(
        &self,
        key: &Key,
        uid: &str,
        status: &VerticalPodAutoscalerStatus,
    ) -> Result<(), Failed> {
        let api = Api::<VerticalPodAutoscaler>::namespaced(self.client.clone(), &key.namespace);
        let patch = json!([
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "add", "path": "/status", "value": status},
        ]);
        let patch = serde_json::from_value(patch).map_err(|error| Failed::Unanswered(error.to_string()))?;
        let parameters = PatchParams { field_manager: Some(super::MANAGER.to_owned()), ..PatchParams::default() };
        self.asked(api.patch_status(&key.name, &parameters, &Patch::Json::<()>(patch))).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use pillion_api::{FieldPath, Reason};
    use pillion_rightsize::ContainerRecommendation;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + seconds).unwrap()
    }

    fn findings(target: i64, upper: i64) -> Findings {
        let amounts = |memory| Amounts { cpu: Some(25), memory: Some(memory) };
        let container = ContainerRecommendation {
            container: "app".to_owned(),
            target: amounts(target),
            lower: amounts(1000),
            upper: amounts(upper),
            uncapped: amounts(target),
        };
        let recommendation = Recommendation { containers: vec![container] };
        Findings { recommendation, sidecars: Vec::new(), stale: Vec::new(), pods: 3, little: Vec::new() }
    }

    fn nothing(pods: usize) -> Findings {
        Findings { recommendation: Recommendation::default(), pods, ..findings(0, 0) }
    }

    fn stands(findings: Option<&Findings>) -> Stands<'_> {
        Stands { generation: 2, meaning: None, findings, unsupported: None, problems: &[], hindrance: None }
    }

    fn lines(status: &VerticalPodAutoscalerStatus) -> Vec<String> {
        let line = |it: &AutoscalerCondition| {
            let since = it.last_transition_time.as_ref().map_or(0, |time| time.0.as_second() - 1_000_000);
            let (reason, message) = (it.reason.as_deref().unwrap_or("-"), it.message.as_deref().unwrap_or("-"));
            format!("{} {} {since} {reason}: {message}", it.kind, it.status)
        };
        status.conditions.iter().flatten().map(line).collect()
    }

    #[test]
    fn a_recommendation_is_published_and_stays_while_nothing_but_bounds_drift() {
        let first = status(&stands(Some(&findings(5000, 100_000))), None, at(0));
        assert_eq!(lines(&first), ["RecommendationProvided True 0 -: -"]);
        assert_eq!(first.observed_generation, Some(2));
        // One part in a hundred is a drift, more is not.
        assert_eq!(status(&stands(Some(&findings(5000, 99_000))), Some(&first), at(60)), first);
        let moved = status(&stands(Some(&findings(5000, 98_999))), Some(&first), at(60));
        assert_ne!(moved.recommendation, first.recommendation);
        let target = status(&stands(Some(&findings(5001, 100_000))), Some(&first), at(60));
        assert_ne!(target.recommendation, first.recommendation);
        assert_eq!(lines(&target), ["RecommendationProvided True 0 -: -"]);
    }

    #[test]
    fn of_a_container_without_a_sample_since_the_start_stays_what_was_published() {
        let first = status(&stands(Some(&findings(5000, 100_000))), None, at(0));
        let mut kept = findings(1, 1);
        kept.stale = vec!["app".to_owned()];
        assert_eq!(status(&stands(Some(&kept)), Some(&first), at(60)), first);
        // Another policy holds at once.
        let spec = json!({"targetRef": {"kind": "Deployment", "name": "web"}, "resourcePolicy": {"containerPolicies": [
            {"containerName": "*", "maxAllowed": {"memory": "2000"}}]}});
        let object = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
        let meaning = Autoscaler::read(&object).unwrap();
        let bounded = status(&Stands { meaning: Some(&meaning), ..stands(Some(&kept)) }, Some(&first), at(60));
        assert_eq!(Recommendation::read(&bounded.recommendation.unwrap()).containers[0].target.memory, Some(2000));
        let alone = status(&stands(Some(&kept)), None, at(60));
        assert_eq!(alone.recommendation, Some(kept.recommendation.write()));
    }

    #[test]
    fn what_is_missing_is_told_and_taken_away_again() {
        let pods = nothing(0);
        let alone = status(&stands(Some(&pods)), None, at(0));
        let why = "NoPodsMatched: no pod of the target runs: is its selector right?";
        assert_eq!(
            lines(&alone),
            [format!("NoPodsMatched True 0 {why}"), format!("RecommendationProvided False 0 {why}")]
        );
        let silent = status(&stands(Some(&nothing(1))), Some(&alone), at(60));
        assert_eq!(
            lines(&silent),
            ["RecommendationProvided False 0 NoSamples: nothing was measured of its containers yet"]
        );
        assert_eq!(silent.recommendation, None);
    }

    #[test]
    fn a_target_that_cannot_be_found_takes_no_recommendation_away() {
        let first = status(&stands(Some(&findings(5000, 100_000))), None, at(0));
        let lost = Stands { unsupported: Some("no such thing"), ..stands(None) };
        let lost = status(&lost, Some(&first), at(60));
        assert_eq!(lost.recommendation, first.recommendation);
        assert_eq!(
            lines(&lost),
            ["ConfigUnsupported True 60 ConfigUnsupported: no such thing", "RecommendationProvided True 0 -: -"]
        );
    }

    #[test]
    fn fields_that_have_no_effect_are_told_beside_the_recommendation() {
        let path = |field: &str| FieldPath::of("spec.updatePolicy").field(field);
        let problems = [
            Problem::error(Reason::AutoscalerInvalid, path("minReplicas"), "0 is too small", "write 1 or more"),
            Problem::warning(Reason::AutoscalerFieldIgnored, path("evictAfterOOMSeconds"), "no effect", "use a flag"),
        ];
        let found = findings(5000, 1);
        let told = status(&Stands { problems: &problems, ..stands(Some(&found)) }, None, at(5));
        assert_eq!(
            lines(&told),
            [
                "ConfigUnsupported True 5 AutoscalerInvalid: spec.updatePolicy.minReplicas: PL601: 0 is too small: write 1 or \
                 more; spec.updatePolicy.evictAfterOOMSeconds: PL602: no effect: use a flag",
                "RecommendationProvided True 5 -: -",
            ]
        );
    }

    #[test]
    fn gap_11_little_history_sidecars_and_what_hinders_are_conditions_beside_those_of_others() {
        let other = AutoscalerCondition { kind: "Zoo".to_owned(), status: "True".to_owned(), ..Default::default() };
        let before = VerticalPodAutoscalerStatus { conditions: Some(vec![other]), ..Default::default() };
        let mut found = findings(5000, 1);
        found.little = vec!["app".to_owned()];
        found.sidecars = vec!["log".to_owned(), "proxy".to_owned()];
        let hindrance = Hindrance { reason: "SwitchedOff", message: "pillion is off".to_owned() };
        let told = status(&Stands { hindrance: Some(&hindrance), ..stands(Some(&found)) }, Some(&before), at(5));
        assert_eq!(
            lines(&told),
            [
                "LowConfidence True 5 LittleHistory: there is little history of app",
                "RecommendationProvided True 5 -: -",
                "Zoo True 0 -: -",
                "pillion.dev/Applying False 5 SwitchedOff: pillion is off",
                "pillion.dev/NativeSidecars True 5 NativeSidecar: log, proxy",
            ]
        );
        let quiet = status(&stands(Some(&findings(5000, 1))), Some(&told), at(6));
        assert_eq!(lines(&quiet), ["RecommendationProvided True 5 -: -", "Zoo True 0 -: -"]);
    }
}
