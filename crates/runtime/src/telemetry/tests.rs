//! The admin page, asked as a probe asks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::Body;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use super::*;

async fn ask(router: &Router, path: &str) -> (StatusCode, String, Option<String>) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let kind = response.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap(), kind)
}

#[tokio::test]
async fn a_probe_is_told_which_check_fails_and_why() {
    let listed = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&listed);
    let readiness = Checks::default()
        .with("certificate", || Ok(()))
        .with("pods", move || if seen.load(Ordering::Relaxed) { Ok(()) } else { Err("not listed yet".to_owned()) });
    let page = admin(Checks::default(), readiness, Registry::default());

    let (status, body, _) = ask(&page, "/readyz").await;
    assert_eq!(
        (status, body.as_str()),
        (StatusCode::SERVICE_UNAVAILABLE, "ok certificate\nfailed pods: not listed yet\n")
    );
    let (status, body, _) = ask(&page, "/healthz").await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, "ok\n"), "not ready is not ill");

    listed.store(true, Ordering::Relaxed);
    let (status, body, _) = ask(&page, "/readyz").await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, "ok certificate\nok pods\n"));
}

/// Value of a metric without labels.
fn value(text: &str, name: &str) -> f64 {
    let values: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    values[name].parse().unwrap()
}

#[tokio::test]
async fn metrics_tell_what_the_process_costs() {
    let page = admin(Checks::default(), Checks::default(), registry("test", "1.2.3"));
    let (_, before, kind) = ask(&page, "/metrics").await;
    assert_eq!(kind.as_deref(), Some("application/openmetrics-text; version=1.0.0; charset=utf-8"));
    assert!(before.contains("build_info{program=\"test\",version=\"1.2.3\"} 1\n"), "{before}");
    assert!(before.ends_with("# EOF\n"));

    // 64 MiB that are really there, some work, and ten open files.
    let memory = vec![1_u8; 64 << 20];
    let sum: usize = memory.iter().step_by(4096).map(|byte| usize::from(*byte)).sum();
    let files: Vec<_> = (0..10).map(|_| std::fs::File::open("/proc/self/status").unwrap()).collect();
    let (_, after, _) = ask(&page, "/metrics").await;
    assert_eq!((sum, files.len()), (16 << 10, 10));

    let grown = |name: &str| value(&after, name) - value(&before, name);
    // Other tests of this process come and go meanwhile.
    assert!(grown("process_resident_memory_bytes") > 50.0 * f64::from(1 << 20), "{before}{after}");
    assert!(grown("process_cpu_seconds_total") > 0.0);
    assert!(value(&after, "process_open_fds") >= 13.0, "{after}");
    assert!(value(&after, "process_start_time_seconds") > 1.7e9);
}
