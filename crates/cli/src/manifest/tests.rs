//! Manifests as people and programs write them.

use std::fmt::Write as _;
use std::os::unix::fs::symlink;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn manifests(text: &str) -> Vec<Manifest> {
    parse("a.yaml", text.as_bytes()).unwrap()
}

fn one(text: &str) -> Manifest {
    let mut found = manifests(text);
    assert_eq!(found.len(), 1, "{text}");
    found.remove(0)
}

fn refusal(text: &str) -> String {
    parse("a.yaml", text.as_bytes()).unwrap_err().to_string()
}

/// The characters a place points at.
fn pointed(manifest: &Manifest, place: Place) -> String {
    manifest.line(place.line).chars().skip(place.column - 1).take(place.length).collect()
}

fn at(manifest: &Manifest, path: &FieldPath) -> (usize, usize, String) {
    at_place(manifest, manifest.place(path))
}

fn at_place(manifest: &Manifest, place: Place) -> (usize, usize, String) {
    (place.line, place.column, pointed(manifest, place))
}

const SET: &str = "\
# A set.
apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata:
  name: \"mesh\"
spec:
  selector:
    matchLabels: {app: web}
  containers:
    - name: proxy
      image: 'proxy:1'   # pinned
      env: []
    - {name: é, image: b}
  volumes:
";

#[test]
fn a_manifest_tells_what_it_is() {
    let set = one(SET);
    assert_eq!(
        (set.file.as_str(), set.api_version(), set.kind(), set.name(), set.namespace()),
        ("a.yaml", "apps.kruise.io/v1alpha1", "SidecarSet", "mesh", "")
    );
    assert_eq!(one("{metadata: {namespace: shop, name: 5}}").namespace(), "shop");
    assert_eq!(one("- a\n").kind(), "");
    assert_eq!(set.value["spec"]["containers"][0], json!({"name": "proxy", "image": "proxy:1", "env": []}));
}

#[test]
fn a_field_is_pointed_at() {
    let set = one(SET);
    let spec = FieldPath::of("spec");
    let containers = spec.field("containers");
    for (path, line, column, text) in [
        (FieldPath::of("metadata.name"), 5, 9, "\"mesh\""),
        (containers.index(0).field("image"), 11, 14, "'proxy:1'"),
        (containers.index(1).field("image"), 13, 24, "b"),
        (containers.index(1), 13, 7, "{"),
        (containers.index(0), 10, 7, "name: proxy"),
        (containers.index(0).field("env"), 12, 7, "env"),
        (spec.fields("selector.matchLabels").key("app"), 8, 24, "web"),
        (containers, 9, 3, "containers"),
        (spec.field("volumes"), 14, 3, "volumes"),
        (FieldPath::root(), 2, 1, "apiVersion: apps.kruise.io/v1alpha1"),
    ] {
        assert_eq!(at(&set, &path), (line, column, text.to_owned()), "{path}");
    }
}

#[test]
fn what_does_not_exist_is_pointed_at_by_its_nearest_parent() {
    let set = one(SET);
    let spec = FieldPath::of("spec");
    for (path, line, column, text) in [
        (spec.field("containers").index(0).fields("resources.limits"), 10, 7, "name: proxy"),
        (spec.field("containers").index(7).field("name"), 9, 3, "containers"),
        (spec.field("selector").index(0), 7, 3, "selector"),
        (spec.field("nothing"), 6, 1, "spec"),
        (FieldPath::of("status"), 2, 1, "apiVersion: apps.kruise.io/v1alpha1"),
    ] {
        assert_eq!(at(&set, &path), (line, column, text.to_owned()), "{path}");
    }
}

