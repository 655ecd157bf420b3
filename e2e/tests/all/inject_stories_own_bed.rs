//! The stories of computed resources through a real cluster: a Deployment makes the pods, the webhook adds the sidecar, and
//! exactly the promised numbers are stored; on a real node the kernel holds the sidecar to them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams};
use kube::{Api, Client};
use pillion_api::SidecarSet;
use pillion_e2e::{Manager, Scene, pods};
use pillion_testbed::{Bed, Config, Look, until};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_mins(1);

/// A story: its files, where its sidecar goes, and limits and requests of cpu and memory.
struct Story {
    name: &'static str,
    list: &'static str,
    sidecar: &'static str,
    amounts: [&'static str; 4],
    /// What the kernel holds the sidecar to, where the story is run on the real node: memory and millicores.
    cgroup: Option<(u64, u64)>,
}

const STORIES: [Story; 6] = [
    Story {
        name: "story-1-one-container",
        list: "containers",
        sidecar: "sidecar1",
        amounts: ["100m", "200Mi", "50m", "100Mi"],
        cgroup: Some((200 << 20, 100)),
    },
    Story {
        name: "story-2-sum",
        list: "containers",
        sidecar: "sidecar1",
        amounts: ["300m", "200Mi", "75m", "100Mi"],
        cgroup: None,
    },
    Story {
        name: "story-3-max",
        list: "containers",
        sidecar: "sidecar1",
        amounts: ["200m", "200Mi", "50m", "100Mi"],
        cgroup: None,
    },
    Story {
        name: "story-4-unlimited",
        list: "containers",
        sidecar: "sidecar1",
        amounts: ["", "200Mi", "50m", "100Mi"],
        cgroup: None,
    },
    Story {
        name: "story-5-curve",
        list: "containers",
        sidecar: "sidecar1",
        amounts: ["2400m", "200Mi", "2", "100Mi"],
        cgroup: None,
    },
    Story {
        name: "story-6-native-sidecar",
        list: "initContainers",
        sidecar: "init-sidecar",
        amounts: ["300m", "500Mi", "100m", "150Mi"],
        cgroup: Some((500 << 20, 300)),
    },
];

fn example(folder: &str, name: &str) -> Result<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(folder).join(format!("{name}.yaml"));
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(serde_saphyr::from_str(&text)?)
}

/// The set in the other spelling.
fn respelled(set: &Value) -> Result<Value> {
    let text = set.to_string();
    let text = text.replace("targetContainerMode", "targetContainersMode").replace("resourceExpr", "resourcesExpr");
    Ok(serde_json::from_str(&text)?)
}

/// The test program in the place of images that nobody here has.
fn runnable(list: &mut Value, port: u16) {
    for (container, port) in list.as_array_mut().into_iter().flatten().zip(port..) {
        let name = container["name"].as_str().unwrap_or_default().to_owned();
        container["image"] = pods::V1.into();
        container["imagePullPolicy"] = "Never".into();
        container["args"] = json!(["run", "--name", name, format!("--port={port}")]);
    }
}

fn deployment(name: &str, pod: &Value) -> Value {
    let labels = &pod["metadata"]["labels"];
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "replicas": 1, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod["spec"]}}})
}

async fn pod_of(scene: &Scene, labels: &Value) -> Result<Pod> {
    let selector: Vec<String> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    let api = scene.api::<Pod>();
    let waited = until("the pod of the Deployment", PATIENCE, || async {
        let listed = api.list(&ListParams::default().labels(&selector.join(","))).await;
        let found = listed.ok().and_then(|pods| pods.items.into_iter().next());
        Ok(found.map_or_else(|| Look::NotYet("none".to_owned()), Look::Done))
    });
    Ok(waited.await?)
}

fn sets(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &ApiResource::erase::<SidecarSet>(&()))
}

/// Waits until the webhook knows a set: a pod that is only tried is injected by it.
async fn until_known(scene: &Scene, pod: &Value, set: &str) -> Result<()> {
    let mut tried = pod.clone();
    tried["metadata"]["namespace"] = scene.namespace.clone().into();
    let tried: Pod = serde_json::from_value(tried)?;
    let parameters = kube::api::PostParams { dry_run: true, ..Default::default() };
    let waited = until("the set to be known", PATIENCE, || async {
        Ok(match scene.api::<Pod>().create(&parameters, &tried).await {
            Ok(created)
                if created.annotations().get("kruise.io/sidecarset-injected-list").is_some_and(|it| it == set) =>
            {
                Look::Done(())
            }
            Ok(created) => Look::NotYet(format!("{:?}", created.annotations())),
            Err(error) => Look::NotYet(error.to_string()),
        })
    });
    Ok(waited.await?)
}

#[tokio::test]
async fn ci_the_stories_come_out_as_promised() -> Result<()> {
    let bed = Bed::start(Config::control_plane("stories").with_node()).await?;
    let client = bed.client().await?;
    Manager::prepare(&client).await?;
    let manager = Manager::ready(bed.cluster(), &["webhook"], &[]).await?;
    for story in &STORIES {
        let written = example("sidecarset", story.name)?;
        for (spelling, mut set) in [("a", written.clone()), ("b", respelled(&written)?)] {
            let scene = Scene::open_on(bed.cluster().clone(), &format!("{}-{spelling}", story.name)).await?;
            let mut pod = example("pods", story.name)?;
            runnable(&mut set["spec"][story.list], 9000);
            runnable(&mut pod["spec"]["containers"], 8000);
            pod["spec"]["terminationGracePeriodSeconds"] = 1.into();
            let name = set["metadata"]["name"].as_str().context("a set has a name")?.to_owned();
            scene.apply_to_cluster(&set).await?;
            until_known(&scene, &pod, &name).await?;

            scene.apply(deployment("story", &pod)).await?;
            let made = pod_of(&scene, &pod["metadata"]["labels"]).await?;
            let stored = json!(made.spec);
            let container = stored[story.list].as_array().into_iter().flatten();
            let container = container.into_iter().find(|it| it["name"] == story.sidecar).context("no sidecar")?;
            let amounts = ["limits", "requests"].map(|kind| {
                ["cpu", "memory"].map(|resource| container["resources"][kind][resource].as_str().unwrap_or_default())
            });
            assert_eq!(amounts.as_flattened(), story.amounts, "{} {spelling}", story.name);

            if let Some((memory, millicores)) = story.cgroup {
                let name = made.name_any();
                scene.pod_until(&name, "to be Ready", pods::is_ready).await?;
                let held = scene.state(&name, story.sidecar, 9000)?["cgroup"].clone();
                assert_eq!(held, json!({"memoryLimitBytes": memory, "cpuQuotaMillicores": millicores}));
            }
            sets(&client).delete(&name, &DeleteParams::default()).await?;
            scene.close().await?;
        }
    }
    manager.stop().await?;
    bed.stop().await?;
    Ok(())
}
