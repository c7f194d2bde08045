//! Where members are.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use filbert_cluster::MemberId;
use tokio::net::TcpStream;

use crate::shared::Shared;

/// Where a member listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// An address of the network.
    Socket(SocketAddr),
    /// Host and port, as in "db1:5701": resolved at each try to connect.
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
    /// Connects to it, the addresses of a name one after the other.
    pub(crate) async fn connect(&self) -> io::Result<TcpStream> {
        match self {
            Address::Socket(address) => TcpStream::connect(address).await,
            Address::Name(name) => TcpStream::connect(name).await,
        }
    }
}

/// The addresses of members, as whoever chooses the members says.
#[derive(Clone)]
pub struct AddressBook(pub(crate) Arc<Shared>);

impl fmt::Debug for AddressBook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AddressBook").field(&*self.0.addresses.read()).finish()
    }
}

impl AddressBook {
    /// Says where a member is. If it was elsewhere before, connections to there are closed, and the next call dials the new address at once.
    pub fn set(&self, member: MemberId, address: impl Into<Address>) {
        let address = address.into();
        let before = self.0.addresses.write().insert(member, address.clone());
        if before.is_some_and(|before| before != address) {
            self.0.cut(member);
        }
    }

    /// Forgets a member, and closes the connections to it.
    pub fn remove(&self, member: MemberId) {
        self.0.addresses.write().remove(&member);
        self.0.cut(member);
    }

    /// Where a member is, if known.
    #[must_use]
    pub fn get(&self, member: MemberId) -> Option<Address> {
        self.0.addresses.read().get(&member).cloned()
    }
}
