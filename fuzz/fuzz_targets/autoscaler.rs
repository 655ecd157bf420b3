//! Any YAML as an autoscaler: what the schema takes can be read, and what is wrong with it is told in words and with a way out.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pillion_api::{VerticalPodAutoscaler, check_autoscaler};
use pillion_rightsize::{Autoscaler, review};
use serde_json::Value;

fuzz_target!(|text: &str| {
    let Ok(object) = serde_saphyr::from_str::<Value>(text) else { return };
    let mut problems = check_autoscaler(&object);
    let typed = serde_json::from_value::<VerticalPodAutoscaler>(object);
    if let Ok(typed) = &typed {
        problems.extend(review(typed));
        let is_usable = Autoscaler::read(typed).is_ok();
        assert!(is_usable || !problems.is_empty(), "{text}");
    }
    for problem in &problems {
        assert!(!problem.message.trim().is_empty() && !problem.help.trim().is_empty(), "{problem:?}");
    }
});
