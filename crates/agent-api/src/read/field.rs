//! Values of a configuration, fetched by the keys of a table; what does not fit is noted with its place.

use std::collections::BTreeMap;

use pillion_quantity::Quantity;
use pillion_yaml::{Below, Node, Place};
use serde_json::Value;

use crate::keys::{Holds, Key, Need};
use crate::origin::Origin;
use crate::variables::{Filled, fill};
use crate::{Problem, Repair, Severity, Variables};

/// A configuration that is wrong in more places than this is wrong as a whole. Warnings are counted apart.
const MAX_PROBLEMS: usize = 100;

/// Notes what is found.
pub(super) struct Reader<'o> {
    origin: &'o Origin,
    variables: Option<&'o Variables>,
    pub(super) problems: Vec<Problem>,
    pub(super) repairs: Vec<Repair>,
    /// What was given as boot order of the plugin that is being read, wherever it stood.
    pub(super) boot_order: Vec<i64>,
}

/// A value with its place.
#[derive(Clone)]
pub(super) struct Entry<'v> {
    pub(super) value: &'v Value,
    node: &'v Node,
    pub(super) path: String,
}

/// A map whose keys are those of a table.
pub(super) struct Object<'v> {
    /// Where it is.
    pub(super) entry: Entry<'v>,
    table: &'static [Key],
    fields: BTreeMap<&'static str, Entry<'v>>,
}

/// A text with its variables replaced.
pub(super) struct Text<'v> {
    pub(super) value: String,
    /// Whether it holds variables that nobody has a value for yet, so that nothing can be said about it.
    pub(super) is_open: bool,
    pub(super) entry: Entry<'v>,
}

impl<'v> Entry<'v> {
    pub(super) fn root(value: &'v Value, node: &'v Node) -> Self {
        Self { value, node, path: String::new() }
    }

    fn field(&self, key: &'v str) -> Option<Self> {
        let Below::Fields(nodes) = &self.node.below else { return None };
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Some(Self { value: self.value.get(key)?, node: nodes.get(key)?, path })
    }

    fn items(&self) -> Vec<Self> {
        let (Value::Array(values), Below::Items(nodes)) = (self.value, &self.node.below) else { return Vec::new() };
        let pairs = values.iter().zip(nodes).enumerate();
        pairs.map(|(at, (value, node))| Self { value, node, path: format!("{}[{at}]", self.path) }).collect()
    }

    /// The entries of a map whose keys the author chooses.
    pub(super) fn pairs(&self) -> Vec<(&'v str, Self)> {
        let Value::Object(fields) = self.value else { return Vec::new() };
        fields.keys().filter_map(|key| Some((key.as_str(), self.field(key)?))).collect()
    }
}

impl<'v> Object<'v> {
    pub(super) fn get(&self, name: &str) -> Option<&Entry<'v>> {
        self.fields.get(name)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    fn key(&self, name: &str) -> &'static Key {
        self.table.iter().find(|key| key.name == name).expect("the reader asks for keys of its table")
    }
}

impl<'o> Reader<'o> {
    pub(super) fn new(origin: &'o Origin, variables: Option<&'o Variables>) -> Self {
        Self { origin, variables, problems: Vec::new(), repairs: Vec::new(), boot_order: Vec::new() }
    }

    pub(super) fn error(&mut self, entry: &Entry<'_>, message: impl Into<String>, help: impl Into<String>) {
        self.note(Severity::Error, entry, message.into(), help.into(), |origin| origin.place_of(entry.node));
    }

    pub(super) fn warning(&mut self, entry: &Entry<'_>, message: impl Into<String>, help: impl Into<String>) {
        self.note(Severity::Warning, entry, message.into(), help.into(), |origin| origin.place_of(entry.node));
    }

    /// An error of a key, not of its value.
    pub(super) fn error_at_key(&mut self, entry: &Entry<'_>, message: impl Into<String>, help: impl Into<String>) {
        self.note(Severity::Error, entry, message.into(), help.into(), |origin| match entry.node.key {
            Some(key) => origin.place(key),
            None => origin.place_of(entry.node),
        });
    }

