//! A thousand requests that are none, or none we would like, while normal ones go on: no crash, no stall.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hyper::body::Bytes;
use pillion_e2e::{Caller, Connection, Manager, pods};
use pillion_testbed::{Bed, Config, apply};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

const HOSTILE: usize = 1_000;
/// Hostile callers at once, and normal ones.
const CALLERS: (usize, usize) = (8, 4);
/// The longest any normal request may take; the API server waits 3 s.
const STALL: Duration = Duration::from_secs(1);

fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "image": "app:1", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]}})
}

fn review(pod: &Value) -> String {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "00000000-0000-0000-0000-000000000001", "operation": "CREATE", "namespace": "default",
        "resource": {"group": "", "version": "v1", "resource": "pods"}, "object": pod}})
    .to_string()
}

fn with(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut pod = pod();
    change(&mut pod);
    review(&pod).into_bytes()
}

/// Bodies, each with the statuses that are right for it.
fn bodies() -> Vec<(&'static str, Bytes, &'static [u16])> {
    let normal = review(&pod());
    let twice =
        normal.replacen("\"kind\":\"Pod\"", "\"kind\":\"Pod\",\"kind\":\"Node\",\"metadata\":{\"labels\":{}}", 1);
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let bodies: Vec<(&str, Vec<u8>, &[u16])> = vec![
        (
            "3 MB of annotations",
            with(|pod| pod["metadata"]["annotations"]["large"] = "x".repeat(3_000_000).into()),
            &[200],
        ),
        ("deep nesting", normal.replacen("\"app:1\"", &deep(100_000), 1).into_bytes(), &[200, 400]),
        (
            "deep where nobody looks",
            normal.replacen("\"uid\"", &format!("\"odd\":{},\"uid\"", deep(50_000)), 1).into_bytes(),
            &[200, 400],
        ),
        ("another kind", br#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}"#.to_vec(), &[400]),
        ("keys twice", twice.into_bytes(), &[200, 400]),
        (
            "huge labels",
            with(|pod| {
                for number in 0..20_000 {
                    pod["metadata"]["labels"][format!("label-{number}")] = "v".repeat(100).into();
                }
            }),
            &[200],
        ),
        (
            "10,000 containers",
            with(|pod| {
                let many: Vec<Value> =
                    (0..10_000).map(|number| json!({"name": format!("c{number}"), "image": "i"})).collect();
                pod["spec"]["containers"] = many.into();
            }),
            &[200],
        ),
        ("wrong types", with(|pod| pod["spec"]["containers"] = json!({"not": ["a list", 1, null]})), &[200, 400]),
        ("no JSON", b"\xff\xfe{{{{".to_vec(), &[400]),
        ("too large", vec![b' '; 9 << 20], &[413]),
        ("nothing", Vec::new(), &[400]),
    ];
    bodies.into_iter().map(|(name, body, right)| (name, Bytes::from(body), right)).collect()
}

/// A connection that says what is promised of it only in part: slowly, or never to the end.
async fn half_said(caller: &Caller, kind: usize) -> Result<()> {
    let mut stream = TcpStream::connect(caller.address()).await?;
    match kind {
        0 => stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await?,
        1 => stream.write_all(&[0x16, 0x03, 0x01, 0xff, 0xff, 0x01]).await?,
        _ => {
            let mut tls = caller.tls(stream).await?;
            let head = format!("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{{", caller.pods);
            tls.write_all(head.as_bytes()).await?;
            // The caller is gone in the middle of its body.
            return Ok(());
        }
    }
    let mut answer = Vec::new();
    let _ = timeout(Duration::from_millis(200), stream.read_to_end(&mut answer)).await;
    Ok(())
}

/// Posts normal reviews until it is told to stop; how long each took.
async fn normal(mut connection: Connection, stop: watch::Receiver<bool>) -> Result<Vec<Duration>> {
    let body = review(&pod());
    let mut took = Vec::new();
    while !*stop.borrow() {
        let began = Instant::now();
        let (status, answer) = connection.review_pod(body.clone()).await?;
        took.push(began.elapsed());
        ensure!(status == 200, "a normal review was answered {status}");
        let answer: Value = serde_json::from_slice(&answer)?;
        ensure!(answer["response"]["patch"].is_string(), "a normal pod was not injected: {answer}");
        // As a cluster would: a few hundred reviews per second, not as many as there can be.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(took)
}

async fn normal_during<T>(caller: &Caller, work: impl Future<Output = Result<T>>) -> Result<(T, Vec<Duration>)> {
    let (stop, stopped) = watch::channel(false);
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS.1 {
        callers.spawn(normal(caller.connect().await?, stopped.clone()));
    }
    let done = work.await?;
    stop.send_replace(true);
    let mut took = Vec::new();
    while let Some(more) = callers.join_next().await {
        took.extend(more??);
    }
    took.sort_unstable();
    Ok((done, took))
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() - 1) * percent / 100]
}

