//! Addresses for servers that this program starts.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{BenchError, Result};

/// Below the ports that the operating system gives to connections: any connection could take such a
/// port before its server listens.
const PORTS: Range<u16> = 15_000..32_000;

/// The distance between the first ports that two programs with successive process ids try.
const STEP: u32 = 101;

/// Returns a loopback address that currently has no listener. No address is returned twice.
pub fn free_address() -> Result<SocketAddr> {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let mut failed = None;
    for _ in PORTS {
        let number = process::id().wrapping_mul(STEP).wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed));
        let port = u32::from(PORTS.start) + number % (PORTS.len() as u32);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port as u16));
        match TcpListener::bind(address) {
            Ok(_) => return Ok(address),
            Err(error) => failed = Some(error),
        }
    }
    let failed = failed.unwrap_or_else(|| std::io::ErrorKind::AddrInUse.into());
    Err(BenchError::io("finding a free port")(failed))
}
