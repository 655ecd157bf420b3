//! What pause, resume, promote and undo write, and when they do not.

use super::*;
use crate::rollout::fixture::ago;
use crate::rollout::fixture::{V1, V2, canary, pod, revision, rollout, set, stored};
use crate::rollout::gather::Rollout;

fn edited(rollout: &Rollout) -> Edited<'_> {
    Edited { set: &rollout.set, meaning: &rollout.meaning, pods: rollout.pods.len() }
}

fn standing(more: Value) -> Rollout {
    let set = set(V2, more);
    rollout(&set, &[], &[pod(&set, "shop", "web", 0), pod(&set, "shop", "web", 1)])
}

fn refused<T>(result: Result<T, Refused>) -> String {
    match result {
        Ok(_) => panic!("it was not refused"),
        Err(Refused(why)) => why,
    }
}

/// The set after an edit.
fn applied(edit: &Edit, set: &Value) -> Value {
    let mut set = set.clone();
    // The library does not know that a test for null is one for nothing, which the API server does.
    let operations: Vec<Value> = edit.patch.json().as_array().unwrap().clone();
    let operations = operations.into_iter().filter(|it| it["op"] != "test" || !it["value"].is_null());
    let patch: json_patch::Patch = serde_json::from_value(operations.collect()).unwrap();
    json_patch::patch(&mut set, &patch).unwrap();
    set
}

#[test]
fn a_rollout_is_paused_once_and_resumed_once() {
    let runs = standing(json!({}));
    let edit = edited(&runs).pause().unwrap();
    let paused = applied(&edit, &runs.set);
    assert_eq!(paused["spec"]["updateStrategy"], json!({"paused": true}));
    assert_eq!(edit.notes, ["pods under way are finished, and no further one is started"]);
    assert_eq!(
        refused(edited(&runs).resume()),
        "set mesh is not paused: `pillion rollout status scs/mesh` tells what pods wait for"
    );

    let paused = rollout(&paused, &[], &[]);
    assert_eq!(
        refused(edited(&paused).pause()),
        "set mesh is paused already: `pillion rollout resume scs/mesh` goes on"
    );
    let edit = edited(&paused).resume().unwrap();
    assert_eq!(applied(&edit, &paused.set)["spec"]["updateStrategy"], json!({"paused": false}));
    assert_eq!(edit.notes, ["pods are updated again"]);

    // Nothing moves all the same.
    let never = standing(json!({"updateStrategy": {"type": "NotUpdate", "paused": true}}));
    assert_eq!(edited(&never).resume().unwrap().notes, ["pods are updated again", NOT_UPDATED]);
    let pinned = edited(&canary()).pause().unwrap();
    assert_eq!(pinned.notes[1..], ["new pods get the pinned revision"]);
}

#[test]
fn promoting_to_the_end_takes_partition_and_pin_in_every_spelling() {
    let pins = [
        (json!({"injectStrategy": {"revision": "mesh-1"}}), json!({"injectStrategy": {}})),
        (
            json!({"injectStrategy": {"controllerRevision": "mesh-1", "paused": false}}),
            json!({"injectStrategy": {"paused": false}}),
        ),
        (
            json!({"injectionStrategy": {"revision": {"customVersion": "autumn", "policy": "Partial"}, "proportion": "Random"}}),
            json!({"injectionStrategy": {"proportion": "Random"}}),
        ),
    ];
    for (pin, left) in pins {
        let mut more = pin.clone();
        more["updateStrategy"] = json!({"partition": "90%", "maxUnavailable": 2});
        let rollout = standing(more);
        let edit = edited(&rollout).promote(None).unwrap();
        let after = applied(&edit, &rollout.set);
        assert_eq!(after["spec"]["updateStrategy"], json!({"partition": 0, "maxUnavailable": 2}));
        for (key, value) in left.as_object().unwrap() {
            assert_eq!(&after["spec"][key], value, "{pin}");
        }
        assert_eq!(edit.notes, [""; 0]);
    }
    // Only the pin.
    let rollout =
        standing(json!({"injectStrategy": {"controllerRevision": "mesh-1"}, "updateStrategy": {"paused": true}}));
    let edit = edited(&rollout).promote(None).unwrap();
    assert_eq!(applied(&edit, &rollout.set)["spec"]["updateStrategy"], json!({"paused": true}));
    assert_eq!(edit.notes, ["the update is paused: pods follow after `pillion rollout resume scs/mesh`"]);
    assert_eq!(
        refused(edited(&standing(json!({}))).promote(None)),
        "set mesh holds no pod back: partition is 0 and no revision is pinned; \
         `pillion rollout status scs/mesh` tells what pods wait for"
    );
}

