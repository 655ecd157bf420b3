//! What a `VerticalPodAutoscaler` means, with all defaults.

use jiff::Timestamp;
use pillion_api::{ContainerResourcePolicy, StartupBoost, VerticalPodAutoscaler};
use pillion_quantity::Resource;

use crate::amounts::Amounts;
use crate::recommendation::Recommendation;

/// Annotation with the mode we apply of an object that others see as Off.
pub const UPDATE_MODE: &str = "pillion.dev/update-mode";
/// The recommender of an object that names none.
const DEFAULT_RECOMMENDER: &str = "default";
/// The policy of containers that have none of their own.
const EVERY_CONTAINER: &str = "*";

/// What a `VerticalPodAutoscaler` means.
#[derive(Clone, Debug, PartialEq)]
pub struct Autoscaler {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// When it was created.
    pub created: Timestamp,
    /// Its generation.
    pub generation: i64,
    /// Whose pods are sized.
    pub target: Target,
    /// What it says of when pods change.
    pub mode: Mode,
    /// What the annotation says of it; holds where the mode is Off.
    pub own_mode: Option<Mode>,
    /// Whether it says Auto, which is deprecated.
    pub says_auto: bool,
    /// How many pods there must be.
    pub min_replicas: Option<u32>,
    /// What must hold before a pod is evicted.
    pub eviction_requirements: Vec<EvictionRequirement>,
    /// Policies by container, as they are written; the first of a name holds.
    pub containers: Vec<(String, ContainerPolicy)>,
    /// More cpu at the start, for containers whose policy has none.
    pub boost: Option<Boost>,
    /// Who recommends.
    pub recommender: String,
    /// Containers whose cpu is to be whole cores, by annotation.
    pub whole_cores: Vec<String>,
    /// What was published, where it was.
    pub recommendation: Option<Recommendation>,
}

/// An object that has pods.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Group and version; empty where it is not said.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// When and how pods change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Never; it is only recommended.
    Off,
    /// When they are created.
    Initial,
    /// And by eviction.
    Recreate,
    /// And in place, or by eviction where that is not possible.
    InPlaceOrRecreate,
    /// And in place, never by eviction.
    InPlace,
}

/// What must hold before a pod is evicted: for at least one of the resources, the target is above or below the requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictionRequirement {
    /// One of these.
    pub resources: Vec<Resource>,
    /// Above, or below.
    pub is_higher: bool,
}

/// What holds for one container.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the object tells each of them apart from the others")]
pub struct ContainerPolicy {
    /// Whether it is neither recommended for nor changed.
    pub is_off: bool,
    /// Never less.
    pub min: Amounts,
    /// Never more.
    pub max: Amounts,
    /// Whether cpu is sized.
    pub sizes_cpu: bool,
    /// Whether memory is sized.
    pub sizes_memory: bool,
    /// Whether limits stay.
    pub requests_only: bool,
    /// More cpu at the start.
    pub boost: Option<Boost>,
    /// Whether cpu is to be whole cores, by annotation.
    pub whole_cores: bool,
    /// Whether it is the policy of every container, `*`, and not one of its own.
    pub is_of_every_container: bool,
}

/// More cpu at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boost {
    /// How much.
    pub by: BoostBy,
    /// How long it lasts after the pod is ready.
    pub seconds: u32,
}

/// How much more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoostBy {
    /// So many times as much.
    Factor(u32),
    /// So many millicores more.
    Millicores(i64),
}

impl Default for ContainerPolicy {
    fn default() -> Self {
        Self {
            is_off: false,
            min: Amounts::default(),
            max: Amounts::default(),
            sizes_cpu: true,
            sizes_memory: true,
            requests_only: false,
            boost: None,
            whole_cores: false,
            is_of_every_container: false,
        }
    }
}

impl Mode {
    /// Reads a mode; Auto is Recreate.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "Off" => Self::Off,
            "Initial" => Self::Initial,
            "" | "Recreate" | "Auto" => Self::Recreate,
            "InPlaceOrRecreate" => Self::InPlaceOrRecreate,
            "InPlace" => Self::InPlace,
            _ => return None,
        })
    }
}

impl ContainerPolicy {
    /// Whether a resource is sized.
    pub const fn sizes(&self, resource: Resource) -> bool {
        match resource {
            Resource::Cpu => self.sizes_cpu,
            Resource::Memory => self.sizes_memory,
        }
    }

    fn read(stored: &ContainerResourcePolicy) -> Self {
        let sizes = |resource: Resource| {
            stored.controlled_resources.as_ref().is_none_or(|all| all.iter().any(|name| name == resource.name()))
        };
        Self {
            is_off: stored.mode.as_deref() == Some("Off"),
            min: stored.min_allowed.as_ref().map(Amounts::from_list).unwrap_or_default(),
            max: stored.max_allowed.as_ref().map(Amounts::from_list).unwrap_or_default(),
            sizes_cpu: sizes(Resource::Cpu),
            sizes_memory: sizes(Resource::Memory),
            requests_only: stored.controlled_values.as_deref() == Some("RequestsOnly"),
            boost: stored.startup_boost.as_ref().and_then(Boost::read),
            ..Self::default()
        }
    }
}

