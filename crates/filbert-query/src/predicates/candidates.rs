//! The entries that a predicate has to be checked on: the entries of keys in the predicate, the
//! entries that an index finds, or all.

use std::ops::Bound;
use std::sync::Arc;

use filbert_data::criteria::Predicate;
use filbert_data::{Blob, FieldPath, FieldType, Kinds, ToBlob, Value};
use filbert_grid::replication::{EntrySelection, IndexSelection, LeaderRead};
use filbert_grid::{GridError, IndexId, IndexKind, Map, PartitionId, Probe, ReadView, threads};

use crate::scan::rows::RowBuffer;

/// The number of entries between two checks whether the client still waits.
const ENTRIES_BETWEEN_QUESTIONS: usize = 1_024;

/// Receives the key and the value of an entry.
pub(crate) type Visit<'v> = dyn FnMut(&[u8], &[u8]) -> Result<(), GridError> + 'v;

/// The entries to check.
#[derive(Debug)]
pub(crate) enum Candidates {
    /// All of them.
    All,
    /// The entries with these keys.
    Keys(Vec<Blob>),
    /// The entries that an index finds.
    Index {
        id: IndexId,
        probe: Probe,
        /// The kinds of values of the first fields for which the index finds all entries.
        kinds: Vec<Kinds>,
    },
    /// None.
    Nothing,
}

impl Candidates {
    /// The smallest set that a predicate allows.
    pub(crate) fn of(map: &Map, predicate: &Predicate) -> Candidates {
        let mut best = (0, Candidates::All);
        consider(map, predicate, &mut best, 0);
        best.1
    }

    /// Whether visiting them takes microseconds.
    pub(crate) fn are_few(&self) -> bool {
        match self {
            Candidates::Nothing => true,
            Candidates::Keys(keys) => keys.len() <= 100,
            Candidates::Index { probe: Probe::Equal(_), .. } => true,
            Candidates::Index { probe: Probe::In(keys), .. } => keys.len() <= 4,
            Candidates::Index { .. } | Candidates::All => false,
        }
    }

    /// Visits the entries, partition by partition, at the places that `view` says. Each partition
    /// is copied under its lock and visited without it.
    ///
    /// # Errors
    /// `visit` fails, or `is_over` returns true. `is_over` is checked before each partition and
    /// after every thousand entries.
    pub(crate) fn visit(
        &self,
        map: &Map,
        view: &ReadView,
        partitions: Option<&[PartitionId]>,
        is_over: &dyn Fn() -> bool,
        visit: &mut Visit<'_>,
    ) -> Result<(), GridError> {
        let mut buffer = RowBuffer::default();
        let is_wanted = |partition: PartitionId| partitions.is_none_or(|partitions| partitions.contains(&partition));
        let is_here = |partition: &PartitionId| view.is_here(*partition) && is_wanted(*partition);
        match self {
            Candidates::Nothing => return Ok(()),
            Candidates::Keys(keys) => {
                for (index, key) in keys.iter().enumerate() {
                    go_on_at(index, is_over)?;
                    let partition = map.partition_of(key);
                    if is_here(&partition) {
                        map.entry_view(partition, key, |view| {
                            if let Some(view) = view {
                                buffer.push(view.key, view.value);
                            }
                        });
                    }
                }
                drain(&mut buffer, is_over, visit)?;
            }
            Candidates::All => {
                for partition in (0..map.partition_count()).map(PartitionId).filter(is_here) {
                    go_on_at(0, is_over)?;
                    map.scan_rows(partition, &mut |key, value| buffer.push(key, value));
                    drain(&mut buffer, is_over, visit)?;
                }
            }
            Candidates::Index { id, probe, .. } => {
                let may_have = map.probe_partitions(*id, probe);
                for partition in may_have.iter().filter(is_here) {
                    go_on_at(0, is_over)?;
                    map.probe(partition, *id, probe, &mut |key, value| {
                        buffer.push(key, value);
                        true
                    });
                    drain(&mut buffer, is_over, visit)?;
                }
            }
        }
        if view.is_complete() {
            return Ok(());
        }
        let reads = LeaderRead::beside(map, view, &Arc::new(self.selection(map)), &is_wanted);
        map.visit_at_leaders(reads, &|| go_on_at(0, is_over), &mut |page| {
            page.for_each(&mut |key, value| buffer.push(key, value));
            drain(&mut buffer, is_over, visit).map(|()| true)
        })
    }

