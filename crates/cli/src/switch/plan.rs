//! Which writes switch injection off or on, and how they are written for kubectl.

use pillion_api::names::{REGISTRATION, SWITCH, SWITCH_KEY, SWITCHED_OFF};
use serde_json::{Value, json};

use crate::installation::is_off;
use crate::live::kinds::{CONFIG_MAP, Kind, MUTATING_REGISTRATION, SIDECAR_SET};

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// Injection stops.
    Off,
    /// Injection starts.
    On,
}

/// What the cluster has.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub(super) has_namespace: bool,
    pub(super) switch: Option<Value>,
    pub(super) registration: Option<Value>,
    /// Whether something runs that registers the webhook again.
    pub(super) is_running: bool,
}

/// What is to be done and said.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) writes: Vec<Write>,
    pub(super) notes: Vec<String>,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Write {
    pub(super) verb: Verb,
    pub(super) kind: Kind,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    /// The object, or a JSON merge patch.
    pub(super) body: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Create,
    Patch,
}

impl Write {
    /// `configmap/pillion-switch`
    pub(super) fn title(&self) -> String {
        format!("{}/{}", self.kind.name.to_ascii_lowercase(), self.name)
    }

    pub(super) fn done(&self) -> &'static str {
        match self.verb {
            Verb::Create => "created",
            Verb::Patch => "patched",
        }
    }

    /// The command that does the same, with these flags for the cluster.
    pub(super) fn kubectl(&self, flags: &str) -> String {
        let namespace = self.namespace.as_ref().map(|name| format!(" -n {name}")).unwrap_or_default();
        let (kind, name) = (self.kind.name.to_ascii_lowercase(), &self.name);
        match self.verb {
            Verb::Create => {
                let data = self.body["data"].as_object().into_iter().flatten();
                let literals =
                    data.map(|(key, value)| format!(" --from-literal={key}={}", value.as_str().unwrap_or_default()));
                format!("kubectl{flags} create {kind} {name}{namespace}{}", literals.collect::<String>())
            }
            Verb::Patch => format!("kubectl{flags} patch {kind} {name}{namespace} --type=merge -p '{}'", self.body),
        }
    }
}

/// Switches all of it.
pub(super) fn plan(direction: Direction, namespace: &str, found: &Found) -> Plan {
    let mut plan = Plan::default();
    let write = |verb, body| Write {
        verb,
        kind: CONFIG_MAP,
        namespace: Some(namespace.to_owned()),
        name: SWITCH.to_owned(),
        body,
    };
    let switch_is_off = found.switch.as_ref().is_some_and(is_off);
    match direction {
        Direction::Off => {
            match &found.switch {
                _ if switch_is_off => plan.notes.push("injection was switched off before".to_owned()),
                Some(_) => plan.writes.push(write(Verb::Patch, json!({"data": {SWITCH_KEY: SWITCHED_OFF}}))),
                None if found.has_namespace => {
                    let metadata = json!({"name": SWITCH, "namespace": namespace});
                    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
                        "data": {SWITCH_KEY: SWITCHED_OFF}});
                    plan.writes.push(write(Verb::Create, map));
                }
                None => plan.notes.push(format!(
                    "there is no namespace {namespace}: name the one the product runs in with --pillion-namespace"
                )),
            }
            plan.writes.extend(empty_registration(found.registration.as_ref()));
            plan.notes.push("pods created from now on get no sidecars; `pillion on` switches on again".to_owned());
        }
        Direction::On => {
            if switch_is_off {
                plan.writes.push(write(Verb::Patch, json!({"data": {SWITCH_KEY: null}})));
            } else {
                plan.notes.push("injection was not switched off".to_owned());
            }
            let is_registered = found.registration.as_ref().is_some_and(has_webhooks);
            if !is_registered && found.is_running {
                plan.notes.push("the manager registers its webhooks again within seconds".to_owned());
            } else if !is_registered {
                plan.notes
                    .push(format!("no manager runs in namespace {namespace}: the webhooks come back when one does"));
            }
            plan.notes.push(
                "pods created meanwhile have no sidecars: `pillion why` names them, creating them again helps"
                    .to_owned(),
            );
        }
    }
    plan
}

/// The API server asks nobody any more, also where it would refuse pods because nobody answers.
fn empty_registration(registration: Option<&Value>) -> Option<Write> {
    registration.filter(|registration| has_webhooks(registration)).map(|_| Write {
        verb: Verb::Patch,
        kind: MUTATING_REGISTRATION,
        namespace: None,
        name: REGISTRATION.to_owned(),
        body: json!({"webhooks": []}),
    })
}

fn has_webhooks(registration: &Value) -> bool {
    registration["webhooks"].as_array().is_some_and(|webhooks| !webhooks.is_empty())
}

