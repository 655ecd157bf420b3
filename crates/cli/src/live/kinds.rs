//! The kinds that are asked about, and where the API server keeps them.

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// `Deployment`
    pub(crate) name: &'static str,
    /// `apps/v1`
    pub(crate) api_version: &'static str,
    /// `deployments`
    pub(crate) plural: &'static str,
    /// What else people write: `deploy`.
    short: &'static str,
}

/// A kind of objects that decide about requests.
const fn of_admission(name: &'static str, plural: &'static str, short: &'static str) -> Kind {
    Kind { name, api_version: "admissionregistration.k8s.io/v1", plural, short }
}

pub(crate) const POD: Kind = Kind { name: "Pod", api_version: "v1", plural: "pods", short: "po" };
pub(crate) const SIDECAR_SET: Kind =
    Kind { name: "SidecarSet", api_version: pillion_api::API_VERSION, plural: "sidecarsets", short: "scs" };
pub(crate) const NAMESPACE: Kind = Kind { name: "Namespace", api_version: "v1", plural: "namespaces", short: "ns" };
pub(crate) const LIMIT_RANGE: Kind =
    Kind { name: "LimitRange", api_version: "v1", plural: "limitranges", short: "limits" };
pub(crate) const CONFIG_MAP: Kind = Kind { name: "ConfigMap", api_version: "v1", plural: "configmaps", short: "cm" };
pub(crate) const DEPLOYMENT: Kind =
    Kind { name: "Deployment", api_version: "apps/v1", plural: "deployments", short: "deploy" };

