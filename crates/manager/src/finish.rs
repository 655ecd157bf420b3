//! How this installation ends sidecars when the other containers of a pod have ended.

use std::sync::Arc;

use pillion_inject::{Agent, Finishing};
use pillion_runtime::gates::Gates;

use crate::gates::SIDECAR_FINISH;
use crate::settings::Settings;

/// Whether it does, and what with.
#[derive(Clone, Debug, Default)]
pub struct Finish(Option<Arc<Option<Agent>>>);

impl Finish {
    /// What a process was told.
    pub fn new(settings: &Settings, gates: &Gates) -> Self {
        let agent = settings.agent_image.as_ref().filter(|image| !image.is_empty()).map(|image| Agent {
            image: image.clone(),
            pull_secrets: settings.agent_pull_secrets.clone(),
            resources: settings.agent_resources.as_pod(),
        });
        Self(gates.is_on(&SIDECAR_FINISH).then(|| Arc::new(agent)))
    }

    /// The same for the deciding function; `None` where it is switched off.
    pub fn finishing(&self) -> Option<Finishing<'_>> {
        self.0.as_ref().map(|agent| Finishing { agent: agent.as_ref().as_ref() })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use serde_json::{Value, json};

    use super::*;
    use crate::gates::GATES;

    fn told(flags: &[&str]) -> Finish {
        let settings = Settings::parse_from(["pillion-manager", "webhook", "--namespace", "here"].iter().chain(flags));
        Finish::new(&settings, &Gates::parse(&GATES, &settings.feature_gates).unwrap())
    }

    #[test]
    fn it_is_off_unless_the_gate_is_on() {
        assert!(told(&[]).finishing().is_none());
        assert!(told(&["--agent-image=agent:1"]).finishing().is_none());
        assert_eq!(told(&["--feature-gates=SidecarFinish=true"]).finishing().unwrap().agent, None);
        assert_eq!(told(&["--feature-gates=SidecarFinish=true", "--agent-image="]).finishing().unwrap().agent, None);
    }

    #[test]
    fn the_agent_is_what_was_set() {
        let on = ["--feature-gates=SidecarFinish=true", "--agent-image=agent:1"];
        let finish = told(&[on[0], on[1], "--agent-pull-secrets=a,b", "--agent-resources=memory=32Mi"]);
        let agent = finish.finishing().unwrap().agent.unwrap().clone();
        assert_eq!((agent.image.as_str(), agent.pull_secrets), ("agent:1", vec!["a".to_owned(), "b".to_owned()]));
        let both = json!({"limits": {"memory": "32Mi"}, "requests": {"memory": "32Mi"}});
        assert_eq!(Value::Object(agent.resources), both);
        let unset = told(&on).finishing().unwrap().agent.unwrap().resources.clone();
        let amounts = json!({"cpu": "50m", "memory": "16Mi"});
        assert_eq!(Value::Object(unset), json!({"limits": amounts, "requests": amounts}));
    }
}
