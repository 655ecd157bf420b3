//! Configurations as people write them, and as they should not.

use std::thread;

use proptest::prelude::*;

use super::*;
use crate::origin::{LIMITS, PARSE_STACK};
use crate::{Address, Bounds, HotUpdate, HttpProbe, MarkerPolicy, Reload, Signal, Storage, TriggerFrom};

const PROPOSAL: &str = include_str!("../../../../examples/agent/proposal.yaml");

fn read(text: &str) -> Reading {
    Config::read(text, None)
}

fn config(text: &str) -> Config {
    let reading = read(text);
    let told = told(text);
    reading.config.unwrap_or_else(|| panic!("{told:?}"))
}

/// Problems as `line:column what: help`, with `w` before warnings.
fn told(text: &str) -> Vec<String> {
    shown(&read(text))
}

fn shown(reading: &Reading) -> Vec<String> {
    let lead = |problem: &Problem| if problem.severity == Severity::Warning { "w " } else { "" };
    let tell = |it: &Problem| format!("{}{}:{} {}: {}", lead(it), it.line, it.column, it.message, it.help);
    reading.problems.iter().map(tell).collect()
}

fn probe(config: &Config) -> &HttpProbe {
    let found = config.plugins.iter().find_map(|plugin| match &plugin.config {
        PluginConfig::HttpProbe(probe) => Some(probe),
        _ => None,
    });
    found.expect("there is an http_probe")
}

fn update(config: &Config) -> &HotUpdate {
    let found = config.plugins.iter().find_map(|plugin| match &plugin.config {
        PluginConfig::HotUpdate(update) => Some(&**update),
        _ => None,
    });
    found.expect("there is a hot_update")
}

/// A configuration with one endpoint that has these keys; they begin in line 6.
fn with_endpoint(keys: &str) -> String {
    let lead = "plugins:\n- name: http_probe\n  config:\n    endpoints:\n    - timeout: 1\n";
    keys.lines().fold(lead.to_owned(), |text, line| format!("{text}      {line}\n"))
}

/// The same with these keys below `inKube`; they begin in line 9.
fn with_in_kube(keys: &str) -> String {
    let lead = "url: http://localhost\nstorageConfig:\n  inKube:\n";
    with_endpoint(&keys.lines().fold(lead.to_owned(), |text, line| format!("{text}    {line}\n")))
}

fn with_update(keys: &str) -> String {
    let keys: Vec<String> = keys.lines().map(|line| format!("    {line}")).collect();
    let signal = "{processName: app, signalName: SIGHUP}";
    format!(
        "plugins:\n- name: hot_update\n  config:\n    fileDir: /app\n    loadPatchType: signal\n    signal: {signal}\n{}\n",
        keys.join("\n")
    )
}

