use std::collections::BTreeSet;
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::fs::symlink;
use std::process::Command;

use rustix::fs::inotify;

use super::*;

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    (dir, store)
}

fn entry(version: &str) -> Entry {
    Entry::of(version, &"0f1e2d3c4b5a".repeat(6), "game.conf")
}

fn put(store: &Store, version: &str, content: &str) -> io::Result<Entry> {
    let entry = entry(version);
    let mut unfinished = store.begin(&entry.file)?;
    unfinished.file.write_all(content.as_bytes())?;
    store.finish(unfinished, &entry, None)?;
    store.place(&entry)?;
    Ok(entry)
}

#[test]
fn names_are_plain() {
    for name in ["game.conf", "a", "A-b_c.1"] {
        assert_eq!(check_name(name), Ok(()), "{name}");
    }
    for name in ["", ".", "..", ".versions", "current", "a/b", "a b", "ü", "a\n", "%2e", &"a".repeat(129)] {
        assert!(check_name(name).is_err(), "{name}");
    }
}

#[test]
fn a_placed_version_is_what_the_app_reads() {
    let (dir, store) = store();
    put(&store, "v1", "one").unwrap();
    assert_eq!(fs::read_link(dir.path().join("game.conf")).unwrap(), Path::new("current/game.conf"));
    assert_eq!(fs::read_link(dir.path().join("current")).unwrap(), Path::new(".versions/v1-0f1e2d3c4b5a"));
    put(&store, "v2", "two").unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("game.conf")).unwrap(), "two");
    store.place(&entry("v1")).unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("game.conf")).unwrap(), "one");
    let gone = store.place(&entry("v3")).unwrap_err().to_string();
    assert_eq!(gone, "v3-0f1e2d3c4b5a is not stored any more");
}

#[test]
fn what_was_there_before_us_is_kept() {
    let (dir, store) = store();
    let file = dir.path().join("game.conf");
    fs::write(&file, "of the image").unwrap();
    put(&store, "v1", "one").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "one");
    store.restore_original().unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "of the image");
    // Twice, as a kill may have it.
    store.restore_original().unwrap();
    put(&store, "v2", "two").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "two");
}

#[test]
fn where_nothing_was_there_is_nothing_again() {
    let (dir, store) = store();
    put(&store, "v1", "one").unwrap();
    store.restore_original().unwrap();
    assert!(fs::symlink_metadata(dir.path().join("game.conf")).is_err());
    assert!(fs::symlink_metadata(dir.path().join("current")).is_err());
}

#[test]
fn names_of_earlier_files_go() {
    let (dir, store) = store();
    put(&store, "v1", "one").unwrap();
    fs::write(dir.path().join("mine"), "of the app").unwrap();
    symlink("current/other", dir.path().join("other")).unwrap();
    store.remove_other_links("game.conf").unwrap();
    assert!(fs::symlink_metadata(dir.path().join("other")).is_err());
    assert!(dir.path().join("game.conf").exists() && dir.path().join("mine").exists());
}

