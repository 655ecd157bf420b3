//! Any bytes: heads of answers and of requests, and bodies in parts, are read or refused, within their bounds.
#![no_main]

use std::io::Read;

use libfuzzer_sys::fuzz_target;
use pillion_agent::http::{Body, Framing, read_body, read_head, read_request};

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    if let Ok(head) = read_head(&mut rest) {
        let mut body = Vec::new();
        if Body::new(rest, head.framing).read_to_end(&mut body).is_ok() {
            assert!(body.len() <= rest.len(), "a body is no longer than what came");
            if let Framing::Length(length) = head.framing {
                assert_eq!(body.len() as u64, length, "a body is as long as it says");
            }
        }
    }
    let mut rest = bytes;
    if let Ok(request) = read_request(&mut rest) {
        assert!(!request.method.contains(' ') && !request.path.contains([' ', '?']), "{request:?}");
        if let Ok(body) = read_body(&mut rest, &request) {
            assert_eq!(body.len() as u64, request.length);
        }
    }
});
