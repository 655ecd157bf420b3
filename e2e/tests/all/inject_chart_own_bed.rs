//! The chart, by real Helm on a real cluster: what it renders is taken, what it cannot stand beside stops it, what it installs
//! works, and what it leaves is what the docs say.

use std::collections::BTreeSet;
use std::env;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use pillion_e2e::chart::{self, helm, render, said};
use pillion_e2e::leftovers::everything;
use pillion_e2e::manager::NAMESPACE;
use pillion_e2e::pods::{V1, container, is_ready, pod};
use pillion_testbed::{Bed, Cluster, Config, Look, apply, until};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_mins(1);
/// Agents in pods, with all they can be given.
const AGENTS: [&str; 8] = [
    "featureGates.InPodAgent=true",
    "agent.targets[0].group=game.kruise.io",
    "agent.targets[0].version=v1alpha1",
    "agent.targets[0].resource=gameservers",
    "agent.targets[0].pointer=/spec/opsState",
    "agent.listener=true",
    "agent.listenerAccounts[0].namespace=games",
    "agent.listenerAccounts[0].config=sidecar-config",
];
/// What stays of the definitions; the API server makes the services of them.
const DEFINITIONS: [&str; 4] = [
    "CustomResourceDefinition sidecarsets.apps.kruise.io",
    "CustomResourceDefinition hotupdates.pillion.dev",
    "APIService v1alpha1.apps.kruise.io",
    "APIService v1alpha1.pillion.dev",
];

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// kubectl with objects on its standard input.
fn kubectl_with(cluster: &Cluster, arguments: &[&str], objects: &[Value]) -> Result<Output> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let mut child = cluster
        .kubectl(arguments)?
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run kubectl")?;
    child.stdin.take().context("its input is piped")?.write_all(list.to_string().as_bytes())?;
    Ok(child.wait_with_output()?)
}

/// What the API server says to an object when it is asked to be strict and to keep nothing.
async fn dry_run(client: &Client, object: &Value) -> Result<std::result::Result<(), String>> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("/apiVersion").split_once('/').unwrap_or(("", text("/apiVersion")));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
    let api: Api<DynamicObject> = match object.pointer("/metadata/namespace").and_then(Value::as_str) {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let parameters = PatchParams::apply("helm").dry_run().validation_strict();
    match api.patch(text("/metadata/name"), &parameters, &Patch::Apply(object)).await {
        Ok(_) => Ok(Ok(())),
        Err(kube::Error::Api(status)) => Ok(Err(status.message.clone())),
        Err(error) => Err(error.into()),
    }
}

#[tokio::test]
async fn ci_every_object_is_accepted_by_a_strict_dry_run() -> Result<()> {
    let bed = Bed::start(Config::control_plane("chart")).await?;
    let (cluster, client) = (bed.cluster(), bed.client().await?);
    apply(&client, "e2e", &namespace(NAMESPACE)).await?;
    said(helm(cluster, "lint", &[], &["--strict"])?)?;
    let mut counts = Vec::new();
    for layout in ["layout=Separate", "layout=OnePod"] {
        for repair in ["repair.enabled=false", "repair.enabled=true"] {
            let objects = render(cluster, &[layout, repair])?;
            for object in &objects {
                let answer = dry_run(&client, object).await?;
                assert_eq!(answer, Ok(()), "{layout}, {repair}: {} {}", object["kind"], object["metadata"]["name"]);
            }
            counts.push(objects.len());
        }
    }
    assert_eq!(counts, [30, 30, 27, 27]);
    for (layout, expected) in [("layout=Separate", 53), ("layout=OnePod", 46)] {
        let objects = render(cluster, &[&[layout], &AGENTS[..]].concat())?;
        for object in &objects {
            let answer = dry_run(&client, object).await?;
            assert_eq!(answer, Ok(()), "{layout}, agents: {} {}", object["kind"], object["metadata"]["name"]);
        }
        assert_eq!(objects.len(), expected, "{layout}, agents");
    }
    check_webhook_access(cluster, &client).await?;
    // The same with a field nobody knows, or all this proves nothing.
    let mut objects = render(cluster, &[])?;
    let deployment = objects.iter_mut().find(|object| object["kind"] == "Deployment").context("no Deployment")?;
    deployment["spec"]["template"]["spec"]["nosuch"] = 1.into();
    let refusal = dry_run(&client, deployment).await?.expect_err("nobody knows the field");
    assert!(refusal.contains(".spec.template.spec.nosuch: field not declared in schema"), "{refusal}");
    bed.stop().await?;
    Ok(())
}

