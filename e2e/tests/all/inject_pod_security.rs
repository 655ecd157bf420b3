//! The Pod Security Standards as our code reads them, and as a real API server enforces them.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use pillion_e2e::Scene;
use pillion_inject::pod_security::{Level, Violation, judge_pod};
use pillion_testbed::{Look, until};
use serde_json::{Value, json};

use crate::pod_security_table::Table;

/// The API server's words for a control, under the baseline profile and under the restricted one, and what our fields of it
/// have in them.
const CONTROLS: [(&str, &str, &[&str]); 15] = [
    ("", "allowPrivilegeEscalation != false", &["allowPrivilegeEscalation"]),
    ("forbidden AppArmor profile", "forbidden AppArmor profile", &["appArmorProfile", "apparmor"]),
    ("forbidden sysctls", "forbidden sysctls", &["sysctls"]),
    ("host namespaces", "host namespaces", &["hostNetwork", "hostPID", "hostIPC"]),
    ("hostPort", "hostPort", &["hostPort"]),
    ("hostProcess", "hostProcess", &["hostProcess"]),
    ("non-default capabilities", "unrestricted capabilities", &["capabilities"]),
    ("privileged", "privileged", &["privileged"]),
    ("probe or lifecycle host", "probe or lifecycle host", &[".host"]),
    ("procMount", "procMount", &["procMount"]),
    ("", "runAsNonRoot != true", &["runAsNonRoot"]),
    ("", "runAsUser=0", &["runAsUser"]),
    ("seLinuxOptions", "seLinuxOptions", &["seLinuxOptions"]),
    ("seccompProfile", "seccompProfile", &["seccompProfile"]),
    // The only fields of ours without a dot or an index that name no host namespace are types of volumes.
    ("hostPath volumes", "restricted volume types", &[]),
];

/// What came of a pod.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// It would be created.
    Taken,
    /// The profile forbids it, for these controls.
    Forbidden(BTreeSet<&'static str>),
    /// It is no valid pod.
    Invalid,
    /// Something else.
    Other(String),
}

/// A namespace that enforces a profile.
struct Guarded {
    scene: Scene,
    profile: Level,
}

impl Guarded {
    async fn open(profile: Level) -> Result<Self> {
        let scene = Scene::open(&format!("pod-security-{profile}")).await?;
        let labels = json!({"pod-security.kubernetes.io/enforce": profile.to_string()});
        let metadata = json!({"name": scene.namespace, "labels": labels});
        scene.apply_to_cluster(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})).await?;
        Ok(Self { scene, profile })
    }

    /// What the API server says to a pod, without keeping it. A field it does not know is refused, so no row is misspelt.
    async fn dry_run(&self, pod: &Value) -> Result<Answer> {
        let path = format!("/api/v1/namespaces/{}/pods?dryRun=All&fieldValidation=Strict", self.scene.namespace);
        let request = http::Request::post(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(serde_json::to_vec(pod)?)?;
        Ok(match self.scene.client.request::<Value>(request).await {
            Ok(_) => Answer::Taken,
            Err(kube::Error::Api(status)) => match (status.code, status.message.split_once("violates PodSecurity")) {
                (403, Some((_, why))) => Answer::Forbidden(self.controls_named_in(why)),
                (422, None) => Answer::Invalid,
                _ => Answer::Other(status.message.clone()),
            },
            Err(error) => return Err(error.into()),
        })
    }

    /// Our verdict, in the API server's words.
    fn expected(&self, violations: &[Violation<'_>]) -> Answer {
        let forbidden = violations.iter().filter(|violation| violation.allowed < self.profile);
        let controls: BTreeSet<_> = forbidden.map(|violation| self.control_of(&violation.field)).collect();
        if controls.is_empty() { Answer::Taken } else { Answer::Forbidden(controls) }
    }

    fn control_of(&self, field: &str) -> &'static str {
        let of_field = |parts: &&[&str]| parts.is_empty() || parts.iter().any(|part| field.contains(part));
        let found = CONTROLS.iter().find(|(_, _, parts)| of_field(parts));
        self.word(found.expect("the last one takes every field"))
    }

    fn controls_named_in(&self, why: &str) -> BTreeSet<&'static str> {
        let words = CONTROLS.iter().map(|control| self.word(control)).filter(|word| !word.is_empty());
        // Each has its details in brackets behind it, some with an "s" in between.
        words.filter(|word| [format!(" {word} ("), format!(" {word}s (")].iter().any(|it| why.contains(it))).collect()
    }

    fn word(&self, (baseline, restricted, _): &(&'static str, &'static str, &[&str])) -> &'static str {
        if self.profile == Level::Baseline { baseline } else { restricted }
    }

    /// Waits until the profile is enforced: the API server reads labels of namespaces from a watch.
    async fn until_enforced(&self, good: &Value) -> Result<()> {
        let mut pod = good.clone();
        pod["spec"]["hostPID"] = json!(true);
        until("the profile to be enforced", Duration::from_secs(30), || async {
            Ok(match self.dry_run(&pod).await {
                Ok(Answer::Forbidden(_)) => Look::Done(()),
                other => Look::NotYet(format!("{other:?}")),
            })
        })
        .await?;
        Ok(())
    }
}

#[tokio::test]
async fn ci_the_api_server_enforces_the_levels_of_our_table() -> Result<()> {
    let table = Table::read();
    let profiles = [Guarded::open(Level::Baseline).await?, Guarded::open(Level::Restricted).await?];
    let mut wrong = Vec::new();
    for guarded in &profiles {
        guarded.until_enforced(&table.good).await?;
        for case in &table.cases {
            let pod = table.pod(case);
            let answer = guarded.dry_run(&pod).await?;
            let expected = if case.invalid { Answer::Invalid } else { guarded.expected(&judge_pod(&pod)) };
            if answer != expected {
                wrong.push(format!("{}, {}: {answer:?}, not {expected:?}", case.name, guarded.profile));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(table.cases.len(), 127);
    for guarded in profiles {
        guarded.scene.close().await?;
    }
    Ok(())
}