pub(crate) const MUTATING_REGISTRATION: Kind =
    of_admission("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "mutatingwebhookconfiguration");
pub(crate) const VALIDATING_REGISTRATION: Kind =
    of_admission("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "validatingwebhookconfiguration");
pub(crate) const ADMISSION_POLICY: Kind =
    of_admission("ValidatingAdmissionPolicy", "validatingadmissionpolicies", "validatingadmissionpolicy");
pub(crate) const ADMISSION_POLICY_BINDING: Kind = of_admission(
    "ValidatingAdmissionPolicyBinding",
    "validatingadmissionpolicybindings",
    "validatingadmissionpolicybinding",
);
pub(crate) const CUSTOM_RESOURCE: Kind = Kind {
    name: "CustomResourceDefinition",
    api_version: "apiextensions.k8s.io/v1",
    plural: "customresourcedefinitions",
    short: "crd",
};
pub(crate) const REVISION: Kind = Kind {
    name: "ControllerRevision",
    api_version: "apps/v1",
    plural: "controllerrevisions",
    short: "controllerrevision",
};
pub(crate) const DISRUPTION_BUDGET: Kind =
    Kind { name: "PodDisruptionBudget", api_version: "policy/v1", plural: "poddisruptionbudgets", short: "pdb" };
pub(crate) const SECRET: Kind = Kind { name: "Secret", api_version: "v1", plural: "secrets", short: "secret" };

pub(crate) const HOT_UPDATE: Kind =
    Kind { name: "HotUpdate", api_version: "pillion.dev/v1alpha1", plural: "hotupdates", short: "hu" };
/// A workload whose pods are made by another of its own.
const GAME_SERVER_SET: Kind =
    Kind { name: "GameServerSet", api_version: "game.kruise.io/v1alpha1", plural: "gameserversets", short: "gss" };

/// What metrics-server measured of a pod.
pub(crate) const POD_METRICS: Kind =
    Kind { name: "PodMetrics", api_version: "metrics.k8s.io/v1beta1", plural: "pods", short: "podmetrics" };

pub(crate) const JOB: Kind = Kind { name: "Job", api_version: "batch/v1", plural: "jobs", short: "job" };

pub(crate) const AUTOSCALER: Kind = Kind {
    name: "VerticalPodAutoscaler",
    api_version: "autoscaling.k8s.io/v1",
    plural: "verticalpodautoscalers",
    short: "vpa",
};
pub(crate) const CHECKPOINT: Kind = Kind {
    name: "VerticalPodAutoscalerCheckpoint",
    api_version: "autoscaling.k8s.io/v1",
    plural: "verticalpodautoscalercheckpoints",
    short: "vpacheckpoint",
};

/// The kinds with a template for pods, besides pods themselves.
pub(crate) const WORKLOADS: [Kind; 8] = [
    DEPLOYMENT,
    Kind { name: "ReplicaSet", api_version: "apps/v1", plural: "replicasets", short: "rs" },
    Kind { name: "StatefulSet", api_version: "apps/v1", plural: "statefulsets", short: "sts" },
    Kind { name: "DaemonSet", api_version: "apps/v1", plural: "daemonsets", short: "ds" },
    JOB,
    Kind { name: "CronJob", api_version: "batch/v1", plural: "cronjobs", short: "cj" },
    Kind { name: "ReplicationController", api_version: "v1", plural: "replicationcontrollers", short: "rc" },
    Kind { name: "CloneSet", api_version: "apps.kruise.io/v1alpha1", plural: "clonesets", short: "clone" },
];

impl Kind {
    /// Where objects of this kind are; of all namespaces where none is given.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.api_version.contains('/') { "/apis" } else { "/api" };
        let namespace = namespace.map(|name| format!("/namespaces/{name}")).unwrap_or_default();
        format!("{root}/{}{namespace}/{}", self.api_version, self.plural)
    }

    fn is_called(&self, word: &str) -> bool {
        let word = word.to_ascii_lowercase();
        let name = self.name.to_ascii_lowercase();
        [name.as_str(), self.plural, self.short].contains(&word.as_str())
    }
}

/// A pod or workload as people name it: `deploy/web`.
pub(crate) fn named(text: &str) -> Result<(Kind, String), String> {
    let Some((kind, name)) = text.split_once('/').filter(|(kind, name)| !kind.is_empty() && !name.is_empty()) else {
        return Err("write it as kind/name, such as pod/web or deploy/web".to_owned());
    };
    let found = [POD].into_iter().chain(WORKLOADS).find(|known| known.is_called(kind));
    let known = || WORKLOADS.iter().map(|kind| kind.short).collect::<Vec<_>>().join(", ");
    let found = found.ok_or_else(|| format!("{kind:?} is no kind that creates pods: there are pod, {}", known()))?;
    Ok((found, name.to_owned()))
}

/// A workload that keeps pods running, as people name it: `deploy/web`.
pub(crate) fn running_workload(text: &str) -> Result<(Kind, String), String> {
    const KINDS: [&str; 6] = ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CloneSet"];
    let all = || WORKLOADS.into_iter().filter(|kind| KINDS.contains(&kind.name)).chain([GAME_SERVER_SET]);
    let known = || all().map(|kind| kind.short).collect::<Vec<_>>().join(", ");
    let parts = text.split_once('/').filter(|(_, name)| !name.is_empty() && !name.contains('/'));
    let (kind, name) = parts.ok_or_else(|| "write it as kind/name, such as deploy/web".to_owned())?;
    let found = all().find(|known| known.is_called(kind));
    let found = found.ok_or_else(|| format!("files of a {kind:?} cannot be updated: there are {}", known()))?;
    Ok((found, name.to_owned()))
}

/// A workload with a template for pods, as people name it: `deploy/web`.
pub(crate) fn templated(text: &str) -> Result<(Kind, String), String> {
    match named(text)? {
        (POD, _) => Err("a pod has no template to go back to: name its workload, such as deploy/web".to_owned()),
        workload => Ok(workload),
    }
}

/// An autoscaler as people name it: `vpa/web`, or `web`.
pub(crate) fn autoscaler_named(text: &str) -> Result<String, String> {
    let name = match text.split_once('/') {
        None => text,
        Some((kind, name)) if AUTOSCALER.is_called(kind) => name,
        Some((kind, _)) => {
            return Err(format!("{kind:?} is no VerticalPodAutoscaler: write vpa/name, or the name alone"));
        }
    };
    if name.is_empty() || name.contains('/') {
        return Err("write it as vpa/name, such as vpa/web".to_owned());
    }
    Ok(name.to_owned())
}

/// A set as people name it: `scs/mesh`, or `mesh`.
pub(crate) fn set_named(text: &str) -> Result<String, String> {
    let name = match text.split_once('/') {
        None => text,
        Some((kind, name)) if SIDECAR_SET.is_called(kind) => name,
        Some((kind, _)) => return Err(format!("{kind:?} is no SidecarSet: write scs/name, or the name alone")),
    };
    if name.is_empty() || name.contains('/') {
        return Err("write it as scs/name, such as scs/mesh".to_owned());
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_known_by_its_name_alone() {
        for text in ["mesh", "scs/mesh", "sidecarset/mesh", "SidecarSets/mesh"] {
            assert_eq!(set_named(text).as_deref(), Ok("mesh"), "{text}");
        }
        for text in ["", "scs/", "scs/a/b"] {
            assert_eq!(set_named(text).unwrap_err(), "write it as scs/name, such as scs/mesh", "{text}");
        }
        assert_eq!(
            set_named("deploy/web").unwrap_err(),
            "\"deploy\" is no SidecarSet: write scs/name, or the name alone"
        );
    }

    #[test]
    fn an_autoscaler_is_known_by_its_name_alone() {
        for text in ["web", "vpa/web", "VerticalPodAutoscaler/web", "verticalpodautoscalers/web"] {
            assert_eq!(autoscaler_named(text).as_deref(), Ok("web"), "{text}");
        }
        assert_eq!(autoscaler_named("vpa/").unwrap_err(), "write it as vpa/name, such as vpa/web");
        assert_eq!(
            autoscaler_named("deploy/web").unwrap_err(),
            "\"deploy\" is no VerticalPodAutoscaler: write vpa/name, or the name alone"
        );
    }

    #[test]
    fn a_pod_has_no_template() {
        assert_eq!(templated("sts/db").map(|(kind, name)| (kind.name, name)), Ok(("StatefulSet", "db".to_owned())));
        assert_eq!(
            templated("pod/web").unwrap_err(),
            "a pod has no template to go back to: name its workload, such as deploy/web"
        );
    }

    #[test]
    fn kinds_are_known_by_all_their_names() {
        for (text, kind, name) in [
            ("pod/web-0", "Pod", "web-0"),
            ("po/web", "Pod", "web"),
            ("deploy/web", "Deployment", "web"),
            ("Deployments/web", "Deployment", "web"),
            ("sts/db", "StatefulSet", "db"),
            ("cj/nightly", "CronJob", "nightly"),
            ("cronjob/nightly", "CronJob", "nightly"),
        ] {
            let (found, found_name) = named(text).unwrap();
            assert_eq!((found.name, found_name.as_str()), (kind, name));
        }
        assert_eq!(named("web").unwrap_err(), "write it as kind/name, such as pod/web or deploy/web");
        assert_eq!(
            named("svc/web").unwrap_err(),
            "\"svc\" is no kind that creates pods: there are pod, deploy, rs, sts, ds, job, cj, rc, clone"
        );
    }

    #[test]
    fn files_are_updated_where_pods_keep_running() {
        let found = |text| running_workload(text).map(|(kind, name)| (kind.name, name));
        assert_eq!(found("deploy/web"), Ok(("Deployment", "web".to_owned())));
        assert_eq!(found("GameServerSet/arena"), Ok(("GameServerSet", "arena".to_owned())));
        assert_eq!(
            found("cj/web").unwrap_err(),
            "files of a \"cj\" cannot be updated: there are deploy, rs, sts, ds, job, clone, gss"
        );
        for text in ["web", "deploy/", "deploy/a/b"] {
            assert_eq!(found(text).unwrap_err(), "write it as kind/name, such as deploy/web");
        }
    }

    #[test]
    fn every_kind_has_its_place() {
        assert_eq!(POD.path(Some("shop")), "/api/v1/namespaces/shop/pods");
        assert_eq!(POD.path(None), "/api/v1/pods");
        assert_eq!(DEPLOYMENT.path(Some("shop")), "/apis/apps/v1/namespaces/shop/deployments");
        assert_eq!(SIDECAR_SET.path(None), "/apis/apps.kruise.io/v1alpha1/sidecarsets");
    }
}
