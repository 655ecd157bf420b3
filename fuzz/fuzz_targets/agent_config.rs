//! Any text as a configuration of the agent: read, or refused in words and with places that are in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pillion_agent_api::{Config, Rights, Variables};

fuzz_target!(|text: &str| {
    let reading = Config::read(text, None);
    assert_eq!(reading.config.is_none(), reading.errors().next().is_some(), "{text}");
    let lines = text.split(['\n', '\r']).count();
    for problem in &reading.problems {
        assert!(problem.line >= 1 && problem.line <= lines + 1 && problem.column >= 1, "{problem:?}");
        assert!(!problem.message.trim().is_empty() && !problem.help.trim().is_empty(), "{problem:?}");
    }
    if let Some(config) = &reading.config {
        // What a fence would allow never holds a line end, which would be a second item of its list.
        let lists = Rights::of(config).fence_data("fuzz");
        let items: usize = lists.values().filter(|list| !list.is_empty()).map(|list| list.lines().count()).sum();
        let rights = Rights::of(config);
        let named = rights.labels.len() + rights.annotations.len() + rights.conditions.len() + rights.values.len();
        assert_eq!(items, named + usize::from(rights.target.is_some()), "{lists:?}");
    }
    let _ = Config::parse(text, Some(&Variables::default()));
});
