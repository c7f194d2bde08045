//! Query caches of several members: one member keeps a cache and receives all changes, whichever
//! member leads. The others stand by, and the client's content is correct again after the loss of
//! that member.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, atomic::Ordering};
use std::time::Duration;

use crate::common::{
    Client,
    members::{GROUPS, Members, PARTITIONS},
    wait_until,
};
use filbert_grid::replication::GroupId;
use filbert_test_engine::Engine;
use filbert_wire::{
    MessageId, Uuid,
    structure::QueryCacheEventData,
    table::{continuous_query::*, map},
};

const MAP: &str = "m";
const CACHE: &str = "cache";

fn start() -> Members {
    // A short timeout, so that homes are checked often.
    let members = Members::copying(3, MAP, |door| door.close_timeout = Duration::from_millis(400));
    for member in &members.0 {
        assert!(member.server.grid.serve_queries(Arc::new(Engine::default())));
    }
    members
}

fn key(n: u32) -> Vec<u8> {
    format!("key {n}").into_bytes()
}

fn partition(key: &[u8]) -> u32 {
    filbert_data::partition_of(key, PARTITIONS).0
}

fn group(key: &[u8]) -> u32 {
    partition(key) % GROUPS
}

fn put(client: &mut Client, key: &[u8], value: &str) {
    client.ok(&map::set::Request { name: MAP, key, value: value.as_bytes(), thread_id: 1, ttl: -1 });
}

fn remove(client: &mut Client, key: &[u8]) {
    client.ok(&map::remove::Request { name: MAP, key, thread_id: 1 });
}

fn create() -> publisher_create_with_value::Request<'static> {
    publisher_create_with_value::Request {
        map_name: MAP,
        cache_name: CACHE,
        predicate: b"a",
        batch_size: 1,
        buffer_size: 1_000,
        delay_seconds: 0,
        populate: true,
        coalesce: false,
    }
}

fn listen(client: &mut Client) {
    client.ok(&add_listener::Request { listener_name: CACHE, local_only: true });
}

fn is_publishable(client: &mut Client) -> bool {
    let request = made_publishable::Request { map_name: MAP, cache_name: CACHE };
    client.ok(&request).decode::<made_publishable::Response>().response
}

fn destroys(client: &mut Client) -> bool {
    let request = destroy_cache::Request { map_name: MAP, cache_name: CACHE };
    client.ok(&request).decode::<destroy_cache::Response>().response
}

/// The content of a client, by the rules of the stock clients: within a partition it accepts only
/// the next number.
#[derive(Default)]
struct Copy {
    content: BTreeMap<Vec<u8>, Vec<u8>>,
    numbers: BTreeMap<i32, i64>,
    /// Partitions in which the client has noticed a loss.
    broken: BTreeSet<i32>,
}

impl Copy {
    /// Requests a cache on one of a client's connections.
    fn open(client: &mut Client, create: &publisher_create_with_value::Request<'_>) -> Self {
        let reply = client.ok(create);
        let response: publisher_create_with_value::Response<'_> = reply.decode();
        let content = response.response.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        Self { content, ..Self::default() }
    }

    fn take(&mut self, data: &QueryCacheEventData<'_>) {
        let number = self.numbers.entry(data.partition_id).or_default();
        if data.sequence == -1 {
            *number = 0;
            self.broken.remove(&data.partition_id);
        } else if data.sequence != *number + 1 {
            self.broken.insert(data.partition_id);
        } else {
            *number += 1;
            match (data.data_key, data.data_new_value) {
                (Some(key), Some(value)) => _ = self.content.insert(key.to_vec(), value.to_vec()),
                (Some(key), None) => _ = self.content.remove(key),
                (None, _) => self.content.retain(|key, _| partition(key) as i32 != data.partition_id),
            }
        }
    }

