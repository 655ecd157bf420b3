//! `resourcesPolicy`: one spelling out of two, compiled.

use pillion_expr::{Field, Mode, Program, Resource, Side};

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
            let mut compiled = Vec::new();
            for field in Field::ALL {
                let text = expr.as_ref().and_then(|expr| expression(expr, field));
                compiled.extend(text.and_then(|text| self.program(text, field, place(&path.field(name), field))));
            }
            self.crossing(&compiled, &path.field(name));
            programs.extend(compiled);
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
                self.problems.extend(expression_warnings(&program, &path));
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

    /// Says where a request is above the limit. A pod may have more limits than requests; where both are the same, as in
    /// every pod that gives limits only, the two expressions have one and the same variable and can be compared.
    fn crossing(&mut self, programs: &[Program], path: &FieldPath) {
        let program = |field| programs.iter().find(|program| program.field() == field);
        for resource in [Resource::Cpu, Resource::Memory] {
            let [request, limit] = [Side::Requests, Side::Limits].map(|side| Field { side, resource });
            let (Some(asks), Some(bounds)) = (program(request), program(limit)) else { continue };
            let crossing = bounds.analysis().below(&asks.analysis()).unwrap_or_default();
            if !crossing.is_empty() {
                let amounts = joined(crossing.iter().map(|found| found.human(resource)));
                let message = format!(
                    "the request is above the limit for a pod with requests and limits of {amounts}: such pods are refused"
                );
                let help = "make the request at most the limit for every amount, as in min(…, LIMIT)";
                let problem = Problem::warning(Reason::PossiblyAboveLimit, place(path, request), message, help);
                self.problems.push(problem.with_also(place(path, limit)));
            }
        }
    }
}

/// What is to be said about an expression that can be used: for which pods it gives what cannot.
pub fn expression_warnings(program: &Program, path: &FieldPath) -> Vec<Problem> {
    let Field { side, resource } = program.field();
    let floor = match (side, resource) {
        (Side::Requests, _) => "max(…, 0)",
        (Side::Limits, Resource::Cpu) => "max(…, 10m)",
        (Side::Limits, Resource::Memory) => "max(…, 16Mi)",
    };
    let mut warnings = Vec::new();
    let negative = program.analysis().negative();
    if !negative.is_empty() {
        let amounts = joined(negative.iter().map(|found| found.human(resource)));
        let message = format!("the result is negative for {amounts}: such pods are refused");
        let help = format!("give it a floor, as in {floor}, if that is not meant");
        warnings.push(Problem::warning(Reason::PossiblyNegative, path.clone(), message, help));
    }
    let zeros = program.zero_limits();
    if !zeros.is_empty() {
        let amounts = joined(zeros.iter().map(|found| found.human(resource)));
        let message = format!("the limit is 0 for {amounts}, which a node reads as no limit: such pods are refused");
        let help = format!("give it a floor above 0, as in {floor}");
        warnings.push(Problem::warning(Reason::PossiblyZeroLimit, path.clone(), message, help));
    }
    warnings
}

/// Where the expression of a field stands.
fn place(expressions: &FieldPath, field: Field) -> FieldPath {
    expressions.field(&field.side.to_string()).key(field.resource.name())
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(" and ")
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
