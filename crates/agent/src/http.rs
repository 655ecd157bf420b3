//! HTTP/1.1 as far as the agent speaks it: how an answer or a request begins, and where it ends.
//!
//! Connections, timeouts and what may be asked belong to those who use it.

mod body;
mod head;
mod request;

pub use self::body::{Body, Framing};
pub use self::head::{Head, read_head, read_head_with};
pub use self::request::{Request, read_body, read_request};
