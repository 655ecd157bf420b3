//! Resource expressions: such as people write, and such as nobody would.

mod tree;

use pillion_expr::{Field, Program, Resource};
use proptest::arbitrary::any;
use proptest::strategy::Strategy;

use crate::random::Random;
pub use tree::Tree;

/// Tries of an odd expression that compiles, before a usual one is taken.
const TRIES: usize = 4;

/// Expressions that compile for a field. Some give less than zero for some amounts; none for all.
pub fn expression(field: Field) -> impl Strategy<Value = String> + Clone {
    any::<u64>().no_shrink().prop_map(move |seed| draw(&mut Random::new(seed), field))
}

/// One expression.
pub(crate) fn draw(random: &mut Random, field: Field) -> String {
    if random.chance(30) {
        for _ in 0..TRIES {
            let odd = Tree::draw(random, field).print(random, field);
            if Program::compile(&odd, field).is_ok() {
                return odd;
            }
        }
    }
    let (share, floor) = (share(random), floor(random));
    usual(random, field, share, floor)
}

/// Expressions for the limit and the request of a resource that go together: the request is never above the limit where
/// those of the pod are not.
pub(crate) fn matching(random: &mut Random, resource: Resource) -> (String, String) {
    let (one, other) = (share(random), share(random));
    let (low, high) = (floor(random), floor(random));
    let form = random.below(FORMS);
    let limit = of_form(form, resource, one.max(other), low.max(high));
    let request = of_form(form, resource, one.min(other), low.min(high));
    (limit, request)
}

/// Percent of the variable.
fn share(random: &mut Random) -> u64 {
    random.one_of(&[5, 10, 20, 25, 50, 100, 150])
}

/// Thousandths of a core, or mebibytes.
fn floor(random: &mut Random) -> u64 {
    random.one_of(&[10, 50, 64, 100, 200, 500])
}

fn usual(random: &mut Random, field: Field, share: u64, floor: u64) -> String {
    let variable = field.resource.name();
    let amount = amount(field.resource, floor);
    match random.below(FORMS + 3) {
        // Less than zero for small pods.
        0 => format!("{variable} - {amount}"),
        // Zero for pods that ask for nothing.
        1 => format!("{}*{share}%", variable.to_ascii_uppercase()),
        2 => format!("0.5*{variable} - 0.3*max(0, {variable}-{amount}) + 0.3*max(0, {variable}-8*{amount})"),
        form => of_form(form - 3, field.resource, share, floor),
    }
}

/// How many forms there are that never fall as the variable, the share or the floor rise.
const FORMS: u64 = 6;

fn of_form(form: u64, resource: Resource, share: u64, floor: u64) -> String {
    let (variable, amount) = (resource.name(), amount(resource, floor));
    match form {
        0 => amount,
        1 => format!("max({variable}*{share}%, {amount})"),
        2 => format!("{variable} * {share}% + {amount}"),
        3 => format!("min(max({variable}*{share}/100, {amount}), 10*{amount})"),
        4 => format!("{amount} + {variable}*{share}%*(1/2)"),
        // Zero for small pods, and a limit of zero is none.
        _ => format!("max(0, {variable}*{share}% - {})", self::amount(resource, 500)),
    }
}

fn amount(resource: Resource, floor: u64) -> String {
    match resource {
        Resource::Cpu => format!("{floor}m"),
        Resource::Memory => format!("{floor}Mi"),
    }
}