    /// The entries, for other members.
    fn selection(&self, map: &Map) -> EntrySelection {
        match self {
            Candidates::All => EntrySelection::All,
            Candidates::Keys(keys) => EntrySelection::Keys(keys.clone()),
            Candidates::Nothing => EntrySelection::Keys(Vec::new()),
            Candidates::Index { id, probe, kinds } => {
                let layout = map.layout();
                let index = layout.indexes.iter().find(|index| index.id == *id);
                // An index that was dropped meanwhile.
                let Some(index) = index else { return EntrySelection::All };
                let kinds = kinds.iter().copied().chain(std::iter::repeat(Kinds::ALL));
                let fields = index.fields.iter().cloned().zip(kinds).collect();
                EntrySelection::Index(IndexSelection { kind: index.kind, fields, probe: probe.clone() })
            }
        }
    }
}

/// Visits the entries in the buffer, and empties it.
fn drain(buffer: &mut RowBuffer, is_over: &dyn Fn() -> bool, visit: &mut Visit<'_>) -> Result<(), GridError> {
    let mut index = 0;
    while let Some((key, value)) = buffer.get(index) {
        go_on_at(index, is_over)?;
        visit(key, value)?;
        index += 1;
        threads::give_way_at(index);
    }
    buffer.clear();
    Ok(())
}

/// Fails within a loop over entries if nobody waits for them any more.
fn go_on_at(index: usize, is_over: &dyn Fn() -> bool) -> Result<(), GridError> {
    if index.is_multiple_of(ENTRIES_BETWEEN_QUESTIONS) && is_over() {
        return Err(GridError::Query("the query was ended: nobody waits for its result any more".to_owned()));
    }
    Ok(())
}

/// Rates candidates against a full scan; the highest score wins.
fn consider(map: &Map, predicate: &Predicate, best: &mut (u32, Candidates), depth: usize) {
    let mut take = |score: u32, candidates: Option<Candidates>| {
        if let Some(candidates) = candidates
            && score > best.0
        {
            *best = (score, candidates);
        }
    };
    match predicate {
        Predicate::False => take(100, Some(Candidates::Nothing)),
        Predicate::And(all) if depth < 100 => {
            consider_composite(map, all, best);
            for one in all {
                consider(map, one, best, depth + 1);
            }
        }
        Predicate::Partition { predicate, .. } | Predicate::Partitions { predicate, .. } if depth < 100 => {
            consider(map, predicate, best, depth + 1);
        }
        Predicate::Sql(text) if depth < 100 => {
            if let Ok(parsed) = Predicate::parse_sql(text) {
                consider(map, &parsed, best, depth + 1);
            }
        }
        Predicate::Equal(attribute, value) => {
            let values = std::slice::from_ref(value);
            take(90, keys_of(attribute, values));
            take(80, one_of(map, attribute, values));
        }
        Predicate::In(attribute, values) => {
            take(70, keys_of(attribute, values));
            take(60, one_of(map, attribute, values));
        }
        Predicate::Between { attribute, from, to } => {
            take(40, range(map, attribute, Some(from), Some(to)));
        }
        Predicate::Compare { attribute, value, less: true, .. } => take(30, range(map, attribute, None, Some(value))),
        Predicate::Compare { attribute, value, less: false, .. } => take(30, range(map, attribute, Some(value), None)),
        _ => {}
    }
}

/// A key can be looked up by bytes if all values that equal the wanted one have the same bytes.
/// Numbers have one form for each of Java's types.
fn keys_of(attribute: &str, values: &[Value<'static>]) -> Option<Candidates> {
    if attribute != "__key" {
        return None;
    }
    let mut keys = Vec::new();
    for value in values {
        match value {
            Value::Text(_) if is_only_text(value) => keys.push(value.to_blob().ok()?),
            Value::Uuid(_) | Value::Boolean(_) => keys.push(value.to_blob().ok()?),
            Value::Int8(_) | Value::Int16(_) | Value::Int32(_) | Value::Int64(_) => {
                let number = match value {
                    Value::Int8(number) => i64::from(*number),
                    Value::Int16(number) => i64::from(*number),
                    Value::Int32(number) => i64::from(*number),
                    Value::Int64(number) => *number,
                    _ => return None,
                };
                keys.push(number.to_blob().ok()?);
                keys.extend(i32::try_from(number).ok().and_then(|number| number.to_blob().ok()));
                keys.extend(i16::try_from(number).ok().and_then(|number| number.to_blob().ok()));
                keys.extend(i8::try_from(number).ok().and_then(|number| number.to_blob().ok()));
                #[allow(
                    clippy::cast_precision_loss,
                    reason = "a rounded number finds no other key, it is checked again"
                )]
                {
                    keys.push((number as f64).to_blob().ok()?);
                    keys.push((number as f32).to_blob().ok()?);
                }
                let decimal = bigdecimal::BigDecimal::from(number);
                keys.push(Value::Decimal(decimal).to_blob().ok()?);
            }
            _ => return None,
        }
    }
    keys.sort_unstable();
    keys.dedup();
    Some(Candidates::Keys(keys))
}