    /// Applies the next event of a connection.
    fn hear(&mut self, client: &mut Client) {
        let event = client.event();
        match event.message().id() {
            MessageId(0x16_04_02) => {
                self.take(&event.decode::<add_listener::QueryCacheSingleEvent<'_>>().data);
            }
            _ => {
                let batch: add_listener::QueryCacheBatchEvent<'_> = event.decode();
                batch.events.iter().for_each(|data| self.take(data));
            }
        }
    }

    fn hear_until(&mut self, client: &mut Client, what: impl Fn(&Self) -> bool) {
        while !what(self) {
            self.hear(client);
        }
    }

    /// Applies events until the content is `expected`: the entries of the map with a value that
    /// begins with `a`.
    fn hear_all(&mut self, client: &mut Client, expected: &BTreeMap<Vec<u8>, Vec<u8>>) {
        self.hear_until(client, |copy| copy.content == *expected);
    }
}

/// The entries of a map. The cache contains some of them.
#[derive(Default)]
struct Model(BTreeMap<Vec<u8>, Vec<u8>>);

impl Model {
    fn put(&mut self, client: &mut Client, n: u32, value: &str) {
        put(client, &key(n), value);
        self.0.insert(key(n), value.as_bytes().to_vec());
    }

    fn remove(&mut self, client: &mut Client, n: u32) {
        remove(client, &key(n));
        self.0.remove(&key(n));
    }

