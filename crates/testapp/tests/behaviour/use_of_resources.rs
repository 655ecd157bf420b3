//! `testapp run`: memory and CPU as the kernel counts them.

use std::fs;

use serde_json::json;

use crate::running::{Running, wait_until};

const MEBIBYTE: u64 = 1 << 20;

fn resident_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("testapp runs");
    let kibibytes: u64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"))
        .and_then(|number| number.parse().ok())
        .expect("a running process has a resident size");
    kibibytes * 1024
}

fn cpu_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("testapp runs");
    // User and system time are the 14th and 15th field; the name before them may hold spaces.
    let (_, after_name) = stat.rsplit_once(") ").expect("the name is in parentheses");
    let fields = after_name.split(' ').skip(11).take(2);
    fields.filter_map(|field| field.parse::<u64>().ok()).sum()
}

fn threads(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).expect("testapp runs").count()
}

#[test]
fn held_memory_is_resident_and_given_back() {
    let app = Running::serving(&["--hold", "64Mi"]);
    assert_eq!(app.state()["memoryHeldBytes"], json!(64 * MEBIBYTE));
    let with_64 = resident_bytes(app.pid());
    assert!(with_64 >= 64 * MEBIBYTE, "{with_64}");

    assert_eq!(app.post(&format!("/hold?bytes={}", 128 * MEBIBYTE), "").status, 200);
    assert_eq!(app.state()["memoryHeldBytes"], json!(128 * MEBIBYTE));
    let with_128 = resident_bytes(app.pid());
    assert!(with_128 >= 128 * MEBIBYTE, "{with_128}");

    assert_eq!(app.post("/hold?bytes=0", "").status, 200);
    assert_eq!(app.state()["memoryHeldBytes"], json!(0));
    let with_none = resident_bytes(app.pid());
    assert!(with_none < 32 * MEBIBYTE, "{with_none}");
}

#[test]
fn more_memory_than_there_is_is_refused() {
    let app = Running::serving(&[]);
    let answer = app.post(&format!("/hold?bytes={}", u64::MAX), "");
    assert_eq!(answer.status, 500);
    assert!(answer.body.starts_with("cannot hold 18446744073709551615 bytes: ask for less: "), "{}", answer.body);
    assert_eq!(app.state()["memoryHeldBytes"], json!(0));
}

#[test]
fn cpu_is_burned_until_told_to_stop() {
    let app = Running::serving(&["--burn", "300"]);
    assert_eq!(app.state()["cpuBurnMillicores"], json!(300));
    assert_eq!(threads(app.pid()), 2);
    let before = cpu_ticks(app.pid());
    wait_until("20 ticks of CPU to be burned", || cpu_ticks(app.pid()) >= before + 20);

    assert_eq!(app.post("/burn?millicores=1500", "").status, 200);
    assert_eq!(app.state()["cpuBurnMillicores"], json!(1500));
    wait_until("the two threads of 1500 millicores alone to burn", || threads(app.pid()) == 3);

    assert_eq!(app.post("/burn?millicores=0", "").status, 200);
    assert_eq!(app.state()["cpuBurnMillicores"], json!(0));
    wait_until("no thread to burn", || threads(app.pid()) == 1);
}