/// In ci: `inject_webhook_own_bed::ci_a_pod_is_injected_or_refused_and_a_set_is_judged`;
/// `what_is_no_review_is_named` in `crates/manager`. The latencies beside them are nightly's alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nightly_a_thousand_hostile_requests_do_not_disturb_normal_ones() -> Result<()> {
    let bed = Bed::start(Config::control_plane("hostile")).await?;
    let client = bed.client().await?;
    Manager::prepare(&client).await?;
    let manager = Manager::ready(bed.cluster(), &["webhook"], &[]).await?;
    let set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "mesh"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "proxy", "image": pods::V1}]}});
    apply(&client, "e2e", &set).await?;
    let caller = Caller::new(&client, manager.webhook()).await?;
    let mut connection = caller.connect().await?;
    let began = Instant::now();
    while !String::from_utf8_lossy(&connection.review_pod(review(&pod())).await?.1).contains("JSONPatch") {
        ensure!(began.elapsed() < Duration::from_secs(20), "the set does not reach the webhook");
    }

    let rest = || async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ok(())
    };
    let ((), before) = normal_during(&caller, rest()).await?;
    let hostile = async {
        let mut callers = JoinSet::new();
        let bodies = std::sync::Arc::new(bodies());
        for position in 0..CALLERS.0 {
            let caller = caller.clone();
            let bodies = std::sync::Arc::clone(&bodies);
            callers.spawn(async move {
                for number in (position..HOSTILE).step_by(CALLERS.0) {
                    let kind = number % (bodies.len() + 3);
                    // Together about a hundred a second: it is the webhook that is tried, not the two cores of this test.
                    tokio::time::sleep(Duration::from_millis(80)).await;
                    let Some((name, body, right)) = bodies.get(kind) else {
                        half_said(&caller, kind - bodies.len()).await?;
                        continue;
                    };
                    // A body that is refused by its length closes the connection, also in the face of who still sends.
                    let answered = caller.connect().await?.review_pod(body.clone()).await;
                    match answered {
                        Ok((status, _)) => ensure!(right.contains(&status), "{name}: {status}"),
                        Err(error) => ensure!(right.contains(&413), "{name}: {error}"),
                    }
                }
                Result::<()>::Ok(())
            });
        }
        while let Some(ended) = callers.join_next().await {
            ended??;
        }
        Ok(())
    };
    let ((), during) = normal_during(&caller, hostile).await?;
    let ((), after) = normal_during(&caller, rest()).await?;

    for (when, took) in [("before", &before), ("during", &during), ("after", &after)] {
        let last = took.last().context("no normal request was answered")?;
        println!(
            "{when}: {} reviews, p50 {:?}, p99 {:?}, longest {last:?}",
            took.len(),
            percentile(took, 50),
            percentile(took, 99)
        );
        ensure!(*last < STALL, "{when}: a normal request took {last:?}");
    }
    let allowed = percentile(&before, 99).max(percentile(&after, 99)).max(Duration::from_millis(20)) * 2;
    ensure!(percentile(&during, 99) <= allowed, "p99 {:?}, allowed {allowed:?}", percentile(&during, 99));
    manager.stop().await?;
    bed.stop().await?;
    Ok(())
}
