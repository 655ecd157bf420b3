//! Random expressions, inputs and domains; the same seed gives the same ones.

use pillion_expr::{Field, Input, Program, Ratio};
use pillion_generators::Random;

use crate::nano;
use crate::tree::Tree;

/// From, and to where there is an end; in units.
pub(crate) type Domain = (Ratio, Option<Ratio>);

pub(crate) struct Generator {
    random: Random,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Random::new(seed) }
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    /// An expression for a field, as a text and as a tree.
    pub(crate) fn expression(&mut self) -> (Field, String, Tree) {
        let field = self.random.one_of(&Field::ALL);
        let written = pillion_generators::Tree::draw(&mut self.random, field);
        (field, written.print(&mut self.random, field), Tree::of(&written))
    }

    pub(crate) fn some_inputs(&mut self) -> Vec<Input> {
        let sizes = [1, 1_000, 1 << 30, 1 << 40, u64::MAX];
        let mut inputs = vec![Input::Unlimited, nano(0)];
        for _ in 0..3 {
            let size = self.random.one_of(&sizes);
            let unit = self.random.one_of(&[1, 1_000_000, 1_000_000_000]);
            inputs.push(nano((i128::from(self.random.below(size)) * unit).min(crate::LARGEST)));
        }
        inputs
    }

    /// Some at random, and the neighbours of a knee, where mistakes would be.
    pub(crate) fn inputs(&mut self, program: &Program) -> Vec<Input> {
        let mut inputs = self.some_inputs();
        let knees: Vec<Ratio> = program.analysis().knees().map(|knee| knee.at).collect();
        if !knees.is_empty() {
            let knee = self.random.one_of(&knees);
            if let Some(at) = knee.checked_mul(Ratio::whole(1_000_000_000)) {
                inputs.extend(
                    [at.floor() - 1, at.floor(), at.ceil(), at.ceil() + 1].map(|at| nano(at.clamp(0, crate::LARGEST))),
                );
            }
        }
        inputs
    }

    pub(crate) fn domain(&mut self, program: &Program) -> Domain {
        let from = self.point(program);
        if self.random.below(4) == 0 {
            return (from, None);
        }
        let to = self.point(program);
        (from.min(to), Some(from.max(to)))
    }

    /// A place that is worth a look: zero, a knee, between, or far away.
    fn point(&mut self, program: &Program) -> Ratio {
        let knees: Vec<Ratio> = program.analysis().knees().map(|knee| knee.at).collect();
        match self.random.below(4) {
            0 => Ratio::ZERO,
            1 if !knees.is_empty() => self.random.one_of(&knees),
            2 => Ratio::whole(i128::from(self.random.below(1 << 36))),
            _ => Ratio::new(i128::from(self.random.below(20_000)), 1000).unwrap(),
        }
    }
}
