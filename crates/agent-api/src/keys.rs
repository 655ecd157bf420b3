//! Every key of a configuration: what it holds, what stands in for it, what it means. The reader takes names, bounds,
//! choices and defaults from here, and so does the reference for people.

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// As the reference writes it; a configuration may use any letter case.
    pub name: &'static str,
    /// Other spellings.
    pub also: &'static [&'static str],
    /// What it holds.
    pub holds: Holds,
    /// What stands in for it.
    pub need: Need,
    /// What it means, for people.
    pub meaning: &'static str,
}

/// What a key holds.
#[derive(Clone, Copy, Debug)]
pub enum Holds {
    /// A text, in which variables are replaced.
    Text,
    /// A text that must be written out: what agents may do follows from it before there is any pod.
    FixedText,
    /// A whole number, from one to another.
    Number(i64, i64),
    /// `true` or `false`.
    Switch,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// An amount such as `100m`, `128Mi` or 1.
    Amount,
    /// Texts by keys that the author chooses.
    Texts,
    /// A list of texts.
    ListOfTexts,
    /// These keys.
    Object(&'static [Key]),
    /// A list of objects with these keys.
    List(&'static [Key]),
    /// A list of objects with these keys; a text stands for an object with the first of them.
    ListOrTexts(&'static [Key]),
    /// The keys of the plugin that is named.
    Plugin,
    /// The boot order of the plugin around it, where the proposal prints it too.
    BootOrder,
    /// Nothing; and why not.
    Refused(&'static str),
}

/// What stands in for a key that is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It must be given.
    Required,
    /// Nothing.
    Optional,
    /// This.
    Default(&'static str),
}

use Holds::{
    Amount, BootOrder, FixedText, List, ListOfTexts, ListOrTexts, Number, Object, OneOf, Plugin, Refused, Switch, Text,
    Texts,
};
use Need::{Default, Optional, Required};

const DAY: i64 = 86_400;

const fn key(name: &'static str, holds: Holds, need: Need, meaning: &'static str) -> Key {
    Key { name, also: &[], holds, need, meaning }
}

const fn boot_order_too(meaning: &'static str) -> Key {
    key("bootOrder", BootOrder, Optional, meaning)
}

/// The keys of a configuration.
pub const CONFIG: &[Key] = &[
    key("plugins", List(PLUGIN), Required, "The parts of the agent that run. Each plugin may be named once."),
    key("restartPolicy", OneOf(&["Always"]), Default("Always"), "How the agent's container is restarted."),
    key("resources", Object(RESOURCES), Optional, "What the agent's container asks for and may use at most."),
    key(
        "sidecarStartOrder",
        OneOf(&["Before", "After"]),
        Default("Before"),
        "`Before`: the agent starts before the app, as a native sidecar. `After`: it is a container beside the app.",
    ),
    key(
        "metricsPort",
        Number(1, 65_535),
        Optional,
        "The port that shows metrics, at `/metrics`. Without it the agent opens none. Needed where `metricName` is given.",
    ),
];

/// Below `resources`.
pub const RESOURCES: &[Key] = &[
    key("CPU", Amount, Optional, "Of a processor. The agent itself needs `5m`."),
    key("Memory", Amount, Optional, "Bytes. The agent itself needs `16Mi`."),
];

/// One of `plugins`.
pub const PLUGIN: &[Key] = &[
    key("name", OneOf(&["http_probe", "pod_probe", "hot_update"]), Required, "Which plugin."),
    key(
        "bootOrder",
        Number(-1_000, 1_000),
        Default("0"),
        "Plugins with a lower number start first; those with the same in the order of the text.",
    ),
    key("config", Plugin, Optional, "What the plugin is told: its keys are below."),
    key(
        "binary",
        Refused("plugins are built into the agent; it starts no program that a configuration names"),
        Optional,
        "",
    ),
];

const REASSERT: Key = key(
    "reassertSeconds",
    Number(5, DAY),
    Default("60"),
    "How often the pod is looked at, to set again what another writer has overwritten.",
);

/// `config` of the plugin `http_probe`.
pub const HTTP_PROBE: &[Key] = &[
    key("startDelaySeconds", Number(0, DAY), Default("30"), "Before the first question."),
    key("probeIntervalSeconds", Number(1, DAY), Default("5"), "Between two questions."),
    REASSERT,
    key("endpoints", List(ENDPOINT), Required, "Whom to ask; at least one."),
    boot_order_too("The `bootOrder` of the plugin, where the proposal writes it."),
];

/// One of `endpoints`.
pub const ENDPOINT: &[Key] = &[
    key(
        "url",
        Text,
        Required,
        "`http://host[:port]/path`, or `tcp://host:port` for whether a port takes connections; the state is then `open`.",
    ),
    key("method", OneOf(&["GET", "HEAD", "POST"]), Default("GET"), "How it is asked."),
    key("headers", Texts, Optional, "Headers of the request."),
    key("timeout", Number(1, 3_600), Default("10"), "Seconds for the whole question."),
    key("expectedStatusCode", Number(100, 599), Default("200"), "The answer that is a success."),
    key(
        "successThreshold",
        Number(1, 1_000),
        Default("1"),
        "So many answers with the same state in a row make it count.",
    ),
    key("failureThreshold", Number(1, 1_000), Default("3"), "So many failures in a row make `failureState` the state."),
    key("failureState", Text, Default("unknown"), "The state that failures make."),
    key("jsonPathConfig", Object(JSON_PATH), Optional, "Where in a JSON body the state is; the whole body without it."),
    key("storageConfig", Object(STORAGE), Required, "Where the state is told."),
    boot_order_too("The `bootOrder` of the plugin, where the proposal prints it."),
];

/// `jsonPathConfig`.
pub const JSON_PATH: &[Key] = &[
    key(
        "jsonPath",
        Text,
        Required,
        "Keys and positions with dots between them, as `players.0.state`; a leading `$.` is allowed, `\\.` is a dot in a key.",
    ),
    key(
        "fieldType",
        OneOf(&["string", "int", "float"]),
        Default("string"),
        "Taken for the sake of older configurations: texts, numbers, true and false are states as they are written.",
    ),
];

/// `storageConfig`.
pub const STORAGE: &[Key] = &[
    key("type", OneOf(&["InKube", "HTTPMetric"]), Optional, "Says again which of the two is given. Both may be."),
    key("inKube", Object(IN_KUBE), Optional, "Marks on the pod, and a field of another object."),
    key("httpMetric", Object(HTTP_METRIC), Optional, "A gauge, at `metricsPort`."),
];

/// `inKube`. These may also stand beside it, as the proposal prints them.
pub const IN_KUBE: &[Key] = &[
    key("annotationKey", FixedText, Optional, "The annotation of the pod that holds the state."),
    key("labelKey", FixedText, Optional, "The label of the pod that holds the state, where it is a valid value."),
    key(
        "conditionType",
        FixedText,
        Optional,
        "The condition of the pod: `True` after a success, `False` after failures, with the state as its message.",
    ),
    key(
        "target",
        Object(TARGET),
        Optional,
        "Another object of the pod's name, with `jsonPath`. One in a configuration.",
    ),
    key(
        "jsonPath",
        FixedText,
        Optional,
        "The field of the target, as a JSON pointer such as `/spec/opsState`. What is written is the `value` of the \
         state's policy: a state is not a value.",
    ),
    Key {
        name: "markerPolicies",
        also: &["markerPolices", "markerPolicy"],
        holds: List(MARKER_POLICY),
        need: Optional,
        meaning: "What else is set in a state. Keys that only other states list are removed.",
    },
];

/// `target`.
pub const TARGET: &[Key] = &[
    key("group", FixedText, Default(""), "Its API group."),
    key("version", FixedText, Required, "Its version, such as `v1alpha1`."),
    key("resource", FixedText, Required, "Its plural, such as `gameservers`."),
    key("namespace", Text, Default("${SELF:POD_NAMESPACE}"), "The pod's own; nothing else is allowed."),
    key("name", Text, Default("${SELF:POD_NAME}"), "The pod's own; nothing else is allowed."),
    key("podOwner", Refused("an agent writes only to an object of its pod's name"), Optional, ""),
];

/// One of `markerPolicies`.
pub const MARKER_POLICY: &[Key] = &[
    key("state", Text, Optional, "The state it is for, without blanks around it."),
    key("default", Switch, Default("false"), "For every state that has no policy of its own, instead of `state`."),
    key("labels", Texts, Optional, "Labels of the pod."),
    key("annotations", Texts, Optional, "Annotations of the pod."),
    key(
        "value",
        FixedText,
        Optional,
        "What is written at `jsonPath` of the target. Without it nothing is, in this state.",
    ),
];

/// `httpMetric`.
pub const HTTP_METRIC: &[Key] =
    &[key("metricName", FixedText, Required, "The gauge that shows the state, where it is a number.")];

/// `config` of the plugin `pod_probe`.
pub const POD_PROBE: &[Key] = &[REASSERT, boot_order_too("The `bootOrder` of the plugin.")];

/// `config` of the plugin `hot_update`.
pub const HOT_UPDATE: &[Key] = &[
    key("fileDir", FixedText, Required, "The folder that agent and app share."),
    key("fileName", FixedText, Optional, "The name of the file in it; the last part of the URL without it."),
    key("loadPatchType", OneOf(&["signal", "request"]), Required, "How the app is told of a new file."),
    key("signal", Object(SIGNAL), Optional, "For `loadPatchType: signal`."),
    key("request", Object(REQUEST), Optional, "For `loadPatchType: request`."),
    key(
        "check",
        Object(CHECK),
        Optional,
        "How it is seen that the app has loaded the file. Without it that is not verified.",
    ),
    key(
        "trigger",
        Object(TRIGGER),
        Optional,
        "Where the wanted version is told; the pod's annotation `pillion.dev/hot-update` without it.",
    ),
    key("listener", Object(LISTENER), Optional, "A port that takes requests; none without it."),
    Key {
        name: "allowedSources",
        also: &["sources"],
        holds: ListOrTexts(SOURCE),
        need: Optional,
        meaning: "Where files may come from; nowhere else. Without it every update is refused.",
    },
    key("digests", Texts, Optional, "sha256 digests by version, for requests to the listener that bring none."),
    Key {
        name: "publicKey",
        also: &["minisignKey"],
        holds: FixedText,
        need: Optional,
        meaning: "A minisign public key, as base64. With it every file must be signed, at its URL with `.minisig`.",
    },
    key(
        "allowDowngrade",
        Switch,
        Default("false"),
        "Whether a request to the listener may ask for a lower version than there is.",
    ),
    key("bounds", Object(BOUNDS), Optional, "What no update may exceed."),
    key(
        "storageConfig",
        Object(STORAGE),
        Optional,
        "Where the result is told besides: `inKube.annotationKey` and `inKube.labelKey` only.",
    ),
    boot_order_too("The `bootOrder` of the plugin, where the proposal writes it."),
];

/// `signal`.
pub const SIGNAL: &[Key] = &[
    key(
        "processName",
        Text,
        Required,
        "How the command line of the process begins, with blanks between its words. Exactly one process must match.",
    ),
    key("signalName", OneOf(&["SIGHUP", "SIGUSR1", "SIGUSR2", "SIGWINCH"]), Required, "The signal."),
    key(
        "fallbackUrl",
        Text,
        Optional,
        "Asked by POST instead, where the agent sees no processes but its own or may not signal them.",
    ),
];

/// `request`.
pub const REQUEST: &[Key] = &[
    key("url", Text, Optional, "`http://127.0.0.1:8080/reload`: within the pod."),
    key("address", Text, Default("127.0.0.1"), "The host, where `url` is not given."),
    key("port", Number(1, 65_535), Optional, "The port, where `url` is not given."),
    key("method", OneOf(&["POST", "GET"]), Default("POST"), "How it is asked. Success is any 2xx."),
];

/// `check`.
pub const CHECK: &[Key] = &[
    key("url", Text, Required, "Who knows, within the pod."),
    key(
        "contains",
        Text,
        Required,
        "What a good answer contains; `{version}` and `{sha256}` stand for those of the update.",
    ),
    key("timeout", Number(1, 3_600), Default("30"), "Seconds for which it is asked."),
];

/// `trigger`.
pub const TRIGGER: &[Key] = &[key(
    "configMap",
    FixedText,
    Required,
    "A ConfigMap of the pod's namespace that says it under the key `wanted`, as JSON.",
)];

/// `listener`.
pub const LISTENER: &[Key] = &[
    key("port", Number(1, 65_535), Default("5000"), "The port, on the pod's address."),
    key("certificate", Text, Required, "PEM file with the certificate chain."),
    key("key", Text, Required, "PEM file with its key."),
    key("audience", Text, Default("pillion-agent"), "The audience that tokens of callers must be for."),
    key("users", ListOfTexts, Required, "Who may ask, such as `system:serviceaccount:games:operator`."),
];

/// One of `allowedSources`.
pub const SOURCE: &[Key] = &[
    key(
        "prefix",
        Text,
        Required,
        "`https://host[:port]/path/`: URLs must begin with it, in whole segments of the path.",
    ),
    key("authorizationFile", Text, Optional, "File with the value of the Authorization header."),
    key("caFile", Text, Optional, "PEM file with the authorities to trust, instead of those of the public web."),
    key("allowPrivate", Switch, Default("false"), "Whether the host may have a private address."),
    key(
        "proxy",
        Text,
        Optional,
        "`http://host:port` of a proxy. Addresses are then its business, and this list of hosts protects alone.",
    ),
];

/// `bounds`.
pub const BOUNDS: &[Key] = &[
    key("maxBytes", Amount, Default("1Gi"), "Of one file."),
    key("connectSeconds", Number(1, 3_600), Default("10"), "To connect."),
    key("silenceSeconds", Number(1, 3_600), Default("30"), "Without a byte."),
    key("totalSeconds", Number(1, DAY), Default("900"), "For the whole file."),
    key("minIntervalSeconds", Number(0, DAY), Default("1"), "Between the beginnings of two updates."),
    key("keep", Number(2, 100), Default("3"), "Versions that are kept, the current one included."),
];
