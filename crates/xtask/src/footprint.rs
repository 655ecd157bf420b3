//! What the agent takes. Of a container that it wraps: memory, CPU, and how often it wakes up while nothing happens; and
//! the same of one that runs plugins.

mod running;
mod updating;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

pub use self::running::Running;
pub use self::updating::Updating;
use crate::image;
use crate::workspace::Workspace;

/// How long it is watched doing nothing.
const IDLE: Duration = Duration::from_secs(20);
/// How long a start may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// 1.5 MiB.
const MOST_KIBIBYTES: u64 = 1536;

/// Ways to be wrapped: a name, and the flags of `wrap` that make it.
const WAYS: [(&str, &[&str]); 3] = [
    ("main", &["--main=app"]),
    ("sidecar of a running main", &["--sidecar=side", "--until=app", "--restart-policy=Never"]),
    ("sidecar of a main that never starts", &["--sidecar=side", "--until=late", "--restart-policy=Never"]),
];

/// A way to be wrapped, and what it costs.
#[derive(Debug)]
pub struct Arm {
    /// The way.
    pub way: &'static str,
    /// What it costs.
    pub footprint: Footprint,
}

/// What one wrapper takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// All memory that is mapped and in use, the program's own file included.
    pub resident_kibibytes: u64,
    /// The part that no other process shares.
    pub private_dirty_kibibytes: u64,
    /// CPU while it was watched, in hundredths of a second.
    pub cpu_ticks: u64,
    /// How often one of its threads was woken up while it was watched.
    pub wake_ups: u64,
}

/// Builds the agent as pods have it, and watches it run plugins.
pub fn measure_running(workspace: &Workspace) -> anyhow::Result<Running> {
    running::measure(&image::build_agent(workspace)?)
}

/// The same while it brings a file of 1 GiB.
pub fn measure_updating(workspace: &Workspace) -> anyhow::Result<Updating> {
    updating::measure(&image::build_agent(workspace)?)
}

/// Builds the wrapper as pods have it, and watches it wrap programs that sleep.
pub fn measure(workspace: &Workspace) -> anyhow::Result<Vec<Arm>> {
    let program = image::build_wrapper(workspace)?;
    let dir = tempfile::tempdir().context("cannot make a folder")?;
    let wrappers: Vec<Wrapper> =
        WAYS.iter().map(|(_, flags)| Wrapper::start(&program, dir.path(), flags)).collect::<Result<_, _>>()?;
    let before: Vec<Counters> = wrappers.iter().map(Wrapper::counters).collect::<Result<_, _>>()?;
    thread::sleep(IDLE);
    let arms = WAYS
        .iter()
        .zip(&wrappers)
        .zip(before)
        .map(|(((way, _), wrapper), before)| Ok(Arm { way, footprint: wrapper.footprint(before)? }))
        .collect();
    // The main last, or its sidecar would see it end.
    wrappers.into_iter().rev().for_each(drop);
    arms
}

impl Footprint {
    /// Whether it is within what is promised.
    pub fn is_as_promised(&self) -> bool {
        self.resident_kibibytes <= MOST_KIBIBYTES && self.cpu_ticks == 0 && self.wake_ups == 0
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { way, footprint } = self;
        let Footprint { resident_kibibytes, private_dirty_kibibytes, cpu_ticks, wake_ups } = footprint;
        let verdict = if footprint.is_as_promised() { "kept" } else { "broken" };
        write!(
            f,
            "{way}: {resident_kibibytes} KiB resident, of them {private_dirty_kibibytes} private; in {} s idle \
             {cpu_ticks} ticks of CPU and {wake_ups} wake-ups; promised {MOST_KIBIBYTES} KiB, 0, 0: {verdict}",
            IDLE.as_secs()
        )
    }
}

/// What only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counters {
    cpu_ticks: u64,
    wake_ups: u64,
}

/// A wrapper at work, ended when dropped; the kernel then ends what it wraps.
struct Wrapper(Child);

impl Wrapper {
    /// Starts one, and waits until it is idle.
    fn start(program: &Path, dir: &Path, flags: &[&str]) -> anyhow::Result<Self> {
        let mut command = Command::new(program);
        command.arg("wrap").arg(format!("--dir={}", dir.display())).args(flags).args(["--", "sleep", "600"]);
        let wrapper = Self(command.spawn().with_context(|| format!("cannot run {}", program.display()))?);
        let start = Instant::now();
        let mut last = None;
        loop {
            let now = wrapper.counters()?;
            if last == Some(now) && now.wake_ups > 0 {
                return Ok(wrapper);
            }
            ensure!(start.elapsed() < PATIENCE, "pillion-wrap wrap {} does not come to rest", flags.join(" "));
            last = Some(now);
            thread::sleep(Duration::from_millis(300));
        }
    }

