//! What there is to decide in an admission: matches, clashes, and what a set meets in a pod.
//!
//! A rough look, not the rules: those are for the crate that injects.

use std::collections::BTreeSet;

use pillion_api::{Meaning, Namespaces, PatchPolicy, PodField, SetMode, Sidecar, TransferSource};
use pillion_expr::{Amounts, Container, EvalError, Field, Input, NamePattern, Outcome, Resource, Side, Targets};
use pillion_generators::Admission;
use serde_json::Value;

/// Something a test of injection wants to meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Situation {
    /// At least one set selects the pod.
    Selected,
    /// At least two do.
    SelectedTwice,
    /// Two that do have a container of one name.
    SetsClash,
    /// Nothing stands against a set that selects the pod.
    Clean,

    Paused,
    Observed,
    Pinned,
    OptedOut,
    OptOutRefused,

    ContainerClash,
    VolumeClash,
    /// The pod has a volume of the set's name and content.
    VolumeEqual,
    MountClash,
    AppMountWithoutContainer,
    AccountClash,
    /// The set gives the account, and the pod has a token of the default one.
    TokenToRemove,
    ProcessNamespaceClash,
    LabelClash,
    MergeNotJson,
    Merged,
    Retained,
    Overwritten,
    SecretThere,

    NoTarget,
    Computed,
    NoLimit,
    Negative,
    ZeroLimit,
    RequestAboveLimit,
    TooLarge,

    MountsShared,
    DevicesShared,
    VariableForSharedPath,
    VariableMissingForSharedPath,
    Transferred,
    NothingToTransfer,

    ForgedMark,
    InjectedByKruise,
}

use Situation as S;

/// These are why a set that selects a pod is not applied.
const AGAINST: [Situation; 17] = [
    S::Paused,
    S::Observed,
    S::Pinned,
    S::OptedOut,
    S::ContainerClash,
    S::VolumeClash,
    S::MountClash,
    S::AccountClash,
    S::ProcessNamespaceClash,
    S::LabelClash,
    S::MergeNotJson,
    S::NoTarget,
    S::Negative,
    S::ZeroLimit,
    S::RequestAboveLimit,
    S::TooLarge,
    S::SetsClash,
];

impl Situation {
    pub(crate) const LAST: Self = Self::InjectedByKruise;
}

/// All that is met in an admission, and how many sets select the pod and how many of those have nothing against them.
pub(crate) fn met(case: &Admission) -> (BTreeSet<Situation>, usize, usize) {
    let sets = case.meanings();
    let selecting: Vec<&Meaning> = sets.iter().filter(|set| selects(set, case)).collect();
    let mut all = BTreeSet::new();
    let mut clean = 0;
    for (at, set) in selecting.iter().enumerate() {
        let mut own = BTreeSet::new();
        Look { pod: &case.pod, set, met: &mut own }.all();
        let names = |set: &Meaning| sidecars(set).map(|it| it.name.clone()).collect::<BTreeSet<_>>();
        if selecting.iter().enumerate().any(|(other, it)| other != at && !names(it).is_disjoint(&names(set))) {
            own.insert(S::SetsClash);
        }
        if AGAINST.iter().all(|it| !own.contains(it)) {
            own.insert(S::Clean);
            clean += 1;
        }
        all.extend(own);
    }
    if !selecting.is_empty() {
        all.insert(S::Selected);
    }
    if selecting.len() > 1 {
        all.insert(S::SelectedTwice);
    }
    let marks = ["decision", "containers"].map(|key| annotation(&case.pod, &format!("pillion.dev/{key}")));
    if marks.iter().any(Option::is_some) || label(&case.pod, "pillion.dev/injected").is_some() {
        all.insert(S::ForgedMark);
    }
    if annotation(&case.pod, "kruise.io/sidecarset-injected-list").is_some() {
        all.insert(S::InjectedByKruise);
    }
    (all, selecting.len(), clean)
}

fn selects(set: &Meaning, case: &Admission) -> bool {
    let namespace = match &set.namespaces {
        Namespaces::All => true,
        Namespaces::Named(name) => *name == case.namespace.name,
        Namespaces::Selected(selector) => selector.matches(|key| case.namespace.labels.get(key).map(String::as_str)),
    };
    namespace && set.selector.matches(|key| label(&case.pod, key))
}

