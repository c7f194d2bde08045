//! A closed loop of one connection on one thread with blocking calls. It needs the minimal number
//! of system calls: one write and one read per window.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use super::lane::{Lane, Tally};
use crate::error::{BenchError, Result};

/// Runs until the phase is over and all replies have arrived.
pub(super) fn drive(stream: &mut TcpStream, mut lane: Lane<'_>, deadline: Option<Instant>) -> Result<Tally> {
    let mut now = Instant::now();
    loop {
        lane.issue(now, deadline);
        if !lane.out.is_empty() {
            stream.write_all(&lane.out).map_err(BenchError::io("writing a window of calls"))?;
            lane.out.clear();
        }
        if lane.is_over() {
            return Ok(lane.into_tally());
        }
        let count = match stream.read(lane.input.space()) {
            Ok(0) => return Err(lane.closed()),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(lane.silent());
            }
            Err(error) => return Err(BenchError::io("reading replies")(error)),
        };
        now = Instant::now();
        lane.input.received(count);
        lane.absorb(now)?;
    }
}
