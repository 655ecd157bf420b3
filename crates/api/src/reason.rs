//! Why: every verdict, refusal and finding has one of these codes. A code keeps its meaning for ever.

use std::fmt::{self, Write as _};
use std::str::FromStr;

/// The hundreds codes are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// A SidecarSet is refused, or accepted with a warning.
    Spec,
    /// What was decided about a pod and a set that could be applied.
    Verdict,
    /// Why a set could not be applied to a pod; the set's failurePolicy says what follows.
    Refusal,
    /// How the update of running pods stands.
    Rollout,
    /// Agents in pods: their configurations, and what they were asked for.
    Agent,
    /// Autoscalers: what is wrong with them.
    Size,
}

impl Group {
    /// All groups, in the order of their codes.
    pub const ALL: [Self; 6] = [Self::Spec, Self::Verdict, Self::Refusal, Self::Rollout, Self::Agent, Self::Size];

    /// What the group is about.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Spec => "SidecarSets: what is refused or warned about",
            Self::Verdict => "Pods: what a set decided",
            Self::Refusal => "Pods: why a set could not be applied",
            Self::Rollout => "Rollouts: how the update of running pods stands",
            Self::Agent => "Agents in pods: their configurations, and hot updates",
            Self::Size => "VerticalPodAutoscalers: what is wrong, or has no effect",
        }
    }

    const fn hundred(self) -> u8 {
        match self {
            Self::Spec => b'1',
            Self::Verdict => b'2',
            Self::Refusal => b'3',
            Self::Rollout => b'4',
            Self::Agent => b'5',
            Self::Size => b'6',
        }
    }
}

macro_rules! reasons {
    ($($name:ident $code:literal $title:literal cause $cause:literal cure $cure:literal;)*) => {
        /// A reason code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $(#[doc = $title] $name,)*
        }

        impl Reason {
            /// Every code, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable text of the code, such as `PL101`.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// The name for machines that want words, such as a condition's reason: `NoContainers`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// What it means, in one sentence.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }

            /// How it comes about.
            pub const fn cause(self) -> &'static str {
                match self { $(Self::$name => $cause,)* }
            }

            /// What to do about it.
            pub const fn cure(self) -> &'static str {
                match self { $(Self::$name => $cure,)* }
            }
        }
    };
}

