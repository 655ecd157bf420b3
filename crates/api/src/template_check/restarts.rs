//! Restart policies of single containers.

use super::field::{Field, Problems};

const MOST_RULES: usize = 20;
const MOST_EXIT_CODES: usize = 255;

pub(super) fn check(container: &Field<'_>, problems: &mut Problems) {
    problems.one_of(container, "restartPolicy", &["Always", "Never", "OnFailure"]);
    let rules = container.len("restartPolicyRules");
    if rules > 0 && !container.has("restartPolicy") {
        let message = "restartPolicyRules are set without a restartPolicy";
        problems.error(container.at("restartPolicy"), message, "set restartPolicy as well");
    }
    if rules > MOST_RULES {
        let message = format!("Too many: {rules}: must have at most {MOST_RULES} items");
        problems.error(container.at("restartPolicyRules"), message, format!("give at most {MOST_RULES}"));
    }
    for rule in container.items("restartPolicyRules") {
        problems.one_of(&rule, "action", &["", "Restart", "RestartAllContainers"]);
        let Some(codes) = rule.get("exitCodes") else {
            problems.error(rule.at("exitCodes"), "Required value", "set exitCodes");
            continue;
        };
        problems.one_of(&codes, "operator", &["", "In", "NotIn"]);
        let count = codes.len("values");
        if count > MOST_EXIT_CODES {
            let message = format!("Too many: {count}: must have at most {MOST_EXIT_CODES} items");
            problems.error(codes.at("values"), message, format!("give at most {MOST_EXIT_CODES}"));
        }
    }
}
