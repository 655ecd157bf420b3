//! What `hot_update` is told.

use std::collections::BTreeMap;

use super::field::{Object, Reader, Text};
use super::storage;
use crate::keys::{BOUNDS, SOURCE};
use crate::{
    Bounds, Check, HotUpdate, Listener, Reload, Signal, Source, Storage, TriggerFrom, Url, is_digest, is_version, marks,
};

/// Bytes of a minisign public key: two of the algorithm, eight of the key's number, 32 of the key.
const PUBLIC_KEY: usize = 42;

/// Reads the configuration of the plugin; what is wrong is noted.
pub(super) fn read(reader: &mut Reader<'_>, fields: &Object<'_>) -> Option<HotUpdate> {
    let file_dir = reader.text(fields, "fileDir").and_then(|text| folder(reader, &text));
    let file_name = reader.text(fields, "fileName").and_then(|text| file_name(reader, text));
    let reload = reload(reader, fields);
    let check = reader.child(fields, "check").and_then(|fields| check(reader, &fields));
    let trigger = trigger(reader, fields);
    let listener = reader.child(fields, "listener").and_then(|fields| listener(reader, &fields));
    let sources = sources(reader, fields);
    let digests = digests(reader, fields);
    let public_key = reader.text(fields, "publicKey").and_then(|text| public_key(reader, text));
    let allow_downgrade = reader.switch(fields, "allowDowngrade");
    let bounds = match fields.get("bounds") {
        Some(entry) => reader.object(entry, BOUNDS),
        None => Some(reader.missing(&fields.entry, "bounds", BOUNDS)),
    };
    let bounds = bounds.and_then(|fields| bounds_of(reader, &fields));
    let storage = match reader.child(fields, "storageConfig") {
        Some(of_storage) => {
            let mut storage = storage::read(reader, &of_storage);
            storage::only(reader, &of_storage.entry, &mut storage);
            storage
        }
        None => Storage::default(),
    };
    if !fields.has("allowedSources") {
        let help = "give allowedSources, such as https://files.example.com/game/";
        reader.warning(&fields.entry, "every update will be refused: no source is allowed", help);
    }
    Some(HotUpdate {
        file_dir: file_dir?,
        file_name,
        reload: reload?,
        check,
        trigger: trigger?,
        listener,
        sources,
        digests,
        public_key,
        allow_downgrade,
        bounds: bounds?,
        storage,
    })
}

/// An absolute path below the root, without steps back.
fn folder(reader: &mut Reader<'_>, text: &Text<'_>) -> Option<String> {
    let path = text.value.trim_end_matches('/');
    let is_segment = |segment: &str| !segment.is_empty() && segment != "." && segment != "..";
    let rest = path.strip_prefix('/');
    if rest.is_some_and(|rest| rest.split('/').all(is_segment)) && !path.contains([':', '\0']) {
        return Some(path.to_owned());
    }
    reader.error(
        &text.entry,
        format!("{:?} is no folder", text.value),
        "write an absolute path, such as /app/downloads",
    );
    None
}

fn file_name(reader: &mut Reader<'_>, text: Text<'_>) -> Option<String> {
    let is_good = !text.value.is_empty() && !text.value.starts_with('.') && !text.value.contains(['/', '\0']);
    if !is_good || text.value == "current" {
        let help = "write a name without slashes that does not begin with a dot and is not current";
        reader.error(&text.entry, format!("{:?} can be no name of the file", text.value), help);
        return None;
    }
    Some(text.value)
}

fn reload(reader: &mut Reader<'_>, fields: &Object<'_>) -> Option<Reload> {
    let kind = reader.choice(fields, "loadPatchType")?;
    let other = if kind == "signal" { "request" } else { "signal" };
    if let Some(entry) = fields.get(other) {
        reader.error_at_key(entry, format!("loadPatchType is {kind}, and {other} is given"), format!("remove {other}"));
    }
    if !fields.has(kind) {
        reader.error(&fields.entry, format!("loadPatchType is {kind}, and there is no {kind}"), format!("give {kind}"));
    }
    let told = reader.child(fields, kind)?;
    if kind == "signal" { signal(reader, &told) } else { request(reader, &told) }
}

