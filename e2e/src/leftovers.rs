//! Everything in a cluster as a value, and what a test left in it.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Result, ensure};
use kube::api::{Api, DynamicObject, ListParams};
use kube::discovery::{Discovery, Scope, verbs};
use kube::{Client, ResourceExt as _};

/// Every object in the cluster, as `Kind namespace/name`. Without events and the leases of nodes, which come and go by themselves.
pub async fn everything(client: &Client) -> Result<BTreeSet<String>> {
    let discovery = Discovery::new(client.clone()).exclude(&["metrics.k8s.io", "events.k8s.io"]).run().await?;
    let mut found = BTreeSet::new();
    for group in discovery.groups() {
        for (resource, capabilities) in group.recommended_resources() {
            if !capabilities.supports_operation(verbs::LIST) || resource.kind == "Event" {
                continue;
            }
            let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
            for object in api.list(&ListParams::default()).await?.items {
                let name = match capabilities.scope {
                    Scope::Cluster => object.name_any(),
                    Scope::Namespaced => format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any()),
                };
                if !name.starts_with("kube-node-lease/") {
                    found.insert(format!("{} {name}", resource.kind));
                }
            }
        }
    }
    Ok(found)
}

/// Objects that were not there before, besides namespaces that go by themselves and what is in them.
pub fn left(before: &BTreeSet<String>, now: &BTreeSet<String>, goes: impl Fn(&str) -> bool) -> Vec<String> {
    let is_expected = |object: &str| {
        let (kind, name) = object.split_once(' ').unwrap_or(("", object));
        match name.split_once('/') {
            Some((namespace, _)) => goes(namespace),
            None => kind == "Namespace" && goes(name),
        }
    };
    now.difference(before).filter(|object| !is_expected(object)).cloned().collect()
}

/// Fails if a process that this test started still runs.
pub fn no_processes() -> Result<()> {
    let own = std::process::id().to_string();
    let mut running = Vec::new();
    for process in fs::read_dir("/proc")?.flatten() {
        let Ok(stat) = fs::read_to_string(process.path().join("stat")) else { continue };
        let Some((head, rest)) = stat.rsplit_once(')') else { continue };
        let fields: Vec<&str> = rest.split_whitespace().take(2).collect();
        if let [state, parent] = fields[..]
            && parent == own
            && state != "Z"
        {
            running.push(head.to_owned() + ")");
        }
    }
    ensure!(running.is_empty(), "the test left processes behind: {}", running.join(", "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_outside_namespaces_that_go_are_left_behind() {
        let set = |objects: &[&str]| objects.iter().map(|it| (*it).to_owned()).collect::<BTreeSet<_>>();
        let before = set(&["Node real-0"]);
        let now = set(&[
            "Node real-0",
            "Namespace mine-7",
            "Pod mine-7/a",
            "ConfigMap default/forgotten",
            "ClusterRole mine-7",
            "Namespace other-7",
        ]);
        assert_eq!(
            left(&before, &now, |namespace| namespace == "mine-7"),
            ["ClusterRole mine-7", "ConfigMap default/forgotten", "Namespace other-7"]
        );
    }
}
