//! Clients that send invalid or excessive data: they get a clear error, other clients are served,
//! and the memory is released.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use crate::common::{Client, Reply, Server, wait_until};
use filbert_grid::GridConfig;
use filbert_hazelcast::DoorConfig;
use filbert_wire::{
    MessageId, PREAMBLE, encode_fragmented,
    frame::{FRAME_HEADER_BYTES, Frames},
    table::{
        client::{authentication, ping},
        map::{add_entry_listener, get, get_all, put, put_all, remove, set, size},
    },
};

const SIZE: size::Request<'_> = size::Request { name: "m" };

fn put(key: &[u8]) -> put::Request<'_> {
    put::Request { name: "m", key, value: b"value", thread_id: 1, ttl: -1 }
}

/// The error that closed a connection.
fn last_error(mut client: Client) -> (i32, String, String) {
    let replies: Vec<Reply> = client.read_to_end();
    replies.last().expect("an error before the end").error()
}

/// The offsets of the frames of a message, and of its end.
fn frame_starts(message: &[u8]) -> Vec<usize> {
    let mut starts = vec![0];
    for frame in Frames::new(message) {
        starts.push(starts.last().unwrap() + FRAME_HEADER_BYTES + frame.content.len());
    }
    starts
}

#[test]
fn a_truncated_message_is_forgotten_with_its_connection() {
    let server = Server::start();
    for cut in [1, 5, 6, 17, 30] {
        let mut client = server.client();
        let (_, bytes) = client.encode(&put(b"key"), -1);
        client.write(&bytes[..bytes.len() - cut]);
        client.close();
    }
    server.wait_until_idle(0);
    server.assert_serves();
    assert_eq!(server.grid.map("m").unwrap().size(), 0);
}

#[test]
fn a_message_beyond_the_limit_is_refused_before_it_arrives() {
    let server = Server::with_door(|door| door.message_bytes_max = 1 << 20);
    let mut client = server.client();
    let value = vec![7; 2 << 20];
    let request = put::Request { value: &value, ..put(b"key") };
    let (correlation, bytes) = client.encode(&request, -1);
    client.write(&bytes[..4096]);
    let reply = client.reply_to(correlation);
    let (code, class, text) = reply.error();
    assert_eq!((code, class.as_str()), (69, "com.hazelcast.client.impl.protocol.exception.MaxMessageSizeExceeded"));
    assert!(text.contains("1048576"), "{text}");
    assert!(client.receive().is_none());
    server.wait_until_idle(0);
    server.assert_serves();
}

#[test]
fn the_error_for_an_oversized_message_reaches_a_client_that_is_still_sending() {
    let server = Server::with_door(|door| door.message_bytes_max = 1 << 20);
    let mut client = server.client();
    let value = vec![7; 8 << 20];
    let (correlation, bytes) = client.encode(&put::Request { value: &value, ..put(b"key") }, -1);
    client.write(&bytes);
    assert_eq!(client.reply_to(correlation).error().0, 69);
    assert!(client.receive().is_none());
}

#[test]
fn a_length_field_of_2_gib_takes_no_memory() {
    let server = Server::start();
    for length in [i32::MAX, i32::MIN, -1, 0, 5] {
        let mut client = server.client();
        let mut frame = length.to_le_bytes().to_vec();
        frame.extend_from_slice(&0xc000_u16.to_le_bytes());
        frame.extend_from_slice(&[0; 32]);
        client.write(&frame);
        let (code, _, text) = last_error(client);
        assert!(code == 69 || code == 18, "{length}: {code} {text}");
        assert!(text.contains("expected"), "{length}: {text}");
    }
    server.wait_until_idle(0);
    server.assert_serves();
}

#[test]
fn a_stranger_cannot_send_much_before_it_authenticates() {
    let server = Server::start();
    let mut client = Client::raw(server.address);
    client.write(&PREAMBLE);
    let value = vec![7; 1 << 20];
    let (correlation, bytes) = client.encode(&put::Request { value: &value, ..put(b"key") }, -1);
    client.write(&bytes);
    assert_eq!(client.reply_to(correlation).error().0, 69);
    assert!(client.receive().is_none());
}

