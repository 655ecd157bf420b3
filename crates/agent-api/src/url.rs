//! The parts of an address, as far as the agent needs them.

/// `scheme://host[:port][/path][?query]`, taken apart and nothing decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url<'a> {
    /// Before `://`, lower case.
    pub scheme: &'a str,
    /// A name or an address; of IPv6 without its brackets.
    pub host: &'a str,
    /// The port, where one is written.
    pub port: Option<u16>,
    /// From the first `/` on, without the query; empty or begins with `/`.
    pub path: &'a str,
    /// What follows `?`, where one is written.
    pub query: Option<&'a str>,
}

impl<'a> Url<'a> {
    /// Takes an address apart; says why it is none.
    pub fn parse(text: &'a str) -> Result<Self, &'static str> {
        if text.bytes().any(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control() || byte == b'\\') {
            return Err("has a blank, a backslash or a control character");
        }
        let (scheme, rest) = text.split_once("://").ok_or("has no scheme")?;
        if scheme.is_empty() || !scheme.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return Err("has no scheme in lower case");
        }
        if rest.contains('#') {
            return Err("has a fragment");
        }
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err("has a user or a password");
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest.split_once(']').ok_or("has a bracket without its other half")?;
                (
                    host,
                    if after.is_empty() { None } else { Some(after.strip_prefix(':').ok_or("has no port after ]")?) },
                )
            }
            None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
        };
        let is_address = authority.starts_with('[');
        let is_good = |byte: u8| match byte {
            b':' => is_address,
            _ => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'),
        };
        if host.is_empty() || !host.bytes().all(is_good) {
            return Err("has no host");
        }
        let port = match port {
            None => None,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(digits.parse().ok().filter(|port| *port > 0).ok_or("has a port that is none")?)
            }
            Some(_) => return Err("has a port that is no number"),
        };
        Ok(Self { scheme, host, port, path, query })
    }

    /// Whether it stays within the pod.
    pub fn is_local(&self) -> bool {
        matches!(self.host, "localhost" | "127.0.0.1" | "::1")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let url = |scheme, host, port, path, query| Ok(Url { scheme, host, port, path, query });
        for (text, parts) in [
            ("http://localhost:8080", url("http", "localhost", Some(8080), "", None)),
            ("https://a.b/c/d?e=/f", url("https", "a.b", None, "/c/d", Some("e=/f"))),
            ("tcp://[::1]:53", url("tcp", "::1", Some(53), "", None)),
            ("http://[fe80::1]/", url("http", "fe80::1", None, "/", None)),
            ("localhost:80", Err("has no scheme")),
            ("HTTP://a", Err("has no scheme in lower case")),
            ("http://a b", Err("has a blank, a backslash or a control character")),
            ("http://a\\b", Err("has a blank, a backslash or a control character")),
            ("http://a#b", Err("has a fragment")),
            ("http://me:secret@a/", Err("has a user or a password")),
            ("http:///x", Err("has no host")),
            ("http://a:b:c", Err("has a port that is no number")),
            ("http://a:0", Err("has a port that is none")),
            ("http://a:65536/", Err("has a port that is none")),
            ("http://a:", Err("has a port that is none")),
            ("http://[::1", Err("has a bracket without its other half")),
            ("http://[::1]x", Err("has no port after ]")),
            ("http://::1/", Err("has no host")),
        ] {
            assert_eq!(Url::parse(text), parts, "{text}");
        }
        let local = ["http://localhost/", "http://127.0.0.1:1", "http://[::1]"];
        assert!(local.iter().all(|text| Url::parse(text).unwrap().is_local()));
        assert!(!Url::parse("http://localhost.example/").unwrap().is_local());
    }

    proptest! {
        #[test]
        fn taking_apart_never_panics(text in "\\PC{0,30}|(http|tcp)://[a:@/?#\\[\\]0-9é]{0,20}") {
            let _ = Url::parse(&text);
        }
    }
}
