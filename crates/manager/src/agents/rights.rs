//! Whether this installation gives the agents of a configuration what they need.

use std::str::FromStr;

use pillion_agent_api::names::{CONFIG_LABEL, POLICY_PARAMS, RESULTS};
use pillion_agent_api::{Config, Rights, TargetRight};
use pillion_api::Reason;

use crate::names;

/// Names a configuration cannot have: its copy would be in the way of something else.
const TAKEN: [&str; 4] = [POLICY_PARAMS, RESULTS, names::SWITCH, "kube-root-ca.crt"];

/// A field of objects that agents may write, as the chart's `agent.targets` lists it: `group/version/resource/pointer`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedTarget(TargetRight);

/// Why a configuration is not given to anybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) reason: Reason,
    pub(super) message: String,
}

impl Refused {
    pub(super) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

impl FromStr for AllowedTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.splitn(4, '/').collect();
        match parts[..] {
            [group, version, resource, field] if [version, resource, field].iter().all(|part| !part.is_empty()) => {
                let (group, version, resource) = (group.to_owned(), version.to_owned(), resource.to_owned());
                Ok(Self(TargetRight { group, version, resource, pointer: format!("/{field}") }))
            }
            _ => Err("write group/version/resource and a JSON pointer, such as game.kruise.io/v1alpha1/gameservers/spec/opsState".to_owned()),
        }
    }
}

/// What the agents of a configuration get, if it can be given.
pub(super) fn judge(config: &str, text: Option<&str>, allowed: &[AllowedTarget]) -> Result<Rights, Refused> {
    if TAKEN.contains(&config) {
        let message = format!("a configuration cannot be called {config}");
        return Err(Refused::new(Reason::AgentConfigInvalid, message));
    }
    let Some(text) = text else {
        let message =
            format!("there is no ConfigMap {config} with label {CONFIG_LABEL}=true and a configuration in it");
        return Err(Refused::new(Reason::AgentConfigMissing, message));
    };
    let read = Config::parse(text, None).map_err(|problems| {
        let first = problems.first().map(ToString::to_string).unwrap_or_default();
        Refused::new(Reason::AgentConfigInvalid, format!("configuration {config}: {first}"))
    })?;
    let rights = Rights::of(&read);
    match rights.target.as_ref().filter(|target| !allowed.iter().any(|it| it.0 == **target)) {
        None => Ok(rights),
        Some(TargetRight { group, version, resource, pointer }) => {
            let what = format!("{resource}.{group} of version {version} at {pointer}");
            let message = format!("configuration {config} writes {what}, which agent.targets does not list");
            Err(Refused::new(Reason::AgentTargetNotAllowed, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_kind_and_a_field() {
        let target = "game.kruise.io/v1alpha1/gameservers/spec/opsState".parse::<AllowedTarget>().unwrap().0;
        let parts = [&*target.group, &target.version, &target.resource, &target.pointer];
        assert_eq!(parts, ["game.kruise.io", "v1alpha1", "gameservers", "/spec/opsState"]);
        assert_eq!("/v1/nodes/spec/taints".parse::<AllowedTarget>().unwrap().0.group, "");
        for text in ["", "a/v1/b", "a/v1/b/", "a//b/spec", "a/v1//spec"] {
            assert!(text.parse::<AllowedTarget>().is_err(), "{text}");
        }
    }
}