fn map(pairs: &[(&str, &str)]) -> std::collections::BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_configuration_of_the_proposal_is_read_as_it_was_meant() {
    let reading = read(PROPOSAL);
    let repairs: Vec<_> = reading.repairs.iter().map(ToString::to_string).collect();
    assert_eq!(
        repairs,
        [
            "line 10: plugins[0].config.bootOrder is read as bootOrder of the plugin",
            "line 33: annotationKey, target, jsonPath, markerPolices are read as keys of inKube",
            "line 58: plugins[1].config.endpoints[0].bootorder is read as bootOrder of the plugin",
        ]
    );
    let problems: Vec<_> = reading.problems.iter().map(|it| (it.severity, it.line, it.column, &*it.path)).collect();
    assert_eq!(
        problems,
        [
            (Severity::Warning, 9, 11, "plugins[0].config"),
            (Severity::Warning, 41, 30, "plugins[1].config.endpoints[0].storageConfig.inKube.jsonPath"),
        ]
    );
    let config = reading.config.unwrap();
    let names: Vec<_> = config.plugins.iter().map(|it| (it.boot_order, it.config.name())).collect();
    assert_eq!(names, [(0, "http_probe"), (1, "hot_update")]);
    assert_eq!(config.form.resources, map(&[("cpu", "100m"), ("memory", "128Mi")]));
    assert_eq!((config.form.start_order, config.metrics_port), (StartOrder::Before, None));

    let probe = probe(&config);
    assert_eq!((probe.start_delay_seconds, probe.interval_seconds, probe.reassert_seconds), (60, 5, 60));
    let [endpoint] = probe.endpoints.as_slice() else { panic!("{probe:?}") };
    let (url, method, headers) = ("http://localhost:8080".to_owned(), "GET".to_owned(), map(&[]));
    assert_eq!(endpoint.address, Address::Http { url, method, headers, expected_status: 200 });
    assert_eq!((endpoint.timeout_seconds, endpoint.failure_state.as_str()), (30, "unknown"));
    let policy = |state: &str, idle: &str, cost: &str| MarkerPolicy {
        state: Some(state.to_owned()),
        labels: map(&[("gameserver-idle", idle)]),
        annotations: map(&[("controller.kubernetes.io/pod-deletion-cost", cost)]),
        value: None,
    };
    let target = Target {
        group: "game.kruise.io".to_owned(),
        version: "v1alpha1".to_owned(),
        resource: "gameservers".to_owned(),
        namespace: "${SELF:POD_NAMESPACE}".to_owned(),
        name: "${SELF:POD_NAME}".to_owned(),
        pointer: "/spec/opsState".to_owned(),
    };
    let expected = Storage {
        annotation_key: Some("http_probe".to_owned()),
        target: Some(target),
        marker_policies: vec![
            policy("idle", "true", "-10"),
            policy("allocated", "false", "10"),
            policy("unknown", "false", "5"),
        ],
        ..Storage::default()
    };
    assert_eq!(endpoint.storage, expected);

    let update = update(&config);
    let signal = Signal {
        process_name: "nginx: master process nginx".to_owned(),
        signal_name: "SIGHUP".to_owned(),
        fallback_url: None,
    };
    assert_eq!((update.file_dir.as_str(), &update.reload), ("/app/downloads", &Reload::Signal(signal)));
    assert_eq!(update.storage.annotation_key.as_deref(), Some("sidecar.vke.volcengine.com/hot-update-result"));
    assert_eq!((&update.trigger, update.bounds), (&TriggerFrom::Annotation, Bounds::default()));
}

#[test]
fn the_configuration_alone_says_the_same_as_the_config_map_that_holds_it() {
    let lines: Vec<&str> = PROPOSAL.lines().collect();
    let first = lines.iter().position(|line| line.trim() == "plugins:").unwrap();
    let end = lines.iter().position(|line| *line == "kind: ConfigMap").unwrap();
    let bare: String =
        lines[first..end].iter().fold(String::new(), |text, line| format!("{text}{}\n", &line[4.min(line.len())..]));
    let (alone, held) = (read(&bare), read(PROPOSAL));
    assert_eq!(alone.config, held.config);
    let places = |reading: &Reading, lines: usize, columns: usize| -> Vec<_> {
        reading.problems.iter().map(|it| (it.line + lines, it.column + columns, it.length)).collect()
    };
    assert_eq!(places(&alone, first, 4), places(&held, 0, 0));
    // Quoted on one line, it is the same again.
    let quoted = format!("kind: ConfigMap\ndata: {{config.yaml: {}}}\n", serde_json::Value::from(bare));
    assert_eq!(read(&quoted).config, held.config);
    assert_eq!(read(&quoted).problems[0].line, 2);
}

