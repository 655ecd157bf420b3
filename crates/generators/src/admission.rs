//! What a webhook is asked: a pod, its namespace, and the sets there are.

use pillion_api::{Meaning, review};
use proptest::strategy::Strategy;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::drawn::Drawn;
use crate::namespace::{self, Namespace};
use crate::random::Random;
use crate::shape::Shape;
use crate::{pod, sidecar_set};

/// A pod that is to be created, with all that decides about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Admission {
    /// Where. The pod, if it names a namespace, names this one.
    pub namespace: Namespace,
    /// The pod.
    pub pod: Value,
    /// The sets, no two of one name, in any order.
    pub sets: Vec<Value>,
}

impl Admission {
    /// What the sets mean, in the order they have here.
    pub fn meanings(&self) -> Vec<Meaning> {
        self.sets.iter().map(|set| review(set).meaning.expect("sets are drawn without errors")).collect()
    }
}

/// A pod, its namespace and so many sets.
pub fn admission(sets: usize) -> impl Strategy<Value = Admission> + Clone {
    admission_of(Shape::default(), sets)
}

/// A pod, its namespace and so many sets, of a shape.
pub fn admission_of(shape: Shape, sets: usize) -> impl Strategy<Value = Admission> + Clone {
    let draw = move |random: &mut Random| {
        let namespace = namespace::draw(random);
        let pod = pod::draw(random, shape, namespace["name"].as_str().unwrap_or_default());
        let sets = sidecar_set::draw_many(random, shape, sets);
        json!({"namespace": namespace, "pod": pod, "sets": sets})
    };
    Drawn::new(draw, is_whole)
        .prop_map(|drawn| serde_json::from_value(drawn).expect("what is drawn here has all three fields"))
}

fn is_whole(drawn: &Value) -> bool {
    let part = |name: &str, is_whole: fn(&Value) -> bool| drawn.get(name).is_some_and(is_whole);
    part("namespace", namespace::is_whole)
        && part("pod", pod::is_whole)
        && part("sets", |sets| sets.as_array().is_some_and(|sets| sets.iter().all(sidecar_set::is_whole)))
}
