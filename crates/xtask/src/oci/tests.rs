//! An archive is read back here by the specification, not by the code that wrote it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::*;

fn spec(reference: &str, version: &str) -> ImageSpec {
    ImageSpec {
        reference: reference.to_owned(),
        files: vec![
            LayerFile::directory("/tmp", 0o1777),
            LayerFile::file("/program", 0o755, *b"program"),
            LayerFile::file("/etc/passwd", 0o644, *b"root:x:0:0::/:\n"),
            LayerFile::directory("/etc", 0o755),
        ],
        entrypoint: vec!["/program".to_owned(), "serve".to_owned()],
        env: BTreeMap::from([("VERSION".to_owned(), version.to_owned()), ("PATH".to_owned(), "/".to_owned())]),
        user: "65534:65534".to_owned(),
        labels: BTreeMap::from([("version".to_owned(), version.to_owned())]),
    }
}

fn two_images() -> Vec<ImageSpec> {
    vec![spec("registry.local/a:v1", "v1"), spec("registry.local/a:v2", "v2")]
}

/// Every file of a tar by path, and every header as one line.
fn read_tar(bytes: &[u8]) -> (BTreeMap<String, Vec<u8>>, Vec<String>) {
    let mut files = BTreeMap::new();
    let mut headers = Vec::new();
    for entry in tar::Archive::new(bytes).entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().to_str().unwrap().to_owned();
        let header = entry.header();
        headers.push(format!(
            "{:o} {}:{} {} {path}",
            header.mode().unwrap(),
            header.uid().unwrap(),
            header.gid().unwrap(),
            header.mtime().unwrap(),
        ));
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        files.insert(path, content);
    }
    (files, headers)
}

fn blob<'a>(files: &'a BTreeMap<String, Vec<u8>>, descriptor: &Value) -> &'a [u8] {
    let digest = descriptor["digest"].as_str().unwrap();
    let bytes = &files[&format!("blobs/{}", digest.replace(':', "/"))];
    assert_eq!(descriptor["size"], json!(bytes.len()));
    assert_eq!(digest, format!("sha256:{:x}", Sha256::digest(bytes)));
    bytes
}

fn document(files: &BTreeMap<String, Vec<u8>>, descriptor: &Value) -> Value {
    serde_json::from_slice(blob(files, descriptor)).unwrap()
}

#[test]
fn the_same_images_are_the_same_bytes() {
    let mut shuffled = two_images();
    shuffled.reverse();
    for spec in &mut shuffled {
        spec.files.reverse();
    }
    let archive = Archive::pack(&two_images()).unwrap();
    assert_eq!(archive.bytes, Archive::pack(&two_images()).unwrap().bytes);
    assert_eq!(archive.bytes, Archive::pack(&shuffled).unwrap().bytes);
    let other = Archive::pack(&[spec("registry.local/a:v1", "v1")]).unwrap();
    assert_ne!(archive.bytes, other.bytes);
}

#[test]
fn every_digest_and_size_names_its_blob() {
    let archive = Archive::pack(&two_images()).unwrap();
    let (files, _) = read_tar(&archive.bytes);
    assert_eq!(files["oci-layout"], br#"{"imageLayoutVersion":"1.0.0"}"#);
    let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
    assert_eq!(index["schemaVersion"], json!(2));
    assert_eq!(index["mediaType"], json!("application/vnd.oci.image.index.v1+json"));

    let manifests = index["manifests"].as_array().unwrap();
    assert_eq!(manifests.len(), 2);
    for (descriptor, version) in manifests.iter().zip(["v1", "v2"]) {
        let reference = format!("registry.local/a:{version}");
        assert_eq!(descriptor["mediaType"], json!("application/vnd.oci.image.manifest.v1+json"));
        assert_eq!(descriptor["platform"], json!({"architecture": "amd64", "os": "linux"}));
        assert_eq!(
            descriptor["annotations"],
            json!({"io.containerd.image.name": reference, "org.opencontainers.image.ref.name": reference})
        );

        let manifest = document(&files, descriptor);
        assert_eq!(manifest["schemaVersion"], json!(2));
        assert_eq!(manifest["mediaType"], json!("application/vnd.oci.image.manifest.v1+json"));
        assert_eq!(manifest["config"]["mediaType"], json!("application/vnd.oci.image.config.v1+json"));
        let layers = manifest["layers"].as_array().unwrap();
        assert_eq!(layers.len(), 1);
        assert_eq!(layers[0]["mediaType"], json!("application/vnd.oci.image.layer.v1.tar"));
        let layer = blob(&files, &layers[0]);

        assert_eq!(
            document(&files, &manifest["config"]),
            json!({
                "created": "1970-01-01T00:00:00Z",
                "architecture": "amd64",
                "os": "linux",
                "config": {
                    "User": "65534:65534",
                    "Env": ["PATH=/", format!("VERSION={version}")],
                    "Entrypoint": ["/program", "serve"],
                    "Labels": {"version": version},
                },
                "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{:x}", Sha256::digest(layer))]},
            })
        );
    }
}

