//! The command line. It is written by the webhook, not by people, so it has one way to say each thing.

mod run;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

pub(crate) use self::run::{AgentRequest, Run};

const USAGE: &str = "write `pillion-wrap version`, `pillion-wrap cp TARGET`, or `pillion-wrap wrap --dir=DIR \
    (--main=NAME | --sidecar=NAME (--until=MAIN | --watch-pod=MAIN) --restart-policy=Never|OnFailure) -- COMMAND`";

/// As Kubernetes does where a pod says nothing.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);

/// Where the webhook mounts the token.
const DEFAULT_TOKEN_DIR: &str = "/pillion-finish-token";

/// What is asked of the wrapper.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Tell the version.
    Version,
    /// Copy the program.
    Copy { target: PathBuf },
    /// Be the parent of a container's program.
    Wrap(Wrap),
}

/// How to be the parent of a container's program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wrap {
    /// The folder that all wrapped containers of the pod share.
    pub(crate) dir: PathBuf,
    pub(crate) role: Role,
    /// The program and its arguments; never empty.
    pub(crate) command: Vec<OsString>,
}

/// What the wrapped container is to the pod.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The pod is there for this one; others learn from us when it has ended.
    Main { name: String },
    /// Ends when the mains have ended.
    Sidecar(Sidecar),
}

/// A container that ends when the mains have ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sidecar {
    pub(crate) name: String,
    /// Mains that are wrapped too, and say in the shared folder how they are.
    pub(crate) until: Vec<String>,
    /// Mains that are not wrapped, and are seen in the status of the pod.
    pub(crate) watch_pod: Vec<String>,
    /// The folder with what is needed to ask the API server for that.
    pub(crate) token_dir: PathBuf,
    pub(crate) restart_policy: RestartPolicy,
    /// From the request to end until the kill.
    pub(crate) grace: Duration,
}

/// `restartPolicy` of the pod. With `Always` a main never ends, so it is not here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestartPolicy {
    Never,
    OnFailure,
}

impl RestartPolicy {
    /// Whether a main that ended with this code stays ended.
    pub(crate) fn is_permanent(self, code: u8) -> bool {
        match self {
            Self::Never => true,
            Self::OnFailure => code == 0,
        }
    }
}

/// Reads the command line of the agent, without the name of the program.
pub(crate) fn read_agent(arguments: impl Iterator<Item = OsString>) -> anyhow::Result<AgentRequest> {
    run::read_request(arguments)
}

/// Reads the command line of the wrapper, without the name of the program.
pub(crate) fn read(mut arguments: impl Iterator<Item = OsString>) -> anyhow::Result<Request> {
    let word = arguments.next().with_context(|| format!("nothing is asked: {USAGE}"))?;
    let request = match word.to_str() {
        Some("version") => Request::Version,
        Some("cp") => {
            let target = arguments.next().context("cp: the file to write is missing: write `cp TARGET`")?;
            Request::Copy { target: target.into() }
        }
        Some("wrap") => return Ok(Request::Wrap(read_wrap(arguments)?)),
        _ => bail!("{} is nothing this program does: {USAGE}", word.display()),
    };
    nothing_more(&word, arguments)?;
    Ok(request)
}

fn nothing_more(word: &OsStr, mut arguments: impl Iterator<Item = OsString>) -> anyhow::Result<()> {
    match arguments.next() {
        None => Ok(()),
        Some(more) => bail!("{}: there is nothing to do with {}", word.display(), more.display()),
    }
}

/// Flags of `wrap` as they were given.
#[derive(Default)]
struct Flags {
    dir: Option<PathBuf>,
    main: Option<String>,
    sidecar: Option<String>,
    until: Vec<String>,
    watch_pod: Vec<String>,
    token_dir: Option<PathBuf>,
    restart_policy: Option<RestartPolicy>,
    grace: Option<Duration>,
}

