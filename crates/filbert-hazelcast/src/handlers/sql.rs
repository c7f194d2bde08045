//! SQL: statements, the pages of their results, and the statement that creates a mapping for a map.
//!
//! A short statement runs in place, other statements run on the engine's threads. Errors of
//! statements are sent in the response, with the codes of Hazelcast's SQL.

use std::sync::Arc;

use filbert_data::Value;
use filbert_grid::query::{ExpectedResult, Page, QueryEngine, SqlError, SqlErrorCode, Statement, StatementResult};
use filbert_wire::{
    Message, MessageId, Response, Uuid,
    structure::SqlError as WireSqlError,
    table::sql::{close, execute, execute_reserved, fetch, fetch_reserved, mapping_ddl},
};

use crate::{
    cursors::{Cursors, PageLimits, Rows, Ticket},
    deferred,
    failure::Outcome,
    query_slot::QuerySlot,
    replies::Replies,
    row::Row,
    session::Session,
    sql_reply::{Reply, ReplyKind},
};

pub(crate) const ROWS: &[(MessageId, Row)] = &[
    (execute_reserved::ID, Row::Queries(handle_execute_reserved)),
    (fetch_reserved::ID, Row::Queries(handle_fetch_reserved)),
    (close::ID, Row::Queries(handle_close)),
    (execute::ID, Row::Queries(handle_execute)),
    (fetch::ID, Row::Queries(handle_fetch)),
    (mapping_ddl::ID, Row::Queries(handle_mapping_ddl)),
];

fn handle_execute(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: execute::Request<'_> = message.decode()?;
    let engine = deferred::engine(session, message)?;
    let reply = reply(session, message, ReplyKind::Execute);
    if let Err(error) = execute(session, &engine, &reply, &request) {
        reply.error(&error, &mut session.out);
    }
    Ok(())
}

fn execute(
    session: &mut Session,
    engine: &Arc<dyn QueryEngine>,
    reply: &Reply,
    request: &execute::Request<'_>,
) -> Result<(), SqlError> {
    let limits = limits(session, request.cursor_buffer_size)?;
    let parameters = parameters(&request.parameters)?;
    let statement = Statement {
        text: request.sql,
        parameters: &parameters,
        types: &[],
        session: None,
        timeout_ms: u64::try_from(request.timeout_millis).ok(),
        expected: expected(request.expected_result_type)?,
        described: None,
    };
    let mut rows = match engine.execute_short(&statement).transpose()? {
        Some(StatementResult::Count(count)) => {
            reply.count(count, &mut session.out);
            return Ok(());
        }
        Some(StatementResult::Rows(cursor)) => Rows::new(cursor),
        None => return execute_later(session, engine, reply, request, &statement, limits),
    };
    let page = rows.page_now(limits).transpose()?;
    if let Some(page) = &page
        && page.last
    {
        // The usual result of a lookup: all rows in one page, and no cursor to keep.
        return reply.page(&rows, page, &mut session.out);
    }
    let ticket = session.link.cursors.begin(&request.query_id, session.config.cursors_max)?;
    answer_page(session, reply, ticket, rows, page.map(Ok), limits)
}

/// Runs a statement on the engine's threads.
fn execute_later(
    session: &Session,
    engine: &Arc<dyn QueryEngine>,
    reply: &Reply,
    request: &execute::Request<'_>,
    statement: &Statement<'_>,
    limits: PageLimits,
) -> Result<(), SqlError> {
    let slot = take_slot(session)?;
    let ticket = session.link.cursors.begin(&request.query_id, session.config.cursors_max)?;
    let reply = reply.clone();
    let answer = move |result| {
        let mut out = Vec::new();
        match result {
            Ok(StatementResult::Rows(cursor)) => return page_later(Rows::new(cursor), limits, reply, slot, ticket),
            Ok(StatementResult::Count(count)) => reply.count(count, &mut out),
            Err(error) => reply.error(&error, &mut out),
        }
        slot.link().cursors.end(ticket);
        let out = Replies::whole(out, &slot.link().replies);
        slot.reply(reply.correlation, out, reply.bytes_max);
    };
    let running = engine.execute(statement, Box::new(answer));
    session.link.cursors.set_running(ticket, running);
    Ok(())
}

fn handle_fetch(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: fetch::Request = message.decode()?;
    let reply = reply(session, message, ReplyKind::Fetch);
    if let Err(error) = fetch(session, &reply, &request) {
        reply.error(&error, &mut session.out);
    }
    Ok(())
}

fn fetch(session: &mut Session, reply: &Reply, request: &fetch::Request) -> Result<(), SqlError> {
    let limits = limits(session, request.cursor_buffer_size)?;
    let (ticket, mut rows) = session.link.cursors.take(&request.query_id)?;
    let page = rows.page_now(limits);
    answer_page(session, reply, ticket, rows, page, limits)
}

