//! Connections that somebody else has accepted: on a port that a door shares with other members of a cluster.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream as Accepted};

use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc};
use tracing::debug;

/// Hands connections to a [`Listener`](crate::Listener).
#[derive(Clone, Debug)]
pub struct Handing(mpsc::Sender<Accepted>);

impl Handing {
    /// Hands a connection over, of which nothing was read. It need not be of the runtime in which the door runs.
    ///
    /// # Errors
    /// Too many wait to be taken, or the door has closed; the connection is closed.
    pub fn hand(&self, stream: TcpStream) -> io::Result<()> {
        self.0.try_send(stream.into_std()?).map_err(|error| io::Error::other(error.to_string()))
    }
}

/// The other end.
pub(crate) struct Handed(Mutex<mpsc::Receiver<Accepted>>);

impl fmt::Debug for Handed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handed")
    }
}

pub(crate) fn pair(waiting_max: usize) -> (Handing, Handed) {
    let (sender, receiver) = mpsc::channel(waiting_max.max(1));
    (Handing(sender), Handed(Mutex::new(receiver)))
}

impl Handed {
    /// The next connection. Cancel safety: none is lost when the future is dropped.
    pub(crate) async fn accept(&self) -> (TcpStream, SocketAddr) {
        loop {
            let Some(accepted) = self.0.lock().await.recv().await else { return std::future::pending().await };
            match accepted.peer_addr().and_then(|peer| Ok((TcpStream::from_std(accepted)?, peer))) {
                Ok((stream, peer)) => return (stream, peer),
                Err(error) => debug!("connection broken: {error}"),
            }
        }
    }
}
