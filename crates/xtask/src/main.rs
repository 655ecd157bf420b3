//! `cargo xtask`: parses the command line, calls the library, tells the outcome on stderr.

#![forbid(unsafe_code)]
#![expect(clippy::print_stderr, reason = "telling the outcome on stderr is what this program is for")]
#![expect(clippy::print_stdout, reason = "the subjects that a change touches are the data of a command")]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::finding::Finding;
use xtask::gate::nightly::Verdict;
use xtask::gate::{self, Tier};
use xtask::image::{self, Family};
use xtask::source_tree::SourceTree;
use xtask::workspace::Workspace;
use xtask::{codegen, footprint, mutants, tidy};

/// Chores of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Build container images into archives that `ctr images import` reads, one for each family.
    Image {
        /// Which; those of the test bed if not given.
        #[arg(value_enum, default_values_t = [Family::Testapp])]
        families: Vec<Family>,
        /// Folder to write to; `images` in the target folder if not given.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Measure what the agent takes, wrapping a container and running plugins; 1 if it is more than promised.
    Footprint,
    /// Write the committed files that follow from code.
    Codegen {
        /// Only compare; 1 if a file is stale.
        #[arg(long)]
        check: bool,
    },
    /// Make the code wrong in one place at a time, and see whether a test notices; 1 if one does not.
    Mutants {
        /// Only those with this in their file or meaning.
        #[arg(default_value = "")]
        only: String,
        /// Only one share of them: `2/8` is every eighth, from the third on.
        #[arg(value_parser = mutants::Share::parse)]
        share: Option<mutants::Share>,
    },
    /// Run a tier of the gate; 1 if a step failed, 4 if tests were only flaky.
    Gate {
        /// The tier.
        #[arg(value_enum)]
        tier: Tier,
        /// Of the tier nightly, only e2e tests whose name starts with this.
        #[arg(default_value = "")]
        prefix: String,
        /// Run also the steps that passed in an earlier run on this commit.
        #[arg(long)]
        fresh: bool,
    },
    /// Check format, lints and tests of the packages that changed.
    Quick {
        /// The branch or commit to compare with.
        #[arg(default_value = "main")]
        base: String,
    },
    /// Print the subjects of e2e tests that the changes since a branch or commit touch, one on each line.
    Touched {
        /// The branch or commit to compare with.
        #[arg(default_value = "main")]
        base: String,
    },
    /// Write the times of the last run of the gate to docs/figures.
    CiTimes {
        /// The name of the run: warm, touched, cold.
        name: String,
    },
    /// Check the rules no lint can hold.
    Tidy,
}

fn main() -> anyhow::Result<ExitCode> {
    let chore = Arguments::parse().chore;
    let workspace = Workspace::load()?;
    match chore {
        Chore::Image { families, out } => {
            for family in families {
                eprintln!("{}", image::build(&workspace, family, out.as_deref())?);
            }
            Ok(ExitCode::SUCCESS)
        }
        Chore::Footprint => {
            // Both wait for most of a minute, and count only their own processes.
            let (running, arms) = std::thread::scope(|scope| {
                let running = scope.spawn(|| footprint::measure_running(&workspace));
                let arms = footprint::measure(&workspace);
                (running.join(), arms)
            });
            let running = running.map_err(|_| anyhow::anyhow!("the measurement of a running agent panicked"))??;
            let arms = arms?;
            for arm in &arms {
                eprintln!("footprint: {arm}");
            }
            eprintln!("footprint: {running}");
            let updating = footprint::measure_updating(&workspace)?;
            eprintln!("footprint: {updating}");
            let is_kept = running.is_as_promised()
                && updating.is_as_promised()
                && arms.iter().all(|arm| arm.footprint.is_as_promised());
            Ok(if is_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Chore::Codegen { check: true } => Ok(report(&codegen::check(&workspace)?)),
        Chore::Codegen { check: false } => {
            for path in codegen::write(&workspace)? {
                eprintln!("codegen: wrote {}", path.display());
            }
            Ok(ExitCode::SUCCESS)
        }
        Chore::Gate { tier: Tier::Ci, .. } => {
            let is_passed = gate::run_ci(&workspace, &mut |line| eprintln!("{line}"))?;
            Ok(if is_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Chore::Gate { tier: Tier::Nightly, prefix, fresh } => {
            let verdict = gate::nightly::run(&workspace, &prefix, fresh, &mut |line| eprintln!("{line}"))?;
            Ok(match verdict {
                Verdict::Passed => ExitCode::SUCCESS,
                Verdict::Failed => ExitCode::FAILURE,
                Verdict::Flaky => ExitCode::from(4),
            })
        }
        Chore::Quick { base } => {
            let is_passed = gate::quick::run(&workspace, &base, &mut |line| eprintln!("{line}"))?;
            Ok(if is_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Chore::Touched { base } => {
            for subject in gate::touched::subjects(&gate::touched::files(&workspace, &base)?) {
                println!("{subject}");
            }
            Ok(ExitCode::SUCCESS)
        }
        Chore::CiTimes { name } => {
            eprintln!("ci-times: wrote {}.md and .json", gate::write_times(&workspace, &name)?);
            Ok(ExitCode::SUCCESS)
        }
        Chore::Mutants { only, share } => {
            let (mut seen, mut good) = (0, 0);
            mutants::run(&workspace, &only, share, |mutant, fate| {
                seen += 1;
                good += usize::from(fate.is_good());
                eprintln!("{}: {}: {fate}", mutant.file.display(), mutant.means);
            })?;
            eprintln!("mutants: {good} of {seen} caught");
            Ok(if good == seen { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Chore::Tidy => {
            let tree = SourceTree::of_git(&workspace.root)?;
            let outcome = tidy::run(&tree, &workspace)?;
            if outcome.findings.is_empty() {
                eprintln!("tidy: {} checks, {} files, no findings", outcome.checks, outcome.files);
            }
            Ok(report(&outcome.findings))
        }
    }
}

fn report(findings: &[Finding]) -> ExitCode {
    for finding in findings {
        eprintln!("{finding}");
    }
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
