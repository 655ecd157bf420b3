//! Lifecycle hooks.

use super::field::{Field, Problems};
use super::probes::check_handlers;

const HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "sleep"];
const SIGNALS: [&str; 34] = [
    "SIGABRT",
    "SIGALRM",
    "SIGBUS",
    "SIGCHLD",
    "SIGCLD",
    "SIGCONT",
    "SIGFPE",
    "SIGHUP",
    "SIGILL",
    "SIGINT",
    "SIGIO",
    "SIGIOT",
    "SIGKILL",
    "SIGPIPE",
    "SIGPOLL",
    "SIGPROF",
    "SIGPWR",
    "SIGQUIT",
    "SIGSEGV",
    "SIGSTKFLT",
    "SIGSTOP",
    "SIGSYS",
    "SIGTERM",
    "SIGTRAP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGUSR1",
    "SIGUSR2",
    "SIGVTALRM",
    "SIGWINCH",
    "SIGXCPU",
    "SIGXFSZ",
];

pub(super) fn check(container: &Field<'_>, problems: &mut Problems) {
    let Some(lifecycle) = container.get("lifecycle") else { return };
    for hook in ["postStart", "preStop"].iter().filter_map(|name| lifecycle.get(name)) {
        check_handlers(&hook, &HANDLERS, problems);
    }
    let signal = lifecycle.get("stopSignal").and_then(|signal| signal.value.as_str());
    if let Some(signal) = signal.filter(|signal| !is_signal(signal)) {
        let message = format!("Unsupported value: {signal:?}");
        problems.error(lifecycle.at("stopSignal"), message, "use the name of a signal, such as SIGTERM or SIGUSR1");
    }
}

/// Returns true for the signals of Linux. The pod's operating system decides which of them it accepts.
fn is_signal(name: &str) -> bool {
    let within = |number: &str, high: u8| {
        !number.starts_with(['0', '+']) && number.parse::<u8>().is_ok_and(|number| (1..=high).contains(&number))
    };
    match (name.strip_prefix("SIGRTMIN"), name.strip_prefix("SIGRTMAX")) {
        (Some(""), _) | (_, Some("")) => true,
        (Some(rest), _) => rest.strip_prefix('+').is_some_and(|number| within(number, 15)),
        (_, Some(rest)) => rest.strip_prefix('-').is_some_and(|number| within(number, 14)),
        _ => SIGNALS.contains(&name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_time_signals_are_numbered_from_both_ends() {
        for valid in ["SIGTERM", "SIGRTMIN", "SIGRTMIN+15", "SIGRTMAX", "SIGRTMAX-14"] {
            assert!(is_signal(valid), "{valid}");
        }
        for invalid in ["", "TERM", "sigterm", "SIGRTMIN+16", "SIGRTMIN-1", "SIGRTMIN+01", "SIGRTMAX-15", "SIGRTMAX-0"]
        {
            assert!(!is_signal(invalid), "{invalid}");
        }
    }
}