/// Addresses and certificates of those who may call the webhook reach the objects of the webhook, and no others.
async fn check_webhook_access(cluster: &Cluster, client: &Client) -> Result<()> {
    let values = [
        "networkPolicy.apiServerCIDRs={10.0.0.0/28,fd00::/64}",
        "webhookClients.caConfigMap=api-servers",
        "webhookClients.commonNames={one,other}",
    ];
    let objects = render(cluster, &values)?;
    for object in
        objects.iter().filter(|object| ["NetworkPolicy", "Deployment"].iter().any(|kind| object["kind"] == *kind))
    {
        let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
        assert_eq!(dry_run(client, object).await?, Ok(()), "{kind} {name}");
        let is_webhook = name == "pillion-webhook";
        if kind == "NetworkPolicy" {
            let webhook = json!({"ports": [{"port": "webhook", "protocol": "TCP"}],
                "from": [{"ipBlock": {"cidr": "10.0.0.0/28"}}, {"ipBlock": {"cidr": "fd00::/64"}}]});
            let admin = json!({"ports": [{"port": "admin", "protocol": "TCP"}]});
            let expected = if is_webhook { json!([webhook, admin]) } else { json!([admin]) };
            assert_eq!(object["spec"]["ingress"], expected, "{name}");
        } else {
            let pod = &object["spec"]["template"]["spec"];
            let arguments = pod["containers"][0]["args"].to_string();
            let flags = ["--webhook-client-ca=/etc/pillion/webhook-clients/ca.crt", "--webhook-client-names=one,other"];
            assert!(flags.iter().all(|flag| arguments.contains(flag) == is_webhook), "{name}: {arguments}");
            let volume = json!({"name": "webhook-clients", "configMap": {"name": "api-servers"}});
            assert_eq!(pod["volumes"] == json!([volume]), is_webhook, "{name}: {}", pod["volumes"]);
        }
    }
    Ok(())
}

#[tokio::test]
async fn ci_what_the_chart_does_not_know_is_refused() -> Result<()> {
    let bed = Bed::start(Config::control_plane("chart-values")).await?;
    let cluster = bed.cluster();
    let refused = |value: &str| -> Result<String> {
        let output = helm(cluster, "template", &[value], &[])?;
        ensure!(!output.status.success(), "{value} was taken");
        Ok(stderr(&output))
    };
    let values: Value = serde_saphyr::from_str(&std::fs::read_to_string(chart::folder().join("values.yaml"))?)?;
    // Maps whose keys are the user's.
    let free = ["featureGates", "flags", "nodeSelector", "podLabels", "podAnnotations", "requests", "limits", "labels"];
    let mut places = vec![(String::new(), &values)];
    let mut tried = BTreeSet::new();
    while let Some((place, object)) = places.pop() {
        let refusal = refused(&format!("{place}nosuch=1"))?;
        assert!(refusal.contains("additional properties 'nosuch' not allowed"), "{place}: {refusal}");
        for (key, value) in object.as_object().into_iter().flatten().filter(|(key, _)| !free.contains(&key.as_str())) {
            if value.is_object() {
                places.push((format!("{place}{key}."), value));
            }
        }
        tried.insert(place);
    }
    assert_eq!(
        tried.iter().map(String::as_str).collect::<Vec<_>>(),
        [
            "",
            "affinity.",
            "agent.",
            "agent.resources.",
            "agentController.",
            "agentController.resources.",
            "controller.",
            "controller.resources.",
            "image.",
            "log.",
            "manager.",
            "manager.resources.",
            "networkPolicy.",
            "podDisruptionBudget.",
            "repair.",
            "rightsizer.",
            "rightsizer.resources.",
            "rightsizing.",
            "rollout.",
            "serviceMonitor.",
            "webhook.",
            "webhook.resources.",
            "webhookClients."
        ]
    );
    for (value, why) in [
        ("layout=Both", "value must be one of 'Separate', 'OnePod'"),
        ("mode=Off", "value must be one of 'Inject', 'Observe'"),
        ("featureGates.PodWebhook=maybe", "got string, want boolean"),
        ("webhook.replicas=-1", "minimum"),
        ("image.digest=latest", "does not match pattern"),
        ("agent.targets[0].pointer=/metadata/name", "missing properties"),
        ("agent.listener=yes", "got string, want boolean"),
    ] {
        let refusal = refused(value)?;
        assert!(refusal.contains(why), "{value}: {refusal}");
    }
    let agents = |more: &[&str]| -> Result<String> {
        let output = helm(cluster, "template", &[&AGENTS[..], more].concat(), &[])?;
        ensure!(!output.status.success(), "{more:?} was taken");
        Ok(stderr(&output))
    };
    for (more, why) in [
        (&["agent.targets[0].pointer=/metadata/name"][..], "does not match pattern"),
        (&["agent.listenerAccounts=null"], "agent.listener is true and agent.listenerAccounts is empty"),
        (
            &[
                "agent.targets[1].group=game.kruise.io",
                "agent.targets[1].version=v1alpha1",
                "agent.targets[1].resource=gameservers",
                "agent.targets[1].pointer=/spec/updatePriority",
            ],
            "agent.targets lists gameservers.game.kruise.io twice",
        ),
    ] {
        let refusal = agents(more)?;
        assert!(refusal.contains(why), "{more:?}: {refusal}");
    }
    let old = helm(cluster, "template", &[], &["--kube-version", "1.32.9"])?;
    assert!(stderr(&old).contains("chart requires kubeVersion: >=1.33.0-0"), "{}", stderr(&old));
    bed.stop().await?;
    Ok(())
}

