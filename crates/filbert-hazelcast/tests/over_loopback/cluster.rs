//! Clients of several members: any member answers any request, in order, whichever member leads.
//! Requests for whole maps are gathered, and all clients are notified of changes of the cluster.

use std::time::Duration;

use crate::common::{
    Client, Reply,
    members::{GROUPS, Members, PARTITIONS},
    wait_until,
};
use filbert_grid::{ClusterView, PartitionLoss, replication::GroupId};
use filbert_wire::{
    MessageId, Uuid,
    structure::{FieldDescriptor, Schema},
    table::{
        client::{self, add_cluster_view_listener, authentication, send_schema},
        map::{self, *},
    },
};

const NAME: &str = "m";
const WRONG_TARGET: i32 = 62;

fn key(n: u32) -> Vec<u8> {
    [b"\0\0\0\0\xff\xff\xff\xf9".as_slice(), &n.to_be_bytes()].concat()
}

fn partition(key: &[u8]) -> u32 {
    filbert_data::partition_of(key, PARTITIONS).0
}

fn group(key: &[u8]) -> u32 {
    partition(key) % GROUPS
}

/// A key of a group that this one of `count` members leads.
fn key_at(member: usize, count: usize) -> Vec<u8> {
    (0..).map(key).find(|key| group(key) as usize % count == member).unwrap()
}

fn set<'a>(key: &'a [u8], value: &'a [u8]) -> set::Request<'a> {
    set::Request { name: NAME, key, value, thread_id: 1, ttl: -1 }
}

fn get(key: &[u8]) -> get::Request<'_> {
    get::Request { name: NAME, key, thread_id: 1 }
}

fn value_of(reply: &Reply) -> Option<Vec<u8>> {
    reply.decode::<get::Response<'_>>().response.map(<[u8]>::to_vec)
}

fn size_by(client: &mut Client) -> i32 {
    client.ok(&size::Request { name: NAME }).decode::<size::Response>().response
}

/// Members whose requests wait only briefly for a leader.
fn impatient(count: usize) -> Members {
    Members::with(count, |door| door.relay_hold_max = Duration::from_millis(20))
}

/// Members whose requests wait for a leader without a limit.
fn patient(count: usize) -> Members {
    Members::with(count, |door| door.relay_hold_max = Duration::from_secs(600))
}

#[test]
fn any_key_is_reached_through_any_member() {
    let members = Members::start(3);
    let mut clients: Vec<Client> = members.0.iter().map(|member| member.server.client()).collect();
    for n in 0..300 {
        let writer = n as usize % 3;
        // With and without the partition in the header.
        let key = key(n);
        let partition = if n % 2 == 0 { partition(&key) as i32 } else { -1 };
        let correlation = clients[writer].send_to(&set(&key, &n.to_be_bytes()), partition);
        clients[writer].reply_to(correlation).decode::<set::Response>();
        for client in &mut clients {
            assert_eq!(value_of(&client.ok(&get(&key))), Some(n.to_be_bytes().to_vec()));
        }
    }
    // Each entry is at the leader of its partition.
    let sizes: Vec<usize> = members.0.iter().map(|member| member.server.grid.map(NAME).unwrap().size()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 300, "{sizes:?}");
    assert!(sizes.iter().all(|size| *size > 50), "{sizes:?}");
}

#[test]
fn a_pipelined_get_sees_the_set_before_it_wherever_it_is_led() {
    let members = Members::start(2);
    let mut client = members.0[0].server.client();
    let (mut batch, mut sets, mut gets) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..3_000_u32 {
        let key = key(n % 7);
        let value = n.to_be_bytes();
        let (correlation, bytes) = client.encode(&set(&key, &value), partition(&key) as i32);
        sets.push(correlation);
        batch.extend_from_slice(&bytes);
        if n % 3 == 0 {
            let (correlation, bytes) = client.encode(&get(&key), partition(&key) as i32);
            gets.push((correlation, value));
            batch.extend_from_slice(&bytes);
        }
    }
    std::thread::scope(|scope| {
        let mut writer = client.stream.try_clone().unwrap();
        scope.spawn(move || std::io::Write::write_all(&mut writer, &batch).unwrap());
        for (correlation, value) in gets {
            assert_eq!(value_of(&client.reply_to(correlation)), Some(value.to_vec()));
        }
        for correlation in sets {
            client.reply_to(correlation).decode::<set::Response>();
        }
    });
}

