//! Snapshots as bytes: of large partitions that change, in pages of limited size, damaged, or
//! forged.

use crate::common::changes::{cases, change, settings};
use crate::common::{CLIENT, Store};
use filbert_data::PartitionId;
use filbert_store::*;
use proptest::prelude::*;

const SETTINGS: PartitionSettings = PartitionSettings { id: PartitionId(3), hash_seed: 77, exact_read_times: false };

/// All pages of a snapshot. Nothing changes in the meantime.
fn pages(partition: &mut Partition, bytes_min: usize) -> Vec<Vec<u8>> {
    assert!(partition.begin_export());
    let mut pages = Vec::new();
    loop {
        let mut page = Vec::new();
        let more = partition.export_page(&mut page, bytes_min);
        pages.push(page);
        if !more {
            return pages;
        }
    }
}

fn imported(pages: &[Vec<u8>]) -> Result<Partition, ImportError> {
    let mut import = Import::new(SETTINGS);
    pages.iter().try_for_each(|page| import.page(page))?;
    import.finish(&NoLayouts)
}

/// Sets the correct checksum of a page.
fn with_checksum(mut page: Vec<u8>) -> Vec<u8> {
    if page.len() >= 20 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&page[..16]);
        hasher.update(&page[20..]);
        page[16..20].copy_from_slice(&hasher.finalize().to_le_bytes());
    }
    page
}

fn filled(entries: u32) -> Store {
    let journal = JournalSettings { capacity: 50, ttl_ms: 0 };
    let mut store = Store::new(MapSettings { journal: Some(journal), ..MapSettings::default() });
    for number in 0..entries {
        store.put_expiring(
            &format!("key {number}"),
            &"v".repeat(number as usize % 90),
            Expiry::ttl(i64::from(number % 3)),
        );
    }
    store.apply(Change::Lock { key: b"key 1", lease_ms: Some(9), reference: 4 });
    store.apply(Change::Lock { key: b"key 2", lease_ms: None, reference: 5 });
    store.apply(Change::Unlock { key: b"key 2", reference: 6 });
    store
}

#[test]
fn a_snapshot_is_what_there_was_when_it_began_however_much_changes_meanwhile() {
    const ENTRIES: u32 = 20_000;
    let mut store = filled(ENTRIES);
    let state = store.partition.logged_state();
    let before = store.partition.bytes();
    assert!(store.partition.begin_export());
    assert!(!store.partition.begin_export(), "one at a time");
    let (mut import, mut page, mut count) = (Import::new(SETTINGS), Vec::new(), 0u32);
    loop {
        let more = store.partition.export_page(&mut page, 4_000);
        assert!(page.len() < 4_000 + 300, "a page ends with the item that fills it, at {}", page.len());
        import.page(&page).unwrap();
        if !more {
            break;
        }
        for _ in 0..50 {
            count += 1;
            let number = count.wrapping_mul(2_654_435_761) % (ENTRIES * 2);
            let key = format!("key {number}");
            match count % 5 {
                0 => drop(store.apply(Change::Delete { key: key.as_bytes() })),
                1 => drop(store.apply(Change::SetTtl { key: key.as_bytes(), ttl_ms: 5_000 })),
                _ => store.put_expiring(&key, "another value", Expiry::ttl(9_000)),
            }
        }
    }
    assert!(count > 10_000, "{count}");
    assert_eq!(import.finish(&NoLayouts).unwrap().logged_state(), state);
    assert!(!store.partition.is_exporting());
    // The memory for the old state was freed.
    store.bytes();
    assert!(store.partition.bytes() < before * 2);
}

#[test]
fn what_is_set_aside_is_counted_and_given_back() {
    let mut store = filled(2_000);
    let before = store.bytes();
    assert!(store.partition.begin_export());
    let begun = store.partition.bytes();
    assert!(begun - before < 2_000, "{begun} after {before}: nothing per entry");
    assert_eq!(store.apply(Change::Clear), "count 1999");
    let cleared = store.partition.bytes();
    assert!(cleared > before / 2, "{cleared} of {before}: the old records are there");
    assert_eq!(store.partition.statistics(store.map).entries, 1);
    store.partition.end_export();
    assert!(store.bytes() < 20_000, "{} bytes are left", store.partition.bytes());
    // A destroyed map is kept until it is written, or the snapshot is cancelled.
    let mut store = filled(2_000);
    assert!(store.partition.begin_export());
    store.partition.destroy_map(store.map);
    assert!(store.partition.bytes() > before / 2);
    store.partition.end_export();
    assert_eq!(store.partition.bytes(), 0);
}

#[test]
fn a_restored_partition_goes_on_where_the_other_was() {
    let mut store = filled(100);
    let mut restored = imported(&pages(&mut store.partition, 100)).unwrap();
    assert_eq!(restored.bytes(), restored.statistics(store.map).bytes_owned);
    assert_eq!(restored.sequence(store.map), store.partition.sequence(store.map));
    assert_eq!(restored.time(), store.partition.time());
    assert_eq!(
        restored.lock_state(store.map, b"key 1", store.now),
        store.partition.lock_state(store.map, b"key 1", store.now)
    );
    // The restored partition recognizes a retried unlock as well.
    let change = Change::Unlock { key: b"key 2", reference: 6 };
    let command = Command { map: store.map, now: store.now, caller: CLIENT, change };
    assert_eq!(restored.apply(&command, &mut NoObserver), Reply::Done);
    let view = |partition: &Partition| format!("{:?}", partition.entry_view(store.map, b"key 0", store.now));
    assert_eq!(view(&restored), view(&store.partition));
}

