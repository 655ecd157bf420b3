//! The file with the configuration: read again and again, as the node exchanges it while the agent runs.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use anyhow::Context;
use pillion_agent_api::{Config, PARSE_STACK, Problem, Variables};

use crate::api_server::ApiServer;
use crate::board::app_environment;
use crate::pod::PodIdentity;

/// What a look at the file brought.
#[derive(Debug, PartialEq)]
pub(super) enum News {
    /// Nothing that was not told before.
    Same,
    Good(Config),
    /// What is wrong, to be told once; what was good before goes on.
    Bad(String),
}

/// The file, and what it said last.
pub(super) struct Configuration {
    path: PathBuf,
    api_server: Option<Arc<ApiServer>>,
    pod: Arc<PodIdentity>,
    last: Option<String>,
    /// The last problem with reading it, which is not told again.
    problem: Option<String>,
}

impl Configuration {
    pub(super) fn new(path: &Path, api_server: Option<Arc<ApiServer>>, pod: Arc<PodIdentity>) -> Self {
        Self { path: path.to_owned(), api_server, pod, last: None, problem: None }
    }

    /// Reads it. The content decides, not its time: the node exchanges a link some folders above.
    pub(super) fn look(&mut self) -> News {
        let read = fs::read_to_string(&self.path).with_context(|| format!("cannot read {}", self.path.display()));
        let text = match read {
            Ok(text) if self.last.as_ref() == Some(&text) => return News::Same,
            Ok(text) => text,
            Err(error) => return self.bad(format!("{error:#}")),
        };
        let variables = match self.variables(&text) {
            Ok(variables) => variables,
            // Another look may find the API server.
            Err(error) => return self.bad(format!("cannot fill in ${{POD:…}}: {error:#}")),
        };
        let loaded = load(&text, Some(variables));
        self.last = Some(text);
        match loaded {
            Ok(config) => {
                self.problem = None;
                News::Good(config)
            }
            Err(problem) => self.bad(format!("{} is refused: {problem}", self.path.display())),
        }
    }

    fn bad(&mut self, problem: String) -> News {
        if self.problem.as_ref() == Some(&problem) {
            return News::Same;
        }
        self.problem = Some(problem.clone());
        News::Bad(problem)
    }

    fn variables(&self, text: &str) -> anyhow::Result<Variables> {
        let mut variables = of_environment();
        if let Some(api_server) = self.api_server.as_ref().filter(|_| Variables::of_app_are_used(text)) {
            variables.of_app = app_environment(api_server, &self.pod)?;
        }
        Ok(variables)
    }
}

/// What `${SELF:…}` stands for.
pub(crate) fn of_environment() -> Variables {
    let of_agent =
        env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Variables { of_agent: of_agent.collect(), ..Variables::default() }
}

/// Reads a configuration; says everything that is wrong, one line each.
pub(crate) fn load(text: &str, variables: Option<Variables>) -> Result<Config, String> {
    // A thread of its own gives its stack back; ours would keep what it has touched for ever.
    let text = text.to_owned();
    let parsed = thread::Builder::new()
        .stack_size(PARSE_STACK + 64 * 1024)
        .spawn(move || Config::parse(&text, variables.as_ref()))
        .map_err(|error| error.to_string())?
        .join()
        .map_err(|_| "it cannot be read".to_owned())?;
    parsed.map_err(|problems| problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n  "))
}
