//! What a pod gets: containers, volumes, and the rest a revision covers.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1;
use pillion_expr::NamePattern;
use pillion_quantity::Quantity;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Reader, mounted, volume_names};
use crate::Reason;
use crate::container::{PodInjectPolicy, SharePolicy, ShareType, SidecarContainer, TransferEnv};
use crate::meaning::{AppMount, NamedVolume, Placement, Sidecar, SidecarKind, Template, Transfer, TransferSource};
use crate::problem::FieldPath;
use crate::rule::pod_field;
use crate::sidecar_set::SidecarSetSpec;

impl Reader {
    pub(super) fn template(&mut self, spec: &SidecarSetSpec, path: &FieldPath) -> Template {
        let init_containers = self.containers(spec.init_containers.as_ref(), true, &path.field("initContainers"));
        let containers = self.containers(spec.containers.as_ref(), false, &path.field("containers"));
        let volumes = self.volumes(spec, &path.field("volumes"));
        self.mounts(spec, path);
        let secrets = spec.image_pull_secrets.iter().flatten().map(|secret| secret.name.clone());
        Template {
            init_containers,
            containers,
            volumes,
            image_pull_secrets: secrets.collect(),
            annotations: self.annotations(spec.patch_pod_metadata.as_ref(), &path.field("patchPodMetadata")),
            labels: self.labels(spec.labels.as_ref(), &path.field("labels")),
            service_account_name: spec.service_account_name.clone(),
            share_process_namespace: spec.share_process_namespace,
            app_volume_mounts: self.app_mounts(spec, &path.field("appVolumeMounts")),
        }
    }

    fn containers(&mut self, stored: Option<&Vec<SidecarContainer>>, init: bool, path: &FieldPath) -> Vec<Sidecar> {
        let stored = stored.into_iter().flatten().enumerate();
        stored.filter_map(|(at, container)| self.container(container, init, &path.index(at))).collect()
    }

    fn container(&mut self, stored: &SidecarContainer, init: bool, path: &FieldPath) -> Option<Sidecar> {
        // What cannot be read at all is a finding of the schema.
        let fields = stored.fields().ok()?;
        let container = stored.for_pod();
        self.readable::<v1::Container>(&container, path);
        self.quantities(&container, path);
        let native = init && fields.restart_policy.as_deref() == Some("Always");
        let resources =
            fields.resources_policy.as_ref().and_then(|stored| self.policy(stored, &path.field("resourcesPolicy")));
        let default = if init { PodInjectPolicy::AfterAppContainer } else { PodInjectPolicy::BeforeAppContainer };
        Some(Sidecar {
            name: fields.name,
            kind: match (init, native) {
                (false, _) => SidecarKind::Container,
                (true, false) => SidecarKind::PlainInit,
                (true, true) => SidecarKind::NativeSidecar,
            },
            placement: match fields.pod_inject_policy.unwrap_or(default) {
                PodInjectPolicy::BeforeAppContainer => Placement::Before,
                PodInjectPolicy::AfterAppContainer => Placement::After,
            },
            container,
            resources,
            shares_volumes: is_enabled(fields.share_volume_policy),
            shares_devices: is_enabled(fields.share_volume_device_policy),
            transfers: fields.transfer_env.iter().flatten().filter_map(transfer).collect(),
            ends_with_the_others: fields.sidecar.unwrap_or_default(),
        })
    }

    /// Whether Kubernetes' own type can hold it. Fields it does not know are carried all the same.
    fn readable<T: DeserializeOwned>(&mut self, object: &Map<String, Value>, path: &FieldPath) {
        if let Err(error) = serde_json::from_value::<T>(Value::Object(object.clone())) {
            let message = format!("Kubernetes would not take it: {error}");
            self.error(Reason::InvalidContainer, path.clone(), message, "write it as in a pod");
        }
    }

