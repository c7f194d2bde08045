//! Commands as bytes: round trips, and arbitrary bytes.

use crate::common::changes::{batch, caller, cases, change, settings};
use filbert_data::PartitionId;
use filbert_store::*;
use proptest::prelude::*;

/// A command that owns its bytes.
#[derive(Clone, Debug)]
enum Owned {
    Change(u32, i64, u8, OwnedChange),
    Create(u32, MapSettings),
    Destroy(u32),
    Layout(u32, Option<u64>),
}

impl Owned {
    fn borrow(&self) -> LogCommand<'_> {
        match self {
            Owned::Change(map, now, number, change) => {
                let (map, now, change) = (MapId(*map), Millis(*now), change.borrow());
                Command { map, now, caller: caller(*number), change }.into()
            }
            Owned::Create(map, settings) => LogCommand::CreateMap { map: MapId(*map), settings: settings.clone() },
            Owned::Destroy(map) => LogCommand::DestroyMap { map: MapId(*map) },
            Owned::Layout(map, layout) => LogCommand::SetLayout { map: MapId(*map), layout: *layout },
        }
    }
}

fn bytes() -> impl Strategy<Value = Box<[u8]>> {
    prop::collection::vec(any::<u8>(), 0..300).prop_map(Vec::into_boxed_slice)
}

fn expiry() -> impl Strategy<Value = Expiry> {
    any::<(i64, i64)>().prop_map(|(ttl_ms, max_idle_ms)| Expiry { ttl_ms, max_idle_ms })
}

fn metadata() -> impl Strategy<Value = PutMode> {
    (any::<[i64; 4]>(), any::<(u64, u64)>(), expiry()).prop_map(|(times, (hits, version), expiry)| {
        let [created_ms, updated_ms, accessed_ms, expires_ms] = times;
        PutMode::Metadata(Metadata { created_ms, updated_ms, accessed_ms, expires_ms, hits, version, expiry })
    })
}

fn any_change() -> impl Strategy<Value = OwnedChange> {
    let keys = prop::collection::vec(bytes(), 0..5).prop_map(|keys| {
        let mut list = KeyList::default();
        keys.iter().for_each(|key| assert!(list.push(key)));
        OwnedChange::EvictKeys { keys: list.as_bytes().into() }
    });
    prop_oneof![
        4 => change(),
        2 => (bytes(), bytes(), expiry(), metadata())
            .prop_map(|(key, value, expiry, mode)| OwnedChange::Put { key, value, expiry, mode }),
        1 => (bytes(), bytes(), bytes())
            .prop_map(|(key, expected, value)| OwnedChange::ReplaceIfSame { key, expected, value }),
        1 => (bytes(), prop::option::of(any::<i64>()), any::<i64>())
            .prop_map(|(key, lease_ms, reference)| OwnedChange::Lock { key, lease_ms, reference }),
        1 => (bytes(), any::<i64>()).prop_map(|(key, reference)| OwnedChange::ForceUnlock { key, reference }),
        1 => (bytes(), any::<i64>()).prop_map(|(key, read_at)| OwnedChange::Touch { key, read_at: Millis(read_at) }),
        1 => any::<usize>().prop_map(|limit| OwnedChange::Expire { limit }),
        1 => batch().prop_map(|batch| OwnedChange::Claim { batch }),
        1 => keys,
    ]
}

fn command() -> impl Strategy<Value = Owned> {
    prop_oneof![
        20 => (any::<u32>(), any::<i64>(), any::<u8>(), any_change())
            .prop_map(|(map, now, caller, change)| Owned::Change(map, now, caller, change)),
        1 => (any::<u32>(), settings()).prop_map(|(map, settings)| Owned::Create(map, settings)),
        1 => any::<u32>().prop_map(Owned::Destroy),
        1 => (any::<u32>(), any::<Option<u64>>()).prop_map(|(map, layout)| Owned::Layout(map, layout)),
    ]
}

fn encoded(commands: &[(u32, Owned)]) -> Vec<u8> {
    let mut encoder = Encoder::default();
    for (partition, command) in commands {
        encoder.push(PartitionId(*partition), &command.borrow()).unwrap();
    }
    assert_eq!((encoder.len(), encoder.is_empty()), (commands.len(), commands.is_empty()));
    encoder.take()
}

