//! Where files may come from: which source of the configuration, if any, allows a URL.
//!
//! A source is a host, a port and whole segments of a path. What two programs could read differently (dots that climb,
//! encoded slashes, a user before the host) is refused, not made sense of.

use pillion_agent_api::{Source, Url};

const HTTPS: u16 = 443;

/// A place on an https server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Lower case; of IPv6 without its brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// Begins with `/`.
    path: String,
    query: Option<String>,
}

/// A place that a source allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Allowed<'a> {
    pub(super) place: Place,
    pub(super) source: &'a Source,
}

impl Place {
    /// Reads a URL; says why it is not one that may be asked.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|why| format!("{text:?} {why}"))?;
        if url.scheme != "https" {
            return Err(format!("{text:?} is not https: nothing else is downloaded"));
        }
        if let Some(why) = ambiguous(url.path) {
            return Err(format!("{text:?} {why}"));
        }
        if !text.is_ascii() {
            return Err(format!("{text:?} is not ASCII: encode the other characters with %"));
        }
        let path = if url.path.is_empty() { "/" } else { url.path };
        Ok(Self {
            host: url.host.to_ascii_lowercase(),
            port: url.port.unwrap_or(HTTPS),
            path: path.to_owned(),
            query: url.query.map(str::to_owned),
        })
    }

    /// Where a redirect leads from here.
    pub(super) fn join(&self, location: &str) -> Result<Self, String> {
        let before_path = location.split(['/', '?']).next().unwrap_or_default();
        if before_path.contains(':') {
            return Self::parse(location);
        }
        if location.starts_with("//") {
            return Self::parse(&format!("https:{location}"));
        }
        let root = format!("https://{}", self.authority());
        if location.starts_with('/') {
            return Self::parse(&format!("{root}{location}"));
        }
        let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        Self::parse(&format!("{root}{folder}/{location}"))
    }

    /// The host with its port, as a request names it.
    pub(super) fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// What is asked of the host.
    pub(super) fn target(&self) -> String {
        match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        }
    }

    /// The same with more at the end of its path.
    pub(super) fn with_suffix(&self, suffix: &str) -> Self {
        Self { path: format!("{}{suffix}", self.path), ..self.clone() }
    }

    /// The last segment of the path.
    pub(super) fn last_segment(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    fn begins_with(&self, prefix: &Self) -> bool {
        let rest = self.path.strip_prefix(prefix.path.trim_end_matches('/'));
        (&self.host, self.port) == (&prefix.host, prefix.port)
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Why two programs could take a path for different ones.
fn ambiguous(path: &str) -> Option<&'static str> {
    let lower = path.to_ascii_lowercase();
    if lower.contains("%2e") || lower.contains("%2f") || lower.contains("%5c") || lower.contains("%00") {
        return Some("hides a dot, a slash, a backslash or a zero behind %: write it plainly");
    }
    if path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Some("has a segment of dots: write the path without it");
    }
    // `/a//b` is `/a/b` to some servers; a slash at the end is an empty segment that all agree on.
    path.contains("//").then_some("has an empty segment: write the path without it")
}

/// The source that allows this place: of several the one with the longest path, whose credentials are the most special.
pub(super) fn allow(sources: &[Source], place: Place) -> Result<Allowed<'_>, String> {
    let allowing = sources.iter().filter_map(|source| {
        let prefix = Place::parse(&source.prefix).ok()?;
        place.begins_with(&prefix).then_some((prefix.path.trim_end_matches('/').len(), source))
    });
    if let Some((_, source)) = allowing.max_by_key(|(length, _)| *length) {
        return Ok(Allowed { place, source });
    }
    let prefixes: Vec<&str> = sources.iter().map(|source| source.prefix.as_str()).collect();
    let listed = if prefixes.is_empty() { "none".to_owned() } else { prefixes.join(", ") };
    Err(format!(
        "https://{}{} is no allowed source: add it to allowedSources of the configuration ({listed})",
        place.authority(),
        place.path
    ))
}

#[cfg(test)]
mod tests;