impl Boost {
    fn read(stored: &StartupBoost) -> Option<Self> {
        let cpu = stored.cpu.as_ref()?;
        let by = match cpu.kind.as_str() {
            "Factor" => BoostBy::Factor(cpu.factor?.try_into().ok()?),
            "Quantity" => BoostBy::Millicores(Amounts::read(Resource::Cpu, &cpu.quantity.as_ref()?.0)?),
            _ => return None,
        };
        Some(Self { by, seconds: cpu.duration_seconds.unwrap_or_default().try_into().ok()? })
    }
}

impl Autoscaler {
    /// Reads an object; else why it cannot be used.
    pub fn read(object: &VerticalPodAutoscaler) -> Result<Self, String> {
        let (metadata, spec) = (&object.metadata, &object.spec);
        let update = spec.update_policy.clone().unwrap_or_default();
        let said = update.update_mode.as_deref().unwrap_or_default();
        let mode = Mode::parse(said).ok_or_else(|| {
            format!(
                "spec.updatePolicy.updateMode is {said:?}: use Off, Initial, Recreate, InPlaceOrRecreate or InPlace"
            )
        })?;
        let annotations = metadata.annotations.iter().flatten();
        let own_mode = match annotations.clone().find(|(key, _)| *key == UPDATE_MODE) {
            None => None,
            Some((_, text)) => {
                let wrong = || {
                    format!("annotation {UPDATE_MODE} is {text:?}: use Initial, Recreate, InPlaceOrRecreate or InPlace")
                };
                Some(Mode::parse(text).filter(|_| !text.is_empty()).ok_or_else(wrong)?)
            }
        };
        let suffix = "_integerCPU";
        let whole = annotations.filter(|(_, value)| *value == "true");
        let whole =
            whole.filter_map(|(key, _)| key.strip_prefix("vpa-post-processor.kubernetes.io/")?.strip_suffix(suffix));
        let policies = spec.resource_policy.iter().flat_map(|policy| policy.container_policies.iter().flatten());
        let status = object.status.clone().unwrap_or_default();
        let is_provided = status
            .conditions
            .iter()
            .flatten()
            .any(|condition| condition.kind == "RecommendationProvided" && condition.status == "True");
        Ok(Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            created: metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0),
            generation: metadata.generation.unwrap_or_default(),
            target: Target {
                api_version: spec.target_ref.api_version.clone().unwrap_or_default(),
                kind: spec.target_ref.kind.clone(),
                name: spec.target_ref.name.clone(),
            },
            mode,
            own_mode,
            says_auto: said == "Auto",
            min_replicas: update.min_replicas.and_then(|least| least.try_into().ok()),
            eviction_requirements: update
                .eviction_requirements
                .iter()
                .flatten()
                .map(EvictionRequirement::read)
                .collect(),
            containers: policies
                .map(|policy| (policy.container_name.clone().unwrap_or_default(), ContainerPolicy::read(policy)))
                .collect(),
            boost: spec.startup_boost.as_ref().and_then(Boost::read),
            recommender: spec
                .recommenders
                .iter()
                .flatten()
                .next()
                .map_or_else(|| DEFAULT_RECOMMENDER.to_owned(), |recommender| recommender.name.clone()),
            whole_cores: whole.map(str::to_owned).collect(),
            recommendation: status.recommendation.filter(|_| is_provided).map(|stored| Recommendation::read(&stored)),
        })
    }

    /// Whether it is ours: it names our recommender, or all are ours.
    pub fn is_claimed(&self, name: &str, all: bool) -> bool {
        all || self.recommender == name
    }

    /// What holds for a container: its own policy, else that of every container, else the defaults.
    pub fn policy(&self, container: &str) -> ContainerPolicy {
        let of = |name: &str| self.containers.iter().find(|(own, _)| own == name).map(|(_, policy)| policy.clone());
        let every = || of(EVERY_CONTAINER).map(|policy| ContainerPolicy { is_of_every_container: true, ..policy });
        let mut policy = of(container).or_else(every).unwrap_or_default();
        policy.boost = policy.boost.or(self.boost);
        policy.whole_cores = self.whole_cores.iter().any(|name| name == container);
        policy
    }

    /// The mode that we apply. Upstream's own updater and webhook do not look at the recommender's name, so beside them only
    /// an object that they take for Off is ours to apply.
    pub fn effective_mode(&self, is_beside_upstream: bool) -> Mode {
        match (self.mode, self.own_mode) {
            (Mode::Off, Some(own)) => own,
            (mode, _) if !is_beside_upstream => mode,
            _ => Mode::Off,
        }
    }

    /// Whether a container is sized by this object, so that nothing else may.
    pub fn controls(&self, container: &str, is_beside_upstream: bool) -> bool {
        self.effective_mode(is_beside_upstream) != Mode::Off && !self.policy(container).is_off
    }
}

