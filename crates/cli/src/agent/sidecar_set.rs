//! `pillion agent sidecarset`: everything that brings an agent with a configuration into pods, ready to be applied.

use std::io;
use std::path::PathBuf;

use clap::Args;
use pillion_agent_api::{Config, Severity, names};
use serde_json::{Value, json};

use super::{reading_of, text_of};
use crate::installation::DEFAULT_NAMESPACE;
use crate::lint::counted;
use crate::manifest;
use crate::{Ending, Streams, yaml_text};

mod made;

use made::{Given, Mount, files_outside, made, variables_outside};

#[derive(Args)]
pub(crate) struct Arguments {
    #[arg(value_name = "FILE", help = "The configuration, or a ConfigMap that holds it; - for stdin")]
    file: PathBuf,
    /// Pods with this label get the agent; may be given more than once.
    #[arg(long = "selector", short = 'l', value_name = "KEY=VALUE", required = true, value_parser = pair)]
    selector: Vec<(String, String)>,
    /// Only pods in namespaces with this label; may be given more than once.
    #[arg(long = "namespace-selector", value_name = "KEY=VALUE", value_parser = pair)]
    namespace_selector: Vec<(String, String)>,
    /// Image of the agent.
    #[arg(long, value_name = "REFERENCE")]
    image: String,
    #[arg(long, value_name = "NAME", help = "Name of the SidecarSet; that of the agents' service account without it")]
    name: Option<String>,
    #[arg(
        long,
        value_name = "NAME",
        help = "Name of the configuration; that of the ConfigMap in FILE, or sidecar-config, without it"
    )]
    config_name: Option<String>,
    /// Containers that share the folder of updated files: a regular expression for their names.
    #[arg(long, value_name = "REGEX", default_value = ".*")]
    app_containers: String,
    /// Mount a Secret of the pod's namespace into the agent, for credentials and certificates.
    #[arg(long = "secret", value_name = "NAME=/PATH", value_parser = mount)]
    secrets: Vec<(String, String)>,
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = pair, help = "A variable for ${SELF:NAME}")]
    env: Vec<(String, String)>,
    /// Namespace the product itself runs in.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAMESPACE)]
    pillion_namespace: String,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as key=value")?;
    if key.is_empty() { Err("write it as key=value".to_owned()) } else { Ok((key.to_owned(), value.to_owned())) }
}

fn mount(text: &str) -> Result<(String, String), String> {
    pair(text).ok().filter(|(_, path)| path.starts_with('/')).ok_or_else(|| "write it as name=/path".to_owned())
}

pub(super) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<Ending> {
    let (file, text) = text_of(&arguments.file)?;
    let reading = reading_of(&text);
    for problem in &reading.problems {
        let word = if problem.severity == Severity::Error { "error" } else { "warning" };
        writeln!(streams.err, "{word}: {file}: {problem}")?;
    }
    let Some(config) = &reading.config else {
        let errors = counted((reading.errors().count(), "error"));
        writeln!(streams.err, "{errors}, and nothing is printed: \"pillion agent lint {file}\" points at them")?;
        return Ok(Ending::Finding);
    };
    for repair in &reading.repairs {
        writeln!(streams.err, "note: {file}: {repair}")?;
    }
    let (name_in_file, text) = held(&file, &text);
    let config_name = arguments.config_name.clone().or(name_in_file).unwrap_or_else(|| names::CONFIG.to_owned());
    let given = Given {
        name: arguments.name.clone().unwrap_or_else(|| format!("{}{config_name}", names::ACCOUNT_PREFIX)),
        config_name,
        image: &arguments.image,
        selector: &arguments.selector,
        namespace_selector: &arguments.namespace_selector,
        app_containers: &arguments.app_containers,
        secrets: arguments.secrets.iter().map(|(name, path)| Mount { name, path }).collect(),
        env: &arguments.env,
        pillion_namespace: &arguments.pillion_namespace,
    };
    tell_what_is_missing(config, &given, &text, streams)?;
    write!(streams.out, "{}", yaml_text::documents(&made(config, &text, &given)))?;
    Ok(Ending::Fine)
}

/// What the configuration names and nothing brings into the pod.
fn tell_what_is_missing(config: &Config, given: &Given<'_>, text: &str, streams: &mut Streams<'_>) -> io::Result<()> {
    for path in files_outside(config, given) {
        writeln!(streams.err, "note: nothing is mounted at {path}: mount the Secret with --secret NAME=/FOLDER")?;
    }
    for name in variables_outside(text, given) {
        writeln!(streams.err, "note: the agent has no variable {name}: give it with --env {name}=VALUE")?;
    }
    Ok(())
}

/// The name of the `ConfigMap` in a file, and the configuration in it; the text itself where there is none.
fn held(file: &str, text: &str) -> (Option<String>, String) {
    // A configuration with the indentation of the proposal is no YAML by itself, and holds no manifest.
    let values = manifest::values(file, text.as_bytes()).unwrap_or_default();
    let found = values.iter().find(|value| value["kind"] == json!("ConfigMap"));
    let held = found.and_then(|value| Some((value, value["data"][names::CONFIG_KEY].as_str()?)));
    match held {
        Some((value, held)) => {
            let name = value.pointer("/metadata/name").and_then(Value::as_str);
            (name.map(str::to_owned), held.to_owned())
        }
        None => (None, text.to_owned()),
    }
}
