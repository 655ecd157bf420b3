//! Several images as one archive.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, ensure};
use serde::Serialize;
use tar::Builder;

use super::document::{
    CONFIG, Config, Descriptor, Execution, INDEX, Index, LAYER, Layout, MANIFEST, Manifest, Platform, digest_of,
};
use super::layer::{append, tar_of};
use super::{Content, ImageSpec};

/// The archive, ready to be written.
#[derive(Debug)]
pub struct Archive {
    /// The whole tar.
    pub bytes: Vec<u8>,
    /// What is in it, in the order given.
    pub images: Vec<Packed>,
}

/// An image of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// Full name with tag.
    pub reference: String,
    /// Digest of the config, which Kubernetes calls the image ID.
    pub config_digest: String,
    /// Size of the file system.
    pub layer_bytes: usize,
}

impl Archive {
    /// Packs the images.
    pub fn pack(specs: &[ImageSpec]) -> anyhow::Result<Self> {
        let mut blobs = Blobs::default();
        let mut manifests = BTreeMap::new();
        let mut images = Vec::new();
        for spec in specs {
            let (manifest, image) =
                pack_image(spec, &mut blobs).with_context(|| format!("cannot pack image {}", spec.reference))?;
            ensure!(
                manifests.insert(spec.reference.clone(), manifest).is_none(),
                "{} is given twice: give every image its own name and tag",
                spec.reference
            );
            images.push(image);
        }
        let index = Index { schema_version: 2, media_type: INDEX, manifests: manifests.into_values().collect() };
        Ok(Self { bytes: tar_of_layout(blobs, &index)?, images })
    }

    /// Writes it so that a reader sees the old archive or the whole new one.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut partial = tempfile::Builder::new()
            .permissions(fs::Permissions::from_mode(0o644))
            .tempfile_in(folder)
            .with_context(|| format!("cannot write in {}", folder.display()))?;
        partial.write_all(&self.bytes)?;
        partial.persist(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(())
    }
}

/// Content by digest: what two images share is there once.
#[derive(Default)]
struct Blobs(BTreeMap<String, Vec<u8>>);

impl Blobs {
    fn add(&mut self, media_type: &'static str, bytes: Vec<u8>) -> Descriptor {
        let descriptor = Descriptor::of(media_type, &bytes);
        self.0.insert(descriptor.digest.clone(), bytes);
        descriptor
    }

    fn add_document(&mut self, media_type: &'static str, document: &impl Serialize) -> anyhow::Result<Descriptor> {
        Ok(self.add(media_type, serde_json::to_vec(document)?))
    }
}

fn pack_image(spec: &ImageSpec, blobs: &mut Blobs) -> anyhow::Result<(Descriptor, Packed)> {
    check_reference(&spec.reference)?;
    let layer = tar_of(&spec.files)?;
    let layer_bytes = layer.len();
    let execution = Execution {
        user: spec.user.clone(),
        env: spec.env.iter().map(|(name, value)| format!("{name}={value}")).collect(),
        entrypoint: spec.entrypoint.clone(),
        labels: spec.labels.clone(),
    };
    let config = blobs.add_document(CONFIG, &Config::new(execution, digest_of(&layer)))?;
    let packed = Packed { reference: spec.reference.clone(), config_digest: config.digest.clone(), layer_bytes };
    let manifest = Manifest { schema_version: 2, media_type: MANIFEST, config, layers: vec![blobs.add(LAYER, layer)] };
    let mut manifest = blobs.add_document(MANIFEST, &manifest)?;
    manifest.platform = Some(Platform::LINUX_AMD64);
    // containerd names the image by the first, other tools by the second.
    manifest.annotations = BTreeMap::from([
        ("io.containerd.image.name", spec.reference.clone()),
        ("org.opencontainers.image.ref.name", spec.reference.clone()),
    ]);
    Ok((manifest, packed))
}

/// A short name would be completed differently by every tool.
fn check_reference(reference: &str) -> anyhow::Result<()> {
    let complete = reference.split_once('/').is_some_and(|(registry, rest)| {
        registry.contains(['.', ':'])
            && rest.rsplit_once(':').is_some_and(|(name, tag)| !name.is_empty() && !tag.is_empty())
    });
    ensure!(complete, "the name is not complete: write REGISTRY/NAME:TAG");
    Ok(())
}

fn tar_of_layout(blobs: Blobs, index: &Index) -> anyhow::Result<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    for folder in ["blobs", "blobs/sha256"] {
        append(&mut builder, folder, 0o755, &Content::Directory)?;
    }
    for (digest, bytes) in blobs.0 {
        let path = format!("blobs/{}", digest.replace(':', "/"));
        append(&mut builder, &path, 0o644, &Content::File(bytes.into()))?;
    }
    let index = serde_json::to_vec(index)?;
    append(&mut builder, "index.json", 0o644, &Content::File(index.into()))?;
    let layout = serde_json::to_vec(&Layout::CURRENT)?;
    append(&mut builder, "oci-layout", 0o644, &Content::File(layout.into()))?;
    Ok(builder.into_inner()?)
}
