use std::os::unix::ffi::OsStringExt;

use super::*;

fn of(line: &str) -> Result<Request, String> {
    read(line.split_whitespace().map(OsString::from)).map_err(|error| format!("{error:#}"))
}

fn of_agent(line: &str) -> Result<AgentRequest, String> {
    read_agent(line.split_whitespace().map(OsString::from)).map_err(|error| format!("{error:#}"))
}

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

#[test]
fn the_lines_the_webhook_writes_are_read() {
    assert_eq!(of("version"), Ok(Request::Version));
    assert_eq!(
        of("cp /pillion-finish/pillion-wrap"),
        Ok(Request::Copy { target: "/pillion-finish/pillion-wrap".into() })
    );
    assert_eq!(
        of("wrap --dir=/pillion-finish --main=app -- /app --flag -- x"),
        Ok(Request::Wrap(Wrap {
            dir: "/pillion-finish".into(),
            role: Role::Main { name: "app".to_owned() },
            command: words("/app --flag -- x"),
        }))
    );
    assert_eq!(
        of("wrap --dir=/d --sidecar=log-2 --until=a --until=b --restart-policy=OnFailure --grace-seconds=7 -- log"),
        Ok(Request::Wrap(Wrap {
            dir: "/d".into(),
            role: Role::Sidecar(Sidecar {
                name: "log-2".to_owned(),
                until: vec!["a".to_owned(), "b".to_owned()],
                watch_pod: vec![],
                token_dir: "/pillion-finish-token".into(),
                restart_policy: RestartPolicy::OnFailure,
                grace: Duration::from_secs(7),
            }),
            command: words("log"),
        }))
    );
}

#[test]
fn the_grace_is_half_a_minute_unless_said() {
    let Ok(Request::Wrap(Wrap { role: Role::Sidecar(sidecar), .. })) =
        of("wrap --dir=/d --sidecar=log --until=a --restart-policy=Never -- log")
    else {
        panic!("a sidecar was asked for");
    };
    assert_eq!((sidecar.grace, sidecar.restart_policy), (Duration::from_secs(30), RestartPolicy::Never));
}

#[test]
fn mains_without_a_wrapper_are_watched() {
    let Ok(Request::Wrap(Wrap { role: Role::Sidecar(sidecar), .. })) =
        of("wrap --dir=/d --sidecar=log --watch-pod=a --watch-pod=b --token-dir=/t --restart-policy=Never -- log")
    else {
        panic!("a sidecar was asked for");
    };
    assert_eq!((sidecar.until.len(), sidecar.watch_pod), (0, vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(sidecar.token_dir, PathBuf::from("/t"));
}

#[test]
fn plugins_are_run_from_the_usual_places_or_others() {
    let usual = Run {
        config: "/etc/pillion/agent/config.yaml".into(),
        is_local: false,
        token_dir: "/var/run/secrets/pillion.dev/agent".into(),
        pod_dir: "/etc/pillion/pod".into(),
    };
    assert_eq!(of_agent("run"), Ok(AgentRequest::Run(usual)));
    let others = Run { config: "/c".into(), is_local: true, token_dir: "/t".into(), pod_dir: "/p".into() };
    assert_eq!(of_agent("run --config /c --local --token-dir=/t --pod-dir /p"), Ok(AgentRequest::Run(others)));
    assert_eq!(of_agent("version"), Ok(AgentRequest::Version));
    let Ok(AgentRequest::Ready(ready)) = of_agent("ready --pod-dir /p") else { panic!("ready was asked for") };
    assert_eq!(ready.pod_dir, PathBuf::from("/p"));
}

#[test]
fn each_mistake_to_the_agent_is_named_with_the_way_out() {
    let usage = "write `pillion-agent version`, `pillion-agent run --config FILE`, or `pillion-agent ready`";
    for (line, told) in [
        ("", format!("nothing is asked: {usage}")),
        ("wrap", format!("wrap is nothing this program does: {usage}")),
        ("version now", "version: there is nothing to do with now".to_owned()),
        (
            "run --colour red",
            "run: --colour is no flag: write `run --config FILE [--local] [--token-dir DIR] [--pod-dir DIR]`"
                .to_owned(),
        ),
        ("run --config", "run: --config has no value".to_owned()),
        ("run --local --local", "run: --local is given twice".to_owned()),
        ("ready --local", "ready: --local is for run".to_owned()),
    ] {
        assert_eq!(of_agent(line), Err(told));
    }
}

#[test]
fn a_command_may_be_any_bytes() {
    let bytes = OsString::from_vec(vec![b'a', 0xff]);
    let mut line = words("wrap --dir=/d --main=app --");
    line.push(bytes.clone());
    let Request::Wrap(wrap) = read(line.into_iter()).unwrap() else { panic!("wrap was asked for") };
    assert_eq!(wrap.command, [bytes]);
}

#[test]
fn each_mistake_is_named_with_the_way_out() {
    for (line, told) in [
        ("", format!("nothing is asked: {USAGE}")),
        ("walk", format!("walk is nothing this program does: {USAGE}")),
        ("version now", "version: there is nothing to do with now".to_owned()),
        ("cp", "cp: the file to write is missing: write `cp TARGET`".to_owned()),
        ("cp a b", "cp: there is nothing to do with b".to_owned()),
        ("wrap --dir=/d --main=app", "wrap: `--` and the command after it are missing".to_owned()),
        ("wrap --dir=/d --main=app --", "wrap: the command after `--` is missing".to_owned()),
        (
            "wrap --dir /d -- x",
            "wrap: --dir is not a flag with its value: write --FLAG=VALUE, and `--` before the command".to_owned(),
        ),
        ("wrap --colour=red -- x", "wrap: --colour=red: there is no such flag".to_owned()),
        ("wrap --dir=/d --dir=/e -- x", "wrap: --dir=/e: it is given twice".to_owned()),
        ("wrap --main=app -- x", "wrap: --dir=DIR is missing: the folder that the pod's containers share".to_owned()),
        ("wrap --dir=/d -- x", "wrap: give one of --main=NAME and --sidecar=NAME".to_owned()),
        ("wrap --dir=/d --main=a --sidecar=b -- x", "wrap: give one of --main=NAME and --sidecar=NAME".to_owned()),
        (
            "wrap --dir=/d --main=a --until=b -- x",
            "wrap: with --main=NAME there is no other flag than --dir=DIR".to_owned(),
        ),
        (
            "wrap --dir=/d --main=../a -- x",
            "wrap: --main=../a: not the name of a container: small letters, digits and `-` only".to_owned(),
        ),
        (
            "wrap --dir=/d --sidecar=s --restart-policy=Never -- x",
            "wrap: --until=MAIN or --watch-pod=MAIN is missing: the main whose end ends s".to_owned(),
        ),
        (
            "wrap --dir=/d --sidecar=s --until=a -- x",
            "wrap: --restart-policy=Never or --restart-policy=OnFailure is missing".to_owned(),
        ),
        (
            "wrap --dir=/d --sidecar=s --until=a --restart-policy=Always -- x",
            "wrap: --restart-policy=Always: write Never or OnFailure: with Always a main never ends".to_owned(),
        ),
        (
            "wrap --dir=/d --sidecar=s --grace-seconds=1.5 -- x",
            "wrap: --grace-seconds=1.5: write a whole number of seconds: invalid digit found in string".to_owned(),
        ),
    ] {
        assert_eq!(of(line), Err(told), "{line}");
    }
}
