//! A port that is bound before its front door listens.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

use crate::ListenError;

/// Connections that the operating system may queue until they are accepted. Enough for a whole pool
/// of clients that reconnect at once after a restart.
const BACKLOG: u32 = 4096;

/// A bound port that does not listen yet. The operating system gives a port 0 to nobody else, and
/// refuses connections until the port listens.
///
/// A cluster member reserves its ports before it joins: it informs other members of its port for
/// clients, and a member that cannot serve must not become one.
#[derive(Debug)]
pub struct Port {
    socket: TcpSocket,
    address: SocketAddr,
    clients: &'static str,
}

impl Port {
    /// Binds the port of this address. Port 0 means any free port.
    ///
    /// # Errors
    ///
    /// Another socket listens on the port, or the address does not belong to this machine.
    pub fn reserve(address: SocketAddr, clients: &'static str) -> Result<Port, ListenError> {
        let bind = || -> io::Result<Port> {
            let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            // A restarted member must be able to bind its port immediately, while connections of
            // the previous process still time out.
            socket.set_reuseaddr(true)?;
            // Accepted connections inherit keepalive, which detects clients whose machine has
            // failed.
            socket.set_keepalive(true)?;
            socket.bind(address)?;
            Ok(Port { address: socket.local_addr()?, socket, clients })
        };
        bind().map_err(|source| ListenError { address, tried: 1, clients, source })
    }

    /// The address with the port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Listens on the port.
    ///
    /// # Errors
    ///
    /// Another socket that was bound to the port at the same time listens on it by now.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O.
    pub(crate) fn listen(self) -> Result<(TcpListener, SocketAddr), ListenError> {
        let Port { socket, address, clients } = self;
        let socket = socket.listen(BACKLOG).map_err(|source| ListenError { address, tried: 1, clients, source })?;
        Ok((socket, address))
    }
}
