//! Signals by name: which ones are received, and which can be sent.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// A signal with the name it is told by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamedSignal {
    pub(crate) name: &'static str,
    signal: Signal,
}

/// Every signal that a process may catch and that tests send.
const CATCHABLE: [NamedSignal; 6] = [
    NamedSignal { name: "HUP", signal: Signal::HUP },
    NamedSignal { name: "INT", signal: Signal::INT },
    NamedSignal { name: "QUIT", signal: Signal::QUIT },
    NamedSignal { name: "TERM", signal: Signal::TERM },
    NamedSignal { name: "USR1", signal: Signal::USR1 },
    NamedSignal { name: "USR2", signal: Signal::USR2 },
];

const KILL: NamedSignal = NamedSignal { name: "KILL", signal: Signal::KILL };

impl NamedSignal {
    /// Finds a signal by its name, with or without `SIG`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let name = text.strip_prefix("SIG").unwrap_or(text);
        CATCHABLE
            .into_iter()
            .chain([KILL])
            .find(|named| named.name == name)
            .ok_or_else(|| "expected HUP, INT, QUIT, TERM, USR1, USR2 or KILL".to_owned())
    }
}

impl From<NamedSignal> for Signal {
    fn from(named: NamedSignal) -> Self {
        named.signal
    }
}

/// Installs a handler for every catchable signal, then yields their names as they arrive.
///
/// The kernel drops what a PID 1 has no handler for, so this comes before anything that tells others we are up.
pub(crate) fn receive_all() -> io::Result<mpsc::UnboundedReceiver<&'static str>> {
    let (name_tx, name_rx) = mpsc::unbounded_channel();
    for named in CATCHABLE {
        let mut arrivals = signal(SignalKind::from_raw(named.signal.as_raw()))?;
        let name_tx = name_tx.clone();
        tokio::spawn(async move { while arrivals.recv().await.is_some() && name_tx.send(named.name).is_ok() {} });
    }
    Ok(name_rx)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_found_with_and_without_its_prefix() {
        assert_eq!(NamedSignal::parse("HUP").map(Signal::from), Ok(Signal::HUP));
        assert_eq!(NamedSignal::parse("SIGUSR2").map(Signal::from), Ok(Signal::USR2));
        assert_eq!(NamedSignal::parse("KILL").map(Signal::from), Ok(Signal::KILL));
    }

    #[test]
    fn an_unknown_signal_lists_the_known_ones() {
        let expected = Err("expected HUP, INT, QUIT, TERM, USR1, USR2 or KILL".to_owned());
        for text in ["", "SIG", "hup", "9", "STOP"] {
            assert_eq!(NamedSignal::parse(text), expected, "{text:?}");
        }
    }
}
