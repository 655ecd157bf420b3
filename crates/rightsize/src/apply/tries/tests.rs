use serde_json::json;

use super::super::samples::{Scene, app, container, now, running};
use super::super::writes::SizeAction;
use super::*;

fn pod(gave: &str, asked: &str) -> Pod {
    let sized = json!({"by": "web", "containers": {"app": {"gave": {"requests": {"cpu": gave}}}}}).to_string();
    let fields = json!({"metadata": {"annotations": {"pillion.dev/sized": sized}}});
    running("web-0", &json!([container("app", &format!("{asked}/-"), "-/-")]), &json!([]), &fields)
}

#[test]
fn our_own_resize_is_no_reset_before_its_marks_are_there() {
    let mut scene = Scene::new("InPlace", 1, &app("2", "1Gi"));
    let before = pod("1", "1");
    let SizeAction::Resize(mut resize) = scene.plan(std::slice::from_ref(&before)).actions.remove(0) else {
        panic!("no resize")
    };
    resize.changes[0].to.requests.memory = None;
    scene.tries.resized(&resize);
    scene.tries.observe(&[pod("1", "2")], now());
    scene.tries.observe(&[pod("2", "2")], now());
    scene.tries.observe(&[before], now());
    assert_eq!(scene.tries.resets("rs-1", "app"), 0);
    // Then another takes it back, and again after our next resize.
    scene.tries.observe(&[pod("2", "1")], now());
    assert_eq!(scene.tries.resets("rs-1", "app"), 1);
    scene.tries.resized(&resize);
    scene.tries.observe(&[pod("2", "1")], now());
    assert_eq!(scene.tries.resets("rs-1", "app"), 2);
}

#[test]
fn what_is_gone_is_forgotten() {
    let mut tries = Tries::default();
    tries.observe(&[pod("2", "1")], now());
    assert_ne!(tries, Tries::default());
    tries.retain(|uid| uid == "uid-web-0", |uid| uid == "rs-1");
    assert_eq!(tries.resets("rs-1", "app"), 1);
    tries.retain(|_| false, |_| false);
    assert_eq!(tries, Tries::default());
}
