//! People and parts of the cluster that have nothing to do with Pillion, and the work they do all day. Whatever happens to an
//! installation, every request here must succeed.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use http::Method;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::Api;
use kube::{Client, ResourceExt as _};
use pillion_testbed::{Cluster, Look, apply, until};
use serde_json::{Value, json};

use crate::agents::{PATIENCE, send};
use crate::pods::{container, is_ready, pod};

/// The namespace of the bystanders.
const NAMESPACE: &str = "shop";
const USER: &str = "alice";
const NODE: &str = "real-0";
/// A namespace in which a pod must not start without its sidecars.
const REQUIRED: &str = "strict";
const REQUIRED_PODS: &str = "/api/v1/namespaces/strict/pods";

/// A cluster administrator, an ordinary user of one namespace, the real node, the scheduler and the garbage collector.
pub struct Bystanders {
    cluster: Cluster,
    /// The administrator, the user and the node.
    actors: [Actor; 3],
    scheduler: Actor,
    garbage_collector: Actor,
    node_uid: String,
    rounds: usize,
}

struct Actor {
    name: &'static str,
    client: Client,
}

impl Bystanders {
    /// Creates the namespace, the permissions of the user and the resource that agents write to.
    pub async fn arrive(cluster: &Cluster) -> Result<Self> {
        let admin = cluster.client().await?;
        let rbac = "rbac.authorization.k8s.io";
        let subjects = json!([{"apiGroup": rbac, "kind": "User", "name": USER}]);
        let binding = |name: &str, kind: &str, role: &str| {
            json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": {"name": name, "namespace": NAMESPACE},
                "roleRef": {"apiGroup": rbac, "kind": kind, "name": role}, "subjects": subjects})
        };
        let more = json!({"apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": {"name": "more", "namespace": NAMESPACE},
            "rules": [{"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},
                {"apiGroups": ["game.kruise.io"], "resources": ["gameservers"], "verbs": ["*"]}]});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        let game_servers = crate::agents::game_server_crd();
        for object in
            [namespace, binding("alice", "ClusterRole", "admin"), more, binding("more", "Role", "more"), game_servers]
        {
            apply(&admin, "e2e", &object).await?;
        }
        let served = ["/apis/game.kruise.io/v1alpha1/gameservers", "/api/v1/namespaces/shop/serviceaccounts/default"];
        crate::Manager::until_served(&admin, &served).await?;
        let node = Api::<Node>::all(admin.clone()).get(NODE).await?;
        let user = cluster.client_as(USER, &["system:authenticated"]).await?;
        let kubelet =
            cluster.client_as(&format!("system:node:{NODE}"), &["system:nodes", "system:authenticated"]).await?;
        let actors = [
            Actor { name: "the administrator", client: admin },
            Actor { name: "the user", client: user },
            Actor { name: "the node", client: kubelet },
        ];
        let scheduler = cluster.client_as("system:kube-scheduler", &["system:authenticated"]).await?;
        let groups = ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"];
        let account = "system:serviceaccount:kube-system:generic-garbage-collector";
        let garbage_collector = cluster.client_as(account, &groups).await?;
        Ok(Self {
            cluster: cluster.clone(),
            actors,
            scheduler: Actor { name: "the scheduler", client: scheduler },
            garbage_collector: Actor { name: "the garbage collector", client: garbage_collector },
            node_uid: node.uid().context("a node has a uid")?,
            rounds: 0,
        })
    }

    /// Does all work once: pods by all of them, then objects of these resources, which policies and webhooks match, by people.
    pub async fn work(&mut self, state: &str, resources: &BTreeSet<String>) -> Result<()> {
        self.rounds += 1;
        self.work_on_pods().await.with_context(|| format!("{state}: pods"))?;
        for resource in resources {
            let work = self.work_on(resource).await;
            work.with_context(|| format!("{state}: {resource}"))?;
        }
        Ok(())
    }

    async fn work_on_pods(&self) -> Result<()> {
        let [admin, user, node] = &self.actors;
        let names = ["admin", "user", "node"].map(|name| format!("{name}-{}", self.rounds));
        // A node cannot create a pod that it gets from the API server; the administrator creates the node's pod.
        for (creator, name) in [admin, user, admin].into_iter().zip(&names) {
            let new = pod(name, &[], &[container("app", &[])]);
            creator.send(Method::POST, &pods(""), new).await?;
        }
        self.mirror_pod(node).await?;
        self.bind_and_collect().await?;
        // The real kubelet writes the status, and the real scheduler the binding.
        for name in &names {
            self.until_ready(name).await?;
        }
        for (actor, name) in self.actors.iter().zip(&names) {
            let condition = json!({"type": "example.com/Seen", "status": "True", "lastTransitionTime": null});
            actor
                .send(Method::PATCH, &pods(&format!("/{name}/status")), json!({"status": {"conditions": [condition]}}))
                .await?;
        }
        for (actor, name, user) in [(admin, &names[0], None), (user, &names[1], Some(USER))] {
            actor
                .send(Method::PATCH, &pods(&format!("/{name}")), json!({"metadata": {"labels": {"seen": "yes"}}}))
                .await?;
            let mut kubectl = self.cluster.kubectl(["exec", "--namespace", NAMESPACE, name])?;
            kubectl.args(user.map(|user| format!("--as={user}"))).args(["--", "/testapp", "help"]);
            let output = kubectl.output()?;
            ensure!(output.status.success(), "{} cannot exec: {}", actor.name, String::from_utf8_lossy(&output.stderr));
        }
        for (actor, name) in self.actors.iter().zip(&names) {
            let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": NAMESPACE}});
            actor.send(Method::POST, &pods(&format!("/{name}/eviction")), eviction).await?;
        }
        for (actor, name) in [(admin, "admin"), (user, "user")] {
            let name = format!("{name}-{}-b", self.rounds);
            actor.send(Method::POST, &pods(""), pod(&name, &[], &[container("app", &[])])).await?;
            actor.send(Method::DELETE, &pods(&format!("/{name}")), Value::Null).await?;
        }
        // Where a cluster starts, webhooks and policies matter most.
        let new = pod(&format!("system-{}", self.rounds), &[], &[container("app", &[])]);
        admin.send(Method::POST, "/api/v1/namespaces/kube-system/pods?dryRun=All", new).await
    }

    /// The scheduler binds a pod and writes its status; the garbage collector takes an owner off it and deletes it. The real ones
    /// leave the pod alone: it names another scheduler, and its owner is the node.
    async fn bind_and_collect(&self) -> Result<()> {
        let name = format!("bound-{}", self.rounds);
        let mut new = pod(&name, &[], &[container("app", &[])]);
        new["spec"]["schedulerName"] = "bystander".into();
        new["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": self.node_uid}]);
        self.actors[0].send(Method::POST, &pods(""), new).await?;
        let condition = json!({"type": "PodScheduled", "status": "False", "reason": "SchedulerError"});
        let status = json!({"status": {"conditions": [condition], "nominatedNodeName": NODE}});
        self.scheduler.send(Method::PATCH, &pods(&format!("/{name}/status")), status).await?;
        let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
            "target": {"apiVersion": "v1", "kind": "Node", "name": NODE}});
        self.scheduler.send(Method::POST, &pods(&format!("/{name}/binding")), binding).await?;
        self.until_ready(&name).await?;
        let without_owner = json!({"metadata": {"ownerReferences": null}});
        self.garbage_collector.send(Method::PATCH, &pods(&format!("/{name}")), without_owner).await?;
        self.garbage_collector.send(Method::DELETE, &pods(&format!("/{name}")), Value::Null).await
    }

    /// Labels a namespace as one that requires injection, with a pod in it. The webhook must answer.
    pub async fn require_injection(&self) -> Result<()> {
        let admin = &self.actors[0];
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": REQUIRED, "labels": {"pillion.dev/injection": "required"}}});
        apply(&admin.client, "e2e", &namespace).await?;
        let account = format!("/api/v1/namespaces/{REQUIRED}/serviceaccounts/default");
        crate::Manager::until_served(&admin.client, &[&account]).await?;
        admin.send(Method::POST, REQUIRED_PODS, pod("before", &[], &[container("app", &[])])).await
    }

    /// Without the webhook, the namespace that requires injection rejects new pods and nothing else.
    pub async fn work_where_injection_is_required(&self) -> Result<()> {
        let admin = &self.actors[0];
        let new = pod("after", &[], &[container("app", &[])]);
        let answer = send(&admin.client, Method::POST, REQUIRED_PODS, &new).await?;
        let message = answer.err().context("a pod was created without its sidecars")?;
        ensure!(message.contains("failed calling webhook \"required-pods.pillion.dev\""), "{message}");
        let one = format!("{REQUIRED_PODS}/before");
        admin.send(Method::PATCH, &one, json!({"metadata": {"labels": {"seen": "yes"}}})).await?;
        let condition = json!({"type": "example.com/Seen", "status": "True", "lastTransitionTime": null});
        admin.send(Method::PATCH, &format!("{one}/status"), json!({"status": {"conditions": [condition]}})).await?;
        admin.send(Method::DELETE, &one, Value::Null).await
    }

    /// Creates a pod in the namespace that requires injection, after every object that can reject was removed.
    pub async fn work_where_nothing_rejects(&self) -> Result<()> {
        self.actors[0].send(Method::POST, REQUIRED_PODS, pod("after", &[], &[container("app", &[])])).await
    }

    /// A node creates mirror pods of its static pods, and deletes them.
    async fn mirror_pod(&self, node: &Actor) -> Result<()> {
        let name = format!("mirror-{}", self.rounds);
        let mut mirror = pod(&name, &[], &[container("app", &[])]);
        mirror["metadata"]["annotations"] =
            json!({"kubernetes.io/config.mirror": "0123", "kubernetes.io/config.source": "file"});
        mirror["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": self.node_uid, "controller": true}]);
        mirror["spec"]["nodeName"] = NODE.into();
        node.send(Method::POST, &pods(""), mirror).await?;
        // The real kubelet of this node knows no such static pod, and deletes its mirror pod: it may be faster.
        let path = pods(&format!("/{name}?gracePeriodSeconds=0"));
        match send(&node.client, Method::DELETE, &path, &Value::Null).await? {
            Err(message) if !message.contains("not found") => bail!("the node cannot DELETE {path}: {message}"),
            _ => Ok(()),
        }
    }

    async fn until_ready(&self, name: &str) -> Result<()> {
        let api = Api::<Pod>::namespaced(self.actors[0].client.clone(), NAMESPACE);
        until(&format!("pod {name} to be Ready"), PATIENCE, || async {
            Ok(match api.get(name).await {
                Ok(pod) if is_ready(&pod) => Look::Done(()),
                Ok(pod) => Look::NotYet(json!(pod.status).to_string()),
                Err(error) => Look::NotYet(error.to_string()),
            })
        })
        .await?;
        Ok(())
    }

    /// Creates, patches and deletes an object of a resource.
    async fn work_on(&self, resource: &str) -> Result<()> {
        let Some(work) = work_on(resource)? else { return Ok(()) };
        let [admin, user, _] = &self.actors;
        let people: &[&Actor] = if work.is_namespaced { &[admin, user] } else { &[admin] };
        for (index, actor) in people.iter().enumerate() {
            let name = format!("bystander-{}-{index}", self.rounds);
            let mut object = work.object.clone();
            object["metadata"] = json!({"name": name});
            let one = format!("{}/{name}", work.path);
            actor.send(Method::POST, &work.path, object).await?;
            actor.send(Method::PATCH, &one, json!({"metadata": {"labels": {"seen": "yes"}}})).await?;
            if resource == "serviceaccounts" {
                let token = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
                actor.send(Method::POST, &format!("{one}/token"), token).await?;
            }
            actor.send(Method::DELETE, &one, Value::Null).await?;
        }
        Ok(())
    }
}

