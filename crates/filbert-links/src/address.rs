//! The address at which a member listens.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use tokio::net::TcpStream;

/// The address at which a member listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// A socket address.
    Socket(SocketAddr),
    /// Host and port, such as "db1:5701". Resolved at each attempt to connect.
    Name(String),
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address::Socket(address)
    }
}

impl From<&str> for Address {
    fn from(name: &str) -> Self {
        name.parse().map_or_else(|_| Address::Name(name.to_owned()), Address::Socket)
    }
}

impl From<String> for Address {
    fn from(name: String) -> Self {
        name.as_str().into()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Socket(address) => address.fmt(f),
            Address::Name(name) => f.write_str(name),
        }
    }
}

impl Address {
    /// Connects to the address. Tries the addresses of a host name one after the other.
    pub(crate) async fn connect(&self) -> io::Result<TcpStream> {
        match self {
            Address::Socket(address) => TcpStream::connect(address).await,
            Address::Name(name) => TcpStream::connect(name).await,
        }
    }
}
