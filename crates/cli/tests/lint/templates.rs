//! Templates that the API server would reject in pods.

use crate::asking::{Files, set};

fn lint(container: &str, rest: &str) -> String {
    let start =
        "  containers:\n    - name: proxy\n      image: proxy:1\n      resources: {requests: {cpu: 1, memory: 1Gi}}\n";
    Files::new(&[("set.yaml", &set("a", &format!("{start}{container}{rest}")))]).lint(&["set.yaml"])
}

fn limited() -> String {
    let text = "  containers:\n    - name: proxy\n      image: proxy:1\n      resources:\n        requests: {cpu: 2, memory: 1Gi}\n        limits: {cpu: 1}\n";
    Files::new(&[("set.yaml", &set("a", text))]).lint(&["set.yaml"])
}

#[test]
fn each_template_that_pods_cannot_have_is_an_error() {
    let volume = "  volumes:\n    - name: v\n      emptyDir: {}\n";
    let mount = "      volumeMounts:\n        - name: v\n          mountPath: /v\n";
    let seen = [
        lint("      imagePullPolicy: Foo\n", ""),
        lint("      ports:\n        - containerPort: 99999\n", ""),
        lint("      livenessProbe:\n        periodSeconds: 5\n", ""),
        limited(),
        lint("      env:\n        - name: A=B\n          value: c\n", ""),
        lint(mount, &format!("{volume}      hostPath: {{path: /v}}\n")),
        lint("      volumeMounts:\n        - name: v\n", volume),
        lint("      livenesProbe:\n        tcpSocket: {port: 80}\n", ""),
    ];
    insta::assert_snapshot!(seen.join("\n"));
}
