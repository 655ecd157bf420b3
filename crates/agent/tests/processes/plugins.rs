//! `pillion-agent run`: plugins, what they bring to the pod, and what must not end or mislead them.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cluster::{App, Cluster, GAME_SERVER, POD};
use crate::running::{Running, agent, folder_of, run_to_end, status_of, wait_until};

/// The game server of the proposal, asked every second.
fn game(port: u16) -> String {
    format!(
        "plugins:
- name: http_probe
  config:
    startDelaySeconds: 0
    probeIntervalSeconds: 1
    reassertSeconds: 5
    endpoints:
    - url: http://127.0.0.1:{port}/
      timeout: 1
      storageConfig:
        type: InKube
        inKube:
          annotationKey: example.com/state
          conditionType: example.com/State
          target:
            group: game.kruise.io
            version: v1alpha1
            resource: gameservers
            name: ${{SELF:POD_NAME}}
            namespace: ${{SELF:POD_NAMESPACE}}
          jsonPath: /spec/opsState
          markerPolices:
          - state: idle
            value: None
            labels: {{gameserver-idle: 'true'}}
            annotations: {{controller.kubernetes.io/pod-deletion-cost: '-10'}}
          - state: allocated
            value: Allocated
            labels: {{gameserver-busy: 'true'}}
            annotations: {{controller.kubernetes.io/pod-deletion-cost: '10'}}
"
    )
}

const STATE: &str = "/metadata/annotations/example.com~1state";
const LABELS: &str = "/metadata/labels";
const COST: &str = "/metadata/annotations/controller.kubernetes.io~1pod-deletion-cost";

fn ops_state(cluster: &Cluster) -> Value {
    cluster.world().objects[GAME_SERVER]["spec"]["opsState"].clone()
}

#[test]
fn the_pod_and_its_game_server_follow_the_app() {
    let (cluster, app) = (Cluster::start(), App::start("idle\n"));
    cluster.configure(&game(app.port));
    let agent = Running::start(&mut cluster.agent());
    cluster.wait_for(LABELS, &json!({"gameserver-idle": "true"}));
    cluster.wait_for(COST, &json!("-10"));
    cluster.wait_for("/status/conditions/0/status", &json!("True"));
    wait_until("the game server to be written", || ops_state(&cluster) == "None");
    // Tokens are renewed while the agent runs.
    fs::write(cluster.path("token"), "second\n").unwrap();
    app.says(Some("allocated"));
    cluster.wait_for(LABELS, &json!({"gameserver-busy": "true"}));
    cluster.wait_for(COST, &json!("10"));
    wait_until("the game server to be written", || ops_state(&cluster) == "Allocated");
    // It no longer answers: no mark of a state is left, and the target keeps its value, as no policy gives another.
    app.says(None);
    cluster.wait_for(STATE, &json!("unknown"));
    cluster.wait_for(LABELS, &json!({}));
    cluster.wait_for(COST, &Value::Null);
    cluster.wait_for("/status/conditions/0/status", &json!("False"));
    assert_eq!(ops_state(&cluster), "Allocated");
    app.says(Some("idle"));
    cluster.wait_for(LABELS, &json!({"gameserver-idle": "true"}));
    wait_until("the game server to be written", || ops_state(&cluster) == "None");
    agent.signal(Signal::TERM);
    assert_eq!(agent.end().code, Some(0));
    // One write of the pod for each of four states, and three of the game server.
    let world = cluster.world();
    let writes = |path: &str| world.writes.iter().filter(|(written, _)| written == path).count();
    assert_eq!((writes(POD), writes(GAME_SERVER)), (4, 3), "{:?}", world.writes);
    let (first, last) = (world.requests.first().unwrap(), world.requests.last().unwrap());
    assert_eq!((first.1.as_str(), first.2.as_str()), ("application/merge-patch+json", "Bearer first"));
    assert_eq!(last.2, "Bearer second");
}

