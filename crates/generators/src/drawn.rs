//! Strategies that are written as plain code: a function draws JSON, and what breaks a law is made smaller by leaving
//! parts of it out, as long as it stays what it is.
//!
//! So a pod that broke a law is reported without the fields that have nothing to do with it, whatever they were drawn
//! from.

use std::fmt;

use proptest::arbitrary::any;
use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::Value;

use crate::random::Random;

/// JSON drawn by a function.
#[derive(Clone)]
pub(crate) struct Drawn<D> {
    draw: D,
    is_whole: fn(&Value) -> bool,
}

/// JSON that becomes smaller by leaving one part out at a time.
pub(crate) struct LeavingOut {
    current: Value,
    /// What it was before the last step, until that step is undone or kept.
    before: Option<Value>,
    /// Which part is left out next, counted as a walk meets them.
    next: usize,
    /// Whether this walk has left something out for good.
    smaller: bool,
    is_whole: fn(&Value) -> bool,
}

impl<D: Fn(&mut Random) -> Value> Drawn<D> {
    /// What `draw` gives; smaller ones must be whole, too.
    pub(crate) fn new(draw: D, is_whole: fn(&Value) -> bool) -> Self {
        Self { draw, is_whole }
    }
}

impl<D> fmt::Debug for Drawn<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Drawn")
    }
}

impl<D: Fn(&mut Random) -> Value> Strategy for Drawn<D> {
    type Tree = LeavingOut;
    type Value = Value;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let seed = any::<u64>().new_tree(runner)?.current();
        let current = (self.draw)(&mut Random::new(seed));
        Ok(LeavingOut { current, before: None, next: 0, smaller: false, is_whole: self.is_whole })
    }
}

impl ValueTree for LeavingOut {
    type Value = Value;

    fn current(&self) -> Value {
        self.current.clone()
    }

    fn simplify(&mut self) -> bool {
        // What was not undone since is left out for good.
        self.smaller |= self.before.take().is_some();
        loop {
            let mut candidate = self.current.clone();
            if !leave_out(&mut candidate, &mut self.next.clone()) {
                // What could not be left out before may be possible now.
                if !std::mem::take(&mut self.smaller) {
                    return false;
                }
                self.next = 0;
                continue;
            }
            if (self.is_whole)(&candidate) {
                self.before = Some(std::mem::replace(&mut self.current, candidate));
                return true;
            }
            self.next += 1;
        }
    }

    fn complicate(&mut self) -> bool {
        let Some(before) = self.before.take() else { return false };
        self.current = before;
        self.next += 1;
        true
    }
}

/// Leaves out one part of a value, counted as a walk meets them; false if there are fewer.
fn leave_out(value: &mut Value, number: &mut usize) -> bool {
    match value {
        Value::Object(fields) => {
            let keys: Vec<String> = fields.keys().cloned().collect();
            for key in keys {
                if *number == 0 {
                    return fields.remove(&key).is_some();
                }
                *number -= 1;
                if fields.get_mut(&key).is_some_and(|field| leave_out(field, number)) {
                    return true;
                }
            }
            false
        }
        Value::Array(items) => {
            for at in 0..items.len() {
                if *number == 0 {
                    items.remove(at);
                    return true;
                }
                *number -= 1;
                if leave_out(&mut items[at], number) {
                    return true;
                }
            }
            false
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn smallest(value: Value, is_whole: fn(&Value) -> bool, breaks: impl Fn(&Value) -> bool) -> Value {
        let mut tree = LeavingOut { current: value, before: None, next: 0, smaller: false, is_whole };
        let mut more = tree.simplify();
        while more {
            more = if breaks(&tree.current()) { tree.simplify() } else { tree.complicate() };
        }
        tree.current()
    }

    #[test]
    fn only_what_breaks_the_law_is_left() {
        let value = json!({"a": [1, {"b": 2, "c": 3}, 4], "d": {"e": null}, "f": "text"});
        assert_eq!(smallest(value.clone(), |_| true, |it| it["d"].is_object()), json!({"d": {}}));
        let holds_three = |it: &Value| it.to_string().contains('3');
        assert_eq!(smallest(value, |_| true, holds_three), json!({"a": [{"c": 3}]}));
    }

    #[test]
    fn it_stays_whole_and_what_was_needed_at_first_goes_later() {
        // `a` may go only after `b`, which comes after it in the walk.
        let is_whole: fn(&Value) -> bool = |it| it.get("b").is_none() || it.get("a").is_some();
        assert_eq!(smallest(json!({"a": 1, "b": 2, "c": 3}), is_whole, |it| it.get("c").is_some()), json!({"c": 3}));
        assert_eq!(
            smallest(json!({"a": 1, "b": 2, "c": 3}), is_whole, |it| it.get("b").is_some()),
            json!({"a": 1, "b": 2})
        );
    }

    #[test]
    fn a_step_is_undone_once() {
        let mut tree =
            LeavingOut { current: json!({"a": 1}), before: None, next: 0, smaller: false, is_whole: |_| true };
        assert!(!tree.complicate());
        assert!(tree.simplify());
        assert_eq!(tree.current(), json!({}));
        assert!(tree.complicate() && !tree.complicate());
        assert_eq!(tree.current(), json!({"a": 1}));
    }
}
