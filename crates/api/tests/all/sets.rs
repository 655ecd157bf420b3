//! The table of sets that are refused, warned about or accepted: `tests/sets.yaml`. Everything that judges sets is asked the
//! same questions: this crate, `pillion lint` and a real API server, whose tests name this file by its path.

use serde::Deserialize;
use serde_json::{Value, json};

/// One line of the table.
#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// Merged over a good set; null removes.
    patch: Value,
    pub(crate) verdict: Verdict,
    /// `schema` if the API server alone must say the same.
    judged_by: Option<String>,
    /// One problem.
    pub(crate) expect: Option<Expected>,
}

#[derive(Deserialize, Debug, PartialEq, Eq, Clone, Copy)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Refused,
    Warned,
    Accepted,
}

/// Reason code, places and part of the message of a problem.
#[derive(Deserialize)]
pub(crate) struct Expected {
    pub(crate) code: String,
    pub(crate) path: String,
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) also: Vec<String>,
}

impl Case {
    pub(crate) fn all() -> Vec<Self> {
        serde_saphyr::from_str(include_str!("../sets.yaml")).expect("the table can be read")
    }

    /// The set it is about.
    pub(crate) fn set(&self) -> Value {
        let mut object = good("good");
        json_patch::merge(&mut object, &self.patch);
        object
    }

    pub(crate) fn is_judged_by_the_schema(&self) -> bool {
        self.judged_by.as_deref() == Some("schema")
    }
}

/// A set nobody has anything to say against.
pub(crate) fn good(name: &str) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "proxy", "image": "proxy:1"}]},
    })
}
