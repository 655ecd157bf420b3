//! Any text as the page of a kubelet, twice: never a panic, and no sample is below zero or of a pod that nobody asked about.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pillion_manager::rightsizer::source::kubelet::Counters;
use pillion_manager::rightsizer::source::{Sample, Taker};

struct Checks;

impl Taker for Checks {
    fn wants(&self, namespace: &str, _: &str) -> bool {
        !namespace.starts_with('x')
    }

    fn take(&mut self, sample: &Sample<'_>) {
        assert!(!sample.namespace.starts_with('x'));
        assert!(sample.usage.cpu.is_none_or(|cpu| cpu >= 0) && sample.usage.memory.is_none_or(|memory| memory >= 0));
    }
}

fuzz_target!(|pages: (String, String)| {
    let mut counters = Counters::default();
    for page in [&pages.0, &pages.1] {
        counters.read(page, &mut Checks);
        counters.forget();
    }
});
