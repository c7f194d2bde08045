//! A closed loop of several connections on one thread, with non-blocking I/O.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream as StdStream;
use std::time::Instant;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::lane::{Lane, Tally};
use crate::error::{BenchError, Result};
use crate::session::SILENCE_MAX;

/// The maximum number of ready connections per poll.
const EVENTS_MAX: usize = 1024;

/// A connection with its window.
struct Member<'a> {
    stream: TcpStream,
    lane: Lane<'a>,
    written: usize,
    over: bool,
}

/// Runs until the phase is over on all connections.
pub(super) fn drive(streams: &mut [StdStream], lanes: Vec<Lane<'_>>, deadline: Option<Instant>) -> Result<Tally> {
    let mut poll = Poll::new().map_err(BenchError::io("creating an epoll instance"))?;
    let mut members = Vec::new();
    for (index, (stream, lane)) in streams.iter().zip(lanes).enumerate() {
        let stream = stream.try_clone().map_err(BenchError::io("cloning a socket"))?;
        let mut stream = TcpStream::from_std(stream);
        poll.registry()
            .register(&mut stream, Token(index), Interest::READABLE | Interest::WRITABLE)
            .map_err(BenchError::io("registering a socket"))?;
        members.push(Member { stream, lane, written: 0, over: false });
    }
    let mut total = Tally::new()?;
    let mut running = members.len();
    for member in &mut members {
        member.step(deadline)?;
        running -= usize::from(member.over);
    }
    let mut events = Events::with_capacity(EVENTS_MAX);
    while running > 0 {
        match poll.poll(&mut events, Some(SILENCE_MAX)) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(BenchError::io("waiting for replies")(error)),
        }
        if events.is_empty()
            && let Some(waiting) = members.iter().find(|member| !member.over)
        {
            return Err(waiting.lane.silent());
        }
        for event in &events {
            let Some(member) = members.get_mut(event.token().0).filter(|member| !member.over) else { continue };
            if event.is_readable() {
                member.read()?;
            }
            member.step(deadline)?;
            running -= usize::from(member.over);
        }
    }
    for member in members {
        total.add(&member.lane.into_tally())?;
    }
    Ok(total)
}

impl Member<'_> {
    /// Reads the available data. A read that does not fill its buffer has emptied the socket
    /// (epoll(7)).
    fn read(&mut self) -> Result<()> {
        loop {
            let space = self.lane.input.space();
            let length = space.len();
            match self.stream.read(space) {
                Ok(0) => return Err(self.lane.closed()),
                Ok(count) => {
                    self.lane.input.received(count);
                    self.lane.absorb(Instant::now())?;
                    if count < length {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(BenchError::io("reading replies")(error)),
            }
        }
    }

    /// Issues new calls and writes as much as the socket accepts.
    fn step(&mut self, deadline: Option<Instant>) -> Result<()> {
        // While a write is blocked no call is added: its latency would start long before it is
        // sent.
        if self.written == self.lane.out.len() {
            self.lane.out.clear();
            self.written = 0;
            self.lane.issue(Instant::now(), deadline);
        }
        while let Some(rest) = self.lane.out.get(self.written..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(BenchError::io("writing calls")(error)),
            }
        }
        self.over = self.lane.is_over() && self.written == self.lane.out.len();
        Ok(())
    }
}
