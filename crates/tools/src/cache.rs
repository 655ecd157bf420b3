//! Where built tools are: one folder per tool, named by version and by a digest of its recipe.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::catalogue::{CATALOGUE, Group, Recipe, Tool};

/// The folder outside the clone that holds what was built or downloaded.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
    modules: PathBuf,
}

/// A program that was looked for and is not there.
#[derive(Debug, thiserror::Error)]
pub enum MissingProgram {
    /// No tool of the catalogue provides it.
    #[error("no tool of the catalogue provides the program {0}: add it to crates/tools/src/catalogue.rs")]
    Unknown(String),
    /// The tool is known and not built.
    #[error("{program} ({tool} {version}) is not built: run \"{command}\"")]
    NotBuilt {
        /// The program.
        program: String,
        /// The tool that provides it.
        tool: &'static str,
        /// The pinned version.
        version: String,
        /// What builds it.
        command: &'static str,
    },
    /// The recipe cannot be read.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
}

/// The recipe of a tool cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    /// A file of the Go module is missing.
    #[error("cannot read {path}, which pins {tool}")]
    Unreadable {
        /// The tool.
        tool: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// go.mod does not name the module.
    #[error("{path} does not require {module}, so the version of {tool} is unknown")]
    NoVersion {
        /// The tool.
        tool: &'static str,
        /// The go.mod.
        path: PathBuf,
        /// The module looked for.
        module: &'static str,
    },
}

/// The root of this clone.
pub fn workspace_root() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.ancestors().nth(2).unwrap_or(crate_folder).to_path_buf()
}

impl Cache {
    /// The cache of this user: `$XDG_CACHE_HOME/pillion`, or `~/.cache/pillion`.
    pub fn of_user() -> Self {
        let base = env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()).map_or_else(
            || PathBuf::from(env::var_os("HOME").unwrap_or_else(|| "/".into())).join(".cache"),
            PathBuf::from,
        );
        Self::at(base.join("pillion"), workspace_root().join("testbed/go"))
    }

    /// A cache in `root` for the Go modules under `modules`.
    pub fn at(root: PathBuf, modules: PathBuf) -> Self {
        Self { root, modules }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of a tool's Go module.
    pub fn module(&self, tool: &Tool) -> PathBuf {
        self.modules.join(tool.name)
    }

    /// The pinned version of a tool.
    pub fn version(&self, tool: &Tool) -> Result<String, RecipeError> {
        match tool.recipe {
            Recipe::Cargo { version, .. } | Recipe::Python { version } => Ok(version.to_owned()),
            Recipe::Go { module, .. } => {
                let path = self.module(tool).join("go.mod");
                let text = read(tool, &path)?;
                required_version(&text, module).ok_or(RecipeError::NoVersion { tool: tool.name, path, module })
            }
        }
    }

    /// The folder a tool is installed in. Another version or recipe is another folder.
    pub fn folder(&self, tool: &Tool) -> Result<PathBuf, RecipeError> {
        let mut recipe = Sha256::new();
        recipe.update(format!("{:?}", tool.recipe));
        if let Recipe::Go { .. } = tool.recipe {
            for file in ["go.mod", "go.sum"] {
                recipe.update(read(tool, &self.module(tool).join(file))?);
            }
        }
        let digest = recipe.finalize();
        let key = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
        Ok(self.root.join("tools").join(format!("{}-{}-{key:08x}", tool.name, self.version(tool)?)))
    }

    /// The path of a program, if its tool is built.
    pub fn program(&self, program: &str) -> Result<PathBuf, MissingProgram> {
        let tool = CATALOGUE
            .iter()
            .find(|tool| tool.programs().contains(&program))
            .ok_or_else(|| MissingProgram::Unknown(program.to_owned()))?;
        let path = self.folder(tool)?.join("bin").join(program);
        if path.is_file() {
            return Ok(path);
        }
        let command = match tool.group {
            Group::Gates | Group::Bed => "just tools",
            Group::Chart => "just tools chart",
            Group::Fuzz => "just tools fuzz",
            Group::Bench => "just tools bench",
        };
        let version = self.version(tool)?;
        Err(MissingProgram::NotBuilt { program: program.to_owned(), tool: tool.name, version, command })
    }
}

fn read(tool: &Tool, path: &Path) -> Result<String, RecipeError> {
    fs::read_to_string(path).map_err(|source| RecipeError::Unreadable {
        tool: tool.name,
        path: path.to_path_buf(),
        source,
    })
}

/// The version a go.mod requires of a module.
fn required_version(go_mod: &str, module: &str) -> Option<String> {
    go_mod.lines().find_map(|line| {
        let mut words = line.trim().trim_start_matches("require ").split_whitespace();
        let version = (words.next()? == module).then(|| words.next())??;
        version.starts_with('v').then(|| version.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_comes_from_the_require_line_and_not_from_replace_or_tool() {
        let go_mod = "module x\nreplace (\n\texample.org/a => example.org/a v0.1.0\n)\n\
                      tool example.org/a\nrequire example.org/b v9.9.9\nrequire (\n\texample.org/a v1.2.3 // indirect\n)\n";
        assert_eq!(required_version(go_mod, "example.org/a").as_deref(), Some("v1.2.3"));
        assert_eq!(required_version(go_mod, "example.org/b").as_deref(), Some("v9.9.9"));
        assert_eq!(required_version(go_mod, "example.org/c"), None);
    }

    #[test]
    fn every_go_tool_of_the_catalogue_is_pinned_in_this_clone() {
        let cache = Cache::of_user();
        for tool in CATALOGUE {
            assert_ne!(cache.version(tool).unwrap(), "", "{}", tool.name);
        }
    }

    #[test]
    fn a_changed_checksum_file_means_another_folder() {
        let clone = tempfile::tempdir().unwrap();
        let module = clone.path().join("etcd");
        fs::create_dir(&module).unwrap();
        fs::write(module.join("go.mod"), "require go.etcd.io/etcd/server/v3 v3.6.16\n").unwrap();
        fs::write(module.join("go.sum"), "one").unwrap();
        let cache = Cache::at("/cache".into(), clone.path().to_path_buf());
        let etcd = CATALOGUE.iter().find(|tool| tool.name == "etcd").unwrap();
        let before = cache.folder(etcd).unwrap();
        fs::write(module.join("go.sum"), "two").unwrap();
        assert_ne!(cache.folder(etcd).unwrap(), before);
        fs::write(module.join("go.sum"), "one").unwrap();
        assert_eq!(cache.folder(etcd).unwrap(), before);
    }

    #[test]
    fn a_missing_program_says_which_version_and_what_to_run() {
        let cache = Cache::at("/nowhere".into(), workspace_root().join("testbed/go"));
        let etcd = CATALOGUE.iter().find(|tool| tool.name == "etcd").unwrap();
        assert_eq!(
            cache.program("etcd").unwrap_err().to_string(),
            format!("etcd (etcd {}) is not built: run \"just tools\"", cache.version(etcd).unwrap()),
        );
        let upstream = cache.program("vpa-recommender").unwrap_err().to_string();
        assert!(upstream.ends_with("is not built: run \"just tools bench\""), "{upstream}");
    }
}
