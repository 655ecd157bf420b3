//! How the app is told that there is a new file, and how it is seen that it has loaded it.

use std::time::{Duration, Instant};

use pillion_agent_api::{Check, HotUpdate, Reload};
use rustix::process::Signal;

use crate::stop::Stop;

use super::course::Reloaded;
use super::failure::{Failure, Kind};
use super::line::Patience;
use super::local::Local;
use super::process::{NoSignal, Process, Processes, signal_named};

/// For a request to the app.
const FOR_ONE_ANSWER: Duration = Duration::from_secs(10);
/// Between two looks at whether the app has loaded the file.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
/// For an app that is there twice because it has just forked: until its child runs another program, both have one command line.
const FOR_A_FORK: Duration = Duration::from_secs(2);
/// Between two looks at the processes.
const BETWEEN_FINDS: Duration = Duration::from_millis(10);
/// How long a process must survive a signal where nothing else tells how it took it.
const SURVIVAL: Duration = Duration::from_secs(1);

/// Tells the app, and sees whether it has understood.
#[derive(Debug)]
pub(super) struct Reloader {
    means: Means,
    check: Option<(Local, Check)>,
    processes: Processes,
    stop: Stop,
}

/// How the app is told.
#[derive(Debug)]
enum Means {
    Signal { process_name: String, name: String, signal: Signal, fallback: Option<(String, Local)> },
    Request { method: String, url: String, local: Local },
}

/// What the agent can do here, as far as can be seen before the first update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ability {
    /// What it is configured to do.
    Full,
    /// It cannot signal for this reason, and asks a URL instead.
    Fallback(String),
    /// It cannot tell the app at all.
    Nothing(String),
}

/// What is known of an app that was told: the process that was signalled, if one was.
pub(super) type Told = Option<Process>;

impl Reloader {
    /// Reads how the app is told; refuses what is never done.
    pub(super) fn new(config: &HotUpdate, stop: &Stop) -> Result<Self, String> {
        let means = match &config.reload {
            Reload::Signal(signal) => {
                if signal.process_name.trim().is_empty() {
                    return Err("processName is empty: write how the command line of the app begins".to_owned());
                }
                let fallback =
                    signal.fallback_url.as_ref().map(|url| Ok::<_, String>((url.clone(), Local::parse(url)?)));
                Means::Signal {
                    process_name: signal.process_name.clone(),
                    name: signal.signal_name.clone(),
                    signal: signal_named(&signal.signal_name)?,
                    fallback: fallback.transpose()?,
                }
            }
            Reload::Request { url, method } => {
                if !matches!(method.as_str(), "GET" | "POST") {
                    return Err(format!("the method {method:?} of the reload is not GET or POST"));
                }
                Means::Request { method: method.clone(), url: url.clone(), local: Local::parse(url)? }
            }
        };
        let check = config.check.as_ref().map(|check| Ok::<_, String>((Local::parse(&check.url)?, check.clone())));
        Ok(Self { means, check: check.transpose()?, processes: Processes::of_system(), stop: stop.clone() })
    }

    /// What can be done here.
    pub(super) fn ability(&self) -> Ability {
        let Means::Signal { process_name, fallback, .. } = &self.means else { return Ability::Full };
        let seen = self.processes.find(process_name).and_then(|process| self.processes.may_signal(&process));
        match (seen, fallback) {
            (Err(NoSignal::NothingSeen), Some(_)) => Ability::Fallback(nothing_seen()),
            (Err(NoSignal::NothingSeen), None) => Ability::Nothing(nothing_seen()),
            (Err(NoSignal::NotPermitted(why)), Some(_)) => Ability::Fallback(why),
            (Err(NoSignal::NotPermitted(why)), None) => Ability::Nothing(why),
            // Whatever else there is may change until it matters.
            _ => Ability::Full,
        }
    }

