//! The commands in the docs print what the docs say.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Runs a command as a reader would, with `pillion` in the path; stdout and stderr as they come.
fn run(command: &str) -> String {
    let programs = Path::new(env!("CARGO_BIN_EXE_pillion")).parent().expect("a program is in a folder");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", &format!("{{ {command}\n}} 2>&1")])
        .current_dir(docs().join(".."))
        .env("PATH", path)
        .env_remove("COLUMNS")
        .output()
        .expect("there is a shell");
    String::from_utf8(output.stdout).expect("it prints UTF-8")
}

/// Commands in `console` blocks that begin with `$ pillion`, each with what stands below it.
fn examples(page: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line.strip_prefix("$ ") {
            _ if line.starts_with("```") => inside = line == "```console",
            _ if !inside => {}
            Some(command) => found.push((command.to_owned(), String::new())),
            None => {
                if let Some((_, printed)) = found.last_mut() {
                    printed.push_str(line);
                    printed.push('\n');
                }
            }
        }
    }
    found.retain(|(command, _)| command.starts_with("pillion "));
    found
}

/// The page without the section whose commands ask a cluster; an e2e test runs those.
fn without_a_cluster(page: &str) -> String {
    let sections = page.split("\n## ").filter(|section| !section.starts_with("Five minutes"));
    sections.collect::<Vec<_>>().join("\n## ")
}

#[test]
fn every_command_prints_what_the_page_says() {
    for (page, commands) in [
        ("resource-expressions.md", 14),
        ("preview-and-test.md", 7),
        ("right-sizing/migrate-from-vpa.md", 1),
        ("../README.md", 2),
    ] {
        let text = fs::read_to_string(docs().join(page)).expect("the page is there");
        let examples = examples(&without_a_cluster(&text));
        assert_eq!(examples.len(), commands, "commands found on {page}");
        for (command, printed) in examples {
            assert_eq!(run(&command), printed, "{page}: {command}");
        }
    }
}

#[test]
fn the_picture_is_the_one_the_command_draws() {
    let file = format!("{}/story-5.svg", env!("CARGO_TARGET_TMPDIR"));
    let curve = "0.5*cpu - 0.3*max(0, cpu-4) + 0.3*max(0, cpu-8)";
    run(&format!("pillion expr plot '{curve}' --field limits.cpu --to 12 --svg {file}"));
    let drawn = fs::read_to_string(file).expect("it was drawn");
    assert_eq!(drawn, fs::read_to_string(docs().join("images/story-5.svg")).expect("the picture is there"));
}
