//! What is found, and where in the files it is.

use pillion_api::{FieldPath, Meaning, Problem, Reason, Segment, advice, clashes};

use crate::autoscalers::{self, is_autoscaler};
use crate::diagnostic::{Diagnostic, Excerpt};
use crate::manifest::{Manifest, Place};
use crate::sidecar_sets::{ReviewedSet, reviewed};

/// All findings of a run.
pub(super) struct Report<'a> {
    /// By file and place.
    pub(super) findings: Vec<Finding<'a>>,
    /// How many sets there are.
    pub(super) sets: usize,
    /// How many autoscalers there are.
    pub(super) autoscalers: usize,
    /// How many other objects there are, which were not looked at.
    pub(super) ignored: usize,
}

/// One problem of one object.
pub(super) struct Finding<'a> {
    pub(super) manifest: &'a Manifest,
    pub(super) problem: Problem,
    pub(super) place: Place,
    pub(super) also: Vec<OtherHalf<'a>>,
}

/// Where the other half of a problem is, maybe in another set.
pub(super) struct OtherHalf<'a> {
    pub(super) manifest: &'a Manifest,
    pub(super) path: FieldPath,
    pub(super) place: Place,
}

impl<'a> Report<'a> {
    pub(super) fn of(manifests: &'a [Manifest]) -> Self {
        let (sets, others) = reviewed(manifests);
        let mut findings = Vec::new();
        for set in &sets {
            let problems = set.review.problems.iter().cloned();
            let advice = set.review.meaning.iter().flat_map(advice);
            let mut found: Vec<_> = problems.chain(advice).map(|problem| Finding::new(set.manifest, problem)).collect();
            found.extend(clashes_of(set, &sets));
            found.sort_by_key(|finding| finding.place);
            findings.append(&mut found);
        }
        let mut autoscalers = 0;
        for manifest in manifests.iter().filter(|manifest| is_autoscaler(manifest)) {
            autoscalers += 1;
            let problems = autoscalers::judged(manifest).into_iter();
            let mut found: Vec<_> = problems.map(|problem| Finding::new(manifest, problem)).collect();
            found.sort_by_key(|finding| finding.place);
            findings.append(&mut found);
        }
        Self { findings, sets: sets.len(), autoscalers, ignored: others - autoscalers }
    }

    pub(super) fn errors(&self) -> usize {
        self.findings.iter().filter(|finding| finding.problem.is_error()).count()
    }

    pub(super) fn warnings(&self) -> usize {
        self.findings.len() - self.errors()
    }

    /// `3 errors, 1 warning in 2 sets and 1 autoscaler; 4 other objects ignored`
    pub(super) fn summary(&self) -> String {
        let counts = [(self.errors(), "error"), (self.warnings(), "warning")];
        let counts: Vec<_> = counts.into_iter().filter(|(count, _)| *count > 0).map(counted).collect();
        let found = if counts.is_empty() { "no problems".to_owned() } else { counts.join(", ") };
        let ignored = match self.ignored {
            0 => String::new(),
            count => format!("; {} ignored", counted((count, "other object"))),
        };
        let objects = match (self.sets, self.autoscalers) {
            (sets, 0) => counted((sets, "set")),
            (0, autoscalers) => counted((autoscalers, "autoscaler")),
            (sets, autoscalers) => format!("{} and {}", counted((sets, "set")), counted((autoscalers, "autoscaler"))),
        };
        format!("{found} in {objects}{ignored}")
    }
}

pub(crate) fn counted((count, noun): (usize, &str)) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Each pair of sets is told of once, in the set that comes after the other and is refused.
fn clashes_of<'a>(set: &ReviewedSet<'a>, sets: &[ReviewedSet<'a>]) -> Vec<Finding<'a>> {
    let Some(meaning) = &set.review.meaning else { return Vec::new() };
    let earlier = |other: &&ReviewedSet<'a>| other.review.meaning.as_ref().is_some_and(|it| it.name < meaning.name);
    let mut found = Vec::new();
    for other in sets.iter().filter(earlier) {
        let of_other: Option<&Meaning> = other.review.meaning.as_ref();
        for clash in clashes(meaning, of_other) {
            let mut finding = Finding::new(set.manifest, clash.problem);
            finding.also.push(OtherHalf::new(other.manifest, clash.path_in_other, false));
            found.push(finding);
        }
    }
    found
}

impl<'a> Finding<'a> {
    fn new(manifest: &'a Manifest, mut problem: Problem) -> Self {
        let at_key = is_about_the_key(&problem);
        let place = match &problem.excerpt {
            Some(excerpt) => manifest.part(&problem.path, &excerpt.text, excerpt.start, excerpt.end),
            None => OtherHalf::new(manifest, problem.path.clone(), at_key).place,
        };
        // The caret cannot stand under what is not there.
        let may_be_missing =
            [Reason::SchemaViolation, Reason::InvalidContainer, Reason::AutoscalerInvalid].contains(&problem.reason);
        if may_be_missing && !manifest.has(&problem.path) {
            problem.message = format!("{}: {}", problem.path, problem.message);
        }
        let also = problem.also.iter().map(|path| OtherHalf::new(manifest, path.clone(), at_key)).collect();
        Self { manifest, problem, place, also }
    }

    pub(super) fn diagnostic(&self) -> Diagnostic<'_> {
        let others = self.also.iter().map(|other| Excerpt::of(other.manifest, other.place));
        Diagnostic {
            severity: self.problem.severity,
            reason: Some(self.problem.reason),
            message: &self.problem.message,
            help: &self.problem.help,
            excerpts: [Excerpt::of(self.manifest, self.place)].into_iter().chain(others).collect(),
        }
    }
}

impl<'a> OtherHalf<'a> {
    fn new(manifest: &'a Manifest, path: FieldPath, at_key: bool) -> Self {
        let place = if at_key { manifest.key_place(&path) } else { manifest.place(&path) };
        Self { manifest, path, place }
    }
}

/// Whether it is not the value that is wrong: a field should not be given at all, or its key is no key.
fn is_about_the_key(problem: &Problem) -> bool {
    match problem.reason {
        Reason::UnknownField
        | Reason::BothSpellings
        | Reason::NamespaceAndSelector
        | Reason::RevisionChoice
        | Reason::ReservedKey
        | Reason::SidecarMarkOnPlainInit
        | Reason::AutoscalerFieldIgnored => true,
        // What is wrong is quoted first, and may be either.
        Reason::InvalidMetadata | Reason::InvalidSelector => match problem.path.segments().last() {
            Some(Segment::Key(key)) => problem.message.starts_with(&format!("{key:?} ")),
            _ => false,
        },
        _ => false,
    }
}