    fn note(
        &mut self,
        severity: Severity,
        entry: &Entry<'_>,
        message: String,
        help: String,
        place: impl FnOnce(&Origin) -> Place,
    ) {
        let alike = self.problems.iter().filter(|problem| problem.severity == severity).count();
        // Finding a place costs a look at the whole text.
        if alike < MAX_PROBLEMS {
            let (path, Place { line, column, length }) = (entry.path.clone(), place(self.origin));
            self.problems.push(Problem { severity, line, column, length, path, message, help });
        }
    }

    /// A map with the keys of a table, whatever their case; other keys are noted.
    pub(super) fn object<'v>(&mut self, entry: &Entry<'v>, table: &'static [Key]) -> Option<Object<'v>> {
        let Value::Object(values) = entry.value else {
            let names: Vec<_> = shown(table).collect();
            let message = format!("must be a map, and is {}", kind_of(entry.value));
            self.error(entry, message, format!("write its keys below it: {}", names.join(", ")));
            return None;
        };
        let mut object = Object { entry: entry.clone(), table, fields: BTreeMap::new() };
        for written in values.keys() {
            let Some(field) = entry.field(written) else { continue };
            let Some(key) = table.iter().find(|key| spellings(key).any(|it| it.eq_ignore_ascii_case(written))) else {
                self.unknown(&field, written, table);
                continue;
            };
            if let Holds::Refused(why) = key.holds {
                self.error_at_key(&field, format!("{written} is not supported: {why}"), "remove it");
                continue;
            }
            // A key with nothing behind it, as where all below it is a comment, is not given.
            if field.value.is_null() {
                continue;
            }
            if object.fields.insert(key.name, field.clone()).is_some() {
                self.error_at_key(&field, format!("{} is given twice, in two spellings", key.name), "remove one");
            }
        }
        self.required(&object);
        Some(object)
    }

    /// What stands for a map that is not given; what it would have to hold is missing.
    pub(super) fn missing<'v>(&mut self, within: &Entry<'v>, name: &str, table: &'static [Key]) -> Object<'v> {
        let path = format!("{}.{name}", within.path);
        let object = Object { entry: Entry { path, ..within.clone() }, table, fields: BTreeMap::new() };
        self.required(&object);
        object
    }

    fn required(&mut self, object: &Object<'_>) {
        for key in object.table.iter().filter(|key| key.need == Need::Required && !object.has(key.name)) {
            self.error(&object.entry, format!("{} is missing", key.name), format!("give it: {}", key.meaning));
        }
    }

    fn unknown(&mut self, field: &Entry<'_>, written: &str, table: &'static [Key]) {
        let near = shown(table).map(|name| (distance(name, written), name)).min();
        let help = match near {
            Some((distance, near)) if distance * 2 <= near.len().max(2) => format!("did you mean {near}?"),
            _ => format!("use one of {}", shown(table).collect::<Vec<_>>().join(", ")),
        };
        self.error_at_key(field, format!("unknown key {written}"), help);
    }

