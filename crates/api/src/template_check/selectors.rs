//! Labels and label selectors inside templates.

use super::field::{Field, Problems};
use super::syntax::{is_qualified_name, is_value_of_label};

const OPERATORS: [&str; 5] = ["", "In", "NotIn", "Exists", "DoesNotExist"];

pub(super) fn check(selector: &Field<'_>, problems: &mut Problems) {
    check_labels(selector, "matchLabels", problems);
    for requirement in selector.items("matchExpressions") {
        problems.one_of(&requirement, "operator", &OPERATORS);
        let count = requirement.len("values");
        match requirement.text("operator") {
            "In" | "NotIn" if count == 0 => {
                problems.error(requirement.at("values"), "Required value", "give at least one value");
            }
            "Exists" | "DoesNotExist" if count > 0 => {
                problems.error(requirement.at("values"), "the operator takes no values", "remove them");
            }
            _ => {}
        }
        problems.syntax(&requirement, "key", is_qualified_name, "write it as domain/name or name");
        for value in requirement.items("values") {
            check_label_value(&value, problems);
        }
    }
}

/// Checks a map of labels.
pub(super) fn check_labels(parent: &Field<'_>, name: &str, problems: &mut Problems) {
    for (key, value) in parent.entries(name) {
        if !is_qualified_name(key) {
            let message = format!("{key:?} is no key of a label");
            problems.error(value.path.clone(), message, "write it as domain/name or name");
        }
        check_label_value(&value, problems);
    }
}

fn check_label_value(value: &Field<'_>, problems: &mut Problems) {
    if let Some(text) = value.value.as_str().filter(|text| !is_value_of_label(text)) {
        let help = "use at most 63 letters, digits, dashes, underscores and dots";
        problems.error(value.path.clone(), format!("{text:?} is no value of a label"), help);
    }
}
