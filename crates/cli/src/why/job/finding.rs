//! What a pod of a Job waits for, and the command that mends it where it waits for ever.

use jiff::{SignedDuration, Timestamp};
use pillion_inject::marks;
use serde_json::Value;

use super::container::{Kind, Seen, State};
use super::text;
use crate::rollout::age;

/// What a container waits for that is no trouble.
const PATIENT: [&str; 3] = ["", "PodInitializing", "ContainerCreating"];
/// What the node takes besides the grace period.
const SLACK: SignedDuration = SignedDuration::from_secs(10);

/// What a pod waits for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) why: String,
    /// A command.
    pub(super) fix: Option<String>,
    /// Whether it waits for ever.
    pub(super) is_stuck: bool,
}

impl Finding {
    fn waits(why: impl Into<String>) -> Self {
        Self { why: why.into(), fix: None, is_stuck: false }
    }

    fn stuck(why: impl Into<String>, fix: String) -> Self {
        Self { why: why.into(), fix: Some(fix), is_stuck: true }
    }
}

pub(super) fn find(job: &Value, pod: &Value, containers: &[Seen<'_>], now: Timestamp) -> Finding {
    let commands = Commands { job, pod };
    if pod["metadata"].get("deletionTimestamp").is_some() {
        return Finding::waits("the pod is being deleted, and its containers are ended");
    }
    if let Some(finding) = at_the_start(pod, containers, &commands) {
        return finding;
    }
    let troubled = containers.iter().find_map(|container| match &container.state {
        State::Waiting(reason) if !PATIENT.contains(&reason.as_str()) => Some((container.name, reason)),
        _ => None,
    });
    if let Some((name, reason)) = troubled {
        return Finding::stuck(format!("container {name} does not run: {reason}"), commands.describe());
    }
    at_the_end(pod, containers, &commands, now)
}

/// The others do not start before every native sidecar has.
fn at_the_start(pod: &Value, containers: &[Seen<'_>], commands: &Commands<'_>) -> Option<Finding> {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let mut conditions = conditions.filter(|it| it["type"] == "Initialized" && it["status"] == "False");
    conditions.next()?;
    if let Some(init) = containers.iter().find(|it| it.kind == Kind::Init && it.is_running()) {
        return Some(Finding::waits(format!("init container {} still runs, and all others wait for it", init.name)));
    }
    let waits = |it: &&Seen<'_>| {
        !matches!(it.kind, Kind::Native | Kind::Init) && it.state == State::Waiting("PodInitializing".to_owned())
    };
    let main = containers.iter().find(waits)?;
    let sidecar = containers.iter().find(|it| it.kind == Kind::Native && !it.is_started)?;
    let name = sidecar.name;
    let how = match &sidecar.state {
        State::Running(_) => "runs, but its startup probe or postStart hook is not done".to_owned(),
        State::Waiting(reason) if !reason.is_empty() => format!("does not run: {reason}"),
        State::Waiting(_) => "does not run yet".to_owned(),
        State::Ended(code, _) => format!("has ended with {code}, and is started again"),
    };
    let why = format!(
        "{} waits until native sidecar {name} has started, and {name} {how}. If {name} needs a running {}, neither ever \
         comes: a native sidecar starts first. The agent (mode Wrap) starts both at once",
        main.name, main.name
    );
    Some(Finding::stuck(why, commands.wrap(sidecar)))
}

/// Who still runs when others have ended for good.
fn at_the_end(pod: &Value, containers: &[Seen<'_>], commands: &Commands<'_>, now: Timestamp) -> Finding {
    let mains: Vec<&Seen<'_>> =
        containers.iter().filter(|it| !matches!(it.kind, Kind::Native | Kind::Agent | Kind::Init)).collect();
    let done: Vec<&str> = mains.iter().filter(|it| it.is_done && it.kind == Kind::Plain).map(|it| it.name).collect();
    let running: Vec<&Seen<'_>> = mains.iter().filter(|it| it.is_running()).copied().collect();
    if let (false, Some(first)) = (done.is_empty(), running.first()) {
        let (ended, have) = (done.join(", "), if done.len() == 1 { "has" } else { "have" });
        let names: Vec<&str> = running.iter().map(|it| it.name).collect();
        let (names, run) = (names.join(", "), if running.len() == 1 { "still runs" } else { "still run" });
        let what = match first.kind {
            Kind::Marked => "is marked as a sidecar, but was created while finishing was switched off: nothing ends it",
            Kind::Injected => {
                "was added by a SidecarSet and is not ended: its container there needs sidecar: true, and \
                               the feature gate SidecarFinish must be on"
            }
            _ => "is a plain container: if it is a sidecar, nothing ends it",
        };
        let why = format!("{ended} {have} ended for good, and {names} {run}. {} {what}", first.name);
        return Finding::stuck(why, commands.end(&running));
    }
    if let Some(main) = running.first() {
        return Finding::waits(format!("{} still runs, and the Job waits for it", main.name));
    }
    if let Some(failed) = mains.iter().find(|it| matches!(it.state, State::Ended(..)) && !it.is_done) {
        return Finding::waits(format!("{} failed and is started again, as restartPolicy is OnFailure", failed.name));
    }
    let Some(sidecar) = containers.iter().find(|it| matches!(it.kind, Kind::Native | Kind::Agent) && it.is_running())
    else {
        return Finding::waits("all containers have ended or are about to start: the node tells soon");
    };
    if mains.iter().any(|it| !it.is_done) {
        return Finding::waits("containers are about to start");
    }
    let ended = mains.iter().filter_map(|it| if let State::Ended(_, at) = it.state { at } else { None }).max();
    let since = ended.map(|at| now.duration_since(at)).unwrap_or_default();
    let grace = pod["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    let name = sidecar.name;
    if since > SignedDuration::from_secs(grace) + SLACK {
        let why = format!(
            "all others ended {} ago, and sidecar {name} still runs past its grace period of {grace}s: look at it and \
             at its node",
            age(since)
        );
        return Finding::stuck(why, commands.describe());
    }
    Finding::waits(format!(
        "all others ended {} ago, and sidecar {name} was told to end: it has {grace}s, then it is killed",
        age(since)
    ))
}

/// Commands that mend a Job.
struct Commands<'a> {
    job: &'a Value,
    pod: &'a Value,
}

impl Commands<'_> {
    fn namespace(&self) -> &str {
        text(&self.job["metadata"]["namespace"])
    }

    fn describe(&self) -> String {
        format!("kubectl describe pod {} -n {}", text(&self.pod["metadata"]["name"]), self.namespace())
    }

    /// Makes the Job again from what it is now. A Job that a `CronJob` made is mended there.
    fn again(&self, convert: &str) -> String {
        let owners = self.job["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        let mut owners = owners.filter(|owner| owner["kind"] == "CronJob");
        let (kind, name, replace) = match owners.next() {
            Some(owner) => ("cronjob", text(&owner["name"]), "kubectl replace -f -"),
            None => ("job", text(&self.job["metadata"]["name"]), "kubectl replace --force -f -"),
        };
        format!("kubectl get {kind} {name} -n {} -o yaml | pillion convert {convert} - | {replace}", self.namespace())
    }

    /// Makes native sidecars of containers.
    fn end(&self, running: &[&Seen<'_>]) -> String {
        let own: Vec<&str> = running.iter().filter(|it| !it.is_injected).map(|it| it.name).collect();
        if own.is_empty() {
            return format!("kubectl edit scs {}", self.set());
        }
        self.again(&format!("--native --sidecar={}", own.join(",")))
    }

    /// Lets the agent start a sidecar beside the others.
    fn wrap(&self, sidecar: &Seen<'_>) -> String {
        if sidecar.is_injected {
            let patch = r#"{"spec":{"finish":{"mode":"Wrap"}}}"#;
            return format!("kubectl patch scs {} --type=merge -p '{patch}'", self.set());
        }
        let was_moved = [marks::SIDECARS, marks::DECISION].iter().any(|key| {
            self.pod["metadata"]["annotations"][*key].as_str().is_some_and(|value| value.contains(sidecar.name))
        });
        if was_moved {
            self.again(&format!("--wrap --sidecar={}", sidecar.name))
        } else {
            let pod = text(&self.pod["metadata"]["name"]);
            format!("kubectl logs {pod} -c {} -n {}", sidecar.name, self.namespace())
        }
    }

    /// The set that added a container; where there are several, a person must say which.
    fn set(&self) -> &str {
        let sets = text(&self.pod["metadata"]["annotations"][marks::INJECTED_SETS]);
        if sets.is_empty() || sets.contains(',') { "SET" } else { sets }
    }
}
