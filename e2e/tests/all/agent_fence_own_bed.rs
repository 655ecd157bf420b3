//! The fence of agents, and that of the controller that gives them their rights, on a real API server: what a stolen token
//! can still do. The rights are those that the controller gives, which itself runs with those of the chart.

use anyhow::Result;
use http::Method;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, PostParams};
use pillion_e2e::agents::{self, ACCOUNT, client_of_pod, controller, install, namespace, send};
use pillion_e2e::chart;
use pillion_e2e::manager::NAMESPACE;
use pillion_e2e::pods::{V2, container, pod};
use pillion_testbed::{Bed, Cluster, Config, apply};
use serde_json::{Value, json};

const GAMES: &str = "games";
const OWN: &str = "/api/v1/namespaces/games/pods/arena-0/status";
const SERVER: &str = "/apis/game.kruise.io/v1alpha1/namespaces/games/gameservers/arena-0";
const AGENT: &str = "the agent of pod games/arena-0 with configuration sidecar-config";

/// One request, and how it must end.
struct Case {
    what: &'static str,
    method: Method,
    path: String,
    body: Value,
    /// What the refusal says; nothing where it must be done.
    refusal: Option<String>,
}

fn allowed(what: &'static str, path: &str, body: Value) -> Case {
    Case { what, method: Method::PATCH, path: path.to_owned(), body, refusal: None }
}

fn refused(what: &'static str, path: &str, body: Value, refusal: impl Into<String>) -> Case {
    Case { what, method: Method::PATCH, path: path.to_owned(), body, refusal: Some(refusal.into()) }
}

fn by(method: Method, mut case: Case) -> Case {
    case.method = method;
    case
}

/// What does not end as it must, in words.
async fn wrong(client: &Client, cases: &[Case]) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for case in cases {
        let answer = send(client, case.method.clone(), &case.path, &case.body).await?;
        let words =
            answer.as_ref().err().map(|message| message.split_once("denied request: ").map_or(&**message, |it| it.1));
        let is_right = match (&case.refusal, words) {
            (None, None) => true,
            (Some(expected), Some(words)) => words.contains(expected.as_str()),
            _ => false,
        };
        if !is_right {
            wrong.push(format!("{}: {words:?}, not {:?}", case.what, case.refusal));
        }
    }
    Ok(wrong)
}

fn metadata(field: &str, key: &str, value: impl Into<Value>) -> Value {
    json!({"metadata": {field: {key: value.into()}}})
}

fn condition(kind: &str) -> Value {
    json!({"status": {"conditions": [{"type": kind, "status": "True", "lastTransitionTime": null}]}})
}

/// What the agent does every day.
fn work() -> Vec<Case> {
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
fn thefts() -> Vec<Case> {
    let core = |path: &str| format!("/api/v1/namespaces/{GAMES}/{path}");
    let get = |what, path: &str, resource: &str, verb: &str| {
        by(Method::GET, refused(what, path, Value::Null, format!("cannot {verb} resource \"{resource}\"")))
    };
    let image = json!({"spec": {"containers": [{"name": "app", "image": V2}]}});
    let may_not = |what: &str| format!("{AGENT} may not change {what} of pods/status games/arena-0");
    let server = |what: &str| format!("{AGENT} may not change {what} of gameservers games/arena-0");
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
            "its address",
            OWN,
            json!({"status": {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}}),
            may_not("status.podIP"),
        ),
        refused(
            "a finalizer",
            OWN,
            json!({"metadata": {"finalizers": ["example.com/mine"]}}),
            may_not("metadata.finalizers"),
        ),
        refused(
            "an end by opsState",
            SERVER,
            json!({"spec": {"opsState": "Kill"}}),
            format!(
                "{AGENT} may not set /spec/opsState of gameservers games/arena-0 to Kill, which its configuration does not list"
            ),
        ),
        refused("a number", SERVER, json!({"spec": {"opsState": 1}}), "to 1, which its configuration does not list"),
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
fn thefts_with_all_rights() -> Vec<Case> {
    let core = |path: &str| format!("/api/v1/namespaces/{GAMES}/{path}");
    let image = json!({"spec": {"containers": [{"name": "app", "image": V2}]}});
    let may_not = |what: &str| format!("{AGENT} may not {what}");
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "arena-0", "namespace": GAMES}});
    let mut new = pod("new", &[], &[container("app", &[])]);
    new["metadata"]["namespace"] = GAMES.into();
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

