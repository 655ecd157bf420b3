//! `pillion agent update`: the record that says which version of a file the pods of a workload are to have.
//!
//! The record belongs to the workload and goes with it. It is written with the rights of whoever asks; agents cannot.

use std::io;

use clap::Args;
use pillion_agent_api::{Url, is_digest, is_version};
use pillion_api::WorkloadReference;
use serde_json::{Value, json};

use crate::live::kinds::{HOT_UPDATE, Kind, running_workload};
use crate::live::{Cluster, Connection, DryRun, Failure, run as run_live};
use crate::{Ending, Streams};

#[derive(Args)]
pub(crate) struct Arguments {
    /// The workload: deploy/web, sts/db, gss/arena.
    #[arg(value_name = "WORKLOAD", value_parser = running_workload)]
    workload: (Kind, String),
    /// The version: v and up to four numbers with dots between them, as v1.20.
    #[arg(long, value_name = "VERSION", value_parser = version)]
    version: String,
    /// Where the file is; the configuration of the agents must allow it.
    #[arg(long, value_name = "URL", value_parser = url)]
    url: String,
    /// Its digest, as sha256sum prints it.
    #[arg(long, value_name = "DIGEST", value_parser = sha256)]
    sha256: String,
    /// Namespace of the workload; that of the context without it.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Let the API server try it without storing anything.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    connection: Connection,
}

fn version(text: &str) -> Result<String, String> {
    let wrong = || "write v and up to four numbers with dots between them, such as v1.20".to_owned();
    if is_version(text) { Ok(text.to_owned()) } else { Err(wrong()) }
}

fn url(text: &str) -> Result<String, String> {
    match Url::parse(text) {
        Ok(url) if url.scheme != "https" => Err("files come over https only".to_owned()),
        Ok(url) if url.path.is_empty() => Err("it names no file".to_owned()),
        Ok(_) => Ok(text.to_owned()),
        Err(why) => Err(format!("it {why}")),
    }
}

fn sha256(text: &str) -> Result<String, String> {
    if is_digest(text) { Ok(text.to_ascii_lowercase()) } else { Err("write 64 hexadecimal digits".to_owned()) }
}

pub(super) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> io::Result<Ending> {
    let (kind, name) = &arguments.workload;
    run_live(&arguments.connection, streams, async |cluster, streams| {
        let namespace = arguments.namespace.as_deref().unwrap_or_else(|| cluster.default_namespace());
        let workload = cluster.get(*kind, Some(namespace), name).await?;
        let workload = workload.ok_or_else(|| {
            Failure::Usage(format!("there is no {} {namespace}/{name}: correct the name or -n", kind.name))
        })?;
        let record = record(*kind, namespace, &workload, arguments)?;
        let change = written(cluster, namespace, &record, arguments).await?;
        let tried = if arguments.dry_run { " (dry run)" } else { "" };
        writeln!(streams.out, "hotupdate/{} {change}{tried}", name_of(&record))?;
        let flags = arguments.connection.flags();
        writeln!(streams.err, "the same by hand:\n  {}", kubectl(&record, &flags))?;
        writeln!(streams.err, "follow it:\n  kubectl{flags} -n {namespace} get hu {} --watch", name_of(&record))?;
        Ok(Ending::Fine)
    })
}

fn name_of(record: &Value) -> &str {
    record.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

/// The record as it is to be. A workload has one, found by its name.
fn record(kind: Kind, namespace: &str, workload: &Value, arguments: &Arguments) -> Result<Value, Failure> {
    let name = name_of(workload);
    let uid = workload.pointer("/metadata/uid").and_then(Value::as_str);
    let uid = uid.ok_or_else(|| Failure::Usage(format!("{} {name} has no uid", kind.name)))?;
    let Arguments { version, url, sha256, .. } = arguments;
    let reference = WorkloadReference {
        api_version: kind.api_version.to_owned(),
        kind: kind.name.to_owned(),
        name: name.to_owned(),
    };
    Ok(json!({
        "apiVersion": HOT_UPDATE.api_version,
        "kind": HOT_UPDATE.name,
        "metadata": {
            "name": reference.record_name(),
            "namespace": namespace,
            "ownerReferences": [{"apiVersion": kind.api_version, "kind": kind.name, "name": name, "uid": uid}],
        },
        "spec": {
            "workload": reference,
            "version": version,
            "url": url,
            "sha256": sha256,
        },
    }))
}

/// Creates the record, or changes the one there is; what was done.
async fn written(
    cluster: &Cluster,
    namespace: &str,
    record: &Value,
    arguments: &Arguments,
) -> Result<&'static str, Failure> {
    let tried = if arguments.dry_run { DryRun::Yes } else { DryRun::No };
    let name = name_of(record);
    let present = cluster.get(HOT_UPDATE, Some(namespace), name).await?;
    match present {
        None => {
            cluster.create(HOT_UPDATE, Some(namespace), record, tried).await?;
            Ok("created")
        }
        Some(present) if says_the_same(&present, record) => Ok("unchanged"),
        Some(_) => {
            let patched = cluster.merge(HOT_UPDATE, Some(namespace), name, &patch(record), tried).await?;
            patched.ok_or_else(|| Failure::Usage(format!("hotupdate/{name} went away meanwhile: try again")))?;
            Ok("changed")
        }
    }
}

