use super::*;

fn records(root: &Path) -> Records {
    let workspace = Workspace { root: root.to_owned(), target_directory: root.join("cache"), packages: Vec::new() };
    Records::of(&workspace)
}

fn entry(kind: Kind, name: &str, wall: f64, cpu: Option<f64>) -> Entry {
    Entry { kind, name: name.to_owned(), wall, cpu }
}

#[test]
fn reports_become_entries_and_a_bed_gives_its_test_the_cpu_time() {
    let directory = tempfile::tempdir().unwrap();
    let records = records(directory.path());
    records.clear().unwrap();
    let beds = &records.environment()[0].1;
    let bed = |cpu: f64| {
        format!("{{\"test\":\"smoke::one\",\"start_seconds\":4.5,\"stop_seconds\":0.5,\"cpu_seconds\":{cpu}}}\n")
    };
    fs::write(beds, bed(3.0) + &bed(7.25)).unwrap();
    let tool = "{\"kind\":\"tool\",\"name\":\"etcd\",\"wall\":75.0}\n";
    fs::write(&records.environment()[1].1, tool).unwrap();
    let e2e = directory.path().join("target/nextest/e2e");
    fs::create_dir_all(&e2e).unwrap();
    let case = |suite: &str, name: &str| format!("<testcase name=\"{name}\" classname=\"{suite}\" time=\"12.000\"/>");
    let body = case("pillion-e2e::all", "smoke::one") + &case("pillion-api", "read::one");
    fs::write(e2e.join("junit.xml"), body).unwrap();
    assert_eq!(records.collect("e2e").unwrap().len(), 2);
    assert_eq!(records.collect("e2e").unwrap(), [], "the second time there is nothing");
    assert_eq!(
        records.entries().unwrap(),
        [
            entry(Kind::Tool, "etcd", 75.0, None),
            entry(Kind::E2e, "smoke::one", 12.0, Some(7.25)),
            entry(Kind::Test, "pillion-api read::one", 12.0, None),
            entry(Kind::Bed, "start smoke::one", 4.5, None),
            entry(Kind::Bed, "stop smoke::one", 0.5, None),
            entry(Kind::Bed, "start smoke::one", 4.5, None),
            entry(Kind::Bed, "stop smoke::one", 0.5, None),
        ]
    );
    records.clear().unwrap();
    assert_eq!(records.entries().unwrap(), []);
}

#[test]
fn a_run_is_stored_and_printed() {
    let directory = tempfile::tempdir().unwrap();
    let records = records(directory.path());
    records.clear().unwrap();
    let run = Run {
        commit: "0123".to_owned(),
        command: "just ci".to_owned(),
        wall: 13.4,
        stolen: 0.031,
        entries: vec![
            entry(Kind::Step, "lint", 0.5, Some(0.25)),
            entry(Kind::Compile, "serde lib (dev)", 0.5, None),
            entry(Kind::Compile, "kube lib (dev)", 3.0, None),
            entry(Kind::E2e, "smoke::one", 12.0, Some(7.25)),
            entry(Kind::Bed, "start smoke::one", 4.5, None),
            entry(Kind::Bed, "start smoke::two", 5.5, None),
        ],
    };
    records.store(&run).unwrap();
    assert_eq!(records.load().unwrap(), run);
    assert_eq!(
        table::page("A run", &run),
        "# A run

Written by `just ci-times`. Seconds of wall time, and of CPU time where it is known (of an e2e test with its bed and all its processes).

Commit `0123`, command `just ci`: 13 s, in which the host gave 3 % of the CPU time of this machine to others.

## Steps

1 entries, 0 s in all.

| name | wall | CPU |
|---|---:|---:|
| lint | 0.5 | 0.2 |

## Compilation by crate, target and profile

2 entries, 4 s in all.

| name | wall | CPU |
|---|---:|---:|
| kube lib (dev) | 3.0 |  |
| 1 entries of less than 1 s | 0.5 | |

## e2e tests

1 entries, 12 s in all.

| name | wall | CPU |
|---|---:|---:|
| smoke::one | 12.0 | 7.2 |

## Test beds

| what | count | median | least | most | sum |
|---|---:|---:|---:|---:|---:|
| start | 2 | 5.5 | 4.5 | 5.5 | 10 |
"
    );
    assert_eq!(table::slowest(&run, 2), "    12.0 s (7.2 of CPU)  smoke::one\n     3.0 s  kube lib (dev)\n");
}