#[test]
fn reordered_frames_are_refused_by_name() {
    let server = Server::start();
    let entries = vec![(b"key 1".as_slice(), b"value 1".as_slice()), (b"key 2", b"value 2")];
    let request = put_all::Request { name: "m", entries, trigger_map_loader: false };
    let (_, bytes) = server.client().encode(&request, -1);
    let starts = frame_starts(&bytes);
    let frame = |index: usize| &bytes[starts[index]..starts[index + 1]];
    // Initial frame, name, begin, key, value, key, value, end. The begin and the first key are
    // swapped.
    for order in [[0, 1, 3, 2, 4, 5, 6, 7], [0, 2, 1, 3, 4, 5, 6, 7]] {
        let mut client = server.client();
        for index in order {
            client.write(frame(index));
        }
        let (code, class, text) = last_error(client);
        assert_eq!((code, class.as_str()), (18, "com.hazelcast.core.HazelcastException"));
        assert!(text.contains("Map.putAll") && text.contains("expected"), "{text}");
    }
    server.wait_until_idle(0);
    server.assert_serves();
    assert_eq!(server.grid.map("m").unwrap().size(), 0);
}

#[test]
fn random_bytes_hurt_nobody_else() {
    let server = Server::with_door(|door| door.message_bytes_max = 1 << 20);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..200 {
        let mut client = if round % 2 == 0 { server.client() } else { Client::raw(server.address) };
        if round % 2 == 1 {
            client.write(&PREAMBLE);
        }
        let bytes: Vec<u8> = if round % 4 < 2 {
            (0..1024).map(|_| random() as u8).collect()
        } else {
            // Frames with random flags, types and contents, and with correct lengths.
            let mut bytes = Vec::new();
            for _ in 0..20 {
                let content = (random() % 40) as usize;
                bytes.extend_from_slice(&((content + FRAME_HEADER_BYTES) as i32).to_le_bytes());
                bytes.extend_from_slice(&(random() as u16).to_le_bytes());
                bytes.extend((0..content).map(|at| if at == 1 { (random() % 74) as u8 } else { random() as u8 & 1 }));
            }
            bytes
        };
        // The server may close the connection at any time.
        let _ = client.stream.write_all(&bytes);
        let _ = client.stream.shutdown(std::net::Shutdown::Write);
        let _ = client.stream.read_to_end(&mut Vec::new());
    }
    server.wait_until_idle(0);
    server.assert_serves();
}

#[test]
fn unknown_and_unserved_messages_are_refused_by_name_and_the_connection_lives_on() {
    let server = Server::start();
    let mut client = server.client();
    for (id, name) in [
        (0x01_fe_00_u32, "message 0x01fe00"),
        (0x7f_01_00, "message 0x7f0100"),
        (0x7f_12_34_56, "message 0x7f123456"),
        (0x03_01_00, "Queue.offer"),
        (0x21_04_00, "Sql.execute"),
        (0x01_2e_00, "Map.executeOnKey"),
        (0x01_27_00, "Map.valuesWithPredicate"),
        (0x01_02_01, "Map.get response"),
    ] {
        let (correlation, mut bytes) = client.encode(&SIZE, -1);
        bytes[FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + 4].copy_from_slice(&id.to_le_bytes());
        client.write(&bytes);
        let (code, class, text) = client.reply_to(correlation).error();
        assert_eq!((code, class.as_str()), (61, "java.lang.UnsupportedOperationException"));
        assert!(text.starts_with(&format!("{name} is not supported: ")), "{text}");
    }
    client.ok(&SIZE);
}

#[test]
fn text_that_is_not_utf_8_is_refused_by_name() {
    let server = Server::start();
    let mut client = server.client();
    let (correlation, mut bytes) = client.encode(&SIZE, -1);
    *bytes.last_mut().unwrap() = 0xff;
    client.write(&bytes);
    let (code, class, text) = client.reply_to(correlation).error();
    assert_eq!((code, class.as_str()), (60, "java.io.UTFDataFormatException"));
    assert!(text.contains("Map.size: field \"name\": not UTF-8"), "{text}");
    assert!(client.receive().is_none());
    server.assert_serves();
}

#[test]
fn a_null_where_a_value_is_required_is_refused_by_name_and_the_connection_lives_on() {
    let server = Server::start();
    let mut client = server.client();
    let (correlation, bytes) = client.encode(&put(b"key"), -1);
    let starts = frame_starts(&bytes);
    // Initial frame, name, key, value: a null frame instead of the key.
    let mut broken = bytes[..starts[2]].to_vec();
    broken.extend_from_slice(&6_i32.to_le_bytes());
    broken.extend_from_slice(&0x0400_u16.to_le_bytes());
    broken.extend_from_slice(&bytes[starts[3]..]);
    client.write(&broken);
    let (code, class, text) = client.reply_to(correlation).error();
    assert_eq!((code, class.as_str()), (37, "java.lang.NullPointerException"));
    assert_eq!(text, "Map.put: field \"key\": null where a value is required");
    client.ok(&SIZE);
}

