//! The same set in the other spelling.

use serde_json::{Value, json};

/// Renames what has two names, and gives the strategy for new pods its other form.
pub(crate) fn of_openkruise(object: &Value) -> Value {
    let mut object = object.clone();
    let spec = object["spec"].as_object_mut().unwrap();
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(policy) = container.get_mut("resourcesPolicy").and_then(Value::as_object_mut) {
                for (ours, theirs) in
                    [("targetContainerMode", "targetContainersMode"), ("resourceExpr", "resourcesExpr")]
                {
                    if let Some(value) = policy.remove(ours) {
                        policy.insert(theirs.to_owned(), value);
                    }
                }
            }
        }
    }
    if let Some(mut strategy) = spec.remove("injectStrategy") {
        let fields = strategy.as_object_mut().unwrap();
        let pin = match (fields.remove("controllerRevision"), fields.remove("revision")) {
            (Some(name), _) => Some(json!({"revisionName": name})),
            (None, Some(name)) => Some(json!({"revisionName": name, "policy": "Partial"})),
            (None, None) => None,
        };
        fields.extend(pin.map(|pin| ("revision".to_owned(), pin)));
        spec.insert("injectionStrategy".to_owned(), strategy);
    }
    object
}