fn label<'a>(pod: &'a Value, key: &str) -> Option<&'a str> {
    pod["metadata"]["labels"][key].as_str()
}

fn annotation<'a>(pod: &'a Value, key: &str) -> Option<&'a str> {
    pod["metadata"]["annotations"][key].as_str()
}

fn items<'a>(object: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    object[list].as_array().into_iter().flatten()
}

fn sidecars(set: &Meaning) -> impl Iterator<Item = &Sidecar> {
    set.template.init_containers.iter().chain(&set.template.containers)
}

/// One set that selects one pod.
struct Look<'a> {
    pod: &'a Value,
    set: &'a Meaning,
    met: &'a mut BTreeSet<Situation>,
}

impl<'a> Look<'a> {
    fn add(&mut self, situation: Situation, is_met: bool) {
        if is_met {
            self.met.insert(situation);
        }
    }

    fn all(&mut self) {
        self.set_itself();
        self.names();
        self.pod_fields();
        self.annotations();
        for sidecar in sidecars(self.set) {
            self.resources(sidecar);
            self.sharing(sidecar);
        }
    }

    fn set_itself(&mut self) {
        let set = self.set;
        self.add(S::Paused, set.injection.paused);
        self.add(S::Observed, set.mode == SetMode::Observe);
        self.add(S::Pinned, set.injection.pin.is_some());
        let skips = annotation(self.pod, "pillion.dev/skip").unwrap_or_default();
        let skipped = skips.split(',').any(|name| name.trim() == set.name);
        self.add(S::OptedOut, skipped && set.allow_opt_out);
        self.add(S::OptOutRefused, skipped && !set.allow_opt_out);
    }

    fn containers(&self) -> impl Iterator<Item = &'a Value> + use<'a> {
        let spec = &self.pod["spec"];
        items(spec, "initContainers").chain(items(spec, "containers"))
    }

