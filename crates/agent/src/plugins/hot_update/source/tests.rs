use proptest::prelude::*;

use super::*;

fn sources(prefixes: &[&str]) -> Vec<Source> {
    prefixes.iter().map(|prefix| Source { prefix: (*prefix).to_owned(), ..Source::default() }).collect()
}

fn chosen(prefixes: &[&str], url: &str) -> Result<String, String> {
    let sources = sources(prefixes);
    allow(&sources, Place::parse(url)?).map(|allowed| allowed.source.prefix.clone())
}

#[test]
fn a_source_is_a_host_a_port_and_whole_segments() {
    for (prefix, url) in [
        ("https://cdn.example/files/", "https://cdn.example/files/a/b.bin"),
        ("https://cdn.example/files", "https://CDN.example/files/b.bin?x=1"),
        ("https://cdn.example/files", "https://cdn.example:443/files"),
        ("https://cdn.example", "https://cdn.example/anything"),
        ("https://[2001:db8::1]:8443/", "https://[2001:DB8::1]:8443/b"),
    ] {
        assert_eq!(chosen(&[prefix], url), Ok(prefix.to_owned()), "{url}");
    }
    for url in [
        "https://cdn.example/files-of-others/b.bin",
        "https://cdn.example/file",
        "https://cdn.example:8443/files/b.bin",
        "https://cdn.example.evil/files/b.bin",
        "https://evil-cdn.example/files/b.bin",
        "https://cdn.example./files/b.bin",
    ] {
        let refusal = chosen(&["https://cdn.example/files/"], url).unwrap_err();
        assert!(refusal.contains("is no allowed source: add it to allowedSources"), "{refusal}");
    }
    assert_eq!(
        chosen(&[], "https://a/b"),
        Err("https://a:443/b is no allowed source: add it to allowedSources of the configuration (none)".to_owned())
    );
}

#[test]
fn of_several_sources_the_longest_path_is_it() {
    let prefixes = ["https://a/x/y/", "https://a/", "https://a/x"];
    assert_eq!(chosen(&prefixes, "https://a/x/y/z"), Ok(prefixes[0].to_owned()));
    assert_eq!(chosen(&prefixes, "https://a/x/yy"), Ok(prefixes[2].to_owned()));
    assert_eq!(chosen(&prefixes, "https://a/other"), Ok(prefixes[1].to_owned()));
}

#[test]
fn attack_http_source_is_refused() {
    // Even where somebody lists it.
    for url in ["http://cdn.example/b", "ftp://cdn.example/b", "file:///etc/passwd"] {
        assert!(chosen(&["http://cdn.example/", "https://cdn.example/"], url).is_err(), "{url}");
    }
    assert_eq!(
        chosen(&["http://cdn.example/"], "http://cdn.example/b"),
        Err("\"http://cdn.example/b\" is not https: nothing else is downloaded".to_owned())
    );
}

#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    for url in [
        "https://a/files/../secret",
        "https://a/files/./b",
        "https://a/files/%2e%2e/secret",
        "https://a/files/%2E./secret",
        "https://a/files%2fsecret",
        "https://a/files/%5Csecret",
        "https://a/files//b",
        "https://me@a/files/b",
        "https://a:443@evil/files/b",
        "https://a/files\\b",
        "https://a/files/b#c",
        "https://a/files/b\r\nHost: evil",
        "https://a/files/ü",
    ] {
        assert!(Place::parse(url).is_err(), "{url}");
    }
}

#[test]
fn redirects_lead_where_a_browser_would_go() {
    let here = Place::parse("https://a:8443/x/y.bin?q=1").unwrap();
    for (location, there) in [
        ("https://b/z", "https://b/z"),
        ("//b/z", "https://b/z"),
        ("/z?r=http://x/", "https://a:8443/z?r=http://x/"),
        ("z", "https://a:8443/x/z"),
        ("z/w?t=1", "https://a:8443/x/z/w?t=1"),
    ] {
        assert_eq!(here.join(location), Place::parse(there), "{location}");
    }
    for location in ["http://b/z", "../z", "javascript:alert(1)", "https://me@b/"] {
        assert!(here.join(location).is_err(), "{location}");
    }
}

proptest! {
    #[test]
    fn no_text_gets_out_of_its_source(
        text in "https://[a-c@:.]{1,6}(/|%2e|%2F|\\.\\.|\\.|\\\\|[a-z?#]){0,8}|\\PC{0,30}",
    ) {
        let sources = sources(&["https://a/files/"]);
        if let Ok(allowed) = Place::parse(&text).and_then(|place| allow(&sources, place)) {
            prop_assert_eq!(allowed.place.authority(), "a:443");
            let target = allowed.place.target();
            prop_assert!(target == "/files" || target.starts_with("/files/") || target.starts_with("/files?"), "{}", target);
            prop_assert!(!target.split(['?']).next().unwrap().contains(".."), "{}", target);
        }
    }

    #[test]
    fn a_redirect_is_a_place_of_https_or_an_error(location in "\\PC{0,30}|(https?:)?//?[a-c/.:?%2e]{0,12}") {
        let here = Place::parse("https://a/x/y").unwrap();
        if let Ok(there) = here.join(&location) {
            prop_assert_eq!(Place::parse(&format!("https://{}{}", there.authority(), there.target())), Ok(there));
        }
    }
}
