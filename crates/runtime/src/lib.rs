//! The shell any controller of ours runs in: how a program reaches the cluster, keeps a view of it, takes turns with its
//! replicas, answers requests, tells how it is, and ends.
//!
//! - [`client`]: a client of the API server, from inside a pod or from a kubeconfig.
//! - [`watch`]: watches that keep of every object only what is needed.
//! - [`lease`]: leader election; the leader asks before every write.
//! - [`tls`]: certificates made in memory, and one that can be replaced while it is served.
//! - [`fetch`]: pages of other servers, such as kubelets.
//! - [`server`]: HTTP within limits, with a drain that loses no request.
//! - [`background`]: work that must not slow down anything else.
//! - [`telemetry`]: logs, metrics, health.
//! - [`gates`]: features that can be switched on and off.
//! - [`shutdown`]: the end, in order.
//!
//! It knows nothing of sidecars, decides nothing about objects, and writes none but the lease.
#![forbid(unsafe_code)]

pub mod background;
pub mod client;
pub mod fetch;
pub mod gates;
pub mod lease;
pub mod server;
pub mod shutdown;
pub mod telemetry;
pub mod tls;
pub mod watch;
