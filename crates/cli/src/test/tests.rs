use super::*;

const SETS: &str = "apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata: {name: mesh}
spec:
  selector: {matchLabels: {app: web}}
  containers:
  - {name: proxy, image: 'proxy:1', args: [\"a\\nb\"]}
";
const CASES: &str = "name: bytes
cases:
- name: every byte counts
  workload: {apiVersion: v1, kind: Pod, metadata: {name: web, labels: {app: web}}, spec: {containers: [{name: app}]}}
  sets: [mesh.yaml]
  expect: expected.yaml
";

fn test(folder: &Path, update: bool) -> (Ending, String) {
    let arguments = Arguments { paths: vec![folder.to_owned()], update, output: Output::Text, junit: None };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let ending = run(&arguments, &mut Streams { out: &mut out, err: &mut err }).unwrap();
    (ending, String::from_utf8(out).unwrap())
}

#[test]
fn a_changed_byte_fails_the_case_until_it_is_updated() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mesh.yaml"), SETS).unwrap();
    fs::write(folder.path().join(SUITE), CASES).unwrap();
    let expected = folder.path().join("expected.yaml");
    assert_eq!(test(folder.path(), true).0, Ending::Fine);
    let good = fs::read(&expected).unwrap();
    for at in (0..good.len()).step_by(29) {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        fs::write(&expected, &bytes).unwrap();
        let (ending, said) = test(folder.path(), false);
        assert_eq!(ending, Ending::Finding, "{}", String::from_utf8_lossy(&bytes));
        // The line of the suite, of the case, at least one that says what is wrong, and the summary.
        assert!(said.lines().count() >= 4 && said.ends_with("1 case: 0 passed, 1 failed\n"), "{said}");
        assert_eq!(fs::read(&expected).unwrap(), bytes, "it is not written without --update");
    }
    let (ending, said) = test(folder.path(), true);
    assert_eq!(ending, Ending::Fine);
    assert!(said.contains(&format!("wrote {}\n", expected.display())), "{said}");
    assert_eq!(fs::read(&expected).unwrap(), good);
    assert!(!test(folder.path(), true).1.contains("wrote"), "there is nothing left to write");
}