#[test]
fn a_client_follows_a_leader_that_moves() {
    let members = Members::start(2);
    let mut client = members.0[0].server.client();
    let key = key_at(1, 2);
    client.ok(&set(&key, b"there"));
    members.move_group(group(&key), 0);
    // The log was not copied, so the value shows which member has answered.
    assert_eq!(value_of(&client.ok(&get(&key))), None);
    client.ok(&set(&key, b"here"));
    assert_eq!(value_of(&client.ok(&get(&key))), Some(b"here".to_vec()));
    members.move_group(group(&key), 1);
    assert_eq!(value_of(&client.ok(&get(&key))), Some(b"there".to_vec()));
}

#[test]
fn a_request_waits_for_those_of_its_partition_that_went_elsewhere() {
    let members = Members::start(2);
    let mut client = members.0[0].server.client();
    let there = key_at(1, 2);
    client.ok(&set(&there, b"v"));
    members.0[1].loopback.pause();
    let first = client.send(&set(&there, b"w"));
    wait_until("the change is on its way there", || members.0[1].loopback.queued() == 1);
    // This member has learned that it leads the partition. The other member has not noticed it yet.
    let mut view = members.0[0].cluster.now();
    view.leaders[partition(&there) as usize] = Some(members.0[0].uuid());
    members.0[0].cluster.set(view);
    members.0[0].loopback.elect(&members.0[0].server.grid, GroupId(group(&there)));
    let held_bytes = || members.0[0].server.monitor.statistics().buffer_bytes;
    let before = held_bytes();
    let second = client.send(&get(&there));
    wait_until("the request waits", || held_bytes() > before);
    members.0[1].loopback.resume();
    let order: Vec<i64> = (0..2).map(|_| client.receive().unwrap().message().correlation_id().0).collect();
    assert_eq!(order, [first, second]);

    // The same in the other direction.
    let here = key_at(0, 2);
    members.0[0].loopback.pause();
    let first = client.send(&set(&here, b"w"));
    wait_until("the change is on its way here", || members.0[0].loopback.queued() == 1);
    members.0[1].loopback.elect(&members.0[1].server.grid, GroupId(group(&here)));
    let mut view = members.0[0].cluster.now();
    view.leaders[partition(&here) as usize] = Some(members.0[1].uuid());
    members.0[0].cluster.set(view);
    let before = held_bytes();
    let second = client.send(&get(&here));
    wait_until("the request waits", || held_bytes() > before);
    members.0[0].loopback.resume();
    let order: Vec<i64> = (0..2).map(|_| client.receive().unwrap().message().correlation_id().0).collect();
    assert_eq!(order, [first, second]);
}

#[test]
fn requests_wait_until_it_is_known_who_leads_and_others_go_on() {
    let members = patient(2);
    let mut client = members.0[0].server.client();
    let (free, lost) = (key_at(0, 2), key_at(1, 2));
    client.ok(&set(&free, b"v"));
    // According to the view another member leads, but no member does.
    members.0[1].loopback.depose(&members.0[1].server.grid, GroupId(group(&lost)));
    let entries = vec![(lost.as_slice(), b"all".as_slice())];
    let put_all = put_all::Request { name: NAME, entries, trigger_map_loader: false };
    let first = client.send_to(&put_all, partition(&lost) as i32);
    let second = client.send(&set(&lost, b"last"));
    let third = client.send(&get(&lost));
    let lock = lock::Request { name: NAME, key: &lost, thread_id: 1, ttl: -1, reference_id: 5 };
    let fourth = client.send(&lock);
    let sizes = client.send(&size::Request { name: NAME });
    assert_eq!(value_of(&client.ok(&get(&free))), Some(b"v".to_vec()));
    members.move_group(group(&lost), 0);
    client.reply_to(first).decode::<put_all::Response>();
    client.reply_to(second).decode::<set::Response>();
    assert_eq!(value_of(&client.reply_to(third)), Some(b"last".to_vec()));
    client.reply_to(fourth).decode::<lock::Response>();
    assert!(client.reply_to(sizes).decode::<size::Response>().response >= 1);
}

