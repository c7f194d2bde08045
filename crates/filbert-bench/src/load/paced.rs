//! Calls at a fixed rate. The latency of a call starts at its due time.
//!
//! A closed loop stops sending while the server stalls, so it omits the calls that would have
//! waited: coordinated omission. Here call n is due at `start + n / rate`, regardless of earlier
//! replies, and its latency starts at that time. Each connection has a sender thread and a receiver
//! thread. The correlation id is the index of the call. Both threads compute the due time from it,
//! so no state is kept per call.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use filbert_wire::{Limits, Message, Split, Splitter};

use super::Limit;
use super::lane::Tally;
use super::work::Work;
use crate::buffer::ReadBuffer;
use crate::error::{BenchError, Result};
use crate::latency::Latencies;

/// The schedule of one connection.
#[derive(Debug, Clone, Copy)]
struct Schedule {
    start: Instant,
    /// The interval between two calls over all connections, in nanoseconds.
    interval_ns: f64,
    lane: u64,
    lanes: u64,
    calls: u64,
}

impl Schedule {
    /// The due time of the `index`-th call of the connection.
    #[inline]
    fn due(&self, index: u64) -> Instant {
        let number = self.lane + index * self.lanes;
        self.start + Duration::from_nanos((number as f64 * self.interval_ns) as u64)
    }

    /// The number of calls that are due at `now`.
    #[inline]
    fn due_by(&self, now: Instant) -> u64 {
        let elapsed_ns = now.saturating_duration_since(self.start).as_nanos() as f64;
        let mut count = ((elapsed_ns / self.interval_ns - self.lane as f64) / self.lanes as f64).max(0.0) as u64;
        while count < self.calls && self.due(count) <= now {
            count += 1;
        }
        count.min(self.calls)
    }
}

/// The state that the sender and the receiver of a connection share.
#[derive(Debug, Default)]
struct Progress {
    answered: AtomicU64,
    failed: AtomicBool,
}

/// Runs one phase at `rate` calls per second.
pub(super) fn run(work: &Work<'_>, rate: f64, streams: &[TcpStream], limit: Limit) -> Result<(Tally, Duration)> {
    let lanes = streams.len() as u64;
    let total = match limit {
        Limit::Operations(count) => count,
        Limit::Time(time) => (time.as_secs_f64() * rate).ceil() as u64,
    };
    for stream in streams {
        stream.set_nonblocking(false).map_err(BenchError::io("changing the mode of a socket"))?;
    }
    // The start is slightly in the future, so that all threads run when the first call is due.
    let start = Instant::now() + Duration::from_millis(10);
    let schedule = |lane: u64| Schedule {
        start,
        interval_ns: 1e9 / rate,
        lane,
        lanes,
        calls: total.saturating_sub(lane).div_ceil(lanes),
    };
    let progress: Vec<Progress> = streams.iter().map(|_| Progress::default()).collect();
    let tally = std::thread::scope(|scope| {
        let mut senders = Vec::new();
        let mut receivers = Vec::new();
        for (lane, (stream, progress)) in streams.iter().zip(&progress).enumerate() {
            let schedule = schedule(lane as u64);
            let send = move || finish(stream, progress, send(work, schedule, stream, progress));
            let receive = move || finish(stream, progress, receive(work, schedule, stream, progress));
            senders.push(scope.spawn(send));
            receivers.push(scope.spawn(receive));
        }
        let ended = || BenchError::Setting("a thread of the generator ended early".to_owned());
        let mut tally = Tally::new()?;
        let mut lateness = Latencies::new()?;
        for sender in senders {
            lateness.add(&sender.join().map_err(|_| ended())??)?;
        }
        for receiver in receivers {
            tally.add(&receiver.join().map_err(|_| ended())??)?;
        }
        tally.lateness = Some(lateness);
        Ok::<_, BenchError>(tally)
    })?;
    Ok((tally, start.elapsed()))
}

/// A failure of one thread of a connection stops the other thread.
fn finish<T>(stream: &TcpStream, progress: &Progress, result: Result<T>) -> Result<T> {
    if result.is_err() {
        progress.failed.store(true, Ordering::Release);
        // An error here means that the connection is already closed.
        let _ = stream.shutdown(Shutdown::Both);
    }
    result
}

/// Writes every call at its due time. Calls that are due together are sent with one write. Returns
/// the lateness of the writes.
fn send(work: &Work<'_>, schedule: Schedule, mut stream: &TcpStream, progress: &Progress) -> Result<Latencies> {
    sleep_precisely();
    let mut lateness = Latencies::new()?;
    let mut out = Vec::new();
    let mut sent = 0;
    while sent < schedule.calls {
        let now = Instant::now();
        let room = (progress.answered.load(Ordering::Acquire) + work.depth as u64).min(schedule.calls);
        let until = schedule.due_by(now).min(room);
        if sent >= until {
            if progress.failed.load(Ordering::Acquire) {
                break;
            }
            // The next call is not due, or the window is full. In the second case poll soon,
            // because the calls are already late.
            let next = schedule.due(sent).saturating_duration_since(now);
            std::thread::sleep(if next.is_zero() { Duration::from_micros(20) } else { next });
            continue;
        }
        out.clear();
        for index in sent..until {
            work.encode(work.number(schedule.lane, index), index as i64, &mut out);
            lateness.record(now.saturating_duration_since(schedule.due(index)));
        }
        stream.write_all(&out).map_err(BenchError::io("writing calls"))?;
        sent = until;
    }
    Ok(lateness)
}