#[test]
fn a_missing_field_is_refused_by_name() {
    let server = Server::start();
    let mut client = server.client();
    let (correlation, bytes) = client.encode(&put(b"key"), -1);
    let starts = frame_starts(&bytes);
    let mut broken = bytes[..starts[3]].to_vec();
    // Marks the frame of the key as the final one.
    broken[starts[2] + 5] |= 0x20;
    client.write(&broken);
    let (code, _, text) = client.reply_to(correlation).error();
    assert_eq!((code, text.as_str()), (18, "Map.put: field \"value\": missing"));
    assert!(client.receive().is_none());
}

#[test]
fn a_fragmented_message_is_put_together() {
    let server = Server::start();
    let mut client = server.client();
    let value = vec![7; 1000];
    let request = put::Request { value: &value, ..put(b"key") };
    let (correlation, bytes) = client.encode(&request, -1);
    let mut fragments = Vec::new();
    encode_fragmented(&bytes, 1, 1024, &mut fragments).unwrap();
    assert!(fragments.len() > bytes.len());
    client.write(&fragments);
    assert_eq!(client.reply_to(correlation).decode::<put::Response<'_>>().response, None);
    let reply = client.ok(&get::Request { name: "m", key: b"key", thread_id: 1 });
    assert_eq!(reply.decode::<get::Response<'_>>().response, Some(value.as_slice()));
    server.wait_until_idle(1);
}

#[test]
fn fragments_that_begin_in_the_middle_are_refused() {
    let server = Server::start();
    let mut client = server.client();
    let (_, bytes) = client.encode(&put(b"key"), -1);
    let mut fragments = Vec::new();
    encode_fragmented(&bytes, 1, 60, &mut fragments).unwrap();
    let first_final = frame_starts(&fragments);
    // Skips the first fragment, which ends with the first frame marked as final.
    let mut at = 0;
    for start in first_final {
        if fragments.get(start + 5).is_some_and(|flags| flags & 0x20 != 0) {
            at = start + i32::from_le_bytes(fragments[start..start + 4].try_into().unwrap()) as usize;
            break;
        }
    }
    client.write(&fragments[at..]);
    let (code, _, text) = last_error(client);
    assert_eq!(code, 18);
    assert!(text.contains("its first fragment is missing"), "{text}");
}

#[test]
fn a_million_keys_in_one_get_all_are_answered() {
    let server = Server::start();
    let mut client = server.client();
    for key in 0..1000_u32 {
        client.ok(&put(&key.to_be_bytes()));
    }
    let keys: Vec<[u8; 4]> = (0..1_000_000_u32).map(u32::to_be_bytes).collect();
    let request = get_all::Request { name: "m", keys: keys.iter().map(<[u8; 4]>::as_slice).collect() };
    let reply = client.ok(&request);
    let response: get_all::Response<'_> = reply.decode();
    assert_eq!(response.response.len(), 1000);
    server.wait_until_idle(1);
    server.assert_serves();
}

/// The limit of open files of this process.
fn open_files_max() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap_or_default();
    line.split_whitespace().nth(3).and_then(|soft| soft.parse().ok()).unwrap_or(1024)
}

#[test]
fn ten_thousand_connections_that_send_nothing_hold_no_buffers() {
    let server = Server::with_door(|door| door.unauthenticated_timeout = Duration::from_secs(600));
    // Both ends are in this process, together with other tests.
    let count = 10_000.min((open_files_max().saturating_sub(400)) / 2);
    let connections: Vec<TcpStream> = (0..count).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    wait_until("all are accepted", || server.monitor.statistics().connections == count);
    assert_eq!(server.monitor.statistics().buffer_bytes, 0);
    server.assert_serves();
    drop(connections);
    server.wait_until_idle(0);
}

#[test]
fn idle_clients_hold_no_buffers_after_work() {
    let server = Server::start();
    let mut clients: Vec<Client> = (0..50).map(|_| server.client()).collect();
    let value = vec![7; 300_000];
    for client in &mut clients {
        client.ok(&put::Request { value: &value, ..put(b"key") });
        client.ok(&get::Request { name: "m", key: b"key", thread_id: 1 });
    }
    server.wait_until_idle(50);
}

#[test]
fn a_client_that_never_reads_is_not_served_further() {
    const VALUE_BYTES: usize = 1 << 20;
    let server = Server::start();
    let value = vec![7; VALUE_BYTES];
    server.client().ok(&put::Request { value: &value, ..put(b"key") });
    let mut greedy = server.client();
    let mut batch = Vec::new();
    for _ in 0..2000 {
        batch.extend_from_slice(&greedy.encode(&get::Request { name: "m", key: b"key", thread_id: 1 }, -1).1);
    }
    // 2 GiB of replies are requested, and none is read.
    greedy.write(&batch);
    wait_until("replies wait", || server.monitor.statistics().buffer_bytes > VALUE_BYTES);
    server.assert_serves();
    let held = server.monitor.statistics().buffer_bytes;
    assert!(held < 8 * VALUE_BYTES, "{held} bytes are held for a client that does not read");

    // When the client reads, it receives all replies.
    for _ in 0..2000 {
        assert_ne!(greedy.receive().unwrap().message().id(), MessageId::ERROR);
    }
    server.wait_until_idle(2);
}

#[test]
fn messages_that_there_is_no_room_for_are_refused_and_passed_over() {
    const BUFFERS_BYTES: usize = 5 << 20;
    let grid = GridConfig { buffers_bytes_max: Some(BUFFERS_BYTES), ..GridConfig::default() };
    let server = Server::with(DoorConfig::default(), grid);
    let budget = server.grid.budget();
    let value = vec![7; 3 << 20];
    let mut unfinished = Vec::new();
    for key in ["a", "b", "c", "d", "e", "f"] {
        let mut client = server.client();
        let request = put::Request { value: &value, ..put(key.as_bytes()) };
        let (correlation, bytes) = client.encode(&request, -1);
        let (begin, end) = bytes.split_at(bytes.len() - 1_000);
        client.write(begin);
        if unfinished.is_empty() {
            wait_until("the first has its room", || budget.used() > value.len());
        } else {
            let (code, _, text) = client.reply_to(correlation).error();
            assert_eq!(code, 74, "{text}");
            assert!(text.contains("buffers_bytes_max"), "{text}");
        }
        assert!(budget.used() <= BUFFERS_BYTES);
        unfinished.push((client, correlation, end.to_vec()));
    }
    // The first message is completed. The other connections continue after the refused message.
    for (at, (client, correlation, end)) in unfinished.iter_mut().enumerate() {
        client.write(end);
        if at == 0 {
            assert!(client.reply_to(*correlation).message().id() != MessageId(0));
        }
        let expected = if at == 0 { 1 } else { at as i32 };
        assert_eq!(client.ok(&SIZE).decode::<size::Response>().response, expected);
        client.ok(&put(format!("small {at}").as_bytes()));
        if at == 0 {
            client.ok(&remove::Request { name: "m", key: b"a", thread_id: 1 });
        }
    }
    wait_until("all room is given back", || budget.used() == 0);
    let (mut client, _, _) = unfinished.pop().unwrap();
    client.ok(&put::Request { value: &value, ..put(b"f") });
}

#[test]
fn listeners_that_never_read_share_one_room() {
    const BUFFERS_BYTES: usize = 8 << 20;
    let grid = GridConfig { buffers_bytes_max: Some(BUFFERS_BYTES), ..GridConfig::default() };
    let server = Server::with(DoorConfig::default(), grid);
    let listen = add_entry_listener::Request { name: "m", include_value: true, listener_flags: 1023, local_only: true };
    let deaf: Vec<Client> = (0..10)
        .map(|_| {
            let mut client = server.client();
            client.ok(&listen);
            client
        })
        .collect();
    let mut client = server.client();
    let value = vec![7; 100_000];
    let mut most = 0;
    wait_until("listeners that do not read are disconnected", || {
        client.ok(&put::Request { value: &value, ..put(b"key") });
        most = most.max(server.grid.budget().used());
        server.grid.statistics().listeners < deaf.len()
    });
    assert!(most <= BUFFERS_BYTES, "{most}");
    drop(deaf);
    wait_until("all room is given back", || server.grid.budget().used() == 0);
    server.assert_serves();
}

#[test]
fn listeners_that_are_added_in_a_loop_take_no_more_room_than_there_is() {
    let grid = GridConfig { buffers_bytes_max: Some(64 << 10), ..GridConfig::default() };
    let server = Server::with(DoorConfig::default(), grid);
    let mut client = server.client();
    let listen = add_entry_listener::Request { name: "m", include_value: true, listener_flags: 1023, local_only: true };
    let mut added = 0;
    loop {
        let reply = client.call(&listen);
        if reply.message().id() != <add_entry_listener::Response as filbert_wire::Response>::ID {
            assert_eq!(reply.error().0, 74);
            break;
        }
        added += 1;
        assert!(added < 1_000);
    }
    client.close();
    wait_until("all room is given back", || server.grid.budget().used() == 0);
    server.assert_serves();
}

#[test]
fn wrong_passwords_are_slowed() {
    let guesses = filbert_listen::GuessLimits { free: 3, pause: Duration::from_secs(3_600), ..Default::default() };
    let server = Server::with_door(|door| {
        door.authentication = filbert_hazelcast::Authentication::Users(vec![("ann".into(), "a".into())]);
        door.guesses = guesses;
    });
    let authenticate = |password: &'static str| {
        let mut client = Client::raw(server.address);
        client.write(&PREAMBLE);
        let request = client.authentication();
        client.call(&authentication::Request { username: Some("ann"), password: Some(password), ..request })
    };
    let status = |password| authenticate(password).decode::<authentication::Response<'_>>().status;
    for _ in 0..10 {
        assert_eq!(status("a"), 0);
    }
    assert_eq!([status("b"), status("c"), status("d")], [1, 1, 1]);
    for password in ["e", "a"] {
        let (_, class, text) = authenticate(password).error();
        assert!(class.ends_with("AuthenticationException"), "{class}");
        assert!(text.contains("too many failed attempts"), "{text}");
    }
}

