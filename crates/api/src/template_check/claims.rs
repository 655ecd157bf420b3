//! Volumes of claims, and the claims that a pod creates.

use pillion_quantity::Quantity;

use super::field::{Field, Problems};
use super::resources::quantity_text;
use super::selectors;
use super::syntax::{LABEL_HELP, SUBDOMAIN_HELP, is_annotation_key, is_dns_label, is_dns_subdomain};

const ACCESS_MODES: [&str; 4] = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"];
const LARGEST_ANNOTATIONS: usize = 256 * 1024;

pub(super) fn check(volume: &Field<'_>, problems: &mut Problems) {
    let Some(source) = volume.get("ephemeral") else { return };
    let Some(template) = source.get("volumeClaimTemplate") else {
        problems.error(source.at("volumeClaimTemplate"), "Required value", "describe the claim");
        return;
    };
    if let Some(metadata) = template.get("metadata") {
        check_metadata(&metadata, problems);
    }
    if let Some(spec) = template.get("spec") {
        check_spec(&spec, problems);
    }
}

fn check_metadata(metadata: &Field<'_>, problems: &mut Problems) {
    for (key, value) in metadata.value.as_object().into_iter().flatten() {
        // The API server takes the zero value of a field that is no pointer for an absent field.
        let is_empty = value.is_null()
            || value.as_str().is_some_and(str::is_empty)
            || key == "generation" && value.as_i64() == Some(0);
        if !["annotations", "labels"].contains(&key.as_str()) && !is_empty {
            problems.error(metadata.at(key), format!("{key} cannot be set"), "remove it: a template has no such field");
        }
    }
    selectors::check_labels(metadata, "labels", problems);
    let mut size = 0;
    for (key, value) in metadata.entries("annotations") {
        size += key.len() + value.value.as_str().map_or(0, str::len);
        if !is_annotation_key(key) {
            let message = format!("{key:?} is no key of an annotation");
            problems.error(value.path.clone(), message, "write it as domain/name or name");
        }
    }
    if size > LARGEST_ANNOTATIONS {
        let message = format!("annotations of {size} bytes are above {LARGEST_ANNOTATIONS}");
        problems.error(metadata.at("annotations"), message, "remove some of them");
    }
}

fn check_spec(spec: &Field<'_>, problems: &mut Problems) {
    problems.require(spec, "accessModes");
    let mut modes = Vec::new();
    for mode in spec.items("accessModes") {
        let Some(text) = mode.value.as_str() else { continue };
        if ACCESS_MODES.contains(&text) {
            modes.push(text);
        } else {
            let help = format!("use one of {}", ACCESS_MODES.join(", "));
            problems.error(mode.path.clone(), format!("Unsupported value: {text:?}"), help);
        }
    }
    if modes.contains(&"ReadWriteOncePod") && modes.iter().any(|mode| *mode != "ReadWriteOncePod") {
        let message = "ReadWriteOncePod is set together with other modes";
        problems.error(spec.at("accessModes"), message, "remove the other modes");
    }
    if let Some(selector) = spec.get("selector") {
        selectors::check(&selector, problems);
    }
    check_storage(spec, problems);
    for class in ["storageClassName", "volumeAttributesClassName"] {
        problems.syntax(spec, class, is_dns_subdomain, SUBDOMAIN_HELP);
    }
    problems.one_of(spec, "volumeMode", &["Block", "Filesystem"]);
    check_data_sources(spec, problems);
}

fn check_storage(spec: &Field<'_>, problems: &mut Problems) {
    let requests = spec.get("resources").and_then(|resources| resources.get("requests"));
    let path = spec.at("resources").field("requests").key("storage");
    let Some(storage) = requests.and_then(|requests| requests.get("storage")) else {
        problems.error(path, "Required value", "set resources.requests.storage");
        return;
    };
    let text = quantity_text(storage.value);
    if text.parse::<Quantity>().is_ok_and(|quantity| quantity <= Quantity::ZERO) {
        problems.error(path, format!("{text} is not above 0"), "write a size, such as 1Gi");
    }
}

fn check_data_sources(spec: &Field<'_>, problems: &mut Problems) {
    let names = ["dataSource", "dataSourceRef"];
    for source in names.iter().filter_map(|name| spec.get(name)) {
        problems.syntax(&source, "apiGroup", is_dns_subdomain, SUBDOMAIN_HELP);
        problems.syntax(&source, "namespace", is_dns_label, LABEL_HELP);
        let kind = source.text("kind");
        if source.text("apiGroup").is_empty() && !kind.is_empty() && kind != "PersistentVolumeClaim" {
            let message = format!("{kind} is of no API group");
            problems.error(source.at("kind"), message, "set apiGroup, or write PersistentVolumeClaim");
        }
    }
    let [Some(source), Some(reference)] = names.map(|name| spec.get(name)) else { return };
    let is_same = ["apiGroup", "kind", "name"].iter().all(|name| {
        let [of_source, of_reference] = [&source, &reference].map(|it| it.get(name).map(|field| field.value));
        of_source == of_reference
    });
    if !reference.text("namespace").is_empty() || !is_same {
        let message = "dataSource and dataSourceRef are not the same";
        problems.error(spec.at("dataSource"), message, "keep dataSourceRef");
    }
}