#[test]
fn keys_are_read_in_any_case_and_both_spellings() {
    let text = "
PLUGINS:
- Name: HTTP_PROBE
  BootOrder: -3
  config:
    startdelayseconds: 0
    ENDPOINTS:
    - URL: tcp://127.0.0.1:80
      storageconfig:
        inkube:
          markerPolices:
          - {state: open, labels: {a: b}}
          - {default: true, labels: {a: c}}
sidecarstartorder: after
Resources: {cpu: 1, MEMORY: 16Mi}
";
    let config = config(text);
    assert_eq!(config.plugins[0].boot_order, -3);
    assert_eq!(config.form.start_order, StartOrder::After);
    assert_eq!(config.form.resources, map(&[("cpu", "1"), ("memory", "16Mi")]));
    let [endpoint] = probe(&config).endpoints.as_slice() else { panic!("{config:?}") };
    assert_eq!(endpoint.address, Address::Tcp { host: "127.0.0.1".to_owned(), port: 80 });
    assert_eq!((endpoint.timeout_seconds, endpoint.success_threshold, endpoint.failure_threshold), (10, 1, 3));
    let states: Vec<_> = endpoint.storage.marker_policies.iter().map(|it| it.state.as_deref()).collect();
    assert_eq!(states, [Some("open"), None]);
    assert_eq!(
        told("plugins: [{name: pod_probe}]\nPlugins: [{name: pod_probe}]\n"),
        // The map of JSON is sorted, and upper case comes first.
        ["1:1 plugins is given twice, in two spellings: remove one"]
    );
}

#[test]
fn everything_that_is_wrong_is_told_at_once_and_in_order() {
    let text = "\
plugins:
- name: http_prob
- name: http_probe
  bootorder: first
  config:
    startDelay: 5
    endpoints:
    - url: https://localhost
      expectedStatusCode: 2000
      timeouts: 3
      headers: {Host: x}
      storageConfig:
        type: InCube
        inKube: {labelKey: app, annotationkey: 5}
resources: {disk: 1}
restartPolicy: Never
nonsense: true
";
    assert_eq!(
        told(text),
        [
            "2:9 cannot be \"http_prob\": did you mean http_probe?",
            "4:14 must be a whole number from -1000 to 1000, and is a text: write a number from -1000 to 1000",
            "6:5 unknown key startDelay: did you mean startDelaySeconds?",
            "8:12 \"https://localhost\" is not asked over http or tcp: an agent asks its own pod, where nobody listens in: \
             write http://localhost:8080/path or tcp://localhost:8080",
            "9:27 must be a whole number from 100 to 599, and is 2000: write a number from 100 to 599",
            "10:7 unknown key timeouts: did you mean timeout?",
            "11:17 the agent writes the header Host itself: remove it",
            "13:15 cannot be \"InCube\": did you mean InKube?",
            "14:28 an agent must not set the label app: controllers and services choose pods by it: choose a key of your \
             own, such as example.com/state",
            "14:48 must be a text, and is a number: write it in quotes: \"5\"",
            "15:13 unknown key disk: use one of CPU, Memory",
            "16:16 cannot be \"Never\": use one of Always",
            "17:1 unknown key nonsense: use one of plugins, restartPolicy, resources, sidecarStartOrder, metricsPort",
        ]
    );
    assert!(read(text).config.is_none());
}

#[test]
fn what_is_missing_is_told() {
    let help = "write a configuration, or a ConfigMap that holds one";
    for (text, expected) in [
        ("", format!("1:1 there is nothing in it: {help}")),
        ("a: [", format!("1:4 unclosed bracket '[': {help}")),
        (
            "- 1\n",
            "1:1 must be a map, and is a list: write its keys below it: plugins, restartPolicy, resources, \
                   sidecarStartOrder, metricsPort"
                .to_owned(),
        ),
        ("plugins: []\n", "1:1 plugins is empty: give at least one item, or remove it".to_owned()),
        ("plugins: x\n", "1:10 must be a list, and is a text: begin each of its items with a dash".to_owned()),
        ("kind: ConfigMap\ndata: {x: y}\n", format!("1:1 the ConfigMap has no text under the key config.yaml: {help}")),
        (
            "plugins: [{name: pod_probe}]\n---\nplugins: []\n",
            format!("3:1 there are 2 documents, and one is read: {help}"),
        ),
        (
            "plugins: [{name: pod_probe}, {name: pod_probe}]\n",
            "1:37 the plugin pod_probe is given twice: put what both \
            say into one"
                .to_owned(),
        ),
        (
            "plugins: [{name: http_probe}]\n",
            "1:11 endpoints is missing: give it: Whom to ask; at least one.".to_owned(),
        ),
        (
            "plugins:\n- name: pod_probe\n  binary: {path: /x}\n",
            "3:3 binary is not supported: plugins are built into the \
            agent; it starts no program that a configuration names: remove it"
                .to_owned(),
        ),
    ] {
        assert_eq!(told(text)[0], expected, "{text}");
        assert_eq!(read(text).config, None);
    }
}

