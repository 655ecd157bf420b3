//! The user stories of the proposal, from the files people read as examples.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the test, unlike the crate, reads the example files"
)]

use std::collections::BTreeMap;
use std::path::Path;

use pillion_expr::{Amounts, Container, Field, Input, NamePattern, Outcome, Program, Quantity, Sign, Targets};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Story {
    title: String,
    target_container_mode: String,
    target_containers_name_regex: String,
    containers: Vec<Row>,
    fields: BTreeMap<String, Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    limits: Side,
    requests: Side,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Side {
    cpu: Option<Quantity>,
    memory: Option<Quantity>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    expression: String,
    aggregate: String,
    result: String,
    curve: Option<Curve>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Curve {
    points: BTreeMap<String, String>,
    knees: BTreeMap<String, String>,
    slopes: Vec<String>,
    never_negative: bool,
}

impl Side {
    fn amounts(&self) -> Amounts {
        Amounts { cpu: self.cpu, memory: self.memory }
    }
}

#[test]
fn every_story_gives_its_numbers() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/resource-expressions");
    let mut names = Vec::new();
    let mut curves = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let story: Story = serde_saphyr::from_str(&text).unwrap();
            curves += tell(&story);
            names.push(path.file_name().unwrap().to_str().unwrap()[..7].to_owned());
        }
    }
    names.sort();
    let expected: Vec<String> = (1..=6).map(|number| format!("story-{number}")).collect();
    assert_eq!(names, expected);
    assert_eq!(curves, 1, "story 5 has a curve");
}

fn tell(story: &Story) -> usize {
    let pattern = NamePattern::new(&story.target_containers_name_regex).unwrap();
    let containers = story.containers.iter().map(|row| Container {
        name: &row.name,
        requests: row.requests.amounts(),
        limits: row.limits.amounts(),
    });
    let targets = Targets::select(containers, &pattern).unwrap();
    let mode = story.target_container_mode.parse().unwrap();
    let mut curves = 0;
    for (name, case) in &story.fields {
        let field: Field = name.parse().unwrap();
        let place = format!("{}, {field}", story.title);
        let program = Program::compile(&case.expression, field).unwrap();
        let input = targets.aggregate(field, mode).unwrap();
        assert_eq!(input.human(field.resource).to_string(), case.aggregate, "{place}");
        assert_eq!(evaluated(&program, input), case.result, "{place}");
        if let Some(curve) = &case.curve {
            draw(&program, curve, &place);
            curves += 1;
        }
    }
    curves
}

fn draw(program: &Program, curve: &Curve, place: &str) {
    for (at, result) in &curve.points {
        let input = match at.as_str() {
            "unlimited" => Input::Unlimited,
            amount => Input::Amount(amount.parse().unwrap()),
        };
        assert_eq!(&evaluated(program, input), result, "{place} at {at}");
    }
    let analysis = program.analysis();
    let knees: BTreeMap<String, String> =
        analysis.knees().map(|knee| (knee.at.to_string(), knee.value.unwrap().to_string())).collect();
    assert_eq!(knees, curve.knees, "{place}");
    let slopes: Vec<String> = analysis.segments().map(|segment| segment.slope.to_string()).collect();
    assert_eq!(slopes, curve.slopes, "{place}");
    let never_negative = analysis.sign() == Sign::NeverNegative;
    assert_eq!(never_negative, curve.never_negative, "{place}");
}

fn evaluated(program: &Program, input: Input) -> String {
    let outcome: Outcome = program.eval(input).unwrap();
    outcome.human(program.field().resource).to_string()
}
