//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::signals::NamedSignal;
use crate::units::{parse_duration, parse_size};

/// A program whose behaviour tests can command.
#[derive(Debug, Parser)]
#[command(name = "testapp")]
pub(crate) struct Arguments {
    /// Without a subcommand it is `run`.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run until told to end, and tell over HTTP what happened.
    Run(RunArguments),
    /// Be the sandbox process: reap orphans, end on TERM or INT.
    Pause,
    /// GET a plain http URL and print the body; 1 unless the answer is 200.
    Probe {
        url: String,
        /// Also fail unless the body contains this text.
        #[arg(long)]
        contains: Option<String>,
        /// POST this text instead.
        #[arg(long, value_name = "TEXT")]
        post: Option<String>,
    },
    /// Send a signal to the one other process whose command line contains a text, and print its pid.
    Signal {
        /// Text the command line of the process contains.
        #[arg(long)]
        name: String,
        #[arg(long, value_parser = NamedSignal::parse)]
        signal: NamedSignal,
    },
    /// Print a text and exit with a code.
    EchoExit {
        code: u8,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        text: Vec<String>,
    },
    /// Print a file.
    Cat { path: PathBuf },
}

#[derive(Debug, Parser)]
pub(crate) struct RunArguments {
    /// Name told in the first line and in `/state`.
    #[arg(long, env = "TESTAPP_NAME", default_value = "testapp")]
    pub(crate) name: String,
    /// HTTP port on all addresses; 0 for none; `auto` for a free one on 127.0.0.1.
    #[arg(long, default_value = "0", value_parser = Port::parse)]
    pub(crate) port: Port,
    /// Exit by itself after this long.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) exit_after: Option<Duration>,
    /// Code of the exit that `--exit-after` asks for.
    #[arg(long, value_name = "CODE", default_value_t = 0, requires = "exit_after")]
    pub(crate) exit_code: u8,
    /// File to count starts in; from the one that `--succeed-on` names, `--exit-after` ends with 0.
    #[arg(long, value_name = "PATH", requires = "succeed_on")]
    pub(crate) count_starts: Option<PathBuf>,
    /// See `--count-starts`; the first start is 1.
    #[arg(long, value_name = "NUMBER", requires = "count_starts")]
    pub(crate) succeed_on: Option<usize>,
    /// `/healthz` answers 503 until this long after the start.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) ready_after: Option<Duration>,
    /// Record TERM, but do not end.
    #[arg(long, conflicts_with = "term_delay")]
    pub(crate) ignore_term: bool,
    /// Time between TERM or INT and the exit.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_duration)]
    pub(crate) term_delay: Duration,
    /// Code of the exit that TERM or INT asks for.
    #[arg(long, value_name = "CODE", default_value_t = 0)]
    pub(crate) term_code: u8,
    /// File to load at the start and again on each HUP.
    #[arg(long, value_name = "PATH")]
    pub(crate) watch_file: Option<PathBuf>,
    /// What `/word` answers, until another is posted there.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) word: String,
    /// CPU to burn from the start.
    #[arg(long, value_name = "MILLICORES", default_value_t = 0)]
    pub(crate) burn: u32,
    /// Memory to hold from the start, in bytes or with a suffix Ki, Mi or Gi.
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = parse_size)]
    pub(crate) hold: usize,
    /// File to write at the start; may be given several times.
    #[arg(long, value_name = "PATH=TEXT", value_parser = FileToWrite::parse)]
    pub(crate) write: Vec<FileToWrite>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    None,
    Fixed(u16),
    Auto,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileToWrite {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl Port {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "0" => Ok(Self::None),
            _ => text.parse().map(Self::Fixed).map_err(|_| "expected 0 to 65535, or `auto`".to_owned()),
        }
    }
}

impl FileToWrite {
    fn parse(text: &str) -> Result<Self, String> {
        let (path, text) = text.split_once('=').ok_or("expected PATH=TEXT, for example /tmp/flag=on")?;
        Ok(Self { path: path.into(), text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports() {
        assert_eq!(Port::parse("0"), Ok(Port::None));
        assert_eq!(Port::parse("8080"), Ok(Port::Fixed(8080)));
        assert_eq!(Port::parse("auto"), Ok(Port::Auto));
        assert_eq!(Port::parse("65536"), Err("expected 0 to 65535, or `auto`".to_owned()));
    }

    #[test]
    fn the_first_equals_sign_ends_the_path() {
        assert_eq!(
            FileToWrite::parse("/tmp/settings=a=b"),
            Ok(FileToWrite { path: "/tmp/settings".into(), text: "a=b".to_owned() })
        );
        assert_eq!(FileToWrite::parse("/tmp/settings"), Err("expected PATH=TEXT, for example /tmp/flag=on".to_owned()));
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }
}
