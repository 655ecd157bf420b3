//! What Kubernetes' own Go library says of quantity texts, and that this crate says the same.
//!
//! `golden` needs no Go. `differential` runs the library: the program named by
//! `PILLION_GO_QUANTITY`, or one it builds itself from `testbed/go/quantity`.
#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the test, unlike the crate, runs a program"
)]

mod texts;
mod verdict;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pillion_generators::settings;
use texts::Texts;
use verdict::Verdict;

const GOLDEN: &str = include_str!("golden.jsonl");

#[test]
fn golden() {
    let verdicts: Vec<Verdict> =
        GOLDEN.lines().filter(|line| !line.starts_with('#')).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(verdicts.len() >= 300, "the golden table has shrunk to {} lines", verdicts.len());
    complain(verdicts.iter().filter_map(Verdict::objection).collect());
}

#[test]
fn differential() {
    let seed = settings::number("PILLION_SEED").unwrap_or_else(settings::seed_from_clock);
    let count = settings::number("PILLION_QUANTITIES").unwrap_or(10_000);
    println!("PILLION_SEED={seed} PILLION_QUANTITIES={count}");
    let texts: Vec<String> = Texts::new(seed).take(usize::try_from(count).unwrap()).collect();
    let verdicts = ask_kubernetes(&texts);
    assert_eq!(verdicts.len(), texts.len(), "one answer for each text");
    for (verdict, text) in verdicts.iter().zip(&texts) {
        assert_eq!(verdict.text_in(), text, "answers come in order");
    }
    let legal = verdicts.iter().filter(|verdict| verdict.is_ok()).count();
    let far = verdicts.iter().filter(|verdict| verdict.is_refused_by_us()).count();
    println!("{legal} of {count} legal to Kubernetes, {far} of them too large for us");
    assert!(
        legal > texts.len() / 2 && legal < texts.len() * 19 / 20 && far < texts.len() / 10,
        "the texts must be legal and malformed in fair shares, and mostly within our range"
    );
    complain(verdicts.iter().filter_map(Verdict::objection).collect());
}

fn complain(objections: Vec<String>) {
    assert!(
        objections.is_empty(),
        "{} differ from Kubernetes:\n{}",
        objections.len(),
        objections.into_iter().take(20).collect::<Vec<_>>().join("\n")
    );
}

fn ask_kubernetes(texts: &[String]) -> Vec<Verdict> {
    let program = program();
    let mut child = Command::new(&program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot run {}: {error}", program.display()));
    let mut stdin = child.stdin.take().unwrap();
    let lines: String = texts.iter().map(|text| serde_json::to_string(text).unwrap() + "\n").collect();
    // The program answers while it reads, so somebody else must write.
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{} failed", program.display());
    String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("PILLION_GO_QUANTITY") {
        return named.into();
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testbed/go/quantity");
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go-quantity");
    let status = Command::new("go")
        .args(["build", "-o"])
        .arg(&built)
        .arg(".")
        .current_dir(&source)
        .status()
        .expect("go is needed: install it, or name a built program in PILLION_GO_QUANTITY");
    assert!(status.success(), "go build failed in testbed/go/quantity");
    built
}