#[test]
fn requests_wait_where_this_member_does_not_lead_any_more() {
    let members = patient(2);
    let mut client = members.0[0].server.client();
    let here = key_at(0, 2);
    client.ok(&set(&here, b"v"));
    members.0[0].loopback.depose(&members.0[0].server.grid, GroupId(group(&here)));
    let gets: Vec<i64> = (0..20).map(|_| client.send(&get(&here))).collect();
    let change = client.send(&set(&here, b"w"));
    let seen = client.send(&get(&here));
    members.move_group(group(&here), 1);
    for get in gets {
        assert_eq!(value_of(&client.reply_to(get)), None, "the log was not copied");
    }
    client.reply_to(change).decode::<set::Response>();
    assert_eq!(value_of(&client.reply_to(seen)), Some(b"w".to_vec()));
}

#[test]
fn requests_wait_for_a_member_that_cannot_be_reached_until_another_leads() {
    let members = patient(2);
    let mut client = members.0[0].server.client();
    let key = key_at(1, 2);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    members.change_views(|view| view.members[1].port = port);
    let changes: Vec<i64> = (0..100_u32).map(|n| client.send(&set(&key, &n.to_be_bytes()))).collect();
    let read = client.send(&get(&key));
    members.move_group(group(&key), 0);
    for change in changes {
        client.reply_to(change).decode::<set::Response>();
    }
    assert_eq!(value_of(&client.reply_to(read)), Some(99_u32.to_be_bytes().to_vec()));
}

#[test]
fn requests_that_wait_for_a_leader_are_bounded_and_answered_after_a_while() {
    let members = Members::with(2, |door| {
        door.relay_hold_max = Duration::from_millis(50);
        door.write_buffer_bytes_max = 10_000;
    });
    let mut client = members.0[0].server.client();
    let key = key_at(1, 2);
    members.0[1].loopback.depose(&members.0[1].server.grid, GroupId(group(&key)));
    let held_bytes = || members.0[0].server.monitor.statistics().buffer_bytes;
    let changes: Vec<i64> = (0..200).map(|_| client.send(&set(&key, &[7; 1_000]))).collect();
    wait_until("requests wait", || held_bytes() > 10_000);
    let codes: Vec<i32> = changes.into_iter().map(|change| client.reply_to(change).error().0).collect();
    assert!(codes.iter().all(|code| *code == WRONG_TARGET), "{codes:?}");
}

/// Sends a change of a key that the other member leads, and makes that member hang before it
/// receives the change.
fn change_at_one_that_hangs(members: &Members, client: &mut Client, key: &[u8]) -> i64 {
    client.ok(&set(key, b"v"));
    let wire = &members.0[1].wire;
    wire.hang();
    let before = wire.passed();
    let change = client.send(&set(key, b"w"));
    wait_until("the change is on its way", || wire.passed() > before);
    change
}

#[test]
fn a_leader_that_hangs_is_not_waited_for_when_another_leads() {
    let members = patient(2);
    let mut client = members.0[0].server.client();
    let key = key_at(1, 2);
    let change = change_at_one_that_hangs(&members, &mut client, &key);
    let read = client.send(&get(&key));
    members.move_group(group(&key), 0);
    let (code, class, _) = client.reply_to(change).error();
    assert_eq!((code, class.as_str()), (80, "com.hazelcast.core.IndeterminateOperationStateException"));
    assert_eq!(value_of(&client.reply_to(read)), None, "the log was not copied");
}

#[test]
fn a_member_that_shows_no_sign_of_life_is_not_waited_for() {
    let members = patient(2);
    let mut client = members.0[0].server.client();
    let key = key_at(1, 2);
    let change = change_at_one_that_hangs(&members, &mut client, &key);
    let read = client.send(&get(&key));
    assert_eq!(client.reply_to(change).error().0, 80);
    members.move_group(group(&key), 0);
    assert_eq!(value_of(&client.reply_to(read)), None);
}

#[test]
fn a_lost_connection_says_whether_a_request_may_be_retried() {
    let members = Members::start(2);
    let mut client = members.0[0].server.client();
    let key = key_at(1, 2);
    client.ok(&set(&key, b"v"));
    members.0[1].loopback.pause();
    let change = client.send(&set(&key, b"w"));
    wait_until("the change is on its way", || members.0[1].loopback.queued() == 1);
    // The read waits at that member for the change.
    let before = members.0[1].wire.passed();
    let read = client.send(&get(&key));
    wait_until("the read is there", || members.0[1].wire.passed() > before);
    members.0[1].wire.cut();
    let (code, class, _) = client.reply_to(change).error();
    assert_eq!((code, class.as_str()), (80, "com.hazelcast.core.IndeterminateOperationStateException"));
    // A request that changes nothing is repeated, on another connection.
    assert_eq!(value_of(&client.reply_to(read)), Some(b"v".to_vec()));
    members.0[1].loopback.resume();
    // The next request opens a new connection.
    client.ok(&set(&key, b"x"));
    assert_eq!(value_of(&client.ok(&get(&key))), Some(b"x".to_vec()));
}