#[test]
fn what_a_virtual_kubelet_overwrites_is_set_again() {
    let (cluster, app) = (Cluster::start(), App::start("idle"));
    cluster.configure(&game(app.port));
    let agent = Running::start(&mut cluster.agent());
    cluster.wait_for(LABELS, &json!({"gameserver-idle": "true"}));
    cluster.world().objects.insert(
        POD.to_owned(),
        json!({"metadata": {"managedFields": [{"manager": "virtual-kubelet", "time": "2026-11-15T18:00:00Z"}]}}),
    );
    cluster.wait_for(LABELS, &json!({"gameserver-idle": "true"}));
    cluster.wait_for("/status/conditions/0/status", &json!("True"));
    wait_until("the agent to say who it was", || agent.told().contains("was overwritten by virtual-kubelet"));
}

/// Another implementation needs a restart of the pod for every change.
#[test]
fn b16_a_changed_configuration_is_loaded_and_a_bad_one_is_not() {
    let (cluster, app) = (Cluster::start(), App::start("idle"));
    cluster.configure(&game(app.port));
    let mut agent = Running::start(&mut cluster.agent());
    cluster.wait_for(STATE, &json!("idle"));
    cluster.configure("plugins:\n- name: http_probe\n  config: {endpoint: []}\n");
    wait_until("the agent to refuse it", || {
        let told = agent.told();
        told.contains("config.yaml is refused: line 3, column ") && told.contains("endpoint")
    });
    // The old one goes on.
    app.says(Some("allocated"));
    cluster.wait_for(LABELS, &json!({"gameserver-busy": "true"}));
    cluster.configure(&game(app.port).replace("example.com/state", "example.com/other"));
    cluster.wait_for("/metadata/annotations/example.com~1other", &json!("allocated"));
    cluster.wait_for(STATE, &Value::Null);
    assert!(agent.is_running());
}

#[test]
fn b10_an_api_server_that_refuses_or_fails_does_not_end_the_agent() {
    let (cluster, app) = (Cluster::start(), App::start("idle"));
    cluster.configure(&game(app.port));
    cluster.world().refusal = Some((403, "agents may not".to_owned()));
    let mut agent = Running::start(&mut cluster.agent());
    wait_until("the agent to say which right is missing", || {
        agent.told().contains("give its service account the verb patch on pods/status in its namespace, and let the fence know its keys: agents may not")
    });
    cluster.world().refusal = Some((500, String::new()));
    wait_until("the agent to say what it got", || {
        agent.told().contains("cannot write to the pod, will try again: the API server answers 500")
    });
    cluster.world().refusal = None;
    cluster.wait_for(STATE, &json!("idle"));
    assert!(agent.is_running());
}

#[test]
fn b10_an_agent_without_a_configuration_waits_for_one() {
    let (cluster, app) = (Cluster::start(), App::start("idle"));
    let agent = Running::start(&mut cluster.agent());
    let told = agent.told();
    assert!(told.starts_with("pillion-agent: cannot read ") && told.ends_with("(os error 2)"), "{told}");
    cluster.configure(&game(app.port));
    cluster.wait_for(STATE, &json!("idle"));
}

#[test]
fn probes_of_the_annotation_become_conditions() {
    let (cluster, app) = (Cluster::start(), App::start("7 players\n"));
    cluster.configure("plugins:\n- name: pod_probe\n");
    let ports = json!([{"name": "app", "ports": [{"name": "web", "containerPort": app.port}]}]);
    cluster.world().objects.get_mut(POD).unwrap()["spec"] = json!({"containers": ports});
    let listed = |name: &str, kind: &str, probe: Value| json!({"name": name, "containerName": "app", "podConditionType": kind, "probe": probe});
    let probes = json!([
        listed("http", "game.kruise.io/http", json!({"httpGet": {"path": "/", "port": "web", "scheme": "HTTP"}})),
        listed("tcp", "game.kruise.io/tcp", json!({"tcpSocket": {"port": 1}})),
        listed("exec", "game.kruise.io/exec", json!({"exec": {"command": ["true"]}})),
        listed("none", "", json!({"tcpSocket": {"port": 1}})),
    ]);
    cluster.annotate(&format!("kruise.io/podprobe={}\n", Value::from(probes.to_string())));
    let agent = Running::start(&mut cluster.agent());
    let conditions = || -> Vec<String> {
        let pod = cluster.pod();
        let conditions = pod.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        let shown = conditions.iter().map(|condition| {
            let text = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
            format!("{} {} {} {}", text("type"), text("status"), text("reason"), text("message"))
        });
        let mut shown: Vec<String> = shown.collect();
        shown.sort();
        shown
    };
    let exec = "an agent in the pod cannot run a program in another container: use httpGet or tcpSocket";
    let expected = [
        format!("game.kruise.io/exec Unknown ExecNotPossible {exec}"),
        "game.kruise.io/http True ProbeSucceeded 7 players".to_owned(),
        "game.kruise.io/tcp False ProbeFailed [::1]:1: nobody listens".to_owned(),
    ];
    wait_until("all conditions", || conditions() == expected);
    app.says(Some("8 players"));
    wait_until("the new message", || conditions()[1] == "game.kruise.io/http True ProbeSucceeded 8 players");
    // What is no longer listed is no longer shown.
    cluster.annotate("other=\"x\"\n");
    wait_until("no conditions", || conditions().is_empty());
    drop(agent);
}