    fn quantities(&mut self, container: &Map<String, Value>, path: &FieldPath) {
        for side in ["limits", "requests"] {
            let amounts = container.get("resources").and_then(|it| it.get(side)).and_then(Value::as_object);
            for (key, amount) in amounts.into_iter().flatten() {
                let path = path.fields("resources").field(side).key(key);
                let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
                match text.parse::<Quantity>() {
                    Ok(amount) if amount.is_negative() => {
                        self.error(Reason::InvalidContainer, path, format!("{text} is negative"), "write 0 or more");
                    }
                    Ok(_) => {}
                    Err(error) => {
                        let message = format!("{text:?} is no quantity: {error}");
                        self.error(Reason::InvalidContainer, path, message, "write it as 500m or 128Mi");
                    }
                }
            }
        }
    }

    fn volumes(&mut self, spec: &SidecarSetSpec, path: &FieldPath) -> Vec<NamedVolume> {
        let mut volumes = Vec::new();
        for (at, stored) in spec.volumes.iter().flatten().enumerate() {
            self.readable::<v1::Volume>(&stored.0, &path.index(at));
            if let Some(name) = stored.name() {
                volumes.push(NamedVolume { name: name.to_owned(), volume: stored.0.clone() });
            }
        }
        volumes
    }

    /// Says which mounts have no volume in the set, and which volumes no mount.
    fn mounts(&mut self, spec: &SidecarSetSpec, path: &FieldPath) {
        let volumes = volume_names(spec.volumes.as_ref());
        let known: BTreeSet<&str> = volumes.iter().copied().collect();
        let mut used: BTreeSet<&str> = spec.app_volume_mounts.iter().flatten().map(|it| it.volume.as_str()).collect();
        for (field, list) in [("initContainers", &spec.init_containers), ("containers", &spec.containers)] {
            for (at, container) in list.iter().flatten().enumerate() {
                for (place, name) in mounted(container, &path.field(field).index(at)) {
                    used.insert(name);
                    if !known.contains(name) {
                        self.warning(
                            Reason::ForeignVolume,
                            place,
                            format!("volume {name} is not in spec.volumes"),
                            "add it, or make sure that every selected pod has a volume of this name",
                        );
                    }
                }
            }
        }
        for (at, name) in volumes.iter().enumerate().filter(|(_, name)| !used.contains(*name)) {
            let message = format!("volume {name} is mounted by nothing and will not be added to pods");
            self.warning(Reason::UnusedVolume, path.field("volumes").index(at), message, "mount it or remove it");
        }
    }

    fn app_mounts(&mut self, spec: &SidecarSetSpec, path: &FieldPath) -> Vec<AppMount> {
        let mut mounts = Vec::new();
        for (at, stored) in spec.app_volume_mounts.iter().flatten().enumerate() {
            let pattern = stored.target_containers_name_regex.as_deref();
            let Some(targets) = self.pattern(pattern, &path.index(at).field("targetContainersNameRegex")) else {
                continue;
            };
            mounts.push(AppMount {
                targets,
                volume: stored.volume.clone(),
                path: stored.path.clone(),
                read_only: stored.read_only.unwrap_or_default(),
            });
        }
        mounts
    }

    pub(super) fn pattern(&mut self, pattern: Option<&str>, path: &FieldPath) -> Option<NamePattern> {
        match NamePattern::new(pattern.unwrap_or(NamePattern::DEFAULT)) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                self.error(Reason::InvalidPattern, path.clone(), error.to_string(), "correct the pattern");
                None
            }
        }
    }
}

fn is_enabled(policy: Option<SharePolicy>) -> bool {
    policy.and_then(|policy| policy.type_) == Some(ShareType::Enabled)
}

/// `None` for what a rule refuses.
fn transfer(stored: &TransferEnv) -> Option<Transfer> {
    let source = match (&stored.source_container_name, &stored.source_container_name_from) {
        (Some(name), None) => TransferSource::Container(name.clone()),
        (None, Some(from)) => TransferSource::FromPod(pod_field(&from.field_ref.field_path)?),
        _ => return None,
    };
    let names: BTreeSet<&String> = stored.env_name.iter().chain(stored.env_names.iter().flatten()).collect();
    Some(Transfer { source, names: names.into_iter().cloned().collect() })
}