    fn footprint(&self, before: Counters) -> anyhow::Result<Footprint> {
        let now = self.counters()?;
        Ok(Footprint {
            resident_kibibytes: number_after(&self.read("status")?, "VmRSS:")?,
            private_dirty_kibibytes: number_after(&self.read("smaps_rollup")?, "Private_Dirty:")?,
            cpu_ticks: now.cpu_ticks - before.cpu_ticks,
            wake_ups: now.wake_ups - before.wake_ups,
        })
    }

    fn counters(&self) -> anyhow::Result<Counters> {
        let mut wake_ups = 0;
        for task in fs::read_dir(self.folder().join("task"))? {
            wake_ups += number_after(&fs::read_to_string(task?.path().join("status"))?, "voluntary_ctxt_switches:")?;
        }
        Ok(Counters { cpu_ticks: ticks_in_stat(&self.read("stat")?)?, wake_ups })
    }

    fn read(&self, name: &str) -> anyhow::Result<String> {
        fs::read_to_string(self.folder().join(name)).with_context(|| format!("the wrapper has ended: no {name}"))
    }

    fn folder(&self) -> PathBuf {
        Path::new("/proc").join(self.0.id().to_string())
    }
}

impl Drop for Wrapper {
    fn drop(&mut self) {
        // Gone already is what we want.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The first number of the line with this beginning.
fn number_after(text: &str, key: &str) -> anyhow::Result<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.split_whitespace().next()?.parse().ok())
        .with_context(|| format!("the kernel does not tell {key}"))
}

/// Time in the program and in the kernel. The command name stands in parentheses and may hold any byte.
fn ticks_in_stat(stat: &str) -> anyhow::Result<u64> {
    let fields = stat.rsplit_once(')').context("the kernel tells no command name")?.1.split_whitespace();
    // utime and stime are the 14th and 15th field of the line; the state, the 3rd, is the first here.
    let ticks: Vec<u64> = fields.skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    ensure!(ticks.len() == 2, "the kernel does not tell CPU times");
    Ok(ticks.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: Footprint =
        Footprint { resident_kibibytes: 1536, private_dirty_kibibytes: 80, cpu_ticks: 0, wake_ups: 0 };

    #[test]
    fn each_figure_can_break_the_promise() {
        assert!(KEPT.is_as_promised());
        assert!(!Footprint { resident_kibibytes: 1537, ..KEPT }.is_as_promised());
        assert!(!Footprint { cpu_ticks: 1, ..KEPT }.is_as_promised());
        assert!(!Footprint { wake_ups: 1, ..KEPT }.is_as_promised());
    }

    #[test]
    fn an_arm_is_told_with_its_verdict() {
        let told = |footprint| Arm { way: "main", footprint }.to_string();
        assert_eq!(
            told(KEPT),
            "main: 1536 KiB resident, of them 80 private; in 20 s idle 0 ticks of CPU and 0 wake-ups; promised 1536 \
             KiB, 0, 0: kept"
        );
        assert_eq!(
            told(Footprint { wake_ups: 20, ..KEPT }),
            "main: 1536 KiB resident, of them 80 private; in 20 s idle 0 ticks of CPU and 20 wake-ups; promised 1536 \
             KiB, 0, 0: broken"
        );
    }

    #[test]
    fn the_files_of_the_kernel_are_read() {
        let status = "VmRSS:\t     812 kB\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t9\n";
        assert_eq!(number_after(status, "VmRSS:").unwrap(), 812);
        assert_eq!(number_after(status, "voluntary_ctxt_switches:").unwrap(), 7);
        assert_eq!(number_after(status, "VmHWM:").unwrap_err().to_string(), "the kernel does not tell VmHWM:");
        let stat = "12 (a) b) S 7 12 12 0 -1 4194304 100 0 0 0 3 4 0 0 20 0 3 0 5 6 7";
        assert_eq!(ticks_in_stat(stat).unwrap(), 7);
        assert_eq!(ticks_in_stat("12 (a) S 7").unwrap_err().to_string(), "the kernel does not tell CPU times");
    }
}
