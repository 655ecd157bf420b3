//! The envelope: `AdmissionReview` of `admission.k8s.io/v1`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use pillion_pod::Operation;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// What the API server tells a person are at most 256 characters each, and 4 KiB in all.
const MAX_WARNING: usize = 250;
const MAX_WARNINGS: usize = 16;
/// A message longer than this is of no use to anybody.
const MAX_MESSAGE: usize = 4 << 10;
/// The audit log is kept for years.
const MAX_AUDIT: usize = 1 << 10;

/// What the API server asks. The object is not read yet.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request<'a> {
    /// Names this review; the answer repeats it.
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    /// CREATE, UPDATE, DELETE or CONNECT.
    #[serde(borrow)]
    pub operation: Cow<'a, str>,
    /// The namespace, empty for objects of the whole cluster.
    #[serde(borrow, default)]
    pub namespace: Cow<'a, str>,
    /// What kind of object it is about.
    #[serde(borrow)]
    pub resource: Resource<'a>,
    /// The part of it, where it is about one.
    #[serde(borrow, default)]
    pub sub_resource: Option<Cow<'a, str>>,
    /// Whether nothing will come of it.
    #[serde(default)]
    pub dry_run: Option<bool>,
    /// The object as it would be stored.
    #[serde(borrow, default)]
    pub object: Option<&'a RawValue>,
    /// The object as it is stored, for an update.
    #[serde(borrow, default)]
    pub old_object: Option<&'a RawValue>,
}

/// A kind of object.
#[derive(Debug, Deserialize, PartialEq, Eq)]
pub struct Resource<'a> {
    /// Empty for the core group.
    #[serde(borrow, default)]
    pub group: Cow<'a, str>,
    /// The plural.
    #[serde(borrow)]
    pub resource: Cow<'a, str>,
}

/// What is no review we can answer.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It is not JSON, or not of the form of a review.
    #[error("cannot read the AdmissionReview: {0}")]
    Form(#[from] serde_json::Error),
    /// It is of another kind or version.
    #[error("got {0}: send an AdmissionReview of admission.k8s.io/v1")]
    Kind(String),
    /// It has no request, or the request has no object.
    #[error("the AdmissionReview has no {0}")]
    Without(&'static str),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(borrow, default)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    request: Option<Request<'a>>,
}

impl<'a> Request<'a> {
    /// Reads the body of a review.
    pub fn parse(body: &'a [u8]) -> Result<Self, Unreadable> {
        let envelope: Envelope<'a> = serde_json::from_slice(body)?;
        if envelope.api_version != API_VERSION || envelope.kind != KIND {
            return Err(Unreadable::Kind(format!("{} of {}", envelope.kind, envelope.api_version)));
        }
        envelope.request.ok_or(Unreadable::Without("request"))
    }

    /// Whether it is about objects of a kind, and not about a part of them.
    pub fn is_about(&self, group: &str, resource: &str) -> bool {
        let part = self.sub_resource.as_deref().unwrap_or_default();
        part.is_empty() && self.resource.group == group && self.resource.resource == resource
    }

    /// The JSON of the object.
    pub fn object(&self) -> Result<&'a str, Unreadable> {
        self.object.map(RawValue::get).filter(|object| *object != "null").ok_or(Unreadable::Without("object"))
    }

    /// Returns the JSON of the stored object, if there is one.
    pub fn old_object(&self) -> Option<&'a str> {
        self.old_object.map(RawValue::get).filter(|object| *object != "null")
    }
}

/// What the API server is told.
#[derive(Debug, Default, PartialEq)]
pub struct Response {
    refusal: Option<Refusal>,
    patch: Option<Vec<u8>>,
    warnings: Vec<String>,
    audit: BTreeMap<&'static str, String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Refusal {
    code: u16,
    reason: &'static str,
    message: String,
}

impl Response {
    /// Lets the object pass as it is.
    pub fn allowed() -> Self {
        Self::default()
    }

    /// Refuses the object because it may not be so.
    pub fn forbidden(message: &str) -> Self {
        Self::refused(403, "Forbidden", message)
    }

    /// Refuses the object because it is wrong in itself.
    pub fn invalid(message: &str) -> Self {
        Self::refused(422, "Invalid", message)
    }

    fn refused(code: u16, reason: &'static str, message: &str) -> Self {
        let message = shortened(message, MAX_MESSAGE);
        Self { refusal: Some(Refusal { code, reason, message }), ..Self::default() }
    }

    /// Whether the object passes.
    pub fn is_allowed(&self) -> bool {
        self.refusal.is_none()
    }

    /// Whether the object is changed.
    pub fn is_patch(&self) -> bool {
        self.patch.is_some()
    }

    /// Changes the object. No operations change nothing.
    #[must_use]
    pub fn with_patch(mut self, patch: &[Operation]) -> Self {
        if !patch.is_empty() {
            self.patch = Some(serde_json::to_vec(patch).expect("operations are texts and JSON values"));
        }
        self
    }

