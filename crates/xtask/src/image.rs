//! Which images there are, and what is in them.

mod dev;

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};
use clap::ValueEnum;

use crate::oci::{Archive, ImageSpec, LayerFile, Packed};
use crate::times::Records;
use crate::workspace::{Workspace, cargo};

/// The images run from nothing but their own file, so the program brings its libc along.
const TARGET: &str = "x86_64-unknown-linux-musl";
/// Nobody in particular, and nobody else's number: not root, as a restricted pod demands to see by number.
const USER: &str = "65532:65532";

const PASSWD: &[u8] = b"root:x:0:0:root:/:/testapp\nnobody:x:65534:65534:nobody:/:/testapp\n";

/// Images that are built together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Family {
    /// What the test bed runs: testapp in two versions, and the sandbox process.
    Testapp,
    /// The manager, as it is shipped.
    Manager,
    /// The manager of the dev build under the name of the shipped one: for the tier `ci`, without minutes of compilation.
    ManagerDev,
    /// The agent, as pods run it.
    Agent,
}

/// A program to be put into images.
struct Program {
    package: &'static str,
    binary: &'static str,
    /// How it is built: small, or fast.
    profile: &'static str,
}

const TESTAPP: Program = Program { package: "pillion-testapp", binary: "testapp", profile: "small" };
const MANAGER: Program = Program { package: "pillion-manager", binary: "pillion-manager", profile: "server" };
const AGENT: Program = Program { package: "pillion-agent", binary: "pillion-agent", profile: "small" };
const WRAPPER: Program = Program { package: "pillion-agent", binary: "pillion-wrap", profile: "small" };

/// The agent is copied into every pod that asks for it: what it weighs is a promise.
const AGENT_BYTES: usize = 4_000_000;

/// The archive that was written.
#[derive(Debug)]
pub struct Written {
    /// The archive.
    pub path: PathBuf,
    /// Its size.
    pub bytes: usize,
    /// What is in it.
    pub images: Vec<Packed>,
}

/// Builds the program and writes its images below `out`, or below the target folder.
pub fn build(workspace: &Workspace, family: Family, out: Option<&Path>) -> anyhow::Result<Written> {
    let out = out.map_or_else(|| workspace.target_directory.join("images"), Path::to_path_buf);
    let (path, specs) = match family {
        Family::Testapp => {
            let program = TESTAPP.build(workspace)?;
            (out.join("testbed.tar"), testbed_images(&program.into()))
        }
        Family::Manager => {
            let program = MANAGER.build(workspace)?;
            (out.join("manager.tar"), vec![manager_image(&program.into(), env!("CARGO_PKG_VERSION"))])
        }
        Family::ManagerDev => {
            let program = workspace.target_directory.join("debug").join(MANAGER.binary);
            let mut image = image_of_one_program("manager", MANAGER.binary, &Arc::from([]), env!("CARGO_PKG_VERSION"));
            image.files = dev::files_of(&program, &image.entrypoint[0])?;
            (out.join("manager.tar"), vec![image])
        }
        Family::Agent => {
            let (agent, wrapper) = (AGENT.build(workspace)?, WRAPPER.build(workspace)?);
            hold_agent_size(agent.len())?;
            (out.join("agent.tar"), vec![agent_image(&agent.into(), &wrapper.into(), env!("CARGO_PKG_VERSION"))])
        }
    };
    let archive = Archive::pack(&specs)?;
    archive.write(&path)?;
    Ok(Written { path, bytes: archive.bytes.len(), images: archive.images })
}

/// Builds the agent as its image has it, and returns where it is.
pub fn build_agent(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    AGENT.compile(workspace)
}

/// The same of the wrapper.
pub fn build_wrapper(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    WRAPPER.compile(workspace)
}

/// The images of the test bed, all made of the one program.
pub fn testbed_images(program: &Arc<[u8]>) -> Vec<ImageSpec> {
    let image = |reference: &str, entrypoint: &[&str], version: &str| ImageSpec {
        reference: reference.to_owned(),
        files: vec![
            LayerFile::directory("/etc", 0o755),
            LayerFile::file("/etc/passwd", 0o644, PASSWD),
            LayerFile::file("/testapp", 0o755, Arc::clone(program)),
            LayerFile::directory("/tmp", 0o1777),
        ],
        entrypoint: entrypoint.iter().copied().map(str::to_owned).collect(),
        env: BTreeMap::from([("PATH".to_owned(), "/".to_owned()), ("TESTAPP_VERSION".to_owned(), version.to_owned())]),
        user: String::new(),
        // Kubernetes tells images apart by their config, so a version must be in there.
        labels: BTreeMap::from([("org.opencontainers.image.version".to_owned(), version.to_owned())]),
    };
    vec![
        image("registry.local/pillion/testapp:v1", &["/testapp"], "v1"),
        image("registry.local/pillion/testapp:v2", &["/testapp"], "v2"),
        image("registry.local/pillion/pause:1", &["/testapp", "pause"], "1"),
    ]
}

/// The image of the manager.
pub fn manager_image(program: &Arc<[u8]>, version: &str) -> ImageSpec {
    image_of_one_program("manager", "pillion-manager", program, version)
}

/// The image of the agent, which also holds the wrapper that is copied into pods.
pub fn agent_image(agent: &Arc<[u8]>, wrapper: &Arc<[u8]>, version: &str) -> ImageSpec {
    let mut image = image_of_one_program("agent", "pillion-agent", agent, version);
    image.files = vec![
        // What nobody may read, the kernel lets no other process of the same user look into while it runs.
        LayerFile::file("/pillion-agent", 0o111, Arc::clone(agent)),
        LayerFile::file("/pillion-wrap", 0o555, Arc::clone(wrapper)),
    ];
    image
}