#[test]
fn pages_that_are_damaged_or_out_of_order_are_requested_again() {
    let mut store = filled(50);
    let pages = pages(&mut store.partition, 500);
    assert!(pages.len() > 5);
    let mut import = Import::new(SETTINGS);
    for (number, page) in (0u64..).zip(&pages) {
        assert_eq!(import.next_page(), number);
        for at in 0..page.len() {
            let mut damaged = page.clone();
            damaged[at] ^= 0x10;
            let error = import.page(&damaged).unwrap_err();
            assert!(matches!(error, ImportError::Checksum { .. } | ImportError::Unreadable(_)), "{error}");
            assert!(import.page(&page[..at]).is_err());
        }
        let other = &pages[(number as usize + 1) % pages.len()];
        assert!(matches!(import.page(other), Err(ImportError::OutOfOrder { expected, .. }) if expected == number));
        import.page(page).unwrap();
    }
    assert_eq!(import.page(&pages[0]), Err(ImportError::Complete));
    assert_eq!(import.finish(&NoLayouts).unwrap().logged_state(), store.partition.logged_state());
}

#[test]
fn a_snapshot_that_is_cut_or_of_another_partition_is_refused() {
    let mut store = filled(50);
    let pages = pages(&mut store.partition, 500);
    let error = imported(&pages[..3]).err().unwrap();
    assert_eq!(error, ImportError::Incomplete { next_page: 3 });
    assert_eq!(error.to_string(), "the snapshot is not complete, expected page 3");
    let mut other = Import::new(PartitionSettings { id: PartitionId(4), ..SETTINGS });
    let error = other.page(&pages[0]).unwrap_err();
    assert_eq!(error.to_string(), "a snapshot of partition 3 came, expected one of partition 4");
    assert_eq!(other.page(&pages[0]), Err(ImportError::Failed));
    assert_eq!(other.finish(&NoLayouts).err(), Some(ImportError::Failed));
}

#[test]
fn a_partition_without_maps_is_one_page() {
    let mut partition = Partition::new(SETTINGS);
    let pages = pages(&mut partition, 1);
    assert_eq!(pages.len(), 1);
    // The first version, byte by byte.
    let time = i64::MIN.to_le_bytes();
    let wanted = [b"FbSn\x01\0\x01\0", &[0; 8][..], &[0; 4], b"\x01\x03\0\0\0", &time, &[0; 4], &[9]].concat();
    assert_eq!(pages[0], with_checksum(wanted));
    assert_eq!(imported(&pages).unwrap().logged_state(), partition.logged_state());
}

#[test]
fn without_a_snapshot_there_are_no_pages() {
    let mut page = vec![1];
    assert!(!Partition::new(SETTINGS).export_page(&mut page, 9));
    assert!(page.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(512), ..ProptestConfig::default() })]

    /// A forged snapshot results in an error, or in a partition that works.
    #[test]
    fn pages_that_were_changed_are_refused_or_are_other_partitions(
        settings in settings(),
        changes in prop::collection::vec(change(), 0..60),
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 1..5),
        later in prop::collection::vec(change(), 0..40),
    ) {
        let mut store = Store::new(settings);
        for change in &changes {
            store.apply(change.borrow());
        }
        let [mut page]: [Vec<u8>; 1] = pages(&mut store.partition, usize::MAX).try_into().unwrap();
        for (at, byte, kind) in &damages {
            let at = 20 + at.index(page.len() - 20);
            match kind {
                0 => page[at] = *byte,
                1 => page[at] ^= 1 << (byte % 8),
                2 => drop(page.remove(at)),
                _ => page.insert(at, *byte),
            }
        }
        if let Ok(mut partition) = imported(&[with_checksum(page)]) {
            let maps: Vec<MapId> = (0..40).map(MapId).collect();
            for change in &later {
                for now in [store.now, store.now.plus(3_000)] {
                    let command = Command { map: maps[1], now, caller: CLIENT, change: change.borrow() };
                    partition.lead(&command, &mut NoObserver);
                }
            }
            let state = partition.logged_state();
            match imported(&pages(&mut partition, 200)) {
                // A forged counter has exceeded the maximum.
                Err(ImportError::Inconsistent { what, .. }) if what.contains("2^62") => {}
                again => prop_assert_eq!(again.map(|partition| partition.logged_state()), Ok(state)),
            }
            for change in [Change::Expire { limit: usize::MAX }, Change::Clear] {
                let command = Command { map: maps[1], now: Millis::MAX, caller: CLIENT, change };
                partition.lead(&command, &mut NoObserver);
            }
        }
    }

    #[test]
    fn any_bytes_are_no_snapshot(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let page = with_checksum([b"FbSn\x01\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x03\0\0\0", bytes.as_slice()].concat());
        let mut import = Import::new(SETTINGS);
        prop_assert!(import.page(&bytes).is_err());
        let _ = import.page(&page);
    }
}