impl EvictionRequirement {
    fn read(stored: &pillion_api::EvictionRequirement) -> Self {
        Self {
            resources: stored.resources.iter().filter_map(|name| name.parse().ok()).collect(),
            is_higher: stored.change_requirement == "TargetHigherThanRequests",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn autoscaler(annotations: &Value, spec: &Value) -> Result<Autoscaler, String> {
        let mut spec = spec.clone();
        spec["targetRef"] = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
        let object = json!({
            "apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
            "metadata": {"name": "web", "namespace": "shop", "annotations": annotations}, "spec": spec,
        });
        Autoscaler::read(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn the_mode_is_recreate_where_nothing_is_said_and_auto_is_the_same() {
        assert_eq!(autoscaler(&json!({}), &json!({})).unwrap().mode, Mode::Recreate);
        let auto = autoscaler(&json!({}), &json!({"updatePolicy": {"updateMode": "Auto"}})).unwrap();
        assert_eq!((auto.mode, auto.says_auto), (Mode::Recreate, true));
        let unknown = autoscaler(&json!({}), &json!({"updatePolicy": {"updateMode": "Sometimes"}}));
        assert_eq!(
            unknown.unwrap_err(),
            "spec.updatePolicy.updateMode is \"Sometimes\": use Off, Initial, Recreate, InPlaceOrRecreate or InPlace"
        );
    }

    #[test]
    fn beside_upstream_only_an_object_that_upstream_takes_for_off_is_applied() {
        let mode = |annotations, said: &str, beside| {
            autoscaler(&annotations, &json!({"updatePolicy": {"updateMode": said}})).unwrap().effective_mode(beside)
        };
        let own = || json!({UPDATE_MODE: "InPlace"});
        assert_eq!(mode(json!({}), "InPlaceOrRecreate", false), Mode::InPlaceOrRecreate);
        assert_eq!(mode(json!({}), "InPlaceOrRecreate", true), Mode::Off);
        assert_eq!(mode(own(), "Off", true), Mode::InPlace);
        assert_eq!(mode(own(), "Off", false), Mode::InPlace);
        // An object that upstream would apply, too, is not ours because of an annotation.
        assert_eq!(mode(own(), "Recreate", true), Mode::Off);
        assert_eq!(mode(own(), "Recreate", false), Mode::Recreate);
        assert!(autoscaler(&json!({UPDATE_MODE: ""}), &json!({})).is_err());
    }

    #[test]
    fn a_policy_of_its_own_wins_over_that_of_every_container() {
        let spec = json!({"resourcePolicy": {"containerPolicies": [
            {"containerName": "*", "maxAllowed": {"cpu": "4"}, "controlledResources": ["cpu"]},
            {"containerName": "proxy", "mode": "Off", "controlledValues": "RequestsOnly"},
        ]}, "startupBoost": {"cpu": {"type": "Factor", "factor": 2, "durationSeconds": 10}}});
        let own = autoscaler(&json!({}), &spec).unwrap();
        let boost = Some(Boost { by: BoostBy::Factor(2), seconds: 10 });
        let max = Amounts { cpu: Some(4000), memory: None };
        let is_of_every_container = true;
        let every =
            ContainerPolicy { max, sizes_memory: false, boost, is_of_every_container, ..ContainerPolicy::default() };
        assert_eq!(own.policy("app"), every);
        let proxy = ContainerPolicy { is_off: true, requests_only: true, boost, ..ContainerPolicy::default() };
        assert_eq!(own.policy("proxy"), proxy);
        assert!(own.controls("app", false) && !own.controls("app", true) && !own.controls("proxy", false));
    }

    #[test]
    fn objects_are_ours_by_the_name_of_the_recommender() {
        let ours = autoscaler(&json!({}), &json!({"recommenders": [{"name": "pillion"}]})).unwrap();
        let others = autoscaler(&json!({}), &json!({})).unwrap();
        assert!(ours.is_claimed("pillion", false) && !others.is_claimed("pillion", false));
        assert!(others.is_claimed("pillion", true) && others.is_claimed("default", false));
    }

    #[test]
    fn containers_with_whole_cores_are_named_by_annotation() {
        let annotations = json!({
            "vpa-post-processor.kubernetes.io/app_integerCPU": "true",
            "vpa-post-processor.kubernetes.io/other_integerCPU": "false",
        });
        let own = autoscaler(&annotations, &json!({})).unwrap();
        assert_eq!(own.whole_cores, ["app"]);
        assert!(own.policy("app").whole_cores && !own.policy("other").whole_cores);
    }
}
