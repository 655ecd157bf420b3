use std::collections::BTreeMap;

use super::*;

fn spec(image: &str, rest: &Value) -> Map<String, Value> {
    let mut spec =
        json!({"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "proxy", "image": image}]});
    spec.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    spec.as_object().unwrap().clone()
}

fn set(image: &str, version: Option<&str>, rest: &Value) -> (Meaning, Map<String, Value>) {
    let spec = spec(image, rest);
    let labels = version.map(|version| json!({"apps.kruise.io/sidecarset-custom-version": version}));
    let review = pillion_api::review(&json!({"metadata": {"name": "mesh", "labels": labels}, "spec": spec}));
    (review.meaning.unwrap_or_else(|| panic!("{:?}", review.problems)), spec)
}

/// What the API server stores, with its clients' steps carried out.
#[derive(Default)]
struct Stored(BTreeMap<String, Revision>);

impl Stored {
    fn follow(&mut self, set: &(Meaning, Map<String, Value>), in_use: &[&str]) -> Vec<Step> {
        let stored: Vec<&Revision> = self.0.values().collect();
        let in_use = in_use.iter().copied().collect();
        let steps = steps(&set.0, "u-1", "ours", &set.1, &stored, &in_use);
        for step in &steps {
            match step {
                Step::Create(object) => {
                    let revision = Revision::read(object).unwrap();
                    assert_eq!(self.0.insert(revision.name.clone(), revision), None);
                }
                Step::Change { name, number, custom_versions } => {
                    let revision = self.0.get_mut(name).unwrap();
                    (revision.number, revision.custom_versions) = (*number, custom_versions.clone());
                }
                Step::Delete(name) => assert!(self.0.remove(name).is_some()),
            }
        }
        steps
    }

    fn numbers(&self) -> Vec<i64> {
        let mut numbers: Vec<i64> = self.0.values().map(|revision| revision.number).collect();
        numbers.sort_unstable();
        numbers
    }
}

fn image(number: usize) -> (Meaning, Map<String, Value>) {
    set(&format!("proxy:{number}"), None, &json!({}))
}

// Scenario 20 of OpenKruise's suite.
#[test]
fn fifteen_changes_keep_ten_and_going_back_renumbers() {
    let mut stored = Stored::default();
    for number in 1..=15 {
        stored.follow(&image(number), &[]);
        assert_eq!(stored.follow(&image(number), &[]), [], "nothing is done twice");
    }
    assert_eq!(stored.numbers(), (6..=15).collect::<Vec<_>>());
    let back = image(7);
    let steps = stored.follow(&back, &[]);
    assert_eq!(steps, [Step::Change { name: back.0.revision.clone(), number: 16, custom_versions: Vec::new() }]);
    assert_eq!(stored.numbers(), [6, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
    // One that was let go is a new one.
    let steps = stored.follow(&image(1), &[]);
    assert!(matches!(&steps[..], [Step::Create(object), Step::Delete(_)] if object["revision"] == 17));
    assert_eq!(stored.numbers(), [8, 9, 10, 11, 12, 13, 14, 15, 16, 17]);
}

#[test]
fn what_is_in_use_stays_however_old_it_is() {
    let mut stored = Stored::default();
    let (first, second) = (image(1).0.revision, image(2).0.revision);
    let limited = |number: usize| {
        let strategy = json!({"revisionHistoryLimit": 2, "injectStrategy": {"controllerRevision": second}});
        set(&format!("proxy:{number}"), None, &strategy)
    };
    for number in 1..=6 {
        stored.follow(&limited(number), &[&first]);
    }
    // The pod's, the pin's, and the newest; the limit is soft for the first two.
    assert_eq!(stored.numbers(), [1, 2, 6]);
    stored.follow(&limited(6), &[]);
    assert_eq!(stored.numbers(), [2, 6]);
}

// K-17: a version that was given to a revision keeps naming it.
#[test]
fn a_custom_version_stays_with_the_revision_it_was_given_to() {
    let mut stored = Stored::default();
    let one = |version| set("proxy:1", Some(version), &json!({}));
    stored.follow(&one("v1"), &[]);
    let steps = stored.follow(&one("v2"), &[]);
    let versions = vec!["v1".to_owned(), "v2".to_owned()];
    assert_eq!(steps, [Step::Change { name: one("v1").0.revision, number: 1, custom_versions: versions }]);
    stored.follow(&set("proxy:2", Some("v3"), &json!({})), &[]);
    let pin = |version: &str| {
        let pin = json!({"injectionStrategy": {"revision": {"customVersion": version}}});
        set("proxy:2", Some("v3"), &pin).0
    };
    for version in ["v1", "v2"] {
        let set = pin(version);
        let found = pinned(&set, "u-1", stored.0.values());
        assert!(matches!(found, Pinned::Stored(revision, _) if revision.number == 1), "{version}: {found:?}");
    }
    assert_eq!(pinned(&pin("v3"), "u-1", stored.0.values()), Pinned::Newest);
    assert_eq!(pinned(&pin("v4"), "u-1", stored.0.values()), Pinned::Missing("v4"));
    assert_eq!(pinned(&pin("v1"), "u-2", stored.0.values()), Pinned::Missing("v1"), "another set has other versions");
}

// K-09: a set cannot have a revision of another.
#[test]
fn a_pin_is_of_this_set() {
    let mut stored = Stored::default();
    stored.follow(&image(1), &[]);
    stored.follow(&image(2), &[]);
    let named = |name: &str| set("proxy:2", None, &json!({"injectStrategy": {"revision": name}})).0;
    let (old, newest) = (image(1).0.revision, image(2).0.revision);
    let set = named(&old);
    assert!(matches!(pinned(&set, "u-1", stored.0.values()), Pinned::Stored(revision, _) if revision.name == old));
    assert_eq!(pinned(&set, "u-2", stored.0.values()), Pinned::Foreign(&old));
    assert_eq!(pinned(&named(&newest), "u-1", [].into_iter()), Pinned::Newest, "also before it is stored");
    assert_eq!(pinned(&named("mesh-none"), "u-1", stored.0.values()), Pinned::Missing("mesh-none"));
    assert_eq!(pinned(&image(2).0, "u-1", stored.0.values()), Pinned::Nothing);
}

#[test]
fn what_is_stored_names_its_set_and_every_field() {
    let (set, spec) = set("proxy:1", Some("v1"), &json!({"labels": {"a": "b"}}));
    let steps = steps(&set, "u-1", "ours", &spec, &[], &BTreeSet::new());
    let [Step::Create(object)] = &steps[..] else { panic!("{steps:?}") };
    let fields = json!({"appVolumeMounts": null, "containers": [{"name": "proxy", "image": "proxy:1"}], "imagePullSecrets": null,
        "initContainers": null, "labels": {"a": "b"}, "patchPodMetadata": null, "serviceAccountName": null,
        "shareProcessNamespace": null, "volumes": null});
    let expected = json!({"apiVersion": "apps/v1", "kind": "ControllerRevision",
        "metadata": {"name": set.revision, "namespace": "ours",
            "labels": {"pillion.dev/sidecarset-uid": "u-1", "app.kubernetes.io/part-of": "pillion"},
            "annotations": {"pillion.dev/custom-versions": "[\"v1\"]"},
            "ownerReferences": [{"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "name": "mesh", "uid": "u-1", "controller": true}]},
        "revision": 1, "data": {"v": 1, "spec": fields}});
    assert_eq!(object, &expected);
    let read = Revision::read(object).unwrap();
    assert_eq!(read.template.as_deref(), Some(&set.template), "it means the same when it is read again");
    assert_eq!(Revision::read(&json!({"metadata": {"name": "x"}, "revision": 1, "data": {"spec": {}}})), None);
}
