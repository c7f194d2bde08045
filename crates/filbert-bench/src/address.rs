//! Addresses for servers that this program starts.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use crate::error::{BenchError, Result};

/// Returns a loopback address without a listener at the moment.
pub fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(BenchError::io("finding a free port"))?;
    listener.local_addr().map_err(BenchError::io("finding a free port"))
}
