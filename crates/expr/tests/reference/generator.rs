//! Random expressions, inputs and domains; the same seed gives the same ones.

use num_bigint::BigInt;
use num_rational::BigRational;
use pillion_expr::{Field, Input, Program, Ratio, Resource};

use crate::nano;
use crate::tree::{Tree, units};

/// From, and to where there is an end; in units.
pub(crate) type Domain = (Ratio, Option<Ratio>);

pub(crate) struct Generator {
    state: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Want {
    Number,
    Amount,
    Any,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // SplitMix64: a few lines, and well spread from any seed.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        let at = self.below(choices.len() as u64);
        choices[usize::try_from(at).unwrap()]
    }

    pub(crate) fn field(&mut self) -> Field {
        self.one_of(&Field::ALL)
    }

    pub(crate) fn tree(&mut self, field: Field) -> Tree {
        if self.below(3) == 0 {
            return self.bent(field.resource);
        }
        let depth = self.one_of(&[1, 2, 3, 4, 5]);
        // Now and then anything goes, so that ill-typed expressions are met too.
        let want = if self.below(10) == 0 { Want::Any } else { Want::Amount };
        self.grow(field.resource, want, depth)
    }

    /// Like the proposal's story 5: a sum of terms that each bend once, near each other.
    fn bent(&mut self, resource: Resource) -> Tree {
        let terms = self.one_of(&[1, 2, 3, 5, 8]);
        let mut sum = self.grow(resource, Want::Amount, 1);
        for _ in 0..terms {
            let corner = Tree::Binary(
                self.one_of(&['-', '-', '+']),
                Box::new(Tree::Variable),
                Box::new(self.leaf(resource, Want::Number)),
            );
            let floor = self.leaf(resource, Want::Number);
            let bend = Tree::Call(self.one_of(&["max", "min"]), vec![floor, corner]);
            let term = Tree::Binary('*', Box::new(self.number()), Box::new(bend));
            sum = Tree::Binary(self.one_of(&['+', '-']), Box::new(sum), Box::new(term));
        }
        match self.below(3) {
            0 => Tree::Call(self.one_of(&["max", "min"]), vec![sum, self.leaf(resource, Want::Amount)]),
            _ => sum,
        }
    }

    fn grow(&mut self, resource: Resource, want: Want, depth: u32) -> Tree {
        let want = match want {
            Want::Any => self.one_of(&[Want::Any, Want::Number, Want::Amount]),
            want => want,
        };
        if depth == 0 || self.below(6) == 0 {
            return self.leaf(resource, want);
        }
        let depth = depth - 1;
        let same = |generator: &mut Self| {
            // A bare number may stand where an amount is wanted.
            let want = match want {
                Want::Amount if generator.below(4) == 0 => Want::Number,
                want => want,
            };
            generator.grow(resource, want, depth)
        };
        match self.below(8) {
            0 => Tree::Negate(Box::new(same(self))),
            1 | 2 => {
                let operator = self.one_of(&['+', '-']);
                let left = same(self);
                Tree::Binary(operator, Box::new(left), Box::new(same(self)))
            }
            3 => {
                let (left, right) = if want == Want::Any {
                    (Want::Any, Want::Any)
                } else {
                    self.one_of(&[(want, Want::Number), (Want::Number, want)])
                };
                let left = self.grow(resource, left, depth);
                let right = self.grow(resource, right, depth);
                Tree::Binary('*', Box::new(left), Box::new(right))
            }
            4 => {
                let divisor = if want == Want::Any { Want::Any } else { Want::Number };
                let left = self.grow(resource, want, depth);
                let right = self.grow(resource, divisor, depth.min(1));
                Tree::Binary('/', Box::new(left), Box::new(right))
            }
            _ => {
                let name = self.one_of(&["max", "min"]);
                let count = self.one_of(&[2, 2, 2, 3, 4]);
                Tree::Call(name, (0..count).map(|_| same(self)).collect())
            }
        }
    }

    fn leaf(&mut self, resource: Resource, want: Want) -> Tree {
        match (want, self.below(3)) {
            (Want::Number, _) | (Want::Any, 0) => self.number(),
            (_, 0) => self.quantity(resource),
            _ => Tree::Variable,
        }
    }

    fn number(&mut self) -> Tree {
        let whole = self.one_of(&[3, 10, 100, 5000]);
        let whole = self.below(whole);
        let (text, scale) = match self.below(6) {
            0 => (format!("{whole}.{:02}", self.below(100)), 1),
            1 => (format!("{whole}%"), 100),
            2 => (format!("{whole}.5%"), 100),
            3 => (format!(".{whole}"), 1),
            4 => {
                let exponent = self.below(4);
                let text = format!("{whole}{}{exponent}", self.one_of(&["e", "E", "e+"]));
                let value =
                    BigRational::from(BigInt::from(whole) * BigInt::from(10).pow(u32::try_from(exponent).unwrap()));
                return Tree::Number(text, value);
            }
            _ => (whole.to_string(), 1),
        };
        let value = decimal(text.trim_end_matches('%')) / units(scale);
        Tree::Number(text, value)
    }

