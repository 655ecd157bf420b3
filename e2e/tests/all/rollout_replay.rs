//! Replays what the API server wrote down of all writes to pods, in the order of their versions, and holds every update of
//! ours to its promises: by what was really so at that moment, not by what the manager believed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use serde_json::Value;

/// What is promised of a rollout.
pub(crate) struct Promise<'a> {
    /// The set; its pods have label `app` of this value.
    pub(crate) set: &'a str,
    /// The newest revision.
    pub(crate) newest: &'a str,
    /// How many pods may be unavailable at a time, of so many.
    pub(crate) max_unavailable: fn(usize) -> usize,
    /// How many pods must stay old, of so many.
    pub(crate) pinned: fn(usize) -> usize,
}

/// What a replay counted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Updates of pods that were taken, by pod.
    pub(crate) taken: BTreeMap<String, usize>,
    /// The pods in the order in which they were updated.
    pub(crate) order: Vec<String>,
    /// Updates that were not.
    pub(crate) refused: usize,
    /// The most pods that were unavailable when an update began, itself included.
    pub(crate) most_unavailable: usize,
    /// Statuses of the set that were written.
    pub(crate) statuses: usize,
}

/// A pod as it was at one version.
struct Pod {
    json: Value,
    /// What the containers were when we changed them, by name.
    was: BTreeMap<String, Value>,
}

impl Pod {
    fn is_ready(&self) -> bool {
        let conditions = self.json["status"]["conditions"].as_array();
        conditions.into_iter().flatten().any(|it| it["type"] == "Ready" && it["status"] == "True")
    }

    fn status(&self, container: &str) -> Option<&Value> {
        let lists = ["initContainerStatuses", "containerStatuses"]
            .into_iter()
            .filter_map(|list| self.json["status"][list].as_array());
        lists.flatten().find(|status| status["name"] == container)
    }

    /// Restarts and id of a container.
    fn mark(&self, container: &str) -> Value {
        let status = self.status(container).unwrap_or(&Value::Null);
        Value::Array(vec![status["restartCount"].clone(), status["containerID"].clone()])
    }

    fn is_swapping(&self) -> bool {
        self.was.iter().any(|(container, was)| {
            let runs =
                self.status(container).is_some_and(|it| it["state"].get("running").is_some() && it["ready"] == true);
            self.mark(container) == *was || !runs
        })
    }

    fn is_available(&self) -> bool {
        self.is_ready() && !self.is_swapping()
    }

    fn revision(&self, set: &str) -> Option<String> {
        let text = self.json["metadata"]["annotations"]["pillion.dev/revisions"].as_str()?;
        let revisions: Value = serde_json::from_str(text).ok()?;
        revisions[set]["is"].as_str().map(str::to_owned)
    }

    fn is_member(&self, set: &str) -> bool {
        let metadata = &self.json["metadata"];
        metadata["labels"]["app"] == set
            && metadata["labels"]["pillion.dev/injected"] == "true"
            && metadata.get("deletionTimestamp").is_none_or(Value::is_null)
    }
}

/// All pods at one version, and how many there are of each kind: a log of ten thousand updates is not to be counted anew at
/// every one of them.
struct State<'a> {
    promise: &'a Promise<'a>,
    pods: BTreeMap<String, Pod>,
    counts: Counts,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    members: usize,
    unavailable: usize,
    swapping: usize,
    new: usize,
}

