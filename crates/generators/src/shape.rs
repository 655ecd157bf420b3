//! How large and how odd what is drawn may be.

/// How large and how odd what is drawn may be. The default is what most tests want.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The most containers of a pod; it has at least one.
    pub containers: usize,
    /// The most plain init containers of a pod.
    pub init_containers: usize,
    /// The most native sidecars of a pod.
    pub native_sidecars: usize,
    /// The most containers, and the most init containers, of a set; it has at least one of the two.
    pub sidecars: usize,
    /// How many of a hundred objects, at every level of a pod and in the containers and volumes of a set, have a field
    /// that nobody knows.
    pub unknown_percent: u64,
    /// In which form pods come.
    pub form: Form,
}

/// In which form pods come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As people write them: quantities in any spelling, empty lists, nulls, most fields absent.
    Written,
    /// As the API server hands them to a webhook: defaults filled in, the default token mounted.
    Served,
    /// One or the other.
    Either,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            containers: 5,
            init_containers: 3,
            native_sidecars: 2,
            sidecars: 2,
            unknown_percent: 8,
            form: Form::Either,
        }
    }
}
