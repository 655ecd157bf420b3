//! Resources computed from the pod's own containers.

use pillion_api::{ComputedResources, Reason, Sidecar};
use pillion_expr::{self as expr, Amounts, EvalError, Field, Input, Outcome, Quantity, Resource, Side, Targets};
use serde_json::{Map, Value, json};

use crate::decision::Refusal;
use crate::decision::Size;
use crate::pod::{Container, Pod};

/// Computes what a sidecar gets, and writes it into its container.
pub(crate) fn size<'a>(
    pod: &Pod<'a>,
    sidecar: &'a Sidecar,
    policy: &'a ComputedResources,
    container: &mut Map<String, Value>,
) -> Result<Vec<Size<'a>>, Refusal> {
    let own = own_containers(pod, policy)?;
    let targets = Targets::select(own, &policy.targets).map_err(|none| {
        let message = format!("container {}: {none}{}", sidecar.name, injected_targets(pod, policy));
        Refusal::new(Reason::NoTarget, message)
    })?;
    let mut sizes = Vec::new();
    for field in Field::ALL {
        if let Some(program) = policy.program(field) {
            let input = targets.aggregate(field, policy.mode).map_err(|error| {
                Refusal::new(Reason::AmountOutOfRange, format!("container {}: {error}", sidecar.name))
            })?;
            let result = program.eval(input).map_err(|error| refusal(sidecar, field, program.source(), error))?;
            let targets = targets.containers().iter().map(|target| (target.name, target.get(field))).collect();
            sizes.push(Size { container: &sidecar.name, field, program, mode: policy.mode, targets, input, result });
        }
    }
    write(sidecar, &sizes, container)?;
    Ok(sizes)
}

/// The containers that would be targets without the variable of injected containers.
fn injected_targets(pod: &Pod<'_>, policy: &ComputedResources) -> String {
    let injected = pod.all().filter(|it| it.is_injected && policy.targets.is_match(it.name));
    let names: Vec<&str> = injected.map(|it| it.name).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("; {} is injected: it has IS_INJECTED=true", names.join(", "))
    }
}

/// The containers that may be targets, read only where their names match.
fn own_containers<'a>(pod: &Pod<'a>, policy: &ComputedResources) -> Result<Vec<expr::Container<'a>>, Refusal> {
    let read = |container: &Container<'a>| {
        if !policy.targets.is_match(container.name) {
            return Ok(expr::Container {
                name: container.name,
                requests: Amounts::default(),
                limits: Amounts::default(),
            });
        }
        Ok(expr::Container {
            name: container.name,
            requests: amounts(container, Side::Requests)?,
            limits: amounts(container, Side::Limits)?,
        })
    };
    pod.own_running().map(|(_, container)| read(container)).collect()
}

fn amounts(container: &Container<'_>, side: Side) -> Result<Amounts, Refusal> {
    Ok(Amounts { cpu: amount(container, side, Resource::Cpu)?, memory: amount(container, side, Resource::Memory)? })
}

fn amount(container: &Container<'_>, side: Side, resource: Resource) -> Result<Option<Quantity>, Refusal> {
    let resources = container.json.get("resources");
    let value = resources.and_then(|it| it.get(side.to_string())).and_then(|it| it.get(resource.name()));
    let text = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let unreadable = |error: String| {
        let message = format!("{side}.{resource} of container {} is {text:?}: {error}", container.name);
        Refusal::new(Reason::UnreadablePod, message)
    };
    let amount: Quantity = text.parse().map_err(|error| unreadable(format!("{error}")))?;
    if amount.is_negative() {
        return Err(unreadable("an amount cannot be negative".to_owned()));
    }
    // A node reads a limit of 0 as no limit.
    let is_no_limit = side == Side::Limits && amount.is_zero();
    Ok((!is_no_limit).then_some(amount))
}

fn refusal(sidecar: &Sidecar, field: Field, source: &str, error: EvalError) -> Refusal {
    let reason = match error {
        EvalError::Negative { .. } => Reason::NegativeResult,
        EvalError::NegativeInput { .. } | EvalError::TooLarge { .. } => Reason::AmountOutOfRange,
    };
    Refusal::new(reason, format!("container {}, {field} = {source}: {error}", sidecar.name))
}

fn write(sidecar: &Sidecar, sizes: &[Size<'_>], container: &mut Map<String, Value>) -> Result<(), Refusal> {
    let (mut limits, mut requests) = (Map::new(), Map::new());
    for resource in [Resource::Cpu, Resource::Memory] {
        let found = |side| sizes.iter().find(|size| size.field == Field { side, resource });
        let limit = match found(Side::Limits) {
            Some(Size { result: Outcome::Amount(limit), .. }) => Some(*limit),
            Some(Size { result: Outcome::Unlimited, .. }) | None => None,
        };
        // No expression means a request of 0. It is written only beside a limit, which would be copied otherwise.
        let request = match found(Side::Requests) {
            Some(Size { result: Outcome::Amount(request), .. }) => Some(*request),
            Some(Size { result: Outcome::Unlimited, .. }) | None => limit.map(|_| Quantity::ZERO),
        };
        if let Some(limit) = limit {
            check(sidecar, resource, limit, request.unwrap_or_default())?;
            limits.insert(resource.name().to_owned(), json!(limit.human(resource).to_string()));
        }
        if let Some(request) = request {
            requests.insert(resource.name().to_owned(), json!(request.human(resource).to_string()));
        }
    }
    let mut resources = container.get("resources").and_then(Value::as_object).cloned().unwrap_or_default();
    for (side, amounts) in [("limits", limits), ("requests", requests)] {
        if !amounts.is_empty() {
            resources.insert(side.to_owned(), Value::Object(amounts));
        }
    }
    if !resources.is_empty() {
        container.insert("resources".to_owned(), Value::Object(resources));
    }
    Ok(())
}

fn check(sidecar: &Sidecar, resource: Resource, limit: Quantity, request: Quantity) -> Result<(), Refusal> {
    let name = &sidecar.name;
    if limit.is_zero() {
        let message = format!("container {name}: limits.{resource} comes to 0, which a node reads as no limit");
        return Err(Refusal::new(Reason::ZeroLimit, message));
    }
    if request > limit {
        let (request, limit) = (request.human(resource), limit.human(resource));
        let message = format!(
            "container {name}: requests.{resource} comes to {request}, more than limits.{resource} with {limit}"
        );
        return Err(Refusal::new(Reason::RequestAboveLimit, message));
    }
    Ok(())
}

/// An amount as people read it.
pub(crate) fn shown(input: Input, resource: Resource) -> String {
    match input {
        Input::Amount(amount) => amount.human(resource).to_string(),
        Input::Unlimited => "unlimited".to_owned(),
    }
}
