//! A server on a thread of its own: it answers also when all other threads are busy.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::thread;

use axum::Router;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{Limits, Server, ServerMetrics};

/// Listens on an address and serves on a thread of its own, as [`Server::serve`] does. The future ends with the thread.
pub fn serve_apart(
    name: &'static str,
    address: SocketAddr,
    router: Router,
    limits: Limits,
    metrics: &ServerMetrics,
    (drain, stop): (CancellationToken, CancellationToken),
) -> io::Result<impl Future<Output = ()> + Send + use<>> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let metrics = metrics.clone();
    let (ended_tx, ended_rx) = oneshot::channel::<()>();
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        runtime.block_on(async {
            match Server::listen(name, listener, router, limits, &metrics) {
                Ok(server) => server.serve(drain, stop).await,
                Err(error) => tracing::error!(server = name, %error, "cannot serve"),
            }
        });
        drop(ended_tx);
    })?;
    Ok(async move {
        // The sender is dropped when the thread ends.
        let _ = ended_rx.await;
    })
}