/// Switches one set, in the spelling it has.
pub(super) fn plan_of_set(direction: Direction, set: &Value) -> Plan {
    let spec = &set["spec"];
    let is_shipped = spec.get("injectionStrategy").is_some();
    let strategy = if is_shipped { "injectionStrategy" } else { "injectStrategy" };
    let paused = direction == Direction::Off;
    let name = set.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let notes = match direction {
        Direction::Off => format!("new pods get nothing of set {name}, and running pods do not follow it"),
        Direction::On => format!("pods created while set {name} was off must be created again"),
    };
    let is_so = |field: &str| spec[field]["paused"].as_bool().unwrap_or(false) == paused;
    if is_so(strategy) && is_so("updateStrategy") {
        let state = if paused { "off" } else { "on" };
        return Plan { writes: Vec::new(), notes: vec![format!("set {name} was {state} before")] };
    }
    let body = json!({"spec": {strategy: {"paused": paused}, "updateStrategy": {"paused": paused}}});
    let write = Write { verb: Verb::Patch, kind: SIDECAR_SET, namespace: None, name, body };
    Plan { writes: vec![write], notes: vec![notes] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(plan: &Plan) -> Vec<String> {
        plan.writes.iter().map(|write| write.kubectl("")).collect()
    }

    fn registered() -> Value {
        json!({"webhooks": [{"name": "pods.pillion.dev"}]})
    }

    const EMPTY: &str = "kubectl patch mutatingwebhookconfiguration pillion --type=merge -p '{\"webhooks\":[]}'";

    #[test]
    fn off_writes_the_switch_and_empties_the_registration() {
        let fresh = Found { has_namespace: true, registration: Some(registered()), ..Found::default() };
        let create = "kubectl create configmap pillion-switch -n pillion-system --from-literal=injection=off";
        let off = plan(Direction::Off, "pillion-system", &fresh);
        assert_eq!(commands(&off), [create, EMPTY]);
        assert_eq!(off.writes[0].body["kind"], "ConfigMap");
        assert_eq!((off.writes[0].title().as_str(), off.writes[0].done()), ("configmap/pillion-switch", "created"));

        let used = Found { switch: Some(json!({"data": {}})), ..fresh.clone() };
        let patch = "kubectl patch configmap pillion-switch -n pillion-system --type=merge -p '{\"data\":{\"injection\":\"off\"}}'";
        assert_eq!(commands(&plan(Direction::Off, "pillion-system", &used)), [patch, EMPTY]);

        // Twice is no more than once.
        let done = Found { switch: Some(json!({"data": {"injection": "off"}})), registration: None, ..fresh.clone() };
        let again = plan(Direction::Off, "pillion-system", &done);
        assert_eq!(again.writes, []);
        assert_eq!(again.notes[0], "injection was switched off before");

        // The pods come first, whatever else is wrong.
        let nowhere = Found { has_namespace: false, ..fresh };
        let off = plan(Direction::Off, "other", &nowhere);
        assert_eq!(commands(&off), [EMPTY]);
        assert!(off.notes[0].starts_with("there is no namespace other: "), "{:?}", off.notes);
    }

    #[test]
    fn on_takes_the_switch_away_and_says_when_the_webhooks_come_back() {
        let off = Found {
            has_namespace: true,
            switch: Some(json!({"data": {"injection": "off"}})),
            registration: Some(json!({"webhooks": []})),
            is_running: false,
        };
        let patch = "kubectl patch configmap pillion-switch -n pillion-system --type=merge -p '{\"data\":{\"injection\":null}}'";
        let on = plan(Direction::On, "pillion-system", &off);
        assert_eq!(commands(&on), [patch]);
        assert_eq!(on.notes[0], "no manager runs in namespace pillion-system: the webhooks come back when one does");
        let running = plan(Direction::On, "pillion-system", &Found { is_running: true, ..off });
        assert_eq!(running.notes[0], "the manager registers its webhooks again within seconds");

        let was_on =
            Found { has_namespace: true, registration: Some(registered()), is_running: true, ..Found::default() };
        let on = plan(Direction::On, "pillion-system", &was_on);
        assert_eq!((on.writes, on.notes[0].as_str()), (vec![], "injection was not switched off"));
    }

    #[test]
    fn a_set_is_switched_in_its_own_spelling() {
        for (spec, strategy) in [
            (json!({}), "injectStrategy"),
            (json!({"injectStrategy": {"paused": false}}), "injectStrategy"),
            (json!({"injectionStrategy": {"revision": {}}}), "injectionStrategy"),
        ] {
            let set = json!({"metadata": {"name": "mesh"}, "spec": spec});
            let command = format!(
                "kubectl --context near patch sidecarset mesh --type=merge -p '{{\"spec\":{{\"{strategy}\":{{\"paused\":true}},\"updateStrategy\":{{\"paused\":true}}}}}}'"
            );
            let off = plan_of_set(Direction::Off, &set);
            assert_eq!(off.writes[0].kubectl(" --context near"), command);
        }
        let half = json!({"metadata": {"name": "mesh"}, "spec": {"injectStrategy": {"paused": true}}});
        assert_eq!(plan_of_set(Direction::Off, &half).writes.len(), 1);
        assert_eq!(
            plan_of_set(Direction::On, &half).writes[0].body,
            json!({"spec": {"injectStrategy": {"paused": false}, "updateStrategy": {"paused": false}}})
        );
        let whole = json!({"metadata": {"name": "mesh"}, "spec": {"injectionStrategy": {"paused": true}, "updateStrategy": {"paused": true}}});
        let again = plan_of_set(Direction::Off, &whole);
        assert_eq!((again.writes, again.notes), (vec![], vec!["set mesh was off before".to_owned()]));
        let never = json!({"metadata": {"name": "mesh"}, "spec": {}});
        assert_eq!(plan_of_set(Direction::On, &never).notes, ["set mesh was on before"]);
    }
}
