//! Queries of the map API: predicates, pages, aggregators and projections.
//!
//! The engine prepares a query. A short query then runs in place, other queries run on the engine's
//! threads.

use filbert_data::{TypeId, criteria::IterationType, type_id};
use filbert_grid::{
    ErrorKind, GridError, ReadView,
    query::{Answer, MapQuery, Paging, PreparedQuery},
};
use filbert_wire::{
    CorrelationId, Message, MessageId, Response,
    structure::{AnchorDataListHolder, PagingPredicateHolder},
    table::map::{
        aggregate, aggregate_with_predicate, entries_with_paging_predicate, entries_with_predicate,
        key_set_with_paging_predicate, key_set_with_predicate, project, project_with_predicate, remove_all,
        values_with_paging_predicate, values_with_predicate,
    },
};

use crate::{
    deferred::{self, NO_QUERIES},
    failure::{Failure, Outcome},
    listing::Listing,
    replies::Replies,
    row::Row,
    session::Session,
};

pub(crate) const ROWS: &[(MessageId, Row)] = &[
    (key_set_with_predicate::ID, Row::Queries(handle_key_set)),
    (values_with_predicate::ID, Row::Queries(handle_values)),
    (entries_with_predicate::ID, Row::Queries(handle_entries)),
    (key_set_with_paging_predicate::ID, Row::Queries(handle_key_set_page)),
    (values_with_paging_predicate::ID, Row::Queries(handle_values_page)),
    (entries_with_paging_predicate::ID, Row::Queries(handle_entries_page)),
    (aggregate::ID, Row::Queries(handle_aggregate)),
    (aggregate_with_predicate::ID, Row::Queries(handle_aggregate_with_predicate)),
    (project::ID, Row::Queries(handle_project)),
    (project_with_predicate::ID, Row::Queries(handle_project_with_predicate)),
    (remove_all::ID, Row::Served(handle_remove_all)),
];

/// The part of an entry in a list.
#[derive(Clone, Copy)]
enum Part {
    Key,
    Value,
    Entry,
}

/// Anchors of pages: page, key, value.
type Anchors = Vec<(i32, Vec<u8>, Vec<u8>)>;

/// The content of a reply.
enum Shape {
    /// A list of entries, or of one part of them.
    List(Part),
    /// The same, with the anchors of pages. Initially these are the anchors that the client already
    /// has.
    Page(Part, Anchors),
    /// A list of results of a projection.
    Values,
    /// The result of an aggregator.
    One,
    /// Nothing.
    Done,
}

fn handle_key_set(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: key_set_with_predicate::Request<'_> = message.decode()?;
    list(session, message, request.name, request.predicate, Part::Key)
}

fn handle_values(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: values_with_predicate::Request<'_> = message.decode()?;
    list(session, message, request.name, request.predicate, Part::Value)
}

fn handle_entries(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: entries_with_predicate::Request<'_> = message.decode()?;
    list(session, message, request.name, request.predicate, Part::Entry)
}

fn list(session: &mut Session, message: &Message<'_>, name: &str, predicate: &[u8], part: Part) -> Outcome {
    let query = MapQuery::Entries { predicate: Some(predicate), partitions: None };
    answer(session, message, name, query, Shape::List(part))
}

fn handle_key_set_page(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: key_set_with_paging_predicate::Request<'_> = message.decode()?;
    page(session, message, request.name, &request.predicate, Part::Key)
}

fn handle_values_page(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: values_with_paging_predicate::Request<'_> = message.decode()?;
    page(session, message, request.name, &request.predicate, Part::Value)
}

fn handle_entries_page(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: entries_with_paging_predicate::Request<'_> = message.decode()?;
    page(session, message, request.name, &request.predicate, Part::Entry)
}

fn page(
    session: &mut Session,
    message: &Message<'_>,
    name: &str,
    holder: &PagingPredicateHolder<'_>,
    part: Part,
) -> Outcome {
    let paging = paging(session, message, holder)?;
    let AnchorDataListHolder { anchor_page_list, anchor_data_list } = &holder.anchor_data_list_holder;
    let anchors = anchor_page_list.iter().zip(anchor_data_list);
    let anchors = anchors.map(|(page, (key, value))| (*page, key.to_vec(), value.to_vec())).collect();
    answer(session, message, name, MapQuery::Page(paging), Shape::Page(part, anchors))
}