/// A cluster with agents in a namespace: two pods of theirs, and an object of the name of each.
async fn games(bed: &Bed) -> Result<(Client, [Pod; 2])> {
    let client = install(bed).await?;
    for object in [namespace(GAMES, "yes"), agents::config(agents::GAME), agents::set("game")] {
        apply(&client, "e2e", &object).await?;
    }
    let manager = controller(bed.cluster()).await?;
    let binding = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{GAMES}/rolebindings/{ACCOUNT}");
    agents::seen(&client, &binding, "the agents to have their rights", |found| found.map(|_| ())).await?;
    manager.stop().await?;
    let pods = Api::<Pod>::namespaced(client.clone(), GAMES);
    let mut made = Vec::new();
    for name in ["arena-0", "arena-1"] {
        let mut pod = pod(name, &[], &[container("app", &[])]);
        pod["metadata"]["labels"] = json!({"app": "arena"});
        pod["metadata"]["annotations"] =
            json!({"kruise.io/podprobe": r#"[{"podConditionType":"game.kruise.io/ready"}]"#});
        pod["spec"]["serviceAccountName"] = ACCOUNT.into();
        let pod = pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        let status = format!("/api/v1/namespaces/{GAMES}/pods/{name}/status");
        let kept = send(&client, Method::PATCH, &status, &condition("kept.example.com/One")).await?;
        assert!(kept.is_ok(), "{kept:?}");
        made.push(pod);
        let server = json!({"apiVersion": "game.kruise.io/v1alpha1", "kind": "GameServer", "metadata": {"name": name, "namespace": GAMES},
            "spec": {"opsState": "None", "updatePriority": 1, "containers": [{"name": "app", "image": "app:1"}]}});
        apply(&client, "e2e", &server).await?;
    }
    let made = <[Pod; 2]>::try_from(made).map_err(|_| anyhow::anyhow!("two pods"))?;
    Ok((client, made))
}

/// Waits until the policies, which come by a watch, are in force.
async fn until_fenced(cluster: &Cluster, pod: &Pod) -> Result<Client> {
    let thief = client_of_pod(cluster, pod).await?;
    pillion_testbed::until("the fence to stand", agents::PATIENCE, || async {
        let answer = send(&thief, Method::PATCH, OWN, &metadata("labels", "app", "other")).await;
        let kill = send(&thief, Method::PATCH, SERVER, &json!({"spec": {"opsState": "Kill"}})).await;
        Ok(match (answer, kill) {
            (Ok(Err(one)), Ok(Err(other))) if one.contains("may not") && other.contains("may not") => {
                pillion_testbed::Look::Done(())
            }
            other => pillion_testbed::Look::NotYet(format!("{other:?}")),
        })
    })
    .await?;
    Ok(thief)
}

#[tokio::test]
async fn a_stolen_token_of_an_agent_does_its_work_and_nothing_else() -> Result<()> {
    let bed = Bed::start(Config::control_plane("agent-fence")).await?;
    let (cluster, (client, pods)) = (bed.cluster(), games(&bed).await?);
    let thief = until_fenced(cluster, &pods[0]).await?;
    assert_eq!(wrong(&thief, &work()).await?, Vec::<String>::new());
    assert_eq!(wrong(&thief, &thefts()).await?, Vec::<String>::new());

    // What the status of a pod cannot change, it does not: neither the image nor the owner.
    let sly = json!({"spec": {"containers": [{"name": "app", "image": V2}]},
        "metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]}});
    let answer = send(&thief, Method::PATCH, OWN, &sly).await?.map_err(anyhow::Error::msg)?;
    assert_eq!(answer["spec"]["containers"][0]["image"], pods_image(&pods[0]));
    assert_eq!(answer["metadata"]["ownerReferences"], Value::Null);

    // A token that names no pod is nobody's.
    let nobody = chart::client_of(cluster, GAMES, ACCOUNT).await?;
    let own = metadata("labels", "example.com/state", "idle");
    let no_pod = "the agent of no pod with configuration sidecar-config may not change pods/status games/arena-0, which is not its own pod";
    assert_eq!(
        wrong(&nobody, &[refused("a token without a pod", OWN, own.clone(), no_pod)]).await?,
        Vec::<String>::new()
    );

    // One of the pod that had the name before is not this pod's.
    send(&client, Method::DELETE, "/api/v1/namespaces/games/pods/arena-1?gracePeriodSeconds=0", &Value::Null)
        .await?
        .map_err(anyhow::Error::msg)?;

    let all_rights = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "everything"},
        "subjects": [{"kind": "Group", "name": "system:serviceaccounts"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}});
    // Another namespace has agents of the same configuration, and a pod of the same name.
    apply(&client, "e2e", &all_rights).await?;
    let mut again = pod("arena-1", &[], &[container("app", &[])]);
    again["spec"]["serviceAccountName"] = ACCOUNT.into();
    again["metadata"]["namespace"] = GAMES.into();
    apply(&client, "e2e", &again).await?;
    let mut cases = thefts_with_all_rights();
    cases.extend(
        thefts().into_iter().filter(|case| case.refusal.as_ref().is_some_and(|words| words.starts_with(AGENT))),
    );
    assert_eq!(wrong(&thief, &cases).await?, Vec::<String>::new());

    // Without the lists of the fence nothing is allowed.
    let lists = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/pillion-agent-fence");
    send(&client, Method::DELETE, &lists, &Value::Null).await?.map_err(anyhow::Error::msg)?;
    pillion_testbed::until("the fence to have no lists", agents::PATIENCE, || async {
        Ok(match send(&thief, Method::PATCH, OWN, &json!({})).await {
            Ok(Err(words)) => pillion_testbed::Look::Done(words),
            other => pillion_testbed::Look::NotYet(format!("{other:?}")),
        })
    })
    .await?;
    bed.stop().await?;
    Ok(())
}

fn pods_image(pod: &Pod) -> Value {
    json!(pod.spec.as_ref().and_then(|spec| spec.containers[0].image.clone()))
}

/// What the controller may do of what it has the right to; as dry runs, which admission treats the same.
fn of_the_controller() -> Vec<Case> {
    let core = |path: &str| format!("/api/v1/namespaces/{path}?dryRun=All");
    let applied = |path: &str| format!("{path}?dryRun=All&fieldManager=x&force=true");
    let roles = |namespace: &str, kind: &str, name: &str| {
        applied(&format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/{kind}/{name}"))
    };
    let map = |namespace: &str, name: &str| applied(&format!("/api/v1/namespaces/{namespace}/configmaps/{name}"));
    let account =
        |namespace: &str, name: &str| applied(&format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}"));
    let object = |kind: &str, name: &str, fields: Value| {
        let version = if kind.starts_with("Role") { "rbac.authorization.k8s.io/v1" } else { "v1" };
        let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}});
        for (key, value) in fields.as_object().into_iter().flatten() {
            object[key] = value.clone();
        }
        object
    };
    let labelled = |name: &str| {
        let mut map = object("ConfigMap", name, json!({"data": {"config.yaml": "x"}}));
        map["metadata"]["labels"] = json!({"pillion.dev/agent-config": "true"});
        map
    };
    let role = |name: &str, group: &str, resource: &str, verb: &str| {
        object("Role", name, json!({"rules": [{"apiGroups": [group], "resources": [resource], "verbs": [verb]}]}))
    };
    let binding = |name: &str, role: &str, subject: &str| {
        object(
            "RoleBinding",
            name,
            json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": subject, "namespace": GAMES}]}),
        )
    };
    let quiet = json!({"automountServiceAccountToken": false});
    let (who, not_ours) = ("the agent controller of Pillion", "is not Pillion's");
    let may_not = |what: &str| format!("{who} may not {what}");
    let names = format!("{who} may write only what is called pillion-agent-*");
    vec![
        allowed(
            "what a pod is asked for",
            &core("games/pods/arena-0"),
            metadata("annotations", "pillion.dev/hot-update", "{}"),
        ),
        refused(
            "another annotation",
            &core("games/pods/arena-0"),
            metadata("annotations", "pillion.dev/decision", "{}"),
            "annotation pillion.dev/decision may not be changed by the agent controller",
        ),
        refused(
            "a label",
            &core("games/pods/arena-0"),
            metadata("labels", "app", "x"),
            "metadata.labels may not be changed",
        ),
        refused(
            "an image",
            &core("games/pods/arena-0"),
            json!({"spec": {"containers": [{"name": "app", "image": V2}]}}),
            "spec may not be changed",
        ),
        refused(
            "the status of a pod",
            &core("games/pods/arena-0/status"),
            json!({}),
            may_not("UPDATE pods/status games/arena-0"),
        ),
        refused(
            "a game server",
            &format!("{SERVER}?dryRun=All"),
            json!({"spec": {"opsState": "Allocated"}}),
            may_not("UPDATE gameservers games/arena-0"),
        ),
        allowed(
            "the results",
            &map(GAMES, "sidecar-result"),
            object("ConfigMap", "sidecar-result", json!({"data": {"a": "b"}})),
        ),
        allowed(
            "the lists of the fence",
            &map(NAMESPACE, "pillion-agent-fence"),
            object("ConfigMap", "pillion-agent-fence", json!({"data": {}})),
        ),
        allowed("a copy", &map(GAMES, "sidecar-config"), labelled("sidecar-config")),
        allowed("a new copy", &map(GAMES, "more"), labelled("more")),
        refused("a ConfigMap of somebody", &map(GAMES, "theirs"), labelled("theirs"), not_ours),
        refused(
            "a ConfigMap without our label",
            &map(GAMES, "new"),
            object("ConfigMap", "new", json!({"data": {}})),
            not_ours,
        ),
        refused("a central configuration", &map(NAMESPACE, "sidecar-config"), labelled("sidecar-config"), not_ours),
        refused("the switch", &map(NAMESPACE, "pillion-switch"), labelled("pillion-switch"), not_ours),
        refused("where a cluster starts", &map("kube-system", "more"), labelled("more"), not_ours),
        by(
            Method::DELETE,
            refused("a ConfigMap of somebody, deleted", &core("games/configmaps/theirs"), json!({}), not_ours),
        ),
        allowed(
            "an account",
            &account(GAMES, "pillion-agent-x"),
            object("ServiceAccount", "pillion-agent-x", quiet.clone()),
        ),
        refused(
            "an account with a token everywhere",
            &account(GAMES, "pillion-agent-x"),
            object("ServiceAccount", "pillion-agent-x", json!({})),
            "automountServiceAccountToken: false",
        ),
        refused(
            "another account",
            &account(GAMES, "default"),
            object("ServiceAccount", "default", quiet.clone()),
            &*names,
        ),
        refused(
            "its own account",
            &account(NAMESPACE, "pillion-agent-controller"),
            object("ServiceAccount", "pillion-agent-controller", quiet),
            &*names,
        ),
        allowed(
            "a role",
            &roles(GAMES, "roles", "pillion-agent-x"),
            role("pillion-agent-x", "", "pods/status", "patch"),
        ),
        allowed(
            "a role for game servers",
            &roles(GAMES, "roles", "pillion-agent-x"),
            role("pillion-agent-x", "game.kruise.io", "gameservers", "patch"),
        ),
        refused(
            "a role of another name",
            &roles(GAMES, "roles", "admin"),
            role("admin", "", "pods/status", "patch"),
            &*names,
        ),
        refused(
            "a role with what it does itself",
            &roles(GAMES, "roles", "pillion-agent-x"),
            role("pillion-agent-x", "", "pods", "patch"),
            "a role of agents may patch pods/status",
        ),
        refused(
            "a role that reads all ConfigMaps",
            &roles(GAMES, "roles", "pillion-agent-x"),
            role("pillion-agent-x", "", "configmaps", "get"),
            "a role of agents may patch pods/status",
        ),
        refused(
            "a role with what it has not",
            &roles(GAMES, "roles", "pillion-agent-x"),
            role("pillion-agent-x", "", "secrets", "get"),
            "attempting to grant RBAC permissions not currently held",
        ),
        allowed(
            "a binding",
            &roles(GAMES, "rolebindings", "pillion-agent-sidecar-config"),
            binding(ACCOUNT, ACCOUNT, ACCOUNT),
        ),
        refused(
            "a binding for somebody",
            &roles(GAMES, "rolebindings", "pillion-agent-x"),
            binding("pillion-agent-x", ACCOUNT, "default"),
            "is bound to the account of the same name",
        ),
        refused(
            "a binding of another name",
            &roles(GAMES, "rolebindings", "mine"),
            binding("mine", ACCOUNT, ACCOUNT),
            &*names,
        ),
        by(
            Method::POST,
            refused(
                "a token of an agent",
                &core("games/serviceaccounts/pillion-agent-sidecar-config/token"),
                json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}),
                "cannot create resource \"serviceaccounts/token\"",
            ),
        ),
        by(
            Method::GET,
            refused(
                "a Secret",
                "/api/v1/namespaces/games/secrets/password",
                Value::Null,
                "cannot get resource \"secrets\"",
            ),
        ),
        by(
            Method::POST,
            refused(
                "all rights",
                "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
                json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "mine"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}}),
                "cannot create resource \"clusterrolebindings\"",
            ),
        ),
    ]
}

