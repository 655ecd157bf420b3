//! Packs a program of the dev build into an image, so that the tier `ci` need not compile it a second time. Programs of the
//! dev build load shared libraries; the image holds those of this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::oci::LayerFile;

/// The program without debug information, and every library that it loads, each at the path where the program finds it.
pub(super) fn files_of(program: &Path, path_in_image: &str) -> anyhow::Result<Vec<LayerFile>> {
    ensure!(
        program.is_file(),
        "{} is not built: run \"cargo build --workspace --bins\", or pack the shipped image with \"cargo xtask image manager\"",
        program.display()
    );
    let mut files = vec![LayerFile::file(path_in_image, 0o755, stripped(program)?)];
    for library in libraries(&output(Command::new("ldd").arg(program))?) {
        let bytes = fs::read(&library).with_context(|| format!("cannot read {}", library.display()))?;
        files.push(LayerFile::file(&library.to_string_lossy(), 0o755, bytes));
    }
    Ok(files)
}

/// Debug information is two thirds of a program, and nobody reads it in a container.
fn stripped(program: &Path) -> anyhow::Result<Vec<u8>> {
    let directory = tempfile::tempdir().context("cannot make a temporary directory")?;
    let path = directory.path().join("stripped");
    output(Command::new("strip").arg("-o").arg(&path).arg(program))?;
    fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
}

fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    ensure!(output.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The absolute paths in the output of `ldd`: `libc.so.6 => /lib/libc.so.6 (0x1)` and `/lib64/ld-linux-x86-64.so.2 (0x2)`.
fn libraries(ldd: &str) -> Vec<PathBuf> {
    let path_of_line = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
    ldd.lines().filter_map(path_of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_the_absolute_paths_that_ldd_names() {
        let ldd = "\tlinux-vdso.so.1 (0x00007fa93fee9000)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007fa93c61e000)\n\
                   \t/lib64/ld-linux-x86-64.so.2 (0x00007fa93feeb000)\n";
        assert_eq!(
            libraries(ldd),
            ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from)
        );
    }

    #[test]
    fn an_image_holds_the_stripped_program_and_its_libraries() {
        let program = std::env::current_exe().unwrap();
        let files = files_of(&program, "/program").unwrap();
        let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths[0], "/program");
        for library in ["libc.so.6", "ld-linux-x86-64.so.2"] {
            assert!(paths.iter().any(|path| path.ends_with(library)), "{library} in {paths:?}");
        }
        let crate::oci::Content::File(bytes) = &files[0].content else { panic!("/program is a directory") };
        assert!((bytes.len() as u64) < fs::metadata(&program).unwrap().len());
    }

    #[test]
    fn a_program_that_is_not_built_is_an_error_that_says_what_to_run() {
        let error = files_of(Path::new("/nonexistent/manager"), "/manager").unwrap_err();
        assert_eq!(
            error.to_string(),
            "/nonexistent/manager is not built: run \"cargo build --workspace --bins\", or pack the shipped image with \
             \"cargo xtask image manager\""
        );
    }
}
