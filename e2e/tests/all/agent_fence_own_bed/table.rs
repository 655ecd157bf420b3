//! The requests, and how each must end.

use http::Method;
use pillion_e2e::agents::ACCOUNT;
use pillion_e2e::manager::NAMESPACE;
use pillion_e2e::pods::{V2, container, pod};
use serde_json::{Value, json};

use super::{AGENT, GAMES, OWN, SERVER};

/// One request, and how it must end.
pub(super) struct Case {
    pub(super) what: &'static str,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Value,
    /// What the refusal says; nothing where it must be done.
    pub(super) refusal: Option<String>,
}

pub(super) fn allowed(what: &'static str, path: &str, body: Value) -> Case {
    Case { what, method: Method::PATCH, path: path.to_owned(), body, refusal: None }
}

pub(super) fn refused(what: &'static str, path: &str, body: Value, refusal: impl Into<String>) -> Case {
    Case { what, method: Method::PATCH, path: path.to_owned(), body, refusal: Some(refusal.into()) }
}

fn by(method: Method, mut case: Case) -> Case {
    case.method = method;
    case
}

pub(super) fn metadata(field: &str, key: &str, value: impl Into<Value>) -> Value {
    json!({"metadata": {field: {key: value.into()}}})
}

pub(super) fn condition(kind: &str) -> Value {
    json!({"status": {"conditions": [{"type": kind, "status": "True", "lastTransitionTime": null}]}})
}

/// What the agent does every day.
pub(super) fn work() -> Vec<Case> {
    vec![
        allowed("a look at its own pod", OWN, json!({})),
        allowed("a label of its configuration", OWN, metadata("labels", "example.com/state", "idle")),
        allowed("the same again, otherwise", OWN, metadata("labels", "example.com/state", "allocated")),
        allowed("the same, taken away", OWN, metadata("labels", "example.com/state", Value::Null)),
        allowed("an annotation", OWN, metadata("annotations", "controller.kubernetes.io/pod-deletion-cost", "-10")),
        allowed("a condition", OWN, condition("example.com/Idle")),
        allowed("a condition that the pod's annotation names", OWN, condition("game.kruise.io/ready")),
        allowed("a result", OWN, metadata("annotations", "pillion.dev/hot-update-result", "{}")),
        allowed("the condition of a result", OWN, condition("pillion.dev/HotUpdate")),
        allowed("the field of its own game server", SERVER, json!({"spec": {"opsState": "Allocated"}})),
        allowed("the same, back", SERVER, json!({"spec": {"opsState": "None"}})),
    ]
}

