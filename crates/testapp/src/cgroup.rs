//! The limits the kernel holds this container to, in cgroup v1 and v2.

use std::fs;
use std::path::Path;

use serde::Serialize;

/// What v1 writes when there is no limit is the largest page-aligned number, which depends on the page size.
const V1_UNLIMITED_FROM: u64 = 1 << 62;
const ONE_CORE: u64 = 1000;

/// `None` means that there is no limit.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Limits {
    pub(crate) memory_limit_bytes: Option<u64>,
    pub(crate) cpu_quota_millicores: Option<u64>,
}

impl Limits {
    /// Reads them below the mount point, `/sys/fs/cgroup` in a container.
    pub(crate) fn read(mount: &Path) -> Self {
        let text = |file: &str| fs::read_to_string(mount.join(file)).ok();
        let memory_v1 = || parse_memory_v1(&text("memory/memory.limit_in_bytes")?);
        let cpu_v1 = || parse_cpu_v1(&text("cpu/cpu.cfs_quota_us")?, &text("cpu/cpu.cfs_period_us")?);
        Self {
            memory_limit_bytes: match text("memory.max") {
                Some(memory_max) => parse_memory_v2(&memory_max),
                None => memory_v1(),
            },
            cpu_quota_millicores: match text("cpu.max") {
                Some(cpu_max) => parse_cpu_v2(&cpu_max),
                None => cpu_v1(),
            },
        }
    }
}

fn parse_memory_v1(limit_in_bytes: &str) -> Option<u64> {
    limit_in_bytes.trim().parse().ok().filter(|bytes| *bytes < V1_UNLIMITED_FROM)
}

fn parse_cpu_v1(quota: &str, period: &str) -> Option<u64> {
    // No quota is written as -1, which is not a u64.
    millicores(quota.trim().parse().ok()?, period.trim().parse().ok()?)
}

fn parse_memory_v2(memory_max: &str) -> Option<u64> {
    // No limit is written as `max`, which is not a number.
    memory_max.trim().parse().ok()
}

fn parse_cpu_v2(cpu_max: &str) -> Option<u64> {
    let (quota, period) = cpu_max.trim().split_once(' ')?;
    millicores(quota.parse().ok()?, period.parse().ok()?)
}

fn millicores(quota: u64, period: u64) -> Option<u64> {
    quota.checked_mul(ONE_CORE)?.checked_div(period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_v1() {
        assert_eq!(parse_memory_v1("67108864\n"), Some(67_108_864));
        assert_eq!(parse_memory_v1("4611686018427387903\n"), Some((1 << 62) - 1));
        assert_eq!(parse_memory_v1("4611686018427387904\n"), None);
        assert_eq!(parse_memory_v1("9223372036854771712\n"), None);
        assert_eq!(parse_memory_v1("-1\n"), None);
    }

    #[test]
    fn cpu_v1() {
        assert_eq!(parse_cpu_v1("25000\n", "100000\n"), Some(250));
        assert_eq!(parse_cpu_v1("150000\n", "100000\n"), Some(1500));
        assert_eq!(parse_cpu_v1("-1\n", "100000\n"), None);
        assert_eq!(parse_cpu_v1("25000\n", "0\n"), None);
    }

    #[test]
    fn memory_v2() {
        assert_eq!(parse_memory_v2("67108864\n"), Some(67_108_864));
        assert_eq!(parse_memory_v2("max\n"), None);
    }

    #[test]
    fn cpu_v2() {
        assert_eq!(parse_cpu_v2("50000 100000\n"), Some(500));
        assert_eq!(parse_cpu_v2("max 100000\n"), None);
        assert_eq!(parse_cpu_v2("50000\n"), None);
    }

    #[test]
    fn the_version_is_known_by_its_files() {
        let v1 = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("memory/memory.limit_in_bytes", "1048576\n"),
            ("cpu/cpu.cfs_quota_us", "10000\n"),
            ("cpu/cpu.cfs_period_us", "100000\n"),
        ] {
            let path = v1.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let v2 = tempfile::tempdir().unwrap();
        fs::write(v2.path().join("memory.max"), "2097152\n").unwrap();
        fs::write(v2.path().join("cpu.max"), "max 100000\n").unwrap();
        let neither = tempfile::tempdir().unwrap();

        assert_eq!(
            Limits::read(v1.path()),
            Limits { memory_limit_bytes: Some(1_048_576), cpu_quota_millicores: Some(100) }
        );
        assert_eq!(Limits::read(v2.path()), Limits { memory_limit_bytes: Some(2_097_152), cpu_quota_millicores: None });
        assert_eq!(Limits::read(neither.path()), Limits::default());
    }
}
