//! Writes what was decided into the pod. Nothing is decided here, and nothing fails.

use std::collections::{BTreeMap, BTreeSet};

use pillion_api::{Placement, REVISIONS};
use serde_json::{Value, json};

use crate::evaluate::{Addition, Additions, AppMount, service_account};
use crate::marks;
use crate::pod::Pod;
use pillion_pod::{Editor, Step};

const LABELS: &[Step<'_>] = &[Step::Key("metadata"), Step::Key("labels")];
const ANNOTATIONS: &[Step<'_>] = &[Step::Key("metadata"), Step::Key("annotations")];
const SPEC: &[Step<'_>] = &[Step::Key("spec")];
const SECRETS: &[Step<'_>] = &[Step::Key("spec"), Step::Key("imagePullSecrets")];
const VOLUMES: &[Step<'_>] = &[Step::Key("spec"), Step::Key("volumes")];

/// Volumes of this name the API server adds for the token of the pod's account.
const TOKEN_VOLUME: &str = "kube-api-access-";
/// Where it mounts them.
pub(crate) const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// What is to be said on a pod.
pub(crate) struct Marks<'a> {
    /// Containers that were added.
    pub(crate) added: BTreeSet<&'a str>,
    /// Sets whose sidecars the pod has, those that do not match any more too.
    pub(crate) sets: BTreeSet<String>,
    /// Their containers that were there before.
    pub(crate) kept: BTreeSet<&'a str>,
    /// All containers of ours that were there before, of sets that do not match any more too.
    pub(crate) ours: Vec<&'a str>,
    /// The record of decisions, if there is to be one.
    pub(crate) record: Option<String>,
    /// The revisions the pod has.
    pub(crate) revisions: String,
}

/// Takes out of a pod the containers that are replaced by what sets add.
pub(crate) fn remove_forged(editor: &mut Editor, all: &[Additions<'_>], forged: &BTreeSet<&str>) {
    for name in all.iter().flat_map(|additions| additions.replaced(forged)) {
        for list in ["initContainers", "containers"] {
            let place = [Step::Key("spec"), Step::Key(list)];
            if let Some(at) = position(editor, &place, name) {
                editor.remove(&[place[0], place[1], Step::At(at)]);
            }
        }
    }
}

/// Puts what sets add into a pod. `annotations` are those that change, with their new values.
pub(crate) fn add(editor: &mut Editor, pod: &Pod<'_>, all: &[Additions<'_>], annotations: &BTreeMap<&str, String>) {
    let mut before = BTreeMap::new();
    let other_account = all.iter().any(|additions| wants_other_account(additions, pod).is_some());
    let token = token_mount(pod.json).filter(|_| !other_account);
    for additions in all {
        for (list, containers) in
            [("initContainers", &additions.init_containers), ("containers", &additions.containers)]
        {
            add_containers(editor, list, containers, token.as_ref(), before.entry(list).or_default());
        }
    }
    // The places of mounts were read before containers were added in front of them: they are found again by name.
    for mount in all.iter().flat_map(|additions| &additions.mounts).filter(|mount| !mount.is_there) {
        add_app_mount(editor, mount);
    }
    for additions in all {
        add_rest(editor, additions, pod);
    }
    for (key, value) in annotations {
        editor.set(ANNOTATIONS, key, json!(value));
    }
}

/// How the API server has mounted the token of the pod's account into its containers, if it has.
///
/// It would do the same with those we add, and because it then has changed the pod after us it would ask us again: one
/// review of every pod would become two.
pub(crate) fn token_mount(pod: &Value) -> Option<Value> {
    let containers = pod["spec"]["containers"].as_array()?.iter();
    let mounts = containers.filter_map(|container| container["volumeMounts"].as_array()).flatten();
    let is_token = |mount: &&Value| {
        let name = mount["name"].as_str().is_some_and(|name| name.starts_with(TOKEN_VOLUME));
        name && mount["mountPath"] == TOKEN_PATH && mount["readOnly"] == true
    };
    let name = mounts.into_iter().find(is_token)?["name"].clone();
    Some(json!({"name": name, "mountPath": TOKEN_PATH, "readOnly": true}))
}

pub(crate) fn with_token(mut container: Value, token: Option<&Value>) -> Value {
    let (Some(token), Some(fields)) = (token, container.as_object_mut()) else { return container };
    let mounts = fields.entry("volumeMounts").or_insert(Value::Null);
    if mounts.is_null() {
        *mounts = json!([]);
    }
    if let Some(mounts) = mounts.as_array_mut()
        && !mounts.iter().any(|mount| mount["mountPath"] == TOKEN_PATH)
    {
        mounts.push(token.clone());
    }
    container
}

fn add_containers(
    editor: &mut Editor,
    list: &'static str,
    additions: &[Addition<'_>],
    token: Option<&Value>,
    before: &mut usize,
) {
    let place = &[Step::Key("spec"), Step::Key(list)];
    for addition in additions {
        let at = match (&addition.container, addition.placement) {
            (None, Placement::After) => continue,
            // One that is there shows where those in front end.
            (None, Placement::Before) => {
                if let Some(at) = position(editor, place, addition.name) {
                    *before = (*before).max(at + 1);
                }
                continue;
            }
            (Some(_), Placement::Before) => {
                *before += 1;
                Some(*before - 1)
            }
            (Some(_), Placement::After) => None,
        };
        let container = addition.container.clone().unwrap_or_default();
        editor.insert(place, at, with_token(container, token));
    }
}

fn position(editor: &Editor, list: &[Step<'_>], name: &str) -> Option<usize> {
    let items = editor.get(list)?.as_array()?;
    items.iter().position(|item| item.get("name").and_then(Value::as_str) == Some(name))
}

fn add_app_mount(editor: &mut Editor, mount: &AppMount<'_>) {
    let list = &[Step::Key("spec"), Step::Key(mount.list)];
    if let Some(at) = position(editor, list, mount.container) {
        editor.insert(
            &[Step::Key("spec"), Step::Key(mount.list), Step::At(at), Step::Key("volumeMounts")],
            None,
            mount.json(),
        );
    }
}

fn add_rest(editor: &mut Editor, additions: &Additions<'_>, pod: &Pod<'_>) {
    let template = additions.template;
    for volume in &additions.volumes {
        editor.insert(VOLUMES, None, Value::Object((*volume).clone()));
    }
    for secret in &template.image_pull_secrets {
        if position(editor, SECRETS, secret).is_none() {
            editor.insert(SECRETS, None, json!({"name": secret}));
        }
    }
    for (key, value) in &template.labels {
        editor.set(LABELS, key, json!(value));
    }
    if let Some(share) = template.share_process_namespace {
        editor.set(SPEC, "shareProcessNamespace", json!(share));
    }
    if let Some(account) = wants_other_account(additions, pod) {
        change_account(editor, account);
    }
}

fn wants_other_account<'a>(additions: &Additions<'a>, pod: &Pod<'_>) -> Option<&'a str> {
    let account = additions.template.service_account_name.as_deref()?;
    (service_account(pod) != Some(account)).then_some(account)
}

/// The pod's own containers had the token of `default`, if any; the one of a stronger account is not theirs to have.
fn change_account(editor: &mut Editor, account: &str) {
    editor.set(SPEC, "serviceAccountName", json!(account));
    if editor.get(&[Step::Key("spec"), Step::Key("serviceAccount")]).is_some() {
        editor.set(SPEC, "serviceAccount", json!(account));
    }
    editor.set(SPEC, "automountServiceAccountToken", json!(false));
    remove_tokens(editor, VOLUMES);
    for list in ["initContainers", "containers"] {
        let containers = editor.get(&[Step::Key("spec"), Step::Key(list)]).and_then(Value::as_array);
        for at in 0..containers.map_or(0, Vec::len) {
            remove_tokens(editor, &[Step::Key("spec"), Step::Key(list), Step::At(at), Step::Key("volumeMounts")]);
        }
    }
}

fn remove_tokens(editor: &mut Editor, list: &[Step<'_>]) {
    let is_token =
        |item: &Value| item.get("name").and_then(Value::as_str).is_some_and(|it| it.starts_with(TOKEN_VOLUME));
    let items = editor.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let found: Vec<usize> = (0..items.len()).filter(|at| is_token(&items[*at])).collect();
    for at in found.into_iter().rev() {
        editor.remove(&[list, &[Step::At(at)]].concat());
    }
}

/// Says on the pod what is ours. Marks that nothing stands behind are taken away: only we may write them.
pub(crate) fn mark(editor: &mut Editor, marks: Marks<'_>) {
    let Marks { added, sets, kept, ours, record, revisions } = marks;
    let ours: BTreeSet<String> = ours.iter().chain(&kept).chain(&added).map(|name| (*name).to_owned()).collect();
    if ours.is_empty() {
        editor.unset(ANNOTATIONS, marks::CONTAINERS);
        editor.unset(ANNOTATIONS, REVISIONS);
        editor.unset(LABELS, marks::INJECTED_LABEL);
    } else {
        editor.set(ANNOTATIONS, marks::CONTAINERS, json!(marks::join(&ours)));
        editor.set(ANNOTATIONS, marks::INJECTED_SETS, json!(marks::join(&sets)));
        editor.set(ANNOTATIONS, REVISIONS, json!(revisions));
        editor.set(LABELS, marks::INJECTED_LABEL, json!("true"));
    }
    match record {
        Some(record) => editor.set(ANNOTATIONS, marks::DECISION, json!(record)),
        None if ours.is_empty() => editor.unset(ANNOTATIONS, marks::DECISION),
        None => {}
    }
}
