//! The table of pods in `cases.yaml`: each is a good pod with changes. Tests of ours and on a real API server read it.

use json_patch::merge;
use serde::Deserialize;
use serde_json::{Value, json};

/// `cases.yaml`.
#[derive(Deserialize)]
pub(crate) struct Table {
    pub(crate) good: Value,
    pub(crate) cases: Vec<Case>,
}

/// A pod of the table.
#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) name: String,
    #[serde(default = "nothing")]
    spec: Value,
    #[serde(default = "nothing")]
    container: Value,
    #[serde(default = "nothing")]
    init: Value,
    #[serde(default = "nothing")]
    annotations: Value,
    /// The strictest profile that allows it.
    pub(crate) level: String,
    /// What keeps it out of stricter ones.
    #[serde(default)]
    pub(crate) because: Vec<String>,
    /// Whether the API server refuses it whatever the profile.
    #[serde(default)]
    pub(crate) invalid: bool,
}

fn nothing() -> Value {
    json!({})
}

impl Table {
    pub(crate) fn read() -> Self {
        serde_saphyr::from_str(include_str!("cases.yaml")).expect("the table is YAML")
    }

    pub(crate) fn pod(&self, case: &Case) -> Value {
        let mut pod = self.good.clone();
        merge(&mut pod["metadata"]["annotations"], &case.annotations);
        merge(&mut pod["spec"], &case.spec);
        merge(&mut pod["spec"]["containers"][0], &case.container);
        merge(&mut pod["spec"]["initContainers"][0], &case.init);
        pod
    }
}
