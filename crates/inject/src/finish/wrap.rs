//! A sidecar whose command our agent runs, and ends when the other containers have ended.
//!
//! The agent comes into the pod by an init container that copies it into a volume. It becomes the parent of every command:
//! of the others, so that it sees them end, and of the sidecars, so that it can end them. What others run that have no
//! command is not known here; where the pod wants it, the sidecar's agent asks the API server about those.

use pillion_api::{FinishWatch, Reason};
use serde_json::{Map, Value, json};

use super::marks::Marked;
use super::{Agent, CONTAINERS, Failed, INIT_CONTAINERS, Present, Source, native};
use crate::apply::with_token;
use crate::decision::Refusal;
use crate::pod::{Container, Pod, items, text};
use crate::sidecar::place;
use pillion_pod::{Editor, Step};

const NAME: &str = "pillion-agent";
const EXECUTABLE: &str = "/pillion-finish/pillion-wrap";
const VOLUME: &str = "pillion-finish";
const DIRECTORY: &str = "/pillion-finish";
const TOKEN_VOLUME: &str = "pillion-finish-token";
const TOKEN_DIRECTORY: &str = "/pillion-finish-token";
const POD_NAME: &str = "POD_NAME";
/// What Kubernetes gives a pod that does not say.
const DEFAULT_GRACE_SECONDS: u64 = 30;

