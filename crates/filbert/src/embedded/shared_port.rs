//! One port for Hazelcast's clients and for other members: the first byte tells which of them has connected.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use filbert_links::{Links, PREAMBLE};
use filbert_listen::{Handing, Listener};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// Connections that have said nothing yet. Default 1,024: as many pools of clients connect at once at most.
const SILENT_MAX: usize = 1_024;
/// How long a connection may say nothing.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Clients that wait until the door is open.
pub(super) const WAITING_MAX: usize = 1_024;

/// Accepts connections until the future is dropped.
pub(super) async fn run(listener: Listener, links: Arc<Links>, clients: Handing) {
    let silent = Arc::new(Semaphore::new(SILENT_MAX));
    loop {
        let (stream, peer) = listener.accept().await;
        let Ok(permit) = silent.clone().try_acquire_owned() else {
            tracing::debug!(%peer, "connection refused: {SILENT_MAX} say nothing");
            continue;
        };
        let (links, clients) = (links.clone(), clients.clone());
        drop(tokio::spawn(async move {
            let is_member = tokio::time::timeout(SILENCE_MAX, is_of_member(&stream)).await;
            drop(permit);
            match is_member {
                Ok(Ok(true)) => links.accept(stream, &[]),
                Ok(Ok(false)) => {
                    if let Err(error) = clients.hand(stream) {
                        tracing::debug!(%peer, "a client's connection is closed: {error}");
                    }
                }
                Ok(Err(error)) => tracing::debug!(%peer, "connection broken: {error}"),
                Err(_) => tracing::debug!(%peer, "connection closed: it says nothing for {SILENCE_MAX:?}"),
            }
        }));
    }
}

/// Whether the first byte is one of a member's. Nothing is taken from the connection.
async fn is_of_member(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    let came = stream.peek(&mut first).await?;
    Ok(came > 0 && PREAMBLE.starts_with(&first))
}