#[tokio::test]
async fn ci_values_arrive_where_they_are_meant() -> Result<()> {
    let bed = Bed::start(Config::control_plane("chart-render")).await?;
    let cluster = bed.cluster();
    let container_of = |values: &[&str], name: &str| -> Result<Value> {
        let objects = render(cluster, values)?;
        let found = objects.iter().find(|object| object["kind"] == "Deployment" && object["metadata"]["name"] == name);
        Ok(found.with_context(|| format!("no Deployment {name}"))?["spec"]["template"]["spec"]["containers"][0].clone())
    };
    let plain = ["--mode=Inject", "--log-format=json", "--log-level=info"];
    let arguments = |roles: &[&str], more: &[&str]| json!([roles, &plain, more].concat());
    let rate = "--updates-per-second=50";
    assert_eq!(container_of(&[], "pillion-webhook")?["args"], arguments(&["webhook"], &[]));
    assert_eq!(container_of(&[], "pillion-controller")?["args"], arguments(&["controller"], &[rate]));
    let one = &["layout=OnePod"];
    assert_eq!(container_of(one, "pillion-manager")?["args"], arguments(&["webhook", "controller"], &[rate]));
    let repair = &["repair.enabled=true", "repair.evictionsPerMinute=7", "featureGates.B=false", "featureGates.A=true"];
    let eviction = ["--recreate-missed", "--evictions-per-minute=7", "--evictions-per-workload=1"];
    let more = &["--feature-gates=A=true,B=false", rate, eviction[0], eviction[1], eviction[2]];
    assert_eq!(container_of(repair, "pillion-controller")?["args"], arguments(&["controller"], more));
    assert_eq!(container_of(repair, "pillion-webhook")?["args"], arguments(&["webhook"], &more[..1]));
    let gate = "--feature-gates=InPodAgent=true";
    let agents =
        [gate, "--agent-targets=game.kruise.io/v1alpha1/gameservers/spec/opsState", "--agent-updates-per-second=10"];
    assert_eq!(container_of(&AGENTS, "pillion-agent-controller")?["args"], arguments(&["agent-controller"], &agents));
    assert_eq!(container_of(&AGENTS, "pillion-webhook")?["args"], arguments(&["webhook"], &[gate]));
    assert_eq!(
        container_of(&[&AGENTS[..], one].concat(), "pillion-manager")?["args"],
        arguments(&["webhook", "controller", "agent-controller"], &[&agents[..], &[rate]].concat())
    );

    let version = env!("CARGO_PKG_VERSION");
    let image = |values: &[&str]| -> Result<Value> { Ok(container_of(values, "pillion-webhook")?["image"].clone()) };
    assert_eq!(image(&[])?, format!("registry.local/pillion/manager:{version}"));
    assert_eq!(image(&["image.repository=a/b", "image.tag=c"])?, "a/b:c");
    let digest = format!("sha256:{}", "0".repeat(64));
    assert_eq!(image(&[&format!("image.digest={digest}")])?, format!("registry.local/pillion/manager@{digest}"));

    let kinds = |values: &[&str], kind: &str| -> Result<usize> {
        Ok(render(cluster, values)?.iter().filter(|object| object["kind"] == kind).count())
    };
    assert_eq!(kinds(&[], "ServiceMonitor")?, 0);
    assert_eq!(kinds(&["serviceMonitor.enabled=true"], "ServiceMonitor")?, 1);
    assert_eq!((kinds(&[], "NetworkPolicy")?, kinds(&["networkPolicy.enabled=false"], "NetworkPolicy")?), (2, 0));
    let budget = "PodDisruptionBudget";
    assert_eq!((kinds(&[], budget)?, kinds(&["podDisruptionBudget.enabled=false"], budget)?), (2, 0));
    bed.stop().await?;
    Ok(())
}

