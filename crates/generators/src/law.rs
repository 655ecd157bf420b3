//! How a law is run on many cases, so that what breaks it can be found again.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseResult, TestError, TestRunner};
use serde::Serialize;

use crate::settings;

const DEFAULT_SEED: u64 = 1;
/// Enough to take a pod and five sets apart field by field.
const MOST_SHRINKING: u32 = 20_000;

/// Runs a law on so many drawn cases, and panics with the smallest case that breaks it.
///
/// `PILLION_SEED` sets another seed, `PILLION_CASES` another number of cases; both are printed before the first case. The
/// case is printed as JSON.
#[expect(clippy::panic, clippy::print_stdout, reason = "it is the body of tests")]
pub fn law<S>(cases: u32, strategy: &S, holds: impl Fn(S::Value) -> TestCaseResult)
where
    S: Strategy,
    S::Value: Serialize,
{
    let seed = settings::number("PILLION_SEED").unwrap_or(DEFAULT_SEED);
    let cases = settings::number("PILLION_CASES").map_or(cases, |set| u32::try_from(set).unwrap_or(u32::MAX));
    let run = format!("PILLION_SEED={seed} PILLION_CASES={cases}");
    println!("{run}");
    if let Err(broken) = run_law(seed, cases, strategy, holds) {
        panic!("{broken}\nrepeat it with {run}");
    }
}

fn run_law<S>(seed: u64, cases: u32, strategy: &S, holds: impl Fn(S::Value) -> TestCaseResult) -> Result<(), String>
where
    S: Strategy,
    S::Value: Serialize,
{
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        max_shrink_iters: MOST_SHRINKING,
        // A law may leave most cases out; the share of those is for the tests of this crate.
        max_global_rejects: cases.saturating_mul(10),
        // The seed is all that is needed, and it is printed.
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config).run(strategy, holds).map_err(|error| match error {
        TestError::Fail(why, case) => {
            let case = serde_json::to_string_pretty(&case).unwrap_or_else(|_| format!("{case:#?}"));
            format!("the law does not hold: {why}\nthe smallest case found: {case}")
        }
        TestError::Abort(why) => format!("the law could not be tried: {why}"),
    })
}

#[cfg(test)]
mod tests {
    use proptest::test_runner::TestCaseError;
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::admission::admission;
    use crate::drawn::Drawn;

    fn numbers() -> impl Strategy<Value = Value> {
        Drawn::new(|random| json!({"a": random.below(50), "b": {"c": random.below(50)}}), |_| true)
    }

    fn without_c(case: &Value) -> TestCaseResult {
        if case["b"]["c"].is_null() { Ok(()) } else { Err(TestCaseError::fail("there is c")) }
    }

    #[test]
    fn a_law_that_holds_is_tried_on_every_case() {
        let tried = std::cell::Cell::new(0);
        let count = |_| {
            tried.set(tried.get() + 1);
            Ok(())
        };
        assert_eq!(run_law(1, 100, &numbers(), count), Ok(()));
        assert_eq!(tried.get(), 100);
    }

    #[test]
    fn the_smallest_case_is_shown_and_is_the_same_again() {
        let broken = || run_law(3, 100, &numbers(), |case| without_c(&case)).unwrap_err();
        let shown = broken();
        let (head, case) = shown.split_once("the smallest case found: ").unwrap();
        assert_eq!(head, "the law does not hold: there is c\n");
        let case: Value = serde_json::from_str(case).unwrap();
        assert_eq!(case, json!({"b": {"c": case["b"]["c"]}}));
        assert_eq!(shown, broken());
    }

    #[test]
    fn a_pod_with_its_sets_is_shown_without_what_does_not_matter() {
        let broken = run_law(1, 300, &admission(5), |case| {
            let shares = case.pod["spec"]["shareProcessNamespace"] == true;
            let wants = |set: &Value| set["spec"].get("shareProcessNamespace").is_some();
            if shares && case.sets.iter().any(wants) { Err(TestCaseError::fail("both")) } else { Ok(()) }
        });
        let shown = broken.unwrap_err();
        let (_, case) = shown.split_once("the smallest case found: ").unwrap();
        let case: Value = serde_json::from_str(case).unwrap();
        let pod = &case["pod"];
        let container =
            json!({"name": pod["spec"]["containers"][0]["name"], "image": pod["spec"]["containers"][0]["image"]});
        assert_eq!(
            pod,
            &json!({"metadata": {}, "spec": {"containers": [container], "shareProcessNamespace": true}}),
            "{shown}"
        );
        assert_eq!(case["sets"].as_array().map(Vec::len), Some(1), "{shown}");
        assert_eq!(case["sets"][0]["spec"].as_object().map(Map::len), Some(3), "{shown}");
    }
}
