//! Kubernetes manifests from files, folders and stdin: what kubectl would send, and where each field was written.

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::{fs, str, thread};

use pillion_api::{FieldPath, Segment};
use pillion_yaml::{Limits, Node, STACK_PER_LEVEL, Source, Step, Wrong};
use serde_json::Value;

#[cfg(test)]
mod tests;

pub(crate) use pillion_yaml::Place;

const STDIN: &str = "-";
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// Deeper than any Kubernetes object, large enough for the output of a large chart; a file above it is no manifest.
pub(crate) const LIMITS: Limits = Limits { depth: 100, values: 2_000_000, anchored: 100_000 };

/// One object of a file.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    /// The file, as it is shown to people.
    pub(crate) file: String,
    /// The object.
    pub(crate) value: Value,
    node: Node,
    source: Rc<Source>,
}

/// Why manifests could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// A file or folder cannot be opened.
    #[error("cannot read {file}")]
    Unreadable {
        /// The file, or `<stdin>`.
        file: String,
        /// What the system says.
        source: io::Error,
    },
    /// A file holds something else than text.
    #[error("{file} is not UTF-8 text: save it as UTF-8")]
    NotText {
        /// The file, or `<stdin>`.
        file: String,
    },
    /// A text is not YAML.
    #[error("{file}:{line}:{column}: {message}")]
    Syntax {
        /// The file, or `<stdin>`.
        file: String,
        /// Counted from 1.
        line: usize,
        /// Counted from 1, in characters.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// A folder has nothing to read.
    #[error("{folder} has no file that ends in .yaml, .yml or .json: name another folder, or a file")]
    EmptyFolder {
        /// The folder.
        folder: String,
    },
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        Self::other(error)
    }
}

impl Manifest {
    /// What kind of object it is; empty where it does not say.
    pub(crate) fn kind(&self) -> &str {
        self.text("/kind")
    }

    /// Group and version, such as `apps/v1`.
    pub(crate) fn api_version(&self) -> &str {
        self.text("/apiVersion")
    }

    /// The object's name.
    pub(crate) fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// The object's namespace; empty where it does not say.
    #[cfg_attr(not(test), expect(dead_code, reason = "sets have none; the pods of later verbs do"))]
    pub(crate) fn namespace(&self) -> &str {
        self.text("/metadata/namespace")
    }

    fn text(&self, pointer: &str) -> &str {
        self.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// Where a field is: its value if that stands on a line of its own text, else its key. Of a field that does not exist,
    /// the nearest parent that does.
    pub(crate) fn place(&self, path: &FieldPath) -> Place {
        self.source.place(self.node.nearest(steps(path)).0.pointed(&self.source))
    }

    /// Where a field's key is; the same as its place where it has none.
    pub(crate) fn key_place(&self, path: &FieldPath) -> Place {
        match self.node.nearest(steps(path)) {
            (Node { key: Some(key), .. }, true) => self.source.place(*key),
            (node, _) => self.source.place(node.pointed(&self.source)),
        }
    }

    /// Whether a field exists.
    pub(crate) fn has(&self, path: &FieldPath) -> bool {
        self.node.nearest(steps(path)).1
    }

    /// Where a part of a field's text is, from one byte of the text to another; at least the field's place.
    pub(crate) fn part(&self, path: &FieldPath, text: &str, start: usize, end: usize) -> Place {
        let (node, exact) = self.node.nearest(steps(path));
        let found = exact.then(|| self.source.part(node.at, text, start, end)).flatten();
        found.unwrap_or_else(|| self.place(path))
    }

    /// An object that stands within this one.
    pub(crate) fn within(&self, path: &FieldPath) -> Option<Self> {
        let value = path.segments().iter().try_fold(&self.value, |value, segment| match segment {
            Segment::Field(name) | Segment::Key(name) => value.get(name),
            Segment::Index(at) => value.get(at),
        })?;
        let (node, _) = self.node.nearest(steps(path));
        Some(Self {
            file: self.file.clone(),
            value: value.clone(),
            node: node.clone(),
            source: Rc::clone(&self.source),
        })
    }

    /// A line of the file, counted from 1, without its end.
    pub(crate) fn line(&self, number: usize) -> &str {
        self.source.line(number)
    }
}

/// Reads files, folders with all folders below, and `-` for stdin, in the order given; lists are taken apart.
///
/// Hidden files of a folder, and folders that are links, are left out.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Manifest>, ReadError> {
    let mut manifests = Vec::new();
    for path in paths {
        if path == Path::new(STDIN) {
            let mut bytes = Vec::new();
            let file = "<stdin>".to_owned();
            if let Err(source) = io::stdin().read_to_end(&mut bytes) {
                return Err(ReadError::Unreadable { file, source });
            }
            manifests.extend(parse(&file, &bytes)?);
            continue;
        }
        for file in files(path)? {
            let bytes = fs::read(&file).map_err(unreadable(&file))?;
            manifests.extend(parse(&shown(&file), &bytes)?);
        }
    }
    Ok(manifests)
}