#[test]
fn texts_hold_variables_and_places_for_marks_do_not() {
    let text =
        with_in_kube("annotationKey: a-${SELF:X}\nmarkerPolicies: [{state: '${POD:S}', labels: {a: '${SELF:L}'}}]");
    let help = "write it out: what agents may do is made from it before there is any pod";
    assert_eq!(told(&text), [format!("9:26 must not hold a variable: {help}")]);
    let text = text.replace("a-${SELF:X}", "b");
    let Address::Http { .. } = probe(&config(&text)).endpoints[0].address else { panic!("{text}") };

    let variables = |state: &str, label: &str| Variables {
        of_agent: map(&[("L", label), ("POD_NAME", "p"), ("POD_NAMESPACE", "n")]),
        of_app: map(&[("S", state)]),
    };
    let filled = Config::parse(&text, Some(&variables("idle", "yes"))).unwrap();
    let policy = &probe(&filled).endpoints[0].storage.marker_policies[0];
    assert_eq!((policy.state.as_deref(), &policy.labels), (Some("idle"), &map(&[("a", "yes")])));
    // What came of a variable is judged as if it had been written.
    let refused = Config::read(&text, Some(&variables(" ", "no good")));
    assert_eq!(
        shown(&refused),
        [
            "10:36 \" \" can be no state: write 1 to 256 bytes without blanks around them",
            "10:60 \"no good\" can be no value of a label: write at most 63 letters, digits, dashes, underscores and dots",
        ]
    );
    let unset = Config::parse(&text, Some(&Variables::default())).unwrap_err();
    let places: Vec<_> = unset.iter().map(|it| (it.line, it.column, it.length, it.message.as_str())).collect();
    assert_eq!(places, [(10, 37, 8, "${POD:S} is not set"), (10, 61, 9, "${SELF:L} is not set")]);
}

#[test]
fn a_variable_may_stand_for_a_number() {
    let text = with_endpoint(
        "url: http://localhost:${SELF:PORT}/\nexpectedStatusCode: ${SELF:CODE}\nstorageConfig: {inKube: {labelKey: a}}",
    );
    assert_eq!(told(&text), Vec::<String>::new());
    let of =
        |port: &str, code: &str| Variables { of_agent: map(&[("PORT", port), ("CODE", code)]), ..Variables::default() };
    let config = Config::parse(&text, Some(&of("81", "204"))).unwrap();
    let Address::Http { url, expected_status, .. } = &probe(&config).endpoints[0].address else { panic!("{config:?}") };
    assert_eq!((url.as_str(), *expected_status), ("http://localhost:81/", 204));
    let refused = Config::read(&text, Some(&of("x", "no")));
    let messages: Vec<_> = refused.problems.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "\"http://localhost:x/\" has a port that is no number",
            "must be a whole number from 100 to 599, and is a text",
        ]
    );
}

