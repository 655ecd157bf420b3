//! What a request asks for: in its query, as a form or as JSON.

use pillion_agent_api::Wanted;

use crate::http::Request;

/// What is asked for; says what is missing or odd.
pub(super) fn wanted(request: &Request, body: &[u8]) -> Result<Wanted, String> {
    let body = str::from_utf8(body).map_err(|_| "the body is not UTF-8".to_owned())?;
    if request.content_type == "application/json" {
        return Wanted::parse(body).map_err(|why| format!("the body {why}"));
    }
    let mut fields = Fields::default();
    fields.read(&request.query)?;
    fields.read(body.trim())?;
    let missing = |name| format!("{name} is missing: send version, url and sha256");
    let version = fields.version.ok_or_else(|| missing("version"))?;
    let url = fields.url.ok_or_else(|| missing("url"))?;
    Wanted { version, url, sha256: fields.sha256 }.check()
}

#[derive(Default)]
struct Fields {
    version: Option<String>,
    url: Option<String>,
    sha256: Option<String>,
}

impl Fields {
    fn read(&mut self, encoded: &str) -> Result<(), String> {
        for pair in encoded.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let field = match name {
                "version" => &mut self.version,
                "url" => &mut self.url,
                "sha256" => &mut self.sha256,
                _ => return Err(format!("{name:?} is unknown: send version, url and sha256")),
            };
            if field.replace(decode(value)?).is_some() {
                return Err(format!("{name} is given twice"));
            }
        }
        Ok(())
    }
}

/// Takes `%41` for `A` and `+` for a blank.
fn decode(value: &str) -> Result<String, String> {
    let odd = || format!("{value:?} is not encoded as in a URL");
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let (high, low) = (digit().ok_or_else(odd)?, digit().ok_or_else(odd)?);
                u8::try_from(high * 16 + low).map_err(|_| odd())?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| odd())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn asked(query: &str, content_type: &str, body: &str) -> Result<(String, String, Option<String>), String> {
        let request = Request { query: query.to_owned(), content_type: content_type.to_owned(), ..Request::default() };
        wanted(&request, body.as_bytes()).map(|wanted| (wanted.version, wanted.url, wanted.sha256))
    }

    #[test]
    fn query_form_and_json_ask_for_the_same() {
        let digest = "a".repeat(64);
        let expected = Ok(("v1.2".to_owned(), "https://a/b?c=d e".to_owned(), Some(digest.clone())));
        let form = format!("version=v1.2&url=https%3A%2F%2fa/b?c%3Dd+e&sha256={digest}");
        assert_eq!(asked(&form, "", ""), expected);
        assert_eq!(asked("", "application/x-www-form-urlencoded", &form), expected);
        assert_eq!(asked("version=v1.2", "", &form["version=v1.2&".len()..]), expected);
        let json = format!(r#"{{"version":"v1.2","url":"https://a/b?c=d e","sha256":"{digest}"}}"#);
        assert_eq!(asked("", "application/json", &json), expected);
    }

    #[test]
    fn what_is_missing_or_odd_is_said() {
        for (query, why) in [
            ("", "version is missing: send version, url and sha256"),
            ("version=v1", "url is missing: send version, url and sha256"),
            ("version=v1&version=v2", "version is given twice"),
            ("path=/etc", "\"path\" is unknown: send version, url and sha256"),
            ("version=%zz", "\"%zz\" is not encoded as in a URL"),
            ("version=%f", "\"%f\" is not encoded as in a URL"),
            ("version=%ff", "\"%ff\" is not encoded as in a URL"),
        ] {
            assert_eq!(asked(query, "", ""), Err(why.to_owned()), "{query}");
        }
        assert!(asked("version=latest&url=x", "", "").unwrap_err().contains("is no version"));
    }

    proptest! {
        #[test]
        fn any_text_comes_back_as_it_was(text: String) {
            let encoded: String = text.bytes().flat_map(|byte| format!("%{byte:02X}").into_bytes()).map(char::from).collect();
            prop_assert_eq!(decode(&encoded), Ok(text));
        }

        #[test]
        fn any_query_is_taken_or_refused(query in "\\PC{0,30}|(version|url|sha256|&|=|%|[0-9a-f]){0,12}") {
            let _ = asked(&query, "", &query);
        }
    }
}
