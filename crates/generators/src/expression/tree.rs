//! Expressions as trees: of every form the grammar has, ill-typed ones among them.

use pillion_expr::{Field, Resource};

use crate::random::Random;

/// An expression, with its numbers as they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// `1.5`, `50%`, `2e3`
    Number(String),
    /// `100m`, `64Mi`
    Quantity(String),
    /// `cpu` or `memory`
    Variable,
    /// `-x`
    Negate(Box<Tree>),
    /// `x + y`, with the operator
    Binary(char, Box<Tree>, Box<Tree>),
    /// `max(x, y)`, with the name
    Call(&'static str, Vec<Tree>),
}

#[derive(Clone, Copy, PartialEq)]
enum Want {
    Number,
    Amount,
    Any,
}

impl Tree {
    /// Draws an expression for a field. Nine of ten are well typed; some of those divide by zero or are always negative.
    pub fn draw(random: &mut Random, field: Field) -> Self {
        if random.below(3) == 0 {
            return Self::bent(random, field.resource);
        }
        let depth = random.one_of(&[1, 2, 3, 4, 5]);
        // Now and then anything goes, so that ill-typed expressions are met too.
        let want = if random.below(10) == 0 { Want::Any } else { Want::Amount };
        Self::grow(random, field.resource, want, depth)
    }

    /// Like the proposal's story 5: a sum of terms that each bend once, near each other.
    fn bent(random: &mut Random, resource: Resource) -> Self {
        let terms = random.one_of(&[1, 2, 3, 5, 8]);
        let mut sum = Self::grow(random, resource, Want::Amount, 1);
        for _ in 0..terms {
            let corner = Self::Binary(
                random.one_of(&['-', '-', '+']),
                Box::new(Self::Variable),
                Box::new(Self::leaf(random, resource, Want::Number)),
            );
            let floor = Self::leaf(random, resource, Want::Number);
            let bend = Self::Call(random.one_of(&["max", "min"]), vec![floor, corner]);
            let term = Self::Binary('*', Box::new(Self::number(random)), Box::new(bend));
            sum = Self::Binary(random.one_of(&['+', '-']), Box::new(sum), Box::new(term));
        }
        match random.below(3) {
            0 => Self::Call(random.one_of(&["max", "min"]), vec![sum, Self::leaf(random, resource, Want::Amount)]),
            _ => sum,
        }
    }

    fn grow(random: &mut Random, resource: Resource, want: Want, depth: u32) -> Self {
        let want = match want {
            Want::Any => random.one_of(&[Want::Any, Want::Number, Want::Amount]),
            want => want,
        };
        if depth == 0 || random.below(6) == 0 {
            return Self::leaf(random, resource, want);
        }
        let depth = depth - 1;
        let same = |random: &mut Random| {
            // A bare number may stand where an amount is wanted.
            let want = match want {
                Want::Amount if random.below(4) == 0 => Want::Number,
                want => want,
            };
            Box::new(Self::grow(random, resource, want, depth))
        };
        match random.below(8) {
            0 => Self::Negate(same(random)),
            1 | 2 => Self::Binary(random.one_of(&['+', '-']), same(random), same(random)),
            3 => {
                let (left, right) = if want == Want::Any {
                    (Want::Any, Want::Any)
                } else {
                    random.one_of(&[(want, Want::Number), (Want::Number, want)])
                };
                let left = Self::grow(random, resource, left, depth);
                let right = Self::grow(random, resource, right, depth);
                Self::Binary('*', Box::new(left), Box::new(right))
            }
            4 => {
                let divisor = if want == Want::Any { Want::Any } else { Want::Number };
                let left = Self::grow(random, resource, want, depth);
                let right = Self::grow(random, resource, divisor, depth.min(1));
                Self::Binary('/', Box::new(left), Box::new(right))
            }
            _ => {
                let name = random.one_of(&["max", "min"]);
                let count = random.one_of(&[2, 2, 2, 3, 4]);
                Self::Call(name, (0..count).map(|_| *same(random)).collect())
            }
        }
    }

    fn leaf(random: &mut Random, resource: Resource, want: Want) -> Self {
        match (want, random.below(3)) {
            (Want::Number, _) | (Want::Any, 0) => Self::number(random),
            (_, 0) => Self::quantity(random, resource),
            _ => Self::Variable,
        }
    }

    fn number(random: &mut Random) -> Self {
        let whole = random.one_of(&[3, 10, 100, 5000]);
        let whole = random.below(whole);
        Self::Number(match random.below(6) {
            0 => format!("{whole}.{:02}", random.below(100)),
            1 => format!("{whole}%"),
            2 => format!("{whole}.5%"),
            3 => format!(".{whole}"),
            4 => format!("{whole}{}{}", random.one_of(&["e", "E", "e+"]), random.below(4)),
            _ => whole.to_string(),
        })
    }

    fn quantity(random: &mut Random, resource: Resource) -> Self {
        let suffix = match resource {
            Resource::Cpu => random.one_of(&["m", "m", "u", "n"]),
            Resource::Memory => random.one_of(&["Ki", "Mi", "Mi", "Gi", "Ti", "k", "M", "G", "T"]),
        };
        let digits = if random.below(3) == 0 {
            format!("{}.{}", random.below(20), random.below(1000))
        } else {
            random.below(2000).to_string()
        };
        Self::Quantity(digits + suffix)
    }

    /// The text: with no more parentheses than needed, or a few; with blanks, or without; the variable in any case.
    pub fn print(&self, random: &mut Random, field: Field) -> String {
        let mut text = String::new();
        let blank = random.one_of(&["", " "]);
        let [plain, odd] = match field.resource {
            Resource::Cpu => ["cpu", "CPU"],
            Resource::Memory => ["memory", "Memory"],
        };
        let variable = if random.below(8) == 0 { odd } else { plain };
        self.write(random, 0, blank, variable, &mut text);
        text
    }

    fn write(&self, random: &mut Random, binding: u8, blank: &str, variable: &str, text: &mut String) {
        let own = match self {
            Self::Binary('+' | '-', ..) => 1,
            Self::Binary(..) => 2,
            Self::Negate(_) => 3,
            _ => 4,
        };
        let enclosed = own < binding || random.below(20) == 0;
        if enclosed {
            text.push('(');
        }
        match self {
            Self::Number(written) | Self::Quantity(written) => text.push_str(written),
            Self::Variable => text.push_str(variable),
            Self::Negate(inner) => {
                text.push('-');
                inner.write(random, 3, blank, variable, text);
            }
            Self::Binary(operator, left, right) => {
                left.write(random, own, blank, variable, text);
                text.push_str(blank);
                text.push(*operator);
                text.push_str(blank);
                right.write(random, own + 1, blank, variable, text);
            }
            Self::Call(name, arguments) => {
                text.push_str(name);
                text.push('(');
                for (at, argument) in arguments.iter().enumerate() {
                    if at > 0 {
                        text.push(',');
                        text.push_str(blank);
                    }
                    argument.write(random, 0, blank, variable, text);
                }
                text.push(')');
            }
        }
        if enclosed {
            text.push(')');
        }
    }
}
