//! The record of decisions a pod carries: compact JSON of the sets that matched, capped.
//!
//! ```text
//! {"v":1,"sets":{"mesh":{"code":"PL201","sizes":{"proxy":{"limits.cpu":["600m","300m"]}}},"logs":{"code":"PL204"}}}
//! ```
//!
//! Where sidecars end with the other containers, it says how: `"finish":{"proxy":["PL214"]}`. Where an autoscaler gives a
//! sidecar its size, it says which: `"sizedBy":{"proxy":"web"}`.
//!
//! A size is what the targets came to, and what the sidecar got. A record that would be too long loses first sizes, words
//! and warnings (`"cut":1`), then reservations, how sidecars end, who sizes them, and the last sets (`"cut":2`).

use std::collections::BTreeMap;

use pillion_api::Reason;
use pillion_expr::{Input, Outcome as Computed};
use serde::{Deserialize, Serialize};

use crate::decision::{Ending, Outcome, Verdict};
use crate::size::shown;

/// The most bytes a record has.
pub const MAX_RECORD: usize = 8 << 10;
/// The most bytes of words one set has in it.
const MAX_MESSAGE: usize = 240;
const VERSION: u8 = 1;

/// The record on a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    v: u8,
    /// What was decided, by the name of the set.
    pub sets: BTreeMap<String, Entry>,
    /// How each sidecar is ended, by its name: the reason code, then codes of what there is to know besides.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub finish: BTreeMap<String, Vec<String>>,
    /// Containers of sets that an autoscaler sizes, each with its name.
    #[serde(default, rename = "sizedBy", skip_serializing_if = "BTreeMap::is_empty")]
    pub sized_by: BTreeMap<String, String>,
    /// How much is missing: 0 nothing; 1 sizes, words and warnings; 2 reservations, endings and sets as well.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut: u8,
}

/// What one set decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The reason code.
    pub code: String,
    /// The reservation by which the revision was chosen, if it was by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
    /// Why, in words, where the set was not applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Computed amounts by container and field: what went in, and what came out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sizes: BTreeMap<String, BTreeMap<String, (String, String)>>,
    /// Codes of warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form serde asks for")]
fn is_zero(cut: &u8) -> bool {
    *cut == 0
}

impl Record {
    /// Reads a record; `None` for what is none of ours.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_RECORD {
            return None;
        }
        serde_json::from_str(text).ok().filter(|record: &Self| record.v == VERSION)
    }

    /// Whether there was no room for all sets.
    pub(crate) const fn lacks_sets(&self) -> bool {
        self.cut >= 2
    }

    /// The record of these verdicts. A pod that is reviewed again keeps what was said of it the first time.
    pub(crate) fn of(verdicts: &[Verdict<'_>], endings: &[Ending], earlier: Option<&Self>) -> Self {
        let sets = verdicts.iter().map(|verdict| {
            let entry = match earlier.and_then(|earlier| earlier.entry(verdict)) {
                Some(entry) => entry,
                None => Entry::of(verdict),
            };
            (verdict.set.to_owned(), entry)
        });
        let finish = endings.iter().map(|ending| {
            let warnings = ending.warnings.iter().map(|warning| warning.reason);
            let codes = [ending.reason].into_iter().chain(warnings).map(|reason| reason.code().to_owned());
            (ending.container.clone(), codes.collect())
        });
        let cut = earlier.map_or(0, |earlier| earlier.cut);
        Self { v: VERSION, sets: sets.collect(), finish: finish.collect(), sized_by: BTreeMap::new(), cut }
    }

    /// Says who sizes containers. What was said of one when it came stays.
    pub(crate) fn with_sized(mut self, sized_by: BTreeMap<String, String>, earlier: Option<&Self>) -> Self {
        self.sized_by = sized_by;
        if let Some(earlier) = earlier {
            self.sized_by.extend(earlier.sized_by.clone());
        }
        self
    }

    /// What was said of a set the last time, if the same came of it.
    fn entry(&self, verdict: &Verdict<'_>) -> Option<Entry> {
        match (self.sets.get(verdict.set), verdict.outcome) {
            (_, Outcome::Applied) => None,
            (Some(entry), outcome) => (entry.was_applied() == outcome.is_present()).then(|| entry.clone()),
            // It was cut off, but the pod has what it adds.
            (None, Outcome::Kept) if self.cut > 0 => Some(Entry::bare(Reason::Injected.code())),
            (None, _) => None,
        }
    }

    /// The text for the annotation, at most [`MAX_RECORD`] bytes.
    pub(crate) fn render(mut self) -> String {
        let text = self.text();
        if self.cut == 0 && text.len() <= MAX_RECORD {
            return text;
        }
        self.cut = self.cut.max(1);
        for entry in self.sets.values_mut() {
            *entry = Entry { reservation: entry.reservation.take(), ..Entry::bare(&entry.code) };
        }
        let text = self.text();
        if self.cut == 1 && text.len() <= MAX_RECORD {
            return text;
        }
        self.cut = 2;
        self.finish.clear();
        self.sized_by.clear();
        for entry in self.sets.values_mut() {
            entry.reservation = None;
        }
        let mut over = self.text().len().saturating_sub(MAX_RECORD);
        while over > 0
            && let Some((name, _)) = self.sets.pop_last()
        {
            // The shortest form of an entry, with its comma.
            over = over.saturating_sub(name.len() + r#","":{"code":"PL000"}"#.len());
        }
        self.text()
    }

    fn text(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers can be written as JSON")
    }
}

impl Entry {
    fn of(verdict: &Verdict<'_>) -> Self {
        let mut entry = Self::bare(verdict.reason.code());
        // Of a pod that does not get the set nothing is reserved for long.
        entry.reservation = verdict.reservation.filter(|_| verdict.outcome.is_present()).map(str::to_owned);
        if !verdict.outcome.is_present() {
            entry.why = Some(shortened(&verdict.message));
        }
        for size in &verdict.sizes {
            let resource = size.field.resource;
            let result = match size.result {
                Computed::Amount(amount) => Input::Amount(amount),
                Computed::Unlimited => Input::Unlimited,
            };
            let amounts = (shown(size.input, resource), shown(result, resource));
            entry.sizes.entry(size.container.to_owned()).or_default().insert(size.field.to_string(), amounts);
        }
        let codes: std::collections::BTreeSet<&str> = verdict.warnings.iter().map(|it| it.reason.code()).collect();
        entry.warnings = codes.into_iter().map(str::to_owned).collect();
        entry
    }

    fn bare(code: &str) -> Self {
        Self { code: code.to_owned(), reservation: None, why: None, sizes: BTreeMap::new(), warnings: Vec::new() }
    }

    /// Whether the code says that the pod has the sidecars.
    pub(crate) fn was_applied(&self) -> bool {
        let codes = [Reason::Injected, Reason::OptOutNotAllowed, Reason::AlreadyInjected];
        codes.iter().any(|reason| reason.code() == self.code)
    }
}

fn shortened(message: &str) -> String {
    if message.len() <= MAX_MESSAGE {
        return message.to_owned();
    }
    format!("{}…", &message[..message.floor_char_boundary(MAX_MESSAGE)])
}
