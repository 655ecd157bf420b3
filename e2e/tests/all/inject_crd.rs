//! The definition of our sets on a real API server: it is taken, says what our own code says, and explains itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams};
use pillion_api::{SidecarSet, review};
use pillion_e2e::Scene;
use pillion_testbed::{Look, until};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::sets::{Case, Verdict, good};

const DEFINITION: &str = "charts/pillion/templates/definitions/sidecarsets.apps.kruise.io.yaml";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn yaml<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_saphyr::from_str(&text).with_context(|| format!("cannot parse {}", path.display()))
}

/// Applies the definition of the chart as it is, and waits until sets can be made.
async fn define(scene: &Scene) -> Result<()> {
    scene.apply_to_cluster(&yaml(&repository().join(DEFINITION))?).await?;
    let definitions = Api::<CustomResourceDefinition>::all(scene.client.clone());
    until("the definition to be established", Duration::from_secs(30), || async {
        let found = definitions.get_opt("sidecarsets.apps.kruise.io").await;
        let conditions = found.ok().flatten().and_then(|found| found.status).and_then(|status| status.conditions);
        let established = |type_: &str| conditions.iter().flatten().any(|it| it.type_ == type_ && it.status == "True");
        let violations = conditions.iter().flatten().find(|it| it.type_ == "NonStructuralSchema").cloned();
        Ok(match violations {
            None if established("Established") => Look::Done(()),
            violations => Look::NotYet(format!("{violations:?}")),
        })
    })
    .await?;
    // Established comes a moment before the path is served.
    let sets = Api::<SidecarSet>::all(scene.client.clone());
    until("sets to be served", Duration::from_secs(30), || async {
        Ok(match sets.list(&ListParams::default()).await {
            Ok(_) => Look::Done(()),
            Err(error) => Look::NotYet(error.to_string()),
        })
    })
    .await?;
    Ok(())
}

/// What the API server says to a set, without keeping it. `Ignore` drops unknown fields, `Strict` refuses them.
async fn dry_run(scene: &Scene, object: &Value, unknown_fields: &str) -> Result<Result<Value, String>> {
    let path = "/apis/apps.kruise.io/v1alpha1/sidecarsets";
    let request = http::Request::post(format!("{path}?dryRun=All&fieldValidation={unknown_fields}"))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(serde_json::to_vec(object)?)?;
    match scene.client.request::<Value>(request).await {
        Ok(stored) => Ok(Ok(stored)),
        Err(kube::Error::Api(status)) => Ok(Err(status.message.clone())),
        Err(error) => Err(error.into()),
    }
}

#[tokio::test]
async fn ci_the_api_server_gives_the_verdicts_of_our_table() -> Result<()> {
    let scene = Scene::open("crd").await?;
    define(&scene).await?;
    let cases = Case::all();
    let mut wrong = Vec::new();
    for case in &cases {
        let answer = dry_run(&scene, &case.set(), "Ignore").await?;
        let refused_here = case.is_judged_by_the_schema() && case.verdict == Verdict::Refused;
        let fits = match (&answer, &case.expect) {
            (Ok(_), _) => !refused_here,
            // A rule says its code and the whole sentence; the schema's own words have no code.
            (Err(message), Some(expected)) => {
                let sentence = match expected.code.as_str() {
                    "PL101" => expected.message.clone(),
                    "PL110" if message.contains("Duplicate value") => expected.message.clone(),
                    code => format!("{code}: {}", expected.message),
                };
                refused_here && message.contains(&sentence)
            }
            (Err(_), None) => false,
        };
        if !fits {
            wrong.push(format!("{}: {answer:?}", case.name));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(cases.len() >= 90, "{}", cases.len());
    scene.close().await?;
    Ok(())
}

#[tokio::test]
async fn ci_sets_are_stored_as_they_were_written() -> Result<()> {
    let scene = Scene::open("crd-stored").await?;
    define(&scene).await?;
    let mut seen = 0;
    for entry in fs::read_dir(repository().join("examples/sidecarset"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let written: Value = yaml(&path)?;
            let stored = dry_run(&scene, &written, "Strict")
                .await?
                .map_err(anyhow::Error::msg)
                .context(path.display().to_string())?;
            assert_eq!(stored["spec"], written["spec"], "{}", path.display());
            let typed: SidecarSet = serde_json::from_value(stored)?;
            assert_eq!(Some(typed.meaning().expect("an example is valid")), review(&written).meaning);
            seen += 1;
        }
    }
    assert_eq!(seen, 9);
    scene.close().await?;
    Ok(())
}

#[tokio::test]
async fn ci_an_unknown_field_is_named_where_a_client_asks_for_strictness() -> Result<()> {
    let scene = Scene::open("crd-strict").await?;
    define(&scene).await?;
    let mut object = good("strict");
    object["spec"]["containers"][0]["resourcesPolicy"] = json!({"targetContainerMode": "sum", "targetContainerNameRegex": "a",
        "resourceExpr": {"limits": {"cpu": "cpu"}}});
    let refusal = dry_run(&scene, &object, "Strict").await?.expect_err("it has an unknown field");
    let expected = "unknown field \"spec.containers[0].resourcesPolicy.targetContainerNameRegex\"";
    assert!(refusal.contains(expected), "{refusal}");
    scene.close().await?;
    Ok(())
}

#[tokio::test]
async fn ci_kubectl_explains_the_policy_and_knows_the_short_name() -> Result<()> {
    let scene = Scene::open("crd-explain").await?;
    define(&scene).await?;
    // kubectl reads the schemas the API server publishes, which follow a definition after a moment.
    let explained = until("kubectl explain", Duration::from_secs(30), || async {
        let output = scene.kubectl(&["explain", "scs.spec.containers.resourcesPolicy"]);
        Ok(match output {
            Ok(output) if output.status.success() => Look::Done(String::from_utf8_lossy(&output.stdout).into_owned()),
            other => Look::NotYet(format!("{other:?}")),
        })
    })
    .await?;
    let words: String = explained.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "FIELD: resourcesPolicy <Object>",
        "Resources computed, when a pod is created, from those of the pod's own containers.",
        "resourceExpr <Object> The expressions. Required. Also accepted as resourcesExpr.",
        "targetContainerMode <string> enum: sum, max How several target containers become one amount: sum or max.",
        "targetContainersNameRegex <string> Which containers and native sidecars of the pod are targets",
    ] {
        ensure!(words.contains(expected), "no {expected:?} in\n{explained}");
    }
    let output = scene.kubectl(&["get", "scs"])?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    scene.close().await?;
    Ok(())
}
