//! The steps of both tiers.

use super::Tier;

/// A recipe of the `justfile` with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Name in tables and in the record of a nightly run.
    pub name: String,
    /// Arguments of `just`.
    pub arguments: Vec<String>,
    /// Variables of this step alone.
    pub environment: Vec<(&'static str, &'static str)>,
}

/// The subjects of e2e tests: the first word of their modules.
pub const SUBJECTS: [&str; 9] = ["agent", "canary", "finish", "inject", "rollout", "runtime", "safe", "size", "smoke"];

/// Seconds that each fuzz target runs.
const FUZZ_SECONDS: &str = "60";
/// The mutants are tried in this many shares, one in each run.
pub const MUTANT_SHARES: u64 = 8;

impl Step {
    fn new(name: &str, arguments: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            arguments: arguments.iter().map(|it| (*it).to_owned()).collect(),
            environment: Vec::new(),
        }
    }

    fn with(mut self, environment: &[(&'static str, &'static str)]) -> Self {
        self.environment.extend(environment);
        self
    }

    /// The command that runs the step alone.
    pub fn command(&self) -> String {
        let variables = self.environment.iter().map(|(name, value)| format!("{name}={value}"));
        let arguments = self.arguments.iter().map(|it| quoted(it));
        let words: Vec<String> = variables.chain(["just".to_owned()]).chain(arguments).collect();
        words.join(" ")
    }
}

fn quoted(argument: &str) -> String {
    if argument.is_empty() { "''".to_owned() } else { argument.to_owned() }
}

/// Steps of the tier `ci`, the quick ones first. Steps of one row run at the same time: the footprint of an idle agent is mostly
/// waiting.
pub fn ci() -> Vec<Vec<Step>> {
    let rows: [&[&str]; 5] = [&["fmt-check"], &["lint"], &["tidy"], &["deny"], &["test", "footprint"]];
    let mut rows: Vec<Vec<Step>> =
        rows.iter().map(|row| row.iter().map(|name| Step::new(name, &[name])).collect()).collect();
    rows.push(vec![Step::new("e2e", &["e2e", "", Tier::Ci.name()])]);
    rows
}

/// Steps of the tier `nightly`. With a prefix, only the e2e tests whose name starts with it. `share` chooses the mutants.
pub fn nightly(prefix: &str, fuzz_targets: &[String], share: u64) -> Vec<Step> {
    let flaky = [("NEXTEST_FLAKY_RESULT", "fail")];
    let concerns = |subject: &str| subject.starts_with(prefix) || prefix.starts_with(subject);
    let mut steps = Vec::new();
    for subject in SUBJECTS.iter().filter(|it| concerns(it)) {
        let tests = if prefix.len() > subject.len() { prefix.to_owned() } else { format!("{subject}_") };
        steps.push(Step::new(&format!("e2e {tests}"), &["e2e", &tests]).with(&flaky));
    }
    for (tests, variable, value) in [
        ("inject_twin", "PILLION_TWIN_BATCHES", "20"),
        ("rollout_promises", "PILLION_ROLLOUT_PODS", "10000"),
        ("canary_", "PILLION_CANARY_PODS", "1000"),
    ] {
        if tests.starts_with(prefix) || prefix.starts_with(tests) {
            steps.push(Step::new(&format!("large {tests}"), &["e2e", tests]).with(&flaky).with(&[(variable, value)]));
        }
    }
    if prefix.is_empty() {
        for target in fuzz_targets {
            steps.push(Step::new(&format!("fuzz {target}"), &["fuzz", target, FUZZ_SECONDS]));
        }
        let share = format!("{}/{MUTANT_SHARES}", share % MUTANT_SHARES);
        steps.push(Step::new(&format!("mutants {share}"), &["mutants", "", &share]));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_chooses_e2e_tests_alone() {
        let names = |prefix: &str| -> Vec<String> {
            nightly(prefix, &["review".to_owned()], 11).iter().map(|step| step.name.clone()).collect()
        };
        assert_eq!(names("size"), ["e2e size_"]);
        assert_eq!(names("size_node"), ["e2e size_node"]);
        assert_eq!(names("rollout"), ["e2e rollout_", "large rollout_promises"]);
        let all = names("");
        assert_eq!(all.len(), SUBJECTS.len() + 5);
        assert_eq!(&all[all.len() - 2..], ["fuzz review", "mutants 3/8"]);
    }

    #[test]
    fn a_step_says_how_to_run_it_alone() {
        let steps = nightly("canary", &[], 0);
        assert_eq!(steps[0].command(), "NEXTEST_FLAKY_RESULT=fail just e2e canary_");
        assert_eq!(steps[1].command(), "NEXTEST_FLAKY_RESULT=fail PILLION_CANARY_PODS=1000 just e2e canary_");
        assert_eq!(ci().last().unwrap()[0].command(), "just e2e '' ci");
    }
}