    /// The map below a key.
    pub(super) fn child<'v>(&mut self, object: &Object<'v>, name: &str) -> Option<Object<'v>> {
        let Holds::Object(table) = object.key(name).holds else { unreachable!("{name} is an object in its table") };
        self.object(object.get(name)?, table)
    }

    /// The items of the list below a key; at least one.
    pub(super) fn items<'v>(&mut self, object: &Object<'v>, name: &str) -> Vec<Entry<'v>> {
        let Some(entry) = object.get(name) else { return Vec::new() };
        if !entry.value.is_array() {
            let message = format!("must be a list, and is {}", kind_of(entry.value));
            self.error(entry, message, "begin each of its items with a dash");
            return Vec::new();
        }
        let items = entry.items();
        if items.is_empty() {
            self.error(entry, format!("{name} is empty"), "give at least one item, or remove it");
        }
        items
    }

    /// A text; its default where it has one.
    pub(super) fn text<'v>(&mut self, object: &Object<'v>, name: &str) -> Option<Text<'v>> {
        let key = object.key(name);
        let Some(entry) = object.get(name) else {
            let Need::Default(default) = key.need else { return None };
            return self.filled(default, &object.entry);
        };
        let text = self.text_of(entry)?;
        if matches!(key.holds, Holds::FixedText) {
            return self.fixed(text);
        }
        Some(text)
    }

    /// The text of a value.
    pub(super) fn text_of<'v>(&mut self, entry: &Entry<'v>) -> Option<Text<'v>> {
        let Value::String(text) = entry.value else {
            let message = format!("must be a text, and is {}", kind_of(entry.value));
            let help = match entry.value {
                Value::Number(_) | Value::Bool(_) => format!("write it in quotes: \"{}\"", entry.value),
                _ => "write a text".to_owned(),
            };
            self.error(entry, message, help);
            return None;
        };
        self.filled(text, entry)
    }

    fn filled<'v>(&mut self, text: &str, entry: &Entry<'v>) -> Option<Text<'v>> {
        match fill(text, self.variables) {
            Ok(Filled { text: value, had_variables }) => {
                let is_open = had_variables && self.variables.is_none();
                Some(Text { value, is_open, entry: entry.clone() })
            }
            Err(wrong) => {
                self.note(Severity::Error, entry, wrong.message, wrong.help, |origin| {
                    origin.part(entry.node, text, wrong.start, wrong.end)
                });
                None
            }
        }
    }

    /// A text that was written out.
    fn fixed<'v>(&mut self, text: Text<'v>) -> Option<Text<'v>> {
        let written = text.entry.value.as_str().unwrap_or_default();
        if !fill(written, None).is_ok_and(|filled| filled.had_variables) {
            return Some(text);
        }
        let help = "write it out: what agents may do is made from it before there is any pod";
        self.error(&text.entry, "must not hold a variable", help);
        None
    }

    /// One of the texts a key allows, in any letter case.
    pub(super) fn choice(&mut self, object: &Object<'_>, name: &str) -> Option<&'static str> {
        let key = object.key(name);
        let Holds::OneOf(choices) = key.holds else { unreachable!("{name} is a choice in its table") };
        let Some(entry) = object.get(name) else {
            let Need::Default(default) = key.need else { return None };
            return Some(default);
        };
        let text = self.text_of(entry)?;
        let chosen = choices.iter().find(|choice| choice.eq_ignore_ascii_case(&text.value));
        if chosen.is_none() {
            let near = choices.iter().map(|choice| (distance(choice, &text.value), *choice)).min();
            let help = match near {
                Some((distance, near)) if distance * 2 <= near.len() => format!("did you mean {near}?"),
                _ => format!("use one of {}", choices.join(", ")),
            };
            self.error(entry, format!("cannot be {:?}", text.value), help);
        }
        chosen.copied()
    }

    /// A whole number within the bounds of its key; its default where it has one.
    pub(super) fn number<T: TryFrom<i64>>(&mut self, object: &Object<'_>, name: &str) -> Option<T> {
        let key = object.key(name);
        let (Holds::Number(least, most), entry) = (key.holds, object.get(name)) else {
            unreachable!("{name} is a number in its table")
        };
        let default = match key.need {
            Need::Default(text) => text.parse().ok(),
            Need::Required | Need::Optional => None,
        };
        let number = match entry {
            None => default?,
            Some(entry) => self.whole(entry, least, most).or(default)?,
        };
        T::try_from(number).ok()
    }

    /// A number from one to another. A variable may stand for one.
    pub(super) fn whole(&mut self, entry: &Entry<'_>, least: i64, most: i64) -> Option<i64> {
        let number = match entry.value {
            Value::Number(number) => number.as_i64(),
            Value::String(text) if text.contains("${") => {
                let text = self.text_of(entry)?;
                if text.is_open {
                    return None;
                }
                text.value.parse().ok()
            }
            _ => None,
        };
        let good = number.filter(|number| (least..=most).contains(number));
        if good.is_none() {
            let is = if entry.value.is_number() { entry.value.to_string() } else { kind_of(entry.value).to_owned() };
            let message = format!("must be a whole number from {least} to {most}, and is {is}");
            self.error(entry, message, format!("write a number from {least} to {most}"));
        }
        good
    }

    /// Whether a switch is on.
    pub(super) fn switch(&mut self, object: &Object<'_>, name: &str) -> bool {
        let key = object.key(name);
        match object.get(name).map(|entry| (entry, entry.value)) {
            None => key.need == Need::Default("true"),
            Some((_, Value::Bool(is_on))) => *is_on,
            Some((entry, other)) => {
                self.error(entry, format!("must be true or false, and is {}", kind_of(other)), "write true or false");
                false
            }
        }
    }

    /// An amount above zero, as it is written and as a whole number, rounded up.
    pub(super) fn amount(&mut self, object: &Object<'_>, name: &str) -> Option<(String, u64)> {
        let Some(entry) = object.get(name) else {
            let Need::Default(default) = object.key(name).need else { return None };
            return Some((default.to_owned(), whole_amount(default)?));
        };
        let text = if entry.value.is_number() {
            entry.value.to_string()
        } else {
            let text = self.text_of(entry)?;
            self.fixed(text)?.value
        };
        let whole = whole_amount(&text).filter(|whole| *whole > 0);
        if whole.is_none() {
            let help = "write an amount above zero, such as 100m or 128Mi";
            self.error(entry, format!("{text:?} is no amount"), help);
        }
        Some((text, whole?))
    }

    /// Texts by keys that the author chooses.
    pub(super) fn texts<'v>(&mut self, object: &Object<'v>, name: &str) -> Vec<(&'v str, Text<'v>)> {
        let Some(entry) = object.get(name) else { return Vec::new() };
        if !entry.value.is_object() {
            let message = format!("must be a map of texts, and is {}", kind_of(entry.value));
            self.error(entry, message, "write key: value below it");
            return Vec::new();
        }
        let mut texts = Vec::new();
        for (key, entry) in entry.pairs() {
            if key.contains("${") {
                self.error_at_key(&entry, "a key must not hold a variable", "write it out");
            }
            texts.extend(self.text_of(&entry).map(|text| (key, text)));
        }
        texts
    }

    /// What the proposal gives as boot order inside of a plugin's configuration is the plugin's.
    pub(super) fn boot_order_of(&mut self, object: &Object<'_>) {
        let Some(entry) = object.get("bootOrder") else { return };
        let Some(number) = self.whole(entry, -1_000, 1_000) else { return };
        let line = self.origin.place_of(entry.node).line;
        self.repairs.push(Repair { line, message: format!("{} is read as bootOrder of the plugin", entry.path) });
        if self.boot_order.iter().any(|other| *other != number) {
            self.error(entry, "the plugin has two different boot orders", "give one, beside its name");
        }
        self.boot_order.push(number);
    }
}

fn spellings(key: &Key) -> impl Iterator<Item = &'static str> {
    [key.name].into_iter().chain(key.also.iter().copied())
}

/// The names that are offered to people.
fn shown(table: &'static [Key]) -> impl Iterator<Item = &'static str> {
    table.iter().filter(|key| !matches!(key.holds, Holds::Refused(_))).map(|key| key.name)
}

fn whole_amount(text: &str) -> Option<u64> {
    let quantity: Quantity = text.parse().ok()?;
    u64::try_from(quantity.value()).ok()
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "empty",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// How many letters must be changed, added or left out to make one text of another, in any letter case. A long text is
/// far from everything.
fn distance(one: &str, other: &str) -> usize {
    const LONGEST: usize = 64;
    if other.len() > LONGEST {
        return usize::MAX / 2;
    }
    let (one, other) = (one.to_lowercase(), other.to_lowercase());
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut before = row[0];
        row[0] = at + 1;
        for column in 0..other.len() {
            let changed = before + usize::from(letter != other[column]);
            before = row[column + 1];
            row[column + 1] = changed.min(before + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}