impl State<'_> {
    /// Changes one pod, or lets it come or go.
    fn change(&mut self, name: &str, change: impl FnOnce(Option<Pod>) -> Result<Option<Pod>>) -> Result<()> {
        let before = self.pods.remove(name);
        let old = self.counts_of(before.as_ref());
        let after = change(before)?;
        let new = self.counts_of(after.as_ref());
        let counts = &mut self.counts;
        counts.members = counts.members + new.members - old.members;
        counts.unavailable = counts.unavailable + new.unavailable - old.unavailable;
        counts.swapping = counts.swapping + new.swapping - old.swapping;
        counts.new = counts.new + new.new - old.new;
        if let Some(after) = after {
            self.pods.insert(name.to_owned(), after);
        }
        Ok(())
    }

    fn counts_of(&self, pod: Option<&Pod>) -> Counts {
        let Some(pod) = pod.filter(|pod| pod.is_member(self.promise.set)) else { return Counts::default() };
        let is_new = pod.revision(self.promise.set).as_deref() == Some(self.promise.newest);
        Counts {
            members: 1,
            unavailable: usize::from(!pod.is_available()),
            swapping: usize::from(pod.is_swapping()),
            new: usize::from(is_new),
        }
    }
}

/// Reads the log and checks every update of ours. Events before `since` (a version) only make the state.
pub(crate) fn replay(log: &Path, since: u64, promise: &Promise<'_>) -> Result<Counted> {
    let text = whole(log)?;
    let mut events: Vec<(u64, Value)> = Vec::new();
    let mut counted = Counted::default();
    for line in text.lines() {
        let event: Value = serde_json::from_str(line)?;
        let is_ours = is_of_manager(&event);
        let object = &event["objectRef"];
        if is_ours
            && object["resource"] == "sidecarsets"
            && object["subresource"] == "status"
            && object["name"] == promise.set
        {
            counted.statuses += 1;
        }
        if object["resource"] != "pods" || matches!(object["subresource"].as_str(), Some("eviction" | "binding")) {
            continue;
        }
        let code = event["responseStatus"]["code"].as_u64().unwrap_or_default();
        if code >= 300 {
            counted.refused += usize::from(is_ours && event["verb"] == "patch");
            continue;
        }
        if event["requestURI"].as_str().is_some_and(|uri| uri.contains("dryRun=All")) {
            continue;
        }
        let version = event["responseObject"]["metadata"]["resourceVersion"].as_str().and_then(|it| it.parse().ok());
        if let Some(version) = version {
            events.push((version, event));
        }
    }
    events.sort_by_key(|(version, _)| *version);
    let mut state = State { promise, pods: BTreeMap::new(), counts: Counts::default() };
    for (version, event) in &events {
        let name = event["objectRef"]["name"].as_str().or_else(|| event["responseObject"]["metadata"]["name"].as_str());
        let name = name.context("a pod has a name")?.to_owned();
        let is_ours = is_of_manager(event);
        if is_ours && event["verb"] == "patch" && event["objectRef"].get("subresource").is_none() {
            own_write(&mut state, &name, event, *version >= since, &mut counted)?;
            continue;
        }
        let object = &event["responseObject"];
        let is_gone = event["verb"] == "delete" && object["metadata"]["deletionGracePeriodSeconds"] == 0;
        if is_gone {
            state.change(&name, |_| Ok(None))?;
        } else if object["kind"] == "Pod" || event["responseObject"].get("spec").is_some() {
            state.change(&name, |before| {
                let was = before.filter(|pod| pod.json["metadata"]["uid"] == object["metadata"]["uid"]);
                Ok(Some(Pod { json: object.clone(), was: was.map(|pod| pod.was).unwrap_or_default() }))
            })?;
        }
    }
    Ok(counted)
}

/// Which single pods the manager has read since then. Lists are counted by nobody's pods: one is made for every change of a
/// set, to tell how many pods it concerns.
pub(crate) fn reads_of_pods(log: &Path, since: Timestamp) -> Result<Vec<String>> {
    let mut reads = Vec::new();
    for line in whole(log)?.lines() {
        let event: Value = serde_json::from_str(line)?;
        let is_read = is_of_manager(&event) && event["objectRef"]["resource"] == "pods" && event["verb"] == "get";
        let at = event["requestReceivedTimestamp"].as_str().context("an event has a time")?;
        if is_read && at.parse::<Timestamp>()? >= since {
            reads.push(event["requestURI"].to_string());
        }
    }
    Ok(reads)
}

