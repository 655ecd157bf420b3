//! Which profile of the Pod Security Standards a pod fits, and what an addition to it fits.
//!
//! The profiles are those the API server of Kubernetes 1.36 enforces as `latest`. Older ones differ in two points: hosts of
//! probes are looked at from 1.34 on, and `hostUsers: false` relaxes nothing before 1.35.
//!
//! Every part of a pod is judged by itself, in the setting its spec gives it. So the level of a pod is the lowest among its
//! parts, and an addition lowers it exactly when the addition's own level is lower.
//!
//! Parts are read as they were written; the one default that counts, a volume of no type, is known. The API server refuses
//! values of a wrong type before it asks for profiles. Here a wrong value is a forbidden one, and a wrong list is empty.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

mod container;
mod pod_fields;
mod security_context;
#[cfg(test)]
#[expect(dead_code, reason = "what a real API server refuses anyway is for the tests that ask one")]
mod table;
#[cfg(test)]
mod tests;
mod volume;

/// A profile of the Pod Security Standards; the stricter is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Everything is allowed.
    Privileged,
    /// Known ways to more rights on the node are forbidden.
    Baseline,
    /// What hardens a pod is required.
    Restricted,
}

/// What keeps a pod out of the profiles stricter than `allowed`. Prints what is wrong and the way out.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation<'a> {
    /// The strictest profile that allows it: privileged or baseline.
    pub allowed: Level,
    /// Whose field it is.
    pub part: Part<'a>,
    /// The field, as seen from the container, the volume, or the pod's spec; an annotation is `annotations[key]`.
    pub field: Cow<'static, str>,
    found: Found<'a>,
    way_out: &'static str,
}

/// A part of a pod that is judged by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// The pod's own fields and annotations.
    Pod,
    /// A container of any kind, by name.
    Container(&'a str),
    /// A volume, by name.
    Volume(&'a str),
}

/// Judges all of a pod.
pub fn judge_pod(pod: &Value) -> Vec<Violation<'_>> {
    let spec = &pod["spec"];
    let annotations = pod["metadata"]["annotations"].as_object().into_iter().flatten();
    let containers = ["initContainers", "containers", "ephemeralContainers"].map(|list| items(&spec[list]));
    let mut violations = judge_pod_fields(spec);
    violations.extend(judge_annotations(annotations.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))));
    violations.extend(judge(spec, containers.into_iter().flatten(), items(&spec["volumes"])));
    violations
}

/// Judges these containers and volumes and nothing else. A container inherits what the pod's spec gives to all.
pub fn judge<'a>(
    spec: &Value,
    containers: impl IntoIterator<Item = &'a Value>,
    volumes: impl IntoIterator<Item = &'a Value>,
) -> Vec<Violation<'a>> {
    let mut report = Report::new();
    for container in containers {
        report.part = Part::Container(container["name"].as_str().unwrap_or_default());
        container::judge(container, Setting(spec), &mut report);
    }
    for volume in volumes {
        report.part = Part::Volume(volume["name"].as_str().unwrap_or_default());
        volume::judge(volume, &mut report);
    }
    report.violations
}

/// Judges what a pod's spec says of the pod itself: host namespaces, sysctls, the `securityContext` of all.
pub fn judge_pod_fields(spec: &Value) -> Vec<Violation<'_>> {
    let mut report = Report::new();
    pod_fields::judge(spec, &mut report);
    report.violations
}

/// Judges annotations of a pod: the old way to choose `AppArmor` profiles.
pub fn judge_annotations<'a>(annotations: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Violation<'a>> {
    let mut report = Report::new();
    for (key, value) in annotations {
        pod_fields::judge_annotation(key, value, &mut report);
    }
    report.violations
}

/// The strictest profile that what was judged fits.
pub fn level(violations: &[Violation<'_>]) -> Level {
    violations.iter().map(|violation| violation.allowed).min().unwrap_or(Level::Restricted)
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        })
    }
}

impl fmt::Display for Violation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, field, found, way_out, .. } = self;
        write!(f, "{part}: {field} {found}: {way_out}")
    }
}

impl fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod => write!(f, "pod"),
            Self::Container(name) => write!(f, "container {name}"),
            Self::Volume(name) => write!(f, "volume {name}"),
        }
    }
}

/// What a field was found to be. Rendered only when it is printed: most pods of most clusters are not restricted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Found<'a> {
    Value(&'a Value),
    Text(&'a str),
    Something,
    Nothing,
}

impl<'a> Found<'a> {
    fn of(value: &'a Value) -> Self {
        if value.is_null() { Self::Nothing } else { Self::Value(value) }
    }
}

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => write!(f, "is {value}"),
            Self::Text(text) => write!(f, "is {text:?}"),
            Self::Something => write!(f, "is set"),
            Self::Nothing => write!(f, "is not set"),
        }
    }
}

/// Violations of one part after the other.
struct Report<'a> {
    part: Part<'a>,
    violations: Vec<Violation<'a>>,
}

impl<'a> Report<'a> {
    fn new() -> Self {
        Self { part: Part::Pod, violations: Vec::new() }
    }

    fn add(&mut self, allowed: Level, field: impl Into<Cow<'static, str>>, found: Found<'a>, way_out: &'static str) {
        self.violations.push(Violation { allowed, part: self.part, field: field.into(), found, way_out });
    }
}

/// What the spec of a pod means for its containers.
#[derive(Clone, Copy)]
struct Setting<'s>(&'s Value);

impl Setting<'_> {
    /// Windows has none of what three controls of the restricted profile ask for.
    fn is_windows(self) -> bool {
        self.0["os"]["name"] == "windows"
    }

    /// Root in a user namespace is nobody on the node.
    fn has_user_namespace(self) -> bool {
        self.0["hostUsers"] == false
    }

    fn gives_non_root(self) -> bool {
        self.0["securityContext"]["runAsNonRoot"] == true
    }

    fn gives_seccomp_profile(self) -> bool {
        security_context::is_confined(&self.0["securityContext"]["seccompProfile"])
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn is_one_of(value: &Value, allowed: &[&str]) -> bool {
    value.as_str().is_some_and(|value| allowed.contains(&value))
}

/// Whether a switch that must be off is not.
fn is_on(switch: &Value) -> bool {
    !switch.is_null() && switch != false
}

/// Whether a text that must be empty is not.
fn is_filled(text: &Value) -> bool {
    !text.is_null() && text != ""
}
