//! What a bed shall consist of.

use std::time::Duration;

/// What a bed shall consist of; a control plane is always in it.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one part that is there or not")]
pub struct Config {
    pub(crate) name: String,
    pub(crate) controllers: bool,
    pub(crate) node: bool,
    pub(crate) metrics: bool,
    pub(crate) second_api_server: bool,
    pub(crate) durable: bool,
    pub(crate) fleet: Option<Fleet>,
}

/// Simulated nodes, played by KWOK.
#[derive(Clone, Debug)]
pub struct Fleet {
    pub(crate) nodes: usize,
    pub(crate) image_delay: Duration,
}

impl Config {
    /// etcd and an API server. `name` names the folder of logs.
    pub fn control_plane(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Adds the controller manager and the scheduler.
    #[must_use]
    pub fn with_controllers(mut self) -> Self {
        self.controllers = true;
        self
    }

    /// Adds a real node: kubelet and containerd. Brings the controllers.
    #[must_use]
    pub fn with_node(mut self) -> Self {
        self.node = true;
        self.with_controllers()
    }

    /// Adds simulated nodes. Brings the controllers.
    #[must_use]
    pub fn with_fleet(mut self, fleet: Fleet) -> Self {
        self.fleet = Some(fleet);
        self.with_controllers()
    }

    /// Adds metrics-server.
    #[must_use]
    pub fn with_metrics(mut self) -> Self {
        self.metrics = true;
        self.with_controllers()
    }

    /// Adds a second API server on the same etcd, for faults that only one of them sees.
    #[must_use]
    pub fn with_second_api_server(mut self) -> Self {
        self.second_api_server = true;
        self
    }

    /// Makes etcd write through to the disk: slower, and needed where etcd itself is killed.
    #[must_use]
    pub fn durable(mut self) -> Self {
        self.durable = true;
        self
    }
}

impl Fleet {
    /// So many simulated nodes, each with room for 500 pods, and a second from a changed image to the new container.
    pub fn of(nodes: usize) -> Self {
        Self { nodes, image_delay: Duration::from_secs(1) }
    }

    /// How long a container with a changed image is not running. A pod may ask for its own with the annotation
    /// `bed.pillion.dev/image-delay: 3s`, and never comes back with `bed.pillion.dev/image-stuck`.
    #[must_use]
    pub fn image_delay(mut self, delay: Duration) -> Self {
        self.image_delay = delay;
        self
    }
}
