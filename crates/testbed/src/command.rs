//! Runs a set-up command to its end.

use std::process::Command;

use crate::error::Error;

/// Runs `program` and returns what it printed; anything but success is an error with the whole command line.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<String, Error> {
    let command = || format!("{program} {}", arguments.join(" "));
    let output = Command::new(program).args(arguments).output().map_err(|error| Error::Command {
        command: command(),
        status: "no start".to_owned(),
        output: error.to_string(),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::Command {
        command: command(),
        status: output.status.to_string(),
        output: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}
