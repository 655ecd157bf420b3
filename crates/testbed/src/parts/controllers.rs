//! kube-controller-manager and kube-scheduler, with room for fleets of thousands of pods.

use crate::error::Error;
use crate::keeper::Part;
use crate::site::Site;

/// The controller manager.
pub(crate) fn controller_manager(site: &Site) -> Result<Part, Error> {
    let mut arguments = shared_flags(site, "kube-controller-manager", "system:kube-controller-manager")?;
    arguments.extend([
        format!("--service-account-private-key-file={}", site.pki.key("service-accounts").display()),
        format!("--root-ca-file={}", site.pki.certificate("ca").display()),
        "--use-service-account-credentials".to_owned(),
        "--controllers=*".to_owned(),
        "--kube-api-qps=200".to_owned(),
        "--kube-api-burst=400".to_owned(),
        "--concurrent-replicaset-syncs=20".to_owned(),
    ]);
    site.part("kube-controller-manager", arguments)
}

/// The scheduler.
pub(crate) fn scheduler(site: &Site) -> Result<Part, Error> {
    let mut arguments = shared_flags(site, "kube-scheduler", "system:kube-scheduler")?;
    arguments.extend(["--kube-api-qps=400".to_owned(), "--kube-api-burst=800".to_owned()]);
    site.part("kube-scheduler", arguments)
}

fn shared_flags(site: &Site, file: &str, user: &str) -> Result<Vec<String>, Error> {
    let kubeconfig = site.user(file, user, None)?;
    let kubeconfig = kubeconfig.display();
    Ok(vec![
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        format!("--bind-address={}", site.slot.loopback()),
        "--leader-elect=false".to_owned(),
    ])
}
