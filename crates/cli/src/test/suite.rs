//! A suite as it is written.
//!
//! ```yaml
//! name: mesh
//! cases:
//!   - name: an app gets its proxy
//!     workload: app.yaml              # a file, or the object itself
//!     sets: [mesh.yaml]               # files or folders: sets, namespaces, limit ranges
//!     namespace: {name: shop, labels: {tier: prod}}
//!     limitRange: sizes.yaml          # a file, or the object itself
//!     expect: expected/app.yaml       # the pod; or `refused: PL301`
//!     verdicts: {mesh: PL201}
//! ```

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use pillion_api::{FieldPath, Reason};
use serde_json::{Map, Value};

use super::beside;
use crate::manifest::{self, Manifest};

const SUITE_FIELDS: &[&str] = &["name", "cases"];
const CASE_FIELDS: &[&str] = &["name", "workload", "sets", "namespace", "limitRange", "expect", "refused", "verdicts"];
const NAMESPACE_FIELDS: &[&str] = &["name", "labels"];

/// A file of cases.
pub(super) struct Suite {
    /// The file, as it is shown.
    pub(super) file: String,
    pub(super) name: String,
    pub(super) cases: Vec<Case>,
}

/// A workload with its surroundings, and what must come of it.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) workload: Source,
    pub(super) sets: Vec<PathBuf>,
    /// Namespace of objects that name none.
    pub(super) namespace: Option<String>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) limit_range: Option<Source>,
    /// The file with the expected pod.
    pub(super) expect: Option<PathBuf>,
    /// Why the pod must be refused.
    pub(super) refused: Option<Reason>,
    /// What sets must decide.
    pub(super) verdicts: BTreeMap<String, Reason>,
}

/// Where an object is.
pub(super) enum Source {
    File(PathBuf),
    Inline(Manifest),
}

impl Source {
    fn file(&self) -> Option<&PathBuf> {
        match self {
            Self::File(path) => Some(path),
            Self::Inline(_) => None,
        }
    }
}

impl Suite {
    /// Reads a suite; the inner error is what is wrong with it, each with its place.
    pub(super) fn read(path: &Path) -> io::Result<Result<Self, Vec<String>>> {
        let manifests = manifest::read(std::slice::from_ref(&path.to_owned()))?;
        let manifest = match manifests.as_slice() {
            [manifest] => manifest,
            [] => return Ok(Err(vec![format!("{}:1:1: a suite needs a name and cases", path.display())])),
            [_, second, ..] => {
                let place = second.place(&FieldPath::root());
                let (line, column) = (place.line, place.column);
                return Ok(Err(vec![format!("{}:{line}:{column}: a suite is one document", path.display())]));
            }
        };
        let mut reader = Reader { manifest, path, errors: Vec::new() };
        let suite = reader.suite();
        Ok(suite.filter(|_| reader.errors.is_empty()).ok_or(reader.errors))
    }
}

/// Reads field by field; what it returns counts only if there are no errors.
struct Reader<'m> {
    manifest: &'m Manifest,
    path: &'m Path,
    errors: Vec<String>,
}

impl<'m> Reader<'m> {
    fn error(&mut self, path: &FieldPath, message: &str) {
        let place = self.manifest.key_place(path);
        self.errors.push(format!("{}:{}:{}: {message}", self.manifest.file, place.line, place.column));
    }

    fn suite(&mut self) -> Option<Suite> {
        let root = FieldPath::root();
        let fields = self.object(&root, Some(&self.manifest.value), "a suite", SUITE_FIELDS)?;
        let name = self.text(&root, fields, "name");
        let place = root.field("cases");
        let written = match fields.get("cases") {
            Some(Value::Array(items)) if !items.is_empty() => items,
            Some(Value::Array(_) | Value::Null) | None => {
                self.error(&place, "a suite needs at least one case");
                return None;
            }
            Some(_) => {
                self.error(&place, "cases must be a list");
                return None;
            }
        };
        let mut cases: Vec<Case> = Vec::new();
        for (at, case) in written.iter().enumerate() {
            let place = place.index(at);
            let Some(case) = self.case(&place, case) else { continue };
            if cases.iter().any(|earlier| earlier.name == case.name) {
                self.error(&place.field("name"), &format!("two cases are named {:?}", case.name));
            }
            if case.expect.is_some() && cases.iter().any(|earlier| earlier.expect == case.expect) {
                self.error(&place.field("expect"), "another case has the same file: --update could not write both");
            }
            cases.push(case);
        }
        Some(Suite { file: self.manifest.file.clone(), name: name?, cases })
    }

