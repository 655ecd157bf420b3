//! What `http_probe` is told.

use std::collections::BTreeMap;

use super::field::{Object, Reader, Text};
use super::storage;
use crate::{Address, Endpoint, HttpProbe, JsonPath, Url};

/// Reads the configuration of the plugin; what is wrong is noted.
pub(super) fn read(reader: &mut Reader<'_>, fields: &Object<'_>) -> HttpProbe {
    let mut endpoints = Vec::new();
    for item in reader.items(fields, "endpoints") {
        let Some(fields) = reader.object(&item, crate::keys::ENDPOINT) else { continue };
        reader.boot_order_of(&fields);
        endpoints.extend(endpoint(reader, &fields));
    }
    HttpProbe {
        start_delay_seconds: reader.number(fields, "startDelaySeconds").unwrap_or_default(),
        interval_seconds: reader.number(fields, "probeIntervalSeconds").unwrap_or_default(),
        reassert_seconds: reader.number(fields, "reassertSeconds").unwrap_or_default(),
        endpoints,
    }
}

fn endpoint(reader: &mut Reader<'_>, fields: &Object<'_>) -> Option<Endpoint> {
    let address = address(reader, fields);
    let failure_state = reader.text(fields, "failureState");
    let failure_state = failure_state.and_then(|state| storage::checked_state(reader, state));
    let json_path = reader.child(fields, "jsonPathConfig").and_then(|config| {
        reader.choice(&config, "fieldType");
        reader.text(&config, "jsonPath").and_then(|path| json_path(reader, &path))
    });
    let storage = reader.child(fields, "storageConfig").map(|config| storage::read(reader, &config));
    let timeout_seconds = reader.number(fields, "timeout").unwrap_or_default();
    let success_threshold = reader.number(fields, "successThreshold").unwrap_or_default();
    let failure_threshold = reader.number(fields, "failureThreshold").unwrap_or_default();
    Some(Endpoint {
        address: address?,
        timeout_seconds,
        success_threshold,
        failure_threshold,
        failure_state: failure_state?,
        json_path,
        storage: storage?,
    })
}

fn address(reader: &mut Reader<'_>, fields: &Object<'_>) -> Option<Address> {
    let method = reader.choice(fields, "method");
    let expected_status = reader.number(fields, "expectedStatusCode");
    let headers = headers(reader, fields);
    let url = reader.text(fields, "url")?;
    let is_tcp = url.value.starts_with("tcp://");
    if is_tcp {
        for name in ["method", "headers", "expectedStatusCode", "jsonPathConfig"] {
            if let Some(entry) = fields.get(name) {
                let message = format!("{name} says nothing about a connection over tcp");
                reader.error_at_key(entry, message, "remove it, or ask over http");
            }
        }
    }
    if url.is_open && is_tcp {
        return Some(Address::Tcp { host: url.value, port: 1 });
    }
    let http = |url: String| -> Option<Address> {
        Some(Address::Http { url, method: method?.to_owned(), headers, expected_status: expected_status? })
    };
    if url.is_open {
        return http(url.value);
    }
    let parsed = Url::parse(&url.value).and_then(|parsed| match parsed {
        Url { scheme: "http", .. } | Url { scheme: "tcp", port: Some(_), path: "", query: None, .. } => Ok(parsed),
        Url { scheme: "tcp", port: None, .. } => Err("has no port"),
        Url { scheme: "tcp", .. } => Err("has something after its port"),
        _ => Err("is not asked over http or tcp: an agent asks its own pod, where nobody listens in"),
    });
    match parsed {
        Ok(Url { scheme: "tcp", host, port: Some(port), .. }) => Some(Address::Tcp { host: host.to_owned(), port }),
        Ok(_) => http(url.value),
        Err(why) => {
            let help = "write http://localhost:8080/path or tcp://localhost:8080";
            reader.error(&url.entry, format!("{:?} {why}", url.value), help);
            None
        }
    }
}

fn headers(reader: &mut Reader<'_>, fields: &Object<'_>) -> BTreeMap<String, String> {
    /// The agent writes these itself.
    const OWN: [&str; 4] = ["host", "content-length", "transfer-encoding", "connection"];
    let mut headers = BTreeMap::new();
    for (name, text) in reader.texts(fields, "headers") {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            reader.error_at_key(&text.entry, format!("{name:?} is no header"), "write letters, digits and dashes");
        } else if OWN.contains(&name.to_ascii_lowercase().as_str()) {
            reader.error_at_key(&text.entry, format!("the agent writes the header {name} itself"), "remove it");
        } else if text.value.chars().any(char::is_control) {
            reader.error(&text.entry, "a header must be one line", "take line ends and other controls out");
        } else {
            headers.insert(name.to_owned(), text.value);
        }
    }
    headers
}

/// Keys with dots between them.
fn json_path(reader: &mut Reader<'_>, path: &Text<'_>) -> Option<JsonPath> {
    let mut keys = vec![String::new()];
    let text = path.value.strip_prefix("$.").unwrap_or(&path.value);
    let mut characters = text.chars();
    let mut is_strange = false;
    while let Some(character) = characters.next() {
        let last = keys.last_mut().expect("there is a first key");
        match character {
            '.' => keys.push(String::new()),
            '\\' => last.extend(characters.next()),
            '#' | '*' | '?' | '|' | '@' | '[' | ']' => is_strange = true,
            other => last.push(other),
        }
    }
    if !is_strange && keys.iter().all(|key| !key.is_empty()) {
        return Some(JsonPath(keys));
    }
    let help = "write keys and positions with dots between them, such as players.0.state";
    reader.error(&path.entry, format!("{:?} leads nowhere", path.value), help);
    None
}