    /// Plain containers and native sidecars.
    fn targets(&self, pattern: &NamePattern) -> Vec<&'a Value> {
        let spec = &self.pod["spec"];
        let native = items(spec, "initContainers").filter(|it| it["restartPolicy"] == "Always");
        native.chain(items(spec, "containers")).filter(|it| pattern.is_match(it["name"].as_str().unwrap())).collect()
    }

    fn names(&mut self) {
        let own: Vec<&str> = self.containers().map(|it| it["name"].as_str().unwrap()).collect();
        let clash = sidecars(self.set).any(|sidecar| own.contains(&sidecar.name.as_str()));
        self.add(S::ContainerClash, clash);
        for volume in &self.set.template.volumes {
            let same = items(&self.pod["spec"], "volumes").find(|it| it["name"] == volume.name);
            let equal = same.map(|same| same.as_object() == Some(&volume.volume));
            self.add(S::VolumeEqual, equal == Some(true));
            self.add(S::VolumeClash, equal == Some(false));
        }
        for mount in &self.set.template.app_volume_mounts {
            let targets = self.targets(&mount.targets);
            let none = targets.is_empty();
            let taken = targets.iter().any(|it| items(it, "volumeMounts").any(|own| own["mountPath"] == mount.path));
            self.add(S::AppMountWithoutContainer, none);
            self.add(S::MountClash, taken);
        }
    }

    fn pod_fields(&mut self) {
        let (spec, template) = (&self.pod["spec"], &self.set.template);
        if let Some(account) = &template.service_account_name {
            let own = spec["serviceAccountName"].as_str().unwrap_or("default");
            self.add(S::AccountClash, own != "default" && own != account);
            let is_token = |it: &Value| it["name"].as_str().is_some_and(|name| name.starts_with("kube-api-access-"));
            self.add(S::TokenToRemove, own == "default" && items(spec, "volumes").any(is_token));
        }
        let apart = spec["shareProcessNamespace"] == false || spec["hostPID"] == true;
        self.add(S::ProcessNamespaceClash, template.share_process_namespace == Some(true) && apart);
        let other = |(key, value): (&String, &String)| label(self.pod, key).is_some_and(|own| own != value);
        let clash = template.labels.iter().any(other);
        self.add(S::LabelClash, clash);
        let there = |name: &String| items(spec, "imagePullSecrets").any(|it| it["name"] == *name);
        let there = template.image_pull_secrets.iter().any(there);
        self.add(S::SecretThere, there);
    }

    fn annotations(&mut self) {
        for patch in &self.set.template.annotations {
            let Some(own) = annotation(self.pod, &patch.key) else { continue };
            let is_json = own.is_empty() || serde_json::from_str::<Value>(own).is_ok();
            self.add(S::Retained, patch.policy == PatchPolicy::Retain);
            self.add(S::Overwritten, patch.policy == PatchPolicy::Overwrite);
            self.add(S::Merged, patch.policy == PatchPolicy::MergePatchJson && is_json);
            self.add(S::MergeNotJson, patch.policy == PatchPolicy::MergePatchJson && !is_json);
        }
    }

    fn resources(&mut self, sidecar: &Sidecar) {
        let Some(policy) = &sidecar.resources else { return };
        let targets = self.targets(&policy.targets);
        let Ok(targets) = Targets::select(targets.iter().map(|it| container(it)), &policy.targets) else {
            return self.add(S::NoTarget, true);
        };
        for resource in [Resource::Cpu, Resource::Memory] {
            let [limit, request] = [Side::Limits, Side::Requests].map(|side| {
                let field = Field::new(side, resource);
                let program = policy.program(field)?;
                Some(targets.aggregate(field, policy.mode).ok().map(|input: Input| program.eval(input)))
            });
            let both = [&limit, &request];
            let too_large = |it: &&_| matches!(it, Some(None | Some(Err(EvalError::TooLarge { .. }))));
            self.add(S::TooLarge, both.iter().any(too_large));
            let negative = |it: &&_| matches!(it, Some(Some(Err(EvalError::Negative { .. }))));
            self.add(S::Negative, both.iter().any(negative));
            let (limit, request) = (limit.flatten(), request.flatten());
            self.add(S::NoLimit, limit == Some(Ok(Outcome::Unlimited)));
            if let Some(Ok(Outcome::Amount(limit))) = limit {
                self.add(S::Computed, true);
                self.add(S::ZeroLimit, limit.nano() == 0);
                let above = matches!(request, Some(Ok(Outcome::Amount(request))) if request > limit);
                self.add(S::RequestAboveLimit, above);
            }
        }
    }

    fn sharing(&mut self, sidecar: &Sidecar) {
        for app in items(&self.pod["spec"], "containers") {
            let has = |name: &str| items(app, "env").any(|it| it["name"] == name);
            self.add(S::DevicesShared, sidecar.shares_devices && items(app, "volumeDevices").next().is_some());
            for mount in items(app, "volumeMounts").filter(|_| sidecar.shares_volumes) {
                self.add(S::MountsShared, true);
                let expression = mount["subPathExpr"].as_str().unwrap_or_default();
                for name in expression.split("$(").skip(1).filter_map(|rest| rest.split(')').next()) {
                    self.add(if has(name) { S::VariableForSharedPath } else { S::VariableMissingForSharedPath }, true);
                }
            }
            for transfer in &sidecar.transfers {
                let source = match &transfer.source {
                    TransferSource::Container(name) => Some(name.as_str()),
                    TransferSource::FromPod(PodField::Name) => self.pod["metadata"]["name"].as_str(),
                    TransferSource::FromPod(PodField::Label(key)) => label(self.pod, key),
                    TransferSource::FromPod(PodField::Annotation(key)) => annotation(self.pod, key),
                };
                let found = source == app["name"].as_str() && transfer.names.iter().any(|name| has(name));
                self.add(if found { S::Transferred } else { S::NothingToTransfer }, true);
            }
        }
    }
}

fn container(json: &Value) -> Container<'_> {
    let amount = |side: &str, name: &str| {
        let amount = &json["resources"][side][name];
        let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
        (!amount.is_null()).then(|| text.parse().unwrap())
    };
    let amounts = |side: &str| Amounts { cpu: amount(side, "cpu"), memory: amount(side, "memory") };
    Container { name: json["name"].as_str().unwrap(), requests: amounts("requests"), limits: amounts("limits") }
}