const VOLUMES: &[Step<'_>] = &[Step::Key("spec"), Step::Key("volumes")];
const SECRETS: &[Step<'_>] = &[Step::Key("spec"), Step::Key("imagePullSecrets")];

/// What is to be done to a pod.
pub(super) struct Plan {
    containers: Vec<Wrapped>,
    watches: bool,
    /// What brings the agent, with the secrets for its image; `None` where it is there.
    agent: Option<(Value, Vec<String>)>,
}

/// A container with its new command.
struct Wrapped {
    name: String,
    command: Vec<Value>,
    watches: bool,
}

/// Decides about a pod with sidecars that are to be wrapped; `None` where nothing is.
pub(super) fn plan<'a>(
    pod: &Pod<'_>,
    sidecars: &[&Marked<'a>],
    mains: &[&str],
    sets: &[Present<'a>],
    agent: Option<&Agent>,
) -> Result<Option<Plan>, Failed<'a>> {
    let policy = text(pod.spec, "restartPolicy").unwrap_or("Always");
    let Some(first) = sidecars.first().filter(|_| matches!(policy, "Never" | "OnFailure")) else { return Ok(None) };
    let containers = pod.containers.iter();
    let find = |name: &str| containers.clone().find(|container| container.name == name);
    let mut plan = Plan { containers: Vec::new(), watches: false, agent: None };
    let (mut until, mut unknown) = (Vec::new(), Vec::new());
    for container in mains.iter().filter_map(|name| find(name)) {
        check_container(container).map_err(|refusal| Failed { source: first.source, refusal })?;
        match command(container.json) {
            Some(command) => {
                until.push(format!("--until={}", container.name));
                let own = [format!("--main={}", container.name)];
                plan.containers.push(Wrapped {
                    name: container.name.to_owned(),
                    command: prefixed(&own, command),
                    watches: false,
                });
            }
            None => unknown.push(container.name),
        }
    }
    let grace = pod.spec.get("terminationGracePeriodSeconds").and_then(Value::as_u64).unwrap_or(DEFAULT_GRACE_SECONDS);
    for sidecar in sidecars {
        let Some(container) = find(&sidecar.name) else { continue };
        let failed = |refusal| Failed { source: sidecar.source, refusal };
        check_container(container).map_err(failed)?;
        let command = command(container.json).ok_or_else(|| failed(no_command(sidecar, sets)))?;
        if let Some(main) = unknown.first().filter(|_| sidecar.watch != FinishWatch::Pod) {
            return Err(failed(unknown_main(main)));
        }
        let watches = !unknown.is_empty();
        if watches {
            check_watcher(container).map_err(failed)?;
        }
        let mut own = vec![format!("--sidecar={}", sidecar.name)];
        own.extend(until.iter().cloned());
        own.extend(unknown.iter().map(|main| format!("--watch-pod={main}")));
        own.push(format!("--restart-policy={policy}"));
        own.push(format!("--grace-seconds={grace}"));
        plan.watches |= watches;
        plan.containers.push(Wrapped { name: sidecar.name.clone(), command: prefixed(&own, command), watches });
    }
    let failed = |refusal| Failed { source: first.source, refusal };
    check_volumes(pod).map_err(failed)?;
    plan.agent = bring(pod, agent).map_err(failed)?;
    Ok(Some(plan))
}

/// What brings the agent into a pod; `None` where that is there.
fn bring(pod: &Pod<'_>, agent: Option<&Agent>) -> Result<Option<(Value, Vec<String>)>, Refusal> {
    if let Some(there) = pod.container(NAME) {
        let copies = there.json.get("args") == Some(&json!(["cp", EXECUTABLE]));
        let message = format!("the pod has a container {NAME} of its own");
        return if copies { Ok(None) } else { Err(Refusal::new(Reason::FinishClash, message)) };
    }
    let agent = agent.ok_or_else(|| {
        let message = "mode Wrap copies the agent into the pod, and the manager has no --agent-image";
        Refusal::new(Reason::AgentNotSet, message)
    })?;
    let mut container = json!({
        "name": NAME,
        "image": agent.image,
        "command": ["/pillion-wrap"],
        "args": ["cp", EXECUTABLE],
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": 65532,
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [mount(VOLUME, DIRECTORY)],
    });
    if !agent.resources.is_empty() {
        container["resources"] = Value::Object(agent.resources.clone());
    }
    Ok(Some((with_token(container, crate::apply::token_mount(pod.json).as_ref()), agent.pull_secrets.clone())))
}

impl Plan {
    /// Writes it. `moved` become native sidecars besides: the agent is brought after them.
    pub(super) fn apply(self, editor: &mut Editor, moved: &[String]) {
        for wrapped in &self.containers {
            let Some(at) = position(editor, CONTAINERS, &wrapped.name) else { continue };
            let container = [CONTAINERS, &[Step::At(at)]].concat();
            editor.set(&container, "command", Value::Array(wrapped.command.clone()));
            add(editor, &[&container[..], &[Step::Key("volumeMounts")]].concat(), mount(VOLUME, DIRECTORY));
            if wrapped.watches {
                let token = json!({"name": TOKEN_VOLUME, "mountPath": TOKEN_DIRECTORY, "readOnly": true});
                add(editor, &[&container[..], &[Step::Key("volumeMounts")]].concat(), token);
                add(editor, &[&container[..], &[Step::Key("env")]].concat(), pod_name());
            }
        }
        native::apply(editor, moved);
        add(editor, VOLUMES, json!({"name": VOLUME, "emptyDir": {"sizeLimit": "16Mi"}}));
        if self.watches {
            add(editor, VOLUMES, token_volume());
        }
        if let Some((container, secrets)) = self.agent {
            editor.insert(INIT_CONTAINERS, None, container);
            for secret in secrets {
                add(editor, SECRETS, json!({"name": secret}));
            }
        }
    }
}

/// Takes the agent out of a pod again. Nothing is left of it but the secrets for its image.
pub(crate) fn unwrap(pod: &mut Value) {
    let spec = &mut pod["spec"];
    for container in spec["containers"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        unwrap_container(container);
    }
    let Some(spec) = spec.as_object_mut() else { return };
    retain(spec, "volumes", |volume| volume["name"] != VOLUME && volume["name"] != TOKEN_VOLUME);
    retain(spec, "initContainers", |it| it["name"] != NAME || it["args"] != json!(["cp", EXECUTABLE]));
}

/// Takes the agent out of a container that it runs.
pub(crate) fn unwrap_container(container: &mut Map<String, Value>) {
    if !is_wrapped(container) {
        return;
    }
    if let Some(command) = command(container).map(<[Value]>::to_vec) {
        container.insert("command".to_owned(), Value::Array(command));
    }
    let watched = items(container, "volumeMounts").any(|mount| text(mount, "name") == Some(TOKEN_VOLUME));
    retain(container, "volumeMounts", |mount| mount["name"] != VOLUME && mount["name"] != TOKEN_VOLUME);
    // It is the last one: the variable was added, and not one the container had.
    let is_ours = container.get("env").and_then(Value::as_array).and_then(|env| env.last()).is_some_and(is_pod_name);
    if watched && is_ours {
        retain(container, "env", |env| !is_pod_name(env));
    }
}

/// Keeps of a list what is to be kept; one that is empty then is gone.
fn retain(fields: &mut Map<String, Value>, list: &str, keep: impl Fn(&Value) -> bool) {
    let Some(items) = fields.get_mut(list).and_then(Value::as_array_mut) else { return };
    items.retain(keep);
    if items.is_empty() {
        fields.remove(list);
    }
}

/// Whether the agent runs a container.
fn is_wrapped(container: &Map<String, Value>) -> bool {
    let first = container.get("command").and_then(Value::as_array).and_then(|command| command.first());
    first.is_some_and(|first| first == EXECUTABLE)
}

/// Whether the agent runs a container as a sidecar.
pub fn is_wrapped_sidecar(container: &Map<String, Value>) -> bool {
    let words = container.get("command").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let own = words.iter().filter_map(Value::as_str).take_while(|word| *word != "--");
    is_wrapped(container) && own.into_iter().any(|word| word.starts_with("--sidecar="))
}

/// The command a container was written with; `None` where it has none.
fn command(container: &Map<String, Value>) -> Option<&[Value]> {
    let command = container.get("command").and_then(Value::as_array).filter(|command| !command.is_empty())?;
    if !is_wrapped(container) {
        return Some(command);
    }
    let end = command.iter().position(|word| word == "--")?;
    Some(&command[end + 1..]).filter(|command| !command.is_empty())
}

fn prefixed(own: &[String], command: &[Value]) -> Vec<Value> {
    let agent = [EXECUTABLE, "wrap", "--dir=/pillion-finish"].map(Value::from);
    let own = own.iter().map(|word| json!(word));
    agent.into_iter().chain(own).chain([json!("--")]).chain(command.iter().cloned()).collect()
}

/// When a container starts again is the pod's to say, and its place for the agent must be free.
fn check_container(container: &Container<'_>) -> Result<(), Refusal> {
    let name = container.name;
    for field in ["restartPolicy", "restartPolicyRules"] {
        let is_given = container.json.get(field).is_some_and(|value| !value.is_null() && *value != json!([]));
        if is_given {
            let message = format!("container {name} has a {field} of its own, mode Wrap knows only the pod's");
            return Err(Refusal::new(Reason::OwnRestartRules, message));
        }
    }
    check_place(container, DIRECTORY, VOLUME)
}

fn check_place(container: &Container<'_>, directory: &str, volume: &str) -> Result<(), Refusal> {
    let mut taken = ["volumeMounts", "volumeDevices"].into_iter().flat_map(|list| items(container.json, list));
    let taken =
        taken.any(|item| place(item).as_deref() == Some(directory) && text(item, "name").is_none_or(|it| it != volume));
    let message = || format!("container {} has something mounted at {directory}", container.name);
    if taken { Err(Refusal::new(Reason::FinishClash, message())) } else { Ok(()) }
}

/// A sidecar whose agent asks the API server needs the name of its pod.
fn check_watcher(container: &Container<'_>) -> Result<(), Refusal> {
    let other = items(container.json, "env").find(|env| {
        text(env, "name") == Some(POD_NAME)
            && env.get("valueFrom").and_then(|from| from.pointer("/fieldRef/fieldPath"))
                != Some(&json!("metadata.name"))
    });
    if other.is_some() {
        let message = format!("variable {POD_NAME} of container {} is not the name of the pod", container.name);
        return Err(Refusal::new(Reason::FinishClash, message));
    }
    check_place(container, TOKEN_DIRECTORY, TOKEN_VOLUME)
}

fn check_volumes(pod: &Pod<'_>) -> Result<(), Refusal> {
    for (name, kind) in [(VOLUME, "emptyDir"), (TOKEN_VOLUME, "projected")] {
        if pod.volumes.get(name).is_some_and(|volume| !volume.contains_key(kind)) {
            return Err(Refusal::new(Reason::FinishClash, format!("the pod has another volume {name}")));
        }
    }
    Ok(())
}

/// A sidecar without a command, and how it gets one.
fn no_command(sidecar: &Marked<'_>, sets: &[Present<'_>]) -> Refusal {
    let name = &sidecar.name;
    let in_set = sets.iter().filter(|set| sidecar.source == Source::Set(set.name)).find_map(|set| {
        let at = set.template.containers.iter().position(|own| own.name == *name)?;
        Some((set.name, at))
    });
    let patch = match in_set {
        Some((set, at)) => {
            let patch =
                json!([{"op": "add", "path": format!("/spec/containers/{at}/command"), "value": ["ENTRYPOINT"]}]);
            format!("kubectl patch scs {set} --type=json -p '{patch}'")
        }
        None => pod_patch(name),
    };
    Refusal::new(Reason::CommandMissing, format!("sidecar {name} has no command for the agent to run: {patch}"))
}

/// A container whose end the agent would not see, and how it does.
fn unknown_main(main: &str) -> Refusal {
    let patch = pod_patch(main);
    let watch = format!("annotate the pod {}=pod", crate::marks::FINISH_WATCH);
    let message = format!("container {main} has no command, so the agent does not see it end: {patch}, or {watch}");
    Refusal::new(Reason::CommandMissing, message)
}

fn pod_patch(container: &str) -> String {
    let patch = json!({"spec": {"containers": [{"name": container, "command": ["ENTRYPOINT"]}]}});
    format!("patch the pod's template with {patch}")
}

fn mount(volume: &str, directory: &str) -> Value {
    json!({"name": volume, "mountPath": directory})
}

fn pod_name() -> Value {
    json!({"name": POD_NAME, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}})
}

fn is_pod_name(env: &Value) -> bool {
    *env == pod_name()
}

/// The token of the pod's account, the authority of the API server, and the name of the namespace.
fn token_volume() -> Value {
    json!({"name": TOKEN_VOLUME, "projected": {"sources": [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [
            {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
        ]}},
    ]}})
}

/// Puts something named into a list, unless it has one of the name.
fn add(editor: &mut Editor, list: &[Step<'_>], value: Value) {
    let is_there = value["name"].as_str().is_some_and(|name| position(editor, list, name).is_some());
    if !is_there {
        editor.insert(list, None, value);
    }
}

fn position(editor: &Editor, list: &[Step<'_>], name: &str) -> Option<usize> {
    editor.get(list)?.as_array()?.iter().position(|item| item["name"] == name)
}
