//! Listeners of the front doors: a listener binds the first free port of a range, and continues to
//! accept connections after errors. Also the limits of failed login attempts for each address, and
//! the limit of open files.
//!
//! This crate must not know protocols or the grid. The data of a connection, the number of
//! connections and their end are the responsibility of each front door.

mod files;
mod guesses;
mod handed;
mod port;

use std::{io, net::SocketAddr, time::Duration};

use tokio::net::{TcpListener, TcpStream};
use tracing::{debug, info, warn};

pub use files::allow_as_many_files_as_possible;
pub use guesses::{Guess, GuessLimits, Guesses, TooManyGuesses};
pub use handed::Handing;
pub use port::Port;

use handed::Handed;

/// The pause of accepting when the operating system has no descriptors or no memory for another
/// connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The listener could bind none of the ports.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}{} for {clients}", more_ports(.tried))]
pub struct ListenError {
    /// The first address tried.
    pub address: SocketAddr,
    /// The number of ports tried, starting with the port of `address`.
    pub tried: u16,
    /// The clients to be served, as in "PostgreSQL's clients".
    pub clients: &'static str,
    /// The operating system's error for the last port tried.
    pub source: io::Error,
}

fn more_ports(tried: &u16) -> String {
    if *tried > 1 { format!(" nor on the {} ports after it", tried - 1) } else { String::new() }
}

/// A listening socket.
#[derive(Debug)]
pub struct Listener {
    source: Source,
    address: SocketAddr,
}

#[derive(Debug)]
enum Source {
    Socket(TcpListener),
    Handed(Handed),
}

impl Listener {
    /// A listener for a front door on a shared port. Its connections come through the returned
    /// [`Handing`], and at most `waiting_max` of them wait to be accepted. `address` is the address
    /// of the shared port.
    pub fn handed(address: SocketAddr, waiting_max: usize) -> (Handing, Listener) {
        let (handing, handed) = handed::pair(waiting_max);
        (handing, Listener { source: Source::Handed(handed), address })
    }

    /// Listens on the first free of `ports` ports, starting with the port of `first`. Port 0 means
    /// any free port; then only one port is tried.
    ///
    /// # Errors
    ///
    /// No port is free, or the address does not belong to this machine.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O.
    pub fn bind(first: SocketAddr, ports: u16, clients: &'static str) -> Result<Listener, ListenError> {
        let ports = if first.port() == 0 { 1 } else { ports.max(1) };
        let mut tried = 0;
        loop {
            let mut address = first;
            address.set_port(first.port().saturating_add(tried));
            tried += 1;
            match Port::reserve(address, clients).and_then(Listener::on) {
                Ok(listener) => {
                    debug!("listening on {} for {clients}", listener.address);
                    return Ok(listener);
                }
                Err(error) => {
                    let is_taken = error.source.kind() == io::ErrorKind::AddrInUse;
                    if !is_taken || tried >= ports || address.port() == u16::MAX {
                        return Err(ListenError { address: first, tried, ..error });
                    }
                    info!("port {} is taken, trying the next one", address.port());
                }
            }
        }
    }

    /// Listens on a reserved port.
    ///
    /// # Errors
    ///
    /// Another socket that was bound to the port at the same time listens on it by now.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O.
    pub fn on(port: Port) -> Result<Listener, ListenError> {
        let (socket, address) = port.listen()?;
        Ok(Listener { address, source: Source::Socket(socket) })
    }

    /// The address on which this listener accepts connections.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts the next connection. It sends without Nagle's delay (`TCP_NODELAY`), because front
    /// doors write whole batches.
    ///
    /// Cancel safety: no connection is lost when the future is dropped.
    pub async fn accept(&self) -> (TcpStream, SocketAddr) {
        let socket = match &self.source {
            Source::Socket(socket) => socket,
            Source::Handed(handed) => return handed.accept().await,
        };
        loop {
            match socket.accept().await {
                Ok((stream, peer)) => match stream.set_nodelay(true) {
                    Ok(()) => return (stream, peer),
                    Err(error) => debug!(%peer, "connection broken: {error}"),
                },
                Err(error) => {
                    // An error of one connection ends with that connection. A lack of descriptors
                    // persists, so accepting pauses.
                    warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    const CLIENTS: &str = "the test's clients";

    #[tokio::test]
    async fn the_first_free_port_is_taken() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let first = Listener::bind(any, 100, CLIENTS).unwrap();
        let second = Listener::bind(first.address(), 100, CLIENTS).unwrap();
        assert!(second.address().port() > first.address().port());
        let error = Listener::bind(first.address(), 1, CLIENTS).unwrap_err();
        assert_eq!((error.address, error.tried), (first.address(), 1));
        assert_eq!(error.to_string(), format!("cannot listen on {} for the test's clients", first.address()));
        let client = TcpStream::connect(second.address()).await.unwrap();
        let (_, peer) = second.accept().await;
        assert_eq!(peer, client.local_addr().unwrap());
    }

    #[tokio::test]
    async fn a_reserved_port_belongs_to_its_listener_alone() {
        let port = Port::reserve(SocketAddr::from(([127, 0, 0, 1], 0)), CLIENTS).unwrap();
        let address = port.address();
        let early = TcpStream::connect(address).await.unwrap_err();
        assert_eq!(early.kind(), io::ErrorKind::ConnectionRefused);
        let listener = Listener::on(port).unwrap();
        assert_eq!(listener.address(), address);
        TcpStream::connect(address).await.unwrap();
        let error = Port::reserve(address, CLIENTS).unwrap_err();
        assert_eq!((error.address, error.source.kind()), (address, io::ErrorKind::AddrInUse));
    }

    #[tokio::test]
    async fn connections_that_are_handed_over_are_accepted() {
        let socket = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), 1, CLIENTS).unwrap();
        let (handing, door) = Listener::handed(socket.address(), 1);
        assert_eq!(door.address(), socket.address());
        let client = TcpStream::connect(socket.address()).await.unwrap();
        handing.hand(socket.accept().await.0).unwrap();
        let other = TcpStream::connect(socket.address()).await.unwrap();
        assert!(handing.hand(socket.accept().await.0).is_err(), "one waits already");
        let (_, peer) = door.accept().await;
        assert_eq!(peer, client.local_addr().unwrap());
        drop((other, door));
        let _another = TcpStream::connect(socket.address()).await.unwrap();
        assert!(handing.hand(socket.accept().await.0).is_err(), "the door has closed");
    }

    #[tokio::test]
    async fn an_address_of_another_machine_is_refused_at_once() {
        let error = Listener::bind(SocketAddr::from(([192, 0, 2, 1], 7_000)), 100, CLIENTS).unwrap_err();
        assert_eq!(error.tried, 1);
        assert_eq!(error.source.kind(), io::ErrorKind::AddrNotAvailable);
    }
}