#[test]
fn a_listener_that_never_reads_is_disconnected() {
    let server = Server::with_door(|door| door.event_buffer_bytes_max = 1 << 20);
    let mut deaf = server.client();
    deaf.ok(&add_entry_listener::Request { name: "m", include_value: true, listener_flags: 1023, local_only: true });
    let mut client = server.client();
    let value = vec![7; 100_000];
    wait_until("the listener is disconnected", || {
        client.ok(&put::Request { value: &value, ..put(b"key") });
        server.grid.statistics().listeners == 0
    });
    wait_until("its connection is gone", || server.monitor.statistics().connections == 1);
    server.wait_until_idle(1);
    server.assert_serves();
}

#[test]
fn keys_that_all_belong_to_one_partition_are_served() {
    const KEYS: u32 = 20_000;
    let server = Server::start();
    let mut client = server.client();
    let keys: Vec<[u8; 4]> = (0..KEYS).map(u32::to_be_bytes).collect();
    let mut batch = Vec::new();
    for key in &keys {
        let request = set::Request { name: "m", key, value: b"value", thread_id: 1, ttl: -1 };
        batch.extend_from_slice(&client.encode(&request, 7).1);
    }
    let mut writer = client.stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || writer.write_all(&batch).unwrap());
    for _ in 0..KEYS {
        assert_ne!(client.receive().unwrap().message().id(), MessageId::ERROR);
    }
    writing.join().unwrap();
    for key in keys.iter().step_by(97) {
        let correlation = client.send_to(&get::Request { name: "m", key, thread_id: 1 }, 7);
        let reply = client.reply_to(correlation);
        assert_eq!(reply.decode::<get::Response<'_>>().response, Some(b"value".as_slice()));
    }
    assert_eq!(client.ok(&SIZE).decode::<size::Response>().response, KEYS as i32);
    server.assert_serves();
}

#[test]
fn values_of_nothing_and_of_100_mb_are_served_and_their_memory_comes_back() {
    let server = Server::start();
    let mut client = server.client();
    // The memory that the key's partition keeps for the map is allocated first.
    client.ok(&put(b"key"));
    client.ok(&remove::Request { name: "m", key: b"key", thread_id: 1 });
    let before = server.grid.statistics().memory_bytes;
    let large = vec![7; 100_000_000];
    for value in [b"".as_slice(), &large] {
        client.ok(&put::Request { value, ..put(b"key") });
        let reply = client.ok(&get::Request { name: "m", key: b"key", thread_id: 1 });
        assert!(reply.decode::<get::Response<'_>>().response == Some(value), "{} bytes", value.len());
        let reply = client.ok(&remove::Request { name: "m", key: b"key", thread_id: 1 });
        assert!(reply.decode::<remove::Response<'_>>().response == Some(value), "{} bytes", value.len());
    }
    server.wait_until_idle(1);
    assert_eq!(server.grid.statistics().memory_bytes, before);
    client.ok(&ping::Request {});
}