fn signal(reader: &mut Reader<'_>, fields: &Object<'_>) -> Option<Reload> {
    let process_name = reader.text(fields, "processName");
    let signal_name = reader.choice(fields, "signalName");
    let fallback_url = reader.text(fields, "fallbackUrl").and_then(|text| local(reader, text));
    let process_name = process_name?;
    if process_name.value.trim().is_empty() {
        let help = "write how its command line begins, such as \"nginx: master process nginx\"";
        reader.error(&process_name.entry, "an empty name would match every process", help);
        return None;
    }
    let (process_name, signal_name) = (process_name.value, signal_name?.to_owned());
    Some(Reload::Signal(Signal { process_name, signal_name, fallback_url }))
}

fn request(reader: &mut Reader<'_>, fields: &Object<'_>) -> Option<Reload> {
    let method = reader.choice(fields, "method");
    let port: Option<u16> = reader.number(fields, "port");
    let url = if fields.has("url") {
        for name in ["address", "port"] {
            if let Some(entry) = fields.get(name) {
                reader.error_at_key(entry, format!("url is given, and {name} too"), format!("remove {name}"));
            }
        }
        reader.text(fields, "url").and_then(|text| local(reader, text))
    } else {
        let mut address = reader.text(fields, "address")?;
        let Some(port) = port else {
            if !fields.has("port") {
                reader.error(&fields.entry, "there is no url and no port", "give url, or address and port");
            }
            return None;
        };
        address.value = format!("http://{}:{port}/", address.value);
        local(reader, address)
    };
    Some(Reload::Request { url: url?, method: method?.to_owned() })
}

fn check(reader: &mut Reader<'_>, fields: &Object<'_>) -> Option<Check> {
    let url = reader.text(fields, "url").and_then(|text| local(reader, text));
    let contains = reader.text(fields, "contains")?;
    if contains.value.trim().is_empty() {
        let help = "write what only an app that has loaded the file says, such as {version}";
        reader.error(&contains.entry, "every answer contains nothing", help);
        return None;
    }
    let timeout_seconds = reader.number(fields, "timeout")?;
    Some(Check { url: url?, contains: contains.value, timeout_seconds })
}

/// The address of the app: within the pod.
fn local(reader: &mut Reader<'_>, text: Text<'_>) -> Option<String> {
    if text.is_open {
        return Some(text.value);
    }
    let why = match Url::parse(&text.value) {
        Ok(url) if url.scheme != "http" => "is not asked over http",
        Ok(url) if !url.is_local() => "is not within the pod",
        Ok(_) => return Some(text.value),
        Err(why) => why,
    };
    reader.error(&text.entry, format!("{:?} {why}", text.value), "write http://127.0.0.1:8080/path");
    None
}

fn trigger(reader: &mut Reader<'_>, fields: &Object<'_>) -> Option<TriggerFrom> {
    if !fields.has("trigger") {
        return Some(TriggerFrom::Annotation);
    }
    let told = reader.child(fields, "trigger")?;
    let name = reader.text(&told, "configMap")?;
    if !marks::is_domain(&name.value) {
        let help = "write lower case letters, digits, dashes and dots";
        reader.error(&name.entry, format!("{:?} can be no name of a ConfigMap", name.value), help);
        return None;
    }
    Some(TriggerFrom::ConfigMap(name.value))
}

fn listener(reader: &mut Reader<'_>, fields: &Object<'_>) -> Option<Listener> {
    let port = reader.number(fields, "port");
    let certificate = reader.text(fields, "certificate").and_then(|text| file(reader, text));
    let key = reader.text(fields, "key").and_then(|text| file(reader, text));
    let audience = reader.text(fields, "audience");
    let mut users = Vec::new();
    for item in reader.items(fields, "users") {
        let Some(user) = reader.text_of(&item) else { continue };
        if user.value.trim().is_empty() {
            reader.error(&item, "a user has a name", "write it, such as system:serviceaccount:games:operator");
        }
        users.push(user.value);
    }
    Some(Listener { port: port?, certificate: certificate?, key: key?, audience: audience?.value, users })
}

fn file(reader: &mut Reader<'_>, text: Text<'_>) -> Option<String> {
    if text.is_open || (text.value.starts_with('/') && !text.value.ends_with('/')) {
        return Some(text.value);
    }
    reader.error(&text.entry, format!("{:?} is no file", text.value), "write an absolute path");
    None
}