#[tokio::test]
async fn the_controller_of_agents_may_not_use_what_it_gives() -> Result<()> {
    let bed = Bed::start(Config::control_plane("agent-controller-fence")).await?;
    let (cluster, (client, pods)) = (bed.cluster(), games(&bed).await?);
    until_fenced(cluster, &pods[0]).await?;
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": GAMES}, "data": {"a": "b"}});
    apply(&client, "e2e", &theirs).await?;
    let thief = chart::client_of(cluster, NAMESPACE, "pillion-agent-controller").await?;
    assert_eq!(wrong(&thief, &of_the_controller()).await?, Vec::<String>::new());
    // Nobody takes the label off a copy, by which it is known; where the configuration itself is, people may.
    let copy = format!("/api/v1/namespaces/{GAMES}/configmaps/sidecar-config");
    let bare = metadata("labels", "pillion.dev/agent-config", Value::Null);
    let words = "configmaps games/sidecar-config: label pillion.dev/agent-config may not be changed";
    assert_eq!(
        wrong(&client, &[refused("the label of a copy", &copy, bare.clone(), words)]).await?,
        Vec::<String>::new()
    );
    let central = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/sidecar-config");
    assert_eq!(
        wrong(&client, &[allowed("the label of the configuration", &central, bare)]).await?,
        Vec::<String>::new()
    );
    bed.stop().await?;
    Ok(())
}
