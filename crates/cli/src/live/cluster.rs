//! Requests to the API server. Objects come and go as JSON, with their kind; nothing is decided here.

use http_body_util::BodyExt as _;
use kube::Client;
use kube::api::{GetParams, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::core::Request;
use pillion_runtime::client::{Source, connect};
use serde_json::{Map, Value, json};

use super::Failure;
use super::kinds::{self, Kind};

/// Objects per answer of a list.
const PAGE: u32 = 500;
const EXPIRED: u16 = 410;
const NOT_FOUND: u16 = 404;
const UNPROCESSABLE: u16 = 422;
/// What the API server says of a JSON patch that cannot be applied; what it says of a wrong object names the object.
const NOT_APPLICABLE: &str = "the server rejected our request due to an error in our request";
/// Who writes, as the API server remembers it.
const FIELD_MANAGER: &str = "pillion-cli";

/// A cluster that answers.
pub(crate) struct Cluster {
    client: Client,
}

/// Which objects of a kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Query<'a> {
    /// Of this namespace; of all without one.
    pub(crate) namespace: Option<&'a str>,
    /// With these labels.
    pub(crate) labels: Option<&'a str>,
}

/// Whether a write is only tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DryRun {
    /// The API server does everything but store it.
    Yes,
    /// It is stored.
    No,
}

/// What came of a patch that tests what was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Patched {
    /// The object as it is now, or would be.
    Done(Value),
    /// It is not as it was read any more.
    Outdated,
}

impl Cluster {
    pub(crate) async fn connect(source: &Source) -> Result<Self, Failure> {
        let agent = concat!("pillion/", env!("CARGO_PKG_VERSION"));
        Ok(Self { client: connect(source, agent).await? })
    }

    /// For those who watch.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The namespace of the context.
    pub(crate) fn default_namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// The API server's version, and the time it has.
    pub(crate) async fn version(&self) -> Result<(Value, Option<String>), Failure> {
        let failed = |error| failed("ask for the version".to_owned(), error);
        let request = http::Request::get("/version").body(Body::empty());
        let request = request.map_err(|error| failed(kube::Error::HttpError(error)))?;
        let answer = self.client.send(request).await.map_err(failed)?;
        let date = answer.headers().get(http::header::DATE).and_then(|date| date.to_str().ok()).map(str::to_owned);
        let body = answer.into_body().collect().await.map_err(failed)?;
        let version =
            serde_json::from_slice(&body.to_bytes()).map_err(|error| failed(kube::Error::SerdeError(error)))?;
        Ok((version, date))
    }

    /// One object; `None` where there is none, or not even its kind.
    pub(crate) async fn get(&self, kind: Kind, namespace: Option<&str>, name: &str) -> Result<Option<Value>, Failure> {
        let doing = || format!("get {} {name}", kind.plural);
        let request = Request::new(kind.path(namespace)).get(name, &GetParams::default());
        let request = request.map_err(|error| failed(doing(), kube::Error::BuildRequest(error)))?;
        absent_is_none(self.client.request(request).await).map_err(|error| failed(doing(), error))
    }

    /// All objects there are of a kind; none where the kind does not exist.
    pub(crate) async fn list(&self, kind: Kind, query: Query<'_>) -> Result<Vec<Value>, Failure> {
        let mut all = Vec::new();
        self.pages(kind, query, |page| {
            all.extend(page);
            Ok(())
        })
        .await?;
        Ok(all)
    }

