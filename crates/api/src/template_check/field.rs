//! A part of a template with its place, read as the API server reads it: null is absent.

use serde_json::Value;

use crate::Reason;
use crate::problem::{Collected, FieldPath, Problem};

/// A value of a template and its path in the SidecarSet.
#[derive(Clone)]
pub(super) struct Field<'a> {
    pub(super) value: &'a Value,
    pub(super) path: FieldPath,
}

impl<'a> Field<'a> {
    pub(super) fn new(value: &'a Value, path: FieldPath) -> Self {
        Self { value, path }
    }

    /// Returns the path of a field below, whether or not the field is present.
    pub(super) fn at(&self, name: &str) -> FieldPath {
        self.path.field(name)
    }

    /// Returns a field below that is present.
    pub(super) fn get(&self, name: &str) -> Option<Self> {
        let value = self.value.get(name).filter(|value| !value.is_null())?;
        Some(Self::new(value, self.at(name)))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns those of the named fields that are present.
    pub(super) fn present<'n>(&self, names: &[&'n str]) -> Vec<&'n str> {
        names.iter().copied().filter(|name| self.has(name)).collect()
    }

    /// Returns the text of a field, which is empty where the field is absent.
    pub(super) fn text(&self, name: &str) -> &'a str {
        self.value.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.value.get(name).and_then(Value::as_i64)
    }

    pub(super) fn is_true(&self, name: &str) -> bool {
        self.value.get(name) == Some(&Value::Bool(true))
    }

    pub(super) fn is_false(&self, name: &str) -> bool {
        self.value.get(name) == Some(&Value::Bool(false))
    }

    /// Returns the items of a list field.
    pub(super) fn items(&self, name: &str) -> impl Iterator<Item = Self> + use<'a> {
        let path = self.at(name);
        let items = self.value.get(name).and_then(Value::as_array).into_iter().flatten();
        items.enumerate().map(move |(at, item)| Self::new(item, path.index(at)))
    }

    /// Returns the entries of a map field.
    pub(super) fn entries(&self, name: &str) -> impl Iterator<Item = (&'a str, Self)> + use<'a> {
        let path = self.at(name);
        let entries = self.value.get(name).and_then(Value::as_object).into_iter().flatten();
        entries.map(move |(key, value)| (key.as_str(), Self::new(value, path.key(key))))
    }

    /// Returns the number of items of a list field.
    pub(super) fn len(&self, name: &str) -> usize {
        self.value.get(name).and_then(Value::as_array).map_or(0, Vec::len)
    }
}

/// The problems of one template.
#[derive(Default)]
pub(super) struct Problems(pub(super) Collected);

impl Problems {
    pub(super) fn error(&mut self, path: FieldPath, message: impl Into<String>, help: impl Into<String>) {
        self.0.push(Problem::error(Reason::InvalidContainer, path, message, help));
    }

    /// Reports a field that is absent or empty.
    pub(super) fn require(&mut self, parent: &Field<'_>, name: &str) {
        let is_empty = match parent.get(name) {
            None => true,
            Some(field) => match field.value {
                Value::String(text) => text.is_empty(),
                Value::Array(items) => items.is_empty(),
                _ => false,
            },
        };
        if is_empty {
            self.error(parent.at(name), "Required value", format!("set {name}"));
        }
    }

    /// Reports a text field whose value is not one of `allowed`. An absent field is accepted.
    pub(super) fn one_of(&mut self, parent: &Field<'_>, name: &str, allowed: &[&str]) {
        let Some(text) = parent.get(name).and_then(|field| field.value.as_str()) else { return };
        if !allowed.contains(&text) {
            let named: Vec<&str> = allowed.iter().copied().filter(|value| !value.is_empty()).collect();
            self.error(
                parent.at(name),
                format!("Unsupported value: {text:?}"),
                format!("use one of {}", named.join(", ")),
            );
        }
    }

    /// Reports a number field that is outside of a range, with both ends included. An absent field is accepted.
    pub(super) fn in_range(&mut self, parent: &Field<'_>, name: &str, low: i64, high: i64) {
        if let Some(number) = parent.number(name).filter(|number| !(low..=high).contains(number)) {
            let message = format!("{number} is not between {low} and {high}");
            self.error(parent.at(name), message, format!("choose a number from {low} to {high}"));
        }
    }

    /// Reports a number field that is negative.
    pub(super) fn not_negative(&mut self, parent: &Field<'_>, name: &str) {
        if let Some(number) = parent.number(name).filter(|number| *number < 0) {
            self.error(parent.at(name), format!("{number} is negative"), "write 0 or more");
        }
    }

    /// Reports a text field that breaks a syntax. An absent or empty field is accepted.
    pub(super) fn syntax(&mut self, parent: &Field<'_>, name: &str, is_valid: fn(&str) -> bool, help: &str) {
        let text = parent.text(name);
        if !text.is_empty() && !is_valid(text) {
            self.error(parent.at(name), format!("{text:?} is invalid"), help);
        }
    }

    /// Reports the fields of which more than one is present. Returns the number of present fields.
    pub(super) fn at_most_one(&mut self, parent: &Field<'_>, names: &[&str], what: &str) -> usize {
        let present = parent.present(names);
        if let [first, second, ..] = present.as_slice() {
            let message = format!("{} {what} are set ({})", present.len(), present.join(", "));
            let problem = Problem::error(
                Reason::InvalidContainer,
                parent.at(second),
                message,
                format!("keep one of them, for example {first}"),
            );
            self.0.push(problem.with_also(parent.at(first)));
        }
        present.len()
    }
}