#[test]
fn a_target_is_the_pods_own_and_has_values() {
    let target = |target: &str, rest: &str| with_in_kube(&format!("target: {{{target}}}\n{rest}"));
    let game = "group: game.kruise.io, version: v1alpha1, resource: gameservers";
    let values =
        "jsonPath: /spec/opsState\nmarkerPolicies: [{state: idle, value: None}, {default: true, value: Maintaining}]";
    let good = config(&target(game, values));
    let found = probe(&good).endpoints[0].storage.target.clone().unwrap();
    assert_eq!((found.namespace.as_str(), found.name.as_str()), ("${SELF:POD_NAMESPACE}", "${SELF:POD_NAME}"));

    let own = "write ${SELF:POD_NAME}, or leave it out";
    for (text, expected) in [
        (
            target(&format!("{game}, name: other"), values),
            format!("the name of a target is its pod's, and no other: {own}"),
        ),
        (
            target(&format!("{game}, name: '${{SELF:HOST}}'"), values),
            format!("the name of a target is its pod's, and no other: {own}"),
        ),
        (
            target(&format!("{game}, podOwner: true"), values),
            "podOwner is not supported: an agent writes only to an object \
            of its pod's name: remove it"
                .to_owned(),
        ),
        (
            target("version: v1, resource: pods", values),
            "an agent must not write to pods: name an object of your own, such \
            as gameservers of game.kruise.io"
                .to_owned(),
        ),
        (
            target(game, "labelKey: a"),
            "a target without jsonPath: give jsonPath, beside target: the field of the object, \
            such as /spec/opsState"
                .to_owned(),
        ),
        (
            target(game, &values.replace("None", "Kill")),
            "the value Kill deletes the game server, which no agent may: use \
            WaitToBeDeleted, and leave the deletion to those who scale"
                .to_owned(),
        ),
        (
            target(game, &values.replace("None", "\"None\\nKill\"")),
            "\"None\\nKill\" can be no value: write 1 to 256 bytes \
            on one line"
                .to_owned(),
        ),
        (target("version: v1", values), "resource is missing: give it: Its plural, such as `gameservers`.".to_owned()),
    ] {
        assert_eq!(told(&text)[0].split_once(' ').unwrap().1, expected, "{text}");
    }
    for (pointer, why) in [
        ("spec/x", "does not begin with a slash"),
        ("/spec//x", "has an empty segment"),
        ("/spec/0", "leads into a list, which an agent cannot change a part of"),
        ("/spec/a~2b", "has a ~ that is not ~0 or ~1"),
        ("/metadata/labels", "is not a field that an agent may write"),
    ] {
        let text = target(game, &values.replace("/spec/opsState", pointer));
        let help = "write the way to a field with slashes, such as /spec/opsState";
        assert_eq!(told(&text), [format!("10:21 {pointer} {why}: {help}")]);
    }
}

#[test]
fn a_state_is_not_a_value() {
    let text =
        with_in_kube("target: {version: v1, resource: things, group: a.example}\njsonPath: /spec/state\nlabelKey: a");
    let reading = read(&text);
    assert_eq!(
        shown(&reading),
        [
            "w 10:21 nothing will be written to /spec/state: no policy says which value a state stands for: give each policy \
          its value, such as value: None for a game server that is idle; a state is not a value, and the object would take \
          any text for one"
        ]
    );
    assert!(reading.config.is_some());
    let nowhere = with_in_kube("markerPolicies: [{state: a, value: b}]");
    assert_eq!(
        told(&nowhere),
        ["8:9 a policy has a value, and there is nowhere to write it: give target and jsonPath, or remove value"]
    );
}

#[test]
fn a_configuration_has_one_target() {
    let in_kube = |resource: &str| {
        format!(
            "{{target: {{group: a.example, version: v1, resource: {resource}}}, jsonPath: /spec/x, markerPolicies: [{{state: s, \
             value: v}}]}}"
        )
    };
    let endpoint =
        |resource: &str| format!("{{url: 'http://localhost', storageConfig: {{inKube: {}}}}}", in_kube(resource));
    let text = |one: &str, other: &str| {
        format!("plugins: [{{name: http_probe, config: {{endpoints: [{}, {}]}}}}]", endpoint(one), endpoint(other))
    };
    assert_eq!(told(&text("things", "things")), Vec::<String>::new());
    assert_eq!(
        told(&text("things", "others")),
        [
            "1:1 there are several targets: /spec/x of others.a.example, /spec/x of things.a.example: write one, and make a \
          second configuration for the other"
        ]
    );
}

#[test]
fn a_key_with_nothing_behind_it_is_not_given_and_bounds_are_within() {
    let text =
        "plugins: [{name: pod_probe, bootOrder: 1000, config: {reassertSeconds: 5}}]\nresources:\nmetricsPort: 65535\n";
    let found = config(text);
    assert_eq!(
        (found.plugins[0].boot_order, found.metrics_port, found.form.resources),
        (1_000, Some(65_535), map(&[]))
    );
    assert_eq!(found.plugins[0].config, PluginConfig::PodProbe(PodProbe { reassert_seconds: 5 }));
    for (good, bad) in [("1000", "1001"), (": 5}", ": 4}"), ("65535", "65536"), ("65535", "0")] {
        assert_eq!(told(&text.replace(good, bad)).len(), 1, "{bad}");
    }
    assert!(told("plugins:\n").iter().any(|it| it.contains("plugins is missing")));
}