/// Requests precise sleeps from the kernel. By default a sleep may end up to 50 us late (timer
/// slack). If the request is not permitted, the lateness is larger, and the report shows it.
fn sleep_precisely() {
    let Ok(link) = std::fs::read_link("/proc/thread-self") else { return };
    let Some(thread) = link.file_name() else { return };
    // One nanosecond is the minimum.
    let _ = std::fs::write(std::path::Path::new("/proc").join(thread).join("timerslack_ns"), "1");
}

/// Receives all replies.
fn receive(work: &Work<'_>, schedule: Schedule, mut stream: &TcpStream, progress: &Progress) -> Result<Tally> {
    let mut tally = Tally::new()?;
    let mut splitter = Splitter::new(Limits::default());
    let mut input = ReadBuffer::new();
    let mut answered = 0;
    let silent = |in_flight| BenchError::Silent {
        target: work.target.to_owned(),
        waited: crate::session::SILENCE_MAX,
        in_flight,
    };
    while answered < schedule.calls {
        let count = match stream.read(input.space()) {
            Ok(0) => {
                let what = format!("closed a connection after {answered} of {} calls", schedule.calls);
                return Err(BenchError::Program { program: work.target.to_owned(), what });
            }
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(silent(schedule.due_by(Instant::now()).saturating_sub(answered) as usize));
            }
            Err(error) => return Err(BenchError::io("reading replies")(error)),
        };
        let now = Instant::now();
        input.received(count);
        while let Some(split) = splitter.split(input.filled()).map_err(BenchError::wire(work.target))? {
            let (consumed, assembled) = match split {
                Split::Fragment(count) => (count, None),
                Split::Whole(count) => {
                    complete(work, schedule, input.filled().get(..count).unwrap_or_default(), now, &mut tally)?;
                    answered += 1;
                    (count, None)
                }
                Split::Assembled(count, bytes) => (count, Some(bytes)),
            };
            if let Some(bytes) = assembled {
                complete(work, schedule, &bytes, now, &mut tally)?;
                answered += 1;
            }
            input.consume(consumed);
        }
        progress.answered.store(answered, Ordering::Release);
    }
    Ok(tally)
}

fn complete(work: &Work<'_>, schedule: Schedule, bytes: &[u8], now: Instant, tally: &mut Tally) -> Result<()> {
    let message = Message::parse(bytes).map_err(BenchError::wire(work.target))?;
    let index = message.correlation_id().0 as u64;
    if index >= schedule.calls {
        return Err(BenchError::Wrong {
            target: work.target.to_owned(),
            what: format!("a reply for correlation id {index}, which is not in flight"),
        });
    }
    tally.latencies.record(now.saturating_duration_since(schedule.due(index)));
    tally.checked += u64::from(work.check(work.number(schedule.lane, index), &message)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(lane: u64, lanes: u64, rate: f64, calls: u64) -> Schedule {
        Schedule { start: Instant::now(), interval_ns: 1e9 / rate, lane, lanes, calls }
    }

    #[test]
    fn calls_of_all_connections_are_due_evenly() {
        let start = Instant::now();
        let mut due: Vec<Duration> = (0..4)
            .flat_map(|lane| {
                let schedule = Schedule { start, ..schedule(lane, 4, 1_000.0, 25) };
                (0..25).map(move |index| schedule.due(index) - start)
            })
            .collect();
        due.sort();
        let expected: Vec<Duration> = (0..100).map(Duration::from_millis).collect();
        assert_eq!(due, expected);
    }

    #[test]
    fn the_number_due_agrees_with_the_times_due() {
        for (lane, lanes, rate) in [(0, 1, 1_000.0), (2, 3, 777.7), (6, 7, 123_456.7)] {
            let schedule = schedule(lane, lanes, rate, 1_000);
            for index in 0..1_000 {
                assert!(schedule.due_by(schedule.due(index)) > index);
                let before = schedule.due(index).checked_sub(Duration::from_nanos(1)).unwrap();
                assert!(schedule.due_by(before) <= index, "{index} of lane {lane}");
            }
        }
    }

    #[test]
    fn calls_not_made_yet_are_not_due() {
        let schedule = schedule(0, 1, 10.0, 5);
        assert_eq!(schedule.due_by(schedule.start.checked_sub(Duration::from_secs(1)).unwrap()), 0);
        assert_eq!(schedule.due_by(schedule.start + Duration::from_secs(100)), 5);
    }
}
