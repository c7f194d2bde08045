//! Clients of a member whose changes go through a log, beyond the tests for all members: order,
//! large replies, errors that say whether to send a request again, and requests that are held back.

use crate::common::{Client, Server, wait_until};
use filbert_grid::replication::GroupId;
use filbert_hazelcast::DoorConfig;
use filbert_wire::{
    MessageId,
    table::map::{contains_key, get, lock, put, set, size, try_put, unlock},
};

const NAME: &str = "m";

fn key(n: u32) -> Vec<u8> {
    [b"\0\0\0\0\xff\xff\xff\xf9".as_slice(), &n.to_be_bytes()].concat()
}

fn partition(key: &[u8]) -> i32 {
    filbert_data::partition_of(key, 271).0 as i32
}

fn set_request<'a>(key: &'a [u8], value: &'a [u8]) -> set::Request<'a> {
    set::Request { name: NAME, key, value, thread_id: 1, ttl: -1 }
}

fn get_request(key: &[u8]) -> get::Request<'_> {
    get::Request { name: NAME, key, thread_id: 1 }
}

#[test]
fn a_pipelined_get_sees_the_set_before_it() {
    let (server, _loopback) = Server::replicated(DoorConfig::default());
    let mut client = server.client();
    let (mut batch, mut sets, mut gets) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..3_000_u32 {
        // Few keys, so that gets follow several sets of their partitions.
        let key = key(n % 7);
        let value = n.to_be_bytes();
        let (correlation, bytes) = client.encode(&set_request(&key, &value), partition(&key));
        sets.push(correlation);
        batch.extend_from_slice(&bytes);
        if n % 3 == 0 {
            let (correlation, bytes) = client.encode(&get_request(&key), partition(&key));
            gets.push((correlation, value));
            batch.extend_from_slice(&bytes);
        }
        if n % 5 == 0 {
            let request = contains_key::Request { name: NAME, key: &key, thread_id: 1 };
            let (correlation, bytes) = client.encode(&request, partition(&key));
            sets.push(correlation);
            batch.extend_from_slice(&bytes);
        }
    }
    std::thread::scope(|scope| {
        let mut writer = client.stream.try_clone().unwrap();
        scope.spawn(move || std::io::Write::write_all(&mut writer, &batch).unwrap());
        for (correlation, value) in gets {
            let reply = client.reply_to(correlation);
            assert_eq!(reply.decode::<get::Response<'_>>().response, Some(value.as_slice()));
        }
        for correlation in sets {
            assert_ne!(client.reply_to(correlation).message().id(), MessageId::ERROR);
        }
    });
}

#[test]
fn a_lock_that_is_waited_for_holds_up_nobody_on_its_connection() {
    let (server, _loopback) = Server::replicated(DoorConfig::default());
    let (mut owner, mut client) = (server.client(), server.client());
    let key = key(1);
    owner.ok(&lock::Request { name: NAME, key: &key, thread_id: 1, ttl: -1, reference_id: 1 });
    // Two threads of one client share a connection: one waits, the other reads the same partition.
    let waiting = client.send_to(&set_request(&key, b"v"), partition(&key));
    let reading = client.send_to(&get_request(&key), partition(&key));
    assert_eq!(client.reply_to(reading).decode::<get::Response<'_>>().response, None);
    let request = try_put::Request { name: NAME, key: &key, value: b"w", thread_id: 1, timeout: 0 };
    assert!(!client.ok(&request).decode::<try_put::Response>().response);
    owner.ok(&unlock::Request { name: NAME, key: &key, thread_id: 1, reference_id: 2 });
    client.reply_to(waiting).decode::<set::Response>();
    assert_eq!(client.ok(&get_request(&key)).decode::<get::Response<'_>>().response, Some(b"v".as_slice()));
}

#[test]
fn an_answer_beyond_the_limit_of_events_reaches_its_client() {
    let value = vec![7; 20 << 20];
    for replicated in [false, true] {
        let (server, _loopback) = match replicated {
            true => {
                let (server, loopback) = Server::replicated(DoorConfig::default());
                (server, Some(loopback))
            }
            false => (Server::direct(DoorConfig::default()), None),
        };
        let (mut owner, mut client) = (server.client(), server.client());
        let key = key(1);
        let put = |value| put::Request { name: NAME, key: &key, value, thread_id: 1, ttl: -1 };
        client.ok(&put(&value));
        // The reply comes through the log, or from a parked change.
        owner.ok(&lock::Request { name: NAME, key: &key, thread_id: 1, ttl: -1, reference_id: 1 });
        let waiting = client.send(&put(b"small"));
        owner.ok(&unlock::Request { name: NAME, key: &key, thread_id: 1, reference_id: 2 });
        let reply = client.reply_to(waiting);
        assert_eq!(reply.decode::<put::Response<'_>>().response.map(<[u8]>::len), Some(value.len()));
        assert_eq!(client.ok(&put(b"x")).decode::<put::Response<'_>>().response, Some(b"small".as_slice()));
    }
}

#[test]
fn errors_say_whether_a_change_may_be_retried() {
    let (server, loopback) = Server::replicated(DoorConfig::default());
    let mut client = server.client();
    let key = key(1);
    let group = GroupId(partition(&key) as u32 % 24);
    client.ok(&set_request(&key, b"v"));
    loopback.pause();
    let in_flight = client.send(&set_request(&key, b"w"));
    wait_until("the change is on its way", || loopback.queued() == 1);
    loopback.depose(&server.grid, group);
    loopback.resume();
    let (code, class, _) = client.reply_to(in_flight).error();
    assert_eq!((code, class.as_str()), (80, "com.hazelcast.core.IndeterminateOperationStateException"));
    let wrong_target = (62, "com.hazelcast.spi.exception.WrongTargetException");
    let short = |(code, class, _): (i32, String, String)| (code, class);
    let expected = (wrong_target.0, wrong_target.1.to_owned());
    assert_eq!(short(client.error(&set_request(&key, b"w"))), expected);
    assert_eq!(short(client.error(&get_request(&key))), expected);
    assert_eq!(short(client.error(&size::Request { name: NAME })), expected);
    loopback.elect(&server.grid, group);
    assert_eq!(client.ok(&get_request(&key)).decode::<get::Response<'_>>().response, Some(b"v".as_slice()));
    loopback.refuse(100);
    let (code, class, _) = client.error(&set_request(&key, b"w"));
    assert_eq!((code, class.as_str()), (46, "com.hazelcast.spi.exception.RetryableHazelcastException"));
}

#[test]
fn changes_in_flight_are_bounded() {
    let (server, loopback) = Server::replicated(DoorConfig::default());
    let mut client = server.client();
    client.ok(&set_request(&key(0), b"v"));
    loopback.pause();
    let value = vec![1; 100_000];
    let (mut batch, mut correlations) = (Vec::new(), Vec::new());
    for n in 0..200 {
        let key = key(n);
        let (correlation, bytes) = client.encode(&set_request(&key, &value), partition(&key));
        correlations.push(correlation);
        batch.extend_from_slice(&bytes);
    }
    let before = server.grid.statistics().memory_bytes;
    std::thread::scope(|scope| {
        let mut writer = client.stream.try_clone().unwrap();
        scope.spawn(move || std::io::Write::write_all(&mut writer, &batch).unwrap());
        let in_flight_bytes = || server.grid.statistics().memory_bytes - before;
        wait_until("as much is on its way as may be", || in_flight_bytes() > 900_000);
        // Other clients are served in the meantime.
        server.client().ok(&get_request(&key(0)));
        assert!(in_flight_bytes() < 1_300_000, "{}", in_flight_bytes());
        loopback.resume();
        for correlation in correlations {
            client.reply_to(correlation).decode::<set::Response>();
        }
    });
    assert_eq!(client.ok(&size::Request { name: NAME }).decode::<size::Response>().response, 200);
}

#[test]
fn a_client_that_leaves_with_changes_in_flight_leaves_no_lock() {
    let (server, loopback) = Server::replicated(DoorConfig::default());
    let mut client = server.client();
    client.ok(&set_request(&key(0), b"v"));
    loopback.pause();
    for n in 0..20 {
        let key = key(n);
        client.send(&lock::Request { name: NAME, key: &key, thread_id: 1, ttl: -1, reference_id: i64::from(n) + 1 });
    }
    wait_until("the locks are on their way", || loopback.queued() > 0);
    client.close();
    // The client is unregistered before the release of its locks is requested. Both have happened
    // when its connection is gone.
    wait_until("the connection is gone", || server.monitor.statistics().connections == 0);
    loopback.resume();
    let map = server.grid.map(NAME).unwrap();
    loopback.settle();
    assert_eq!(map.statistics().locked_keys, 0);
    let mut other: Client = server.client();
    other.ok(&lock::Request { name: NAME, key: &key(0), thread_id: 1, ttl: -1, reference_id: 1 });
}
