//! From the stored object to what it means, with everything that is wrong with it.

mod finish;
mod metadata;
mod policy;
mod strategy;
mod template;
mod write;

pub(crate) use metadata::{is_label_key, is_label_value};
pub use policy::expression_warnings;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use crate::container::Volume;
use crate::meaning::{Finish, Meaning, Namespaces, Template};
use crate::names::NEVER_REVIEWED;
use crate::problem::{Collected, FieldPath, Problem};
use crate::sidecar_set::SidecarSet;
use crate::{Reason, container::SidecarContainer};
use crate::{revision, schema_check};
pub use write::{MAX_PROBLEMS, ratchet, validate_write};

/// The label that names the custom version of a set's present revision.
pub const CUSTOM_VERSION_LABEL: &str = "apps.kruise.io/sidecarset-custom-version";
const CANARY_ANNOTATIONS: [&str; 2] = ["apps.kruise.io/sidecarset-canary", "apps.kruise.io/sidecarset-base"];
const DEFAULT_HISTORY: i32 = 10;

/// What a SidecarSet means, and what is to be said about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Review {
    /// Absent if the object cannot be used. [`validate_write`] finds further errors, in objects that can.
    pub meaning: Option<Meaning>,
    /// Errors and warnings, in the order of the object's fields where they have one.
    pub problems: Vec<Problem>,
}

impl Review {
    /// The problems the object is refused for.
    pub fn errors(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|problem| problem.is_error())
    }
}

/// Judges a SidecarSet as it was written: the schema, its rules, and what only code can tell.
pub fn review(object: &Value) -> Review {
    let mut reader = Reader { problems: Collected::default() };
    reader.problems.extend(schema_check::check(object));
    // What the schema refuses for its type cannot be read any further; everything else can, so that a person sees all
    // mistakes at once.
    let meaning = match SidecarSet::deserialize(object) {
        Ok(set) => reader.set(&set, &revision_fields(object)),
        Err(error) => {
            if !reader.refuses() {
                let message = format!("the object cannot be read: {error}");
                reader.error(Reason::SchemaViolation, FieldPath::root(), message, "write it as a SidecarSet");
            }
            None
        }
    };
    Review { meaning: meaning.filter(|_| !reader.refuses()), problems: reader.problems.into_vec() }
}

impl SidecarSet {
    /// What the set means, with defaults filled in; or its errors.
    pub fn meaning(&self) -> Result<Meaning, Vec<Problem>> {
        let object = serde_json::to_value(self).unwrap_or_default();
        let Review { meaning, problems } = review(&object);
        meaning.ok_or_else(|| problems.into_iter().filter(Problem::is_error).collect())
    }
}

/// What a pod gets, from the fields a revision covers alone: for the data of a revision.
pub fn template(fields: &Map<String, Value>) -> Result<Template, Vec<Problem>> {
    let mut spec = fields.clone();
    // The rest of a set has no part in it; a revision has none.
    spec.insert("selector".to_owned(), json!({"matchLabels": {"any": "pod"}}));
    let Review { meaning, problems } = review(&json!({"metadata": {}, "spec": spec}));
    let errors = || problems.into_iter().filter(Problem::is_error).collect();
    meaning.map(|meaning| meaning.template).ok_or_else(errors)
}

/// What a revision covers of a set.
fn revision_fields(set: &Value) -> Map<String, Value> {
    set.get("spec").and_then(Value::as_object).map(revision::fields).unwrap_or_default()
}

/// Collects problems on the way; what it returns counts only if none is an error.
struct Reader {
    problems: Collected,
}

impl Reader {
    fn refuses(&self) -> bool {
        self.problems.rejects()
    }

    fn error(&mut self, reason: Reason, path: FieldPath, message: impl Into<String>, help: impl Into<String>) {
        // What the schema has refused need not be refused again.
        if !self.problems.rejects_at(&path) {
            self.problems.push(Problem::error(reason, path, message, help));
        }
    }

    fn warning(&mut self, reason: Reason, path: FieldPath, message: impl Into<String>, help: impl Into<String>) {
        self.problems.push(Problem::warning(reason, path, message, help));
    }

    fn set(&mut self, set: &SidecarSet, revision: &Map<String, Value>) -> Option<Meaning> {
        let (spec, path) = (&set.spec, FieldPath::of("spec"));
        self.canary(set);
        let selector = self.selector(&spec.selector, &path.field("selector"));
        let namespaces = match (&spec.namespace, &spec.namespace_selector) {
            (Some(name), _) => Some(Namespaces::Named(name.clone())),
            (None, Some(stored)) => self.selector(stored, &path.field("namespaceSelector")).map(Namespaces::Selected),
            (None, None) => Some(Namespaces::All),
        };
        if spec.namespace.as_deref() == Some(NEVER_REVIEWED) {
            self.warning(
                Reason::ExcludedNamespace,
                path.field("namespace"),
                format!("pods of {NEVER_REVIEWED} are never changed, so that a cluster can always start"),
                "choose another namespace",
            );
        }
        let template = self.template(spec, &path);
        let finish = spec.finish.as_ref();
        let finish = Finish {
            mode: finish.and_then(|finish| finish.mode).unwrap_or_default(),
            watch: finish.and_then(|finish| finish.watch).unwrap_or_default(),
        };
        self.finish(spec, finish, &path.field("containers"));
        let update = self.update(spec.update_strategy.as_ref(), &path.field("updateStrategy"));
        let labels = set.metadata.labels.as_ref();
        let name = set.metadata.name.clone().unwrap_or_default();
        Some(Meaning {
            revision: revision::name(&name, revision),
            name,
            custom_version: labels.and_then(|labels| labels.get(CUSTOM_VERSION_LABEL)).cloned(),
            selector: selector?,
            namespaces: namespaces?,
            template,
            failure_policy: spec.failure_policy.unwrap_or_default(),
            mode: spec.mode.unwrap_or_default(),
            finish,
            allow_opt_out: spec.allow_opt_out.unwrap_or_default(),
            injection: strategy::injection(spec.inject_strategy.as_ref(), spec.injection_strategy.as_ref()),
            update: update?,
            revision_history_limit: spec.revision_history_limit.unwrap_or(DEFAULT_HISTORY).max(1).unsigned_abs(),
        })
    }

    fn canary(&mut self, set: &SidecarSet) {
        for key in CANARY_ANNOTATIONS {
            if set.metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(key)) {
                self.error(
                    Reason::NotSupported,
                    FieldPath::of("metadata.annotations").key(key),
                    "canary and base sets are not supported",
                    "remove the annotation; updateStrategy.partition and injectStrategy.revision make canaries of one set",
                );
            }
        }
    }
}

/// Names of the volumes of a set.
fn volume_names(volumes: Option<&Vec<Volume>>) -> Vec<&str> {
    volumes.into_iter().flatten().filter_map(Volume::name).collect()
}

/// Names of the volumes a container mounts, each with its place below the container.
fn mounted<'a>(container: &'a SidecarContainer, path: &FieldPath) -> Vec<(FieldPath, &'a str)> {
    let mut found = Vec::new();
    for list in ["volumeMounts", "volumeDevices"] {
        let items = container.0.get(list).and_then(Value::as_array).into_iter().flatten();
        for (at, item) in items.enumerate() {
            if let Some(name) = item.get("name").and_then(Value::as_str) {
                found.push((path.field(list).index(at).field("name"), name));
            }
        }
    }
    found
}
