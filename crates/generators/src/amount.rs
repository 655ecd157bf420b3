//! Amounts of resources, in all the ways people write them.

use pillion_quantity::{Quantity, Resource};
use serde_json::{Map, Value, json};

use crate::json::object;
use crate::random::Random;

/// Thousandths of a core.
const CPU: [u64; 9] = [10, 50, 100, 250, 500, 600, 1000, 2000, 12_000];
/// Mebibytes or megabytes.
const MEMORY: [u64; 7] = [16, 64, 128, 500, 512, 1024, 4096];
/// As much as Kubernetes can count; anything added to it is too much.
const MOST_MEMORY: &str = "9223372036854775807";

/// Which of limits and requests a container has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sides {
    Both,
    Limits,
    Requests,
}

/// The `resources` of a container; the API server prints amounts in one way and copies limits to requests.
pub(crate) fn resources(random: &mut Random, served: bool) -> Option<Map<String, Value>> {
    let sides = match random.below(20) {
        0 | 1 => return served.then(Map::new),
        2 => return Some(Map::new()),
        3..=8 => Sides::Limits,
        9..=11 => Sides::Requests,
        _ => Sides::Both,
    };
    let (mut limits, mut requests) = (Map::new(), Map::new());
    for resource in [Resource::Cpu, Resource::Memory] {
        if random.chance(85) {
            let (limit, request) = pair(random, resource);
            let name = resource.name();
            if sides != Sides::Requests {
                limits.insert(name.to_owned(), limit);
            }
            if sides != Sides::Limits {
                requests.insert(name.to_owned(), request);
            }
        }
    }
    if random.chance(6) {
        limits.insert("example.com/gpu".to_owned(), json!("1"));
        requests.insert("example.com/gpu".to_owned(), json!("1"));
    }
    if served {
        for amount in limits.values_mut().chain(requests.values_mut()) {
            *amount = canonical(amount).into();
        }
        for (name, limit) in &limits {
            requests.entry(name).or_insert_with(|| limit.clone());
        }
    }
    let side = |amounts: Map<String, Value>| (!amounts.is_empty()).then(|| amounts.into());
    Some(object([("limits", side(limits)), ("requests", side(requests))]))
}

/// A limit, and a request that is not above it.
fn pair(random: &mut Random, resource: Resource) -> (Value, Value) {
    let amounts: &[u64] = match resource {
        Resource::Cpu => &CPU,
        Resource::Memory => &MEMORY,
    };
    let limit = random.up_to(amounts.len() - 1);
    let request = random.up_to(limit);
    let request = if random.chance(5) { 0 } else { amounts[request] };
    match resource {
        Resource::Cpu => (cpu(random, amounts[limit]), cpu(random, request)),
        Resource::Memory if random.chance(6) => (MOST_MEMORY.into(), MOST_MEMORY.into()),
        Resource::Memory => {
            let binary = random.chance(70);
            (memory(random, amounts[limit], binary), memory(random, request, binary))
        }
    }
}

fn cpu(random: &mut Random, milli: u64) -> Value {
    match random.below(8) {
        0..=2 => format!("{milli}m").into(),
        3 => thousandths(milli).into(),
        4 => as_number(&thousandths(milli)),
        5 => format!("{milli}e-3").into(),
        6 => format!("{}u", milli * 1000).into(),
        _ => format!("{}n", milli * 1_000_000).into(),
    }
}

/// Mebibytes, or megabytes.
fn memory(random: &mut Random, count: u64, binary: bool) -> Value {
    let bytes = if binary { count << 20 } else { count * 1_000_000 };
    let (usual, small) = if binary {
        (format!("{count}Mi"), format!("{}Ki", count << 10))
    } else {
        (format!("{count}M"), format!("{count}e6"))
    };
    match random.below(8) {
        0..=3 => usual.into(),
        4 => small.into(),
        5 => bytes.to_string().into(),
        6 => bytes.into(),
        _ if binary => format!("{bytes}000m").into(),
        _ => format!("{}G", thousandths(count)).into(),
    }
}

/// `500` is `0.5`.
fn thousandths(count: u64) -> String {
    let text = format!("{}.{:03}", count / 1000, count % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A number as it stands in the text, not as a string.
fn as_number(text: &str) -> Value {
    serde_json::from_str(text).expect("a decimal fraction is JSON")
}

/// As the API server prints it.
fn canonical(amount: &Value) -> String {
    let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
    text.parse::<Quantity>().expect("only quantities are drawn here").to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every spelling that is drawn; all must be worth the same.
    fn spellings(amount: &str, draw: fn(&mut Random) -> Value) -> Vec<String> {
        let mut random = Random::new(1);
        let drawn: BTreeSet<String> = (0..500)
            .map(|_| {
                let spelt = draw(&mut random);
                assert_eq!(canonical(&spelt).parse::<Quantity>(), amount.parse::<Quantity>(), "{spelt}");
                spelt.to_string()
            })
            .collect();
        drawn.into_iter().collect()
    }

    #[test]
    fn every_spelling_is_the_same_amount() {
        assert_eq!(
            spellings("600m", |random| cpu(random, 600)),
            ["\"0.6\"", "\"600000000n\"", "\"600000u\"", "\"600e-3\"", "\"600m\"", "0.6"]
        );
        assert_eq!(
            spellings("512Mi", |random| memory(random, 512, true)),
            ["\"512Mi\"", "\"524288Ki\"", "\"536870912\"", "\"536870912000m\"", "536870912"]
        );
        assert_eq!(
            spellings("500M", |random| memory(random, 500, false)),
            ["\"0.5G\"", "\"500000000\"", "\"500M\"", "\"500e6\"", "500000000"]
        );
    }

    #[test]
    fn no_request_is_above_its_limit_and_served_ones_have_both() {
        let mut random = Random::new(2);
        for round in 0..2000 {
            let served = round % 2 == 0;
            let Some(resources) = resources(&mut random, served) else { continue };
            let amount = |side: &str, name: &str| {
                let amount = resources.get(side)?.get(name)?;
                Some(canonical(amount).parse::<Quantity>().unwrap())
            };
            for name in ["cpu", "memory", "example.com/gpu"] {
                let (limit, request) = (amount("limits", name), amount("requests", name));
                assert!(limit.is_none() || request.is_none() || request <= limit, "{resources:?}");
                assert!(!served || limit.is_none() || request.is_some(), "{resources:?}");
            }
        }
    }
}