/// The program, and nothing else.
fn image_of_one_program(name: &str, binary: &str, program: &Arc<[u8]>, version: &str) -> ImageSpec {
    let path = format!("/{binary}");
    ImageSpec {
        reference: format!("registry.local/pillion/{name}:{version}"),
        files: vec![LayerFile::file(&path, 0o755, Arc::clone(program))],
        entrypoint: vec![path],
        env: BTreeMap::new(),
        user: USER.to_owned(),
        labels: BTreeMap::from([
            ("org.opencontainers.image.title".to_owned(), binary.to_owned()),
            ("org.opencontainers.image.version".to_owned(), version.to_owned()),
        ]),
    }
}

fn hold_agent_size(bytes: usize) -> anyhow::Result<()> {
    ensure!(
        bytes <= AGENT_BYTES,
        "pillion-agent has {bytes} bytes, more than the promised {AGENT_BYTES}: find out what came in with \
         \"cargo bloat\", and leave it out"
    );
    Ok(())
}

impl Program {
    fn build(&self, workspace: &Workspace) -> anyhow::Result<Vec<u8>> {
        let path = self.compile(workspace)?;
        fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    fn compile(&self, workspace: &Workspace) -> anyhow::Result<PathBuf> {
        let Self { package, binary, profile } = self;
        let status = cargo()
            .args(["build", "--package", package, "--bin", binary, "--target", TARGET, "--profile", profile])
            .args(env::var(Records::CARGO_VARIABLE).ok().filter(|flag| !flag.is_empty()))
            .current_dir(&workspace.root)
            .status()
            .context("cannot run cargo")?;
        ensure!(
            status.success(),
            "{package} does not build for {TARGET}: see above; \"just tools chart\" brings musl-gcc"
        );
        Ok(self.path(&workspace.target_directory))
    }

    fn path(&self, target_directory: &Path) -> PathBuf {
        target_directory.join(TARGET).join(self.profile).join(self.binary)
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for image in &self.images {
            writeln!(f, "image {}: layer of {} bytes, ID {}", image.reference, image.layer_bytes, image.config_digest)?;
        }
        write!(f, "wrote {}: {} bytes", self.path.display(), self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_bed_has_three_images_of_one_layer() {
        let program: Arc<[u8]> = Arc::from(*b"program");
        let specs = testbed_images(&program);
        let seen: Vec<_> = specs
            .iter()
            .map(|spec| (spec.reference.as_str(), spec.entrypoint.join(" "), spec.env["TESTAPP_VERSION"].as_str()))
            .collect();
        assert_eq!(
            seen,
            [
                ("registry.local/pillion/testapp:v1", "/testapp".to_owned(), "v1"),
                ("registry.local/pillion/testapp:v2", "/testapp".to_owned(), "v2"),
                ("registry.local/pillion/pause:1", "/testapp pause".to_owned(), "1"),
            ]
        );

        let archive = Archive::pack(&specs).unwrap();
        let ids: std::collections::BTreeSet<_> = archive.images.iter().map(|image| &image.config_digest).collect();
        assert_eq!(ids.len(), 3);
        let program_copies = archive.bytes.windows(program.len()).filter(|window| *window == &program[..]).count();
        assert_eq!(program_copies, 1);
    }

    #[test]
    fn the_manager_is_alone_in_its_image_and_not_root() {
        let spec = manager_image(&Arc::from(*b"program"), "1.2.3");
        assert_eq!(spec.reference, "registry.local/pillion/manager:1.2.3");
        assert_eq!(spec.entrypoint, ["/pillion-manager"]);
        assert_eq!(spec.user, "65532:65532");
        let files: Vec<_> = spec.files.iter().map(|file| (file.path.as_str(), file.mode)).collect();
        assert_eq!(files, [("/pillion-manager", 0o755)]);
    }

    #[test]
    fn the_agent_cannot_be_read_and_the_wrapper_can_be_copied() {
        let spec = agent_image(&Arc::from(*b"program"), &Arc::from(*b"wrapper"), "1.2.3");
        assert_eq!(spec.reference, "registry.local/pillion/agent:1.2.3");
        assert_eq!(spec.entrypoint, ["/pillion-agent"]);
        assert_eq!(spec.user, "65532:65532");
        let files: Vec<_> = spec.files.iter().map(|file| (file.path.as_str(), file.mode)).collect();
        assert_eq!(files, [("/pillion-agent", 0o111), ("/pillion-wrap", 0o555)]);
    }

    #[test]
    fn an_agent_that_weighs_too_much_gets_no_image() {
        assert_eq!(hold_agent_size(4_000_000).map_err(|error| error.to_string()), Ok(()));
        assert_eq!(
            hold_agent_size(4_000_001).map_err(|error| error.to_string()),
            Err("pillion-agent has 4000001 bytes, more than the promised 4000000: find out what came in with \
                 \"cargo bloat\", and leave it out"
                .to_owned())
        );
    }

    #[test]
    fn what_was_written_is_told_with_sizes() {
        let written = Written {
            path: "out/testbed.tar".into(),
            bytes: 4096,
            images: vec![Packed {
                reference: "registry.local/a:1".to_owned(),
                config_digest: "sha256:00".to_owned(),
                layer_bytes: 1024,
            }],
        };
        assert_eq!(
            written.to_string(),
            "image registry.local/a:1: layer of 1024 bytes, ID sha256:00\nwrote out/testbed.tar: 4096 bytes"
        );
    }
}