impl Actor {
    async fn send(&self, method: Method, path: &str, body: Value) -> Result<()> {
        let answer = send(&self.client, method.clone(), path, &body).await;
        let sent = answer.and_then(|answer| answer.map_err(anyhow::Error::msg));
        sent.map(drop).with_context(|| format!("{} cannot {method} {path}", self.name))
    }
}

fn pods(rest: &str) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/pods{rest}")
}

struct Work {
    path: String,
    is_namespaced: bool,
    object: Value,
}

/// The work on a resource, without its subresource; nothing for pods, which have work of their own, and for Pillion's own
/// resources. A resource that is not here fails: whoever writes a policy for it adds what bystanders do with it.
fn work_on(resource: &str) -> Result<Option<Work>> {
    let namespaced = |api: &str, object| Work {
        path: format!("{api}/namespaces/{NAMESPACE}/{resource}"),
        is_namespaced: true,
        object,
    };
    let of_cluster = |api: &str, object| Work { path: format!("{api}/{resource}"), is_namespaced: false, object };
    let (core, rbac) = ("/api/v1", "/apis/rbac.authorization.k8s.io/v1");
    let admission = "/apis/admissionregistration.k8s.io/v1";
    let object = |api: &str, kind: &str| {
        let version = api.trim_start_matches("/apis/").trim_start_matches("/api/");
        json!({"apiVersion": version, "kind": kind})
    };
    let binding = |kind: &str| {
        let mut binding = object(rbac, kind);
        binding["roleRef"] = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"});
        binding
    };
    Ok(Some(match resource {
        "pods" | "bindings" | "sidecarsets" => return Ok(None),
        "configmaps" => namespaced(core, object(core, "ConfigMap")),
        "serviceaccounts" => namespaced(core, object(core, "ServiceAccount")),
        "roles" => namespaced(rbac, object(rbac, "Role")),
        "rolebindings" => namespaced(rbac, binding("RoleBinding")),
        "clusterroles" => of_cluster(rbac, object(rbac, "ClusterRole")),
        "clusterrolebindings" => of_cluster(rbac, binding("ClusterRoleBinding")),
        "mutatingwebhookconfigurations" => of_cluster(admission, object(admission, "MutatingWebhookConfiguration")),
        "validatingwebhookconfigurations" => of_cluster(admission, object(admission, "ValidatingWebhookConfiguration")),
        "gameservers" => {
            let api = "/apis/game.kruise.io/v1alpha1";
            namespaced(api, object(api, "GameServer"))
        }
        other => bail!("a policy or webhook matches {other}: add what bystanders do with it"),
    }))
}
