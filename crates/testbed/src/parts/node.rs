//! The real node: kubelet and containerd in a private mount namespace and the bed's network namespace.
//!
//! Three parts: a holder that makes the mounts and keeps them alive, containerd, and the kubelet. The latter two enter
//! the holder's namespaces, so each can be killed and started again by itself.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use pillion_tools::RUNC;
use serde_json::json;

use crate::error::Error;
use crate::keeper::{self, Part};
use crate::pki::{Authority, Identity};
use crate::site::Site;

pub(crate) mod mounts;

/// Name of the node object.
pub(crate) const NAME: &str = "real-0";
/// The sandbox image, packed beside the test images.
const PAUSE_IMAGE: &str = "registry.local/pillion/pause:1";
const CNI_PLUGINS: &str = "/usr/lib/cni";

/// Keeps the node's mounts alive; see [`mounts::hold`].
pub(crate) fn holder(site: &Site) -> Result<Part, Error> {
    let program = keeper::program()?;
    Ok(Part {
        name: "node-holder".to_owned(),
        // `ip netns exec` would mount a fresh /sys, in which the cgroups are missing.
        program: "nsenter".into(),
        arguments: vec![
            format!("--net=/run/netns/{}", site.slot.name()),
            "unshare".to_owned(),
            "--mount".to_owned(),
            "--propagation=private".to_owned(),
            program.display().to_string(),
            "node-holder".to_owned(),
            site.folder.join("node").display().to_string(),
        ],
        environment: Vec::new(),
        log: site.logs.join("node-holder.log"),
    })
}

/// containerd's socket; visible on both sides, as the bed's folder is under neither of the node's own mounts.
pub(crate) fn socket(site: &Site) -> PathBuf {
    site.folder.join("containerd.sock")
}

/// containerd, in the namespaces of the holder.
pub(crate) fn containerd(site: &Site, holder: i32) -> Result<Part, Error> {
    let network = site.folder.join("cni");
    fs::create_dir_all(&network).map_err(Error::file(&network))?;
    site.write_json(
        "cni/10-bed.conflist",
        &json!({"cniVersion": "0.4.0", "name": "bed", "plugins": [
            {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
             "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam",
                      "ranges": [[{"subnet": site.slot.pod_network()}]], "routes": [{"dst": "0.0.0.0/0"}]}},
            {"type": "loopback"}]}),
    )?;
    let runc =
        RUNC.installed().ok_or_else(|| Error::Lacking { what: "runc".to_owned(), way_out: "run \"just tools\"" })?;
    let config = site.write("containerd.toml", &containerd_config(site, runc))?;
    let mut part = site.part("containerd", vec![format!("--config={}", config.display())])?;
    // containerd looks for its shim in PATH.
    let own_folder = part.program.parent().map(Path::to_path_buf).unwrap_or_default();
    let path = env::var("PATH").unwrap_or_default();
    part.environment = vec![("PATH".to_owned(), format!("{}:{path}", own_folder.display()))];
    Ok(inside(part, holder))
}

/// The kubelet, in the namespaces of the holder.
pub(crate) fn kubelet(site: &Site, holder: i32) -> Result<Part, Error> {
    let node = site.slot.node().to_string();
    let user = format!("system:node:{NAME}");
    let serves = [node.clone()];
    let identity = Identity { file: "kubelet", user: &user, group: Some("system:nodes"), serves: &serves };
    site.pki.issue(Authority::Cluster, &identity)?;
    let kubeconfig = site.kubeconfig("kubelet")?;
    let resolv = site.write("resolv.conf", "")?;
    let root = site.folder.join("kubelet");
    let config = site.write_json(
        "kubelet.json",
        &json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "address": node, "healthzBindAddress": node,
            "authentication": {"anonymous": {"enabled": false}, "webhook": {"enabled": true},
                               "x509": {"clientCAFile": site.pki.certificate("ca")}},
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": site.pki.certificate("kubelet"), "tlsPrivateKeyFile": site.pki.key("kubelet"),
            "failCgroupV1": false, "cgroupDriver": "cgroupfs", "cgroupRoot": format!("/{}", site.slot.name()),
            "cgroupsPerQOS": true, "enforceNodeAllocatable": ["pods"], "failSwapOn": false,
            "containerRuntimeEndpoint": format!("unix://{}", socket(site).display()),
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            // Images are imported, not pulled: a collected one could not come back.
            "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
            "podLogsDir": site.folder.join("pod-logs"), "resolvConf": resolv,
            // No DNS runs, but without an address every pod gets warnings.
            "clusterDNS": ["10.96.0.10"],
        }),
    )?;
    let part = site.part(
        "kubelet",
        vec![
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--config={}", config.display()),
            format!("--root-dir={}", root.display()),
            format!("--cert-dir={}", root.join("pki").display()),
            format!("--hostname-override={NAME}"),
            format!("--node-ip={node}"),
            "--node-labels=pillion.dev/node=real".to_owned(),
        ],
    )?;
    Ok(inside(part, holder))
}

/// The same part, run in the holder's mount and network namespaces.
fn inside(part: Part, holder: i32) -> Part {
    let mut arguments = vec![
        format!("--target={holder}"),
        "--mount".to_owned(),
        "--net".to_owned(),
        part.program.display().to_string(),
    ];
    arguments.extend(part.arguments);
    Part { program: "nsenter".into(), arguments, ..part }
}

fn containerd_config(site: &Site, runc: &Path) -> String {
    format!(
        r#"version = 3
root = "{root}"
state = "/run/containerd-state"
[grpc]
  address = "{socket}"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{PAUSE_IMAGE}"
[plugins."io.containerd.cri.v1.runtime"]
  disable_apparmor = true
  # Without CAP_SYS_RESOURCE the sandbox's score cannot be lowered.
  restrict_oom_score_adj = true
  disable_hugetlb_controller = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{CNI_PLUGINS}"]
    conf_dir = "{network}"
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        SystemdCgroup = false
        BinaryName = "{runc}"
"#,
        runc = runc.display(),
        root = site.folder.join("containerd").display(),
        socket = socket(site).display(),
        network = site.folder.join("cni").display(),
    )
}
