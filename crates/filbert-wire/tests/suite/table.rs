//! The table is complete, in order, and consistent with itself.

use std::collections::HashSet;

use filbert_wire::{MessageId, Partitioning, ProtocolVersion, table};

#[test]
fn it_has_every_service_message_and_event() {
    assert_eq!(table::services().count(), 39);
    assert_eq!(table::all().count(), 474);
    assert_eq!(table::all().map(|spec| spec.events.len()).sum::<usize>(), 37);
    let fields: usize = table::all().map(|spec| spec.request.len() + spec.response.len()).sum();
    assert_eq!(fields, 1_842);
    assert_eq!(table::ids().count(), 1 + 2 * 474 + 37);
}

#[test]
fn ids_rise_and_are_found() {
    let ids: Vec<MessageId> = table::all().map(|spec| spec.id).collect();
    assert!(ids.is_sorted(), "binary search needs the order");
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    for spec in table::all() {
        for part in 0..4 {
            assert_eq!(table::find(spec.id.part(part)).unwrap().id, spec.id);
        }
        let events: HashSet<_> = spec.events.iter().map(|event| event.id).collect();
        assert_eq!(events.len(), spec.events.len());
        assert!(events.iter().all(|id| id.0 & 0xff >= 2 && id.part(0) == spec.id));
    }
    for unknown in [0x00_00_00, 0x00_ff_00, 0x7f_01_00, 0x01_01_01_00, u32::MAX] {
        assert!(table::find(MessageId(unknown)).is_none(), "{unknown:#x}");
    }
}

#[test]
fn names_are_those_that_people_know() {
    let names: HashSet<String> = table::all().map(|spec| spec.to_string()).collect();
    assert_eq!(names.len(), 474);
    for name in ["Map.putIfAbsent", "CPSubsystem.getCPGroupIds", "CountDownLatch.await", "MC.matchMCConfig"] {
        assert!(names.contains(name), "{name}");
    }
    assert_eq!(table::map::add_entry_listener::ID.part(2).to_string(), "Map.addEntryListener EntryEvent");
    assert_eq!(table::map::put::RESPONSE_ID.to_string(), "Map.put response");
    assert_eq!(MessageId(0x7f_01_00).to_string(), "message 0x7f0100");
    assert_eq!(MessageId::ERROR.to_string(), "error");
}

#[test]
fn versions_are_of_protocol_2_and_fields_are_not_older_than_their_message() {
    for spec in table::all() {
        assert_eq!(spec.since.major, 2, "{spec}");
        for field in spec.request.iter().chain(spec.response) {
            assert!(field.since >= spec.since && field.since.minor <= 10, "{spec}: {}", field.name);
        }
    }
    let delete = &table::map::delete::SPEC.response[0];
    assert_eq!(delete.since, ProtocolVersion { major: 2, minor: 7 });
}

#[test]
fn rows_tell_what_clients_go_by() {
    let put = &table::map::put::SPEC;
    assert!(!put.retryable && put.partition == Partitioning::Key);
    assert!(put.response[0].nullable && !put.request[1].nullable);
    assert!(table::map::get::SPEC.retryable);
}