    fn quantity(&mut self, resource: Resource) -> Tree {
        let (suffix, power, shift) = match resource {
            Resource::Cpu => self.one_of(&[("m", -3, 0), ("m", -3, 0), ("u", -6, 0), ("n", -9, 0)]),
            Resource::Memory => self.one_of(&[
                ("Ki", 0, 10),
                ("Mi", 0, 20),
                ("Mi", 0, 20),
                ("Gi", 0, 30),
                ("Ti", 0, 40),
                ("k", 3, 0),
                ("M", 6, 0),
                ("G", 9, 0),
                ("T", 12, 0),
            ]),
        };
        let digits = if self.below(3) == 0 {
            format!("{}.{}", self.below(20), self.below(1000))
        } else {
            self.below(2000).to_string()
        };
        let ten = units(10);
        let scale = ten.pow(power) * units(1_i128 << shift);
        Tree::Quantity(format!("{digits}{suffix}"), decimal(&digits) * scale)
    }

    /// With no more parentheses than needed, or a few; with blanks, or without.
    pub(crate) fn print(&mut self, tree: &Tree) -> String {
        let mut text = String::new();
        let airy = self.below(2) == 0;
        self.write(tree, 0, airy, &mut text);
        text
    }

    fn write(&mut self, tree: &Tree, binding: u8, airy: bool, text: &mut String) {
        let own = match tree {
            Tree::Binary('+' | '-', ..) => 1,
            Tree::Binary(..) => 2,
            Tree::Negate(_) => 3,
            _ => 4,
        };
        let blank = if airy { " " } else { "" };
        let enclosed = own < binding || self.below(20) == 0;
        if enclosed {
            text.push('(');
        }
        match tree {
            Tree::Number(written, _) | Tree::Quantity(written, _) => text.push_str(written),
            Tree::Variable => text.push('@'),
            Tree::Negate(inner) => {
                text.push('-');
                self.write(inner, 3, airy, text);
            }
            Tree::Binary(operator, left, right) => {
                self.write(left, own, airy, text);
                text.push_str(blank);
                text.push(*operator);
                text.push_str(blank);
                self.write(right, own + 1, airy, text);
            }
            Tree::Call(name, arguments) => {
                text.push_str(name);
                text.push('(');
                for (at, argument) in arguments.iter().enumerate() {
                    if at > 0 {
                        text.push(',');
                        text.push_str(blank);
                    }
                    self.write(argument, 0, airy, text);
                }
                text.push(')');
            }
        }
        if enclosed {
            text.push(')');
        }
    }

    pub(crate) fn some_inputs(&mut self) -> Vec<Input> {
        let sizes = [1, 1_000, 1 << 30, 1 << 40, u64::MAX];
        let mut inputs = vec![Input::Unlimited, nano(0)];
        for _ in 0..3 {
            let size = self.one_of(&sizes);
            let unit = self.one_of(&[1, 1_000_000, 1_000_000_000]);
            inputs.push(nano((i128::from(self.below(size)) * unit).min(crate::LARGEST)));
        }
        inputs
    }

    /// Some at random, and the neighbours of a knee, where mistakes would be.
    pub(crate) fn inputs(&mut self, program: &Program) -> Vec<Input> {
        let mut inputs = self.some_inputs();
        let knees: Vec<Ratio> = program.analysis().knees().map(|knee| knee.at).collect();
        if !knees.is_empty() {
            let knee = self.one_of(&knees);
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
        if self.below(4) == 0 {
            return (from, None);
        }
        let to = self.point(program);
        (from.min(to), Some(from.max(to)))
    }

    /// A place that is worth a look: zero, a knee, between, or far away.
    fn point(&mut self, program: &Program) -> Ratio {
        let knees: Vec<Ratio> = program.analysis().knees().map(|knee| knee.at).collect();
        match self.below(4) {
            0 => Ratio::ZERO,
            1 if !knees.is_empty() => self.one_of(&knees),
            2 => Ratio::whole(i128::from(self.below(1 << 36))),
            _ => Ratio::new(i128::from(self.below(20_000)), 1000).unwrap(),
        }
    }
}

fn decimal(text: &str) -> BigRational {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits: BigInt = format!("0{whole}{fraction}").parse().unwrap();
    BigRational::new(digits, BigInt::from(10).pow(u32::try_from(fraction.len()).unwrap()))
}
