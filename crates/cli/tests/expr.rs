//! `pillion expr` as people see it: every output as it is printed, with its exit status.
//!
//! A changed snapshot is a change users see: look at it, then `cargo insta accept`, and say why in the commit.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

const STORY_5: &str = "0.5*cpu - 0.3*max(0, cpu-4) + 0.3*max(0, cpu-8)";

/// Everything a person sees of a call.
fn pillion(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pillion"));
    let output = command.args(arguments).env_remove("COLUMNS").output().expect("pillion runs");
    let mut seen = format!("status {}\n", output.status.code().expect("it ends by itself"));
    for (name, bytes) in [("stdout", output.stdout), ("stderr", output.stderr)] {
        if !bytes.is_empty() {
            let _ = write!(seen, "--- {name}\n{}", String::from_utf8(bytes).expect("it prints UTF-8"));
        }
    }
    seen
}

fn expr(verb: &str, expression: &str, field: &str, more: &[&str]) -> String {
    pillion(&[&["expr", verb, expression, "--field", field], more].concat())
}

#[test]
fn eval_prints_just_the_quantity() {
    for (expression, field, amount, printed) in [
        ("max(cpu*50%, 50m)", "limits.cpu", "--value=600m", "300m"),
        ("max(cpu*50%, 50m)", "limits.cpu", "--value=60m", "50m"),
        ("max(cpu*50%, 50m)", "limits.cpu", "--unlimited", "unlimited"),
        ("memory*10%", "limits.memory", "--value=128Mi", "13421773"),
        ("memory*50%", "requests.memory", "--value=300Mi", "150Mi"),
        ("-1*cpu + 3", "requests.cpu", "--value=1", "2"),
        (STORY_5, "limits.cpu", "--value=6", "2400m"),
    ] {
        assert_eq!(
            expr("eval", expression, field, &[amount]),
            format!("status 0\n--- stdout\n{printed}\n"),
            "{expression}"
        );
    }
}

#[test]
fn eval_of_a_negative_result_shows_the_amount() {
    insta::assert_snapshot!(expr("eval", "cpu - 2", "limits.cpu", &["--value=500m"]));
    insta::assert_snapshot!(expr("eval", "1 - cpu", "limits.cpu", &["--unlimited", "-o", "json"]));
}

#[test]
fn explain_shows_every_step() {
    insta::assert_snapshot!(expr("explain", STORY_5, "limits.cpu", &["--value=6"]));
    insta::assert_snapshot!(expr("explain", "max(cpu*50%, 50m)", "limits.cpu", &["--unlimited"]));
    insta::assert_snapshot!(expr("explain", "cpu/2", "limits.cpu", &["--value=1", "-o", "json"]));
}

#[test]
fn check_points_at_the_token() {
    insta::assert_snapshot!(expr("check", "max(200MB, memory*10%)", "limits.memory", &[]));
    insta::assert_snapshot!(expr("check", "50%cpu", "limits.cpu", &[]));
    insta::assert_snapshot!(expr("check", "cpu*memory", "limits.cpu", &["-o", "json"]));
}

#[test]
fn check_warns_of_pods_that_would_be_refused() {
    insta::assert_snapshot!(expr("check", "cpu - 2", "limits.cpu", &[]));
    insta::assert_snapshot!(expr("check", "min(cpu, 3 - cpu) + 1", "requests.cpu", &["-o", "json"]));
    insta::assert_snapshot!(expr("check", "max(0, memory - 1Gi)", "limits.memory", &[]));
}

#[test]
fn check_tells_the_shape() {
    insta::assert_snapshot!(expr("check", STORY_5, "limits.cpu", &[]));
}

#[test]
fn plot_draws_in_eighty_columns() {
    let seen = expr("plot", STORY_5, "limits.cpu", &["--to=12"]);
    let widest = seen.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{widest:?}");
    insta::assert_snapshot!(seen);
    insta::assert_snapshot!(expr("plot", "max(memory*20%, 64Mi)", "requests.memory", &["--to=2Gi", "--columns=60"]));
    insta::assert_snapshot!(expr("plot", "cpu - 2", "limits.cpu", &["--from=1", "--to=4"]));
    insta::assert_snapshot!(expr("plot", "100m", "limits.cpu", &["--to=4", "-o", "json"]));
}

#[test]
fn plot_writes_a_picture() {
    let file = format!("{}/curve.svg", env!("CARGO_TARGET_TMPDIR"));
    for (expression, to) in [(STORY_5, "12"), ("cpu - 2", "4")] {
        let seen = expr("plot", expression, "limits.cpu", &["--to", to, "--svg", &file]);
        assert!(seen.ends_with(&format!("--- stderr\nwrote {file}\n")), "{seen}");
        insta::assert_snapshot!(fs::read_to_string(&file).expect("the picture is there"));
    }
}

#[test]
fn wrong_usage_says_what_is_right() {
    insta::assert_snapshot!(expr("plot", "cpu", "limits.cpu", &["--from=4", "--to=1"]));
    insta::assert_snapshot!(expr("eval", "cpu", "limits.gpu", &["--unlimited"]));
    insta::assert_snapshot!(expr("eval", "cpu", "limits.cpu", &["--value=200MB"]));
    insta::assert_snapshot!(expr("eval", "cpu", "limits.cpu", &[]));
}