/// The paging of a request. Its iteration type determines the order, whichever message contains it.
fn paging<'a>(
    session: &Session,
    message: &Message<'_>,
    holder: &PagingPredicateHolder<'a>,
) -> Result<Paging<'a>, Box<Failure>> {
    let id = message.id();
    // Some clients send a null object instead of no comparator.
    if holder.comparator_data.is_some_and(|comparator| type_id(comparator) != Ok(TypeId::NULL)) {
        return Err(Failure::unsupported(id, "with a comparator, which is code that this server does not run"));
    }
    let page_size = usize::try_from(holder.page_size).ok().filter(|size| *size > 0);
    let page_size = page_size.ok_or_else(|| {
        Failure::argument(id, &format!("field \"pageSize\": {}, expected at least 1", holder.page_size))
    })?;
    let page = usize::try_from(holder.page)
        .map_err(|_| Failure::argument(id, &format!("field \"page\": {}, expected at least 0", holder.page)))?;
    let iteration = match holder.iteration_type_id {
        0 => IterationType::Key,
        1 => IterationType::Value,
        2 => IterationType::Entry,
        other => {
            let text = format!("field \"iterationTypeId\": {other}, expected 0 (key), 1 (value) or 2 (entry)");
            return Err(Failure::argument(id, &text));
        }
    };
    let anchors = &holder.anchor_data_list_holder;
    let anchors = anchors.anchor_page_list.iter().zip(&anchors.anchor_data_list).filter_map(|(page, (key, value))| {
        // The page before the first one has the number -1 and needs no anchor.
        Some((usize::try_from(*page).ok()?, Some(*key), Some(*value)))
    });
    Ok(Paging {
        predicate: holder.predicate_data,
        partition_key: partition_key(session, id, holder)?,
        page_size,
        page,
        iteration,
        anchors: anchors.collect(),
    })
}

/// The key that binds a paging predicate to its partition. Newer clients send a set of keys.
fn partition_key<'a>(
    session: &Session,
    id: MessageId,
    holder: &PagingPredicateHolder<'a>,
) -> Result<Option<&'a [u8]>, Box<Failure>> {
    let keys = holder.partition_keys_data.as_deref().unwrap_or_default();
    let Some(first) = holder.partition_key_data.or(keys.first().copied()) else { return Ok(None) };
    let partition = |key| filbert_data::partition_of(key, session.grid.partition_count());
    if keys.iter().any(|key| partition(key) != partition(first)) {
        return Err(Failure::unsupported(id, "pages of several partitions are not served, expected keys of one"));
    }
    Ok(Some(first))
}

fn handle_aggregate(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: aggregate::Request<'_> = message.decode()?;
    let query = MapQuery::Aggregate { aggregator: request.aggregator, predicate: None };
    answer(session, message, request.name, query, Shape::One)
}

fn handle_aggregate_with_predicate(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: aggregate_with_predicate::Request<'_> = message.decode()?;
    let query = MapQuery::Aggregate { aggregator: request.aggregator, predicate: Some(request.predicate) };
    answer(session, message, request.name, query, Shape::One)
}

fn handle_project(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: project::Request<'_> = message.decode()?;
    let query = MapQuery::Project { projection: request.projection, predicate: None };
    answer(session, message, request.name, query, Shape::Values)
}

fn handle_project_with_predicate(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: project_with_predicate::Request<'_> = message.decode()?;
    let query = MapQuery::Project { projection: request.projection, predicate: Some(request.predicate) };
    answer(session, message, request.name, query, Shape::Values)
}

fn handle_remove_all(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: remove_all::Request<'_> = message.decode()?;
    let caller = session.caller(0);
    if is_always_true(request.predicate) && session.grid.cluster().is_some() {
        let (engine, map) = (deferred::engine(session, message)?, session.map(request.name)?.clone());
        let correlation = message.correlation_id();
        return deferred::later(session, &engine, correlation, move |_, out| {
            map.clear(caller)?;
            remove_all::Response {}.encode(correlation, out);
            Ok(())
        });
    }
    if is_always_true(request.predicate) {
        session.map(request.name)?.clear(caller)?;
        remove_all::Response {}.encode(message.correlation_id(), &mut session.out);
        return Ok(());
    }
    if session.grid.queries().is_none() {
        let reason = format!("of predicates it takes only the one that is always true; {NO_QUERIES}");
        return Err(Failure::unsupported(message.id(), &reason));
    }
    let query = MapQuery::Remove { predicate: request.predicate, caller };
    answer(session, message, request.name, query, Shape::Done)
}

/// Whether a predicate is the stock clients' `alwaysTrue`: an IdentifiedDataSerializable (marked by
/// a one) of the predicates' factory, -20, and class 14, without content.
fn is_always_true(predicate: &[u8]) -> bool {
    const TRUE_PREDICATE: [u8; 9] = [1, 0xff, 0xff, 0xff, 0xec, 0, 0, 0, 14];
    filbert_data::type_id(predicate).is_ok_and(|id| id == filbert_data::TypeId::IDENTIFIED)
        && predicate.get(filbert_data::BLOB_HEADER_BYTES..) == Some(&TRUE_PREDICATE)
}

