//! The paths at which a server lets requests in.

use std::sync::Arc;

use http::Uri;

/// Decides by the address of a request whether it is let in, before its body is read.
pub type Entrance = Arc<dyn Fn(&Uri) -> Option<Entry> + Send + Sync>;

/// A request that is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The path under which the router knows it.
    pub path: &'static str,
    /// Bytes of its body; a larger one is answered 413.
    pub body: usize,
}
