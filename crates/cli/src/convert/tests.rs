//! Manifests in, manifests out.

use insta::assert_snapshot;

use super::*;

/// What is printed for a file, with the notes; or the error.
fn converted<'c>(text: &str, change: impl FnOnce(&mut Conversion<'c>)) -> String {
    let mut conversion =
        Conversion { is_native: false, is_wrap: false, sidecars: &[], entrypoints: &[], found: Vec::new() };
    change(&mut conversion);
    match convert("jobs.yaml", text, &mut conversion) {
        Ok(Converted { text, notes }) => notes.iter().fold(text, |text, note| format!("{text}note: {note}\n")),
        Err(error) => format!("error: {error}\n"),
    }
}

const POD: &str = r#"apiVersion: v1
kind: Pod
metadata:
  name: myapp-pod
  labels:
    app: myapp
spec:
  containers:
  - name: myapp
    image: myapp
    command: ['do something']
  - name: sidecar
    image: sidecar-image
    sidecar: true
    command: ["do something to help my app"]
"#;

const MIXED: &str = r"# Who owns it
apiVersion: v1
kind: ConfigMap   # stays
metadata: {name: settings}
---
apiVersion: batch/v1
kind: CronJob
metadata:
  name: nightly # every night
spec:
  schedule: '0 0 * * *'
  jobTemplate:
    spec:
      template:
        metadata:
          annotations: {pillion.dev/sidecars: net}
        spec:
          restartPolicy: Never
          initContainers:
          - {name: prepare, image: prepare}
          containers:
          - {name: work, image: work}
          - {name: net, image: net}
          - {name: logs, image: logs, sidecar: true, restartPolicy: Always}
---
apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata: {name: mesh}
spec: {containers: [{name: proxy, image: proxy, sidecar: true}]}
";

#[test]
fn the_pod_of_the_proposal_becomes_one_that_kubernetes_takes() {
    assert_snapshot!("annotated", converted(POD, |_| {}));
    assert_snapshot!("native", converted(POD, |it| it.is_native = true));
    assert_snapshot!("wrap", converted(POD, |it| it.is_wrap = true));
}

#[test]
fn what_is_not_ours_stays_as_it_is() {
    assert_snapshot!("mixed", converted(MIXED, |_| {}));
    assert_snapshot!("mixed_native", converted(MIXED, |it| it.is_native = true));
    let other = "# a\r\nkind: Service  # b\n---\n\n--- # c\n{kind: Pod, spec: {containers: [{name: a}]}}";
    assert_eq!(converted(other, |_| {}), other);
}

#[test]
fn an_entrypoint_is_given_to_containers_that_have_no_command() {
    let entrypoints = [("work".to_owned(), vec!["/work".to_owned()]), ("net".to_owned(), vec!["/net".to_owned()])];
    let text = MIXED.replace("{name: net, image: net}", "{name: net, image: net, command: [/own]}");
    assert_snapshot!("entrypoint", converted(&text, |it| it.entrypoints = &entrypoints));
    assert_eq!(entrypoint("app=[\"/bin/app\",\"x\"]"), Ok(("app".to_owned(), vec!["/bin/app".into(), "x".into()])));
    for text in ["app", "app=", "app=/bin/app", "app=[]", "=[\"/a\"]", "app=[1]"] {
        let wrong = "write it as name=[\"/bin/app\",\"argument\"]";
        assert_eq!(entrypoint(text).unwrap_err(), wrong, "{text}");
    }
}

#[test]
fn a_job_of_a_cluster_becomes_one_that_can_be_created() {
    let job = r#"{"apiVersion":"batch/v1","kind":"List","items":[{"apiVersion":"batch/v1","kind":"Job",
      "metadata":{"name":"import","uid":"1-2","resourceVersion":"7","labels":{"controller-uid":"1-2","team":"a"}},
      "spec":{"selector":{"matchLabels":{"batch.kubernetes.io/controller-uid":"1-2"}},"template":{
        "metadata":{"labels":{"batch.kubernetes.io/controller-uid":"1-2","job-name":"import","app":"import"}},
        "spec":{"containers":[{"name":"work"},{"name":"logs"}],"restartPolicy":"Never"}}},
      "status":{"active":1}}]}"#;
    let sidecars = ["logs".to_owned()];
    let text = converted(job, |it| {
        it.is_native = true;
        it.sidecars = &sidecars;
    });
    let made: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        made["items"][0],
        serde_json::json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "import", "labels": {"team": "a"}},
            "spec": {"template": {"metadata": {"labels": {"app": "import"}}, "spec": {
                "restartPolicy": "Never", "containers": [{"name": "work"}],
                "initContainers": [{"name": "logs", "restartPolicy": "Always"}]}}}})
    );
}

#[test]
fn what_cannot_be_is_told_with_what_to_write() {
    for (from, to, message) in [
        (
            "  containers:\n  - name: myapp\n",
            "  containers:\n  - name: myapp\n    sidecar: true\n",
            "Pod myapp-pod: all containers are sidecars: leave the mark off the one that does the work",
        ),
        (
            "  containers:\n",
            "  initContainers:\n  - {name: prepare, sidecar: true}\n  containers:\n",
            "Pod myapp-pod: init container prepare has sidecar: true: write restartPolicy: Always instead, which makes it a \
             sidecar",
        ),
        (
            "sidecar: true",
            "sidecar: 'yes'",
            "Pod myapp-pod: container sidecar has sidecar: \"yes\": write true or false",
        ),
        (
            "    sidecar: true\n",
            "    sidecar: true\n    restartPolicy: Never\n",
            "Pod myapp-pod: container sidecar has restartPolicy Never: remove it, a native sidecar is always restarted",
        ),
    ] {
        let text = POD.replace(from, to);
        assert_eq!(converted(&text, |it| it.is_native = true), format!("error: jobs.yaml: {message}\n"));
    }
    let broken = format!("{POD}---\nkind: [\n");
    assert!(converted(&broken, |_| {}).starts_with("error: jobs.yaml:1"), "{}", converted(&broken, |_| {}));
}

#[test]
fn files_become_one_text() {
    let all = |texts: &[&str]| joined(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
    assert_eq!(all(&["a: 1", "---\nb: 2\n", "", "c: 3\n"]), "a: 1\n---\nb: 2\n---\nc: 3\n");
}

#[test]
fn a_name_that_is_nowhere_is_told() {
    let sidecars = ["myapp".to_owned(), "nobody".to_owned()];
    let mut conversion =
        Conversion { is_native: false, is_wrap: false, sidecars: &sidecars, entrypoints: &[], found: Vec::new() };
    convert("-", &POD.replace("    sidecar: true\n", ""), &mut conversion).unwrap();
    assert_eq!(conversion.missing(), Some("nobody"));
}
