//! Packs files into an OCI image layout archive: several images in one tar, blobs shared, byte for byte the same each
//! time.
//!
//! It follows the OCI image specification 1.1: `oci-layout`, `index.json` and content-addressed blobs. There is no time,
//! no owner and no order of the caller in the output. It knows nothing of what is packed.

mod archive;
mod document;
mod layer;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use archive::{Archive, Packed};

/// One image to pack.
#[derive(Clone, Debug)]
pub struct ImageSpec {
    /// Full name with tag, for example `registry.local/pillion/testapp:v1`.
    pub reference: String,
    /// Everything in the file system, in any order.
    pub files: Vec<LayerFile>,
    /// Program and first arguments.
    pub entrypoint: Vec<String>,
    /// Environment, by name.
    pub env: BTreeMap<String, String>,
    /// `uid`, `uid:gid` or a name from `/etc/passwd`; empty for root.
    pub user: String,
    /// Labels of the image, by name.
    pub labels: BTreeMap<String, String>,
}

/// A file or folder of an image, owned by root.
#[derive(Clone, Debug)]
pub struct LayerFile {
    /// Absolute path in the image.
    pub path: String,
    /// Permission bits, for example `0o755`.
    pub mode: u32,
    /// What is there.
    pub content: Content,
}

/// What is at a path of an image.
#[derive(Clone, Debug)]
pub enum Content {
    /// A folder.
    Directory,
    /// A file with these bytes; shared, because several images hold the same program.
    File(Arc<[u8]>),
}

impl LayerFile {
    /// A folder.
    pub fn directory(path: &str, mode: u32) -> Self {
        Self { path: path.to_owned(), mode, content: Content::Directory }
    }

    /// A file.
    pub fn file(path: &str, mode: u32, bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { path: path.to_owned(), mode, content: Content::File(bytes.into()) }
    }
}

#[cfg(test)]
mod tests;
