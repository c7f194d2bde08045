//! Prepared queries of the map API.

use std::sync::Arc;

use filbert_data::criteria::{Aggregator, Predicate, Projection, entry_blob, row_blob};
use filbert_data::{Blob, DataError, FieldPath, FieldReader, Formats, Side, ToBlob, Value};
use filbert_grid::query::{Answer, Ending, EntryFilter, EntryProjection, MapQuery, Paging, PreparedQuery};
use filbert_grid::{Caller, Change, GridError, Map, PartitionId, ReadView, Refused, Reply};

use crate::predicates::aggregate::Aggregation;
use crate::predicates::candidates::{Candidates, Visit};
use crate::predicates::condition::Condition;
use crate::predicates::page::{Anchor, Pager};
use crate::scan::rows::key_text;

/// Prepares a query that reads the partitions at the places that `view` says.
pub(crate) fn prepare(
    map: &Arc<Map>,
    formats: &Formats,
    query: MapQuery<'_>,
    view: ReadView,
) -> Result<Box<dyn PreparedQuery>, GridError> {
    let (blob, partitions) = match &query {
        MapQuery::Entries { predicate, partitions } => (*predicate, partitions.clone()),
        MapQuery::Page(paging) => (paging.predicate, paging.partition_key.map(|key| vec![map.partition_of(key)])),
        MapQuery::Aggregate { predicate, .. } | MapQuery::Project { predicate, .. } => (*predicate, None),
        MapQuery::Remove { predicate, .. } => (Some(*predicate), None),
    };
    let predicate = blob.map(Predicate::from_blob).transpose().map_err(unreadable)?.unwrap_or(Predicate::True);
    let entries = Entries::new(map.clone(), view, formats, &predicate, partitions)?;
    Ok(match query {
        MapQuery::Entries { .. } => Box::new(Listed { entries }),
        MapQuery::Page(paging) => Box::new(Paged::new(entries, formats, &paging)?),
        MapQuery::Aggregate { aggregator, .. } => {
            let aggregator = Aggregator::from_blob(aggregator).map_err(unreadable)?;
            let aggregation = Some(Aggregation::new(&aggregator, formats)?);
            Box::new(Aggregated { entries, aggregation })
        }
        MapQuery::Project { projection, .. } => {
            let projection = Projection::from_blob(projection).map_err(unreadable)?;
            Box::new(Projected { entries, projector: Projector::new(&projection, formats)? })
        }
        MapQuery::Remove { caller, .. } => Box::new(Removed { entries, caller }),
    })
}

fn unreadable(error: DataError) -> GridError {
    GridError::Serialization(error.to_string())
}

/// The error of an entry that the query cannot read.
fn of_entry(key: &[u8], error: &DataError) -> GridError {
    GridError::Query(format!("entry with the key {}: {error}", key_text(key)))
}

/// The entries that satisfy a predicate.
struct Entries {
    map: Arc<Map>,
    view: ReadView,
    condition: Condition,
    candidates: Candidates,
    partitions: Option<Vec<PartitionId>>,
    /// Returns whether nobody waits for the result any more.
    is_over: Option<Ending>,
}

impl Entries {
    fn new(
        map: Arc<Map>,
        view: ReadView,
        formats: &Formats,
        predicate: &Predicate,
        mut partitions: Option<Vec<PartitionId>>,
    ) -> Result<Self, GridError> {
        let mut inner = predicate;
        loop {
            inner = match inner {
                Predicate::Partition { key, predicate } => {
                    partitions = Some(vec![map.partition_of(key)]);
                    predicate
                }
                Predicate::Partitions { keys, predicate } => {
                    let mut wanted: Vec<PartitionId> = keys.iter().map(|key| map.partition_of(key)).collect();
                    wanted.sort_unstable();
                    wanted.dedup();
                    partitions = Some(wanted);
                    predicate
                }
                _ => break,
            };
        }
        let condition = Condition::compile(inner, formats)?;
        let candidates = Candidates::of(&map, inner);
        Ok(Entries { map, view, condition, candidates, partitions, is_over: None })
    }

    fn is_short(&self) -> bool {
        self.candidates.are_few()
    }

