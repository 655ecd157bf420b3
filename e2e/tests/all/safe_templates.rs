//! Templates are valid for Pillion if and only if a real API server accepts them in a pod.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use pillion_api::{Problem, Reason, TEMPLATE_SCHEMA, validate_write};
use pillion_e2e::{Scene, pod_schema};
use pillion_generators::{DrawnTemplate, TemplateTarget, declared_fields, given_fields, templates};
use serde_json::{Value, json};

/// The fewest templates that are compared.
const LEAST_TEMPLATES: usize = 2000;
const REQUESTS_IN_FLIGHT: usize = 4;

/// The answers about one template.
struct Compared {
    drawn: DrawnTemplate,
    /// Errors of Pillion.
    errors: Vec<Problem>,
    /// The reason, message and field of each error of the API server; `None` if it accepts the pod.
    rejection: Option<Vec<Cause>>,
}

#[derive(Debug)]
struct Cause {
    field: String,
    message: String,
}

/// A difference that is intended, with its reason.
struct Exception {
    name: &'static str,
    applies: fn(&Compared) -> bool,
}

/// All differences between Pillion and the API server.
const EXCEPTIONS: [Exception; 7] = [
    Exception {
        // The API server drops the field and accepts the pod. Its author meant another field, so the template is rejected.
        name: "a field that resembles a known one",
        applies: |it| we_reject(it, |problem| problem.reason == Reason::UnknownField),
    },
    Exception {
        // The API server drops fields whose feature gate is off, and validates them where it is on.
        name: "a field whose feature gate is off by default",
        applies: |it| {
            let gated = ["clusterTrustBundle", "podCertificate", "stopSignal"];
            let without = it.drawn.template["lifecycle"].get("stopSignal").is_some();
            // Without its only field, lifecycle is absent.
            let is_lifecycle = |path: &str| without && path.ends_with(".lifecycle");
            we_reject(it, |problem| {
                let path = problem.path.to_string();
                is_lifecycle(&path) || gated.iter().any(|field| path.contains(field))
            })
        },
    },
    Exception {
        // The API server reads null in a list or map as an empty text. Pillion rejects it, as it always did.
        name: "null in a list or map",
        applies: |it| we_reject(it, |problem| problem.message.ends_with("\"null\"")),
    },
    Exception {
        // The pod may have the volume or the claim.
        name: "a volume or claim that only the pod can have",
        applies: |it| server_rejects(it, |cause| cause.message.starts_with("Not found")),
    },
    Exception {
        // The pod may have a longer grace period.
        name: "a sleep beyond the pod's grace period",
        applies: |it| server_rejects(it, |cause| cause.message.contains("terminationGracePeriodSeconds")),
    },
    Exception {
        // The pod may have hostUsers: false.
        name: "procMount Unmasked without a user namespace",
        applies: |it| server_rejects(it, |cause| cause.message.contains("hostUsers")),
    },
    Exception {
        // The pod may be one for Windows, with the network of its node.
        name: "a Windows container beside others",
        applies: |it| {
            server_rejects(it, |cause| cause.message.contains("ostProcess") || cause.field.contains("ostProcess"))
        },
    },
];

fn we_reject(compared: &Compared, applies: impl Fn(&Problem) -> bool) -> bool {
    compared.rejection.is_none() && !compared.errors.is_empty() && compared.errors.iter().all(applies)
}

fn server_rejects(compared: &Compared, applies: impl Fn(&Cause) -> bool) -> bool {
    compared.errors.is_empty() && compared.rejection.as_ref().is_some_and(|causes| causes.iter().all(applies))
}

/// A pod with the template. It has the volumes and claims that samples of the generator refer to.
fn pod(drawn: &DrawnTemplate) -> Value {
    let mut spec = json!({
        "automountServiceAccountToken": false,
        "serviceAccountName": "default",
        "containers": [{"name": "app", "image": "app:1"}],
        "initContainers": [],
        "volumes": [{"name": "files", "emptyDir": {}}, {"name": "device", "persistentVolumeClaim": {"claimName": "a"}}],
        "resourceClaims": [{"name": "claim", "resourceClaimName": "claim"}],
    });
    let list = match drawn.target {
        TemplateTarget::Container => "containers",
        TemplateTarget::NativeSidecar | TemplateTarget::RegularInit => "initContainers",
        TemplateTarget::Volume => "volumes",
    };
    if let Some(list) = spec[list].as_array_mut() {
        list.push(drawn.template.clone());
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "template"}, "spec": spec})
}

/// A `SidecarSet` with the template.
fn sidecar_set(drawn: &DrawnTemplate) -> Value {
    let template = &drawn.template;
    let mut spec = json!({"selector": {"matchLabels": {"app": "web"}}});
    match drawn.target {
        TemplateTarget::Container => spec["containers"] = json!([template]),
        TemplateTarget::NativeSidecar | TemplateTarget::RegularInit => spec["initContainers"] = json!([template]),
        TemplateTarget::Volume => {
            spec["containers"] = json!([{"name": "sidecar", "image": "sidecar:1"}]);
            spec["volumes"] = json!([template]);
        }
    }
    json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "mesh"}, "spec": spec})
}