#[test]
fn an_unreachable_member_is_a_reason_to_retry() {
    let members = impatient(2);
    let mut client = members.0[0].server.client();
    let key = key_at(1, 2);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    members.change_views(|view| view.members[1].port = port);
    assert_eq!(client.error(&set(&key, b"v")).0, WRONG_TARGET);
    // If another member has the address, no request is sent.
    let address = members.0[0].wire.address;
    members.change_views(|view| view.members[1].port = address.port());
    let (code, _, text) = client.error(&set(&key, b"v"));
    assert_eq!(code, WRONG_TARGET);
    assert!(text.contains("is another member"), "{text}");
    // A member that leaves is not waited for.
    members.reset_views();
    members.0[1].server.grid.map(NAME).unwrap();
    members.0[1].loopback.pause();
    let waiting = client.send(&set(&key, b"v"));
    wait_until("the change is on its way", || members.0[1].loopback.queued() == 1);
    members.change_views(|view| _ = view.members.pop());
    assert_eq!(client.reply_to(waiting).error().0, 80);
    members.0[1].loopback.resume();
}

#[test]
fn nothing_is_sent_on_twice() {
    let members = impatient(2);
    let [a, b] = [members.0[0].uuid(), members.0[1].uuid()];
    // Each member believes that the other one leads, and no member does.
    for group in 0..GROUPS {
        for member in &members.0 {
            member.loopback.depose(&member.server.grid, GroupId(group));
        }
    }
    let mut view = members.view();
    view.leaders.fill(Some(b));
    members.0[0].cluster.set(view.clone());
    view.leaders.fill(Some(a));
    members.0[1].cluster.set(view);
    let mut client = members.0[0].server.client();
    assert_eq!(client.error(&get(&key(1))).0, WRONG_TARGET);
    assert_eq!(client.error(&set(&key(1), b"v")).0, WRONG_TARGET);
    assert_eq!(client.error(&size::Request { name: NAME }).0, WRONG_TARGET);
    let connections = members.0.iter().map(|member| member.server.monitor.statistics().connections);
    assert_eq!(connections.collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn who_claims_to_be_a_member_gains_nothing() {
    let members = Members::start(2);
    let mut stranger = Client::raw(members.0[0].server.address);
    stranger.write(b"CPR");
    let (code, ..) = stranger.error(&size::Request { name: NAME });
    assert_eq!(code, 3, "it must authenticate");
    assert!(stranger.receive().is_none());
    let mut client = Client::raw(members.0[0].server.address);
    client.write(b"CPR");
    let reply = client.call(&client.authentication());
    assert_eq!(reply.decode::<authentication::Response<'_>>().status, 0);
    client.ok(&set(&key_at(0, 2), b"v"));
    assert_eq!(client.error(&set(&key_at(1, 2), b"v")).0, WRONG_TARGET);
    assert_eq!(client.error(&size::Request { name: NAME }).0, WRONG_TARGET);
    // Messages between members are not accepted from clients.
    let mut client = members.0[0].server.client();
    let (correlation, mut bytes) = client.encode(&size::Request { name: NAME }, -1);
    bytes[6..10].copy_from_slice(&0x7e_01_00_u32.to_le_bytes());
    client.write(&bytes);
    assert_eq!(client.reply_to(correlation).error().0, 61);
}

#[test]
fn a_whole_map_is_that_of_all_members() {
    let members = Members::start(3);
    let mut clients: Vec<Client> = members.0.iter().map(|member| member.server.client()).collect();
    for n in 0..100 {
        clients[0].ok(&set(&key(n), &n.to_be_bytes()));
    }
    for client in &mut clients {
        assert_eq!(size_by(client), 100);
        let is_empty = client.ok(&is_empty::Request { name: NAME }).decode::<is_empty::Response>().response;
        assert!(!is_empty);
        for (value, expected) in [(7_u32, true), (1000, false)] {
            let request = contains_value::Request { name: NAME, value: &value.to_be_bytes() };
            assert_eq!(client.ok(&request).decode::<contains_value::Response>().response, expected);
        }
        let reply = client.ok(&key_set::Request { name: NAME });
        let mut found: Vec<Vec<u8>> =
            reply.decode::<key_set::Response<'_>>().response.iter().map(|key| key.to_vec()).collect();
        found.sort();
        assert_eq!(found, (0..100).map(key).collect::<Vec<_>>());
        let reply = client.ok(&values::Request { name: NAME });
        let mut found: Vec<&[u8]> = reply.decode::<values::Response<'_>>().response;
        found.sort_unstable();
        assert_eq!(found, (0..100_u32).map(u32::to_be_bytes).collect::<Vec<_>>());
        let reply = client.ok(&entry_set::Request { name: NAME });
        let found = reply.decode::<entry_set::Response<'_>>().response;
        assert!(found.iter().all(|(key, value)| key[8..] == **value) && found.len() == 100);
    }
    clients[1].ok(&clear::Request { name: NAME });
    for client in &mut clients {
        assert_eq!(size_by(client), 0);
        assert!(client.ok(&is_empty::Request { name: NAME }).decode::<is_empty::Response>().response);
    }
    clients[2].ok(&set(&key(1), b"v"));
    clients[2].ok(&evict_all::Request { name: NAME });
    assert_eq!(size_by(&mut clients[0]), 0);
}

#[test]
fn a_whole_map_is_not_answered_for_by_parts_that_moved() {
    let members = impatient(2);
    let mut client = members.0[0].server.client();
    client.ok(&set(&key(1), b"v"));
    // The view and the logs contradict each other.
    members.lead(1, 0);
    assert_eq!(client.error(&size::Request { name: NAME }).0, WRONG_TARGET);
    assert_eq!(client.error(&clear::Request { name: NAME }).0, WRONG_TARGET);
    members.lead(1, 1);
    assert!(size_by(&mut client) <= 1);
    members.change_views(|view| view.leaders[5] = None);
    assert_eq!(client.error(&size::Request { name: NAME }).0, WRONG_TARGET);
    let request = values_with_predicate::Request { name: NAME, predicate: b"" };
    let (code, _, text) = client.error(&request);
    assert_eq!(code, 61);
    // With an engine the request would be answered here.
    assert!(text.contains("queries are not switched on in this server"), "{text}");
}

#[test]
fn the_cluster_is_reported_and_its_changes_are_pushed() {
    let members = Members::start(2);
    let mut client = Client::raw(members.0[0].server.address);
    client.write(b"CP2");
    let reply = client.call(&client.authentication());
    let response: authentication::Response<'_> = reply.decode();
    let addresses: Vec<(Uuid, i32)> =
        response.member_infos.iter().map(|member| (member.uuid, member.address.port)).collect();
    let expected: Vec<(Uuid, i32)> =
        members.0.iter().map(|member| (member.uuid(), i32::from(member.wire.address.port()))).collect();
    assert_eq!(addresses, expected);
    assert_eq!((response.cluster_id, response.member_uuid), (Uuid::from_u128(7), Some(members.0[0].uuid())));
    assert_eq!(response.address.as_ref().map(|address| address.port), Some(expected[0].1));
    assert_eq!(response.partitions.iter().map(|(_, owned)| owned.len()).sum::<usize>(), 271);

    client.ok(&add_cluster_view_listener::Request {});
    let first = (client.event(), client.event());
    let version = members.0[0].cluster.now().leaders_version;
    assert_eq!(first.0.decode::<add_cluster_view_listener::MembersViewEvent<'_>>().version, version);
    assert_eq!(first.1.decode::<add_cluster_view_listener::PartitionsViewEvent>().version, version);
    client.event();
    client.event();

    // Partition 5 has no leader for a while. Then another member leads it.
    let was = members.0[0].cluster.now().leaders[5].unwrap();
    let owner_of_5 = |event: &Reply| {
        let event: add_cluster_view_listener::PartitionsViewEvent = event.decode();
        event.partitions.iter().find(|(_, owned)| owned.contains(&5)).map(|(owner, _)| *owner)
    };
    let mut view = members.0[0].cluster.now();
    view.leaders[5] = None;
    view.leaders_version += 1;
    members.0[0].cluster.set(view.clone());
    assert_eq!(owner_of_5(&client.event()), Some(was));
    view.leaders[5] = Some(members.0[0].uuid());
    view.leaders_version += 1;
    members.0[0].cluster.set(view.clone());
    assert_eq!(owner_of_5(&client.event()), Some(members.0[0].uuid()));
    // An older view is not sent to clients, a later one is.
    view.leaders_version -= 2;
    members.0[0].cluster.set(view.clone());
    view.leaders_version += 3;
    view.members_version += 1;
    view.members.pop();
    members.0[0].cluster.set(view.clone());
    let event = client.event();
    let event: add_cluster_view_listener::MembersViewEvent<'_> = event.decode();
    assert_eq!((event.version, event.member_infos.len()), (view.members_version, 1));
    let event = client.event().decode::<add_cluster_view_listener::PartitionsViewEvent>();
    assert_eq!(event.version, view.leaders_version);
}

#[test]
fn data_losses_are_sent_once_to_each_listener() {
    let members = Members::start(2);
    let [here, other] = [0, 1].map(|at: usize| members.0[at].uuid());
    let lose = |partition: usize, epoch: u64, kept_by: Uuid| {
        let mut view = members.0[0].cluster.now();
        view.losses.resize(PARTITIONS as usize, None);
        view.losses[partition] = Some(PartitionLoss { epoch, kept_by, copies_lost: 2 });
        members.0[0].cluster.set(view);
    };
    lose(1, 7, here);
    let mut of_all = members.0[0].server.client();
    of_all.ok(&client::add_partition_lost_listener::Request { local_only: false });
    let mut of_this = members.0[0].server.client();
    of_this.ok(&client::add_partition_lost_listener::Request { local_only: true });
    let mut of_map = members.0[0].server.client();
    let added = of_map.ok(&map::add_partition_lost_listener::Request { name: NAME, local_only: false });
    // Earlier losses are not sent to anyone.
    lose(5, 8, other);
    lose(6, 8, here);
    for (partition, kept_by) in [(5, other), (6, here)] {
        let event = of_all.event().decode::<client::add_partition_lost_listener::PartitionLostEvent>();
        assert_eq!((event.partition_id, event.lost_backup_count, event.source), (partition, 2, Some(kept_by)));
        let event = of_map.event().decode::<map::add_partition_lost_listener::MapPartitionLostEvent>();
        assert_eq!((event.partition_id, event.uuid), (partition, kept_by));
    }
    // This client is notified only of losses where the member itself held the remaining replica.
    assert_eq!(of_this.event().decode::<client::add_partition_lost_listener::PartitionLostEvent>().partition_id, 6);
    let registration_id = added.decode::<map::add_partition_lost_listener::Response>().response;
    let remove = map::remove_partition_lost_listener::Request { name: NAME, registration_id };
    for expected in [true, false] {
        let removed = of_map.ok(&remove).decode::<map::remove_partition_lost_listener::Response>();
        assert_eq!(removed.response, expected);
    }
    // The same partition again. A removed listener gets no event: the next message that arrives is
    // a reply.
    lose(5, 9, here);
    let event = of_all.event().decode::<client::add_partition_lost_listener::PartitionLostEvent>();
    assert_eq!((event.partition_id, event.source), (5, Some(here)));
    assert!(!of_map.ok(&remove).decode::<map::remove_partition_lost_listener::Response>().response);
}

#[test]
fn a_partition_that_another_member_leads_is_reported_as_migrated_once() {
    use client::add_migration_listener::{MigrationEvent, ReplicaMigrationEvent, Request, Response};
    let members = Members::start(2);
    let [here, other] = [0, 1].map(|at: usize| members.0[at].uuid());
    let lead = |partitions: &[(usize, Option<Uuid>)]| {
        let mut view = members.0[0].cluster.now();
        for (partition, leader) in partitions {
            view.leaders[*partition] = *leader;
        }
        view.leaders_version += 1;
        members.0[0].cluster.set(view);
    };
    lead(&[(5, Some(here)), (6, Some(here)), (7, None)]);
    let mut of_all = members.0[0].server.client();
    let added = of_all.ok(&Request { local_only: false }).decode::<Response>();
    let mut of_each = members.0[0].server.client();
    of_each.ok(&Request { local_only: true });
    // Partitions 5 and 6 have no leader for a short time, and then a new leader. Partition 7 has
    // had no known leader.
    lead(&[(5, None), (6, None)]);
    lead(&[(5, Some(other)), (6, Some(other))]);
    let expect_moves = |client: &mut Client, moved: &[(i32, Uuid, Uuid)]| {
        let count = moved.len() as i32;
        let started = client.event();
        let started = started.decode::<MigrationEvent>();
        let state = started.migration_state;
        assert_eq!((started.kind, state.planned_migrations, state.completed_migrations), (0, count, 0));
        for (completed, (partition, source, destination)) in (1..).zip(moved) {
            let event = client.event();
            let event = event.decode::<ReplicaMigrationEvent>();
            assert_eq!((event.partition_id, event.replica_index, event.success), (*partition, 0, true));
            assert_eq!((event.source_uuid, event.dest_uuid), (Some(*source), Some(*destination)));
            assert_eq!(event.migration_state.completed_migrations, completed);
        }
        let finished = client.event();
        let finished = finished.decode::<MigrationEvent>();
        assert_eq!((finished.kind, finished.migration_state.completed_migrations), (1, count));
    };
    expect_moves(&mut of_all, &[(5, here, other), (6, here, other)]);
    // Clients that have registered with all members are notified by the new leader. So the next
    // message here is a reply.
    of_each.ok(&client::ping::Request {});
    lead(&[(6, Some(here)), (7, Some(here))]);
    expect_moves(&mut of_all, &[(6, other, here)]);
    expect_moves(&mut of_each, &[(6, other, here)]);
    let remove = client::remove_migration_listener::Request { registration_id: added.response };
    for expected in [true, false] {
        let removed = of_all.ok(&remove).decode::<client::remove_migration_listener::Response>();
        assert_eq!(removed.response, expected);
    }
    lead(&[(6, Some(other))]);
    of_all.ok(&client::ping::Request {});
}

#[test]
fn a_member_that_is_joining_sends_clients_elsewhere() {
    let members = Members::start(2);
    let mut view = members.view();
    view.members.remove(0);
    members.0[0].cluster.set(ClusterView { members_version: view.members_version + 1, ..view });
    let mut client = Client::raw(members.0[0].server.address);
    client.write(b"CP2");
    let reply = client.call(&client.authentication());
    let (code, class, _) = reply.error();
    assert_eq!((code, class.as_str()), (19, "com.hazelcast.core.HazelcastInstanceNotActiveException"));
    assert!(client.receive().is_none());
}

#[test]
fn who_has_locks_at_other_members_is_known_there_as_long_as_it_is_connected() {
    let members = Members::start(2);
    let mut client = members.0[0].server.client();
    let key = key_at(1, 2);
    let lock = lock::Request { name: NAME, key: &key, thread_id: 1, ttl: -1, reference_id: 1 };
    client.ok(&lock);
    let mut other = members.0[1].server.client();
    let request = is_locked::Request { name: NAME, key: &key };
    assert!(other.ok(&request).decode::<is_locked::Response>().response);
    // A request through another member belongs to the same client.
    client.ok(&set(&key, b"v"));
    let grid = &members.0[1].server.grid;
    assert!(grid.lock_owners_elsewhere().is_empty(), "the client has a connection here, made by the other member");
    client.close();
    wait_until("no connection is left", || members.0[0].server.monitor.statistics().connections == 0);
    wait_until("nor there", || members.0[1].server.monitor.statistics().connections == 1);
    // The client may have connected to another member. When no member has a connection of it, the
    // members (filbert-member) release its locks.
    wait_until("the client is not known there", || grid.lock_owners_elsewhere().len() == 1);
    let owners = grid.lock_owners_elsewhere();
    assert!(other.ok(&request).decode::<is_locked::Response>().response);
    grid.release_locks(&owners);
    wait_until("the lock is free", || !other.ok(&request).decode::<is_locked::Response>().response);
}

#[test]
fn a_lock_that_is_waited_for_elsewhere_holds_up_nobody() {
    let members = Members::start(2);
    let (mut owner, mut client) = (members.0[1].server.client(), members.0[0].server.client());
    let key = key_at(1, 2);
    let lock = |thread_id| lock::Request { name: NAME, key: &key, thread_id, ttl: -1, reference_id: thread_id };
    owner.ok(&lock(1));
    let waiting = client.send(&lock(2));
    assert_eq!(value_of(&client.ok(&get(&key))), None);
    owner.ok(&unlock::Request { name: NAME, key: &key, thread_id: 1, reference_id: 9 });
    client.reply_to(waiting).decode::<lock::Response>();
}

#[test]
fn a_client_of_one_member_hears_of_the_events_of_all() {
    let members = Members::start(3);
    let mut client = members.0[0].server.client();
    let mut other = members.0[1].server.client();
    let late = members.0[2].uuid();
    members.change_views(|view| {
        view.members.pop();
        for leader in &mut view.leaders {
            *leader = leader.filter(|leader| *leader != late);
        }
    });
    let request =
        |local_only| add_entry_listener::Request { name: NAME, include_value: true, listener_flags: 0xff, local_only };
    let id = client.ok(&request(false)).decode::<add_entry_listener::Response>().response;
    let listeners = |member: usize| members.0[member].server.grid.statistics().listeners;
    assert_eq!([listeners(0), listeners(1), listeners(2)], [1, 1, 0]);
    for key in [key_at(0, 3), key_at(1, 3)] {
        other.ok(&set(&key, b"v"));
        let event = client.event();
        assert_eq!(event.decode::<add_entry_listener::EntryEvent<'_>>().key, Some(key.as_slice()));
    }
    // The listener is also registered at a member that joins later.
    members.reset_views();
    wait_until("the listener is there", || listeners(2) == 1);
    other.ok(&set(&key_at(2, 3), b"v"));
    client.event().decode::<add_entry_listener::EntryEvent<'_>>();
    // An event of a whole map is sent once.
    other.ok(&clear::Request { name: NAME });
    let event = client.event();
    let event: add_entry_listener::EntryEvent<'_> = event.decode();
    assert_eq!((event.event_type, event.number_of_affected_entries), (0x40, 3));
    // A lost connection is opened again, with the listener.
    members.0[2].wire.cut();
    wait_until("the listener has gone", || listeners(2) == 0);
    wait_until("the listener is there again", || listeners(2) == 1);
    let request = remove_entry_listener::Request { name: NAME, registration_id: id };
    assert!(client.ok(&request).decode::<remove_entry_listener::Response>().response);
    wait_until("nobody listens", || (0..3).all(|member| listeners(member) == 0));
}

#[test]
fn schemas_are_known_by_all_members() {
    let members = Members::start(2);
    let mut client = members.0[0].server.client();
    let schema = Schema { type_name: "t", fields: vec![FieldDescriptor { field_name: "f", kind: 7 }] };
    let reply = client.ok(&send_schema::Request { schema });
    let mut found = reply.decode::<send_schema::Response>().replicated_members;
    found.sort_unstable();
    let mut expected: Vec<Uuid> = members.0.iter().map(|member| member.uuid()).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert!(members.0.iter().all(|member| member.server.grid.schemas().len() == 1));
    assert_ne!(reply.message().id(), MessageId::ERROR);
}

#[test]
fn requests_in_flight_to_other_members_are_bounded() {
    let members = Members::start(2);
    let mut client = members.0[0].server.client();
    let there: Vec<Vec<u8>> = (0..).map(key).filter(|key| group(key) % 2 == 1).take(200).collect();
    client.ok(&set(&there[0], b"v"));
    members.0[1].loopback.pause();
    let value = vec![1; 100_000];
    let (mut batch, mut correlations) = (Vec::new(), Vec::new());
    for key in &there {
        let (correlation, bytes) = client.encode(&set(key, &value), partition(key) as i32);
        correlations.push(correlation);
        batch.extend_from_slice(&bytes);
    }
    std::thread::scope(|scope| {
        let mut writer = client.stream.try_clone().unwrap();
        scope.spawn(move || std::io::Write::write_all(&mut writer, &batch).unwrap());
        let passed = || members.0[1].wire.passed();
        wait_until("as much is on its way as may be", || passed() > 1_000_000);
        // Other clients are served in the meantime.
        members.0[0].server.client().ok(&get(&there[0]));
        assert!(passed() < 1_300_000, "{}", passed());
        members.0[1].loopback.resume();
        for correlation in correlations {
            client.reply_to(correlation).decode::<set::Response>();
        }
    });
    assert_eq!(size_by(&mut client), 200);
}

#[test]
fn replies_of_others_wait_where_they_are_until_the_client_reads() {
    let members = Members::start(2);
    let mut client = members.0[0].server.client();
    let key = key_at(1, 2);
    let value = vec![1; 1 << 20];
    client.ok(&set(&key, &value));
    let gets: Vec<i64> = (0..100).map(|_| client.send(&get(&key))).collect();
    let held_bytes = || members.0[0].server.monitor.statistics().buffer_bytes;
    wait_until("replies wait", || held_bytes() > 1 << 20);
    members.0[0].server.client().ok(&get(&key));
    assert!(held_bytes() < 8 << 20, "{}", held_bytes());
    for correlation in gets {
        assert_eq!(value_of(&client.reply_to(correlation)).map(|value| value.len()), Some(1 << 20));
    }
}