/// Does what a line of the instructions says, in a folder, with the cluster's kubectl.
fn follow(cluster: &Cluster, folder: &Path, line: &str) -> Result<()> {
    let kubectl = cluster.kubectl([""; 0])?;
    let programs = Path::new(kubectl.get_program()).parent().context("kubectl is in a folder")?;
    let path = env::join_paths(
        [programs.to_path_buf()].into_iter().chain(env::split_paths(&env::var_os("PATH").unwrap_or_default())),
    )?;
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", line])
        .current_dir(folder)
        .env("PATH", path)
        .env("KUBECONFIG", cluster.kubeconfig())
        .output()?;
    ensure!(output.status.success(), "{line}: {}", stderr(&output));
    Ok(())
}

#[tokio::test]
async fn ci_installing_beside_openkruise_stops_with_instructions_that_work() -> Result<()> {
    let bed = Bed::start(Config::control_plane("chart-kruise")).await?;
    let (cluster, client) = (bed.cluster(), bed.client().await?);
    let install = || helm(cluster, "install", &[], &["--create-namespace"]);

    // Its webhook is there, also before it has made its definitions.
    let registration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "kruise-mutating-webhook-configuration"}});
    apply(&client, "e2e", &registration).await?;
    let refusal = stderr(&install()?);
    let why = "OpenKruise runs in this cluster (MutatingWebhookConfiguration kruise-mutating-webhook-configuration): both would inject into the same pods\n\nnothing was changed.";
    assert!(refusal.contains(why), "{refusal}");
    let kubectl = cluster
        .kubectl(["delete", "mutatingwebhookconfiguration", "kruise-mutating-webhook-configuration"])?
        .output()?;
    ensure!(kubectl.status.success(), "{}", stderr(&kubectl));

    // Its definition stayed, with a set.
    let mut definition: Value = pillion_api::sidecar_set_crd();
    definition["metadata"]["labels"] = json!({"app.kubernetes.io/part-of": "kruise"});
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    apply(&client, "e2e", &definition).await?;
    let set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "theirs"},
        "spec": {"selector": {"matchLabels": {"app": "shop"}}, "containers": [{"name": "proxy", "image": V1}]}});
    until("the set to be stored", PATIENCE, || async {
        Ok(match apply(&client, "e2e", &set).await {
            Ok(_) => Look::Done(()),
            Err(error) => Look::NotYet(error.to_string()),
        })
    })
    .await?;
    let refusal = stderr(&install()?);
    let why = "a definition of SidecarSet that is not Pillion's is in this cluster (sidecarsets.apps.kruise.io): it would drop fields that Pillion knows\n\nnothing was changed.";
    assert!(refusal.contains(why), "{refusal}");
    let listed = helm(cluster, "status", &[], &[])?;
    assert!(!listed.status.success(), "a release was recorded");

    let folder = cluster.logs().join("move");
    std::fs::create_dir_all(&folder)?;
    let steps: Vec<&str> =
        refusal.lines().filter_map(|line| line.trim().split_once(". kubectl ")).map(|step| step.1).collect();
    assert_eq!(steps.len(), 2, "{refusal}");
    for step in steps {
        follow(cluster, &folder, &format!("kubectl {step}"))?;
    }
    let notes = said(install()?)?;
    assert!(
        notes.contains("kubectl --namespace pillion-system rollout status deployment/pillion-webhook\n  pillion check"),
        "{notes}"
    );
    until("the set to be applied again", PATIENCE, || async {
        Ok(match follow(cluster, &folder, "kubectl apply -f sidecarsets.yaml") {
            Ok(()) => Look::Done(()),
            Err(error) => Look::NotYet(error.to_string()),
        })
    })
    .await?;
    let output =
        cluster.kubectl(["get", "sidecarset", "theirs", "-o", "jsonpath={.spec.containers[0].name}"])?.output()?;
    assert_eq!(String::from_utf8(output.stdout)?, "proxy");
    bed.stop().await?;
    Ok(())
}