async fn rejection(scene: &Scene, pod: &Value) -> Result<Option<Vec<Cause>>> {
    let request = http::Request::post(format!("/api/v1/namespaces/{}/pods?dryRun=All", scene.namespace))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(pod.to_string().into_bytes())?;
    match scene.client.request::<Value>(request).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if [400, 422].contains(&status.code) => {
            let causes = status.details.iter().flat_map(|details| &details.causes);
            let causes: Vec<Cause> =
                causes.map(|cause| Cause { field: cause.field.clone(), message: cause.message.clone() }).collect();
            let whole = Cause { field: String::new(), message: status.message.clone() };
            Ok(Some(if causes.is_empty() { vec![whole] } else { causes }))
        }
        Err(error) => Err(error).with_context(|| pod.to_string()),
    }
}

async fn compared(scene: &Scene, drawn: DrawnTemplate) -> Result<Compared> {
    let errors = validate_write(&sidecar_set(&drawn)).errors().cloned().collect();
    let rejection = rejection(scene, &pod(&drawn)).await?;
    Ok(Compared { drawn, errors, rejection })
}

/// Compares the answers about templates. The lists of both answers must be long, and every exception must be needed.
async fn compare(seed: u64, variants: usize) -> Result<()> {
    let drawn = templates(seed, variants);
    ensure!(drawn.len() >= LEAST_TEMPLATES, "only {} templates", drawn.len());
    check_coverage(&drawn)?;
    let scene = Scene::open("templates").await?;
    let count = drawn.len();
    let compared: Vec<Compared> = stream::iter(drawn)
        .map(|drawn| compared(&scene, drawn))
        .buffer_unordered(REQUESTS_IN_FLIGHT)
        .try_collect()
        .await?;
    scene.close().await?;
    let mut differences = Vec::new();
    let mut used: BTreeMap<&str, usize> = BTreeMap::new();
    for it in compared.iter().filter(|it| it.errors.is_empty() != it.rejection.is_none()) {
        match EXCEPTIONS.iter().find(|exception| (exception.applies)(it)) {
            Some(exception) => *used.entry(exception.name).or_default() += 1,
            None => differences.push(format!(
                "{:?} {} {}\n  Pillion: {:?}\n  API server: {:?}",
                it.drawn.target,
                it.drawn.field,
                it.drawn.template,
                it.errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
                it.rejection
            )),
        }
    }
    let accepted = compared.iter().filter(|it| it.rejection.is_none()).count();
    ensure!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
    ensure!(
        accepted > count / 4 && accepted < count * 3 / 4,
        "{accepted} of {count} are accepted, exceptions: {used:?}"
    );
    let unused: Vec<&str> = EXCEPTIONS.iter().map(|it| it.name).filter(|name| !used.contains_key(name)).collect();
    ensure!(unused.is_empty(), "exceptions that nothing needs: {unused:?}");
    Ok(())
}

/// Every field of the schema is set in some template.
fn check_coverage(drawn: &[DrawnTemplate]) -> Result<()> {
    let schemas: Value = serde_json::from_str(TEMPLATE_SCHEMA)?;
    for kind in ["container", "volume"] {
        let of_kind = drawn.iter().filter(|it| (it.target == TemplateTarget::Volume) == (kind == "volume"));
        let given: BTreeSet<String> = of_kind.flat_map(|it| given_fields(&it.template)).collect();
        let missing: Vec<String> = declared_fields(&schemas[kind]).difference(&given).cloned().collect();
        ensure!(missing.is_empty(), "fields of a {kind} that no template has: {missing:?}");
    }
    Ok(())
}

#[tokio::test]
async fn ci_pillion_and_the_api_server_accept_the_same_templates() -> Result<()> {
    compare(1, 3).await
}

/// In ci: `ci_pillion_and_the_api_server_accept_the_same_templates`, with a tenth of the values and always the same.
#[tokio::test]
async fn nightly_pillion_and_the_api_server_accept_the_same_of_many_templates() -> Result<()> {
    let seed = std::env::var("PILLION_SEED").unwrap_or_default();
    compare(seed.parse().unwrap_or(1), 30).await
}

#[tokio::test]
async fn ci_the_schema_of_templates_is_that_of_the_api_server() -> Result<()> {
    let scene = Scene::open("template-schema").await?;
    let request = http::Request::get("/openapi/v3/api/v1").body(Vec::new())?;
    let served: Value = scene.client.request(request).await?;
    scene.close().await?;
    let reduced = pod_schema::reduced(&served);
    let committed: Value = serde_json::from_str(TEMPLATE_SCHEMA)?;
    let file = std::env::temp_dir().join("pillion-template-schema.json");
    if reduced != committed {
        std::fs::write(&file, format!("{reduced:#}\n"))?;
    }
    ensure!(reduced == committed, "the schema has changed: copy {} over the committed file", file.display());
    Ok(())
}