#[test]
fn a_key_is_pointed_at_where_it_exists() {
    let set = one(SET);
    let containers = FieldPath::of("spec.containers");
    for (path, line, text) in [
        (FieldPath::of("metadata.name"), 5, "name"),
        (containers.index(1).field("name"), 13, "name"),
        (containers.index(1).field("resources"), 13, "{"),
        (FieldPath::of("spec.mode"), 6, "spec"),
    ] {
        let place = set.key_place(&path);
        assert_eq!((place.line, pointed(&set, place)), (line, text.to_owned()), "{path}");
    }
}

#[test]
fn an_object_within_another_keeps_its_places() {
    let path = FieldPath::of("spec.containers").index(0);
    let container = one(SET).within(&path).unwrap();
    assert_eq!((container.file.as_str(), &container.value["image"]), ("a.yaml", &json!("proxy:1")));
    assert_eq!(at(&container, &FieldPath::of("image")), (11, 14, "'proxy:1'".to_owned()));
    assert!(one(SET).within(&path.field("nothing")).is_none());
}

#[test]
fn values_are_read_as_kubectl_reads_them() {
    // Each as `kubectl patch --local -o json` prints it.
    for (text, value) in [
        ("yes", json!(true)),
        ("y", json!(true)),
        ("Off", json!(false)),
        ("'yes'", json!("yes")),
        ("0777", json!(511)),
        ("0x10", json!(16)),
        ("1_000", json!(1000)),
        ("1e3", json!(1000)),
        ("1.0", json!(1)),
        ("-0.0", json!(0)),
        ("0.5", json!(0.5)),
        ("1e30", json!(1e30)),
        ("12e03", json!(12000)),
        ("100m", json!("100m")),
        ("50%", json!("50%")),
        ("max(cpu, 1)", json!("max(cpu, 1)")),
        ("1:30", json!("1:30")),
        ("2001-01-01", json!("2001-01-01")),
        ("~", json!(null)),
        ("", json!(null)),
        ("\"\"", json!("")),
        ("!!str 5", json!("5")),
        ("!!binary aGk=", json!("hi")),
        (r#""\ud83d\ude00\/""#, json!("😀/")),
        ("|\n  a\n  b\n", json!("a\nb\n")),
        (">-\n  a\n  b\n", json!("a b")),
    ] {
        assert_eq!(one(&format!("v: {text}\n")).value, json!({"v": value}), "{text}");
    }
    assert_eq!(one("{on: a, 3: b, 1.5: c, -2: d}").value, json!({"true": "a", "3": "b", "1.5": "c", "-2": "d"}));
}

#[test]
fn anchors_and_merges_are_where_their_text_is() {
    let manifest = one("a: &x\n  k: one\n  j: two\nb: *x\nc:\n  <<: *x\n  k: three\n");
    assert_eq!(
        manifest.value,
        json!({"a": {"k": "one", "j": "two"}, "b": {"k": "one", "j": "two"}, "c": {"k": "three", "j": "two"}})
    );
    assert_eq!(at(&manifest, &FieldPath::of("b.k")), (2, 6, "one".to_owned()));
    assert_eq!(at(&manifest, &FieldPath::of("c.k")), (7, 6, "three".to_owned()));
    assert_eq!(at(&manifest, &FieldPath::of("c.j")), (3, 6, "two".to_owned()));
}

#[test]
fn documents_that_are_empty_do_not_count() {
    for (text, count) in [
        ("", 0),
        ("# only\n# comments\n", 0),
        ("---\n", 0),
        ("---\n---\n# no\n---\nnull\n", 0),
        ("---\na: 1\n---\n\n---\nb: 2\n...\n", 2),
        ("%YAML 1.1\n---\na: 1\n", 1),
    ] {
        assert_eq!(manifests(text).len(), count, "{text:?}");
    }
    let found = manifests("a: 1\n---\n# no\n---\nb: 2\n");
    assert_eq!(at(&found[1], &FieldPath::of("b")), (5, 4, "2".to_owned()));
}

#[test]
fn ends_of_lines_and_marks_of_windows_do_not_move_places() {
    let manifest = one("\u{feff}a: b\r\nc:\r\n  d: \"x\"\r\n  e: |\r\n    l\r\n    m\r\n");
    assert_eq!(manifest.value, json!({"a": "b", "c": {"d": "x", "e": "l\nm\n"}}));
    assert_eq!(at(&manifest, &FieldPath::of("a")), (1, 4, "b".to_owned()));
    assert_eq!(at(&manifest, &FieldPath::of("c.d")), (3, 6, "\"x\"".to_owned()));
    assert_eq!(at(&manifest, &FieldPath::of("c.e")), (5, 5, "l".to_owned()));
    assert_eq!((manifest.line(3), manifest.line(0), manifest.line(99)), ("  d: \"x\"", "", ""));
}

#[test]
fn json_is_read_too() {
    let manifest = one("{\n\t\"kind\": \"Pod\",\n\t\"spec\": {\"a\": [1, 2]}\n}\n");
    assert_eq!(manifest.value, json!({"kind": "Pod", "spec": {"a": [1, 2]}}));
    assert_eq!(at(&manifest, &FieldPath::of("spec.a").index(1)), (3, 20, "2".to_owned()));
}

#[test]
fn a_list_is_taken_apart() {
    let found = manifests(
        "kind: List\nitems:\n- kind: Pod\n  metadata: {name: a}\n- kind: Job\n---\nkind: PodList\nitems: []\n",
    );
    let kinds: Vec<_> = found.iter().map(|it| (it.kind(), it.name())).collect();
    assert_eq!(kinds, [("Pod", "a"), ("Job", "")]);
    assert_eq!(at(&found[0], &FieldPath::of("metadata.name")), (4, 20, "a".to_owned()));
    assert_eq!(at(&found[1], &FieldPath::of("spec")), (5, 3, "kind: Job".to_owned()));
    // What only looks like a list stays as it is.
    for text in ["kind: List\nitems: 5\n", "kind: Menu\nitems: [{kind: Pod}]\n", "kind: List\n"] {
        assert_eq!(manifests(text).len(), 1, "{text}");
    }
    assert_eq!(one("kind: List\nitems: 5\n").value, json!({"kind": "List", "items": 5}));
}

#[test]
fn what_is_not_yaml_is_refused_with_its_place() {
    for (text, message) in [
        ("a: 1\na: 2\n", "a.yaml:2:1: duplicate mapping key: a not allowed here"),
        ("a:\n  1: x\n  \"1\": y\n", "a.yaml:2:3: the key 1 is given twice"),
        ("a: [1\nb: 2\n", "a.yaml:2:2: illegal placement of ':' indicator"),
        ("a:\n\t- b\n", "a.yaml:2:2: tabs disallowed within this context (block indentation)"),
        ("a: b: c\n", "a.yaml:1:5: mapping values are not allowed in this context"),
        ("a: 1\n---\nb: *no\n", "a.yaml:3:4: reference to unknown value"),
        ("~: x\n", "a.yaml:1:1: invalid type: unit value, expected a text as key"),
        ("? [a]\n: b\n", "a.yaml:1:3: invalid type: sequence, expected a text as key"),
        ("a: .inf\n", "a.yaml:1:4: value `.inf` is not a finite number"),
    ] {
        assert_eq!(refusal(text), message);
    }
    let error = parse("b.yaml", &[b'a', b':', 0xff]).unwrap_err();
    assert_eq!(error.to_string(), "b.yaml is not UTF-8 text: save it as UTF-8");
}

#[test]
fn depth_and_expansion_have_an_end() {
    let nested = |depth: usize| {
        let mut text = String::new();
        for level in 0..depth {
            let _ = writeln!(text, "{:level$}a:", "");
        }
        text
    };
    assert_eq!(manifests(&nested(LIMITS.depth)).len(), 1);
    let too_much = "too much for one file: at most 100 levels and 2000000 values are read";
    assert_eq!(refusal(&nested(LIMITS.depth + 1)), format!("a.yaml:101:101: {too_much}"));
    assert_eq!(refusal(&"[".repeat(100_000)), "a.yaml:1:256: recursion limit exceeded");
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        let _ = writeln!(laughs, "a{level}: &a{level} [{aliases}]");
    }
    let told = refusal(&laughs);
    assert!(told.starts_with("a.yaml:5:") && told.contains("too large or too complex"), "{told}");
}

