//! What holds for every review, tried on drawn ones.

use std::sync::Arc;

use pillion_api::{Reason, SetMode};
use pillion_generators::{Admission, admission, law};
use pillion_inject::{Installation, Namespace, Outcome, SetIndex};
use pillion_manager::admission::Request;
use pillion_manager::admission::pods::{Answer, begin};
use pillion_manager::view::Known;
use proptest::prelude::{TestCaseError, prop_assert, prop_assert_eq};
use proptest::test_runner::TestCaseResult;

use crate::{answered, body, question};

fn answer(admission: &Admission, mode: SetMode) -> Result<Answer, TestCaseError> {
    let namespace = Namespace { name: admission.namespace.name.clone(), labels: admission.namespace.labels.clone() };
    let known = Known { sets: Arc::new(SetIndex::new(admission.meanings())), ..Known::default() };
    let bytes = body("", "pods", "CREATE", &admission.pod);
    let request = Request::parse(&bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let installation = Installation { mode, ..Installation::default() };
    let begun = begin(&request, question(&known, &namespace, installation));
    begun.map(answered).map_err(|error| TestCaseError::fail(error.to_string()))
}

/// An installation that observes changes no pod, and says of each set exactly what the other kind then does.
#[test]
fn observing_reports_what_injecting_does() {
    law(2_000, &admission(5), |drawn| -> TestCaseResult {
        let (observed, injected) = (answer(&drawn, SetMode::Observe)?, answer(&drawn, SetMode::Inject)?);
        prop_assert!(observed.response.is_allowed() && !observed.response.is_patch());
        prop_assert_eq!(observed.outcomes.len(), injected.outcomes.len());
        for ((seen, reason), (done, why)) in observed.outcomes.into_iter().zip(injected.outcomes) {
            let expected = match done {
                Outcome::Applied => (Outcome::Observed, Reason::Observed),
                Outcome::Refused | Outcome::Ignored => (Outcome::Observed, why),
                Outcome::Kept | Outcome::Skipped | Outcome::Observed => (done, why),
            };
            prop_assert_eq!((seen, reason), expected, "where injecting came to {:?} {:?}", done, why);
        }
        Ok(())
    });
}
