//! A writer that believes the pod's status, labels and annotations to be its own, as virtual kubelets do.

use std::time::{Duration, Instant};

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, PostParams};
use pillion_e2e::agent_pods::{Agents, app_pod};
use pillion_testbed::{Bed, Config, Look, until};

const CONFIG: &str = r"
plugins:
  - name: http_probe
    config:
      startDelaySeconds: 1
      probeIntervalSeconds: 1
      reassertSeconds: 5
      endpoints:
        - url: http://localhost:8080/word
          storageConfig:
            type: InKube
            inKube:
              conditionType: game.kruise.io/state
              markerPolicies:
                - state: idle
                  labels: {gameserver-idle: 'true'}
                  annotations: {controller.kubernetes.io/pod-deletion-cost: '-10'}
";
/// How often the other writer writes, and how often in all.
const EVERY: Duration = Duration::from_secs(5);
const ROUNDS: u32 = 6;

fn is_marked(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    pod.labels().get("gameserver-idle").is_some_and(|value| value == "true")
        && pod.annotations().contains_key("controller.kubernetes.io/pod-deletion-cost")
        && conditions.into_iter().any(|it| it.type_ == "game.kruise.io/state" && it.status == "True")
}

/// In ci: `agent_probe_own_bed` writes the same labels, annotations and conditions, without another writer.
#[tokio::test]
async fn nightly_marks_come_back_after_another_writer_and_writes_stay_few() -> Result<()> {
    let bed = Bed::start(Config::control_plane("agent-clobber").with_node()).await?;
    let agents = Agents::start(&bed).await?;
    agents.install(CONFIG, "game", &[]).await?;
    agents.scene.apply(app_pod("game-0", "game", &["--word", "idle"])).await?;
    let api: Api<Pod> = agents.scene.api();
    agents.scene.pod_until("game-0", "to be marked", is_marked).await?;
    let began = Instant::now();
    let before = agents.writes("game-0")?;
    let mut slowest = Duration::ZERO;
    for round in 0..ROUNDS {
        // What a virtual kubelet remembers of the pod has no marks.
        until("the other writer to write", Duration::from_secs(10), || async {
            let written = async {
                let mut pod = api.get("game-0").await?;
                pod.labels_mut().remove("gameserver-idle");
                pod.annotations_mut().remove("controller.kubernetes.io/pod-deletion-cost");
                pod.annotations_mut().insert("example.com/seen".to_owned(), round.to_string());
                if let Some(conditions) = pod.status.as_mut().and_then(|status| status.conditions.as_mut()) {
                    conditions.retain(|it| it.type_ != "game.kruise.io/state");
                }
                api.replace_status(
                    "game-0",
                    &PostParams { field_manager: Some("virtual-kubelet".to_owned()), ..PostParams::default() },
                    &pod,
                )
                .await
            };
            Ok(match written.await {
                Ok(_) => Look::Done(()),
                Err(error) => Look::NotYet(error.to_string()),
            })
        })
        .await?;
        let overwritten = Instant::now();
        agents.scene.pod_until("game-0", "to be marked again", is_marked).await?;
        slowest = slowest.max(overwritten.elapsed());
        tokio::time::sleep_until((began + EVERY * (round + 1)).into()).await;
    }
    assert!(slowest < Duration::from_secs(10), "marks were back after {slowest:?}");
    let writes = agents.writes("game-0")? - before;
    let allowed = began.elapsed().as_secs() / 5 + 1;
    assert!(writes as u64 <= allowed, "{writes} writes in {:?}", began.elapsed());
    assert!(writes >= 1, "nothing was written again");
    // It says so.
    let output = agents.scene.kubectl(&["logs", "game-0", "--container", "pillion-agent"])?;
    let log = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(log.contains("virtual-kubelet"), "the agent does not say who overwrote its marks: {log}");
    Ok(())
}