/// The objects of one file.
pub(crate) fn parse(file: &str, bytes: &[u8]) -> Result<Vec<Manifest>, ReadError> {
    let (text, documents) = nodes(file, bytes)?;
    let source = Rc::new(Source::new(text));
    let objects = documents.into_iter().flat_map(|(value, node)| without_list(value, node));
    Ok(objects
        .map(|(value, node)| Manifest { file: file.to_owned(), value, node, source: Rc::clone(&source) })
        .collect())
}

/// The objects of one file as they stand there, lists whole.
pub(crate) fn values(file: &str, bytes: &[u8]) -> Result<Vec<Value>, ReadError> {
    Ok(nodes(file, bytes)?.1.into_iter().map(|(value, _)| value).collect())
}

/// The text of one file, and its documents.
type Text<'t> = (&'t str, Vec<(Value, Node)>);

fn nodes<'t>(file: &str, bytes: &'t [u8]) -> Result<Text<'t>, ReadError> {
    let text = str::from_utf8(bytes).map_err(|_| ReadError::NotText { file: file.to_owned() })?;
    // Editors of Windows put a mark first, which is no part of the text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let documents = with_stack(LIMITS.depth, || pillion_yaml::documents(text, LIMITS)).map_err(|error| {
        let Wrong { line, column, message } = error;
        ReadError::Syntax { file: file.to_owned(), line, column, message }
    })?;
    Ok((text, documents))
}

/// Reading takes a lot of stack for each level, and how much there is here is not ours to say.
pub(crate) fn with_stack<T: Send>(depth: usize, read: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let reader = thread::Builder::new().stack_size(depth * STACK_PER_LEVEL).spawn_scoped(scope, read);
        reader.expect("a thread can be started").join().expect("reading YAML does not panic")
    })
}

fn steps(path: &FieldPath) -> impl Iterator<Item = Step<'_>> {
    path.segments().iter().map(|segment| match segment {
        Segment::Field(name) | Segment::Key(name) => Step::Field(name),
        Segment::Index(at) => Step::Index(*at),
    })
}

/// The items of a list, as `kubectl get -o yaml` prints one; of anything else, itself.
fn without_list(mut value: Value, mut node: Node) -> Vec<(Value, Node)> {
    let is_list = value.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
    match value.get_mut("items").filter(|_| is_list).map(Value::take) {
        Some(Value::Array(items)) => items.into_iter().zip(node.take_items("items")).collect(),
        Some(other) => {
            value["items"] = other;
            vec![(value, node)]
        }
        None => vec![(value, node)],
    }
}

/// A file itself; of a folder the manifests in it, by path.
fn files(path: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let found = files_below(path, |file| file.extension().and_then(OsStr::to_str).is_some_and(is_manifest))?;
    if found.is_empty() { Err(ReadError::EmptyFolder { folder: path.display().to_string() }) } else { Ok(found) }
}

/// A file itself; of a folder the files of a kind in it and in all folders below, by path. What is hidden, and folders
/// that are links, are left out.
pub(crate) fn files_below(path: &Path, is_wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, ReadError> {
    if !fs::metadata(path).map_err(unreadable(path))?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(unreadable(&folder))? {
            let entry = entry.map_err(unreadable(&folder))?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(unreadable(&entry.path()))?);
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if kind.is_dir() {
                folders.push(path);
            } else if path.is_file() && is_wanted(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn is_manifest(extension: &str) -> bool {
    EXTENSIONS.contains(&extension)
}

/// Those who follow a path from the root of a repository do not know of `./`.
fn shown(path: &Path) -> String {
    path.strip_prefix(".").unwrap_or(path).display().to_string()
}

fn unreadable(path: &Path) -> impl Fn(io::Error) -> ReadError + use<> {
    let file = shown(path);
    move |source| ReadError::Unreadable { file: file.clone(), source }
}