/// Waits until the API server has collected what belonged to what is gone, and says what is more than before.
async fn left(client: &Client, before: &BTreeSet<String>, expected: &[&str]) -> Result<()> {
    let expected: BTreeSet<String> = expected.iter().copied().map(str::to_owned).collect();
    until("nothing but what the docs say to be left", PATIENCE, || async {
        Ok(match everything(client).await {
            Ok(now) if now.difference(before).cloned().collect::<BTreeSet<_>>() == expected => Look::Done(()),
            Ok(now) => Look::NotYet(format!("{:?}", now.difference(before).collect::<Vec<_>>())),
            Err(error) => Look::NotYet(error.to_string()),
        })
    })
    .await?;
    Ok(())
}

/// Waits until a role of people has exactly these verbs on sets.
async fn people_may(client: &Client, role: &str, verbs: &[&str]) -> Result<()> {
    let roles = Api::<ClusterRole>::all(client.clone());
    until(&format!("the role {role} to know sets"), PATIENCE, || async {
        let rules = roles.get(role).await.ok().and_then(|role| role.rules).unwrap_or_default();
        let of_sets = rules.iter().filter(|rule| rule.resources.iter().flatten().any(|it| it == "sidecarsets"));
        let found: BTreeSet<&str> = of_sets.flat_map(|rule| rule.verbs.iter().map(String::as_str)).collect();
        Ok(if found.iter().eq(verbs) { Look::Done(()) } else { Look::NotYet(format!("{found:?}")) })
    })
    .await?;
    Ok(())
}

/// Installs, injects into a pod of the real node, and uninstalls.
fn latest_revision(cluster: &Cluster, set: &str) -> Result<String> {
    let output =
        cluster.kubectl(["get", "sidecarset", set, "--output", "jsonpath={.status.latestRevision}"])?.output()?;
    Ok(String::from_utf8(output.stdout)?)
}