reasons! {
    SchemaViolation "PL101" "A field does not have the form the schema asks for."
        cause "A value is missing, has the wrong type, is not one of the allowed words, or is too long."
        cure "Write the field as `kubectl explain scs` shows it.";
    UnknownField "PL102" "A field is not part of the API."
        cause "The name is misspelt, or belongs to another version. The API server would drop it."
        cure "Correct the name or remove the field.";
    BothSpellings "PL103" "Both spellings of one field are given."
        cause "Some fields have two names, ours and OpenKruise's. Only one of them may be given."
        cure "Keep one of the two fields.";
    MissingSpelling "PL104" "A required field is given in neither spelling."
        cause "The field has two names and exactly one of them must be given."
        cure "Give the field, in the spelling you prefer.";
    NotSupported "PL105" "A feature of OpenKruise is not supported."
        cause "Hot upgrades, canary and base sets and v1beta1 fields are refused, so that nothing is dropped silently."
        cure "Remove the field or annotation; the message names what to use instead.";
    EmptySelector "PL106" "A selector requires nothing."
        cause "An empty selector would select everything or nothing, depending on who reads it."
        cure "Name at least one label. To mean all namespaces, leave the namespaceSelector out.";
    InvalidSelector "PL107" "A selector cannot be read."
        cause "In and NotIn need values, Exists and DoesNotExist take none, and keys and values must be label syntax."
        cure "Correct the requirement the message names.";
    NamespaceAndSelector "PL108" "A namespace and a namespaceSelector are both given."
        cause "Each says which namespaces are meant; together they may disagree."
        cure "Keep one of the two. A namespace has the label kubernetes.io/metadata.name.";
    NoContainers "PL109" "The set adds no container."
        cause "Neither containers nor initContainers has an entry."
        cure "Add a container or an init container.";
    DuplicateName "PL110" "Two parts of the set have the same name."
        cause "Containers and init containers share one space of names; so do volumes, and annotation keys."
        cure "Rename one of the two.";
    ResourcesPolicyBesideResources "PL111" "Fixed and computed resources are both given."
        cause "A container has a resourcesPolicy beside resources.limits or resources.requests."
        cure "Keep the resourcesPolicy or the fixed limits and requests. Claims may stay.";
    ResourcesPolicyOnPlainInit "PL112" "A plain init container has a resourcesPolicy."
        cause "Only containers, and init containers with restartPolicy Always, can have computed resources."
        cure "Give the init container restartPolicy Always, or fixed resources.";
    NotCpuOrMemory "PL113" "An expression is for a resource that cannot be computed."
        cause "Expressions exist for cpu and memory only."
        cure "Remove the key; other resources must be fixed in resources.";
    EmptyResourceExpr "PL114" "A resourcesPolicy has no expression."
        cause "Neither limits nor requests has an entry."
        cure "Write at least one expression, or remove the resourcesPolicy.";
    InvalidExpression "PL115" "An expression cannot be used."
        cause "It cannot be read, mixes resources, divides by zero, or is negative for every pod."
        cure "Correct the part under the caret; `pillion expr` shows what an expression gives.";
    InvalidPattern "PL116" "A regular expression cannot be used."
        cause "It does not compile, is too long, or would need too much memory."
        cure "Correct the pattern; look-around and back-references do not exist in this syntax.";
    RevisionChoice "PL117" "It is not clear which revision is meant."
        cause "Exactly one way to name the pinned revision must be given."
        cure "Keep one of the fields the message names.";
    InvalidNumber "PL118" "A number of pods is neither a whole number nor a percentage."
        cause "`partition` and maxUnavailable take 0 and above, or 0% to 100%."
        cure "Write a number such as 3, or a percentage such as \"10%\".";
    InvalidPriority "PL119" "Two orders of update are given."
        cause "`weightPriority` and orderPriority exclude each other."
        cure "Keep one of the two.";
    InvalidTransferEnv "PL120" "A transferEnv entry does not say what to copy from where."
        cause "It needs exactly one source and at least one variable; a source field must hold a name."
        cure "Give sourceContainerName or sourceContainerNameFrom, and envName or envNames.";
    InvalidMetadata "PL121" "A label or annotation for pods cannot be written."
        cause "The key or value is not valid in Kubernetes, or a MergePatchJson value is no JSON object."
        cure "Correct the key or value the message names.";
    UnknownVolume "PL122" "An appVolumeMounts entry names no volume of the set."
        cause "Only volumes of the set can be mounted into the pod's own containers."
        cure "Add the volume to spec.volumes, or correct the name.";
    InvalidContainer "PL123" "A container or volume is not one Kubernetes would take."
        cause "A field of Kubernetes' own container or volume has a wrong type or value."
        cure "Correct the field; it is written as in a pod.";
    InvalidName "PL124" "The name of the set cannot be used."
        cause "The name becomes the value of a label, so it has at most 63 characters and no dot."
        cure "Choose a name of lower-case letters, digits and dashes.";
    ReservedKey "PL125" "A label or annotation is reserved."
        cause "Keys of pillion.dev and kruise.io on pods are our own records."
        cure "Use another key.";
    SidecarMarkOnPlainInit "PL126" "A plain init container is marked as a sidecar."
        cause "A plain init container ends before the others start; there is nothing to end with."
        cure "Remove `sidecar`, or give the init container restartPolicy Always.";
    SidecarRestartPolicy "PL127" "A container marked as a sidecar has restart rules of its own."
        cause "A marked container runs until all others have ended, so it can have no restartPolicy but Always, and no restartPolicyRules."
        cure "Remove the restartPolicy or the restartPolicyRules, or remove `sidecar`.";
    ConflictsWithSet "PL128" "Two SidecarSets conflict in every pod that one of them selects."
        cause "One SidecarSet selects every pod that the other selects, and both add different things of the same name. Only the first in the order of names can be applied."
        cure "Rename what the message names in one of the SidecarSets, or make their selectors exclude each other.";
    PossiblyNegative "PL151" "An expression is negative for some pods."
        cause "For the amounts the message names the result is below zero; such pods are refused."
        cure "Give it a floor, such as max(…, 10m), unless no pod has such an amount.";
    ForeignVolume "PL152" "A container mounts a volume that is not of the set."
        cause "The volume must then be one of the pod's own; pods without it are refused by the API server."
        cure "Add the volume to spec.volumes, or make sure that every selected pod has it.";
    UnusedVolume "PL153" "A volume of the set is mounted by nothing."
        cause "No container of the set and no appVolumeMounts entry names it, so it is not added to pods."
        cure "Mount it or remove it.";
    NeverUpdates "PL154" "Running pods will never be updated."
        cause "`maxUnavailable` is 0, so no pod may be unavailable, not even one that is updated."
        cure "Set maxUnavailable to 1 or more, or type to NotUpdate if that is meant.";
    ExcludedNamespace "PL155" "The set selects pods that are never changed."
        cause "Its namespace is kube-system, which is left alone so that a cluster can always start."
        cure "Choose another namespace.";
    PossiblyAboveLimit "PL156" "A computed request is above the computed limit for some pods."
        cause "The two expressions cross: for the amounts the message names, the request gives more than the limit."
        cure "Make the request expression at most the limit expression, as in min(…, LIMIT).";
    PossiblyZeroLimit "PL157" "A computed limit is 0 for some pods."
        cause "A node reads a limit of 0 as no limit, so pods with the amounts the message names are refused."
        cure "Give the expression a floor above 0, such as max(…, 10m).";
    DeadSelector "PL158" "A selector matches nothing, whatever the labels."
        cause "Its requirements on one label exclude each other, such as In and NotIn with the same values."
        cure "Remove one of the requirements on the label the message names.";
    NoRequest "PL159" "A container has no request for cpu or memory."
        cause "An autoscaler on utilisation cannot work where a container has no request; a ResourceQuota on the resource refuses its pods."
        cure "Give the container requests, or a resourcesPolicy.";
    MayClashWithSet "PL160" "Two sets may give one pod different things of the same name."
        cause "Some pod can match both sets. The set first in the order of names is applied, the other is refused (PL313)."
        cure "Rename what the message names in one of the sets, or make their selectors exclude each other.";
    WrapWithoutCommand "PL161" "A sidecar that the agent is to run has no command."
        cause "In mode Wrap the agent runs the container's command, and what an image runs by itself is not known at admission. Its pods are refused unless they choose mode Native."
        cure "Give the container the entrypoint of its image as command, or set finish.mode to Native.";

    Injected "PL201" "The set was applied to the pod."
        cause "Its selectors matched and nothing stood against it."
        cure "Nothing to do.";
    SelectorMismatch "PL202" "The pod does not have the labels the set asks for."
        cause "A requirement of spec.selector does not hold; the message names it."
        cure "Label the pod's template, or change the selector.";
    NamespaceMismatch "PL203" "The pod's namespace is not one the set asks for."
        cause "`spec.namespace` or spec.namespaceSelector does not match the namespace."
        cure "Label the namespace, or change the set.";
    InjectionPaused "PL204" "Injection of the set is paused."
        cause "The set's strategy for new pods says paused: true."
        cure "Set paused to false; then create the pod again.";
    OptedOut "PL205" "The pod left the set out."
        cause "Its annotation pillion.dev/skip names the set, which has allowOptOut: true."
        cure "Remove the annotation from the pod's template if the sidecar is wanted.";
    OptOutNotAllowed "PL206" "The pod asked to leave the set out and got it all the same."
        cause "Its annotation pillion.dev/skip names a set without allowOptOut: true."
        cure "Set allowOptOut on the set, or remove the annotation.";
    Observed "PL207" "The set would have been applied, but only observes."
        cause "The set, or the whole installation, has mode: Observe."
        cure "Set mode to Inject when what it reports is what you want.";
    AlreadyInjected "PL208" "The pod already has what the set adds."
        cause "The pod was seen before, or is a copy of an injected pod."
        cure "Nothing to do.";
    NamespaceExcluded "PL209" "Pods of this namespace are never changed."
        cause "`kube-system` and the product's own namespace are left alone, so that a cluster can always start."
        cure "Run the pod in another namespace.";
    SwitchedOff "PL210" "Injection is switched off for the whole installation."
        cause "Someone ran `pillion off`, or the feature gate PodWebhook is off."
        cure "Switch it on again; pods created meanwhile must be created again.";
    MirrorPod "PL211" "The pod is a static pod's mirror."
        cause "A mirror pod only shows what a node runs from its own files; changing it changes nothing."
        cure "Put the sidecar into the static pod's file.";
    SetInvalid "PL212" "The set cannot be used because it has errors."
        cause "It was stored by another version, or past the webhook."
        cure "Run `pillion lint` on the set and mend what it names.";
    CreatedUnseen "PL213" "The pod was created while the webhook could not be reached."
        cause "The registration fails open unless the namespace is labelled pillion.dev/injection: required."
        cure "Create the pod again; `pillion check` says whether the webhook is well.";
    EndsAsNative "PL214" "The sidecar is a native one, which the node ends after all others."
        cause "It is marked as a sidecar, and became an init container with restartPolicy Always, or was one."
        cure "Nothing to do. The others wait until it has started.";
    EndsByAgent "PL215" "The sidecar is ended by the agent when all others have ended."
        cause "It is marked as a sidecar with mode Wrap, and the agent in the pod runs its command."
        cure "Nothing to do.";
    EndsNever "PL216" "The sidecar is left as it is, because the pod never ends by itself."
        cause "It is marked as a sidecar with mode Wrap, and the pod has restartPolicy Always."
        cure "Nothing to do; in a pod that ends, set restartPolicy to Never or OnFailure.";
    ContainerReplaced "PL217" "A container that claimed to be injected was replaced."
        cause "The pod was created with a container and the marks of an injected pod, but the container is not what the named revision of the set gives."
        cure "Create the pod without the container; a copy of an older pod gets the revision that a new pod gets.";

    NegativeResult "PL301" "A computed amount is negative."
        cause "The expression gives less than zero for the pod's containers; the message shows the arithmetic."
        cure "Give the expression a floor, such as max(…, 10m), or change the pod's resources.";
    NoTarget "PL302" "No container of the pod is a target."
        cause "No name matches targetContainersNameRegex, of a resourcesPolicy or of appVolumeMounts."
        cure "Change the pattern, or select other pods.";
    RequestAboveLimit "PL303" "A computed request is above the computed limit."
        cause "The two expressions cross for this pod; the message shows both amounts."
        cure "Make the request expression at most the limit expression.";
    ZeroLimit "PL304" "A computed limit is 0, which a node reads as no limit."
        cause "The expression gives exactly zero for the pod's containers."
        cure "Give the expression a floor, such as max(…, 10m).";
    AmountOutOfRange "PL305" "A computed amount is too large for Kubernetes."
        cause "The expression, or the sum of the pod's containers, is above 2^63 - 1 units."
        cure "Correct the expression or the pod's resources.";
    ContainerClash "PL306" "The pod has a container of the same name."
        cause "A container of the pod, plain or init, has the name of one of the set's."
        cure "Rename one of the two; an app container is never overwritten.";
    VolumeClash "PL307" "The pod has another volume of the same name."
        cause "A volume of the pod has the name of one of the set's, and other content."
        cure "Rename one of the two.";
    MountClash "PL308" "A mount path is taken."
        cause "`appVolumeMounts` would mount over something a container of the pod has mounted."
        cure "Choose another path, or a narrower pattern of containers.";
    ServiceAccountClash "PL309" "The pod has a service account of its own."
        cause "The set gives a serviceAccountName, which replaces only `default`."
        cure "Give that account what the sidecar needs, or leave the pod out of the set.";
    ProcessNamespaceClash "PL310" "The pod does not share its process namespace, and says so."
        cause "The set asks for shareProcessNamespace, the pod has false or uses the node's processes."
        cure "Remove the field from the pod, or leave the pod out of the set.";
    LabelClash "PL311" "The pod has a label of the set with another value."
        cause "Labels decide who selects a pod, so the pod's own are never overwritten."
        cure "Remove the label from the pod's template or from the set.";
    MergeNotJson "PL312" "An annotation of the pod cannot be merged because it is not JSON."
        cause "The policy is MergePatchJson and the pod's value is no JSON."
        cure "Correct the pod's annotation, or use Overwrite or Retain.";
    SetsClash "PL313" "Two sets add something of the same name to the pod."
        cause "Both sets match and have a container, volume or label of one name; the first in the order of names wins."
        cure "Rename it in one of the sets, or narrow a selector.";
    RevisionMissing "PL314" "The pinned revision does not exist."
        cause "The revision the set names was deleted, or never was."
        cure "Name one that `pillion rollout history` lists, or remove the pin.";
    RevisionOfAnotherSet "PL315" "The pinned revision belongs to another set."
        cause "The revision the set names was not made from this set."
        cure "Name one that `pillion rollout history` lists for this set.";
    UnreadablePod "PL316" "Something in the pod cannot be read."
        cause "A quantity or field of a target container is not what Kubernetes would take."
        cure "Correct the field the message names.";
    VolumeMissing "PL317" "A volume that a sidecar mounts is nowhere."
        cause "The set does not have the volume, and neither does the pod; the API server would refuse the pod."
        cure "Add the volume to spec.volumes of the set, or to the pod.";
    UnknownSidecar "PL318" "The pod names a sidecar that it does not have."
        cause "The annotation pillion.dev/sidecars names a container that is not there, or is a plain init container."
        cure "Correct the annotation on the pod's template; the message lists the containers.";
    OnlySidecars "PL319" "All containers of the pod are sidecars."
        cause "Sidecars end when all others have ended, so one container must be no sidecar."
        cure "Leave the mark off the container that does the work.";
    OwnRestartRules "PL320" "A container has restart rules of its own, which do not go with how sidecars are ended."
        cause "Its restartPolicy or restartPolicyRules say when it starts again, and so does the way sidecars are ended."
        cure "Remove them from the container the message names, or its mark.";
    OwnerNamesContainers "PL321" "The owner of the pod updates the sidecar by its place in the pod."
        cause "A CloneSet changes images of its running pods among containers, and would not find one that became an init container."
        cure "Write it as an init container with restartPolicy Always in the CloneSet itself.";
    CommandMissing "PL322" "The agent cannot run a container that has no command."
        cause "In mode Wrap the agent runs the command of sidecars and of the others; what an image runs by itself is not known at admission."
        cure "Give the container the entrypoint of its image as command, as the message shows, or use mode Native.";
    AgentNotSet "PL323" "The installation has no image of the agent."
        cause "Mode Wrap copies the agent into the pod, and the manager was started without --agent-image."
        cure "Set agent.image in the chart's values, or use mode Native.";
    FinishClash "PL324" "What the agent needs in the pod is taken."
        cause "A container, volume, mount or variable of the pod has the name or place of one the agent needs."
        cure "Rename the one the message names, or use mode Native.";
    UnknownFinish "PL325" "The pod asks for a way to end sidecars that does not exist."
        cause "The annotation pillion.dev/finish-mode or pillion.dev/finish-watch has an unknown value."
        cure "Write one of the words the message names.";
    PodResourcesExceeded "PL326" "The sidecars exceed the pod's own spec.resources."
        cause "The pod bounds all of its containers together; with the sidecars they request more, or one has a higher limit."
        cure "Raise spec.resources in the pod template to the amount in the message, or lower the resources of the sidecars.";
    LowersPodSecurity "PL351" "What the set adds lowers the pod's Pod Security level."
        cause "An added container or volume asks for more than the restricted or baseline profile allows."
        cure "Tighten the container's securityContext, or accept it knowingly.";
    EnvNotFound "PL352" "A variable to copy was not found."
        cause "The source container of transferEnv does not exist or does not have the variable."
        cure "Correct the names, or set the variable in the sidecar itself.";
    RecordTruncated "PL353" "The record of decisions on the pod is shortened."
        cause "So many sets matched that the record would be above its cap."
        cure "Use `pillion why`, which evaluates again.";
    LedgerUnavailable "PL354" "The pod got the pinned revision because the proportion could not be counted."
        cause "The ledger of the set was not there yet, or could not be written within half a second."
        cure "Nothing to do where it is rare; else see that a controller leads and that the API server answers.";
    MarkImageIgnored "PL355" "The image of a mark of OpenKruise is not used."
        cause "The container has the variable KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE. It is ended as any sidecar, and keeps its image."
        cure "Nothing to do; the variable may be removed.";
    FinishSwitchedOff "PL356" "The sidecar will not end with the others, because finishing is switched off."
        cause "The container has sidecar: true, and the feature gate SidecarFinish is off."
        cure "Start the manager with --feature-gates=SidecarFinish=true (featureGates in the chart's values).";

    UpToDate "PL401" "All pods have the newest revision."
        cause "Nothing is left to be updated."
        cure "Nothing to do.";
    Progressing "PL402" "Pods are being updated."
        cause "The set changed and running pods follow, a few at a time."
        cure "Nothing to do; `pillion rollout status` shows how far it is.";
    UpdatePaused "PL403" "The update is paused."
        cause "`updateStrategy.paused` is true."
        cure "Set paused to false.";
    UpdateSwitchedOff "PL404" "Running pods are not updated."
        cause "`updateStrategy.type` is NotUpdate."
        cure "Set the type to RollingUpdate, or create pods again.";
    ProbeUnfinished "PL405" "The first updated pod is not done yet."
        cause "Every rollout begins with one pod; the others follow when that one is running and ready."
        cure "Look at that pod: the image may not be pullable, or its probe fails.";
    BudgetSpent "PL406" "As many pods are unavailable as may be."
        cause "`maxUnavailable`, over the set or per workload, is reached."
        cure "Mend the unavailable pods, or raise maxUnavailable.";
    DisruptionBudget "PL407" "A PodDisruptionBudget holds the update."
        cause "Updating one more pod would go below the budget of its workload."
        cure "Wait until the workload is healthy, or change the budget.";
    NeedsRecreate "PL408" "Pods follow only when they are created again."
        cause "The change is more than an image or resources, which cannot be made in a running pod."
        cure "Restart the workloads the message names when it suits them.";
    HealthGate "PL409" "The update stopped because updated pods are not well."
        cause "Updated pods crash or stay unready."
        cure "Correct the set, or go back with `pillion rollout undo`.";
    Missed "PL410" "Pods that should carry the sidecars do not."
        cause "They were created after the set, while the webhook could not be reached or was off."
        cure "Restart them, or switch recreation on.";
    Predates "PL411" "Pods are older than the set and carry no sidecars of it."
        cause "Sidecars are added when a pod is created."
        cure "Restart them when it suits them.";
    FailOpen "PL412" "The webhook fails open."
        cause "Where the webhook cannot be reached, pods are created without sidecars, unless the namespace asks otherwise."
        cure "Label namespaces pillion.dev/injection: required where a pod must not start without its sidecar.";
    PartitionKeeps "PL413" "Pods stay at their revision because of the partition."
        cause "`updateStrategy.partition` says how many, and so many are left."
        cure "Lower the partition when the updated pods are well.";
    OutsideUpdateSelector "PL414" "Pods stay at their revision because they are not selected for the update."
        cause "`updateStrategy.selector` does not match their labels."
        cure "Remove the selector, or label the pods.";
    JustUpdated "PL415" "Pods that were updated a moment ago, or do not run yet what they were given, are left alone."
        cause "A container that is changed back and forth within seconds is held back by its node."
        cure "Nothing to do; they follow when they are done, or at the latest after a minute.";
    ImageUnavailable "PL416" "An image cannot be pulled."
        cause "The image does not exist, its registry cannot be reached, or the pod may not pull it."
        cure "Correct the image in the set, or mend the registry or the pull secret; the pods follow by themselves.";
    ContainerFails "PL417" "A container of an updated pod does not start, or crashes."
        cause "Its node cannot make it from what the set says, or it ends again and again."
        cure "Look at the container's log and at the events of the pod the message names; then correct the set.";
    UpdateUnready "PL418" "Updated pods do not become ready."
        cause "A container runs with its new image, but its probe fails, or its old one does not end."
        cure "Look at the container the message names; its probe may not fit the new image.";
    GateRollback "PL419" "Pods that were not well got the revision back that they had."
        cause "So many updated pods were not well that the health gate closed, and it has rollback: true."
        cure "Correct the set. The newest revision is not tried again while a pod remembers that it failed.";
    UpdateRefused "PL420" "The API server refuses to update pods."
        cause "A policy or a webhook of the cluster, or the rights of the controller, do not allow the write the message names."
        cure "Allow it, or ask whoever owns the policy.";

    AgentConfigMissing "PL501" "The configuration of an agent does not exist."
        cause "The `serviceAccountName` of a set is `pillion-agent-` and the name of a configuration, and there is no ConfigMap of that name with label `pillion.dev/agent-config=true` and key `config.yaml` in Pillion's namespace."
        cure "Apply what `pillion agent sidecarset config.yaml` prints. What namespaces have of an earlier configuration stays as it is.";
    AgentConfigInvalid "PL502" "The configuration of an agent cannot be used."
        cause "It is no configuration, it asks for something no fence allows, or its name is one that Pillion needs itself."
        cure "Correct what the message names; `pillion agent lint config.yaml` shows it in place. Until then the last good configuration stays in all namespaces.";
    AgentTargetNotAllowed "PL503" "The configuration of an agent writes to an object that the installation does not allow."
        cause "A `target` with its `jsonPath` is not in the chart's `agent.targets`, so the controller has no right to give."
        cure "Add group, version, resource and pointer to `agent.targets`, or remove the target. Until then the last good configuration stays in all namespaces.";
    AgentObjectTaken "PL504" "A namespace has a ConfigMap of its own with the name of a configuration."
        cause "It lacks label `pillion.dev/agent-config=true`, so it is not Pillion's to overwrite."
        cure "Rename it, or give the configuration another name; pods of the namespace have no agent's configuration until then.";
    AgentWriteRefused "PL505" "The API server refuses what an agent's set needs in a namespace."
        cause "A policy, a quota or a webhook of the cluster, or the rights of the controller, do not allow the write the message names."
        cure "Allow it, or ask whoever owns the policy. It is tried again every few seconds.";
    HotUpdateDone "PL511" "All pods of the workload have the version."
        cause "The agent of each has said so."
        cure "Nothing to do.";
    HotUpdateProgressing "PL512" "Pods of the workload are being told, a few at a time."
        cause "`maxInFlight` of them are at it; the next ones follow when they are done."
        cure "Nothing to do; if it stays so, look at the pods the message names.";
    HotUpdateFailed "PL513" "A pod could not load the version, and no further one is told."
        cause "Its agent said why; the pod has what it had before."
        cure "Correct the file and give it a new version, or ask for the old one. New pods wait for the version and are not ready until then.";
    HotUpdateNoPods "PL514" "The workload has no pod with an agent."
        cause "No pod of the workload carries a set whose `serviceAccountName` begins with `pillion-agent-`."
        cure "Apply what `pillion agent sidecarset` prints, and have the pods created again; new ones get the version by themselves.";
    HotUpdateSuperseded "PL515" "Another record of the same workload is newer."
        cause "Two HotUpdates name the workload; the one that was created last holds."
        cure "Delete the older one.";

    AutoscalerInvalid "PL601" "A field of a VerticalPodAutoscaler cannot be meant."
        cause "Upstream's webhook refuses such an object. Pillion has no webhook for it: the field is left out, or the object is not used, and its condition ConfigUnsupported says so."
        cure "Correct the field the message names; `pillion lint` shows it in place.";
    AutoscalerFieldIgnored "PL602" "A field of a VerticalPodAutoscaler has no effect."
        cause "The field is one of upstream's gate PerVPAConfig, which is not served for one object, or another field says the same."
        cure "Remove it; for all objects, use the flag of the rightsizer that the message names.";
    AutoscalerModeDeprecated "PL603" "A mode of a VerticalPodAutoscaler is deprecated."
        cause "`Auto` means Recreate, here and upstream, and will be removed."
        cure "Write Recreate, or InPlaceOrRecreate to have pods resized without an eviction.";
}

