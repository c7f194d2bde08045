//! `POST /_sql`: a statement with one list of values, or with many rows of values.

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
use tracing::Instrument;

use crate::answer;
use crate::body::{self, Received};
use crate::connection::ConnectionState;
use crate::failure::Failure;
use crate::shared::Shared;
use crate::user::User;

use meter::Meter;
use request::Request;

/// The header with the schema for names without a schema.
const SCHEMA_HEADER: &str = "default-schema";

/// The options in the query of the URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct QueryOptions {
    /// Adds the numbers of the columns' types.
    types: bool,
    /// Adds more information about an error.
    error_trace: bool,
}

impl QueryOptions {
    /// Parses the options. An option is its name alone or with the value `true`. Unknown names are
    /// ignored.
    fn of(query: Option<&str>) -> QueryOptions {
        let mut options = QueryOptions::default();
        for part in query.unwrap_or_default().split('&') {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let is_set = value.is_empty() || value == "true";
            match name {
                "types" => options.types = is_set,
                "error_trace" => options.error_trace = is_set,
                _ => {}
            }
        }
        options
    }
}

/// Handles a request.
pub(crate) async fn handle(
    State(shared): State<Arc<Shared>>,
    Extension(connection): Extension<Arc<ConnectionState>>,
    Extension(User(user)): Extension<User>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let options = QueryOptions::of(query.as_deref());
    let started = Instant::now();
    let received = match body::receive(&shared, &headers, body).await {
        Ok(received) => received,
        Err(failure) => {
            connection.set_refused_body();
            return failure.response(options.error_trace);
        }
    };
    let schema = headers.get(SCHEMA_HEADER).and_then(|value| value.to_str().ok()).filter(|schema| !schema.is_empty());
    let session = match connection.session(&shared, &user, schema) {
        Ok(session) => session,
        Err(error) => return Failure::from(error).response(options.error_trace),
    };
    let request = tracing::debug_span!("request", user);
    match answer(&shared, &session, received, options, started).instrument(request).await {
        Ok(response) => response,
        Err(failure) => {
            tracing::debug!(user, "statement failed: {}", failure.message());
            failure.response(options.error_trace)
        }
    }
}

async fn answer(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    received: Received,
    options: QueryOptions,
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
    // Held as long as the values.
    let _reservation = meter.into_reservation();
    let statement = Statement {
        text: &text,
        parameters: &args,
        types: &[],
        session: Some(session),
        timeout_ms: None,
        expected: ExpectedResult::Any,
        described: None,
    };
    let (result, running) = match run::run(engine, &statement).await {
        Err(error) if error.code == SqlErrorCode::DataException => {
            retry_with_fitted_values(engine, &statement, error).await?
        }
        ran => ran?,
    };
    match result {
        StatementResult::Count(count) => Ok(json(answer::count(count, options.types, started))),
        StatementResult::Rows(cursor) => {
            rows::answer(cursor, running, shared.config.page_rows, options.types, started).await
        }
    }
}

/// Runs a failed statement again after it has converted values of types that JSON cannot represent:
/// the engine accepts no number as a timestamp. The first attempt changed nothing, because the
/// engine reads all values before it runs anything.
async fn retry_with_fitted_values(
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
    for (value, parameter) in values.iter_mut().zip(description.parameters.iter()) {
        if let Some(fitted) = fit::fit(value, &parameter.field_type) {
            *value = fitted;
            is_changed = true;
        }
    }
    if !is_changed {
        return Err(error);
    }
    run::run(engine, &Statement { parameters: &values, ..statement.clone() }).await
}

/// The bytes of a response, with their memory reservation.
struct ReservedBytes {
    bytes: Vec<u8>,
    _reservation: Reservation,
}

impl AsRef<[u8]> for ReservedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A complete response. Its memory reservation is held until it is sent.
fn reserved_json(bytes: Vec<u8>, reservation: Reservation) -> Response {
    json(Bytes::from_owner(ReservedBytes { bytes, _reservation: reservation }))
}

/// A complete response.
fn json(body: impl Into<Bytes>) -> Response {
    ([(CONTENT_TYPE, "application/json")], body.into()).into_response()
}

/// Parses a body as a request without running it, and returns the number of values in it. Returns 0
/// if the body cannot be parsed.
pub(crate) fn count_values(body: &[u8]) -> usize {
    let meter = Meter::unlimited();
    match request::parse(body, &meter) {
        Ok(Request::Single { args, .. }) => args.len(),
        Ok(Request::Bulk { .. }) => {
            // The width of the first row.
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

/// The values of a body's `args`, as JSON of a response.
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
    fn options_are_names_with_true_or_no_value() {
        assert_eq!(QueryOptions::of(Some("types")), QueryOptions { types: true, error_trace: false });
        assert_eq!(
            QueryOptions::of(Some("types=true&error_trace=true")),
            QueryOptions { types: true, error_trace: true }
        );
        assert_eq!(QueryOptions::of(Some("types=false&pretty")), QueryOptions::default());
        assert_eq!(QueryOptions::of(None), QueryOptions::default());
    }
}