#[test]
fn a_large_file_is_read() {
    let mut text = String::new();
    for document in 0..1_500 {
        let _ = write!(text, "---\nkind: Pod\nmetadata: {{name: p{document}}}\nspec:\n  containers:\n");
        for container in 0..3 {
            let _ = writeln!(text, "  - name: c{container}\n    image: i");
        }
    }
    let found = manifests(&text);
    assert_eq!((found.len(), found[1_499].name()), (1_500, "p1499"));
    assert_eq!(found[1_499].place(&FieldPath::of("metadata.name")).line, 1_499 * 11 + 3);
}

#[test]
fn folders_are_read_in_the_order_of_their_paths() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir_all(root.join("sets/deep")).unwrap();
    fs::create_dir_all(root.join("sets/.hidden")).unwrap();
    for (file, text) in [
        ("sets/b.yml", "kind: B"),
        ("sets/deep/a.json", "{\"kind\": \"A\"}"),
        ("sets/a.yaml", "kind: First\n---\nkind: Second"),
        ("sets/README.md", "# no"),
        ("sets/.hidden/c.yaml", "kind: C"),
        ("sets/.d.yaml", "kind: D"),
        ("elsewhere.yaml", "kind: Linked"),
    ] {
        fs::write(root.join(file), text).unwrap();
    }
    symlink(root.join("elsewhere.yaml"), root.join("sets/link.yaml")).unwrap();
    symlink(root.join("sets"), root.join("sets/round")).unwrap();
    let kinds = |paths: &[&str]| -> Vec<String> {
        let paths: Vec<_> = paths.iter().map(|path| root.join(path)).collect();
        read(&paths).unwrap().iter().map(|it| it.kind().to_owned()).collect()
    };
    assert_eq!(kinds(&["sets"]), ["First", "Second", "B", "A", "Linked"]);
    assert_eq!(kinds(&["elsewhere.yaml", "sets/b.yml"]), ["Linked", "B"]);
    // A file that is named is read, whatever its name.
    assert_eq!(kinds(&["sets/.d.yaml"]), ["D"]);

    let message = |path: &str| read(&[root.join(path)]).unwrap_err().to_string();
    assert_eq!(message("no.yaml"), format!("cannot read {}/no.yaml", root.display()));
    let told = format!(
        "{}/sets/.hidden/none has no file that ends in .yaml, .yml or .json: name another folder, or a file",
        root.display()
    );
    fs::create_dir(root.join("sets/.hidden/none")).unwrap();
    assert_eq!(message("sets/.hidden/none"), told);
}

