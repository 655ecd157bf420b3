//! Where a bed lives: its slot, folders, certificates and programs. Parts are described in terms of it.

use std::fs;
use std::path::PathBuf;

use pillion_tools::{CATALOGUE, Cache, MissingProgram};
use serde_json::{Value, json};

use crate::error::Error;
use crate::keeper::Part;
use crate::pki::{Authority, Identity, Pki};
use crate::slot::Slot;

/// Port of the API server on the bed's host address.
pub(crate) const API_PORT: u16 = 6443;

pub(crate) struct Site {
    pub(crate) slot: Slot,
    /// Dies with the bed.
    pub(crate) folder: PathBuf,
    /// Outlives a bed that failed.
    pub(crate) logs: PathBuf,
    pub(crate) cache: Cache,
    pub(crate) pki: Pki,
}

impl Site {
    /// URL of the API server.
    pub(crate) fn api_url(&self) -> String {
        format!("https://{}:{API_PORT}", self.slot.host())
    }

    /// A part that runs a tool on the host's side.
    pub(crate) fn part(&self, program: &str, arguments: Vec<String>) -> Result<Part, Error> {
        Ok(Part {
            name: program.to_owned(),
            program: self.cache.program(program)?,
            arguments,
            environment: Vec::new(),
            log: self.logs.join(format!("{program}.log")),
        })
    }

    /// Writes a file into the bed's folder.
    pub(crate) fn write(&self, name: &str, content: &str) -> Result<PathBuf, Error> {
        let path = self.folder.join(name);
        fs::write(&path, content).map_err(Error::file(&path))?;
        Ok(path)
    }

    /// Writes a JSON file, which is a YAML file too.
    pub(crate) fn write_json(&self, name: &str, value: &Value) -> Result<PathBuf, Error> {
        self.write(name, &value.to_string())
    }

    /// Makes a user of the cluster: certificate and kubeconfig. Returns the path of the kubeconfig.
    pub(crate) fn user(&self, file: &str, user: &str, group: Option<&str>) -> Result<PathBuf, Error> {
        self.pki.issue(Authority::Cluster, &Identity { file, user, group, serves: &[] })?;
        self.kubeconfig(file)
    }

    /// Writes a kubeconfig for an identity that has a certificate.
    pub(crate) fn kubeconfig(&self, file: &str) -> Result<PathBuf, Error> {
        self.write_json(
            &format!("{file}.kubeconfig"),
            &json!({
                "apiVersion": "v1", "kind": "Config", "current-context": "bed",
                "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": file}}],
                "clusters": [{"name": "bed", "cluster": {
                    "server": self.api_url(), "certificate-authority": self.pki.certificate("ca")}}],
                "users": [{"name": file, "user": {
                    "client-certificate": self.pki.certificate(file), "client-key": self.pki.key(file)}}],
            }),
        )
    }

    /// The data folder of a tool, such as KWOK's own stages.
    pub(crate) fn share(&self, tool: &str) -> Result<PathBuf, Error> {
        let entry = CATALOGUE
            .iter()
            .find(|entry| entry.name == tool)
            .ok_or_else(|| MissingProgram::Unknown(tool.to_owned()))?;
        Ok(self.cache.folder(entry).map_err(MissingProgram::from)?.join("share"))
    }
}
