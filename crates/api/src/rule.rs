//! The rules that hold between fields: each once in CEL, for the API server, and once in Rust, for everybody else.
//!
//! The two must agree; the table of `tests/sets` is run against both.

mod judge;

use serde_json::Value;

use crate::Reason;

/// What must hold of the value at certain places of the object.
pub(crate) struct Rule {
    pub(crate) reason: Reason,
    /// Where: fields joined by dots, `[]` for the items of a list, `{a,b}` for either.
    pub(crate) at: &'static str,
    /// The fields below that place it is about; the first is where the problem is shown.
    pub(crate) fields: &'static [&'static str],
    pub(crate) cel: &'static str,
    pub(crate) holds: fn(&Value) -> bool,
    pub(crate) message: Message,
    pub(crate) help: &'static str,
}

/// What is wrong, in words.
pub(crate) enum Message {
    Fixed(&'static str),
    /// A message that names what it found, in the place of `%s`. The API server has no bound for the length of keys, so
    /// that joining them is too costly for it; `format` is not.
    Naming {
        text: &'static str,
        found: &'static str,
        names: fn(&Value) -> Vec<&str>,
    },
}

impl Rule {
    /// Every place, with the alternatives in braces written out.
    pub(crate) fn places(&self) -> Vec<String> {
        let mut places = vec![self.at.to_owned()];
        while let Some(at) = places.iter().position(|place| place.contains('{')) {
            let place = places.swap_remove(at);
            let Some((before, rest)) = place.split_once('{') else { continue };
            let Some((choices, after)) = rest.split_once('}') else { continue };
            places.extend(choices.split(',').map(|choice| format!("{before}{choice}{after}")));
        }
        places.sort();
        places
    }

    /// What is wrong with a value.
    pub(crate) fn what(&self, value: &Value) -> String {
        match &self.message {
            Message::Fixed(text) => (*text).to_owned(),
            Message::Naming { text, names, .. } => text.replace("%s", &format!("{:?}", names(value))),
        }
    }