/// A text as YAML writes it in quotes of one kind.
fn quoted(text: &str, quote: char) -> String {
    match quote {
        '\'' => text.replace('\'', "\'\'"),
        _ => text.replace('\\', "\\\\").replace('"', "\\\""),
    }
}

proptest! {
    #[test]
    fn a_part_of_a_quoted_text_is_found(
        before in "[a-z0-9 *+(),%é日'\"\\\\]{0,12}", part in "[a-z0-9 *+(),%é日'\"\\\\]{1,6}", after in "[a-z'\"\\\\ ]{0,4}",
        quote in prop::sample::select(vec!['\'', '"']),
    ) {
        let text = format!("{before}{part}{after}");
        let manifest = one(&format!("a:\n  b: {quote}{}{quote} # c\n", quoted(&text, quote)));
        prop_assert_eq!(&manifest.value["a"]["b"], &text);
        let end = before.len() + part.len();
        let place = manifest.part(&FieldPath::of("a.b"), &text, before.len(), end);
        prop_assert_eq!(pointed(&manifest, place), quoted(&part, quote));
    }

    #[test]
    fn a_part_of_a_block_is_found_on_its_line(
        lines in prop::collection::vec("[a-z(][a-z0-9 *+(),%é日'\"]{0,9}[a-z)]", 1..5), which in any::<prop::sample::Index>(),
        header in prop::sample::select(vec!["|", "|-", "|+", ">", ">-", ""]), end in prop::sample::select(vec!["\n", "\r\n"]),
    ) {
        let body = lines.join(&format!("{end}    "));
        let manifest = one(&format!("a:{end}  b: {header}{end}    {body}{end}  c: d{end}"));
        let text = manifest.value["a"]["b"].as_str().unwrap().to_owned();
        let number = which.index(lines.len());
        let start = lines[..number].iter().map(|line| line.len() + 1).sum();
        let place = manifest.part(&FieldPath::of("a.b"), &text, start, start + lines[number].len());
        prop_assert_eq!((place.line, place.column), (3 + number, 5));
        prop_assert_eq!(pointed(&manifest, place), &*lines[number]);
    }
}

