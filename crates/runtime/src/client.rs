//! A client of the API server, from inside a pod or from a person's kubeconfig.
//!
//! There is no rate limit on our side, here or above: a handler that waits for its own limit while the API server waits
//! for the handler is how admission comes to a halt. The API server's fairness protects the API server.

use std::path::PathBuf;
use std::time::Duration;

use http::HeaderValue;
use http::header::USER_AGENT;
use kube::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

/// A machine that answers at all does so sooner.
const CONNECT: Duration = Duration::from_secs(10);
/// Longest silence of a connection that has something to say. A quiet watch hears a bookmark every minute, the first
/// one two minutes after it began; so a connection whose other end is gone is noticed here, and not at the end of the
/// watch minutes later.
const SILENCE: Duration = Duration::from_secs(150);

/// Where the cluster is described.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// `--kubeconfig`; without it `KUBECONFIG`, `~/.kube/config`, or the pod's own service account.
    pub kubeconfig: Option<PathBuf>,
    /// `--context`; without it the current context.
    pub context: Option<String>,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The named kubeconfig is of no use.
    #[error("cannot use the kubeconfig {}", path.display())]
    Kubeconfig {
        /// Its path.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<KubeconfigError>,
    },
    /// No kubeconfig of the user has the named context.
    #[error("cannot use the context {context:?} of the kubeconfig")]
    Context {
        /// Its name.
        context: String,
        /// Why.
        #[source]
        source: Box<KubeconfigError>,
    },
    /// Nothing describes a cluster.
    #[error("found no cluster: give --kubeconfig, set KUBECONFIG, or run in a pod with a service account token")]
    Nowhere(#[source] Box<InferConfigError>),
    /// The user agent has characters that a header cannot carry.
    #[error("{0:?} cannot be a user agent: use printable ASCII")]
    UserAgent(String),
    /// The description is there, and no client can be made of it.
    #[error("cannot make a client of the cluster's description")]
    Client(#[source] Box<kube::Error>),
}

/// Makes a client that introduces itself as `user_agent`, such as `pillion-manager/0.1.0 (webhook)`. Nothing is sent yet.
///
/// A request that the API server has no time for is sent again when it asks for that.
pub async fn connect(source: &Source, user_agent: &str) -> Result<Client, ConnectError> {
    client(config(source).await?, user_agent)
}

/// The same for those who want to hear "not now" themselves, as an eviction is told that would break a budget.
pub async fn connect_without_retries(source: &Source, user_agent: &str) -> Result<Client, ConnectError> {
    let mut config = config(source).await?;
    config.default_retry = false;
    client(config, user_agent)
}

fn client(mut config: Config, user_agent: &str) -> Result<Client, ConnectError> {
    let agent = HeaderValue::from_str(user_agent).map_err(|_| ConnectError::UserAgent(user_agent.to_owned()))?;
    config.headers.push((USER_AGENT, agent));
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = Some(SILENCE);
    // A connection may have rested in the pool; its silence counts from the request.
    config.reset_reader_on_write = true;
    Client::try_from(config).map_err(|error| ConnectError::Client(Box::new(error)))
}

async fn config(source: &Source) -> Result<Config, ConnectError> {
    let options = KubeConfigOptions { context: source.context.clone(), ..KubeConfigOptions::default() };
    if let Some(path) = &source.kubeconfig {
        let failed = |source| ConnectError::Kubeconfig { path: path.clone(), source: Box::new(source) };
        let kubeconfig = Kubeconfig::read_from(path).map_err(failed)?;
        return Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(failed);
    }
    if let Some(context) = &source.context {
        let failed = |source| ConnectError::Context { context: context.clone(), source: Box::new(source) };
        return Config::from_kubeconfig(&options).await.map_err(failed);
    }
    Config::infer().await.map_err(|error| ConnectError::Nowhere(Box::new(error)))
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;
    use std::fs;

    use super::*;

    const TWO_CONTEXTS: &str = r#"
        {"apiVersion": "v1", "kind": "Config", "current-context": "near",
         "clusters": [{"name": "near", "cluster": {"server": "https://near:6443"}},
                      {"name": "far", "cluster": {"server": "https://far:6443"}}],
         "users": [{"name": "me", "user": {"token": "secret"}}],
         "contexts": [{"name": "near", "context": {"cluster": "near", "user": "me"}},
                      {"name": "far", "context": {"cluster": "far", "user": "me", "namespace": "team"}}]}"#;

    fn source(folder: &tempfile::TempDir, context: Option<&str>) -> Source {
        let path = folder.path().join("config");
        fs::write(&path, TWO_CONTEXTS).unwrap();
        Source { kubeconfig: Some(path), context: context.map(str::to_owned) }
    }

    #[tokio::test]
    async fn the_current_context_is_used_unless_another_is_named() {
        let folder = tempfile::tempdir().unwrap();
        for (context, url, namespace) in
            [(None, "https://near:6443/", "default"), (Some("far"), "https://far:6443/", "team")]
        {
            let config = config(&source(&folder, context)).await.unwrap();
            assert_eq!((config.cluster_url.to_string().as_str(), config.default_namespace.as_str()), (url, namespace));
        }
    }

    #[tokio::test]
    async fn what_is_wrong_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let wrong = source(&folder, Some("nowhere"));
        let path = wrong.kubeconfig.clone().unwrap();
        let error = connect(&wrong, "test").await.map(drop).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot use the kubeconfig {}", path.display()));
        assert_eq!(error.source().unwrap().to_string(), "failed to load current context: nowhere");

        let error = connect(&source(&folder, None), "line\nbreak").await.map(drop).unwrap_err();
        assert_eq!(error.to_string(), "\"line\\nbreak\" cannot be a user agent: use printable ASCII");
    }
}