#[test]
fn attack_links_of_the_app_lead_nowhere() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    // The folder of versions.
    let dir = tempfile::tempdir().unwrap();
    symlink(outside.path(), dir.path().join(".versions")).unwrap();
    assert!(Store::open(dir.path()).is_err());
    // The folder of a download, of a version, and the names of temporary files.
    let (dir, store) = store();
    let versions = dir.path().join(".versions");
    for name in [NEW, "v1-0f1e2d3c4b5a"] {
        symlink(outside.path(), versions.join(name)).unwrap();
    }
    symlink(&secret, versions.join(NEW_STATE)).unwrap();
    symlink(&secret, dir.path().join(NEW_CURRENT)).unwrap();
    symlink(&secret, dir.path().join(NEW_LINK)).unwrap();
    store.write_state("{}").unwrap();
    assert!(store.file(&entry("v1")).is_none());
    let _ = put(&store, "v1", "one");
    put(&store, "v2", "two").unwrap();
    // The file itself, and the record.
    fs::remove_file(versions.join("state")).unwrap();
    symlink(&secret, versions.join("state")).unwrap();
    assert_eq!(store.read_state(), None);
    fs::remove_file(dir.path().join("game.conf")).unwrap();
    symlink(&secret, dir.path().join("game.conf")).unwrap();
    let refusal = put(&store, "v3", "three").unwrap_err().to_string();
    assert_eq!(refusal, "game.conf is there and is no file: remove it from the folder");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn attack_a_pipe_of_the_app_does_not_hold_us_up() {
    let (dir, store) = store();
    put(&store, "v1", "one").unwrap();
    let stored = dir.path().join("current/game.conf");
    fs::remove_file(&stored).unwrap();
    assert!(Command::new("mkfifo").arg(&stored).status().unwrap().success());
    assert!(store.file(&entry("v1")).is_none());
}

#[test]
fn folders_of_the_app_in_a_version_are_removed_with_it() {
    let (dir, store) = store();
    put(&store, "v1", "one").unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("kept"), "").unwrap();
    let deep = dir.path().join(".versions/v1-0f1e2d3c4b5a/a/b");
    fs::create_dir_all(&deep).unwrap();
    symlink(outside.path(), deep.join("link")).unwrap();
    put(&store, "v2", "two").unwrap();
    assert_eq!(store.prune(1, &[]).unwrap(), ["v1-0f1e2d3c4b5a"]);
    assert!(!dir.path().join(".versions/v1-0f1e2d3c4b5a").exists() && outside.path().join("kept").exists());
}

#[test]
fn the_current_version_and_spared_ones_are_never_pruned() {
    let (_dir, store) = store();
    for version in ["v1", "v2", "v3", "v4"] {
        put(&store, version, version).unwrap();
    }
    store.place(&entry("v1")).unwrap();
    assert_eq!(store.prune(2, &[&entry("v2").folder]).unwrap(), ["v3-0f1e2d3c4b5a", "v4-0f1e2d3c4b5a"]);
    assert_eq!(store.prune(0, &[&entry("v2").folder]).unwrap(), [""; 0]);
}

#[test]
fn what_a_kill_left_is_removed_at_the_start() {
    let (dir, store) = store();
    put(&store, "v1", "one").unwrap();
    let mut unfinished = store.begin("game.conf").unwrap();
    unfinished.file.write_all(b"half").unwrap();
    for name in [NEW_CURRENT, NEW_LINK] {
        symlink("x", dir.path().join(name)).unwrap();
    }
    fs::write(dir.path().join(".versions").join(NEW_STATE), "{").unwrap();
    drop(store);
    Store::open(dir.path()).unwrap();
    let names = |path: &Path| {
        let mut names: Vec<_> =
            fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names(dir.path()), [".versions", "current", "game.conf"]);
    assert_eq!(names(&dir.path().join(".versions")), ["v1-0f1e2d3c4b5a"]);
}

/// A name that is removed and made again is missing in between, for as long as a kill may have it.
#[test]
fn attack_no_name_the_app_reads_is_ever_missing() {
    let (dir, store) = store();
    fs::write(dir.path().join("game.conf"), "of the image").unwrap();
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    inotify::add_watch(&watch, dir.path(), inotify::WatchFlags::DELETE | inotify::WatchFlags::MOVED_FROM).unwrap();
    for version in ["v1", "v2", "v1", "v3"] {
        put(&store, version, version).unwrap();
    }
    store.place(&entry("v2")).unwrap();
    store.restore_original().unwrap();
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(&watch, &mut buffer);
    let mut gone = BTreeSet::new();
    while let Ok(event) = events.next() {
        gone.extend(event.file_name().map(|name| name.to_str().unwrap().to_owned()));
    }
    assert_eq!(gone, [NEW_CURRENT, NEW_LINK].map(str::to_owned).into());
}
