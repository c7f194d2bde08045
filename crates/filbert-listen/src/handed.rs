//! Connections that another listener accepted, on a port that a front door shares with the other
//! members of a cluster.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream as Accepted};

use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc};
use tracing::debug;

/// The sending end: passes connections to a [`Listener`](crate::Listener).
#[derive(Clone, Debug)]
pub struct Handing(mpsc::Sender<Accepted>);

impl Handing {
    /// Passes a connection from which nothing was read. The connection may belong to another
    /// runtime than the front door.
    ///
    /// # Errors
    /// Too many connections wait to be accepted, or the front door has closed. The connection is
    /// closed.
    pub fn hand(&self, stream: TcpStream) -> io::Result<()> {
        self.0.try_send(stream.into_std()?).map_err(|error| io::Error::other(error.to_string()))
    }
}

/// The receiving end.
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
    /// Accepts the next connection. Cancel safety: no connection is lost when the future is
    /// dropped.
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
