//! One object in the making: where its choices come from, how large it may become, and in which form it comes.

use serde_json::{Map, Value};

use crate::json;
use crate::random::Random;
use crate::shape::{Form, Shape};

pub(crate) struct Draw<'a> {
    pub(crate) random: &'a mut Random,
    pub(crate) shape: Shape,
    /// As the API server hands it out; otherwise as people write it.
    pub(crate) served: bool,
}

impl<'a> Draw<'a> {
    pub(crate) fn new(random: &'a mut Random, shape: Shape) -> Self {
        let served = match shape.form {
            Form::Written => false,
            Form::Served => true,
            Form::Either => random.chance(50),
        };
        Self { random, shape, served }
    }

    /// Something that is there so many times of a hundred.
    pub(crate) fn maybe<T>(&mut self, percent: u64, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.random.chance(percent).then(|| draw(self))
    }

    /// The object, now and then with a field that nobody knows.
    pub(crate) fn with_unknown(&mut self, mut fields: Map<String, Value>) -> Value {
        if self.random.chance(self.shape.unknown_percent) {
            json::add_unknown(&mut fields, self.random);
        }
        fields.into()
    }

    /// A list as a field: people write an empty one in several ways, the API server in none.
    pub(crate) fn list(&mut self, items: Vec<Value>) -> Option<Value> {
        if items.is_empty() { self.nothing(Value::Array(items)) } else { Some(items.into()) }
    }

    /// A map as a field, in the same way.
    pub(crate) fn map(&mut self, fields: Map<String, Value>) -> Option<Value> {
        if fields.is_empty() { self.nothing(Value::Object(fields)) } else { Some(fields.into()) }
    }

    fn nothing(&mut self, empty: Value) -> Option<Value> {
        match self.random.below(8) {
            _ if self.served => None,
            0 | 1 => Some(empty),
            2 => Some(Value::Null),
            _ => None,
        }
    }
}