/// The index key of a predicate's value, if all equal values have the same key in the index. `seen`
/// has the types of the indexed values. Values of another type than the wanted one are converted
/// before they are compared, or the wanted one is. Narrows `kinds` to the types for which that
/// holds.
fn index_key(value: &Value<'static>, seen: Kinds, kinds: &mut Kinds) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    let compared = Kinds::compared_with(value);
    if seen.are_within(compared) {
        *kinds = kinds.common(compared);
        value.append_index_key(&mut key);
        return Some(key);
    }
    // A text is parsed as a number if all values are numbers.
    let Value::Text(text) = value else { return None };
    let numbers = Kinds::NUMBERS.and(Kinds::NULL);
    if !seen.are_within(numbers) {
        return None;
    }
    *kinds = kinds.common(numbers);
    let number: bigdecimal::BigDecimal = text.trim().parse().ok()?;
    Value::Decimal(number).append_index_key(&mut key);
    Some(key)
}

/// Whether a text can be nothing but a text.
fn is_only_text(value: &Value<'static>) -> bool {
    let others = [FieldType::Double, FieldType::Boolean, FieldType::TimestampTz, FieldType::Time, FieldType::Uuid];
    others.iter().all(|other| value.clone().convert(other).is_err())
}

fn one_of(map: &Map, attribute: &str, values: &[Value<'static>]) -> Option<Candidates> {
    let path = FieldPath::parse(attribute).ok()?;
    let layout = map.layout();
    let of_field = || layout.indexes.iter().filter(|index| index.ready && index.fields.as_slice() == [path.clone()]);
    let index = of_field().find(|index| index.kind != IndexKind::Sorted).or_else(|| of_field().next())?;
    let (seen, mut kinds) = (index.seen.of(0), Kinds::ALL);
    let mut keys = values.iter().map(|value| index_key(value, seen, &mut kinds)).collect::<Option<Vec<_>>>()?;
    keys.sort_unstable();
    keys.dedup();
    let probe = if keys.len() == 1 { Probe::Equal(keys.pop()?) } else { Probe::In(keys) };
    Some(Candidates::Index { id: index.id, probe, kinds: vec![kinds] })
}

/// Several attributes that each equal one value: an index over exactly these attributes finds the
/// entries directly.
fn consider_composite(map: &Map, all: &[Predicate], best: &mut (u32, Candidates)) {
    let equal: Vec<(FieldPath, &Value<'static>)> = all
        .iter()
        .filter_map(|one| match one {
            Predicate::Equal(attribute, value) => Some((FieldPath::parse(attribute).ok()?, value)),
            _ => None,
        })
        .collect();
    if equal.len() < 2 || best.0 >= 85 {
        return;
    }
    for index in map.layout().indexes.iter().filter(|index| index.ready && index.fields.len() > 1) {
        let mut key = Vec::new();
        let of_fields = index.fields.iter().enumerate().map(|(at, field)| {
            let (_, value) = equal.iter().find(|(path, _)| path == field)?;
            let mut kinds = Kinds::ALL;
            key.extend(index_key(value, index.seen.of(at), &mut kinds)?);
            Some(kinds)
        });
        if let Some(kinds) = of_fields.collect::<Option<Vec<_>>>() {
            *best = (85, Candidates::Index { id: index.id, probe: Probe::Equal(key), kinds });
            return;
        }
    }
}

fn range(map: &Map, attribute: &str, from: Option<&Value<'static>>, to: Option<&Value<'static>>) -> Option<Candidates> {
    let path = FieldPath::parse(attribute).ok()?;
    let layout = map.layout();
    let sorted = |index: &&filbert_grid::IndexInfo| {
        index.ready && index.kind == IndexKind::Sorted && index.fields.first() == Some(&path)
    };
    let index = layout.indexes.iter().find(sorted)?;
    let (seen, mut kinds) = (index.seen.of(0), Kinds::ALL);
    let from = match from {
        Some(value) => Bound::Included(index_key(value, seen, &mut kinds)?),
        None => Bound::Unbounded,
    };
    let to = match to {
        Some(value) => crate::scan::access::successor(index_key(value, seen, &mut kinds)?)
            .map_or(Bound::Unbounded, Bound::Excluded),
        None => Bound::Unbounded,
    };
    let probe = Probe::Range { from, to, descending: false };
    Some(Candidates::Index { id: index.id, probe, kinds: vec![kinds] })
}