#[test]
fn patches_are_printed_instead_of_sent() {
    let (cluster, app) = (Cluster::start(), App::start("idle"));
    cluster.configure(&game(app.port).replace("          conditionType: example.com/State\n", ""));
    let mut command = agent();
    command.arg("run").arg("--local").arg("--config").arg(cluster.path("config.yaml"));
    let agent = Running::start(command.env("POD_NAME", "g-0").env("POD_NAMESPACE", "games"));
    let line = |text: String| serde_json::from_str::<Value>(&text).unwrap();
    let expected = json!({"path": POD, "patch": {"metadata": {
        "labels": {"gameserver-idle": "true"},
        "annotations": {"example.com/state": "idle", "controller.kubernetes.io/pod-deletion-cost": "-10"},
    }}});
    assert_eq!(line(agent.line()), expected);
    assert_eq!(line(agent.line()), json!({"path": GAME_SERVER, "patch": {"spec": {"opsState": "None"}}}));
    assert_eq!(cluster.world().requests, []);
    // A person is told what is wrong at once.
    cluster.configure("plugins: 7\n");
    let mut bad = crate::running::agent();
    let ended = run_to_end(bad.arg("run").arg("--local").arg("--config").arg(cluster.path("config.yaml")));
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""));
    assert!(ended.told.contains("is refused: line 1, column 10: plugins: "), "{}", ended.told);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    // An app that takes the connection and never answers holds the plugin up for its whole timeout.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let cluster = Cluster::start();
    let port = listener.local_addr().unwrap().port();
    cluster.configure(&game(port).replace("timeout: 1", "timeout: 600"));
    let agent = Running::start(&mut cluster.agent());
    let (_held, _) = listener.accept().unwrap();
    agent.signal(Signal::TERM);
    agent.signal(Signal::INT);
    assert_eq!(agent.end().code, Some(143));
}

#[test]
fn another_process_of_the_same_user_sees_neither_environment_nor_files() {
    let cluster = Cluster::start();
    cluster.configure("plugins:\n- name: pod_probe\n");
    cluster.annotate("");
    fs::set_permissions(cluster.dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    // As in its image: a file that can be run and not read.
    let program = cluster.dir.path().join("pillion-agent");
    fs::copy(agent().get_program(), &program).unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o111)).unwrap();
    let agent = Running::start(cluster.agent_at(&program).uid(1000).gid(1000));
    let folder = folder_of(agent.pid());
    // It blocks SIGTERM after it has hidden itself. The limit alone tells nothing: many machines have it at 0 anyway.
    wait_until("the agent to have hidden itself", || {
        let blocked = status_of(agent.pid(), "SigBlk").and_then(|digits| u64::from_str_radix(&digits, 16).ok());
        blocked.is_some_and(|blocked| blocked & 1 << (15 - 1) != 0)
    });
    let limits = fs::read_to_string(folder.join("limits")).unwrap();
    let cores = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(cores.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"]);
    for (what, name) in [("head", "environ"), ("ls", "root/"), ("ls", "fd/")] {
        let tried = Command::new(what).arg(folder.join(name)).uid(1000).gid(1000).output().unwrap();
        assert!(!tried.status.success(), "{name} was read");
        assert!(String::from_utf8_lossy(&tried.stderr).contains("Permission denied"), "{tried:?}");
    }
}
