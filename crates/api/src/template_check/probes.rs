//! Probes, and the handlers that probes and lifecycle hooks share.

use super::field::{Field, Problems};
use super::ports;
use super::syntax::is_header_name;

const HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "grpc"];

pub(super) fn check(container: &Field<'_>, problems: &mut Problems) {
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get(name) else { continue };
        check_handlers(&probe, &HANDLERS, problems);
        for seconds in
            ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            problems.not_negative(&probe, seconds);
        }
        let threshold = probe.number("successThreshold").filter(|threshold| *threshold > 1);
        if let Some(threshold) = threshold.filter(|_| name != "readinessProbe") {
            let message = format!("{threshold} is not 1");
            problems.error(probe.at("successThreshold"), message, format!("remove it: a {name} succeeds once"));
        }
        let grace = probe.number("terminationGracePeriodSeconds");
        if name == "readinessProbe" && probe.has("terminationGracePeriodSeconds") {
            let message = "a readinessProbe has no terminationGracePeriodSeconds";
            problems.error(probe.at("terminationGracePeriodSeconds"), message, "remove it");
        } else if let Some(grace) = grace.filter(|grace| *grace <= 0) {
            let message = format!("{grace} is not above 0");
            problems.error(probe.at("terminationGracePeriodSeconds"), message, "write 1 or more, or remove it");
        }
    }
}

/// Checks that exactly one handler is set, and the fields of the handlers.
pub(super) fn check_handlers(parent: &Field<'_>, names: &[&str], problems: &mut Problems) {
    if problems.at_most_one(parent, names, "handlers") == 0 {
        problems.error(parent.path.clone(), "there is no handler", format!("set one of {}", names.join(", ")));
    }
    if let Some(exec) = parent.get("exec") {
        problems.require(&exec, "command");
    }
    if let Some(request) = parent.get("httpGet") {
        ports::check_reference(&request, problems);
        problems.one_of(&request, "scheme", &["", "HTTP", "HTTPS"]);
        for header in request.items("httpHeaders") {
            problems.syntax(&header, "name", is_header_name, "use letters, digits and dashes");
        }
    }
    if let Some(socket) = parent.get("tcpSocket") {
        ports::check_reference(&socket, problems);
    }
    if let Some(grpc) = parent.get("grpc") {
        ports::check_reference(&grpc, problems);
    }
    if let Some(sleep) = parent.get("sleep") {
        problems.not_negative(&sleep, "seconds");
    }
}
