//! What was recorded on a real cluster, for tests that have none.

use std::path::PathBuf;
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Set to write recorded fixtures instead of comparing with them.
const UPDATE: &str = "UPDATE_FIXTURES";

/// Compares what was seen with what was recorded earlier. What differs by chance must have been replaced.
pub fn compare(name: &str, seen: &Value) -> Result<()> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
    let seen = format!("{seen:#}\n");
    if env::var_os(UPDATE).is_some() {
        fs::write(&path, &seen)?;
    }
    let recorded = fs::read_to_string(&path).with_context(|| format!("no {}: run with {UPDATE}=1", path.display()))?;
    ensure!(seen == recorded, "{name} is not what was seen: run with {UPDATE}=1 if Kubernetes has changed\n{seen}");
    Ok(())
}
