//! The file system of an image as one uncompressed tar.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use tar::{Builder, EntryType, Header};

use super::{Content, LayerFile};

/// The bytes of the layer: sorted by path, so that a folder comes before what is in it.
pub(super) fn tar_of(files: &[LayerFile]) -> anyhow::Result<Vec<u8>> {
    let mut by_path = BTreeMap::new();
    for file in files {
        let path = relative_path(&file.path)?;
        ensure!(by_path.insert(path, file).is_none(), "{} is in the image twice: name it once", file.path);
    }
    let mut builder = Builder::new(Vec::new());
    for (path, file) in by_path {
        append(&mut builder, path, file.mode, &file.content).with_context(|| format!("cannot pack {}", file.path))?;
    }
    Ok(builder.into_inner()?)
}

/// Appends one entry without anything of the machine that packs it.
pub(super) fn append(builder: &mut Builder<Vec<u8>>, path: &str, mode: u32, content: &Content) -> anyhow::Result<()> {
    let mut header = Header::new_ustar();
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    match content {
        Content::Directory => {
            header.set_entry_type(EntryType::Directory);
            header.set_size(0);
            builder.append_data(&mut header, format!("{path}/"), &[][..])?;
        }
        Content::File(bytes) => {
            header.set_entry_type(EntryType::Regular);
            header.set_size(u64::try_from(bytes.len())?);
            builder.append_data(&mut header, path, &bytes[..])?;
        }
    }
    Ok(())
}

fn relative_path(path: &str) -> anyhow::Result<&str> {
    let relative = path.strip_prefix('/').unwrap_or_default();
    let plain = relative.split('/').all(|part| !matches!(part, "" | "." | ".."));
    ensure!(plain, "{path:?} is not a plain absolute path: write it like /etc/passwd");
    Ok(relative)
}