    fn matching(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        self.0.iter().filter(|(_, value)| value.starts_with(b"a")).map(|(k, v)| (k.clone(), v.clone())).collect()
    }
}

fn hand_over(members: &Members, from: usize, to: usize) {
    for group in (0..GROUPS).filter(|group| *group as usize % 3 == from) {
        members.0[from].loopback.settle();
        members.move_group(group, to);
    }
}

#[test]
fn a_cache_hears_of_every_change_once_whoever_leads() {
    let members = start();
    let mut writer = members.0[1].server.client();
    let mut model = Model::default();
    (0..200).for_each(|n| model.put(&mut writer, n, if n % 2 == 0 { "a" } else { "b" }));
    // A client with a single connection.
    let mut client = members.0[0].server.client();
    client.ok(&add_listener::Request { listener_name: CACHE, local_only: false });
    let mut copy = Copy::open(&mut client, &create());
    assert_eq!(copy.content, model.matching());
    assert!(is_publishable(&mut client));
    for round in 0..6 {
        for n in 0..200 {
            match (n + round) % 4 {
                0 => model.put(&mut writer, n, &format!("a{round}")),
                1 => model.put(&mut writer, n, "b"),
                2 => model.remove(&mut writer, n),
                _ => {}
            }
        }
        // Leaders change between the changes of entries.
        for group in 0..GROUPS {
            members.0.iter().for_each(|member| member.loopback.settle());
            members.move_group(group, (group as usize + round as usize) % 3);
        }
        copy.hear_all(&mut client, &model.matching());
        assert!(copy.broken.is_empty(), "{:?}", copy.broken);
    }
    writer.ok(&map::clear::Request { name: MAP });
    copy.hear_until(&mut client, |copy| copy.content.is_empty());
    model.0.clear();
    model.put(&mut writer, 7, "a");
    copy.hear_all(&mut client, &model.matching());
    assert!(copy.broken.is_empty(), "{:?}", copy.broken);
}

#[test]
fn keys_alone_and_changes_alone_can_be_requested() {
    let members = start();
    let mut writer = members.0[1].server.client();
    put(&mut writer, &key(1), "a1");
    let mut client = members.0[2].server.client();
    listen(&mut client);
    let reply = client.ok(&publisher_create::Request {
        map_name: MAP,
        cache_name: CACHE,
        predicate: b"a",
        batch_size: 1,
        buffer_size: 16,
        delay_seconds: 0,
        populate: true,
        coalesce: false,
    });
    assert_eq!(reply.decode::<publisher_create::Response<'_>>().response, [key(1)]);
    assert!(destroys(&mut client));
    let mut copy = Copy::open(&mut client, &publisher_create_with_value::Request { populate: false, ..create() });
    assert!(copy.content.is_empty());
    put(&mut writer, &key(2), "a2");
    copy.hear_all(&mut client, &BTreeMap::from([(key(2), b"a2".to_vec())]));
}

#[test]
fn requests_about_a_cache_go_to_any_member() {
    let members = start();
    let uuid = Uuid::from_u128(1);
    let mut clients: Vec<_> = members.0.iter().map(|member| Client::connect_as(member.server.address, uuid)).collect();
    clients.iter_mut().for_each(listen);
    let mut copy = Copy::open(&mut clients[0], &create());
    assert!(is_publishable(&mut clients[1]));
    put(&mut clients[2], &key(1), "a1");
    copy.hear_all(&mut clients[0], &BTreeMap::from([(key(1), b"a1".to_vec())]));
    // A client that has noticed a loss requests a rebuild of the partition.
    copy.broken.insert(partition(&key(1)) as i32);
    let request = set_read_cursor::Request { map_name: MAP, cache_name: CACHE, sequence: 9 };
    let correlation = clients[2].send_to(&request, partition(&key(1)) as i32);
    assert!(clients[2].reply_to(correlation).decode::<set_read_cursor::Response>().response);
    copy.hear_until(&mut clients[0], |copy| copy.broken.is_empty());
    copy.hear_all(&mut clients[0], &BTreeMap::from([(key(1), b"a1".to_vec())]));
    assert!(destroys(&mut clients[1]));
    assert!(!destroys(&mut clients[2]));
    assert!(!is_publishable(&mut clients[0]));
    assert_eq!(members.0[0].server.grid.statistics().listeners, 0);
}

#[test]
fn a_lost_home_is_reported_and_the_cache_is_rebuilt_when_it_has_left() {
    let mut members = start();
    let uuid = Uuid::from_u128(1);
    let mut clients: Vec<_> = members.0.iter().map(|member| Client::connect_as(member.server.address, uuid)).collect();
    clients.iter_mut().for_each(listen);
    let mut writer = members.0[1].server.client();
    let mut model = Model::default();
    (0..300).for_each(|n| model.put(&mut writer, n, "a"));
    let mut copy = Copy::open(&mut clients[0], &create());
    assert!(is_publishable(&mut clients[1]));
    model.put(&mut writer, 1, "a1");
    copy.hear_all(&mut clients[0], &model.matching());

    hand_over(&members, 0, 1);
    members.0[0].server.stop();
    drop(clients.remove(0));
    (0..100).for_each(|n| model.remove(&mut writer, n));
    model.put(&mut writer, 150, "a2");
    // The home is still a member, and may return.
    let mut at_1 = clients.remove(0);
    copy.hear_until(&mut at_1, |copy| copy.broken.len() == PARTITIONS as usize);
    assert!(copy.content.contains_key(&key(1)));
    let gone = members.0[0].uuid();
    let mut view = members.0[1].cluster.now();
    view.members.retain(|member| member.uuid != gone);
    view.members_version += 1;
    members.0[1..].iter().for_each(|member| member.cluster.set(view.clone()));
    copy.hear_until(&mut at_1, |copy| copy.broken.is_empty());
    copy.hear_all(&mut at_1, &model.matching());
    // From here on the client receives changes as usual.
    model.remove(&mut writer, 200);
    model.put(&mut writer, 301, "a");
    copy.hear_all(&mut at_1, &model.matching());
    assert!(copy.broken.is_empty());

    // The member that took the cache over is lost as well. Both members have notified the client of
    // the first loss.
    let mut at_2 = clients.remove(0);
    copy.hear_until(&mut at_2, |copy| copy.broken.len() == PARTITIONS as usize);
    copy.broken.clear();
    members.0[1].loopback.settle();
    (0..GROUPS).filter(|group| group % 3 < 2).for_each(|group| members.move_group(group, 2));
    members.0[1].server.stop();
    drop((at_1, writer));
    copy.hear_until(&mut at_2, |copy| copy.broken.len() == PARTITIONS as usize);
    let left = members.0[2].uuid();
    let mut view = members.0[2].cluster.now();
    view.members.retain(|member| member.uuid == left);
    view.members_version += 1;
    members.0[2].cluster.set(view);
    let mut writer = members.0[2].server.client();
    model.remove(&mut writer, 201);
    copy.hear_until(&mut at_2, |copy| copy.broken.is_empty());
    copy.hear_all(&mut at_2, &model.matching());
    assert!(destroys(&mut at_2));
}

#[test]
fn a_client_that_returns_to_its_home_has_its_cache_rebuilt() {
    let members = start();
    let uuid = Uuid::from_u128(1);
    let mut at_0 = Client::connect_as(members.0[0].server.address, uuid);
    let mut at_1 = Client::connect_as(members.0[1].server.address, uuid);
    [&mut at_0, &mut at_1].into_iter().for_each(listen);
    let mut model = Model::default();
    (0..50).for_each(|n| model.put(&mut at_1, n, "a"));
    let mut copy = Copy::open(&mut at_0, &create());
    assert!(is_publishable(&mut at_1));
    model.put(&mut at_1, 1, "a1");
    copy.hear_all(&mut at_0, &model.matching());
    let connections = members.0[0].server.monitor.statistics().connections;
    at_0.close();
    wait_until("the connection is gone", || members.0[0].server.monitor.statistics().connections < connections);
    (0..40).for_each(|n| model.remove(&mut at_1, n));
    let mut at_0 = Client::connect_as(members.0[0].server.address, uuid);
    listen(&mut at_0);
    copy.hear_all(&mut at_0, &model.matching());
    // The other members stand by for the cache again.
    wait_until("another member knows of the cache", || is_publishable(&mut at_1));
    model.put(&mut at_1, 60, "a");
    copy.hear_all(&mut at_0, &model.matching());
    assert!(copy.broken.is_empty());
}

#[test]
fn a_cache_requested_at_another_member_ends_at_the_first() {
    let members = start();
    let uuid = Uuid::from_u128(1);
    let mut at_0 = Client::connect_as(members.0[0].server.address, uuid);
    let mut at_1 = Client::connect_as(members.0[1].server.address, uuid);
    [&mut at_0, &mut at_1].into_iter().for_each(listen);
    Copy::open(&mut at_0, &create());
    let listeners = |member: usize| members.0[member].server.grid.statistics().listeners;
    assert_eq!((listeners(0), listeners(1)), (1, 0));
    // A client numbers its requests over all of its connections.
    (0..10).for_each(|_| _ = at_1.ok(&map::size::Request { name: MAP }));
    let mut copy = Copy::open(&mut at_1, &create());
    assert_eq!((listeners(0), listeners(1)), (0, 1));
    assert!(is_publishable(&mut at_0));
    put(&mut at_0, &key(1), "a");
    copy.hear_all(&mut at_1, &BTreeMap::from([(key(1), b"a".to_vec())]));
}

#[test]
fn a_replaced_partition_is_rebuilt() {
    let members = start();
    let mut client = members.0[0].server.client();
    listen(&mut client);
    let mut writer = members.0[1].server.client();
    let mut model = Model::default();
    // A key in a group that another member leads.
    let there = (0..).find(|n| group(&key(*n)) % 3 == 1).unwrap();
    let mut copy = Copy::open(&mut client, &create());
    assert!(is_publishable(&mut client));
    model.put(&mut writer, there, "a1");
    copy.hear_all(&mut client, &model.matching());
    let of = GroupId(group(&key(there)));
    let mut export = members.0[1].server.grid.begin_export(of).unwrap();
    let grid = &members.0[0].server.grid;
    let mut import = grid.begin_import(of).unwrap();
    while let Some(page) = export.page(1 << 20) {
        import.page(&page).unwrap();
    }
    model.remove(&mut writer, there);
    copy.hear_all(&mut client, &model.matching());
    // The snapshot is older than the received changes. Here it stands for missed changes.
    grid.install(import);
    model.0.insert(key(there), b"a1".to_vec());
    copy.hear_all(&mut client, &model.matching());
    assert!(copy.broken.is_empty());
}

#[test]
fn a_member_that_holds_a_part_refuses_caches_and_ends_those_that_it_has() {
    let members = start();
    let mut client = members.0[0].server.client();
    listen(&mut client);
    let mut copy = Copy::open(&mut client, &create());
    assert!(is_publishable(&mut client));
    members.0[0].cluster.holds_a_part.store(true, Ordering::SeqCst);
    copy.hear_until(&mut client, |copy| copy.broken.len() == PARTITIONS as usize);
    assert!(!is_publishable(&mut client));
    for populate in [false, true] {
        let (_, class, text) = client.error(&publisher_create_with_value::Request { populate, ..create() });
        assert_eq!(class, "java.lang.UnsupportedOperationException");
        assert!(text.contains("this member does not hold all partitions"), "{text}");
    }
    assert_eq!(members.0[0].server.grid.statistics().listeners, 0);
}
