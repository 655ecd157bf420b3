//! Simulated nodes: KWOK plays their kubelets. Its own stages bring nodes up, finish Jobs and delete pods; ours make a
//! changed image and a resize show in the status, which the built-in ones do not, so that scale tests are not vacuous.

use std::fmt::Write as _;
use std::fs;

use k8s_openapi::api::core::v1::Node;
use serde_json::json;

use crate::config::Fleet;
use crate::error::Error;
use crate::keeper::Part;
use crate::pki::{Authority, Identity};
use crate::site::Site;

const PORT: u16 = 10250;
/// Room of a simulated node; a real kubelet's is 110, but the number costs nothing here.
const PODS_PER_NODE: &str = "500";
/// Addresses of simulated pods: a range reserved for benchmarks, never routed here, large enough for 100,000 pods.
const POD_ADDRESSES: &str = "198.18.0.0/15";

/// Stages and usage that KWOK ships.
const SHIPPED: &[&str] = &[
    "kustomize/stage/node/fast/node-initialize.yaml",
    "kustomize/stage/node/heartbeat/node-heartbeat.yaml",
    "kustomize/stage/pod/fast/pod-complete.yaml",
    "kustomize/stage/pod/fast/pod-delete.yaml",
    "kustomize/metrics/resource/metrics-resource.yaml",
    "kustomize/metrics/usage/usage-from-annotation.yaml",
];
const OURS: &[&str] = &[
    include_str!("stages/pod-ready.yaml"),
    include_str!("stages/pod-image-down.yaml"),
    include_str!("stages/pod-image-up.yaml"),
    include_str!("stages/pod-resize.yaml"),
];

/// The process.
pub(crate) fn part(site: &Site, fleet: &Fleet) -> Result<Part, Error> {
    let host = site.slot.host().to_string();
    let serves = [host.clone()];
    // A user of its own, so that the audit log tells its writes from others'.
    let identity = Identity { file: "kwok", user: "kwok", group: Some("system:masters"), serves: &serves };
    site.pki.issue(Authority::Cluster, &identity)?;
    let kubeconfig = site.kubeconfig("kwok")?;
    let stages = site.write("kwok.yaml", &stages(site, fleet)?)?;
    site.part(
        "kwok",
        vec![
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--config={}", stages.display()),
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake".to_owned(),
            format!("--node-ip={host}"),
            format!("--node-port={PORT}"),
            // It serves without authentication: on the bed's private address only.
            format!("--server-address={host}:{PORT}"),
            format!("--tls-cert-file={}", site.pki.certificate("kwok").display()),
            format!("--tls-private-key-file={}", site.pki.key("kwok").display()),
            format!("--cidr={POD_ADDRESSES}"),
            // With leases, a restarted KWOK would wait 40 s for those of its predecessor.
            "--node-lease-duration-seconds=0".to_owned(),
        ],
    )
}

fn stages(site: &Site, fleet: &Fleet) -> Result<String, Error> {
    let share = site.share("kwok")?;
    let mut all = String::new();
    for file in SHIPPED {
        let path = share.join(file);
        let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
        let _ = writeln!(all, "{text}\n---");
    }
    let delay = fleet.image_delay.as_millis().to_string();
    for stage in OURS {
        let _ = writeln!(all, "{}\n---", stage.replace("IMAGE_DELAY_MILLISECONDS", &delay));
    }
    Ok(all)
}

/// The objects of the simulated nodes. A taint keeps other pods off, so that a plain pod lands on the real node.
pub(crate) fn nodes(fleet: &Fleet) -> Result<Vec<Node>, Error> {
    (0..fleet.nodes)
        .map(|number| {
            let name = format!("fleet-{number}");
            let size = json!({"cpu": "64", "memory": "256Gi", "pods": PODS_PER_NODE});
            let node = json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "pillion.dev/node": "fleet"},
                    "annotations": {"kwok.x-k8s.io/node": "fake",
                        "metrics.k8s.io/resource-metrics-path": format!("/metrics/nodes/{name}/metrics/resource")}},
                "spec": {"taints": [{"key": "pillion.dev/fleet", "effect": "NoSchedule"}]},
                "status": {"allocatable": size, "capacity": size},
            });
            serde_json::from_value(node).map_err(|error| Error::File { path: name.into(), source: error.into() })
        })
        .collect()
}