fn is_of_manager(event: &Value) -> bool {
    event["userAgent"].as_str().is_some_and(|agent| agent.starts_with("pillion-manager"))
}

/// The log with the parts that the API server has put aside because they were long.
fn whole(log: &Path) -> Result<String> {
    let name = log.file_stem().and_then(|name| name.to_str()).context("a log has a name")?;
    let mut text = String::new();
    for entry in fs::read_dir(log.parent().context("a log is in a folder")?)? {
        let path = entry?.path();
        let is_part = path.file_name().and_then(|own| own.to_str()).is_some_and(|own| own.starts_with(name));
        if is_part {
            text.push_str(&fs::read_to_string(path)?);
        }
    }
    Ok(text)
}

fn own_write(state: &mut State<'_>, name: &str, event: &Value, is_judged: bool, counted: &mut Counted) -> Result<()> {
    let patch: json_patch::Patch =
        serde_json::from_value(event["requestObject"].clone()).context("our writes are JSON patches")?;
    let pod = state.pods.get(name).with_context(|| format!("I5: a write to {name}, which is not there"))?;
    let changed = changed(pod, &event["requestObject"])?;
    if is_judged && !changed.is_empty() {
        ensure!(pod.is_member(state.promise.set), "I5: a write to {name}, which is not of the set or is going");
        judge(state, pod, counted).with_context(|| format!("the update of {name}"))?;
        *counted.taken.entry(name.to_owned()).or_default() += 1;
        counted.order.push(name.to_owned());
    }
    state.change(name, |pod| {
        let mut pod = pod.context("it was there")?;
        for container in changed {
            let mark = pod.mark(&container);
            pod.was.insert(container, mark);
        }
        json_patch::patch(&mut pod.json, &patch)
            .with_context(|| format!("the patch of {name} was taken, so it applies"))?;
        Ok(Some(pod))
    })?;
    let Counts { members, new, .. } = state.counts;
    let allowed = members - (state.promise.pinned)(members);
    ensure!(!is_judged || new <= allowed, "I2: {new} pods are new, and {allowed} may be");
    Ok(())
}

/// I6: only images of containers that are ours, and our annotations. Gives the containers.
fn changed(pod: &Pod, patch: &Value) -> Result<Vec<String>> {
    let ours = pod.json["metadata"]["annotations"]["pillion.dev/containers"].as_str().unwrap_or_default();
    let ours: BTreeSet<&str> = ours.split(',').collect();
    let mut changed = Vec::new();
    for operation in patch.as_array().context("a list of operations")? {
        let path = operation["path"].as_str().context("a path")?;
        let steps: Vec<&str> = path.split('/').skip(1).collect();
        match (operation["op"].as_str(), &steps[..]) {
            (Some("test"), _) => {}
            (Some("add"), ["metadata", "annotations", key]) if key.starts_with("pillion.dev~1") => {}
            (Some("replace"), ["spec", list, index, "image"]) => {
                let index: usize = index.parse()?;
                let name = pod.json["spec"][*list][index]["name"].as_str().context("a container has a name")?;
                ensure!(ours.contains(name), "I6: {name} is not ours");
                changed.push(name.to_owned());
            }
            _ => bail!("I6: {operation}"),
        }
    }
    Ok(changed)
}

/// I1: by what is really so before the write.
fn judge(state: &State<'_>, pod: &Pod, counted: &mut Counted) -> Result<()> {
    let Counts { members, unavailable, swapping, .. } = state.counts;
    let max = (state.promise.max_unavailable)(members);
    let count = if pod.is_available() { unavailable } else { swapping - usize::from(pod.is_swapping()) };
    counted.most_unavailable = counted.most_unavailable.max(count + 1);
    ensure!(count < max, "I1: {count} pods are unavailable, and {max} of {members} may be");
    Ok(())
}
