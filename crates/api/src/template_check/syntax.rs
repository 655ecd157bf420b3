//! Syntaxes of names, keys and paths in pods.

use crate::read::{is_label_key, is_label_value};

/// Instructions for the syntaxes, in the order of their functions.
pub(super) const LABEL_HELP: &str = "use at most 63 lower-case letters, digits and dashes, not at the ends";
pub(super) const SUBDOMAIN_HELP: &str = "use lower-case letters, digits, dashes and dots";
pub(super) const ENV_HELP: &str = "use printable ASCII characters other than =";
pub(super) const KEY_HELP: &str = "use letters, digits, dashes, underscores and dots, not starting with ..";
pub(super) const PORT_HELP: &str =
    "use at most 15 lower-case letters, digits and single dashes, with at least one letter, and no dash at the ends";
pub(super) const RELATIVE_HELP: &str = "write a relative path without ..";
pub(super) const NO_BACKSTEPS_HELP: &str = "write the path without ..";

/// Returns true for a DNS label, such as the name of a volume.
pub fn is_dns_label(text: &str) -> bool {
    let end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= 63 && text.starts_with(end) && text.ends_with(end) && text.chars().all(|c| end(c) || c == '-')
}

/// Returns true for DNS labels joined by dots, such as the name of a Secret. Single labels have no limit of their own.
pub(super) fn is_dns_subdomain(text: &str) -> bool {
    let end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_label =
        |label: &str| label.starts_with(end) && label.ends_with(end) && label.chars().all(|c| end(c) || c == '-');
    text.len() <= 253 && text.split('.').all(is_label)
}

/// Returns true for the start of a DNS subdomain: a dash may come last.
pub(super) fn is_dns_subdomain_prefix(text: &str) -> bool {
    match text.strip_suffix('-') {
        // The API server replaces the last two characters by a letter.
        Some(rest) if !rest.is_empty() => {
            let kept: String = rest.chars().take(rest.chars().count() - 1).collect();
            is_dns_subdomain(&format!("{kept}a"))
        }
        _ => is_dns_subdomain(text),
    }
}

pub(super) fn is_env_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=')
}

/// Returns true for a key of a ConfigMap or Secret.
pub(super) fn is_data_key(text: &str) -> bool {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty() && text.len() <= 253 && text.chars().all(is_valid) && text != "." && !text.starts_with("..")
}

pub(super) fn is_port_name(text: &str) -> bool {
    let is_valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    text.len() <= 15
        && text.chars().all(is_valid)
        && text.contains(|c: char| c.is_ascii_lowercase())
        && !text.contains("--")
        && !text.starts_with('-')
        && !text.ends_with('-')
}

pub(super) fn is_header_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

pub(super) fn has_no_backsteps(path: &str) -> bool {
    path.split('/').all(|part| part != "..")
}

/// Returns true for a path below a directory.
pub(super) fn is_relative(path: &str) -> bool {
    !path.starts_with('/') && has_no_backsteps(path)
}

/// Returns true for a path of a file in a volume whose names with a leading `..` are reserved.
pub(super) fn is_file_in_volume(path: &str) -> bool {
    is_relative(path) && !path.starts_with("..")
}

/// Returns true for a signer: a domain of two or more labels, and a path.
pub(super) fn is_signer_name(text: &str) -> bool {
    let Some((domain, path)) = text.split_once('/') else { return false };
    domain.len() <= 253
        && domain.contains('.')
        && domain.split('.').all(is_dns_label)
        && !path.contains('/')
        && text.len() <= 253 + 1 + 253 + 1 + 63
        && path.split('.').all(is_dns_subdomain)
}

/// Returns true for the key of an annotation, in any case.
pub(super) fn is_annotation_key(text: &str) -> bool {
    is_label_key(&text.to_ascii_lowercase())
}

pub(super) fn is_qualified_name(text: &str) -> bool {
    is_label_key(text)
}

pub(super) fn is_value_of_label(text: &str) -> bool {
    is_label_value(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syntaxes_accept_and_reject_what_kubernetes_does() {
        type Syntax = fn(&str) -> bool;
        let long = "a".repeat(64);
        for (is_valid, valid, invalid) in [
            (is_dns_label as Syntax, vec!["a", "a-1"], vec!["", "-a", "a.b", "A", &long]),
            (is_dns_subdomain, vec!["a.b", "a-1.b", &long], vec!["", "a..b", "a_b", ".a"]),
            (is_dns_subdomain_prefix, vec!["a-", "a.b", "ab--"], vec!["-", "", "AB-"]),
            (is_env_name, vec!["A", "1 b", "a.b-c"], vec!["", "A=B", "\u{e9}", "a\n"]),
            (is_data_key, vec!["a", ".a", "A_b-c.d"], vec!["", ".", "..", "..a", "a/b", "a b"]),
            (is_port_name, vec!["http", "a-1"], vec!["", "1", "a--b", "-a", "a-", "HTTP", "a-name-too-long1"]),
            (is_header_name, vec!["X-Probe"], vec!["", "a b", "a_b"]),
            (is_relative, vec!["a/b", "..a", ""], vec!["/a", "a/../b", ".."]),
            (is_file_in_volume, vec!["a/b", "a..b"], vec!["/a", "..a", "a/.."]),
            (is_signer_name, vec!["example.com/a", "a.b/c.d"], vec!["", "example/a", "a.b", "a.b/c/d", "a.b/C"]),
            (is_annotation_key, vec!["Example.com/A"], vec!["", "a/b/c"]),
        ] {
            assert!(valid.iter().all(|text| is_valid(text)), "{valid:?}");
            assert!(!invalid.iter().any(|text| is_valid(text)), "{invalid:?}");
        }
    }
}
