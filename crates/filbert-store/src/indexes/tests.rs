//! Compares indexes with a plain list of keys and slots.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::IndexId;

fn index(kind: IndexKind) -> Index {
    Index::new(IndexLayout::new(IndexId(0), kind, vec![0]), 7)
}

fn found(index: &Index, probe: &Probe) -> Vec<(Vec<u8>, u32)> {
    let mut found = Vec::new();
    index.probe(probe, &mut |key, postings| {
        postings.for_each(&mut |slot| {
            found.push((key.to_vec(), slot));
            true
        })
    });
    found
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(0u8..4, 1..4),
        prop::collection::vec(prop::sample::select(vec![1u8, 0xff]), 15..18),
    ]
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    let key = || prop_oneof![key(), prop::collection::vec(prop::sample::select(vec![1u8, 0xff]), 0..3)];
    prop_oneof![Just(Bound::Unbounded), key().prop_map(Bound::Included), key().prop_map(Bound::Excluded)]
}

fn is_within(key: &[u8], from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>) -> bool {
    let above = match from {
        Bound::Unbounded => true,
        Bound::Included(from) => key >= from.as_slice(),
        Bound::Excluded(from) => key > from.as_slice() && !key.starts_with(from),
    };
    let below = match to {
        Bound::Unbounded => true,
        Bound::Included(to) => key <= to.as_slice() || key.starts_with(to),
        Bound::Excluded(to) => key < to.as_slice(),
    };
    above && below
}

proptest! {
    #[test]
    fn an_index_finds_what_a_plain_list_finds(
        changes in prop::collection::vec((key(), 0u32..300, prop::bool::weighted(0.7)), 0..400),
        probes in prop::collection::vec((bound(), bound()), 0..10),
        wanted in prop::collection::btree_set(key(), 0..5),
    ) {
        for kind in [IndexKind::Sorted, IndexKind::Hash, IndexKind::Bitmap] {
            let mut index = index(kind);
            let mut list = BTreeSet::new();
            for (key, slot, add) in &changes {
                if *add {
                    index.insert(key, *slot);
                    list.insert((key.clone(), *slot));
                } else {
                    index.remove(key, *slot);
                    list.remove(&(key.clone(), *slot));
                }
            }
            let statistics = index.statistics();
            let distinct: BTreeSet<_> = list.iter().map(|(key, _)| key).collect();
            prop_assert_eq!((statistics.entries, statistics.distinct), (list.len(), distinct.len()));
            prop_assert_eq!(statistics.nulls, list.iter().filter(|(key, _)| key[0] == 0).count());
            let probe = Probe::In(wanted.iter().cloned().collect());
            let expected: Vec<_> = list.iter().filter(|(key, _)| wanted.contains(key)).cloned().collect();
            prop_assert_eq!(found(&index, &probe), expected);
            if kind == IndexKind::Sorted {
                let not_null: Vec<_> = distinct.iter().filter(|key| key[0] != 0).collect();
                prop_assert_eq!(statistics.min.as_ref(), not_null.first().map(|key| **key));
                prop_assert_eq!(statistics.max.as_ref(), not_null.last().map(|key| **key));
                for (from, to) in &probes {
                    let expected: Vec<_> =
                        list.iter().filter(|(key, _)| is_within(key, from, to)).cloned().collect();
                    let range = |descending| Probe::Range { from: from.clone(), to: to.clone(), descending };
                    prop_assert_eq!(&found(&index, &range(false)), &expected);
                    let mut backwards = found(&index, &range(true));
                    prop_assert!(backwards.is_sorted_by(|(left, _), (right, _)| left >= right));
                    backwards.sort();
                    prop_assert_eq!(&backwards, &expected);
                }
            }
            for (key, slot) in list {
                index.remove(&key, slot);
            }
            prop_assert_eq!((index.bytes(), index.entry_count, index.null_count), (0, 0, 0));
        }
    }
}
