//! Any YAML: a set that has a meaning and no error, or one that is refused, in words and with a way out.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pillion_api::{review, template, validate_write};
use serde_json::Value;

fuzz_target!(|text: &str| {
    let Ok(object) = serde_saphyr::from_str::<Value>(text) else { return };
    let judged = review(&object);
    assert_eq!(judged.meaning.is_some(), judged.errors().next().is_none(), "{text}");
    let validation = validate_write(&object);
    assert_eq!(validation.meaning, judged.meaning, "{text}");
    for problem in &validation.problems {
        assert!(!problem.message.trim().is_empty() && !problem.help.trim().is_empty(), "{problem:?}");
        if let Some(excerpt) = &problem.excerpt {
            assert!(excerpt.text.get(excerpt.start..excerpt.end).is_some(), "{problem:?}");
        }
    }
    // What can be read can be written, and means the same.
    if let Some(meaning) = judged.meaning {
        let typed: pillion_api::SidecarSet = serde_json::from_value(object.clone()).expect("it has a meaning");
        assert_eq!(typed.meaning().as_ref(), Ok(&meaning), "{text}");
    }
    if let Some(fields) = object.get("spec").and_then(Value::as_object) {
        let _ = template(fields);
    }
});
