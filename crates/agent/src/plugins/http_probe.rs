//! `http_probe`: asks the app again and again, and tells what it says.
//!
//! Each endpoint has a thread of its own, so that one that does not answer does not hold up the others.

mod course;
mod endpoint;

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};
use pillion_agent_api::{HttpProbe, PluginConfig};

use self::endpoint::Asked;
use crate::plugin::{Context, Plugin, STACK_BYTES};

const NAME: &str = "http_probe";

/// Asks the app, and tells what it says.
#[derive(Debug, Default)]
pub(crate) struct Http {
    start_delay: Duration,
    interval: Duration,
    endpoints: Vec<Asked>,
}

impl Plugin for Http {
    fn name(&self) -> &'static str {
        NAME
    }

    fn config_type(&self) -> &'static str {
        "HttpProbe"
    }

    fn init(&mut self, config: &PluginConfig) -> anyhow::Result<()> {
        let PluginConfig::HttpProbe(config) = config else { bail!("this is not a configuration of {NAME}") };
        let HttpProbe { start_delay_seconds, interval_seconds, endpoints, reassert_seconds: _ } = config;
        self.start_delay = Duration::from_secs(u64::from(*start_delay_seconds));
        // Without a pause between two questions there would be nothing but questions.
        self.interval = Duration::from_secs(u64::from(*interval_seconds).max(1));
        let asked = endpoints.iter().enumerate().map(|(at, endpoint)| {
            Asked::new(format!("{NAME}/{at}"), endpoint).with_context(|| format!("endpoints[{at}]"))
        });
        self.endpoints = asked.collect::<Result<_, _>>()?;
        Ok(())
    }

    fn start(&mut self, context: &Context) -> anyhow::Result<()> {
        let sources: BTreeSet<String> = self.endpoints.iter().map(|asked| asked.source().to_owned()).collect();
        context.board.withdraw_all_but(NAME, &sources);
        if context.stop.wait(self.start_delay) {
            return Ok(());
        }
        let interval = self.interval;
        let (first, others) = self.endpoints.split_first_mut().context("there is no endpoint to ask")?;
        thread::scope(|scope| {
            for asked in others {
                let thread = thread::Builder::new().name(asked.source().to_owned()).stack_size(STACK_BYTES);
                thread.spawn_scoped(scope, move || asked.watch(context, interval))?;
            }
            first.watch(context, interval);
            Ok(())
        })
    }
}
