//! One port for Hazelcast's clients and for other members. The first byte of a connection
//! determines its kind.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use filbert_links::{Links, PREAMBLE};
use filbert_listen::{Handing, Listener};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// The maximum number of connections that have sent nothing yet. Default 1,024: a limit for client
/// pools that connect at the same time.
const SILENT_MAX: usize = 1_024;
/// The maximum time until a connection sends its first byte.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// The maximum number of client connections that wait for the front door to open.
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

/// Whether the first byte belongs to the preamble of members. No data is consumed.
async fn is_of_member(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    let came = stream.peek(&mut first).await?;
    Ok(came > 0 && PREAMBLE.starts_with(&first))
}
