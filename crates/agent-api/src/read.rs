//! From the text of a configuration to what it means.

use std::collections::BTreeSet;

use pillion_yaml::Place;

mod field;
mod hot_update;
mod http_probe;
mod storage;
#[cfg(test)]
mod tests;

use field::{Entry, Object, Reader};

use crate::keys::{self, Key};
use crate::origin::{Opened, open};
use crate::{Config, Form, Plugin, PluginConfig, PodProbe, Problem, Repair, Severity, StartOrder, Target, Variables};

/// What came of reading a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// What it means; none where a problem is an error.
    pub config: Option<Config>,
    /// Everything that is wrong, in the order of the text.
    pub problems: Vec<Problem>,
    /// What was read otherwise than it is written.
    pub repairs: Vec<Repair>,
}

impl Reading {
    /// What the configuration is refused for.
    pub fn errors(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|problem| problem.severity == Severity::Error)
    }
}

impl Config {
    /// Reads a configuration, or the `ConfigMap` that holds one, and refuses it with everything that is wrong.
    ///
    /// With variables they are replaced, and one that has no value is an error. Without, they are only checked for how
    /// they are written, and stay in the texts: enough to judge a configuration and to tell what it needs, not to run it.
    ///
    /// Takes up to [`PARSE_STACK`](crate::PARSE_STACK) of the stack, whatever the text.
    pub fn parse(text: &str, variables: Option<&Variables>) -> Result<Self, Vec<Problem>> {
        let reading = Self::read(text, variables);
        let errors = reading.errors().cloned().collect();
        reading.config.ok_or(errors)
    }

    /// The same, with warnings and repairs.
    pub fn read(text: &str, variables: Option<&Variables>) -> Reading {
        let Opened { origin, document } = open(text);
        let (value, node) = match document {
            Ok(document) => document,
            Err((place, message)) => {
                let help = "write a configuration, or a ConfigMap that holds one".to_owned();
                let Place { line, column, length } = place;
                let severity = Severity::Error;
                let problem = Problem { severity, line, column, length, path: String::new(), message, help };
                return Reading { config: None, problems: vec![problem], repairs: Vec::new() };
            }
        };
        let mut reader = Reader::new(&origin, variables);
        for (line, keys) in origin.moved() {
            let (verb, keys) = (if keys.len() == 1 { "is" } else { "are" }, keys.join(", "));
            reader.repairs.push(Repair { line, message: format!("{keys} {verb} read as keys of inKube") });
        }
        let root = Entry::root(&value, &node);
        let config = reader.object(&root, keys::CONFIG).map(|fields| config(&mut reader, &fields));
        let (mut problems, mut repairs) = (reader.problems, reader.repairs);
        problems.sort_by_key(|problem| (problem.line, problem.column));
        repairs.sort_by_key(|repair| repair.line);
        let is_refused = problems.iter().any(|problem| problem.severity == Severity::Error);
        Reading { config: config.filter(|_| !is_refused), problems, repairs }
    }
}

fn config(reader: &mut Reader<'_>, fields: &Object<'_>) -> Config {
    let mut plugins: Vec<Plugin> = Vec::new();
    for item in reader.items(fields, "plugins") {
        let before: BTreeSet<&str> = plugins.iter().map(|plugin| plugin.config.name()).collect();
        let Some((plugin, entry)) = plugin(reader, &item) else { continue };
        let name = plugin.config.name();
        if before.contains(name) {
            reader.error(&entry, format!("the plugin {name} is given twice"), "put what both say into one");
        } else {
            plugins.push(plugin);
        }
    }
    plugins.sort_by_key(|plugin| plugin.boot_order);
    reader.choice(fields, "restartPolicy");
    let start_order = match reader.choice(fields, "sidecarStartOrder") {
        Some("After") => StartOrder::After,
        _ => StartOrder::Before,
    };
    let mut form = Form { start_order, ..Form::default() };
    if let Some(resources) = reader.child(fields, "resources") {
        for key in keys::RESOURCES {
            let amount = reader.amount(&resources, key.name);
            form.resources.extend(amount.map(|(text, _)| (key.name.to_ascii_lowercase(), text)));
        }
    }
    let metrics_port = reader.number(fields, "metricsPort");
    check_metrics(reader, fields, &plugins, metrics_port.is_some());
    check_targets(reader, fields, &plugins);
    Config { plugins, form, metrics_port }
}

/// One plugin, and where its name is.
fn plugin<'a>(reader: &mut Reader<'_>, item: &Entry<'a>) -> Option<(Plugin, Entry<'a>)> {
    let fields = reader.object(item, keys::PLUGIN)?;
    let name = reader.choice(&fields, "name");
    let boot_order = reader.number(&fields, "bootOrder").unwrap_or(0);
    reader.boot_order.clear();
    if fields.has("bootOrder") {
        reader.boot_order.push(boot_order);
    }
    let table: &'static [Key] = match name? {
        "http_probe" => keys::HTTP_PROBE,
        "pod_probe" => keys::POD_PROBE,
        _ => keys::HOT_UPDATE,
    };
    // The plugin without a setting of its own may leave its configuration out; the others say what they miss.
    let told = match fields.get("config") {
        Some(entry) => reader.object(entry, table)?,
        None => reader.missing(item, "config", table),
    };
    reader.boot_order_of(&told);
    let config = match name? {
        "http_probe" => PluginConfig::HttpProbe(http_probe::read(reader, &told)),
        "pod_probe" => {
            let reassert_seconds = reader.number(&told, "reassertSeconds").unwrap_or_default();
            PluginConfig::PodProbe(PodProbe { reassert_seconds })
        }
        _ => PluginConfig::HotUpdate(Box::new(hot_update::read(reader, &told)?)),
    };
    let boot_order = reader.boot_order.first().copied().unwrap_or(0);
    Some((Plugin { boot_order, config }, fields.get("name").cloned()?))
}

fn check_metrics(reader: &mut Reader<'_>, fields: &Object<'_>, plugins: &[Plugin], has_port: bool) {
    let has_metric = storages(plugins).any(|storage| storage.metric_name.is_some());
    let Some(entry) = fields.get("plugins") else { return };
    if has_metric && !has_port {
        let message = "a metricName is given and no metricsPort".to_owned();
        reader.error(entry, message, "give metricsPort: the agent opens only a port that you name");
    }
}

/// The policies on agents allow one resource for a configuration, and one field of it.
fn check_targets(reader: &mut Reader<'_>, fields: &Object<'_>, plugins: &[Plugin]) {
    let of = |target: &Target| (target.group.clone(), target.resource.clone(), target.pointer.clone());
    let targets: BTreeSet<_> = storages(plugins).filter_map(|storage| storage.target.as_ref()).map(of).collect();
    if let Some(entry) = fields.get("plugins").filter(|_| targets.len() > 1) {
        let shown: Vec<_> = targets.iter().map(|(group, resource, at)| format!("{at} of {resource}.{group}")).collect();
        let message = format!("there are several targets: {}", shown.join(", "));
        reader.error(entry, message, "write one, and make a second configuration for the other");
    }
}

fn storages(plugins: &[Plugin]) -> impl Iterator<Item = &crate::Storage> {
    plugins.iter().flat_map(|plugin| plugin.config.storages())
}