/// What nobody who has its token can do, by the role it has or by the fence.
pub(super) fn thefts() -> Vec<Case> {
    let core = |path: &str| format!("/api/v1/namespaces/{GAMES}/{path}");
    let get = |what, path: &str, resource: &str, verb: &str| {
        by(Method::GET, refused(what, path, Value::Null, format!("cannot {verb} resource \"{resource}\"")))
    };
    let image = json!({"spec": {"containers": [{"name": "app", "image": V2}]}});
    let may_not = |what: &str| format!("{AGENT} may not change {what} of pods/status games/arena-0");
    vec![
        get("a Secret", &core("secrets/password"), "secrets", "get"),
        get("all Secrets", "/api/v1/secrets", "secrets", "list"),
        get("all pods", "/api/v1/pods", "pods", "list"),
        get("the pods of its namespace", &core("pods"), "pods", "list"),
        get("its own pod", &core("pods/arena-0"), "pods", "get"),
        get("a ConfigMap", &core("configmaps/sidecar-config"), "configmaps", "get"),
        refused("the image of its own pod", &core("pods/arena-0"), image.clone(), "cannot patch resource \"pods\""),
        refused("the image of another pod", &core("pods/arena-1"), image, "cannot patch resource \"pods\""),
        refused(
            "the status of another pod",
            &core("pods/arena-1/status"),
            metadata("labels", "example.com/state", "idle"),
            format!("{AGENT} may not change pods/status games/arena-1, which is not its own pod"),
        ),
        refused("a label that is not listed", OWN, metadata("labels", "app", "other"), may_not("label app")),
        refused("a label taken away", OWN, metadata("labels", "app", Value::Null), may_not("label app")),
        refused(
            "what it is asked for",
            OWN,
            metadata("annotations", "pillion.dev/hot-update", "{}"),
            may_not("annotation pillion.dev/hot-update"),
        ),
        refused(
            "the probes that name its conditions",
            OWN,
            metadata("annotations", "kruise.io/podprobe", "[]"),
            may_not("annotation kruise.io/podprobe"),
        ),
        refused("that it is ready", OWN, condition("Ready"), may_not("condition Ready")),
        refused(
            "a condition nobody listed",
            OWN,
            condition("game.kruise.io/other"),
            may_not("condition game.kruise.io/other"),
        ),
        refused(
            "a condition of somebody, taken away",
            OWN,
            json!({"status": {"conditions": [{"$patch": "delete", "type": "kept.example.com/One"}]}}),
            may_not("condition kept.example.com/One"),
        ),
        refused("its phase", OWN, json!({"status": {"phase": "Failed"}}), may_not("status.phase")),
        refused(
            "a node it would go to",
            OWN,
            json!({"status": {"nominatedNodeName": "n"}}),
            may_not("status.nominatedNodeName"),
        ),
        refused(
            "a finalizer",
            OWN,
            json!({"metadata": {"finalizers": ["example.com/mine"]}}),
            may_not("metadata.finalizers"),
        ),
    ]
}

/// The same of the object that has the name of its pod.
pub(super) fn thefts_of_game_servers() -> Vec<Case> {
    let server = |what: &str| format!("{AGENT} may not change {what} of gameservers games/arena-0");
    vec![
        refused(
            "an end by opsState",
            SERVER,
            json!({"spec": {"opsState": "Kill"}}),
            format!(
                "{AGENT} may not set /spec/opsState of gameservers games/arena-0 to Kill, which its configuration does not list"
            ),
        ),
        refused(
            "a number",
            SERVER,
            json!({"spec": {"opsState": 1}}),
            "to what is no text, which its configuration does not list",
        ),
        refused(
            "no value",
            SERVER,
            json!({"spec": {"opsState": null}}),
            "to nothing, which its configuration does not list",
        ),
        refused(
            "the image of its game server",
            SERVER,
            json!({"spec": {"containers": [{"name": "app", "image": V2}]}}),
            server("spec.containers"),
        ),
        refused("a field taken away", SERVER, json!({"spec": {"updatePriority": null}}), server("spec.updatePriority")),
        refused("a label of its game server", SERVER, metadata("labels", "a", "b"), server("label a")),
        refused("an annotation of it", SERVER, metadata("annotations", "a", "b"), server("annotation a")),
        refused(
            "a finalizer of it",
            SERVER,
            json!({"metadata": {"finalizers": ["example.com/mine"]}}),
            server("metadata.finalizers"),
        ),
        refused(
            "another field at the top",
            SERVER,
            json!({"other": {}, "spec": {"opsState": "Allocated", "deep": {"a": 1}}}),
            server("spec.deep"),
        ),
        refused(
            "another game server",
            &SERVER.replace("arena-0", "arena-1"),
            json!({"spec": {"opsState": "Allocated"}}),
            format!("{AGENT} may not change gameservers games/arena-1, which is not called as its pod"),
        ),
    ]
}