impl Reason {
    /// The hundred it belongs to.
    pub fn group(self) -> Group {
        let hundred = self.code().as_bytes()[2];
        Group::ALL.into_iter().find(|group| group.hundred() == hundred).unwrap_or(Group::Spec)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.code())
    }
}

/// A text that is no reason code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown reason code {0:?}: docs/reason-codes.md lists them")]
pub struct UnknownReason(pub String);

impl FromStr for Reason {
    type Err = UnknownReason;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.iter().copied().find(|reason| reason.code() == text).ok_or_else(|| UnknownReason(text.to_owned()))
    }
}

/// The page of all codes, in Markdown.
pub fn reason_codes_page() -> String {
    let mut page = "# Reason codes\n\n\
         Every verdict, refusal and finding carries one of these codes. A code keeps its meaning for ever; its words may\n\
         improve. `cargo xtask codegen` writes this page from `crates/api`.\n"
        .to_owned();
    for group in Group::ALL {
        // Writing to a String cannot fail.
        let _ = write!(page, "\n## {}\n", group.title());
        for reason in Reason::ALL.iter().filter(|reason| reason.group() == group) {
            let _ = write!(
                page,
                "\n### {} {}\n\n{}\n\n- *Cause*: {}\n- *Cure*: {}\n",
                reason.code(),
                reason.name(),
                reason.title(),
                reason.cause(),
                reason.cure()
            );
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_unique_in_order_and_of_a_group() {
        let codes: Vec<&str> = Reason::ALL.iter().map(|reason| reason.code()).collect();
        let sorted: BTreeSet<&str> = codes.iter().copied().collect();
        assert_eq!(codes, sorted.into_iter().collect::<Vec<_>>());
        for reason in Reason::ALL {
            let code = reason.code();
            assert_eq!((code.len(), &code[..2]), (5, "PL"), "{code}");
            assert_eq!(reason.group().hundred(), code.as_bytes()[2], "{code}");
            assert_eq!(code.parse(), Ok(*reason));
        }
        assert_eq!("PL000".parse::<Reason>(), Err(UnknownReason("PL000".to_owned())));
    }

    #[test]
    fn every_code_is_documented_in_sentences() {
        let page = reason_codes_page();
        for reason in Reason::ALL {
            assert!(page.contains(&format!("### {} {}\n", reason.code(), reason.name())), "{reason}");
            for text in [reason.title(), reason.cause(), reason.cure()] {
                assert!(text.len() >= 14 && text.ends_with('.'), "{reason}: {text:?}");
                assert!(text.starts_with(|c: char| c.is_uppercase() || c == '`'), "{reason}: {text:?}");
            }
        }
    }
}
