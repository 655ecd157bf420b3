//! `resourcesPolicy`: one spelling out of two, compiled.

use pillion_expr::{Field, Interval, Mode, Program, Ratio, Resource, Side, Sign};

use super::Reader;
use crate::Reason;
use crate::meaning::ComputedResources;
use crate::problem::{Excerpt, FieldPath, Problem};
use crate::resources_policy::{ResourceExpr, ResourcesPolicy, TargetMode};

impl Reader {
    /// `None` where something is wrong, which is then among the problems of this reader or of the rules.
    pub(super) fn policy(&mut self, stored: &ResourcesPolicy, path: &FieldPath) -> Option<ComputedResources> {
        let pattern = stored.target_containers_name_regex.as_deref();
        let targets = self.pattern(pattern, &path.field("targetContainersNameRegex"));
        let mut programs = Vec::new();
        let spellings = [("resourceExpr", &stored.resource_expr), ("resourcesExpr", &stored.resources_expr)];
        for (name, expr) in spellings {
            for field in Field::ALL {
                let text = expr.as_ref().and_then(|expr| expression(expr, field));
                let place = path.field(name).field(&field.side.to_string()).key(field.resource.name());
                programs.extend(text.and_then(|text| self.program(text, field, place)));
            }
        }
        let mode = match stored.target_container_mode.or(stored.target_containers_mode)? {
            TargetMode::Sum => Mode::Sum,
            TargetMode::Max => Mode::Max,
        };
        Some(ComputedResources { mode, targets: targets?, programs })
    }

    fn program(&mut self, text: &str, field: Field, path: FieldPath) -> Option<Program> {
        match Program::compile(text, field) {
            Ok(program) => {
                self.negative(&program, path);
                Some(program)
            }
            Err(error) => {
                let excerpt = Excerpt {
                    text: text.to_owned(),
                    start: error.span.start,
                    end: error.span.end,
                    drawn: error.render(text, &path.to_string()),
                };
                let problem = Problem::error(Reason::InvalidExpression, path, error.message, error.help);
                self.problems.push(Problem { excerpt: Some(excerpt), ..problem });
                None
            }
        }
    }

    /// A result that may be negative refuses pods later: the person is told for which.
    fn negative(&mut self, program: &Program, path: FieldPath) {
        let analysis = program.analysis();
        if analysis.sign() != Sign::SometimesNegative {
            return;
        }
        let resource = program.field().resource;
        let intervals: Vec<String> = analysis.negative().iter().map(|found| interval(found, resource)).collect();
        let message = format!("the result is negative for {}: such pods are refused", intervals.join(" and "));
        self.warning(Reason::PossiblyNegative, path, message, "wrap it in max(0, …) if that is not meant");
    }
}

/// The text of a field; an empty one counts as absent.
fn expression(expr: &ResourceExpr, field: Field) -> Option<&str> {
    let side = match field.side {
        Side::Requests => &expr.requests,
        Side::Limits => &expr.limits,
    };
    let text = side.as_ref()?.get(field.resource.name())?;
    (!text.trim().is_empty()).then_some(text)
}

/// `cpu in [0, 2)`
fn interval(interval: &Interval, resource: Resource) -> String {
    let open = if interval.from_included { '[' } else { '(' };
    let to = interval.to.map_or_else(|| "∞".to_owned(), |to| amount(to, resource));
    format!("{resource} in {open}{}, {to})", amount(interval.from, resource))
}

fn amount(value: Ratio, resource: Resource) -> String {
    match (resource, value.to_quantity()) {
        (Resource::Memory, Some(quantity)) => quantity.human(resource).to_string(),
        _ => value.to_string(),
    }
}
