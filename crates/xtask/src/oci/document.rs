//! The JSON documents of an image layout. Structs, because their fields keep their order whatever features of
//! `serde_json` another crate turns on.

use std::collections::BTreeMap;

use serde::Serialize;
use sha2::{Digest, Sha256};

pub(super) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(super) const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
pub(super) const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// An image has no time of birth, or the same files would not be the same image.
const NO_TIME: &str = "1970-01-01T00:00:00Z";

/// `sha256:` and the hash in hexadecimal.
pub(super) fn digest_of(bytes: &[u8]) -> String {
    format!("sha256:{:x}", Sha256::digest(bytes))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Layout {
    image_layout_version: &'static str,
}

impl Layout {
    pub(super) const CURRENT: Self = Self { image_layout_version: "1.0.0" };
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Index {
    pub(super) schema_version: u8,
    pub(super) media_type: &'static str,
    pub(super) manifests: Vec<Descriptor>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manifest {
    pub(super) schema_version: u8,
    pub(super) media_type: &'static str,
    pub(super) config: Descriptor,
    pub(super) layers: Vec<Descriptor>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub(super) media_type: &'static str,
    pub(super) digest: String,
    pub(super) size: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) platform: Option<Platform>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) annotations: BTreeMap<&'static str, String>,
}

impl Descriptor {
    pub(super) fn of(media_type: &'static str, bytes: &[u8]) -> Self {
        Self { media_type, digest: digest_of(bytes), size: bytes.len(), platform: None, annotations: BTreeMap::new() }
    }
}

/// Where an image runs.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Platform {
    architecture: &'static str,
    os: &'static str,
}

impl Platform {
    /// The only one whose programs we build.
    pub(super) const LINUX_AMD64: Self = Self { architecture: "amd64", os: "linux" };
}

#[derive(Serialize)]
pub(super) struct Config {
    created: &'static str,
    #[serde(flatten)]
    platform: Platform,
    #[serde(rename = "config")]
    execution: Execution,
    rootfs: RootFs,
}

/// How the image is run. The specification writes these names with capitals.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Execution {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) user: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) env: Vec<String>,
    pub(super) entrypoint: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) labels: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct RootFs {
    r#type: &'static str,
    diff_ids: Vec<String>,
}

impl Config {
    pub(super) fn new(execution: Execution, diff_id: String) -> Self {
        Self {
            created: NO_TIME,
            platform: Platform::LINUX_AMD64,
            execution,
            rootfs: RootFs { r#type: "layers", diff_ids: vec![diff_id] },
        }
    }
}
