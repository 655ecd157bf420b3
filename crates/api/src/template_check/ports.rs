//! Ports of containers.

use std::collections::BTreeMap;

use super::field::{Field, Problems};
use super::syntax::{PORT_HELP, is_port_name};
use crate::Reason;
use crate::problem::{FieldPath, Problem};

const HIGHEST: i64 = 65535;

pub(super) fn check(container: &Field<'_>, problems: &mut Problems) {
    let mut names = BTreeMap::new();
    for port in container.items("ports") {
        problems.syntax(&port, "name", is_port_name, PORT_HELP);
        let name = port.text("name");
        if let Some(first) = (!name.is_empty()).then(|| names.insert(name, port.at("name"))).flatten() {
            let message = format!("Duplicate value: {name:?}");
            let problem = Problem::error(Reason::InvalidContainer, port.at("name"), message, "rename one of the ports");
            problems.0.push(problem.with_also(first));
        }
        problems.in_range(&port, "containerPort", 1, HIGHEST);
        // The API server reads 0 as no host port.
        if port.number("hostPort") != Some(0) {
            problems.in_range(&port, "hostPort", 1, HIGHEST);
        }
        problems.one_of(&port, "protocol", &["", "TCP", "UDP", "SCTP"]);
    }
}

/// Reports host ports that are used twice by containers that run at the same time.
pub(super) fn check_host_ports<'a>(containers: impl IntoIterator<Item = Field<'a>>, problems: &mut Problems) {
    let mut used: BTreeMap<(String, String, i64), FieldPath> = BTreeMap::new();
    for port in containers.into_iter().flat_map(|container| container.items("ports").collect::<Vec<_>>()) {
        let Some(number) = port.number("hostPort").filter(|number| *number != 0) else { continue };
        let protocol = Some(port.text("protocol")).filter(|protocol| !protocol.is_empty()).unwrap_or("TCP");
        let key = (protocol.to_owned(), port.text("hostIP").to_owned(), number);
        if let Some(first) = used.get(&key) {
            let message = format!("host port {number} ({protocol}) is used twice");
            let problem = Problem::error(Reason::InvalidContainer, port.at("hostPort"), message, "use another port");
            problems.0.push(problem.with_also(first.clone()));
        } else {
            used.insert(key, port.at("hostPort"));
        }
    }
}

/// Checks a field that holds the number or the name of a port.
pub(super) fn check_reference(parent: &Field<'_>, problems: &mut Problems) {
    problems.in_range(parent, "port", 1, HIGHEST);
    let name = parent.get("port").and_then(|port| port.value.as_str());
    if let Some(name) = name.filter(|name| !is_port_name(name)) {
        problems.error(parent.at("port"), format!("{name:?} is neither the number nor the name of a port"), PORT_HELP);
    }
}
