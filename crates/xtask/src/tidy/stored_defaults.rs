//! No definition fills a default into what users wrote: a stored default would be drift, and change revisions.

use serde_json::Value;

use crate::finding::Finding;
use crate::source_tree::SourceTree;
use crate::yaml;

/// Looks at the `spec` of every version of every definition in the chart.
pub fn check(tree: &SourceTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in
        tree.texts_with_extension("yaml").filter(|file| file.path.starts_with("charts/pillion/templates/definitions"))
    {
        match yaml::parse(file.text) {
            Err(error) => findings.push(Finding::of_file(file.path, format!("{error:#}"))),
            Ok(definition) => {
                let mut found = Vec::new();
                for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
                    let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
                    defaults(spec, "spec", &mut found);
                }
                findings.extend(found.iter().map(|place| {
                    let message = format!("has a default at {place}: apply it in code, where it is not stored");
                    Finding::of_file(file.path, message)
                }));
            }
        }
    }
    findings
}

fn defaults(schema: &Value, path: &str, found: &mut Vec<String>) {
    if schema.get("default").is_some() {
        found.push(path.to_owned());
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        defaults(schema, &format!("{path}.{name}"), found);
    }
    for below in ["items", "additionalProperties"] {
        if let Some(schema) = schema.get(below) {
            defaults(schema, &format!("{path}[]"), found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, spec: &str) -> Vec<String> {
        let text = format!("spec: {{versions: [{{schema: {{openAPIV3Schema: {{properties: {{spec: {spec}}}}}}}}}]}}\n");
        check(&SourceTree::of_texts([(path, text.as_str())])).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_property_called_default_and_other_files_are_no_findings() {
        let spec = "{properties: {default: {type: string}}}";
        assert_eq!(messages("charts/pillion/templates/definitions/a.yaml", spec), Vec::<String>::new());
        assert_eq!(messages("charts/pillion/values.yaml", "{default: 1}"), Vec::<String>::new());
    }

    #[test]
    fn defaults_are_found_wherever_they_are() {
        let spec = "{properties: {a: {default: 1}, b: {items: {properties: {c: {default: x}}}}, d: {additionalProperties: {default: 2}}}}";
        let found = ["spec.a", "spec.b[].c", "spec.d[]"].map(|place| {
            format!("charts/pillion/templates/definitions/a.yaml: has a default at {place}: apply it in code, where it is not stored")
        });
        assert_eq!(messages("charts/pillion/templates/definitions/a.yaml", spec), found);
    }
}
