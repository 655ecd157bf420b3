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
use pillion_testbed::{Bed, Cluster, Config, Look, apply, until};
use serde_json::{Value, json};

mod table;

use table::{
    Case, allowed, condition, metadata, of_the_controller, refused, thefts, thefts_of_game_servers,
    thefts_with_all_rights, work,
};

const GAMES: &str = "games";
const OWN: &str = "/api/v1/namespaces/games/pods/arena-0/status";
const SERVER: &str = "/apis/game.kruise.io/v1alpha1/namespaces/games/gameservers/arena-0";
/// Requests of the table that are denied also without the parameters of the policies.
const WITHOUT_PARAMETERS: usize = 18;
const AGENT: &str = "the agent of pod games/arena-0 with configuration sidecar-config";

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
    until("the fence to stand", agents::PATIENCE, || async {
        let answer = send(&thief, Method::PATCH, OWN, &metadata("labels", "app", "other")).await;
        let kill = send(&thief, Method::PATCH, SERVER, &json!({"spec": {"opsState": "Kill"}})).await;
        Ok(match (answer, kill) {
            (Ok(Err(one)), Ok(Err(other))) if one.contains("may not") && other.contains("may not") => Look::Done(()),
            other => Look::NotYet(format!("{other:?}")),
        })
    })
    .await?;
    Ok(thief)
}

#[tokio::test]
async fn ci_a_stolen_token_of_an_agent_does_its_work_and_nothing_else() -> Result<()> {
    let bed = Bed::start(Config::control_plane("agent-fence")).await?;
    let (cluster, (client, pods)) = (bed.cluster(), games(&bed).await?);
    let thief = until_fenced(cluster, &pods[0]).await?;
    assert_eq!(wrong(&thief, &work()).await?, Vec::<String>::new());
    assert_eq!(wrong(&thief, &thefts()).await?, Vec::<String>::new());
    assert_eq!(wrong(&thief, &thefts_of_game_servers()).await?, Vec::<String>::new());

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

    // A token of the pod that had the name before is nobody's either.
    let before = client_of_pod(cluster, &pods[1]).await?;
    let one = "/api/v1/namespaces/games/pods/arena-1";
    assert_eq!(
        wrong(&before, &[allowed("its own pod", &format!("{one}/status"), json!({}))]).await?,
        Vec::<String>::new()
    );
    let at_once = format!("{one}?gracePeriodSeconds=0");
    send(&client, Method::DELETE, &at_once, &Value::Null).await?.map_err(anyhow::Error::msg)?;
    let mut again = pod("arena-1", &[], &[container("app", &[])]);
    again["spec"]["serviceAccountName"] = ACCOUNT.into();
    again["metadata"]["namespace"] = GAMES.into();
    apply(&client, "e2e", &again).await?;
    until("the token to be forgotten", agents::PATIENCE, || async {
        Ok(match send(&before, Method::PATCH, &format!("{one}/status"), &json!({})).await {
            Ok(Err(words)) => Look::Done(words),
            other => Look::NotYet(format!("{other:?}")),
        })
    })
    .await?;

    // Somebody gave all accounts all rights: the fence holds alone.
    let all_rights = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "everything"},
        "subjects": [{"kind": "Group", "name": "system:serviceaccounts"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}});
    apply(&client, "e2e", &all_rights).await?;
    until("the account to have all rights", agents::PATIENCE, || async {
        Ok(match send(&thief, Method::GET, "/api/v1/secrets", &Value::Null).await {
            Ok(Ok(_)) => Look::Done(()),
            other => Look::NotYet(format!("{other:?}")),
        })
    })
    .await?;
    let mut cases = thefts_with_all_rights();
    let fenced = thefts().into_iter().chain(thefts_of_game_servers());
    cases.extend(fenced.filter(|case| case.refusal.as_ref().is_some_and(|words| words.starts_with(AGENT))));
    assert_eq!(wrong(&thief, &cases).await?, Vec::<String>::new());

    without_parameters(&client, &thief).await?;
    bed.stop().await?;
    Ok(())
}

/// Without the parameters of the policies nobody checks keys and values, also where the account has all rights. The agent is
/// still limited to its own pod and the object of its name, and there to the fields that agents write.
async fn without_parameters(client: &Client, thief: &Client) -> Result<()> {
    let params = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/pillion-agent-policy-params");
    send(client, Method::DELETE, &params, &Value::Null).await?.map_err(anyhow::Error::msg)?;
    until("keys not to be checked any more", agents::PATIENCE, || async {
        Ok(match send(thief, Method::PATCH, OWN, &metadata("labels", "unlisted", "yes")).await {
            Ok(Ok(_)) => Look::Done(()),
            other => Look::NotYet(format!("{other:?}")),
        })
    })
    .await?;
    assert_eq!(wrong(thief, &work()).await?, Vec::<String>::new());
    let kept = |case: &Case| {
        let of_keys = ["label ", "annotation ", "condition "].iter().any(|it| {
            case.path == OWN
                && case.refusal.as_ref().is_some_and(|words| words.contains(&format!("may not change {it}")))
        });
        let of_values = case.refusal.as_ref().is_some_and(|words| words.contains("may not set /spec/opsState"));
        case.refusal.as_ref().is_some_and(|words| words.starts_with(AGENT)) && !of_keys && !of_values
    };
    let mut cases = thefts_with_all_rights();
    cases.extend(thefts().into_iter().chain(thefts_of_game_servers()).filter(kept));
    assert_eq!(cases.len(), WITHOUT_PARAMETERS);
    assert_eq!(wrong(thief, &cases).await?, Vec::<String>::new());
    Ok(())
}

fn pods_image(pod: &Pod) -> Value {
    json!(pod.spec.as_ref().and_then(|spec| spec.containers[0].image.clone()))
}

#[tokio::test]
async fn ci_the_controller_of_agents_may_not_use_what_it_gives() -> Result<()> {
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
