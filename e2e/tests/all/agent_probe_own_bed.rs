//! The state of a game server, carried out of its pod by an agent: story 1 of the proposal, on a real node.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use pillion_e2e::agent_pods::{Agents, app_deployment};
use pillion_testbed::{Bed, Config, Look, until};
use serde_json::json;

const CONFIG: &str = r"
plugins:
  - name: http_probe
    config:
      startDelaySeconds: 1
      probeIntervalSeconds: 1
      endpoints:
        - url: http://localhost:8080/word
          timeout: 2
          expectedStatusCode: 200
          failureThreshold: 2
          failureState: unknown
          storageConfig:
            type: InKube
            inKube:
              annotationKey: game/state
              conditionType: game.kruise.io/state
              target:
                group: game.kruise.io
                version: v1alpha1
                resource: gameservers
                name: ${SELF:POD_NAME}
                namespace: ${SELF:POD_NAMESPACE}
              jsonPath: /spec/opsState
              markerPolices:
                - state: idle
                  value: None
                  labels: {gameserver-idle: 'true'}
                  annotations: {controller.kubernetes.io/pod-deletion-cost: '-10'}
                - state: allocated
                  value: Allocated
                  labels: {gameserver-idle: 'false', in-use: 'yes'}
                  annotations: {controller.kubernetes.io/pod-deletion-cost: '10'}
                - state: unknown
                  labels: {gameserver-idle: 'false'}
                  annotations: {controller.kubernetes.io/pod-deletion-cost: '5'}
";

/// What the pod and its game server show.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    condition: Option<(String, String)>,
    ops_state: Option<String>,
}

fn shown(pod: &Pod, server: &DynamicObject) -> Shown {
    let ours = |all: &BTreeMap<String, String>, keys: &[&str]| {
        all.iter().filter(|(key, _)| keys.contains(&key.as_str())).map(|(a, b)| (a.clone(), b.clone())).collect()
    };
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let condition = conditions.into_iter().find(|it| it.type_ == "game.kruise.io/state");
    Shown {
        labels: ours(pod.labels(), &["gameserver-idle", "in-use"]),
        annotations: ours(pod.annotations(), &["game/state", "controller.kubernetes.io/pod-deletion-cost"]),
        condition: condition.map(|it| (it.status.clone(), it.message.clone().unwrap_or_default())),
        ops_state: server.data["spec"]["opsState"].as_str().map(str::to_owned),
    }
}

fn expected(state: &str, labels: &[(&str, &str)], cost: &str, status: &str, ops_state: &str) -> Shown {
    let text = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    Shown {
        labels: labels.iter().map(text).collect(),
        annotations: [("game/state", state), ("controller.kubernetes.io/pod-deletion-cost", cost)]
            .iter()
            .map(text)
            .collect(),
        condition: Some((status.to_owned(), state.to_owned())),
        ops_state: Some(ops_state.to_owned()),
    }
}

#[tokio::test]
async fn ci_the_state_of_a_game_server_becomes_marks_of_its_pod_and_a_scale_down_takes_the_idle_one() -> Result<()> {
    let bed = Bed::start(Config::control_plane("agent-probe").with_node()).await?;
    let agents = Agents::start(&bed).await?;
    let scene = &agents.scene;
    agents.install(CONFIG, "game", &[]).await?;
    scene.apply(app_deployment("game", 2, &["--word", "idle"])).await?;
    let pods = agents.until_ready("game", 2).await?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("game.kruise.io", "v1alpha1", "GameServer"));
    let servers = Api::<DynamicObject>::namespaced_with(scene.client.clone(), &scene.namespace, &kind);
    for pod in &pods {
        scene
            .apply(json!({"apiVersion": "game.kruise.io/v1alpha1", "kind": "GameServer",
                "metadata": {"name": pod.name_any()},
                "spec": {"deletionPriority": 1, "containers": [{"name": "app", "image": "app:1"}]}}))
            .await?;
    }
    let name = pods.first().context("a pod")?.name_any();
    let show = |what: &'static str, wanted: Shown| {
        let (servers, scene, name) = (servers.clone(), scene, name.clone());
        async move {
            let api = scene.api::<Pod>();
            until(what, std::time::Duration::from_mins(1), || async {
                let (pod, server) = (api.get(&name).await, servers.get(&name).await);
                Ok(match (pod, server) {
                    (Ok(pod), Ok(server)) if shown(&pod, &server) == wanted => Look::Done(()),
                    (Ok(pod), Ok(server)) => Look::NotYet(format!("{:?}", shown(&pod, &server))),
                    (pod, server) => Look::NotYet(format!("{:?} {:?}", pod.err(), server.err())),
                })
            })
            .await
        }
    };
    let idle = || expected("idle", &[("gameserver-idle", "true")], "-10", "True", "None");
    show("idle", idle()).await?;
    agents.say(&name, 200, "allocated\n")?;
    let in_use = [("gameserver-idle", "false"), ("in-use", "yes")];
    show("allocated", expected("allocated", &in_use, "10", "True", "Allocated")).await?;
    agents.say(&name, 500, "")?;
    // A state without a value leaves the other object as it is.
    let lost = [("gameserver-idle", "false")];
    show("unknown", expected("unknown", &lost, "5", "False", "Allocated")).await?;
    agents.say(&name, 200, "idle")?;
    show("idle again", idle()).await?;

    // The one that is in use stays.
    agents.say(&name, 200, "allocated")?;
    show("allocated again", expected("allocated", &in_use, "10", "True", "Allocated")).await?;
    let deployments = scene.api::<k8s_openapi::api::apps::v1::Deployment>();
    deployments.patch("game", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 1}}))).await?;
    let left = until("one pod to be left", std::time::Duration::from_mins(1), || async {
        Ok(match agents.pods("game").await {
            Ok(pods) if pods.len() == 1 => Look::Done(pods),
            other => Look::NotYet(format!("{:?}", other.map(|pods| pods.len()))),
        })
    })
    .await?;
    assert_eq!(left.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), [name]);
    // One write for each of the five states it was in.
    assert_eq!(agents.writes(&left[0].name_any())?, 5);
    // Nobody else's field of the game server was touched.
    let server = servers.get(&left[0].name_any()).await?;
    assert_eq!(server.data["spec"]["containers"], json!([{"name": "app", "image": "app:1"}]));
    assert_eq!(server.data["spec"]["deletionPriority"], 1);
    Ok(())
}