#[test]
fn images_with_the_same_files_share_the_layer() {
    let archive = Archive::pack(&two_images()).unwrap();
    let (files, _) = read_tar(&archive.bytes);
    let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
    let manifests = index["manifests"].as_array().unwrap();
    let distinct = |pointer: &str| -> usize {
        let found =
            manifests.iter().map(|descriptor| document(&files, descriptor).pointer(pointer).unwrap().to_string());
        found.collect::<BTreeSet<_>>().len()
    };
    assert_eq!(distinct("/layers/0/digest"), 1);
    assert_eq!(distinct("/config/digest"), 2);
    // One layer, two configs, two manifests.
    let blobs = files.keys().filter(|path| path.starts_with("blobs/sha256/") && !path.ends_with('/'));
    assert_eq!(blobs.count(), 5);
    assert_ne!(archive.images[0].config_digest, archive.images[1].config_digest);
    assert_eq!(archive.images[0].layer_bytes, archive.images[1].layer_bytes);
}

#[test]
fn the_layer_holds_nothing_of_the_machine_that_packed_it() {
    let layer = layer::tar_of(&two_images()[0].files).unwrap();
    let (files, headers) = read_tar(&layer);
    assert_eq!(headers, ["755 0:0 0 etc/", "644 0:0 0 etc/passwd", "755 0:0 0 program", "1777 0:0 0 tmp/",]);
    assert_eq!(files["program"], b"program");
    assert_eq!(files["etc/passwd"], b"root:x:0:0::/:\n");
}

#[test]
fn empty_settings_are_left_out() {
    let mut plain = spec("registry.local/a:v1", "v1");
    plain.user.clear();
    plain.env.clear();
    plain.labels.clear();
    let (files, _) = read_tar(&Archive::pack(&[plain]).unwrap().bytes);
    let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
    let manifest = document(&files, &index["manifests"][0]);
    let config = document(&files, &manifest["config"]);
    assert_eq!(config["config"], json!({"Entrypoint": ["/program", "serve"]}));
}

#[test]
fn what_cannot_be_packed_is_named() {
    let why = |change: &dyn Fn(&mut Vec<ImageSpec>)| {
        let mut specs = two_images();
        change(&mut specs);
        format!("{:#}", Archive::pack(&specs).unwrap_err())
    };
    assert_eq!(
        why(&|specs| specs[1].reference = "registry.local/a:v1".to_owned()),
        "registry.local/a:v1 is given twice: give every image its own name and tag"
    );
    for short in ["testapp", "testapp:v1", "pillion/testapp:v1", "registry.local/testapp", "registry.local/:v1"] {
        assert_eq!(
            why(&|specs| specs[0].reference = short.to_owned()),
            format!("cannot pack image {short}: the name is not complete: write REGISTRY/NAME:TAG")
        );
    }
    assert_eq!(
        why(&|specs| specs[0].files.push(LayerFile::directory("/tmp", 0o755))),
        "cannot pack image registry.local/a:v1: /tmp is in the image twice: name it once"
    );
    for path in ["etc/hosts", "/", "/etc/", "/etc/../root", "//etc"] {
        assert_eq!(
            why(&|specs| specs[0].files.push(LayerFile::directory(path, 0o755))),
            format!(
                "cannot pack image registry.local/a:v1: {path:?} is not a plain absolute path: write it like /etc/passwd"
            )
        );
    }
}

#[test]
fn writing_twice_replaces_the_archive_and_leaves_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("images/bed.tar");
    let first = Archive::pack(&two_images()).unwrap();
    let second = Archive::pack(&two_images()[..1]).unwrap();
    for archive in [&first, &second] {
        archive.write(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), archive.bytes);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