#[test]
fn promoting_in_steps_only_lowers_the_partition() {
    let promoted = |partition: Value, to: &str| {
        let rollout = standing(json!({"updateStrategy": {"partition": partition}}));
        let edit = edited(&rollout).promote(Some(count(to).unwrap()));
        edit.map(|edit| applied(&edit, &rollout.set)["spec"]["updateStrategy"]["partition"].clone())
    };
    assert_eq!(promoted(json!("90%"), "50%"), Ok(json!("50%")));
    assert_eq!(promoted(json!(7), "3"), Ok(json!(3)));
    assert_eq!(promoted(json!(7), "0"), Ok(json!(0)));
    // Of two pods 99 % keep one, and so do 50 %.
    assert_eq!(promoted(json!(2), "50%"), Ok(json!("50%")));
    assert_eq!(
        refused(promoted(json!(1), "99%")),
        "partition is 1, and 99% would keep as many pods at the old revision or more: promote only lowers it"
    );
    assert_eq!(
        refused(promoted(json!("10%"), "20%")),
        "partition is 10%, and 20% would keep as many pods at the old revision or more: promote only lowers it"
    );
    assert_eq!(
        refused(promoted(json!(3), "3")),
        "partition of set mesh is 3 already; `pillion rollout status scs/mesh` tells what pods wait for"
    );
    let canary = canary();
    let edit = edited(&canary).promote(Some(PodCount::Percent(20))).unwrap();
    assert_eq!(applied(&edit, &canary.set)["spec"]["injectStrategy"], canary.set["spec"]["injectStrategy"]);
    assert_eq!(edit.notes, ["new pods follow the pin and the partition; `promote` without --to takes the pin away"]);
}

#[test]
fn undo_gives_the_set_exactly_the_words_of_a_revision() {
    let canary = canary();
    for (to, version) in [(None, Some("winter")), (Some("1"), None)] {
        let to = to.map(|word| canary.revisions.called("mesh", word).unwrap());
        let edit = edited(&canary).undo(&canary.revisions, to).unwrap();
        let after = applied(&edit, &canary.set);
        let target = to.unwrap_or_else(|| canary.revisions.previous().unwrap());
        assert_eq!(revision(&after), target.name);
        // What no revision covers stays.
        for field in ["selector", "updateStrategy", "injectStrategy"] {
            assert_eq!(after["spec"][field], canary.set["spec"][field]);
        }
        assert_eq!(after["metadata"]["labels"].get(CUSTOM_VERSION_LABEL), version.map(|it| json!(it)).as_ref());
    }
    let edit = edited(&canary).undo(&canary.revisions, None).unwrap();
    assert_eq!(
        edit.patch.json().as_array().unwrap()[..2],
        [
            json!({"op": "test", "path": "/metadata/uid", "value": "u-mesh"}),
            json!({"op": "test", "path": "/metadata/generation", "value": 3})
        ]
    );
    assert_eq!(edit.notes.len(), 2);
    assert_eq!(edit.notes[1], "the custom version is winter again");
}

#[test]
fn undo_takes_away_what_the_revision_did_not_have() {
    let first = set(V1, json!({"shareProcessNamespace": true}));
    let second = set(V2, json!({"volumes": [{"name": "cache", "emptyDir": {}}], "labels": {"a": "b"}}));
    let rollout = rollout(&second, &[stored(&first, 1, &[], ago(9)), stored(&second, 2, &[], ago(8))], &[]);
    let edit = edited(&rollout).undo(&rollout.revisions, None).unwrap();
    let after = applied(&edit, &rollout.set);
    assert_eq!(revision(&after), revision(&first));
    assert_eq!((after["spec"].get("volumes"), after["spec"].get("labels")), (None, None));
    assert_eq!(after["spec"]["shareProcessNamespace"], true);
    assert_eq!(edit.notes.len(), 1, "{:?}", edit.notes);
}

#[test]
fn there_may_be_nothing_to_undo() {
    let canary = canary();
    let newest = canary.revisions.newest();
    let name = &canary.meaning.revision;
    assert_eq!(
        refused(edited(&canary).undo(&canary.revisions, newest)),
        format!(
            "revision {name} is the newest of set mesh already: `pillion rollout history scs/mesh` lists the others"
        )
    );
    let set = set(V1, json!({}));
    let alone = rollout(&set, &[stored(&set, 1, &[], ago(9))], &[]);
    assert_eq!(
        refused(edited(&alone).undo(&alone.revisions, None)),
        format!("set mesh has no revision before {}: there is nothing to go back to", revision(&set))
    );
}

#[test]
fn revisions_are_called_by_name_number_or_version() {
    let revisions = canary().revisions;
    let number = |word: &str| revisions.called("mesh", word).map(|revision| revision.number);
    assert_eq!((number("2"), number("winter"), number("autumn")), (Ok(2), Ok(2), Ok(2)));
    assert_eq!(number(&revision(&set(V1, json!({})))), Ok(1));
    let unknown = "set mesh has no revision 9: `pillion rollout history scs/mesh` lists them";
    assert_eq!(number("9"), Err(unknown.to_owned()));
}

#[test]
fn counts_are_numbers_or_percentages() {
    for (text, expected) in [("3", PodCount::Pods(3)), ("0", PodCount::Pods(0)), ("100%", PodCount::Percent(100))] {
        assert_eq!(count(text), Ok(expected));
        assert_eq!(written(expected), text);
    }
    for text in ["", "%", "-1", "101%", "50 %", "half"] {
        assert_eq!(count(text).unwrap_err(), "write a number of pods, or a percentage such as 50%", "{text}");
    }
}