    /// Tells the app. Where it had no version before it may not be there yet.
    pub(super) fn reload(&self, is_first: bool) -> Result<(Reloaded, Told), Failure> {
        match &self.means {
            Means::Request { method, url, local } => {
                self.request(local, method, url, is_first).map(|told| (told, None))
            }
            Means::Signal { process_name, name, signal, fallback } => {
                let signalled = self.find(process_name).and_then(|process| {
                    self.processes.signal(&process, *signal)?;
                    Ok(process)
                });
                match (signalled, fallback) {
                    (Ok(process), _) => {
                        Ok((Reloaded::Told(format!("{name} sent to process {}", process.pid)), Some(process)))
                    }
                    (Err(NoSignal::NoMatch(_)), _) if is_first => {
                        let message = format!(
                            "put in place before the app: no process begins with {process_name:?} yet, so none was signalled"
                        );
                        Ok((Reloaded::NotThereYet(message), None))
                    }
                    (Err(error @ (NoSignal::NothingSeen | NoSignal::NotPermitted(_))), Some((url, local))) => {
                        let told = self.request(local, "POST", url, is_first)?;
                        let why = error.into_message();
                        let told = match told {
                            Reloaded::Told(message) => {
                                Reloaded::Told(format!("{message}, as no signal can be sent: {why}"))
                            }
                            not_there @ Reloaded::NotThereYet(_) => not_there,
                        };
                        Ok((told, None))
                    }
                    (Err(error), _) => Err(self.failure(error.into_message())),
                }
            }
        }
    }

    /// Finds the process of the app; looks again for a while if there are several.
    fn find(&self, process_name: &str) -> Result<Process, NoSignal> {
        let end = Instant::now() + FOR_A_FORK;
        loop {
            let found = self.processes.find(process_name);
            let is_several = matches!(found, Err(NoSignal::Several(_)));
            if !is_several || Instant::now() >= end || self.stop.wait(BETWEEN_FINDS) {
                return found;
            }
        }
    }

    fn request(&self, local: &Local, method: &str, url: &str, is_first: bool) -> Result<Reloaded, Failure> {
        match local.ask(method, &self.patience(FOR_ONE_ANSWER)) {
            Ok(answer) if (200..300).contains(&answer.status) => {
                Ok(Reloaded::Told(format!("{url} answered {}", answer.status)))
            }
            Ok(answer) => Err(Failure::not_loaded(format!("{url} answered {}", answer.status))),
            Err(error) if is_first && error.is_nobody_there => {
                Ok(Reloaded::NotThereYet(format!("put in place before the app: nobody listens at {url} yet")))
            }
            Err(error) => Err(self.failure(format!("{url} does not answer: {}", error.message))),
        }
    }

    /// Sees whether the app has loaded a version.
    pub(super) fn check(&self, told: &Told, version: &str, sha256: &str) -> Result<String, Failure> {
        match (&self.check, told) {
            (Some((local, check)), _) => self.look_until(local, check, version, sha256),
            (None, Some(process)) => self.survives(process),
            (None, None) => Ok("not verified, as no check is configured".to_owned()),
        }
    }

    fn survives(&self, process: &Process) -> Result<String, Failure> {
        if self.stop.wait(SURVIVAL) {
            return Err(self.failure(String::new()));
        }
        if self.processes.is_same(process) {
            return Ok("not verified, as no check is configured: the process is still there after 1 s".to_owned());
        }
        Err(Failure::not_loaded(format!("process {} ended within 1 s", process.pid)))
    }

    fn look_until(&self, local: &Local, check: &Check, version: &str, sha256: &str) -> Result<String, Failure> {
        let expected = check.contains.replace("{version}", version).replace("{sha256}", sha256);
        let patience = self.patience(Duration::from_secs(check.timeout_seconds.into()));
        loop {
            let seen = match local.ask("GET", &patience) {
                Ok(answer) if (200..300).contains(&answer.status) && answer.text.contains(&expected) => {
                    return Ok(format!("{} says {expected:?}", check.url));
                }
                Ok(answer) => format!("answered {} without it", answer.status),
                Err(error) => format!("did not answer: {}", error.message),
            };
            let is_over = patience.end <= Instant::now() + BETWEEN_LOOKS;
            if is_over || self.stop.wait(BETWEEN_LOOKS) {
                return Err(self.failure(format!(
                    "{} did not say {expected:?} within {} s: it {seen}",
                    check.url, check.timeout_seconds
                )));
            }
        }
    }

    fn patience(&self, total: Duration) -> Patience {
        Patience::new(total, total, total, &self.stop)
    }

    /// What is no fault of the app when the agent itself ends.
    fn failure(&self, message: String) -> Failure {
        let kind = if self.stop.is_stopped() { Kind::Stopped } else { Kind::NotLoaded };
        Failure::new(kind, message)
    }
}

impl NoSignal {
    fn into_message(self) -> String {
        match self {
            Self::NothingSeen => nothing_seen(),
            Self::NoMatch(message) | Self::Several(message) | Self::NotPermitted(message) | Self::Refused(message) => {
                message
            }
        }
    }
}

fn nothing_seen() -> String {
    "the agent sees no processes but its own: set shareProcessNamespace of the pod, or fallbackUrl".to_owned()
}

#[cfg(test)]
mod tests;