fn sources(reader: &mut Reader<'_>, fields: &Object<'_>) -> Vec<Source> {
    let mut sources = Vec::new();
    for item in reader.items(fields, "allowedSources") {
        if item.value.is_string() {
            let prefix = reader.text_of(&item).and_then(|text| prefix(reader, text));
            sources.extend(prefix.map(|prefix| Source { prefix, ..Source::default() }));
        } else if let Some(told) = reader.object(&item, SOURCE) {
            sources.extend(source(reader, &told));
        }
    }
    sources
}

fn source(reader: &mut Reader<'_>, fields: &Object<'_>) -> Option<Source> {
    let prefix = reader.text(fields, "prefix").and_then(|text| prefix(reader, text));
    let authorization_file = reader.text(fields, "authorizationFile").and_then(|text| file(reader, text));
    let ca_file = reader.text(fields, "caFile").and_then(|text| file(reader, text));
    let allow_private = reader.switch(fields, "allowPrivate");
    let proxy = reader.text(fields, "proxy").and_then(|text| proxy(reader, text));
    Some(Source { prefix: prefix?, authorization_file, ca_file, allow_private, proxy })
}

fn prefix(reader: &mut Reader<'_>, text: Text<'_>) -> Option<String> {
    if text.is_open {
        return Some(text.value);
    }
    let why = match Url::parse(&text.value) {
        Ok(url) if url.scheme != "https" => "is not https",
        Ok(url) if url.query.is_some() => "has a query",
        Ok(url) if url.path.split('/').any(|segment| segment == ".." || segment == ".") => {
            "has a step back in its path"
        }
        Ok(url) if url.path.contains('%') => "has an escape in its path, which may mean something else",
        Ok(_) => return Some(text.value),
        Err(why) => why,
    };
    reader.error(&text.entry, format!("{:?} {why}", text.value), "write https://files.example.com/game/");
    None
}

fn proxy(reader: &mut Reader<'_>, text: Text<'_>) -> Option<String> {
    if text.is_open {
        return Some(text.value);
    }
    let why = match Url::parse(&text.value) {
        Ok(url) if url.scheme != "http" => "is not asked over http",
        Ok(url) if url.port.is_none() => "has no port",
        Ok(url) if !matches!(url.path, "" | "/") || url.query.is_some() => "has something after its port",
        Ok(_) => return Some(text.value),
        Err(why) => why,
    };
    reader.error(&text.entry, format!("{:?} {why}", text.value), "write http://proxy.example.com:3128");
    None
}

fn digests(reader: &mut Reader<'_>, fields: &Object<'_>) -> BTreeMap<String, String> {
    let mut digests = BTreeMap::new();
    for (version, text) in reader.texts(fields, "digests") {
        if !is_version(version) {
            let help = "write v and up to four numbers with dots between them, such as v1.20";
            reader.error_at_key(&text.entry, format!("{version:?} is no version"), help);
        } else if !text.is_open && !is_digest(&text.value) {
            let help = "write the 64 hexadecimal digits that sha256sum prints";
            reader.error(&text.entry, format!("{:?} is no sha256 digest", text.value), help);
        } else {
            digests.insert(version.to_owned(), text.value.to_ascii_lowercase());
        }
    }
    digests
}

fn public_key(reader: &mut Reader<'_>, text: Text<'_>) -> Option<String> {
    let digits = text.value.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let bytes = digits.len() * 6 / 8;
    if digits.bytes().all(is_digit) && bytes == PUBLIC_KEY && digits.starts_with("RW") {
        return Some(text.value);
    }
    let help = "write the second line of the file that minisign -G makes, which begins with RW";
    reader.error(&text.entry, "this is no public key of minisign", help);
    None
}

fn bounds_of(reader: &mut Reader<'_>, fields: &Object<'_>) -> Option<Bounds> {
    Some(Bounds {
        max_bytes: reader.amount(fields, "maxBytes")?.1,
        connect_seconds: reader.number(fields, "connectSeconds")?,
        silence_seconds: reader.number(fields, "silenceSeconds")?,
        total_seconds: reader.number(fields, "totalSeconds")?,
        min_interval_seconds: reader.number(fields, "minIntervalSeconds")?,
        keep: reader.number(fields, "keep")?,
    })
}