    /// Code, what is wrong, and the way out: what the API server says, unless it can name what it found.
    pub(crate) fn text(&self) -> String {
        let what = match &self.message {
            Message::Fixed(text) => (*text).to_owned(),
            Message::Naming { text, .. } => text.replace("%s", "others"),
        };
        format!("{}: {what}: {}", self.reason.code(), self.help)
    }
}

const CONTAINERS: &str = "spec.{containers,initContainers}[]";
const POLICY: &str = "spec.{containers,initContainers}[].resourcesPolicy";
const SELECTORS: &str = "spec.{selector,namespaceSelector,updateStrategy.selector,updateStrategy.priorityStrategy.weightPriority[].matchSelector}";

/// All rules.
pub(crate) const RULES: &[Rule] = &[
    Rule {
        reason: Reason::InvalidName,
        at: "",
        fields: &["metadata.name"],
        cel: "size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        holds: judge::name_is_a_label_value,
        message: Message::Fixed("the name of a set has at most 63 lower-case letters, digits and dashes"),
        help: "choose such a name",
    },
    Rule {
        reason: Reason::BothSpellings,
        at: "spec",
        fields: &["injectStrategy", "injectionStrategy"],
        cel: "!(has(self.injectStrategy) && has(self.injectionStrategy))",
        holds: |spec| !judge::has_all(spec, &["injectStrategy", "injectionStrategy"]),
        message: Message::Fixed("injectStrategy and injectionStrategy are two spellings of one field"),
        help: "keep one of them",
    },
    Rule {
        reason: Reason::NoContainers,
        at: "spec",
        fields: &[],
        cel: "(has(self.containers) && size(self.containers) > 0) || (has(self.initContainers) && size(self.initContainers) > 0)",
        holds: |spec| judge::len(spec, "containers") + judge::len(spec, "initContainers") > 0,
        message: Message::Fixed("the set adds neither a container nor an init container"),
        help: "add one to containers or initContainers",
    },
    Rule {
        reason: Reason::NamespaceAndSelector,
        at: "spec",
        fields: &["namespace", "namespaceSelector"],
        cel: "!(has(self.namespace) && has(self.namespaceSelector))",
        holds: |spec| !judge::has_all(spec, &["namespace", "namespaceSelector"]),
        message: Message::Fixed("namespace and namespaceSelector both say which namespaces are meant"),
        help: "keep one of them",
    },
    Rule {
        reason: Reason::NotSupported,
        at: "spec",
        fields: &["customVersion"],
        cel: "!has(self.customVersion)",
        holds: |spec| !judge::has_all(spec, &["customVersion"]),
        message: Message::Fixed("customVersion is a field of v1beta1, which is not supported"),
        help: "set the label apps.kruise.io/sidecarset-custom-version on the set instead",
    },
    Rule {
        reason: Reason::DuplicateName,
        at: "spec",
        fields: &["initContainers"],
        cel: "!has(self.containers) || !has(self.initContainers) || self.initContainers.all(i, !self.containers.exists(c, c.name == i.name))",
        holds: |spec| judge::shared_name(spec).is_none(),
        message: Message::Fixed("an init container has the name of a container"),
        help: "rename one of the two, a pod cannot have both",
    },
    Rule {
        reason: Reason::UnknownVolume,
        at: "spec",
        fields: &["appVolumeMounts"],
        cel: "!has(self.appVolumeMounts) || self.appVolumeMounts.all(m, has(self.volumes) && self.volumes.exists(v, v.name == m.volume))",
        holds: judge::app_volumes_exist,
        message: Message::Fixed("appVolumeMounts names a volume that is not in spec.volumes"),
        help: "add the volume or correct the name",
    },
    Rule {
        reason: Reason::EmptySelector,
        at: SELECTORS,
        fields: &[],
        cel: "(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",
        holds: |selector| judge::len(selector, "matchLabels") + judge::len(selector, "matchExpressions") > 0,
        message: Message::Fixed("the selector requires nothing"),
        help: "name at least one label, or leave an optional selector out to mean everything",
    },
    Rule {
        reason: Reason::InvalidSelector,
        at: "spec.{selector,namespaceSelector,updateStrategy.selector,updateStrategy.priorityStrategy.weightPriority[].matchSelector}.matchExpressions[]",
        fields: &["values"],
        cel: "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
        holds: |it| matches!(judge::text(it, "operator"), "In" | "NotIn") == (judge::len(it, "values") > 0),
        message: Message::Fixed("operators In and NotIn need values, Exists and DoesNotExist take none"),
        help: "correct the operator or the values",
    },
    Rule {
        reason: Reason::ResourcesPolicyBesideResources,
        at: CONTAINERS,
        fields: &["resourcesPolicy", "resources"],
        cel: "!has(self.resourcesPolicy) || !has(self.resources) || !(has(self.resources.limits) || has(self.resources.requests))",
        holds: |it| {
            !judge::has_all(it, &["resourcesPolicy"])
                || !it.get("resources").is_some_and(|fixed| judge::has_any(fixed, &["limits", "requests"]))
        },
        message: Message::Fixed("resourcesPolicy stands beside resources.limits or resources.requests"),
        help: "keep the computed or the fixed amounts; resources.claims may stay",
    },
    Rule {
        reason: Reason::NotSupported,
        at: CONTAINERS,
        fields: &["upgradeStrategy"],
        cel: "!has(self.upgradeStrategy) || ((!has(self.upgradeStrategy.upgradeType) || self.upgradeStrategy.upgradeType == 'ColdUpgrade') && !has(self.upgradeStrategy.hotUpgradeEmptyImage))",
        holds: judge::no_hot_upgrade,
        message: Message::Fixed("hot upgrades are not supported"),
        help: "remove upgradeStrategy; the container is then updated in place and restarted",
    },
    Rule {
        reason: Reason::ResourcesPolicyOnPlainInit,
        at: "spec.initContainers[]",
        fields: &["resourcesPolicy"],
        cel: "!has(self.resourcesPolicy) || (has(self.restartPolicy) && self.restartPolicy == 'Always')",
        holds: |it| !judge::has_all(it, &["resourcesPolicy"]) || judge::text(it, "restartPolicy") == "Always",
        message: Message::Fixed("a plain init container cannot have a resourcesPolicy"),
        help: "give it restartPolicy: Always, or fixed resources",
    },
    Rule {
        reason: Reason::SidecarMarkOnPlainInit,
        at: "spec.initContainers[]",
        fields: &["sidecar"],
        cel: "!has(self.sidecar) || !self.sidecar || (has(self.restartPolicy) && self.restartPolicy == 'Always')",
        holds: |it| it.get("sidecar") != Some(&Value::Bool(true)) || judge::text(it, "restartPolicy") == "Always",
        message: Message::Fixed("a plain init container ends before the others start and cannot be a sidecar"),
        help: "give it restartPolicy: Always, or remove sidecar",
    },
    Rule {
        reason: Reason::SidecarRestartPolicy,
        at: "spec.containers[]",
        fields: &["restartPolicy", "sidecar"],
        cel: "!has(self.sidecar) || !self.sidecar || !has(self.restartPolicy) || self.restartPolicy == 'Always'",
        holds: |it| {
            it.get("sidecar") != Some(&Value::Bool(true)) || matches!(judge::text(it, "restartPolicy"), "" | "Always")
        },
        message: Message::Fixed("a sidecar runs until all others have ended and can only have restartPolicy: Always"),
        help: "remove restartPolicy or sidecar",
    },
    Rule {
        reason: Reason::BothSpellings,
        at: POLICY,
        fields: &["targetContainerMode", "targetContainersMode"],
        cel: "!(has(self.targetContainerMode) && has(self.targetContainersMode))",
        holds: |it| !judge::has_all(it, &["targetContainerMode", "targetContainersMode"]),
        message: Message::Fixed("targetContainerMode and targetContainersMode are two spellings of one field"),
        help: "keep one of them",
    },
    Rule {
        reason: Reason::MissingSpelling,
        at: POLICY,
        fields: &["targetContainerMode"],
        cel: "has(self.targetContainerMode) || has(self.targetContainersMode)",
        holds: |it| judge::has_any(it, &["targetContainerMode", "targetContainersMode"]),
        message: Message::Fixed("targetContainerMode is required"),
        help: "set it to sum or max",
    },
    Rule {
        reason: Reason::BothSpellings,
        at: POLICY,
        fields: &["resourceExpr", "resourcesExpr"],
        cel: "!(has(self.resourceExpr) && has(self.resourcesExpr))",
        holds: |it| !judge::has_all(it, &["resourceExpr", "resourcesExpr"]),
        message: Message::Fixed("resourceExpr and resourcesExpr are two spellings of one field"),
        help: "keep one of them",
    },
    Rule {
        reason: Reason::MissingSpelling,
        at: POLICY,
        fields: &["resourceExpr"],
        cel: "has(self.resourceExpr) || has(self.resourcesExpr)",
        holds: |it| judge::has_any(it, &["resourceExpr", "resourcesExpr"]),
        message: Message::Fixed("resourceExpr is required"),
        help: "write expressions for limits or requests, by cpu and memory",
    },
    Rule {
        reason: Reason::EmptyResourceExpr,
        at: "spec.{containers,initContainers}[].resourcesPolicy.{resourceExpr,resourcesExpr}",
        fields: &[],
        cel: "(has(self.limits) && size(self.limits) > 0) || (has(self.requests) && size(self.requests) > 0)",
        holds: |it| judge::len(it, "limits") + judge::len(it, "requests") > 0,
        message: Message::Fixed("there is no expression"),
        help: "write one for limits or requests, by cpu and memory, or remove the resourcesPolicy",
    },
    Rule {
        reason: Reason::NotCpuOrMemory,
        at: "spec.{containers,initContainers}[].resourcesPolicy.{resourceExpr,resourcesExpr}.{limits,requests}",
        fields: &[],
        cel: "self.all(key, key in ['cpu', 'memory'])",
        holds: |it| judge::other_resources(it).is_empty(),
        message: Message::Naming {
            text: "only cpu and memory can be computed, not %s",
            found: "self.filter(key, !(key in ['cpu', 'memory']))",
            names: judge::other_resources,
        },
        help: "remove the key, other resources can be fixed in resources",
    },
    Rule {
        reason: Reason::InvalidTransferEnv,
        at: "spec.{containers,initContainers}[].transferEnv[]",
        fields: &["sourceContainerName", "sourceContainerNameFrom"],
        cel: "has(self.sourceContainerName) != has(self.sourceContainerNameFrom)",
        holds: |it| judge::has_one(it, &["sourceContainerName", "sourceContainerNameFrom"]),
        message: Message::Fixed("exactly one of sourceContainerName and sourceContainerNameFrom must be given"),
        help: "keep one of them",
    },
    Rule {
        reason: Reason::InvalidTransferEnv,
        at: "spec.{containers,initContainers}[].transferEnv[]",
        fields: &["envName"],
        cel: "has(self.envName) || (has(self.envNames) && size(self.envNames) > 0)",
        holds: |it| judge::has_all(it, &["envName"]) || judge::len(it, "envNames") > 0,
        message: Message::Fixed("no variable is named"),
        help: "give envName or envNames",
    },
    Rule {
        reason: Reason::InvalidTransferEnv,
        at: "spec.{containers,initContainers}[].transferEnv[].sourceContainerNameFrom.fieldRef",
        fields: &["fieldPath"],
        cel: r"self.fieldPath == 'metadata.name' || self.fieldPath.matches('^metadata[.](labels|annotations)\\[\'[^\']+\'\\]$')",
        holds: |it| judge::pod_field(judge::text(it, "fieldPath")).is_some(),
        message: Message::Fixed("the name of a container is found in no such field"),
        help: "use metadata.name, metadata.labels['KEY'] or metadata.annotations['KEY']",
    },
    Rule {
        reason: Reason::RevisionChoice,
        at: "spec.injectStrategy",
        fields: &["controllerRevision", "revision"],
        cel: "!(has(self.controllerRevision) && has(self.revision))",
        holds: |it| !judge::has_all(it, &["controllerRevision", "revision"]),
        message: Message::Fixed("controllerRevision (always) and revision (in proportion) exclude each other"),
        help: "keep one of them",
    },
    Rule {
        reason: Reason::RevisionChoice,
        at: "spec.injectionStrategy.revision",
        fields: &["revisionName", "customVersion"],
        cel: "has(self.revisionName) != has(self.customVersion)",
        holds: |it| judge::has_one(it, &["revisionName", "customVersion"]),
        message: Message::Fixed("exactly one of revisionName and customVersion must be given"),
        help: "keep one of them",
    },
    Rule {
        reason: Reason::InvalidNumber,
        at: "spec.updateStrategy.{partition,maxUnavailable,healthGate.maxUnhealthy}",
        fields: &[],
        cel: "type(self) == int ? int(self) >= 0 : string(self).matches('^([0-9]|[1-9][0-9]|100)%$')",
        holds: judge::is_number_of_pods,
        message: Message::Fixed("a number of pods is 0 or more, or a percentage from 0% to 100%"),
        help: "write it as 3 or as \"10%\"",
    },
    Rule {
        reason: Reason::InvalidPriority,
        at: "spec.updateStrategy.priorityStrategy",
        fields: &["weightPriority", "orderPriority"],
        cel: "!(has(self.weightPriority) && has(self.orderPriority))",
        holds: |it| !judge::has_all(it, &["weightPriority", "orderPriority"]),
        message: Message::Fixed("weightPriority and orderPriority exclude each other"),
        help: "keep one of them",
    },
];

pub(crate) use judge::pod_field;
