//! Any text: what asks for a version is read the same when it is written again; versions print as they were; addresses that
//! are taken apart hold nothing that ends a line or a segment.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pillion_agent_api::{Url, Version, Wanted};

fuzz_target!(|text: &str| {
    if let Ok(wanted) = Wanted::parse(text) {
        let written = serde_json::to_string(&wanted).expect("texts are JSON");
        assert_eq!(Wanted::parse(&written).as_ref(), Ok(&wanted), "{text}");
    }
    if let Ok(version) = text.parse::<Version>() {
        assert_eq!(version.to_string(), text);
        assert!(!version.is_below(&version));
    }
    if let Ok(url) = Url::parse(text) {
        assert!(!url.host.contains(['/', '@', '?', '#', ' ']), "{url:?}");
        assert!(url.path.is_empty() || url.path.starts_with('/'), "{url:?}");
        assert!(!text.contains(['\r', '\n']), "{url:?}");
    }
});
