//! Tests of the generator with servers that the tests start themselves.

// The whole file is a test, but the lints except only functions with a test attribute.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::net::SocketAddr;
use std::time::Duration;

use filbert_bench::distribution::{Distribution, Operation};
use filbert_bench::load::{Limit, Load, LoadReport, Pace, Workload};
use filbert_bench::requests::ValueShape;
use filbert_bench::session::{Session, Target};
use filbert_bench::{BenchError, echo};
use filbert_wire::table::{client, map};
use filbert_wire::{CorrelationId, Limits, Message, Request, Response, Split, Splitter};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// Starts an echo server on a free port. It stops with the runtime.
fn echo_server(value_characters: usize) -> (Runtime, Target) {
    let runtime = Runtime::new().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(echo::run(listener, value_characters));
    (runtime, Target::new("echo", address))
}

fn workload(operation: Operation) -> Workload {
    Workload { check_every: 0, ..Workload::new("m", operation, 1_000, ValueShape::Text(100)) }
}

fn run(target: &Target, workload: Workload, operations: u64) -> LoadReport {
    Load::connect(target, workload).unwrap().run(0, Limit::Operations(operations)).unwrap()
}

#[test]
fn a_client_logs_in_and_calls() {
    let (_runtime, target) = echo_server(5);
    let mut session = Session::open(&target).unwrap();
    assert_eq!(session.partition_count(), 271);
    assert_eq!(session.map_size("m").unwrap(), 0);
    session.map_clear("m").unwrap();
}

#[test]
fn every_call_of_a_closed_loop_is_answered_once() {
    let (_runtime, target) = echo_server(100);
    for (connections, threads, depth) in [(1, None, 1), (1, None, 100), (3, None, 7), (5, Some(2), 16), (4, Some(3), 1)]
    {
        for operation in [Operation::Get, Operation::Set, Operation::Put] {
            let workload = Workload { connections, threads, depth, ..workload(operation) };
            assert_eq!(run(&target, workload, 10_007).operations, 10_007, "{connections} {threads:?} {depth}");
        }
    }
}

#[test]
fn windows_larger_than_the_sockets_buffers_do_not_block() {
    let (_runtime, target) = echo_server(100_000);
    let values = ValueShape::Text(100_000);
    let workload = Workload { depth: 200, values, ..workload(Operation::Put) };
    assert_eq!(run(&target, workload, 1_000).operations, 1_000);
}

#[test]
fn iterations_wait_for_all_their_replies() {
    let (_runtime, target) = echo_server(5);
    for (iteration, depth) in [(1, 10), (10, 10), (25, 10), (1_000, 100)] {
        let workload = Workload { depth, iteration: Some(iteration), ..workload(Operation::Get) };
        assert_eq!(run(&target, workload, 2_345).operations, 2_345, "{iteration} {depth}");
    }
}

#[test]
fn a_phase_ends_when_its_time_is_up() {
    let (_runtime, target) = echo_server(5);
    let mut load = Load::connect(&target, Workload { depth: 10, ..workload(Operation::Get) }).unwrap();
    let report = load.run(0, Limit::Time(Duration::from_millis(50))).unwrap();
    assert!(report.operations > 0);
    assert!(report.seconds >= 0.05);
}

#[test]
fn a_fixed_rate_makes_as_many_calls_as_are_due() {
    let (_runtime, target) = echo_server(5);
    let pace = Pace::Rate(20_000.0);
    let mut load =
        Load::connect(&target, Workload { connections: 3, depth: 1_000, pace, ..workload(Operation::Get) }).unwrap();
    let report = load.run(0, Limit::Operations(5_000)).unwrap();
    assert_eq!(report.operations, 5_000);
    assert!(report.seconds >= 4_999.0 / 20_000.0, "{}", report.seconds);
    assert!(report.lateness.is_some());
}