    /// Tells the person who sent the object. There is room for some.
    #[must_use]
    pub fn with_warnings(mut self, warnings: impl IntoIterator<Item = String>) -> Self {
        let room = MAX_WARNINGS.saturating_sub(self.warnings.len());
        self.warnings.extend(warnings.into_iter().take(room).map(|warning| shortened(&warning, MAX_WARNING)));
        self
    }

    /// Tells the audit log.
    #[must_use]
    pub fn with_audit(mut self, key: &'static str, value: &str) -> Self {
        self.audit.insert(key, shortened(value, MAX_AUDIT));
        self
    }

    /// The body of the answer to a request.
    pub fn to_bytes(&self, uid: &str) -> Vec<u8> {
        let answer = Answer {
            api_version: API_VERSION,
            kind: KIND,
            response: AnswerResponse {
                uid,
                allowed: self.refusal.is_none(),
                status: self.refusal.as_ref(),
                patch_type: self.patch.as_ref().map(|_| "JSONPatch"),
                patch: self.patch.clone().map(ByteString),
                warnings: &self.warnings,
                audit_annotations: &self.audit,
            },
        };
        serde_json::to_vec(&answer).expect("an answer is texts and numbers")
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: AnswerResponse<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AnswerResponse<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a Refusal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<ByteString>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    audit_annotations: &'a BTreeMap<&'static str, String>,
}

/// At most so many bytes, on one line where it is cut.
fn shortened(text: &str, most: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}{MARK}", &text[..text.floor_char_boundary(most - MARK.len())])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn body(change: impl FnOnce(&mut Value)) -> Vec<u8> {
        let mut review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "u-1", "operation": "CREATE", "namespace": "team", "resource": {"group": "", "version": "v1", "resource": "pods"},
            "object": {"metadata": {"name": "p"}}}});
        change(&mut review);
        serde_json::to_vec(&review).unwrap()
    }

    #[test]
    fn a_request_is_read_without_reading_its_object() {
        let bytes = body(|_| {});
        let request = Request::parse(&bytes).unwrap();
        assert_eq!((&*request.uid, &*request.operation, &*request.namespace), ("u-1", "CREATE", "team"));
        assert!(request.is_about("", "pods"));
        assert!(!request.is_about("apps", "pods") && !request.is_about("", "secrets"));
        assert_eq!(request.object().unwrap(), r#"{"metadata":{"name":"p"}}"#);
    }

    #[test]
    fn a_part_of_a_pod_is_no_pod() {
        let bytes = body(|review| review["request"]["subResource"] = "status".into());
        assert!(!Request::parse(&bytes).unwrap().is_about("", "pods"));
    }

    #[test]
    fn what_is_no_review_is_named() {
        let wrong_kind = body(|review| review["kind"] = "Pod".into());
        let no_request = body(|review| review["request"] = Value::Null);
        for (bytes, message) in [
            (wrong_kind, "got Pod of admission.k8s.io/v1: send an AdmissionReview of admission.k8s.io/v1"),
            (no_request, "the AdmissionReview has no request"),
            (b"{".to_vec(), "cannot read the AdmissionReview: EOF while parsing an object at line 1 column 1"),
        ] {
            assert_eq!(Request::parse(&bytes).unwrap_err().to_string(), message);
        }
        let no_object = body(|review| review["request"]["object"] = Value::Null);
        let error = Request::parse(&no_object).unwrap().object().unwrap_err();
        assert_eq!(error.to_string(), "the AdmissionReview has no object");
    }

    #[test]
    fn an_answer_has_only_what_there_is_to_say() {
        let allowed = String::from_utf8(Response::allowed().to_bytes("u-1")).unwrap();
        let start = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":"#;
        assert_eq!(allowed, format!(r#"{start}{{"uid":"u-1","allowed":true}}}}"#));

        let patch = [Operation::Remove { path: "/a".to_owned() }];
        let full = Response::allowed().with_patch(&patch).with_warnings(["w".to_owned()]).with_audit("sets", "a");
        assert_eq!(
            String::from_utf8(full.to_bytes("u-1")).unwrap(),
            format!(
                r#"{start}{{"uid":"u-1","allowed":true,"patchType":"JSONPatch","patch":"W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2EifV0=","warnings":["w"],"auditAnnotations":{{"sets":"a"}}}}}}"#
            )
        );
        let refused = String::from_utf8(Response::forbidden("no").to_bytes("u-1")).unwrap();
        assert_eq!(
            refused,
            format!(
                r#"{start}{{"uid":"u-1","allowed":false,"status":{{"code":403,"reason":"Forbidden","message":"no"}}}}}}"#
            )
        );
    }

    #[test]
    fn no_answer_is_longer_than_the_api_server_takes() {
        let long = "é".repeat(5_000);
        let response =
            Response::forbidden(&long).with_warnings((0..20).map(|_| long.clone())).with_audit("sets", &long);
        assert_eq!(response.refusal.as_ref().unwrap().message.len(), 4095);
        assert_eq!(response.warnings.len(), 16);
        assert!(response.warnings.iter().all(|warning| warning.len() <= 250 && warning.ends_with('…')));
        assert!(response.audit["sets"].len() <= 1024);
    }
}
