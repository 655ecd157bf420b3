//! Any text: what parses, prints as a text of the same value, and that text prints as itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pillion_quantity::{Quantity, Resource};

fuzz_target!(|text: &str| {
    let Ok(quantity) = text.parse::<Quantity>() else { return };
    let printed = quantity.to_string();
    let again: Quantity = printed.parse().expect("what was printed can be read");
    assert_eq!(again, quantity, "{text} printed as {printed}");
    assert_eq!(again.to_string(), printed, "{text} is printed in two ways");
    for resource in [Resource::Cpu, Resource::Memory] {
        let human = quantity.human(resource).to_string();
        assert_eq!(human.parse::<Quantity>(), Ok(quantity), "{text} for people is {human}");
        if let Some(rounded) = quantity.round_up(resource) {
            assert!(rounded >= quantity && rounded.nano() - quantity.nano() < resource.step(), "{text} rounds to {rounded}");
        }
    }
});