#[test]
fn policies_are_for_different_states() {
    let told = |policies: &str| told(&with_in_kube(&format!("markerPolicies:\n{policies}")));
    let mark = "labels: {a: b}";
    assert_eq!(
        told(&format!(
            "- {{state: x, {mark}}}\n- {{state: x, {mark}}}\n- {{default: true, {mark}}}\n- {{default: true, {mark}}}"
        )),
        [
            "11:13 a second policy for the state \"x\": put what both say into one",
            "13:13 a second policy for the default: put what both say into one",
        ]
    );
    assert_eq!(
        told(&format!("- {{{mark}}}\n- {{state: x, default: true, {mark}}}\n- {{state: z}}")),
        [
            "10:13 state is missing: give it, or default: true",
            "11:21 a policy is for a state or the default: remove state or default",
            "12:13 the policy sets nothing: give labels, annotations or value",
        ]
    );
}

#[test]
fn metrics_need_a_port_that_is_named() {
    let text =
        with_endpoint("url: http://localhost\nstorageConfig: {type: HTTPMetric, httpMetric: {metricName: players}}");
    let help = "give metricsPort: the agent opens only a port that you name";
    assert_eq!(told(&text), [format!("1:1 a metricName is given and no metricsPort: {help}")]);
    let config = config(&format!("{text}metricsPort: 9464\n"));
    assert_eq!(config.metrics_port, Some(9464));
    assert_eq!(probe(&config).endpoints[0].storage.metric_name.as_deref(), Some("players"));
    assert_eq!(
        told(&format!("{}metricsPort: 9464\n", text.replace("players", "play-ers"))),
        ["7:66 \"play-ers\" is no name of a metric: write letters, digits and underscores, a letter first"]
    );
}

#[test]
fn json_paths_are_keys_with_dots_between_them() {
    let path = |path: &str| {
        let text = with_endpoint(&format!(
            "url: http://localhost\njsonPathConfig: {{jsonPath: '{path}'}}\nstorageConfig: {{inKube: {{labelKey: a}}}}"
        ));
        read(&text).config.map(|config| probe(&config).endpoints[0].json_path.clone().unwrap().0)
    };
    assert_eq!(path("$.players.0.state"), Some(["players", "0", "state"].map(str::to_owned).into()));
    assert_eq!(path("a\\.b.c"), Some(["a.b", "c"].map(str::to_owned).into()));
    for bad in ["", "a..b", "a.#.b", "a|b", "$.", "a[0]", "a.*"] {
        assert_eq!(path(bad), None, "{bad}");
    }
}