/// Reads all commands and applies them. Nothing may panic.
fn read_and_apply(bytes: &[u8]) -> (usize, Option<CodecError>) {
    let decoder = match Decoder::new(bytes) {
        Ok(decoder) => decoder,
        Err(error) => return (0, Some(error)),
    };
    let mut partition = Partition::new(PartitionSettings { id: PartitionId(0), hash_seed: 1, exact_read_times: false });
    partition.create_map(MapId(0), MapSettings::default());
    let mut count = 0;
    for command in decoder {
        match command {
            Ok((_, command)) => {
                count += 1;
                let command = match command {
                    LogCommand::Change(change) => LogCommand::Change(Command { map: MapId(0), ..change }),
                    other => other,
                };
                partition.apply_logged(&command, &NoLayouts, &mut NoObserver);
            }
            Err(error) => {
                assert!(error.offset <= bytes.len(), "{error}");
                return (count, Some(error));
            }
        }
    }
    (count, None)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(512), ..ProptestConfig::default() })]

    #[test]
    fn commands_come_back_as_they_were(commands in prop::collection::vec((any::<u32>(), command()), 0..12)) {
        let bytes = encoded(&commands);
        let read: Vec<_> = Decoder::new(&bytes).unwrap().collect::<Result<_, _>>().unwrap();
        let wanted: Vec<_> = commands.iter().map(|(id, command)| (PartitionId(*id), command.borrow())).collect();
        prop_assert_eq!(read, wanted);
    }

    #[test]
    fn a_buffer_that_was_cut_ends_with_an_error_or_at_a_command(
        commands in prop::collection::vec((any::<u32>(), command()), 0..4),
    ) {
        let bytes = encoded(&commands);
        let ends: Vec<usize> = (0..=commands.len()).map(|count| encoded(&commands[..count]).len()).collect();
        for end in 0..bytes.len() {
            let (count, error) = read_and_apply(&bytes[..end]);
            let whole = ends.iter().filter(|whole| **whole <= end).count().saturating_sub(1);
            prop_assert_eq!(count, whole);
            prop_assert_eq!(error.is_none(), ends.contains(&end));
        }
    }

    #[test]
    fn bytes_that_were_changed_are_refused_or_are_other_commands(
        commands in prop::collection::vec((any::<u32>(), command()), 1..6),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        shorter in 0usize..20,
    ) {
        let mut bytes = encoded(&commands);
        for (at, byte) in &changes {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        bytes.truncate(bytes.len().saturating_sub(shorter));
        read_and_apply(&bytes);
    }

    #[test]
    fn any_bytes_are_refused_or_are_commands(bytes in prop::collection::vec(any::<u8>(), 0..400), first in 0u8..40) {
        read_and_apply(&bytes);
        read_and_apply(&[&[COMMANDS_VERSION, first], bytes.as_slice()].concat());
    }
}

/// The first version, byte by byte. All later versions must read it.
#[test]
fn the_format_is_as_documented() {
    let caller = Caller { client: uuid::Uuid::from_u128(0x0102), thread: 3 };
    let expiry = Expiry { ttl_ms: 5, max_idle_ms: -1 };
    let change = Change::Put { key: b"key", value: b"v", expiry, mode: PutMode::IfAbsent };
    let mut encoder = Encoder::default();
    encoder.push(PartitionId(9), &Command { map: MapId(2), now: Millis(7), caller, change }.into()).unwrap();
    let client = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2];
    let wanted = [
        &[1u8, 1, 9, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0][..],
        &client,
        &[3, 0, 0, 0, 0, 0, 0, 0],
        &[3, 5, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255],
        &[3, 0, 0, 0, b'k', b'e', b'y', 1, 0, 0, 0, b'v'],
    ];
    assert_eq!(encoder.as_bytes(), wanted.concat());
}

#[test]
fn errors_say_what_was_wrong_where_and_what_was_expected() {
    let error = |bytes: &[u8]| read_and_apply(bytes).1.unwrap().to_string();
    assert_eq!(error(b""), "cannot read the version of commands at byte 0: 0 bytes are left, expected 1");
    assert_eq!(error(&[2]), "cannot read the version of commands at byte 0: found 2, expected 1");
    assert_eq!(error(&[1, 99]), "cannot read the kind of a command at byte 1: found 99, expected 1 to 21 or 32 to 34");
    assert_eq!(error(&[1, 3, 0, 0]), "cannot read the partition of a command at byte 2: 2 bytes are left, expected 4");
    let mut encoder = Encoder::default();
    let change = Change::EvictKeys { keys: &[1, 0, 0, 0, b'a', 9, 0, 0, 0, b'b'] };
    let (map, now, caller) = (MapId(0), Millis(0), Caller::default());
    encoder.push(PartitionId(0), &Command { map, now, caller, change }.into()).unwrap();
    let wanted =
        "cannot read a list of keys at byte 51: its parts do not fit its length, expected whole items up to its end";
    assert_eq!(error(encoder.as_bytes()), wanted);
}