/// A member that stalls once: it sends no replies until `stall` calls have arrived, then all
/// replies.
async fn stalling_member(mut stream: TcpStream, stall: usize) {
    let mut splitter = Splitter::new(Limits::default());
    let (mut input, mut held, mut gets) = (Vec::new(), Vec::new(), 0);
    let mut preamble = [0; 3];
    stream.read_exact(&mut preamble).await.unwrap();
    while stream.read_buf(&mut input).await.unwrap_or(0) > 0 {
        while let Some(Split::Whole(count)) = splitter.split(&input).unwrap() {
            let message = Message::parse(&input[..count]).unwrap();
            let correlation: CorrelationId = message.correlation_id();
            if message.id() == client::authentication::Request::ID {
                client::authentication::Response {
                    partition_count: 271,
                    serialization_version: 1,
                    server_hazelcast_version: "5.5.0",
                    ..Default::default()
                }
                .encode(correlation, &mut held);
                stream.write_all(&std::mem::take(&mut held)).await.unwrap();
            } else {
                gets += 1;
                map::get::Response { response: None }.encode(correlation, &mut held);
            }
            input.drain(..count);
        }
        if gets >= stall && stream.write_all(&std::mem::take(&mut held)).await.is_err() {
            return;
        }
    }
}

fn stalling_server(stall: usize) -> (Runtime, Target) {
    let runtime = Runtime::new().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(stalling_member(stream, stall));
        }
    });
    (runtime, Target::new("stalling", address))
}

/// The rate is 1,000 calls per second, and the server sends no reply until the 100th call. So the
/// first call waits for 99 ms, the next for 98 ms, and so on: half of the first 100 calls wait for
/// more than 49 ms. A generator that measures from the send time, with a window of one call, would
/// stall too and report one slow call.
#[test]
fn at_a_fixed_rate_calls_are_measured_from_the_time_they_were_due() {
    let (_runtime, target) = stalling_server(100);
    let pace = Pace::Rate(1_000.0);
    let mut load = Load::connect(&target, Workload { depth: 1_000, pace, ..workload(Operation::Get) }).unwrap();
    let report = load.run(0, Limit::Operations(100)).unwrap();
    assert!(report.latency.max_us >= 98_000.0, "{:?}", report.latency);
    assert!(report.latency.p50_us >= 48_000.0, "{:?}", report.latency);
}

/// The generator cannot send while the window is full. The delayed calls still count as late.
#[test]
fn calls_held_back_by_a_full_window_count_as_late() {
    let (_runtime, target) = stalling_server(10);
    let pace = Pace::Rate(100_000.0);
    let mut load = Load::connect(&target, Workload { depth: 10, pace, ..workload(Operation::Get) }).unwrap();
    let report = load.run(0, Limit::Operations(1_000)).unwrap();
    assert_eq!(report.operations, 1_000);
    let lateness = report.lateness.unwrap();
    assert!(report.latency.max_us >= lateness.max_us, "{:?} {lateness:?}", report.latency);
}

#[test]
fn a_wrong_value_ends_the_run() {
    let (_runtime, target) = echo_server(100);
    let workload = Workload { check_every: 10, ..workload(Operation::Get) };
    let outcome = Load::connect(&target, workload).unwrap().run(0, Limit::Operations(1_000));
    assert!(matches!(outcome, Err(BenchError::Wrong { .. })), "{outcome:?}");
}

#[test]
fn a_workload_without_sense_is_refused() {
    let (_runtime, target) = echo_server(5);
    let wrong = [
        Workload { connections: 0, ..workload(Operation::Get) },
        Workload { depth: 0, ..workload(Operation::Get) },
        Workload { pace: Pace::Rate(0.0), ..workload(Operation::Get) },
        Workload { pace: Pace::Rate(f64::NAN), ..workload(Operation::Get) },
        Workload { keys: 0, distribution: Distribution::Zipf, ..workload(Operation::Get) },
    ];
    for workload in wrong {
        assert!(matches!(Load::connect(&target, workload), Err(BenchError::Setting(_))));
    }
}
