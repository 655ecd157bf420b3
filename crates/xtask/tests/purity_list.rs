//! Clippy itself reads the list that pure crates copy: it knows every path, and the bans bite.

#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;
use std::process::Command;

const MANIFEST: &str = "\
[package]
name = \"pure\"
edition = \"2024\"

[workspace]
";

const IMPURE: &str = "\
//! Does what a pure crate must not.
/// The time.
pub fn now() -> std::time::Duration {
    std::time::SystemTime::now().elapsed().unwrap_or_default()
}
/// The environment.
pub fn home() -> Option<std::ffi::OsString> {
    std::env::var_os(\"HOME\")
}
/// A file.
pub fn passwd() -> Option<String> {
    std::fs::read_to_string(\"/etc/passwd\").ok()
}
/// An unordered map.
pub fn map() -> std::collections::HashMap<u8, u8> {
    std::collections::HashMap::new()
}
";

const PURE: &str = "\
//! Takes and returns values.
/// An ordered map.
pub fn map() -> std::collections::BTreeMap<u8, u8> {
    std::collections::BTreeMap::new()
}
";

/// What clippy says about a crate with this source and the list as its `clippy.toml`.
fn clippy(name: &str, source: &str) -> (Option<i32>, String) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(folder.join("src")).expect("the folder of this test is ours");
    fs::write(folder.join("Cargo.toml"), MANIFEST).expect("the folder of this test is ours");
    fs::write(folder.join("src/lib.rs"), source).expect("the folder of this test is ours");
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("purity-clippy.toml");
    fs::copy(list, folder.join("clippy.toml")).expect("the list is beside the manifest");
    let output = Command::new(env!("CARGO"))
        .args(["clippy", "--offline", "--quiet", "--", "--deny", "warnings"])
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .current_dir(&folder)
        .output()
        .expect("cargo runs");
    (output.status.code(), String::from_utf8(output.stderr).expect("clippy prints text"))
}

#[test]
fn a_pure_crate_passes_without_a_word() {
    assert_eq!(clippy("pure", PURE), (Some(0), String::new()));
}

#[test]
fn an_impure_crate_is_refused_with_the_reason() {
    let (code, told) = clippy("impure", IMPURE);
    assert_eq!(code, Some(101), "{told}");
    for (what, reason) in [
        ("method `std::time::SystemTime::now`", "time is a value: take it as an argument"),
        ("method `std::env::var_os`", "settings are values: take them as arguments"),
        ("method `std::fs::read_to_string`", "files are values: take their content as an argument"),
        ("type `std::collections::HashMap`", "its order is random: use BTreeMap"),
    ] {
        assert!(told.contains(&format!("use of a disallowed {what}")), "{what} in {told}");
        assert!(told.contains(&format!("note: {reason}")), "{reason} in {told}");
    }
}
