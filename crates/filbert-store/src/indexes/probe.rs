//! Probes: the queries of an index.

use std::ops::Bound;

/// A query of an index. Keys are the encodings of [`filbert_data::Value::append_index_key`],
/// concatenated for an index of several fields.
///
/// The results are candidates: decimals with many digits can have the same keys as neighbouring
/// decimals, so the caller must compare results of probes with decimals again. No matching entry is
/// missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The entries with one key.
    Equal(Vec<u8>),
    /// The entries with one of several keys.
    In(Vec<Vec<u8>>),
    /// The entries with a key in a range, in order; sorted indexes only. Bounds are prefixes of
    /// keys: an included bound includes all keys with this prefix, an excluded bound excludes all
    /// of them. Therefore a bound can consist of the first fields of an index of several fields.
    Range {
        /// The beginning of the range.
        from: Bound<Vec<u8>>,
        /// The end of the range.
        to: Bound<Vec<u8>>,
        /// Whether the greatest key comes first.
        descending: bool,
    },
    /// All entries, in order. Without an order if the index is not sorted.
    All {
        /// Whether the greatest key comes first.
        descending: bool,
    },
}

/// The least bytes greater than everything with the prefix; `None` if there are none.
pub(crate) fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut next = prefix.get(..=kept)?.to_vec();
    if let Some(last) = next.last_mut() {
        *last += 1;
    }
    Some(next)
}

/// The bounds of a range of keys.
pub(crate) type KeyBounds<'p> = (Bound<&'p [u8]>, Bound<&'p [u8]>);

/// The bounds of the keys of a range of prefixes: the first key is included, the last one excluded.
/// `None` if the range is empty.
pub(crate) fn bounds<'p>(
    from: &'p Bound<Vec<u8>>,
    to: &'p Bound<Vec<u8>>,
    own: &'p mut (Option<Vec<u8>>, Option<Vec<u8>>),
) -> Option<KeyBounds<'p>> {
    own.0 = match from {
        Bound::Excluded(from) => Some(after_prefix(from)?),
        _ => None,
    };
    own.1 = match to {
        Bound::Included(to) => after_prefix(to),
        _ => None,
    };
    let first = match (from, &own.0) {
        (Bound::Included(from), _) => Bound::Included(from.as_slice()),
        (_, Some(first)) => Bound::Included(first.as_slice()),
        _ => Bound::Unbounded,
    };
    let end = match (to, &own.1) {
        (Bound::Excluded(to), _) => Bound::Excluded(to.as_slice()),
        (_, Some(end)) => Bound::Excluded(end.as_slice()),
        _ => Bound::Unbounded,
    };
    // The range of a tree must not end before it begins.
    match (first, end) {
        (Bound::Included(first), Bound::Excluded(end)) if first >= end => None,
        bounds => Some(bounds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_a_prefix_is_above_all_that_begin_with_it() {
        for (prefix, expected) in
            [(&[1, 2][..], Some(vec![1, 3])), (&[1, 0xff], Some(vec![2])), (&[0xff, 0xff], None), (&[], None)]
        {
            assert_eq!(after_prefix(prefix), expected);
        }
    }

    #[test]
    fn bounds_of_prefixes_become_bounds_of_keys() {
        let key = |byte: u8| vec![byte];
        let included = |byte: u8| Bound::Included(key(byte));
        let excluded = |byte: u8| Bound::Excluded(key(byte));
        let check = |from: Bound<Vec<u8>>, to: Bound<Vec<u8>>, expected: Option<(Option<u8>, Option<u8>)>| {
            let mut own = (None, None);
            let found = bounds(&from, &to, &mut own).map(|(first, end)| {
                let byte = |bound: Bound<&[u8]>| match bound {
                    Bound::Included(key) | Bound::Excluded(key) => key.first().copied(),
                    Bound::Unbounded => None,
                };
                (byte(first), byte(end))
            });
            assert_eq!(found, expected, "{from:?} {to:?}");
        };
        check(included(3), included(3), Some((Some(3), Some(4))));
        check(excluded(3), included(4), Some((Some(4), Some(5))));
        check(excluded(3), excluded(4), None);
        check(included(5), excluded(3), None);
        check(excluded(0xff), Bound::Unbounded, None);
        check(Bound::Unbounded, included(0xff), Some((None, None)));
    }
}
