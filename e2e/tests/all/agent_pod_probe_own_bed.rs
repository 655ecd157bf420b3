//! Probes that `OpenKruise` writes on a pod for whoever can run them, run by an agent on a real node.

use std::collections::BTreeMap;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use pillion_e2e::agent_pods::{Agents, app_pod};
use pillion_testbed::{Bed, Config, Look};
use serde_json::json;

const CONFIG: &str = "plugins:\n  - name: pod_probe\n";

/// Status and message of every condition that is not the node's.
fn conditions(pod: &Pod) -> BTreeMap<String, (String, String)> {
    let all = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let foreign = all.filter(|it| it.type_.contains('/') && !it.type_.starts_with("pillion.dev/"));
    foreign.map(|it| (it.type_.clone(), (it.status.clone(), it.message.clone().unwrap_or_default()))).collect()
}

/// In ci: `agent_probe_own_bed` for conditions on a real pod, and the tests of the plugin in `crates/agent` for its
/// annotation.
#[tokio::test]
async fn nightly_a_pod_gets_exactly_the_conditions_its_annotation_asks_for() -> Result<()> {
    let bed = Bed::start(Config::control_plane("pod-probe").with_node()).await?;
    let agents = Agents::start(&bed).await?;
    agents.install(CONFIG, "game", &[]).await?;
    let mut pod = app_pod("game-0", "game", &["--word", "5 players\n"]);
    let probe = |name: &str, condition: &str, handler: serde_json::Value| {
        let mut probe = json!({"periodSeconds": 1, "failureThreshold": 2});
        probe.as_object_mut().expect("an object").extend(handler.as_object().expect("an object").clone());
        json!({"name": format!("marker#{name}"), "containerName": "app", "probe": probe, "podConditionType": condition})
    };
    let probes = json!([
        probe(
            "players",
            "game.kruise.io/players",
            json!({"httpGet": {"path": "/word", "port": 8080, "scheme": "HTTP"}})
        ),
        probe(
            "absent",
            "game.kruise.io/absent",
            json!({"httpGet": {"path": "/absent", "port": 8080, "scheme": "HTTP"}})
        ),
        probe("port", "game.kruise.io/port", json!({"tcpSocket": {"port": 8080}})),
        probe("closed", "game.kruise.io/closed", json!({"tcpSocket": {"port": 8081}})),
        probe("inside", "game.kruise.io/inside", json!({"exec": {"command": ["/testapp", "cat", "/x"]}})),
    ]);
    pod["metadata"]["annotations"] = json!({"kruise.io/podprobe": probes.to_string()});
    agents.scene.apply(pod).await?;
    let wanted = ["players:True", "absent:False", "port:True", "closed:False", "inside:Unknown"];
    let wanted: BTreeMap<String, String> = wanted
        .iter()
        .filter_map(|pair| pair.split_once(':'))
        .map(|(name, status)| (format!("game.kruise.io/{name}"), status.to_owned()))
        .collect();
    let shown = agents
        .scene
        .until("game-0", "to have its conditions", |pod: &Pod| {
            let shown = conditions(pod);
            let statuses: BTreeMap<String, String> =
                shown.iter().map(|(condition, (status, _))| (condition.clone(), status.clone())).collect();
            if statuses == wanted { Look::Done(shown) } else { Look::NotYet(format!("{shown:?}")) }
        })
        .await?;
    assert_eq!(shown["game.kruise.io/players"].1, "5 players");
    assert!(shown["game.kruise.io/inside"].1.contains("cannot run a program in another container"), "{shown:?}");
    // It follows what the app says.
    agents.say("game-0", 500, "overloaded")?;
    agents
        .scene
        .until("game-0", "to be overloaded", |pod: &Pod| {
            let shown = conditions(pod);
            let (status, message) = shown.get("game.kruise.io/players").cloned().unwrap_or_default();
            if status == "False" && message.contains("500") {
                Look::Done(())
            } else {
                Look::NotYet(format!("{shown:?}"))
            }
        })
        .await?;
    Ok(())
}
