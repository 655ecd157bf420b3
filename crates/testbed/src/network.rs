//! The bed's private network: a namespace for the node, joined to the host by one pair of interfaces.
//!
//! ```text
//!   host: control plane, webhooks of tests          namespace pillion-bed-N: kubelet, containerd, pods
//!   10.213.N.1 ──────────── veth ──────────────── 10.213.N.2 ── bridge ── 10.214.N.0/24
//! ```
//! There is no default route in the namespace: a pod that tries to reach the world gets an error at once.

use crate::command::run;
use crate::error::Error;
use crate::slot::Slot;

/// The address of the Service `kubernetes.default`, first of the service network.
pub(crate) const KUBERNETES_SERVICE: &str = "10.96.0.1";
/// Services get addresses from here; only the one above is routed, since no kube-proxy runs.
pub(crate) const SERVICE_NETWORK: &str = "10.96.0.0/16";

/// Makes the namespace, the link and the routes.
pub(crate) fn create(slot: Slot, api_port: u16) -> Result<(), Error> {
    let namespace = &slot.name();
    let host_interface = &slot.host_interface();
    let (host, node) = (slot.host().to_string(), slot.node().to_string());
    run("ip", &["netns", "add", namespace])?;
    run("ip", &["link", "add", host_interface, "type", "veth", "peer", "name", "node0", "netns", namespace])?;
    run("ip", &["address", "add", &format!("{host}/24"), "dev", host_interface])?;
    run("ip", &["link", "set", host_interface, "up"])?;
    run("ip", &["-n", namespace, "link", "set", "lo", "up"])?;
    run("ip", &["-n", namespace, "address", "add", &format!("{node}/24"), "dev", "node0"])?;
    run("ip", &["-n", namespace, "link", "set", "node0", "up"])?;
    run("ip", &["route", "add", &slot.pod_network(), "via", &node])?;
    inside(slot, &["sysctl", "-qw", "net.ipv4.ip_forward=1"])?;
    // Pods reach the API server by its Service address, without kube-proxy.
    let api = format!("{host}:{api_port}");
    let service = format!("{KUBERNETES_SERVICE}/32");
    inside(
        slot,
        &[
            "iptables",
            "-t",
            "nat",
            "-A",
            "PREROUTING",
            "-d",
            &service,
            "-p",
            "tcp",
            "--dport",
            "443",
            "-j",
            "DNAT",
            "--to-destination",
            &api,
        ],
    )
}

fn inside(slot: Slot, command: &[&str]) -> Result<(), Error> {
    let namespace = slot.name();
    let mut arguments = vec!["netns", "exec", &namespace];
    arguments.extend(command);
    run("ip", &arguments).map(drop)
}
