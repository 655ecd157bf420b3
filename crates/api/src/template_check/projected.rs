//! Projected volumes: files from several sources in one directory.

use std::collections::BTreeMap;

use super::field::{Field, Problems};
use super::syntax::{
    RELATIVE_HELP, SUBDOMAIN_HELP, is_annotation_key, is_dns_subdomain, is_file_in_volume, is_signer_name,
};
use super::{selectors, volumes};
use crate::Reason;
use crate::problem::{FieldPath, Problem};

const SOURCES: [&str; 6] =
    ["secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate"];
const KEY_TYPES: [&str; 7] = ["", "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
const SHORTEST_TOKEN_SECONDS: i64 = 10 * 60;
const LONGEST_TOKEN_SECONDS: i64 = 1 << 32;
const SHORTEST_CERTIFICATE_SECONDS: i64 = 60 * 60;
const LONGEST_CERTIFICATE_SECONDS: i64 = 91 * 24 * 60 * 60;
/// The limit of the signers of Kubernetes itself.
const LONGEST_KUBERNETES_CERTIFICATE_SECONDS: i64 = 24 * 60 * 60;
const LARGEST_ANNOTATIONS: usize = 256 * 1024;
const SIGNER_HELP: &str = "write it as example.com/signer-name";

/// Paths of files that were found so far. Two sources must not write one file.
type Paths<'a> = BTreeMap<&'a str, FieldPath>;

pub(super) fn check(volume: &Field<'_>, problems: &mut Problems) {
    volumes::check_default_mode(volume, problems);
    let mut paths = Paths::new();
    for source in volume.items("sources") {
        problems.at_most_one(&source, &SOURCES, "sources");
        check_files(&source, &mut paths, problems);
        if let Some(token) = source.get("serviceAccountToken") {
            problems.in_range(&token, "expirationSeconds", SHORTEST_TOKEN_SECONDS, LONGEST_TOKEN_SECONDS);
            problems.syntax(&token, "path", is_file_in_volume, RELATIVE_HELP);
        }
        if let Some(bundle) = source.get("clusterTrustBundle") {
            check_trust_bundle(&bundle, &mut paths, problems);
        }
        if let Some(certificate) = source.get("podCertificate") {
            check_certificate(&certificate, &mut paths, problems);
        }
    }
}

fn check_files<'a>(source: &Field<'a>, paths: &mut Paths<'a>, problems: &mut Problems) {
    for projection in ["secret", "configMap"].iter().filter_map(|name| source.get(name)) {
        problems.require(&projection, "name");
        for item in projection.items("items") {
            volumes::check_key_to_path(&item, problems);
            check_unique(&item, "path", paths, problems);
        }
    }
    for file in source.get("downwardAPI").map(|it| it.items("items").collect::<Vec<_>>()).unwrap_or_default() {
        volumes::check_downward_file(&file, problems);
        check_unique(&file, "path", paths, problems);
    }
}

fn check_trust_bundle<'a>(bundle: &Field<'a>, paths: &mut Paths<'a>, problems: &mut Problems) {
    let names = ["name", "signerName"];
    if problems.at_most_one(bundle, &names, "names") == 0 {
        problems.error(bundle.path.clone(), "the source names no bundle", "set name or signerName");
    }
    if let Some(name) = bundle.get("name").and_then(|name| name.value.as_str()) {
        let is_valid = match name.rsplit_once(':') {
            Some((_, own)) => is_dns_subdomain(own),
            None => is_dns_subdomain(name),
        };
        if !is_valid {
            let message = format!("{name:?} is not the name of a ClusterTrustBundle");
            problems.error(bundle.at("name"), message, SUBDOMAIN_HELP);
        }
        if bundle.has("labelSelector") {
            problems.error(bundle.at("labelSelector"), "name and labelSelector are both set", "remove labelSelector");
        }
    } else if bundle.has("signerName") {
        check_signer(bundle, problems);
        if let Some(selector) = bundle.get("labelSelector") {
            selectors::check(&selector, problems);
        }
    }
    problems.syntax(bundle, "path", is_file_in_volume, RELATIVE_HELP);
    check_unique(bundle, "path", paths, problems);
}

fn check_signer(parent: &Field<'_>, problems: &mut Problems) {
    problems.require(parent, "signerName");
    problems.syntax(parent, "signerName", is_signer_name, SIGNER_HELP);
}

fn check_certificate<'a>(certificate: &Field<'a>, paths: &mut Paths<'a>, problems: &mut Problems) {
    problems.syntax(certificate, "signerName", is_signer_name, SIGNER_HELP);
    problems.one_of(certificate, "keyType", &KEY_TYPES);
    let domain = certificate.text("signerName").split_once('/').map_or("", |(domain, _)| domain);
    let is_kubernetes = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
    let longest = if is_kubernetes { LONGEST_KUBERNETES_CERTIFICATE_SECONDS } else { LONGEST_CERTIFICATE_SECONDS };
    problems.in_range(certificate, "maxExpirationSeconds", SHORTEST_CERTIFICATE_SECONDS, longest);
    let mut size = 0;
    for (key, value) in certificate.entries("userAnnotations") {
        size += key.len() + value.value.as_str().map_or(0, str::len);
        if !key.contains('/') || !is_annotation_key(key) {
            let message = format!("{key:?} is not a key with a domain");
            problems.error(value.path.clone(), message, "write it as example.com/name");
        }
    }
    if size > LARGEST_ANNOTATIONS {
        let message = format!("annotations of {size} bytes are above {LARGEST_ANNOTATIONS}");
        problems.error(certificate.at("userAnnotations"), message, "remove some of them");
    }
    let files = ["credentialBundlePath", "keyPath", "certificateChainPath"];
    if files.iter().all(|file| certificate.text(file).is_empty()) {
        let message = "the certificate is written to no file";
        problems.error(certificate.path.clone(), message, format!("set one of {}", files.join(", ")));
    }
    for file in files {
        problems.syntax(certificate, file, is_file_in_volume, RELATIVE_HELP);
        check_unique(certificate, file, paths, problems);
    }
}

fn check_unique<'a>(item: &Field<'a>, name: &str, paths: &mut Paths<'a>, problems: &mut Problems) {
    let text = item.text(name);
    if text.is_empty() {
        return;
    }
    if let Some(first) = paths.get(text) {
        let message = format!("two sources write the file {text}");
        let problem = Problem::error(Reason::InvalidContainer, item.at(name), message, "change one of the paths");
        problems.0.push(problem.with_also(first.clone()));
    } else {
        paths.insert(text, item.at(name));
    }
}
