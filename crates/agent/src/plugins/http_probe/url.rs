//! `http://host:port/path`, taken apart.

use anyhow::{Context, bail, ensure};

/// Where to ask, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) host: String,
    pub(super) port: u16,
    /// Host and port as they were written.
    pub(super) authority: String,
    pub(super) path: String,
}

impl Url {
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let Some(rest) = text.strip_prefix("http://") else {
            bail!("{text} cannot be asked: a probe asks inside the pod, write http://HOST:PORT/PATH or tcp://HOST:PORT");
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        ensure!(!authority.contains('@'), "{text} holds a name or a password: give it as a header");
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').with_context(|| format!("{text} has no ] after its address"))?;
                (host, port.strip_prefix(':'))
            }
            None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
        };
        ensure!(!host.is_empty(), "{text} names no host");
        let port = match port {
            None => 80,
            Some(port) => port.parse().with_context(|| format!("{port:?} in {text} is not a port"))?,
        };
        Ok(Self { host: host.to_owned(), port, authority: authority.to_owned(), path })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        for (text, host, port, authority, path) in [
            ("http://localhost:8080", "localhost", 8080, "localhost:8080", "/"),
            ("http://localhost/a/b?c=d#e", "localhost", 80, "localhost", "/a/b?c=d"),
            ("http://[::1]:9090?x", "::1", 9090, "[::1]:9090", "/?x"),
            ("http://[::1]", "::1", 80, "[::1]", "/"),
        ] {
            let [host, authority, path] = [host, authority, path].map(str::to_owned);
            assert_eq!(Url::parse(text).unwrap(), Url { host, port, authority, path }, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_asked_is_refused() {
        let told = |text: &str| Url::parse(text).unwrap_err().to_string();
        assert_eq!(
            told("https://localhost"),
            "https://localhost cannot be asked: a probe asks inside the pod, write http://HOST:PORT/PATH or \
             tcp://HOST:PORT"
        );
        assert_eq!(told("http://a:b@c/"), "http://a:b@c/ holds a name or a password: give it as a header");
        assert_eq!(told("http://:80/"), "http://:80/ names no host");
        assert_eq!(told("http://a:x/"), "\"x\" in http://a:x/ is not a port");
        assert_eq!(told("http://[::1/"), "http://[::1/ has no ] after its address");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "http://[a-z:\\[\\]/?#@0-9]{0,20}") {
            if let Ok(url) = Url::parse(&text) {
                prop_assert!(url.path.starts_with('/') && !url.host.is_empty());
            }
        }
    }
}