/// The same and more, where somebody gave the account all rights: the fence holds alone.
pub(super) fn thefts_with_all_rights() -> Vec<Case> {
    let core = |path: &str| format!("/api/v1/namespaces/{GAMES}/{path}");
    let image = json!({"spec": {"containers": [{"name": "app", "image": V2}]}});
    let may_not = |what: &str| format!("{AGENT} may not {what}");
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "arena-1", "namespace": GAMES}});
    let mut new = pod("new", &[], &[container("app", &[])]);
    new["metadata"]["namespace"] = GAMES.into();
    new["spec"]["serviceAccountName"] = ACCOUNT.into();
    vec![
        refused("the image of its own pod", &core("pods/arena-0"), image.clone(), may_not("UPDATE pods games/arena-0")),
        refused("the image of another pod", &core("pods/arena-1"), image, may_not("UPDATE pods games/arena-1")),
        by(Method::POST, refused("a pod", &core("pods"), new, may_not("CREATE pods games/new"))),
        by(
            Method::DELETE,
            refused("an end of its own pod", &core("pods/arena-0"), json!({}), may_not("DELETE pods games/arena-0")),
        ),
        by(
            Method::POST,
            refused(
                "an eviction",
                &core("pods/arena-1/eviction"),
                eviction,
                may_not("CREATE pods/eviction games/arena-1"),
            ),
        ),
        by(
            Method::DELETE,
            refused("its game server, deleted", SERVER, json!({}), may_not("DELETE gameservers games/arena-0")),
        ),
        refused(
            "the status of its game server",
            &format!("{SERVER}/status"),
            json!({"status": {"a": 1}}),
            may_not("UPDATE gameservers/status games/arena-0"),
        ),
    ]
}

/// What the controller may do of what it has the right to; as dry runs, which admission treats the same.
pub(super) fn of_the_controller() -> Vec<Case> {
    [to_pods(), to_config_maps(), to_accounts(), to_roles(), beyond_its_rights()].into_iter().flatten().collect()
}

fn to_pods() -> Vec<Case> {
    let pod = "/api/v1/namespaces/games/pods/arena-0?dryRun=All";
    let may_not = |what: &str| format!("the agent controller of Pillion may not {what}");
    let image = json!({"spec": {"containers": [{"name": "app", "image": V2}]}});
    vec![
        allowed("what a pod is asked for", pod, metadata("annotations", "pillion.dev/hot-update", "{}")),
        refused(
            "another annotation",
            pod,
            metadata("annotations", "kruise.io/podprobe", "[]"),
            "annotation kruise.io/podprobe may not be changed by the agent controller",
        ),
        refused("a label", pod, metadata("labels", "app", "x"), "metadata.labels may not be changed"),
        refused("an image", pod, image, "spec may not be changed"),
        refused(
            "the status of a pod",
            "/api/v1/namespaces/games/pods/arena-0/status?dryRun=All",
            json!({}),
            may_not("UPDATE pods/status games/arena-0"),
        ),
        refused(
            "a game server",
            &format!("{SERVER}?dryRun=All"),
            json!({"spec": {"opsState": "Allocated"}}),
            may_not("UPDATE gameservers games/arena-0"),
        ),
    ]
}

/// Server-side apply of an object; `None` where it must be done.
fn apply(what: &'static str, namespace: &str, object: Value, refusal: Option<&str>) -> Case {
    let plural = format!("{}s", object["kind"].as_str().unwrap_or_default().to_lowercase());
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let api = match object["apiVersion"].as_str() {
        Some("v1") => "/api/v1".to_owned(),
        version => format!("/apis/{}", version.unwrap_or_default()),
    };
    let path = format!("{api}/namespaces/{namespace}/{plural}/{name}?dryRun=All&fieldManager=x&force=true");
    Case { what, method: Method::PATCH, path, body: object, refusal: refusal.map(str::to_owned) }
}

