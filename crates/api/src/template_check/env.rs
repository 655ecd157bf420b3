//! Environment variables.

use super::downward::{Use, check_field_ref, check_resource_ref};
use super::field::{Field, Problems};
use super::syntax::{
    ENV_HELP, KEY_HELP, LABEL_HELP, NO_BACKSTEPS_HELP, SUBDOMAIN_HELP, has_no_backsteps, is_data_key, is_dns_label,
    is_dns_subdomain, is_dns_subdomain_prefix, is_env_name,
};

const SOURCES: [&str; 5] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];

pub(super) fn check(container: &Field<'_>, problems: &mut Problems) {
    for variable in container.items("env") {
        problems.syntax(&variable, "name", is_env_name, ENV_HELP);
        if let Some(source) = variable.get("valueFrom") {
            check_source(&variable, &source, problems);
        }
    }
    for source in container.items("envFrom") {
        problems.syntax(&source, "prefix", is_env_name, ENV_HELP);
        let references = ["configMapRef", "secretRef"];
        if problems.at_most_one(&source, &references, "sources") == 0 {
            problems.error(source.path.clone(), "the entry has no source", "set configMapRef or secretRef");
        }
        for reference in references.iter().filter_map(|name| source.get(name)) {
            problems.require(&reference, "name");
            problems.syntax(&reference, "name", is_dns_subdomain_prefix, SUBDOMAIN_HELP);
        }
    }
}

fn check_source(variable: &Field<'_>, source: &Field<'_>, problems: &mut Problems) {
    let count = problems.at_most_one(source, &SOURCES, "sources");
    if count == 0 {
        problems.error(source.path.clone(), "valueFrom has no source", format!("set one of {}", SOURCES.join(", ")));
    } else if !variable.text("value").is_empty() {
        problems.error(source.path.clone(), "value and valueFrom are both set", "keep one of them");
    }
    if let Some(reference) = source.get("fieldRef") {
        check_field_ref(&reference, Use::Variable, problems);
    }
    if let Some(reference) = source.get("resourceFieldRef") {
        check_resource_ref(&reference, Use::Variable, problems);
    }
    for reference in ["configMapKeyRef", "secretKeyRef"].iter().filter_map(|name| source.get(name)) {
        problems.require(&reference, "name");
        problems.syntax(&reference, "name", is_dns_subdomain, SUBDOMAIN_HELP);
        problems.syntax(&reference, "key", is_data_key, KEY_HELP);
    }
    if let Some(reference) = source.get("fileKeyRef") {
        problems.syntax(&reference, "key", is_env_name, ENV_HELP);
        problems.syntax(&reference, "volumeName", is_dns_label, LABEL_HELP);
        problems.syntax(&reference, "path", has_no_backsteps, NO_BACKSTEPS_HELP);
    }
}