#[test]
fn a_part_is_found_where_lines_are_joined() {
    for (written, line) in [
        ("one  \n  two", 2),
        ("\"one \t\n  two\"", 2),
        ("'one\n\n\n  two'", 4),
        ("one\r\n  two", 2),
        ("'one\r\n  two'", 2),
        ("\"on\\\n  e two\"", 2),
        ("\"one \\\r\n  two\"", 2),
        ("\"\\n\\t\\0\\r\\U0001F600\\\"\\/ two\"", 1),
    ] {
        let manifest = one(&format!("a: {written}\n"));
        let text = manifest.value["a"].as_str().unwrap();
        let start = text.find("two").unwrap();
        let place = manifest.part(&FieldPath::of("a"), text, start, start + 3);
        assert_eq!((place.line, pointed(&manifest, place)), (line, "two".to_owned()), "{written}");
    }
}

#[test]
fn every_kind_of_line_end_counts_and_every_place_has_a_width() {
    let manifest = one("a: 1\rb:\r\n  - x\n  -\n  - z\n");
    assert_eq!(manifest.value, json!({"a": 1, "b": ["x", null, "z"]}));
    assert_eq!((manifest.line(1), manifest.line(2)), ("a: 1", "b:"));
    let items = FieldPath::of("b");
    assert_eq!(at(&manifest, &items.index(2)), (5, 5, "z".to_owned()));
    assert_eq!(manifest.place(&items.index(1)).length, 1);
}

#[test]
fn a_part_that_cannot_be_told_is_the_whole_text() {
    let manifest = one("a: &x text\nb: {c: d}\n");
    let place = |path: &str, text: &str| at_place(&manifest, manifest.part(&FieldPath::of(path), text, 1, 2));
    assert_eq!(place("a", "text"), (1, 8, "e".to_owned()));
    assert_eq!(place("a", "another"), (1, 7, "text".to_owned()));
    assert_eq!(place("b", "text"), (2, 1, "b".to_owned()));
    assert_eq!(place("z", "text"), (1, 1, "a: &x text".to_owned()));
    // A block whose lines are further in, and empty lines.
    let manifest = one("a: >\n  one\n\n  two\n    three\n  four\n");
    let text = "one\ntwo\n  three\nfour\n";
    assert_eq!(manifest.value["a"], text);
    for (word, line) in [("one", 2), ("two", 4), ("three", 5), ("four", 6)] {
        let start = text.find(word).unwrap();
        let place = manifest.part(&FieldPath::of("a"), text, start, start + word.len());
        assert_eq!((place.line, pointed(&manifest, place)), (line, word.to_owned()));
    }
}
