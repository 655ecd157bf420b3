//! What lies between revisions, as people see it.

#![expect(clippy::needless_pass_by_value, reason = "tests, in which JSON is written where it is used")]

use super::*;
use crate::rollout::fixture::{V1, V2, ago, canary, pod, rollout, set, stored};

fn question(words: &[&str]) -> Result<Question, String> {
    Question::read(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
}

fn compared(rollout: &Rollout, words: &[&str]) -> String {
    Comparison::of(rollout, &question(words).unwrap()).unwrap().text(3)
}

fn asked(set: &str, from: Option<&str>, to: Option<&str>) -> Question {
    Question { set: set.to_owned(), from: from.map(str::to_owned), to: to.map(str::to_owned) }
}

#[test]
fn revisions_are_named_in_several_ways() {
    assert_eq!(question(&["mesh"]), Ok(asked("mesh", None, None)));
    assert_eq!(question(&["scs/mesh", "2"]), Ok(asked("mesh", Some("2"), None)));
    assert_eq!(question(&["mesh", "1", "autumn"]), Ok(asked("mesh", Some("1"), Some("autumn"))));
    let (one, other) = ("my-mesh-bcdfghjklm", "my-mesh-n2b6j8xzfv");
    assert_eq!(question(&[one, other]), Ok(asked("my-mesh", Some(one), Some(other))));
    assert_eq!(
        question(&[one, "logs-n2b6j8xzfv"]).unwrap_err(),
        "my-mesh-bcdfghjklm is a revision of set my-mesh, and logs-n2b6j8xzfv of set logs: name two of one set"
    );
    assert_eq!(question(&["1", "2"]).unwrap_err(), "1 2: name the set as well, such as scs/mesh 1 2");
    assert_eq!(
        question(&["deploy/web"]).unwrap_err(),
        "\"deploy\" is no SidecarSet: write scs/name, or the name alone"
    );
}

#[test]
fn an_image_is_changed_in_place() {
    let canary = canary();
    insta::assert_snapshot!("image", compared(&canary, &["scs/mesh"]));
    let comparison = Comparison::of(&canary, &question(&["scs/mesh", "1", "3"]).unwrap()).unwrap();
    insta::assert_snapshot!("image_json", format!("{:#}", comparison.json()));
    insta::assert_snapshot!("same", compared(&canary, &["scs/mesh", "2", "winter"]));
}

fn with_env(more: Value) -> Rollout {
    let old = set(V1, json!({"volumes": [{"name": "cache", "emptyDir": {}}]}));
    let mut fields = json!({"initContainers": [
        {"name": "setup", "image": "registry.example/setup:1"},
        {"name": "proxy", "image": V2, "restartPolicy": "Always", "env": [{"name": "LEVEL", "value": "debug"}],
         "resources": {"requests": {"cpu": "20m", "memory": "16Mi"}}}]});
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let new = set(V2, fields);
    let pods = [pod(&old, "shop", "web", 0), pod(&old, "shop", "web", 1), pod(&old, "search", "api", 0)];
    rollout(&new, &[stored(&old, 1, &[], ago(90)), stored(&new, 2, &[], ago(9))], &pods)
}

#[test]
fn every_change_is_told_with_the_way_it_takes() {
    insta::assert_snapshot!("all_ways", compared(&with_env(json!({})), &["mesh", "1", "2"]));
    let resized = with_env(json!({"updateStrategy": {"resize": true}}));
    let comparison = Comparison::of(&resized, &question(&["mesh"]).unwrap()).unwrap();
    let resize = (Way::Resize, vec!["resources of container proxy".to_owned()]);
    assert!(comparison.ways.contains(&resize), "{:?}", comparison.ways);
}

#[test]
fn a_pod_that_would_be_refused_is_named() {
    let clashing = with_env(json!({"containers": [{"name": "app", "image": "registry.example/other:1"}]}));
    let comparison = Comparison::of(&clashing, &question(&["mesh"]).unwrap()).unwrap();
    assert!(comparison.samples.iter().all(|sample| sample.refusal.is_some()));
    insta::assert_snapshot!("refused", comparison.text(3));
}

#[test]
fn there_may_be_nothing_to_compare() {
    let told = |rollout: &Rollout, words: &[&str]| Comparison::of(rollout, &question(words).unwrap()).err().unwrap();
    let set = set(V1, json!({}));
    let alone = rollout(&set, &[stored(&set, 1, &[], ago(9))], &[]);
    let name = &alone.meaning.revision;
    assert_eq!(
        told(&alone, &["mesh"]),
        format!("set mesh has no other revision than {name}: there is nothing to compare")
    );
    assert_eq!(
        told(&alone, &["mesh", "1", "7"]),
        "set mesh has no revision 7: `pillion rollout history scs/mesh` lists them"
    );
    let bare = crate::rollout::fixture::without_revisions();
    assert_eq!(
        told(&bare, &["mesh"]),
        format!("revision {name} is the newest of set mesh and not stored yet: does the controller run?")
    );
}