fn read_wrap(mut arguments: impl Iterator<Item = OsString>) -> anyhow::Result<Wrap> {
    let mut flags = Flags::default();
    loop {
        let argument = arguments.next().context("wrap: `--` and the command after it are missing")?;
        if argument == "--" {
            break;
        }
        let text = argument.to_str().with_context(|| format!("wrap: {} is not UTF-8", argument.display()))?;
        let (flag, value) = text.split_once('=').with_context(|| {
            format!("wrap: {text} is not a flag with its value: write --FLAG=VALUE, and `--` before the command")
        })?;
        flags.take(flag, value).with_context(|| format!("wrap: {text}"))?;
    }
    let command: Vec<OsString> = arguments.collect();
    ensure!(!command.is_empty(), "wrap: the command after `--` is missing");
    flags.complete(command)
}

impl Flags {
    fn take(&mut self, flag: &str, value: &str) -> anyhow::Result<()> {
        match flag {
            "--dir" => once(&mut self.dir, PathBuf::from(value)),
            "--main" => once(&mut self.main, container(value)?),
            "--sidecar" => once(&mut self.sidecar, container(value)?),
            "--until" => {
                self.until.push(container(value)?);
                Ok(())
            }
            "--watch-pod" => {
                self.watch_pod.push(container(value)?);
                Ok(())
            }
            "--token-dir" => once(&mut self.token_dir, PathBuf::from(value)),
            "--restart-policy" => once(&mut self.restart_policy, restart_policy(value)?),
            "--grace-seconds" => {
                let seconds = value.parse().context("write a whole number of seconds")?;
                once(&mut self.grace, Duration::from_secs(seconds))
            }
            _ => bail!("there is no such flag"),
        }
    }

    fn complete(self, command: Vec<OsString>) -> anyhow::Result<Wrap> {
        let dir = self.dir.context("wrap: --dir=DIR is missing: the folder that the pod's containers share")?;
        let role = match (self.main, self.sidecar) {
            (Some(name), None) => {
                let is_bare = self.until.is_empty()
                    && self.watch_pod.is_empty()
                    && self.token_dir.is_none()
                    && self.restart_policy.is_none()
                    && self.grace.is_none();
                ensure!(is_bare, "wrap: with --main=NAME there is no other flag than --dir=DIR");
                Role::Main { name }
            }
            (None, Some(name)) => {
                ensure!(
                    !self.until.is_empty() || !self.watch_pod.is_empty(),
                    "wrap: --until=MAIN or --watch-pod=MAIN is missing: the main whose end ends {name}"
                );
                let restart_policy = self
                    .restart_policy
                    .context("wrap: --restart-policy=Never or --restart-policy=OnFailure is missing")?;
                Role::Sidecar(Sidecar {
                    name,
                    until: self.until,
                    watch_pod: self.watch_pod,
                    token_dir: self.token_dir.unwrap_or_else(|| DEFAULT_TOKEN_DIR.into()),
                    restart_policy,
                    grace: self.grace.unwrap_or(DEFAULT_GRACE),
                })
            }
            _ => bail!("wrap: give one of --main=NAME and --sidecar=NAME"),
        };
        Ok(Wrap { dir, role, command })
    }
}

fn once<T>(place: &mut Option<T>, value: T) -> anyhow::Result<()> {
    ensure!(place.is_none(), "it is given twice");
    *place = Some(value);
    Ok(())
}

/// The name of a container becomes a part of a file name, so it is held to what Kubernetes allows.
fn container(name: &str) -> anyhow::Result<String> {
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    ensure!(is_name, "not the name of a container: small letters, digits and `-` only");
    Ok(name.to_owned())
}

fn restart_policy(value: &str) -> anyhow::Result<RestartPolicy> {
    match value {
        "Never" => Ok(RestartPolicy::Never),
        "OnFailure" => Ok(RestartPolicy::OnFailure),
        _ => bail!("write Never or OnFailure: with Always a main never ends"),
    }
}

#[cfg(test)]
mod tests;
