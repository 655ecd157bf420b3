//! The manager: whether it runs, in which version, and what it was told.

use serde_json::Value;

use super::Check;
use super::seen::{Seen, name_of};

pub(super) fn checks(seen: &Seen) -> Vec<Check> {
    let mut all = vec![switch(seen)];
    match &seen.deployments {
        Err(why) => all.push(Check::unread("manager", why)),
        Ok(deployments) if deployments.is_empty() => all.push(Check::warn(
            "manager",
            format!("namespace {} has no Deployment of ours", seen.namespace),
            "name the namespace with --pillion-namespace, unless the manager runs outside the cluster",
        )),
        Ok(deployments) => {
            all.extend(deployments.iter().map(replicas));
            all.extend(deployments.iter().map(version));
            all.extend([mode(seen), gates(seen)]);
        }
    }
    all
}

fn switch(seen: &Seen) -> Check {
    match &seen.switch {
        Err(why) => Check::unread("switch", why),
        Ok(_) if seen.is_off() => {
            Check::warn("switch", "injection is switched off", "`pillion on` switches it on again")
        }
        Ok(_) => Check::ok("switch", "on"),
    }
}

fn replicas(deployment: &Value) -> Check {
    let name = name_of(deployment);
    let wanted = deployment.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
    let ready = deployment.pointer("/status/readyReplicas").and_then(Value::as_u64).unwrap_or(0);
    let message = format!("{name}: {ready} of {wanted} replicas are ready");
    let hint = "look at its pods: kubectl describe and kubectl logs";
    match ready {
        0 => Check::fail("manager", message, hint),
        _ if ready < wanted => Check::warn("manager", message, hint),
        _ => Check::ok("manager", message),
    }
}

fn version(deployment: &Value) -> Check {
    let name = name_of(deployment);
    let ours = env!("CARGO_PKG_VERSION");
    let image =
        deployment.pointer("/spec/template/spec/containers/0/image").and_then(Value::as_str).unwrap_or_default();
    let without_digest = image.split('@').next().unwrap_or_default();
    let last = without_digest.rsplit('/').next().unwrap_or_default();
    match last.split_once(':').map(|(_, tag)| tag.trim_start_matches('v')) {
        Some(tag) if tag == ours => Check::ok("version", format!("{name} is {ours}, as this program")),
        Some(tag) => Check::warn(
            "version",
            format!("{name} is {tag}, this program is {ours}"),
            "use both in one version: they may decide differently",
        ),
        None => Check::ok("version", format!("{name} has an image without a version: {image}")),
    }
}

fn mode(seen: &Seen) -> Check {
    match seen.flag("mode") {
        Some("Observe") => {
            Check::warn("mode", "Observe: no pod is changed", "set mode to Inject when you want them to be")
        }
        _ => Check::ok("mode", "Inject"),
    }
}

fn gates(seen: &Seen) -> Check {
    match seen.flag("feature-gates") {
        None | Some("") => Check::ok("gates", "all as they are by default"),
        Some(gates) => Check::ok("gates", gates),
    }
}