    fn case(&mut self, path: &FieldPath, written: &'m Value) -> Option<Case> {
        let fields = self.object(path, Some(written), "a case", CASE_FIELDS)?;
        let name = self.text(path, fields, "name");
        if !fields.contains_key("workload") {
            self.error(path, "a case needs a workload: a file, or the object itself");
        }
        let workload = self.source(path, fields, "workload");
        let sets = self.sets(&path.field("sets"), fields.get("sets"));
        let (namespace, labels) = self.namespace(path, fields);
        let limit_range = self.source(path, fields, "limitRange");
        let expect = self.optional_text(path, fields, "expect").map(|file| beside(self.path, &file));
        let refused = self.optional_text(path, fields, "refused");
        let refused = refused.and_then(|code| self.reason(&path.field("refused"), &code));
        let verdicts = self.verdicts(&path.field("verdicts"), fields.get("verdicts"));
        match (fields.contains_key("expect"), fields.contains_key("refused"), fields.contains_key("verdicts")) {
            (true, true, _) => {
                self.error(&path.field("refused"), "a refused pod is none to expect: keep one of the two");
            }
            (false, false, false) => self.error(path, "a case needs expect, refused or verdicts"),
            _ => {}
        }
        let is_read = |expect: &PathBuf| {
            let objects = [workload.as_ref(), limit_range.as_ref()];
            let mut files = objects.into_iter().flatten().filter_map(Source::file).chain(&sets);
            files.any(|file| file == expect)
        };
        if expect.as_ref().is_some_and(is_read) {
            self.error(&path.field("expect"), "the file is one the case reads: --update would overwrite it");
        }
        Some(Case { name: name?, workload: workload?, sets, namespace, labels, limit_range, expect, refused, verdicts })
    }

    fn sets(&mut self, path: &FieldPath, written: Option<&'m Value>) -> Vec<PathBuf> {
        let items = match written {
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(_) => {
                self.error(path, "sets must be a list of files or folders");
                return Vec::new();
            }
        };
        let mut found = Vec::new();
        for (at, item) in items.iter().enumerate() {
            match item.as_str() {
                Some(file) => found.push(beside(self.path, file)),
                None => self.error(&path.index(at), "a set is named by its file"),
            }
        }
        found
    }

    fn namespace(
        &mut self,
        path: &FieldPath,
        fields: &'m Map<String, Value>,
    ) -> (Option<String>, BTreeMap<String, String>) {
        let path = path.field("namespace");
        let written = fields.get("namespace");
        let Some(fields) = written.and_then(|it| self.object(&path, Some(it), "a namespace", NAMESPACE_FIELDS)) else {
            return (None, BTreeMap::new());
        };
        let name = self.text(&path, fields, "name");
        let labels = self.texts(&path.field("labels"), fields.get("labels"));
        (name, labels)
    }

    fn verdicts(&mut self, path: &FieldPath, written: Option<&'m Value>) -> BTreeMap<String, Reason> {
        let texts = self.texts(path, written);
        let read = |(set, code): (String, String)| Some((set.clone(), self.reason(&path.key(&set), &code)?));
        texts.into_iter().filter_map(read).collect()
    }

    fn reason(&mut self, path: &FieldPath, code: &str) -> Option<Reason> {
        match code.parse() {
            Ok(reason) => Some(reason),
            Err(error) => {
                self.error(path, &format!("{error}"));
                None
            }
        }
    }

    /// An object with no other fields than these.
    fn object(
        &mut self,
        path: &FieldPath,
        written: Option<&'m Value>,
        what: &str,
        known: &[&str],
    ) -> Option<&'m Map<String, Value>> {
        let Some(fields) = written.and_then(Value::as_object) else {
            self.error(path, &format!("{what} has the fields {}", known.join(", ")));
            return None;
        };
        for name in fields.keys().filter(|name| !known.contains(&name.as_str())) {
            let message = format!("{what} has no field {name:?}, only {}", known.join(", "));
            self.error(&path.field(name), &message);
        }
        Some(fields)
    }

    fn text(&mut self, path: &FieldPath, fields: &Map<String, Value>, name: &str) -> Option<String> {
        if fields.get(name).is_none_or(Value::is_null) {
            self.error(path, &format!("{name} is missing"));
            return None;
        }
        self.optional_text(path, fields, name)
    }

    fn optional_text(&mut self, path: &FieldPath, fields: &Map<String, Value>, name: &str) -> Option<String> {
        match fields.get(name)? {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            _ => {
                self.error(&path.field(name), &format!("{name} must be a text"));
                None
            }
        }
    }

    fn texts(&mut self, path: &FieldPath, written: Option<&'m Value>) -> BTreeMap<String, String> {
        let fields = match written {
            None | Some(Value::Null) => return BTreeMap::new(),
            Some(Value::Object(fields)) => fields,
            Some(_) => {
                self.error(path, "names and texts are meant here, such as a: b");
                return BTreeMap::new();
            }
        };
        let mut found = BTreeMap::new();
        for (key, value) in fields {
            match value.as_str() {
                Some(value) => drop(found.insert(key.clone(), value.to_owned())),
                None => self.error(&path.key(key), &format!("{key} must be a text: put it in quotes")),
            }
        }
        found
    }

    fn source(&mut self, path: &FieldPath, fields: &Map<String, Value>, name: &str) -> Option<Source> {
        let path = path.field(name);
        match fields.get(name)? {
            Value::String(file) if !file.is_empty() => Some(Source::File(beside(self.path, file))),
            Value::Object(_) => self.manifest.within(&path).map(Source::Inline),
            _ => {
                self.error(&path, &format!("{name} must be a file, or the object itself"));
                None
            }
        }
    }
}