fn to_config_maps() -> Vec<Case> {
    let map =
        |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}});
    let labelled = |name: &str| {
        let mut map = map(name);
        map["metadata"]["labels"] = json!({"pillion.dev/agent-config": "true"});
        map
    };
    let not_ours = Some("is not Pillion's");
    let theirs = "/api/v1/namespaces/games/configmaps/theirs?dryRun=All";
    vec![
        apply("the results", GAMES, map("sidecar-result"), None),
        apply("the lists of the fence", NAMESPACE, map("pillion-agent-policy-params"), None),
        apply("a copy", GAMES, labelled("sidecar-config"), None),
        apply("a new copy", GAMES, labelled("more"), None),
        apply("a ConfigMap of somebody", GAMES, labelled("theirs"), not_ours),
        apply("a ConfigMap without our label", GAMES, map("new"), not_ours),
        apply("a central configuration", NAMESPACE, labelled("sidecar-config"), not_ours),
        apply("the switch", NAMESPACE, labelled("pillion-switch"), not_ours),
        apply("where a cluster starts", "kube-system", labelled("more"), not_ours),
        by(Method::DELETE, refused("a ConfigMap of somebody, deleted", theirs, json!({}), "is not Pillion's")),
    ]
}

const ONLY_OURS: Option<&str> = Some("the agent controller of Pillion may write only what is called pillion-agent-*");

fn to_accounts() -> Vec<Case> {
    let account = |name: &str, fields: Value| {
        let mut account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
        account["automountServiceAccountToken"] = fields;
        account
    };
    let quiet = || json!(false);
    vec![
        apply("an account", GAMES, account("pillion-agent-x", quiet()), None),
        apply(
            "an account with a token everywhere",
            GAMES,
            account("pillion-agent-x", json!(true)),
            Some("automountServiceAccountToken: false"),
        ),
        apply("another account", GAMES, account("default", quiet()), ONLY_OURS),
        apply("its own account", NAMESPACE, account("pillion-agent-controller", quiet()), ONLY_OURS),
    ]
}

fn to_roles() -> Vec<Case> {
    let rbac = "rbac.authorization.k8s.io";
    let role = |name: &str, group: &str, resource: &str, verb: &str| {
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": {"name": name},
            "rules": [{"apiGroups": [group], "resources": [resource], "verbs": [verb]}]})
    };
    let binding = |name: &str, subject: &str| {
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", "name": subject, "namespace": GAMES}]})
    };
    let (x, rules) = ("pillion-agent-x", Some("a role of agents may patch pods/status"));
    let not_held = Some("attempting to grant RBAC permissions not currently held");
    vec![
        apply("a role", GAMES, role(x, "", "pods/status", "patch"), None),
        apply("a role for game servers", GAMES, role(x, "game.kruise.io", "gameservers", "patch"), None),
        apply("a role of another name", GAMES, role("admin", "", "pods/status", "patch"), ONLY_OURS),
        apply("a role with what it does itself", GAMES, role(x, "", "pods", "patch"), rules),
        apply("a role that reads all ConfigMaps", GAMES, role(x, "", "configmaps", "get"), rules),
        apply("a role with what it has not", GAMES, role(x, "", "secrets", "get"), not_held),
        apply("a binding", GAMES, binding(ACCOUNT, ACCOUNT), None),
        apply("a binding for somebody", GAMES, binding(x, "default"), Some("is bound to the account of the same name")),
        apply("a binding of another name", GAMES, binding("mine", ACCOUNT), ONLY_OURS),
    ]
}

fn beyond_its_rights() -> Vec<Case> {
    let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let all = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "mine"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}});
    let of_agent = format!("/api/v1/namespaces/games/serviceaccounts/{ACCOUNT}/token");
    let secret = "/api/v1/namespaces/games/secrets/password";
    let cannot = |what: &str| format!("cannot {what}");
    vec![
        by(
            Method::POST,
            refused("a token of an agent", &of_agent, token, cannot("create resource \"serviceaccounts/token\"")),
        ),
        by(Method::GET, refused("a Secret", secret, Value::Null, cannot("get resource \"secrets\""))),
        by(
            Method::POST,
            refused(
                "all rights",
                "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
                all,
                cannot("create resource \"clusterrolebindings\""),
            ),
        ),
    ]
}