#[test]
fn hot_update_is_read_with_all_it_knows() {
    let text = "
plugins:
- name: hot_update
  config:
    fileDir: /app/downloads/
    fileName: rules.json
    loadPatchType: request
    request: {port: 8080, address: localhost, method: GET}
    check: {url: 'http://localhost/version', contains: '{version}', timeout: 5}
    trigger: {configMap: rules}
    listener:
      certificate: /tls/tls.crt
      key: /tls/tls.key
      users: ['system:serviceaccount:games:operator']
    allowedSources:
    - https://files.example.com/game/
    - {prefix: 'https://10.0.0.1:8443', caFile: /ca/ca.crt, authorizationFile: /auth/token, allowPrivate: true,
       proxy: 'http://proxy:3128'}
    digests: {v1.2: 0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef}
    publicKey: RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3
    allowDowngrade: true
    bounds: {maxBytes: 10Mi, keep: 2}
    storageConfig: {inKube: {labelKey: rules-version}}
";
    let config = config(text);
    let found = update(&config);
    let text = |text: &str| Some(text.to_owned());
    let expected = HotUpdate {
        file_dir: "/app/downloads".to_owned(),
        file_name: text("rules.json"),
        reload: Reload::Request { url: "http://localhost:8080/".to_owned(), method: "GET".to_owned() },
        check: Some(crate::Check {
            url: "http://localhost/version".to_owned(),
            contains: "{version}".to_owned(),
            timeout_seconds: 5,
        }),
        trigger: TriggerFrom::ConfigMap("rules".to_owned()),
        listener: Some(crate::Listener {
            port: 5000,
            certificate: "/tls/tls.crt".to_owned(),
            key: "/tls/tls.key".to_owned(),
            audience: "pillion-agent".to_owned(),
            users: vec!["system:serviceaccount:games:operator".to_owned()],
        }),
        sources: vec![
            crate::Source { prefix: "https://files.example.com/game/".to_owned(), ..crate::Source::default() },
            crate::Source {
                prefix: "https://10.0.0.1:8443".to_owned(),
                authorization_file: text("/auth/token"),
                ca_file: text("/ca/ca.crt"),
                allow_private: true,
                proxy: text("http://proxy:3128"),
            },
        ],
        digests: map(&[("v1.2", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")]),
        public_key: text("RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"),
        allow_downgrade: true,
        bounds: Bounds { max_bytes: 10 << 20, keep: 2, ..Bounds::default() },
        storage: Storage { label_key: text("rules-version"), ..Storage::default() },
    };
    assert_eq!(found, &expected);
}

#[test]
fn hot_update_refuses_what_is_not_safe() {
    let source = "allowedSources: [https://a.example]\n";
    for (keys, expected) in [
        ("allowedSources: [http://a.example/]", "7:22 \"http://a.example/\" is not https"),
        ("allowedSources: ['https://me:pw@a.example/']", "7:22 \"https://me:pw@a.example/\" has a user or a password"),
        ("allowedSources: ['https://a.example/x/../']", "7:22 \"https://a.example/x/../\" has a step back in its path"),
        (
            "allowedSources: ['https://a.example/%2e']",
            "7:22 \"https://a.example/%2e\" has an escape in its path, which may mean something else",
        ),
        ("check: {url: 'http://10.0.0.1/', contains: x}", "7:18 \"http://10.0.0.1/\" is not within the pod"),
        ("check: {url: 'http://localhost/', contains: ' '}", "7:49 every answer contains nothing"),
        ("fileName: ../x", "7:15 \"../x\" can be no name of the file"),
        ("digests: {latest: abc}", "7:15 \"latest\" is no version"),
        ("digests: {v1: abc}", "7:19 \"abc\" is no sha256 digest"),
        ("publicKey: abc", "7:16 this is no public key of minisign"),
        ("bounds: {keep: 1}", "7:20 must be a whole number from 2 to 100, and is 1"),
        ("bounds: {maxBytes: 0}", "7:24 \"0\" is no amount"),
        ("storageConfig: {inKube: {conditionType: x}}", "7:5 the result of hot_update has no such place"),
        ("request: {port: 1}", "7:5 loadPatchType is signal, and request is given"),
        ("listener: {certificate: /a, key: /b}", "7:5 users is missing"),
        ("trigger: {configMap: '${SELF:X}'}", "7:26 must not hold a variable"),
    ] {
        let text = with_update(&if keys.contains("Sources") { keys.to_owned() } else { format!("{keys}\n{source}") });
        let told = told(&text);
        assert!(told.len() == 1 && told[0].starts_with(&format!("{expected}: ")), "{keys}: {told:?}");
    }
    let empty = with_update(source).replace("processName: app", "processName: ''");
    assert!(told(&empty)[0].starts_with("6:27 an empty name would match every process: "), "{:?}", told(&empty));
    let kill = with_update(source).replace("SIGHUP", "SIGKILL");
    assert!(told(&kill)[0].starts_with("6:44 cannot be \"SIGKILL\": "), "{:?}", told(&kill));
    let root = with_update(source).replace("/app", "/");
    assert!(told(&root)[0].starts_with("4:14 \"/\" is no folder: "), "{:?}", told(&root));
}

#[test]
fn a_boot_order_is_one() {
    let text = "plugins:\n- name: pod_probe\n  bootOrder: 1\n  config: {bootOrder: 2}\n";
    assert_eq!(told(text), ["4:23 the plugin has two different boot orders: give one, beside its name"]);
    assert_eq!(config(&text.replace('2', "1")).plugins[0].boot_order, 1);
}

#[test]
fn every_default_of_the_table_can_be_read() {
    fn check(table: &'static [Key]) {
        for key in table {
            match (key.holds, key.need) {
                (keys::Holds::Number(least, most), keys::Need::Default(text)) => {
                    assert!((least..=most).contains(&text.parse().unwrap()), "{}", key.name);
                }
                (keys::Holds::OneOf(choices), keys::Need::Default(text)) => {
                    assert!(choices.contains(&text), "{}", key.name);
                }
                (keys::Holds::Object(below) | keys::Holds::List(below) | keys::Holds::ListOrTexts(below), _) => {
                    check(below);
                }
                _ => {}
            }
        }
    }
    for table in [keys::CONFIG, keys::HTTP_PROBE, keys::POD_PROBE, keys::HOT_UPDATE] {
        check(table);
    }
}

#[test]
fn hostile_texts_end_soon() {
    let deep = (0..=LIMITS.depth).fold(String::new(), |text, level| format!("{text}{}a:\n", " ".repeat(level)));
    let help = "write a configuration, or a ConfigMap that holds one";
    assert_eq!(
        told(&deep),
        [format!("25:25 too much for one file: at most 24 levels and 50000 values are read: {help}")]
    );
    let long = "#".repeat((1 << 20) + 1);
    assert_eq!(told(&long), [format!("1:1 too long: at most 1048576 bytes are read: {help}")]);
    let many = (0..5_000).fold(String::new(), |text, number| format!("{text}k{number}: 1\n"));
    assert_eq!(told(&many).len(), 100);
    let held = (0..5_000).fold("kind: ConfigMap\ndata:\n  config.yaml: |\n".to_owned(), |text, number| {
        format!("{text}    k{number}: 1\n")
    });
    assert_eq!(told(&held).len(), 100);
}

#[test]
fn the_deepest_text_fits_the_stack_that_is_promised() {
    // A quarter of it, so that there is room for a build with other habits.
    let nested = format!("plugins: {}1{}", "[".repeat(LIMITS.depth - 1), "]".repeat(LIMITS.depth - 1));
    let reader = thread::Builder::new().stack_size(PARSE_STACK / 4).spawn(move || read(&nested).problems.len());
    assert_eq!(reader.unwrap().join().unwrap(), 1);
}

/// Words that configurations are made of, in any order.
fn soup() -> impl Strategy<Value = String> {
    let words = [
        "plugins:",
        "- name: http_probe",
        "- name: hot_update",
        "config:",
        "endpoints:",
        "- url: http://x",
        "inKube:",
        "annotationKey: a",
        "target:",
        "jsonPath: /spec/x",
        "markerPolices:",
        "- state: s",
        "labels: {a: b}",
        "bootorder: 0",
        "storageConfig:",
        "type: InKube",
        "kind: ConfigMap",
        "data:",
        "config.yaml: |",
        "${SELF:X}",
        "'",
        "[",
        "}",
        "value: |",
    ];
    let line = (0..12_usize, prop::sample::select(words.to_vec()));
    prop::collection::vec(line, 0..24).prop_map(|lines| {
        lines.iter().fold(String::new(), |text, (indent, word)| format!("{text}{}{word}\n", " ".repeat(*indent)))
    })
}

proptest! {
    #[test]
    fn reading_never_panics_and_points_into_the_text(text in prop_oneof![soup(), "\\PC{0,80}"]) {
        let reading = read(&text);
        prop_assert_eq!(reading.config.is_none(), reading.errors().count() > 0);
        let lines = text.lines().count().max(1);
        for problem in &reading.problems {
            prop_assert!(problem.line >= 1 && problem.line <= lines + 1 && problem.column >= 1, "{:?}", problem);
            prop_assert!(!problem.message.is_empty() && !problem.help.is_empty());
        }
        let again = Config::read(&text, Some(&Variables::default()));
        prop_assert_eq!(again.config.is_none(), again.errors().count() > 0);
    }
}