/// What is changed of a record that is there: never its workload.
fn patch(record: &Value) -> Value {
    json!({
        "metadata": {"ownerReferences": record["metadata"]["ownerReferences"]},
        "spec": {"version": record["spec"]["version"], "url": record["spec"]["url"], "sha256": record["spec"]["sha256"]},
    })
}

fn says_the_same(present: &Value, record: &Value) -> bool {
    let fields = ["/spec/version", "/spec/url", "/spec/sha256", "/metadata/ownerReferences/0/uid"];
    fields.iter().all(|field| present.pointer(field) == record.pointer(field))
}

/// A command that writes the same, to be pasted into a shell.
fn kubectl(record: &Value, flags: &str) -> String {
    format!("kubectl{flags} apply --server-side -f - <<'EOF'\n{record}\nEOF")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    const DIGEST: &str = "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef";

    fn read(workload: &str, version: &str, url: &str, digest: &str) -> Result<Arguments, String> {
        let line = ["update", workload, "--version", version, "--url", url, "--sha256", digest];
        Line::try_parse_from(line).map(|line| line.arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn a_record_belongs_to_its_workload() {
        let arguments = read("deploy/web", "v1.20", "https://files.example.com/a", DIGEST).unwrap();
        let workload = json!({"metadata": {"name": "web", "uid": "u-1"}});
        let made = record(arguments.workload.0, "shop", &workload, &arguments).unwrap();
        assert_eq!(
            made,
            json!({
                "apiVersion": "pillion.dev/v1alpha1",
                "kind": "HotUpdate",
                "metadata": {
                    "name": "deployment-web",
                    "namespace": "shop",
                    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u-1"}],
                },
                "spec": {
                    "workload": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                    "version": "v1.20",
                    "url": "https://files.example.com/a",
                    "sha256": DIGEST.to_lowercase(),
                },
            })
        );
        assert!(says_the_same(&made, &made));
        let mut other = made.clone();
        other["spec"]["sha256"] = json!("0");
        assert!(!says_the_same(&other, &made));
        assert_eq!(
            patch(&made),
            json!({
                "metadata": {"ownerReferences": made["metadata"]["ownerReferences"]},
                "spec": {"version": "v1.20", "url": "https://files.example.com/a", "sha256": DIGEST.to_lowercase()},
            })
        );
        let command = kubectl(&made, " --context c");
        assert!(
            command.starts_with("kubectl --context c apply --server-side -f - <<'EOF'\n{\"apiVersion\""),
            "{command}"
        );
    }

    #[test]
    fn what_no_agent_would_take_is_refused_before_anyone_is_asked() {
        let url = "https://files.example.com/a";
        for (line, expected) in [
            (read("cj/web", "v1", url, DIGEST), "files of a \"cj\" cannot be updated"),
            (read("deploy/web", "1.0", url, DIGEST), "write v and up to four numbers"),
            (read("deploy/web", "v1.2.3.4.5", url, DIGEST), "write v and up to four numbers"),
            (read("deploy/web", "v1", "http://files.example.com/a", DIGEST), "files come over https only"),
            (read("deploy/web", "v1", "https://me:pw@files.example.com/a", DIGEST), "it has a user or a password"),
            (read("deploy/web", "v1", "https://files.example.com", DIGEST), "it names no file"),
            (read("deploy/web", "v1", url, "abc"), "write 64 hexadecimal digits"),
        ] {
            let told = line.err().unwrap();
            assert!(told.contains(expected), "{told}");
        }
    }
}