    /// The number of matching entries, if it is known without reading them; `None` otherwise.
    fn count_unread(&self) -> Option<usize> {
        let all = self.condition.is_always_true() && matches!(self.candidates, Candidates::All);
        (all && self.partitions.is_none() && self.view.is_complete()).then(|| self.map.size())
    }

    fn visit(&self, visit: &mut Visit<'_>) -> Result<(), GridError> {
        let always = self.condition.is_always_true();
        let is_over = || self.is_over.as_ref().is_some_and(|is_over| is_over());
        self.candidates.visit(&self.map, &self.view, self.partitions.as_deref(), &is_over, &mut |key, value| {
            let holds = always || self.condition.holds(key, value).map_err(|error| of_entry(key, &error))?;
            if holds { visit(key, value) } else { Ok(()) }
        })
    }
}

type Visitor<'v> = &'v mut dyn FnMut(Answer<'_>) -> Result<(), GridError>;

struct Listed {
    entries: Entries,
}

impl PreparedQuery for Listed {
    fn is_short(&self) -> bool {
        self.entries.is_short()
    }

    fn end_when(&mut self, is_over: Ending) {
        self.entries.is_over = Some(is_over);
    }

    fn run(&mut self, answer: Visitor<'_>) -> Result<(), GridError> {
        self.entries.visit(&mut |key, value| answer(Answer::Entry(key, value)))
    }
}

struct Aggregated {
    entries: Entries,
    aggregation: Option<Aggregation>,
}

impl PreparedQuery for Aggregated {
    fn is_short(&self) -> bool {
        self.entries.is_short()
    }

    fn end_when(&mut self, is_over: Ending) {
        self.entries.is_over = Some(is_over);
    }

    fn run(&mut self, answer: Visitor<'_>) -> Result<(), GridError> {
        let Some(mut aggregation) = self.aggregation.take() else { return Ok(()) };
        let counted = self.entries.count_unread().is_some_and(|count| aggregation.add_unread(count));
        if !counted {
            self.entries.visit(&mut |key, value| aggregation.add(key, value).map_err(|error| of_entry(key, &error)))?;
        }
        let result = aggregation.finish().map_err(unreadable)?;
        answer(Answer::Value(result.as_deref()))
    }
}

/// Projects entries.
pub(crate) struct Projector {
    reader: FieldReader,
    many: bool,
    identity: bool,
    /// The half of the entry that is returned as a whole, which keeps its type.
    whole: Option<Side>,
}

fn half<'e>(side: Side, key: &'e [u8], value: &'e [u8]) -> &'e [u8] {
    if side == Side::Key { key } else { value }
}

impl Projector {
    pub(crate) fn of_blob(projection: &[u8], formats: &Formats) -> Result<Self, GridError> {
        Projector::new(&Projection::from_blob(projection).map_err(unreadable)?, formats)
    }

    pub(crate) fn new(projection: &Projection, formats: &Formats) -> Result<Self, GridError> {
        let (attributes, many, identity): (&[String], _, _) = match projection {
            Projection::Single(attribute) => (std::slice::from_ref(attribute), false, false),
            Projection::Multi(attributes) => (attributes, true, false),
            Projection::Identity => (&[], false, true),
            Projection::Unknown(_) => {
                let text = "a projection of a class that this server does not know; single attribute, multi attribute and \
                            identity projections are expected";
                return Err(GridError::UnsupportedOperation(text.to_owned()));
            }
        };
        let paths: Result<Vec<FieldPath>, DataError> =
            attributes.iter().map(|attribute| FieldPath::parse(attribute)).collect();
        let paths = paths.map_err(|error| GridError::IllegalArgument(error.to_string()))?;
        let whole = match paths.as_slice() {
            [path] if path.path.is_itself() => Some(path.side),
            _ => None,
        };
        Ok(Projector { reader: FieldReader::new(paths, formats.clone()), many, identity, whole })
    }

    /// The projection of an entry; `None` is null.
    pub(crate) fn project(&self, key: &[u8], value: &[u8]) -> Result<Option<Blob>, DataError> {
        if self.identity {
            return entry_blob(key, value).map(Some);
        }
        let mut values = vec![Value::Null; self.reader.fields().len()];
        self.reader.read(key, value, &mut |field, read| {
            if let Some(place) = values.get_mut(field) {
                *place = read;
            }
        })?;
        if self.many {
            let items: Vec<Blob> = values.iter().map(ToBlob::to_blob).collect::<Result<_, _>>()?;
            return row_blob(items.iter()).map(Some);
        }
        match values.into_iter().next() {
            None | Some(Value::Null) => Ok(None),
            Some(_) if self.whole.is_some() => Ok(self.whole.map(|side| Blob::from(half(side, key, value)))),
            Some(value) => value.to_blob().map(Some),
        }
    }
}

impl EntryProjection for Projector {
    fn project(&self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, GridError> {
        let projected = Projector::project(self, key, value).map_err(|error| of_entry(key, &error))?;
        Ok(projected.map(Blob::into_vec))
    }
}

struct Projected {
    entries: Entries,
    projector: Projector,
}

impl PreparedQuery for Projected {
    fn is_short(&self) -> bool {
        self.entries.is_short()
    }

    fn end_when(&mut self, is_over: Ending) {
        self.entries.is_over = Some(is_over);
    }

    fn run(&mut self, answer: Visitor<'_>) -> Result<(), GridError> {
        let projector = &self.projector;
        self.entries.visit(&mut |key, value| {
            let projected = projector.project(key, value).map_err(|error| of_entry(key, &error))?;
            answer(Answer::Value(projected.as_deref()))
        })
    }
}

struct Paged {
    entries: Entries,
    pager: Option<Pager>,
}

impl Paged {
    fn new(entries: Entries, formats: &Formats, paging: &Paging<'_>) -> Result<Self, GridError> {
        let Paging { page, page_size, iteration, anchors, .. } = paging;
        let pager = Pager::new(*iteration, *page, *page_size, anchors, formats).map_err(unreadable)?;
        Ok(Paged { entries, pager: Some(pager) })
    }
}

impl PreparedQuery for Paged {
    fn is_short(&self) -> bool {
        self.entries.is_short()
    }

    fn end_when(&mut self, is_over: Ending) {
        self.entries.is_over = Some(is_over);
    }

    fn run(&mut self, answer: Visitor<'_>) -> Result<(), GridError> {
        let Some(mut pager) = self.pager.take() else { return Ok(()) };
        self.entries.visit(&mut |key, value| pager.add(key, value).map_err(|error| of_entry(key, &error)))?;
        let (entries, anchors): (_, Vec<Anchor>) = pager.finish();
        for (key, value) in &entries {
            answer(Answer::Entry(key, value))?;
        }
        anchors.iter().try_for_each(|(page, key, value)| answer(Answer::Anchor(*page, key, value)))
    }
}

struct Removed {
    entries: Entries,
    caller: Caller,
}

impl PreparedQuery for Removed {
    fn is_short(&self) -> bool {
        self.entries.is_short()
    }

    fn end_when(&mut self, is_over: Ending) {
        self.entries.is_over = Some(is_over);
    }

    fn run(&mut self, answer: Visitor<'_>) -> Result<(), GridError> {
        let Removed { entries, caller } = self;
        let mut removed = 0;
        entries.visit(&mut |key, value| {
            // Only the value that satisfied the predicate is removed; a value written meanwhile
            // stays.
            let change = Change::RemoveIfSame { key, expected: value };
            let partition = entries.map.partition_of(key);
            match entries.map.change(partition, *caller, change, |reply| matches!(reply, Reply::Flag(true))) {
                Ok(gone) => removed += usize::from(gone),
                // As in Hazelcast, locked entries stay.
                Err(Refused::Locked { .. }) => {}
                Err(Refused::Error(error)) => return Err(error),
            }
            Ok(())
        })?;
        answer(Answer::Removed(removed))
    }
}

/// A predicate as a filter of single entries.
pub(crate) struct Filter(Condition);

impl Filter {
    pub(crate) fn new(predicate: &[u8], formats: &Formats) -> Result<Self, GridError> {
        let predicate = Predicate::from_blob(predicate).map_err(unreadable)?;
        Condition::compile(&predicate, formats).map(Filter)
    }
}

impl EntryFilter for Filter {
    fn matches(&self, key: &[u8], value: &[u8]) -> bool {
        self.0.holds(key, value).unwrap_or(false)
    }
}
