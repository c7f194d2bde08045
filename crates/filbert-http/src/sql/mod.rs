//! `POST /_sql`: one statement, or one for each row of values.

mod bulk;
mod bulk_rows;
mod fit;
mod meter;
mod request;
mod rows;
mod run;
mod values;

use std::sync::Arc;
use std::time::Instant;

use axum::Extension;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use filbert_data::Value;
use filbert_grid::Reservation;
use filbert_grid::query::{
    ExpectedResult, QueryEngine, Running, Session, SqlError, SqlErrorCode, Statement, StatementResult,
};

use crate::answer;
use crate::body::{self, Received};
use crate::connection::Link;
use crate::failure::Failure;
use crate::routes::User;
use crate::shared::Shared;

use meter::Meter;
use request::Request;

/// The header that names the schema of names without one.
const SCHEMA_HEADER: &str = "default-schema";

/// What the query of the path asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wishes {
    /// The numbers of the columns' types.
    types: bool,
    /// More about an error.
    error_trace: bool,
}

impl Wishes {
    /// Each is a name alone or with `true`; what else there is means nothing to us.
    fn of(query: Option<&str>) -> Wishes {
        let mut wishes = Wishes::default();
        for part in query.unwrap_or_default().split('&') {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let is_wished = value.is_empty() || value == "true";
            match name {
                "types" => wishes.types = is_wished,
                "error_trace" => wishes.error_trace = is_wished,
                _ => {}
            }
        }
        wishes
    }
}

/// Answers a request.
pub(crate) async fn handle(
    State(shared): State<Arc<Shared>>,
    Extension(link): Extension<Arc<Link>>,
    Extension(User(user)): Extension<User>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let wishes = Wishes::of(query.as_deref());
    let started = Instant::now();
    let received = match body::receive(&shared, &headers, body).await {
        Ok(received) => received,
        Err(failure) => {
            link.set_refused_body();
            return failure.response(wishes.error_trace);
        }
    };
    let schema = headers.get(SCHEMA_HEADER).and_then(|value| value.to_str().ok()).filter(|schema| !schema.is_empty());
    let session = match link.session(&shared, &user, schema) {
        Ok(session) => session,
        Err(error) => return Failure::from(error).response(wishes.error_trace),
    };
    match answer(&shared, &session, received, wishes, started).await {
        Ok(response) => response,
        Err(failure) => {
            tracing::debug!(user, "statement failed: {}", failure.message());
            failure.response(wishes.error_trace)
        }
    }
}

async fn answer(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    received: Received,
    wishes: Wishes,
    started: Instant,
) -> Result<Response, Failure> {
    if !shared.is_serving() {
        return Err(Failure::unavailable("this member is shutting down and takes no more statements"));
    }
    let engine = shared.engine()?;
    let meter = Meter::new(shared.bodies.empty(), shared.config.parameters_max);
    let (text, args) = match request::parse(&received.bytes, &meter)? {
        Request::Single { text, args } => (text, args),
        Request::Bulk { text } => {
            let text = text.into_owned();
            return bulk::answer(shared, engine, session, text, received, started).await;
        }
    };
    // As long as the values.
    let _room = meter.into_room();
    let statement = Statement {
        text: &text,
        parameters: &args,
        types: &[],
        session: Some(session),
        timeout_ms: None,
        expected: ExpectedResult::Any,
    };
    let (result, running) = match run::run(engine, &statement).await {
        Err(error) if error.code == SqlErrorCode::DataException => refit(engine, &statement, error).await?,
        ran => ran?,
    };
    match result {
        StatementResult::Count(count) => Ok(json(answer::count(count, wishes.types, started))),
        StatementResult::Rows(cursor) => {
            rows::answer(cursor, running, shared.config.page_rows, wishes.types, started).await
        }
    }
}

/// Runs a statement again whose values JSON could not write as what they are, if that was why it failed: the engine takes no number
/// for a moment. It reads all values before it runs anything, so that nothing was done then.
async fn refit(
    engine: &Arc<dyn QueryEngine>,
    statement: &Statement<'_>,
    error: SqlError,
) -> Result<(StatementResult, Option<Running>), SqlError> {
    if !statement.parameters.iter().any(fit::is_unclear) {
        return Err(error);
    }
    let Ok(description) = run::describe(engine, statement).await else { return Err(error) };
    let mut values = statement.parameters.to_vec();
    let mut is_changed = false;
    for (value, field_type) in values.iter_mut().zip(description.parameters.iter()) {
        if let Some(fitted) = fit::fit(value, field_type) {
            *value = fitted;
            is_changed = true;
        }
    }
    if !is_changed {
        return Err(error);
    }
    run::run(engine, &Statement { parameters: &values, ..statement.clone() }).await
}

/// Bytes of an answer, with their room.
struct Kept {
    bytes: Vec<u8>,
    _room: Reservation,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The same for an answer that takes room until it is sent.
fn kept_json(bytes: Vec<u8>, room: Reservation) -> Response {
    json(Bytes::from_owner(Kept { bytes, _room: room }))
}

/// An answer that is there as a whole.
fn json(body: impl Into<Bytes>) -> Response {
    ([(CONTENT_TYPE, "application/json")], body.into()).into_response()
}

/// Parses a body as a request would be, without running it, and counts the values in it; 0 if it cannot be parsed.
pub(crate) fn count_values(body: &[u8]) -> usize {
    let meter = Meter::unlimited();
    match request::parse(body, &meter) {
        Ok(Request::Single { args, .. }) => args.len(),
        Ok(Request::Bulk { .. }) => {
            // As wide as the first row.
            let width = bulk_rows::width(body);
            let mut count = 0;
            match bulk_rows::parse(body, width, &meter, &mut |_| Ok(()), &mut |values, _| count += values.len()) {
                Ok(()) => count,
                Err(_) => 0,
            }
        }
        Err(_) => 0,
    }
}

/// The values of a body's `args` as an answer would have them.
pub(crate) fn rewritten_args(body: &[u8]) -> Option<Vec<u8>> {
    let Ok(Request::Single { args, .. }) = request::parse(body, &Meter::unlimited()) else { return None };
    let mut out = Vec::new();
    answer::write_value(&mut out, &Value::Array(args));
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_names_with_true_or_nothing() {
        assert_eq!(Wishes::of(Some("types")), Wishes { types: true, error_trace: false });
        assert_eq!(Wishes::of(Some("types=true&error_trace=true")), Wishes { types: true, error_trace: true });
        assert_eq!(Wishes::of(Some("types=false&pretty")), Wishes::default());
        assert_eq!(Wishes::of(None), Wishes::default());
    }
}