/// Answers with a page, or later when the page is available.
fn answer_page(
    session: &mut Session,
    reply: &Reply,
    ticket: Ticket,
    rows: Rows,
    page: Option<Result<Page, SqlError>>,
    limits: PageLimits,
) -> Result<(), SqlError> {
    match page {
        Some(page) => settle(&session.link.cursors, ticket, reply, rows, page, &mut session.out),
        None => match take_slot(session) {
            Ok(slot) => page_later(rows, limits, reply.clone(), slot, ticket),
            Err(error) => settle(&session.link.cursors, ticket, reply, rows, Err(error), &mut session.out),
        },
    }
    Ok(())
}

/// Answers with the next page when it is available.
fn page_later(rows: Rows, limits: PageLimits, reply: Reply, slot: QuerySlot, ticket: Ticket) {
    rows.page(limits, move |rows, page| {
        let mut out = Vec::new();
        settle(&slot.link().cursors, ticket, &reply, rows, page, &mut out);
        let out = Replies::whole(out, &slot.link().replies);
        slot.reply(reply.correlation, out, reply.bytes_max);
    });
}

/// Appends the reply with a page. The remaining rows are stored before the client receives the
/// reply, so the next request finds them.
fn settle(
    cursors: &Cursors,
    ticket: Ticket,
    reply: &Reply,
    rows: Rows,
    page: Result<Page, SqlError>,
    out: &mut Vec<u8>,
) {
    match page.and_then(|page| reply.page(&rows, &page, out).map(|()| page.last)) {
        Ok(false) => return cursors.leave(ticket, rows),
        Ok(true) => {}
        Err(error) => reply.error(&error, out),
    }
    cursors.end(ticket);
}

fn handle_close(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: close::Request = message.decode()?;
    session.link.cursors.close(&request.query_id);
    close::Response {}.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_mapping_ddl(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: mapping_ddl::Request<'_> = message.decode()?;
    let sql = deferred::engine(session, message)?.mapping_ddl(request.name);
    mapping_ddl::Response { sql: sql.as_deref() }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

/// The error for clients before 5.0, which use another format of pages.
const TOO_OLD: &str =
    "this client's SQL messages are of a version before 5.0, expected a client of version 5.0 or later";

fn handle_execute_reserved(session: &mut Session, message: &Message<'_>) -> Outcome {
    let response = execute_reserved::Response { update_count: -1, error: Some(too_old(session)), ..Default::default() };
    response.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_fetch_reserved(session: &mut Session, message: &Message<'_>) -> Outcome {
    let response = fetch_reserved::Response { error: Some(too_old(session)), ..Default::default() };
    response.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn too_old(session: &Session) -> WireSqlError<'static> {
    WireSqlError {
        code: SqlErrorCode::Generic as i32,
        message: Some(TOO_OLD),
        originating_member_id: session.grid.member_uuid(),
        ..WireSqlError::default()
    }
}

fn reply(session: &Session, message: &Message<'_>, kind: ReplyKind) -> Reply {
    let member: Uuid = session.grid.member_uuid();
    Reply { kind, correlation: message.correlation_id(), member, bytes_max: session.config.reply_bytes_max }
}

fn take_slot(session: &Session) -> Result<QuerySlot, SqlError> {
    session.take_slot().map_err(|failure| SqlError::new(SqlErrorCode::Generic, failure.text))
}

fn limits(session: &Session, cursor_buffer_size: i32) -> Result<PageLimits, SqlError> {
    let rows = usize::try_from(cursor_buffer_size).ok().filter(|rows| *rows > 0);
    let rows = rows.ok_or_else(|| {
        let text = format!("field \"cursorBufferSize\": {cursor_buffer_size}, expected at least 1");
        SqlError::new(SqlErrorCode::Generic, text)
    })?;
    let config = &session.config;
    Ok(PageLimits { rows_max: rows.min(config.page_rows_max.max(1)), bytes_max: config.page_bytes_max })
}

fn parameters<'a>(blobs: &[Option<&'a [u8]>]) -> Result<Vec<Value<'a>>, SqlError> {
    let parameter = |(at, blob): (usize, &Option<&'a [u8]>)| match blob {
        None => Ok(Value::Null),
        Some(blob) => Value::from_blob(blob).map_err(|error| {
            let text = format!("parameter {} cannot be read: {error}", at + 1);
            SqlError::new(SqlErrorCode::DataException, text)
        }),
    };
    blobs.iter().enumerate().map(parameter).collect()
}

fn expected(number: u8) -> Result<ExpectedResult, SqlError> {
    match number {
        0 => Ok(ExpectedResult::Any),
        1 => Ok(ExpectedResult::Rows),
        2 => Ok(ExpectedResult::UpdateCount),
        other => {
            let text = format!("field \"expectedResultType\": {other}, expected 0 (any), 1 (rows) or 2 (update count)");
            Err(SqlError::new(SqlErrorCode::Generic, text))
        }
    }
}