/// Runs a query and answers with its result, in place or on the engine's threads.
fn answer(session: &mut Session, message: &Message<'_>, name: &str, query: MapQuery<'_>, shape: Shape) -> Outcome {
    let engine = deferred::engine(session, message)?;
    let map = session.map(name)?.clone();
    let reply = Reply {
        message: message.id(),
        correlation: message.correlation_id(),
        bytes_max: session.config.reply_bytes_max,
        shape,
    };
    if session.grid.cluster().is_some() {
        // The plan depends on the map's indexes. So the query is prepared only after this member
        // has applied all acknowledged changes.
        let (grid, query, of_engine) = (session.grid.clone(), query.to_owned(), engine.clone());
        return deferred::later(session, &engine, reply.correlation, move |slot, out| {
            let view = grid.catch_up_blocking()?;
            let mut prepared = of_engine.prepare(&map, query.borrow(), view)?;
            prepared.end_when(slot.ending());
            reply.write(prepared.as_mut(), &|| slot.is_cancelled(), out)
        });
    }
    let mut prepared = engine.prepare(&map, query, ReadView::complete())?;
    if prepared.is_short() {
        return reply.write(prepared.as_mut(), &|| false, &mut session.out);
    }
    deferred::later(session, &engine, reply.correlation, move |slot, out| {
        prepared.end_when(slot.ending());
        reply.write(prepared.as_mut(), &|| slot.is_cancelled(), out)
    })
}

/// A reply under construction.
struct Reply {
    message: MessageId,
    correlation: CorrelationId,
    bytes_max: usize,
    shape: Shape,
}

impl Reply {
    /// Runs the query and appends the reply. The query ends early if the client has disconnected or
    /// the reply is too long.
    fn write(self, query: &mut dyn PreparedQuery, is_cancelled: &dyn Fn() -> bool, out: &mut Replies) -> Outcome {
        let mut listing = Listing::answering(self.message, self.correlation, self.bytes_max, out);
        match self.shape {
            Shape::List(part) => {
                listing.open();
                fill(&mut listing, query, is_cancelled, |listing, answer| item(listing, part, answer))?;
                listing.finish()
            }
            Shape::Page(part, mut anchors) => {
                listing.open();
                fill(&mut listing, query, is_cancelled, |listing, answer| match answer {
                    Answer::Anchor(page, key, value) => set_anchor(&mut anchors, page, key, value),
                    answer => item(listing, part, answer),
                })?;
                listing.finish_with(&AnchorDataListHolder {
                    anchor_page_list: anchors.iter().map(|(page, ..)| *page).collect(),
                    anchor_data_list: anchors.iter().map(|(_, key, value)| (&key[..], &value[..])).collect(),
                })
            }
            Shape::Values => {
                listing.open();
                fill(&mut listing, query, is_cancelled, |listing, answer| {
                    if let Answer::Value(value) = answer {
                        listing.nullable(value);
                    }
                })?;
                listing.finish()
            }
            Shape::One => {
                let mut count = 0;
                fill(&mut listing, query, is_cancelled, |listing, answer| {
                    if let Answer::Value(value) = answer {
                        count += 1;
                        listing.nullable(value);
                    }
                })?;
                if count != 1 && !listing.is_over() {
                    return Err(GridError::Internal(format!("an aggregator made {count} values, expected 1")).into());
                }
                listing.finish_open()
            }
            Shape::Done => {
                fill(&mut listing, query, is_cancelled, |_, _| ())?;
                listing.finish_open()
            }
        }
    }
}

/// Runs the query. If it is ended because the reply is too long, this is not an error here: the end
/// of the reply reports it more precisely.
fn fill(
    listing: &mut Listing<'_>,
    query: &mut dyn PreparedQuery,
    is_cancelled: &dyn Fn() -> bool,
    mut append: impl FnMut(&mut Listing<'_>, Answer<'_>),
) -> Outcome {
    let mut ended = false;
    let result = query.run(&mut |answer| {
        append(listing, answer);
        ended = listing.is_over() || is_cancelled();
        if ended { Err(GridError::IllegalArgument("the query was ended".to_owned())) } else { Ok(()) }
    });
    match result {
        Err(error) if !ended && !is_cancelled() => Err(error.into()),
        Err(_) if !listing.is_over() => {
            Err(Failure::new(ErrorKind::ClientGone, "the client went before its query had ended"))
        }
        _ => Ok(()),
    }
}

fn item(listing: &mut Listing<'_>, part: Part, answer: Answer<'_>) {
    if let Answer::Entry(key, value) = answer {
        match part {
            Part::Key => listing.item(key),
            Part::Value => listing.item(value),
            Part::Entry => listing.entry(key, value),
        }
    }
}

/// Clients send back the whole list that they have received. So it has one anchor for each page, in
/// order.
fn set_anchor(anchors: &mut Anchors, page: usize, key: &[u8], value: &[u8]) {
    let Ok(page) = i32::try_from(page) else { return };
    let anchor = (page, key.to_vec(), value.to_vec());
    match anchors.binary_search_by_key(&page, |(page, ..)| *page) {
        Ok(at) => {
            if let Some(place) = anchors.get_mut(at) {
                *place = anchor;
            }
        }
        Err(at) => anchors.insert(at, anchor),
    }
}
