//! What is read, what is left out, and what cannot be read.

use std::fs;
use std::path::Path;

use crate::asking::{CONTAINER, Files, lint, lint_stdin, repository, set};

#[test]
fn folders_documents_and_lists_are_read_and_other_kinds_counted() {
    let files = Files::new(&[
        ("sets/a.yaml", &format!("{}---\nkind: ConfigMap\n---\nkind: Pod\n", set("a", CONTAINER))),
        (
            "sets/deep/b.yml",
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: apps.kruise.io/v1alpha1\n  kind: SidecarSet\n",
        ),
        ("sets/deep/c.json", "{\"kind\": \"SidecarSet\", \"apiVersion\": \"example.com/v1\"}"),
        ("sets/notes.txt", "no"),
    ]);
    insta::assert_snapshot!(files.lint(&["sets"]));
    assert_eq!(
        files.lint(&["sets/deep/c.json"]),
        "status 0\n--- stderr\nno problems in 0 sets; 1 other object ignored\n"
    );
}

#[test]
fn stdin_is_read() {
    assert_eq!(lint_stdin(&set("a", CONTAINER), &["-"]), "status 0\n--- stderr\nno problems in 1 set\n");
    insta::assert_snapshot!(lint_stdin(&set("a", "  mode: Watch\n"), &["-"]));
}

#[test]
fn another_version_is_refused_and_not_read_as_if_it_were_ours() {
    let text = "apiVersion: apps.kruise.io/v1beta1\nkind: SidecarSet\nspec: {}\n---\nkind: SidecarSet\n";
    insta::assert_snapshot!(lint_stdin(text, &["-"]));
}

#[test]
fn what_cannot_be_read_ends_with_status_2() {
    let files = Files::new(&[("a.yaml", "kind: SidecarSet\nspec: [\n"), ("empty/README.md", "")]);
    insta::assert_snapshot!(files.lint(&["a.yaml"]));
    insta::assert_snapshot!(files.lint(&["no.yaml"]));
    insta::assert_snapshot!(files.lint(&["empty"]));
    insta::assert_snapshot!(files.lint(&[]));
}

#[test]
fn examples_are_good() {
    let mut seen = 0;
    for folder in ["examples/sidecarset", "examples/resource-expressions"] {
        for entry in fs::read_dir(repository().join(folder)).expect("the examples are there") {
            let path = Path::new(folder).join(entry.expect("it can be read").file_name());
            if path.extension().is_some_and(|extension| extension == "yaml") {
                // One by one: they are not made to be used together.
                let told = lint(&["--strict", path.to_str().expect("it is text")]);
                // This one shows that a field of a newer Kubernetes is kept, which lint warns about.
                let is_newer = path.ends_with("every-field.yaml") && told.ends_with("1 warning in 1 set\n");
                let is_good = told.starts_with("status 0\n--- stderr\nno problems in ") || is_newer;
                assert!(is_good, "{}: {told}", path.display());
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 15);
}
