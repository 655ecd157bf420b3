//! Logs: one line per event on stderr, as text for people or as JSON for machines.

use std::io;
use std::str::FromStr;

use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

/// How a line of log looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Why there are no logs.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter cannot be read.
    #[error("cannot read the log filter {filter:?}: write it as info, or as info,pillion=debug")]
    Filter {
        /// Its text.
        filter: String,
        /// Why.
        #[source]
        source: ParseError,
    },
    /// There is no such format.
    #[error("there is no log format {0:?}: choose text or json")]
    Format(String),
    /// Logs were set up before.
    #[error("cannot set up logs")]
    Twice(#[source] TryInitError),
}

impl FromStr for LogFormat {
    type Err = LogError;

    fn from_str(text: &str) -> Result<Self, LogError> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            other => Err(LogError::Format(other.to_owned())),
        }
    }
}

/// Sends the logs of this process to stderr. The filter names levels, such as `info` or `info,kube=warn`.
pub fn start(format: LogFormat, filter: &str) -> Result<(), LogError> {
    match format {
        LogFormat::Text => text(filter, io::stderr)?.try_init(),
        LogFormat::Json => json(filter, io::stderr)?.try_init(),
    }
    .map_err(LogError::Twice)
}

fn text(filter: &str, writer: impl Writer) -> Result<impl Subscriber + Send + Sync, LogError> {
    Ok(tracing_subscriber::fmt().with_env_filter(parse(filter)?).with_writer(writer).finish())
}

fn json(filter: &str, writer: impl Writer) -> Result<impl Subscriber + Send + Sync, LogError> {
    let builder = tracing_subscriber::fmt().with_env_filter(parse(filter)?).with_writer(writer);
    // Fields of the event beside its message, where queries look for them.
    Ok(builder.json().flatten_event(true).finish())
}

fn parse(filter: &str) -> Result<EnvFilter, LogError> {
    EnvFilter::try_new(filter).map_err(|source| LogError::Filter { filter: filter.to_owned(), source })
}

trait Writer: for<'a> MakeWriter<'a> + Send + Sync + 'static {}

impl<W: for<'a> MakeWriter<'a> + Send + Sync + 'static> Writer for W {}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use parking_lot::Mutex;
    use serde_json::Value;
    use tracing::subscriber::with_default;
    use tracing::{debug, info};

    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Page {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().clone()).unwrap()
        }

        fn writer(&self) -> impl Fn() -> Self + use<> {
            let page = self.clone();
            move || page.clone()
        }
    }

    fn talk() {
        info!(watch = "pods", objects = 3, "listed");
        debug!("not asked for");
    }

    #[test]
    fn json_is_one_object_per_line_with_its_fields_beside_the_message() {
        let page = Page::default();
        with_default(json("info", page.writer()).unwrap(), talk);
        let lines: Vec<Value> = page.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0]["level"], "INFO");
        assert_eq!(
            (&lines[0]["message"], &lines[0]["watch"], &lines[0]["objects"]),
            (&"listed".into(), &"pods".into(), &3.into())
        );
        assert_eq!(lines[0]["target"], "pillion_runtime::telemetry::logs::tests");
    }

    #[test]
    fn text_has_no_colour_codes_and_heeds_the_filter() {
        let page = Page::default();
        with_default(text("warn,pillion_runtime=debug", page.writer()).unwrap(), talk);
        let written = page.text();
        let lines: Vec<&str> = written.lines().collect();
        assert_eq!(lines.len(), 2);
        let target = "pillion_runtime::telemetry::logs::tests";
        assert!(lines[0].ends_with(&format!("  INFO {target}: listed watch=\"pods\" objects=3")), "{}", lines[0]);
        assert!(lines[1].ends_with(&format!(" DEBUG {target}: not asked for")), "{}", lines[1]);
    }

    #[test]
    fn wrong_words_are_refused_with_the_way_out() {
        let text = |error: LogError| error.to_string();
        assert_eq!(
            text("xml".parse::<LogFormat>().unwrap_err()),
            "there is no log format \"xml\": choose text or json"
        );
        let wrong = start(LogFormat::Text, "pillion=loud").unwrap_err();
        assert_eq!(
            text(wrong),
            "cannot read the log filter \"pillion=loud\": write it as info, or as info,pillion=debug"
        );
    }
}
