//! What compiling and evaluating cost; the budgets are 20 µs and 200 ns.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use pillion_expr::{Field, Input, Program, Quantity};

const SHORT: &str = "max(cpu*50%, 50m)";
const STORY: &str = "0.5*cpu - 0.3*max(0, cpu-4) + 0.3*max(0, cpu-8)";
/// 200 characters.
const LONG: &str = "max(50m, min(16, 0.5*cpu - 0.3*max(0, cpu-4) + 0.3*max(0, cpu-8) - 0.25*max(0, cpu-16) + 12.5%*max(0, cpu-32) - (cpu-64)/100, 0.4*cpu + 250m, 0.35*cpu + 500m + 10m)) + max(cpu/1000, 5m, 1500u) + 1000u";

fn evaluate(criterion: &mut Criterion) {
    for (name, text) in [("short", SHORT), ("story 5", STORY), ("200 characters", LONG)] {
        let program = Program::compile(text, Field::LIMITS_CPU).expect("the text compiles");
        let mut milli = 0;
        criterion.bench_function(&format!("eval {name}"), |bencher| {
            bencher.iter(|| {
                milli = (milli + 350) % 64_000;
                program.eval(black_box(Input::Amount(Quantity::from_milli(milli))))
            });
        });
    }
}

fn compile(criterion: &mut Criterion) {
    assert_eq!(LONG.len(), 200, "the budget is for 200 characters");
    for (name, text) in [("short", SHORT), ("story 5", STORY), ("200 characters", LONG)] {
        criterion.bench_function(&format!("compile {name}"), |bencher| {
            bencher.iter(|| Program::compile(black_box(text), Field::LIMITS_CPU));
        });
    }
}

criterion_group!(benches, evaluate, compile);
criterion_main!(benches);
