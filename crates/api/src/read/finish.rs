//! Whether containers that end with the others can.

use serde_json::Value;

use super::Reader;
use crate::Reason;
use crate::container::SidecarContainer;
use crate::finish::FinishMode;
use crate::meaning::Finish;
use crate::problem::FieldPath;
use crate::sidecar_set::SidecarSetSpec;

impl Reader {
    pub(super) fn finish(&mut self, spec: &SidecarSetSpec, finish: Finish, path: &FieldPath) {
        for (at, container) in spec.containers.iter().flatten().enumerate().filter(|(_, it)| is_marked(it)) {
            let path = path.index(at);
            if is_given(container, "restartPolicyRules") {
                self.error(
                    Reason::SidecarRestartPolicy,
                    path.field("restartPolicyRules"),
                    "a sidecar runs until all others have ended and can have no restartPolicyRules",
                    "remove restartPolicyRules or sidecar",
                );
            }
            if finish.mode == FinishMode::Wrap && !is_given(container, "command") {
                let name = container.0.get("name").and_then(Value::as_str).unwrap_or_default();
                self.warning(
                    Reason::WrapWithoutCommand,
                    path,
                    format!("in mode Wrap container {name} needs a command"),
                    "give it the entrypoint of its image, or set finish.mode to Native",
                );
            }
        }
    }
}

fn is_marked(container: &SidecarContainer) -> bool {
    container.0.get("sidecar") == Some(&Value::Bool(true))
}

fn is_given(container: &SidecarContainer, list: &str) -> bool {
    container.0.get(list).and_then(Value::as_array).is_some_and(|items| !items.is_empty())
}
