//! etcd, on the bed's own loopback address.

use crate::error::Error;
use crate::keeper::Part;
use crate::site::Site;

/// Where clients reach it.
pub(crate) fn endpoint(site: &Site) -> String {
    format!("http://{}:2379", site.slot.loopback())
}

/// `durable` writes through to the disk.
pub(crate) fn part(site: &Site, durable: bool) -> Result<Part, Error> {
    let client = endpoint(site);
    let peer = format!("http://{}:2380", site.slot.loopback());
    let mut arguments = vec![
        "--name=bed".to_owned(),
        format!("--data-dir={}", site.folder.join("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=bed={peer}"),
        // Room for 100,000 pods and their history.
        "--quota-backend-bytes=8589934592".to_owned(),
        "--log-level=warn".to_owned(),
    ];
    if !durable {
        arguments.push("--unsafe-no-fsync".to_owned());
    }
    site.part("etcd", arguments)
}
