//! What lies between two revisions, by what a running pod can follow.

use std::collections::{BTreeMap, BTreeSet};

use pillion_api::{Sidecar, SidecarKind, Template};
use pillion_plan::List;
use serde_json::Value;

/// What lies between two revisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Containers, and native sidecars, that get another image.
    pub images: Vec<Place>,
    /// Containers, and native sidecars, that get other resources.
    pub resources: Vec<Place>,
    /// What only pods see that are created later: plain init containers, and how resources are computed.
    pub later: Vec<String>,
    /// What a running pod cannot follow, such as `env of container proxy`.
    pub recreate: Vec<String>,
}

/// A container that runs as long as its pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The list of the pod it is in.
    pub list: List,
    /// Its name.
    pub name: String,
}

impl Difference {
    /// What lies between an older and a newer revision.
    pub fn between(old: &Template, new: &Template) -> Self {
        let mut difference = Self::default();
        difference.containers(old, new);
        let recreate = &mut difference.recreate;
        let mut field = |name: &str, differs: bool| {
            if differs {
                recreate.push(name.to_owned());
            }
        };
        field("volumes", old.volumes != new.volumes);
        field("imagePullSecrets", old.image_pull_secrets != new.image_pull_secrets);
        field("patchPodMetadata", old.annotations != new.annotations);
        field("labels", old.labels != new.labels);
        field("serviceAccountName", old.service_account_name != new.service_account_name);
        field("shareProcessNamespace", old.share_process_namespace != new.share_process_namespace);
        field("appVolumeMounts", old.app_volume_mounts != new.app_volume_mounts);
        difference
    }

    /// Whether a running pod of the older revision has all of the newer one that it will ever see.
    pub fn is_nothing_for_running_pods(&self) -> bool {
        self.images.is_empty() && self.resources.is_empty() && self.recreate.is_empty()
    }

    fn containers(&mut self, old: &Template, new: &Template) {
        let (before, after) = (lasting(old), lasting(new));
        let names: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
        let mut is_moved = false;
        for name in names {
            match (before.get(name), after.get(name)) {
                (Some((from, _)), Some((to, _))) if from != to => {
                    is_moved = true;
                    let words = format!("container {name} moves from {} to {}", from.field(), to.field());
                    self.recreate.push(words);
                }
                (Some((_, old)), Some((list, new))) => self.container(*list, old, new),
                (None, _) => self.recreate.push(format!("container {name} is new")),
                (_, None) => self.recreate.push(format!("container {name} is gone")),
            }
        }
        let order = |template: &Template| {
            let both = [&template.init_containers, &template.containers];
            both.map(|list| list.iter().filter(|it| is_lasting(it)).map(|it| it.name.clone()).collect::<Vec<_>>())
        };
        if !is_moved && before.keys().eq(after.keys()) && order(old) != order(new) {
            self.recreate.push("the order of containers".to_owned());
        }
        let plain = |template: &Template| {
            template.init_containers.iter().filter(|it| !is_lasting(it)).cloned().collect::<Vec<_>>()
        };
        if plain(old) != plain(new) {
            self.later.push("plain init containers".to_owned());
        }
    }

    fn container(&mut self, list: List, old: &Sidecar, new: &Sidecar) {
        let name = &new.name;
        let place = || Place { list, name: name.clone() };
        let keys: BTreeSet<&String> = old.container.keys().chain(new.container.keys()).collect();
        for key in keys.into_iter().filter(|key| old.container.get(*key) != new.container.get(*key)) {
            match key.as_str() {
                "image" => self.images.push(place()),
                "resources" if claims(old) != claims(new) => {
                    self.recreate.push(format!("resources.claims of container {name}"));
                }
                // What is computed is computed when a pod is created.
                "resources" if new.resources.is_some() => {}
                "resources" => self.resources.push(place()),
                _ => self.recreate.push(format!("{key} of container {name}")),
            }
        }
        if old.resources != new.resources {
            // From computed to fixed: the fixed ones can be given to a running pod.
            if new.resources.is_none() && !self.resources.contains(&place()) && new.container.contains_key("resources")
            {
                self.resources.push(place());
            }
            self.later.push(format!("resourcesPolicy of container {name}"));
        }
        let mut field = |field: &str, differs: bool| {
            if differs {
                self.recreate.push(format!("{field} of container {name}"));
            }
        };
        field("podInjectPolicy", old.placement != new.placement);
        field("shareVolumePolicy", old.shares_volumes != new.shares_volumes);
        field("shareVolumeDevicePolicy", old.shares_devices != new.shares_devices);
        field("transferEnv", old.transfers != new.transfers);
        field("sidecar", old.ends_with_the_others != new.ends_with_the_others);
    }
}

/// Containers that run as long as the pod, with the list of the pod they are in.
pub(crate) fn lasting(template: &Template) -> BTreeMap<&str, (List, &Sidecar)> {
    let init = template.init_containers.iter().filter(|it| is_lasting(it)).map(|it| (List::Init, it));
    let main = template.containers.iter().map(|it| (List::Main, it));
    init.chain(main).map(|(list, sidecar)| (&*sidecar.name, (list, sidecar))).collect()
}

fn is_lasting(sidecar: &Sidecar) -> bool {
    sidecar.kind != SidecarKind::PlainInit
}

fn claims(sidecar: &Sidecar) -> Option<&Value> {
    sidecar.container.get("resources")?.get("claims")
}

#[cfg(test)]
mod tests;