    /// Shows all objects of a kind, some at a time.
    pub(crate) async fn pages(
        &self,
        kind: Kind,
        query: Query<'_>,
        mut visit: impl FnMut(Vec<Value>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let doing = || format!("list {}", kind.plural);
        let mut parameters = ListParams::default().limit(PAGE);
        if let Some(labels) = query.labels {
            parameters = parameters.labels(labels);
        }
        loop {
            let request = Request::new(kind.path(query.namespace)).list(&parameters);
            let request = request.map_err(|error| failed(doing(), kube::Error::BuildRequest(error)))?;
            let listed = match self.client.request::<Value>(request).await {
                // It took so long that the list has moved on: the rest is as it is now.
                Err(kube::Error::Api(status)) if status.code == EXPIRED && parameters.continue_token.is_some() => {
                    let rest = status.metadata.as_ref().and_then(|metadata| metadata.continue_.clone());
                    if rest.is_none() {
                        return Err(failed(doing(), kube::Error::Api(status)));
                    }
                    parameters.continue_token = rest;
                    continue;
                }
                listed => absent_is_none(listed).map_err(|error| failed(doing(), error))?,
            };
            let Some(mut listed) = listed else { return Ok(()) };
            let rest = listed.pointer("/metadata/continue").and_then(Value::as_str).unwrap_or_default().to_owned();
            let items = listed.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
            visit(items.into_iter().map(|item| of_kind(item, kind)).collect())?;
            if rest.is_empty() {
                return Ok(());
            }
            parameters.continue_token = Some(rest);
        }
    }

    /// Changes some fields of an object, by a JSON merge patch; `None` where there is none.
    pub(crate) async fn merge(
        &self,
        kind: Kind,
        namespace: Option<&str>,
        name: &str,
        patch: &Value,
        dry_run: DryRun,
    ) -> Result<Option<Value>, Failure> {
        let doing = || format!("patch {} {name}", kind.plural);
        let parameters = patch_parameters(dry_run);
        let request = Request::new(kind.path(namespace)).patch(name, &parameters, &Patch::Merge(patch));
        let request = request.map_err(|error| failed(doing(), kube::Error::BuildRequest(error)))?;
        absent_is_none(self.client.request(request).await).map_err(|error| failed(doing(), error))
    }

    /// Changes an object of the whole cluster by a JSON patch; what came of it.
    pub(crate) async fn patch(
        &self,
        kind: Kind,
        name: &str,
        patch: json_patch::Patch,
        dry_run: DryRun,
    ) -> Result<Patched, Failure> {
        let doing = || format!("patch {} {name}", kind.plural);
        let parameters = patch_parameters(dry_run);
        let request = Request::new(kind.path(None)).patch(name, &parameters, &Patch::<()>::Json(patch));
        let request = request.map_err(|error| failed(doing(), kube::Error::BuildRequest(error)))?;
        patched(self.client.request(request).await).map_err(|error| failed(doing(), error))
    }

    /// Changes the resources of a running pod by a JSON patch; what came of it.
    pub(crate) async fn resize(
        &self,
        namespace: &str,
        name: &str,
        patch: json_patch::Patch,
        dry_run: DryRun,
    ) -> Result<Patched, Failure> {
        let doing = || format!("resize pod {namespace}/{name}");
        let parameters = patch_parameters(dry_run);
        let request = Request::new(kinds::POD.path(Some(namespace)));
        let request = request.patch_subresource("resize", name, &parameters, &Patch::<()>::Json(patch));
        let request = request.map_err(|error| failed(doing(), kube::Error::BuildRequest(error)))?;
        patched(self.client.request(request).await).map_err(|error| failed(doing(), error))
    }

    /// Creates an object; what the API server made of it, or why it refused.
    pub(crate) async fn create(
        &self,
        kind: Kind,
        namespace: Option<&str>,
        object: &Value,
        dry_run: DryRun,
    ) -> Result<Value, Failure> {
        let doing = || format!("create {}", kind.plural);
        let parameters = PostParams { dry_run: dry_run == DryRun::Yes, field_manager: Some(FIELD_MANAGER.to_owned()) };
        let bytes = serde_json::to_vec(object).expect("JSON can be written");
        let request = Request::new(kind.path(namespace)).create(&parameters, bytes);
        let request = request.map_err(|error| failed(doing(), kube::Error::BuildRequest(error)))?;
        self.client.request(request).await.map_err(|error| failed(doing(), error))
    }
}

fn patch_parameters(dry_run: DryRun) -> PatchParams {
    PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        dry_run: dry_run == DryRun::Yes,
        ..PatchParams::default()
    }
}

/// A patch that tests what was read can be applied to it; where it cannot, that has changed.
fn patched(answer: Result<Value, kube::Error>) -> Result<Patched, kube::Error> {
    match answer {
        Ok(object) => Ok(Patched::Done(object)),
        Err(kube::Error::Api(status)) if status.code == NOT_FOUND => Ok(Patched::Outdated),
        Err(kube::Error::Api(status)) if status.code == UNPROCESSABLE && status.message == NOT_APPLICABLE => {
            Ok(Patched::Outdated)
        }
        Err(error) => Err(error),
    }
}

fn failed(doing: String, source: kube::Error) -> Failure {
    Failure::Cluster { doing, source: Box::new(source) }
}

fn absent_is_none(answer: Result<Value, kube::Error>) -> Result<Option<Value>, kube::Error> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.code == NOT_FOUND => Ok(None),
        Err(error) => Err(error),
    }
}

/// Items of a list do not say what they are.
fn of_kind(mut item: Value, kind: Kind) -> Value {
    let fields: &mut Map<String, Value> = match &mut item {
        Value::Object(fields) => fields,
        _ => return item,
    };
    fields.insert("apiVersion".to_owned(), json!(kind.api_version));
    fields.insert("kind".to_owned(), json!(kind.name));
    item
}