async fn comes_works_and_goes(layout: &str, deployments: &[&str]) -> Result<()> {
    let bed = Bed::start(Config::control_plane("chart-install").with_node()).await?;
    let (cluster, client) = (bed.cluster(), bed.client().await?);
    let shop = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "shop", "labels": {"pillion.dev/injection": "required"}}});
    let ours = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    for object in [&shop, &ours] {
        apply(&client, "e2e", object).await?;
    }
    // Kubernetes itself makes some objects a moment later.
    until("the namespaces to be filled", PATIENCE, || async {
        let now = everything(&client).await.unwrap_or_default();
        let there = ["shop", NAMESPACE].iter().all(|namespace| {
            ["ServiceAccount {}/default", "ConfigMap {}/kube-root-ca.crt"]
                .iter()
                .all(|it| now.contains(&it.replace("{}", namespace)))
        });
        Ok(if there { Look::Done(()) } else { Look::NotYet(format!("{now:?}")) })
    })
    .await?;
    let before = everything(&client).await?;

    let notes = said(helm(cluster, "install", &[&format!("layout={layout}")], &["--wait", "--timeout", "120s"])?)?;
    assert!(notes.contains("Pillion 0.1.0 is in namespace pillion-system."), "{notes}");
    let apps = Api::<Deployment>::namespaced(client.clone(), NAMESPACE);
    for name in deployments {
        let status = apps.get(name).await?.status.unwrap_or_default();
        assert_eq!((status.ready_replicas, status.unavailable_replicas), (Some(2), None), "{name}");
    }
    let pods = Api::<Pod>::namespaced(client.clone(), NAMESPACE).list(&ListParams::default()).await?;
    for pod in &pods {
        let class = pod.spec.as_ref().and_then(|spec| spec.priority_class_name.as_deref());
        assert_eq!(class, Some("system-cluster-critical"));
        assert_eq!(pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()), Some("real-0"));
        assert_eq!(
            pod.status
                .iter()
                .flat_map(|it| it.container_statuses.iter().flatten())
                .map(|it| it.restart_count)
                .sum::<i32>(),
            0
        );
    }

    people_may(&client, "view", &["get", "list", "watch"]).await?;
    people_may(&client, "edit", &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"])
        .await?;

    let set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "proxy"},
        "spec": {"selector": {"matchLabels": {"app": "shop"}},
                 "containers": [{"name": "proxy", "image": V1, "args": ["run"], "imagePullPolicy": "Never"}]}});
    apply(&client, "e2e", &set).await?;
    let mut shop = pod("shop", &[], &[container("app", &[])]);
    shop["metadata"]["namespace"] = "shop".into();
    shop["metadata"]["labels"] = json!({"app": "shop"});
    let in_shop = Api::<Pod>::namespaced(client.clone(), "shop");
    // The set reaches the replicas by a watch.
    until("a pod to be injected", PATIENCE, || async {
        let answer = kubectl_with(
            cluster,
            &["create", "--dry-run=server", "--output=json", "--filename", "-"],
            std::slice::from_ref(&shop),
        );
        Ok(match answer {
            Ok(output) if String::from_utf8_lossy(&output.stdout).contains("pillion.dev/decision") => Look::Done(()),
            other => Look::NotYet(format!("{other:?}")),
        })
    })
    .await?;
    apply(&client, "e2e", &shop).await?;
    until("the pod to be Ready with its sidecar", PATIENCE, || async {
        Ok(match in_shop.get("shop").await {
            Ok(pod) if is_ready(&pod) && pod.spec.as_ref().is_some_and(|spec| spec.containers.len() == 2) => {
                Look::Done(())
            }
            other => Look::NotYet(format!("{other:?}")),
        })
    })
    .await?;

    // The rights of the chart are enough for the controller to find the pod and to tell.
    let output = cluster.kubectl(["wait", "--for=condition=Ready", "--timeout=60s", "sidecarset/proxy"])?.output()?;
    ensure!(output.status.success(), "{}", stderr(&output));
    let counted = "jsonpath={.status.conditions[?(@.type=='Ready')].message}";
    let output = cluster.kubectl(["get", "sidecarset", "proxy", "--output", counted])?.output()?;
    assert_eq!(String::from_utf8(output.stdout)?, "1 of 1 pods carry the sidecars");

    let revision = latest_revision(cluster, "proxy")?;
    said(helm(cluster, "uninstall", &[], &["--wait", "--timeout", "120s"])?)?;
    let of_ours =
        [format!("ControllerRevision {NAMESPACE}/{revision}"), format!("Lease {NAMESPACE}/pillion-controller")];
    let stays: Vec<&str> = DEFINITIONS
        .into_iter()
        .chain(["SidecarSet proxy", "Pod shop/shop"])
        .chain(of_ours.iter().map(String::as_str))
        .collect();
    left(&client, &before, &stays).await?;
    // Pods are made as if there had been nothing, and the definition is there for the next installation.
    let mut next = shop.clone();
    next["metadata"]["name"] = "next".into();
    apply(&client, "e2e", &next).await?;
    assert_eq!(in_shop.get("next").await?.spec.map(|spec| spec.containers.len()), Some(1));
    said(helm(cluster, "install", &[&format!("layout={layout}")], &[])?)?;
    bed.stop().await?;
    Ok(())
}

#[tokio::test]
async fn ci_installed_with_separate_roles_it_works_and_leaves_what_the_docs_say() -> Result<()> {
    comes_works_and_goes("Separate", &["pillion-webhook", "pillion-controller"]).await
}

/// In ci: `ci_installed_with_separate_roles_it_works_and_leaves_what_the_docs_say`; objects of the other layout by
/// `ci_every_object_is_accepted_by_a_strict_dry_run`.
#[tokio::test]
async fn nightly_installed_as_one_pod_it_works_and_leaves_what_the_docs_say() -> Result<()> {
    comes_works_and_goes("OnePod", &["pillion-manager"]).await
}
