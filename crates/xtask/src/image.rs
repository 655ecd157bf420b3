//! Which images there are, and what is in them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};
use clap::ValueEnum;

use crate::oci::{Archive, ImageSpec, LayerFile, Packed};
use crate::workspace::{Workspace, cargo};

/// The images run from nothing but their own file, so the program brings its libc along.
const TARGET: &str = "x86_64-unknown-linux-musl";
const PROFILE: &str = "small";

const PASSWD: &[u8] = b"root:x:0:0:root:/:/testapp\nnobody:x:65534:65534:nobody:/:/testapp\n";

/// Images that are built together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Family {
    /// What the test bed runs: testapp in two versions, and the sandbox process.
    Testapp,
}

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
pub fn build(workspace: &Workspace, family: Family, out: Option<PathBuf>) -> anyhow::Result<Written> {
    let out = out.unwrap_or_else(|| workspace.target_directory.join("images"));
    let (path, specs) = match family {
        Family::Testapp => {
            let program = build_program(workspace, "pillion-testapp", "testapp")?;
            (out.join("testbed.tar"), testbed_images(&program.into()))
        }
    };
    let archive = Archive::pack(&specs)?;
    archive.write(&path)?;
    Ok(Written { path, bytes: archive.bytes.len(), images: archive.images })
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

fn build_program(workspace: &Workspace, package: &str, binary: &str) -> anyhow::Result<Vec<u8>> {
    let status = cargo()
        .args(["build", "--package", package, "--bin", binary, "--target", TARGET, "--profile", PROFILE])
        .current_dir(&workspace.root)
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "{package} does not build for {TARGET}: see above");
    let path = program_path(&workspace.target_directory, binary);
    fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
}

fn program_path(target_directory: &Path, binary: &str) -> PathBuf {
    target_directory.join(TARGET).join(PROFILE).join(binary)
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
