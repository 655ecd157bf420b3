//! One address before several replicas, as a Service is: each connection goes to the next one that takes it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A running balancer; it ends when dropped.
pub struct Balancer {
    address: SocketAddr,
    server: JoinHandle<()>,
}

impl Balancer {
    /// Listens on a free port of `host`, and passes connections on to these addresses.
    pub async fn serve(host: Ipv4Addr, replicas: Vec<SocketAddr>) -> Result<Self> {
        let listener = TcpListener::bind((host, 0)).await?;
        let address = listener.local_addr()?;
        let replicas: Arc<[SocketAddr]> = replicas.into();
        let next = Arc::new(AtomicUsize::new(0));
        let server = tokio::spawn(async move {
            while let Ok((incoming, _)) = listener.accept().await {
                let (replicas, next) = (Arc::clone(&replicas), Arc::clone(&next));
                // A connection that breaks is the caller's to report; the API server does.
                tokio::spawn(async move { drop(pass(incoming, &replicas, &next).await) });
            }
        });
        Ok(Self { address, server })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn pass(mut incoming: TcpStream, replicas: &[SocketAddr], next: &AtomicUsize) -> Result<()> {
    incoming.set_nodelay(true)?;
    for _ in replicas {
        let replica = replicas[next.fetch_add(1, Ordering::Relaxed) % replicas.len()];
        if let Ok(mut outgoing) = TcpStream::connect(replica).await {
            outgoing.set_nodelay(true)?;
            copy_bidirectional(&mut incoming, &mut outgoing).await?;
            break;
        }
    }
    Ok(())
}
