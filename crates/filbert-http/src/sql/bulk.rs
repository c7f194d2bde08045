//! One statement with many rows of values. The rows of an INSERT are parsed on an engine's thread
//! and written there in batches. Other statements run once for each row.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use axum::response::Response;
use filbert_data::{FieldType, Value};
use filbert_grid::query::{
    Command, ExpectedResult, QueryEngine, RowWriter, Session, SqlError, SqlErrorCode, Statement, StatementResult,
};
use filbert_grid::{ErrorKind, MemoryBudget, Reservation};

use super::bulk_rows::{self, Shape};
use super::meter::Meter;
use super::{fit, reserved_json, run};
use crate::answer;
use crate::body::Received;
use crate::failure::{Failure, data_error};
use crate::shared::Shared;

/// The number of statements that run in place before the task yields.
const IN_PLACE_MAX: usize = 32;

/// The size of the response to one row without an error, in bytes.
const ANSWER_BYTES: usize = 24;

/// Handles a request with `bulk_args`.
pub(crate) async fn answer(
    shared: &Arc<Shared>,
    engine: &Arc<dyn QueryEngine>,
    session: &Arc<Session>,
    text: String,
    received: Received,
    started: Instant,
) -> Result<Response, Failure> {
    let statement = Statement {
        text: &text,
        parameters: &[],
        types: &[],
        session: Some(session),
        timeout_ms: None,
        expected: ExpectedResult::UpdateCount,
        described: None,
    };
    let mut results = Results::new(&shared.bodies, shared.config.bulk_errors_max);
    let values_max = shared.config.parameters_max;
    let description = run::describe(engine, &statement).await?;
    let results = match description.command {
        Command::Insert => match run::row_writer(engine, &statement).await {
            Ok(writer) => {
                let reservation = shared.bodies.empty();
                let insert = move |is_given_up: &dyn Fn() -> bool| {
                    insert(writer, &received, &Meter::new(reservation, values_max), results, is_given_up)
                };
                run::later(engine, insert).await??
            }
            // An INSERT without a list of values, such as INSERT .. SELECT, runs like any other
            // statement.
            Err(error) if error.kind == ErrorKind::UnsupportedOperation => {
                each(engine, &statement, &received.bytes, Meter::new(shared.bodies.empty(), values_max), &mut results)
                    .await?;
                results
            }
            Err(error) => return Err(error.into()),
        },
        Command::Update | Command::Delete => {
            each(engine, &statement, &received.bytes, Meter::new(shared.bodies.empty(), values_max), &mut results)
                .await?;
            results
        }
        _ => {
            let text = "bulk_args can be used with INSERT, UPDATE and DELETE, expected args for this statement";
            return Err(Failure::unsupported(text));
        }
    };
    let answer = answer::bulk_results(&results.rows, started);
    Ok(reserved_json(answer, results.reservation))
}

/// The results of the rows.
struct Results {
    rows: Vec<Result<u64, Option<Box<Failure>>>>,
    errors: usize,
    errors_max: usize,
    /// The memory reservation of the results and of the response.
    reservation: Reservation,
}

impl Results {
    fn new(budget: &MemoryBudget, errors_max: usize) -> Results {
        Results { rows: Vec::new(), errors: 0, errors_max, reservation: budget.empty() }
    }

    /// Reserves memory for the results of `rows` rows.
    fn expect(&mut self, rows: usize) -> Result<(), Failure> {
        let one = ANSWER_BYTES + size_of::<Result<u64, Option<Box<Failure>>>>();
        // The results of few rows always fit.
        self.reservation.follow((self.rows.len() + rows).saturating_mul(one))?;
        self.rows.reserve_exact(rows);
        Ok(())
    }

    fn push(&mut self, result: Result<u64, SqlError>) {
        let result = result.map_err(|error| {
            self.errors += 1;
            (self.errors <= self.errors_max).then(|| Box::new(Failure::from(error)))
        });
        self.rows.push(result);
    }

    /// Adds the error of a row with the wrong number of values, or without a list.
    fn push_misshapen(&mut self, shape: Shape, width: usize) {
        let number = self.rows.len() + 1;
        self.push(Err(data_error(match shape {
            Shape::Length(found) => format!("row {number} of bulk_args has {found} values, expected {width}"),
            _ => format!("row {number} of bulk_args is no list, expected a list of {width} values"),
        })));
    }
}

fn insert(
    mut writer: Box<dyn RowWriter>,
    received: &Received,
    meter: &Meter,
    results: Results,
    is_given_up: &dyn Fn() -> bool,
) -> Result<Results, Failure> {
    let columns = writer.columns().clone();
    let width = columns.len();
    let unclear: Vec<(usize, &FieldType)> = columns
        .iter()
        .enumerate()
        .filter_map(|(at, column)| fit::may_need(&column.field_type).then_some((at, &column.field_type)))
        .collect();
    let mut outcomes = Vec::new();
    let results = RefCell::new(results);
    let mut begin = |rows: usize| results.borrow_mut().expect(rows);
    bulk_rows::parse(&received.bytes, width, meter, &mut begin, &mut |values, shapes| {
        let results = &mut *results.borrow_mut();
        if is_given_up() {
            // The client has disconnected: the rest of the rows is not written.
            return;
        }
        if !unclear.is_empty() {
            for row in values.chunks_mut(width.max(1)) {
                fit_row(row, &unclear);
            }
        }
        outcomes.clear();
        writer.write(values, &mut |outcome| outcomes.push(outcome));
        let mut outcomes = outcomes.drain(..);
        for shape in shapes {
            match shape {
                Shape::Fits => results.push(outcomes.next().unwrap_or_else(|| Err(lost()))),
                shape => results.push_misshapen(*shape, width),
            }
        }
    })?;
    writer.finish()?;
    Ok(results.into_inner())
}

fn fit_row(row: &mut [Value<'_>], unclear: &[(usize, &FieldType)]) {
    for (at, field_type) in unclear {
        if let Some(value) = row.get_mut(*at)
            && let Some(fitted) = fit::fit(value, field_type)
        {
            *value = fitted;
        }
    }
}

fn lost() -> SqlError {
    SqlError {
        kind: ErrorKind::Internal,
        ..SqlError::new(SqlErrorCode::Generic, "nothing is known of what became of the row")
    }
}

/// Runs a statement once for each row.
async fn each(
    engine: &Arc<dyn QueryEngine>,
    statement: &Statement<'_>,
    body: &[u8],
    meter: Meter,
    results: &mut Results,
) -> Result<(), Failure> {
    let rows = bulk_rows::all(body, &meter)?;
    // Held as long as the values.
    let _reservation = meter.into_reservation();
    results.expect(rows.len())?;
    for (at, row) in rows.into_iter().enumerate() {
        if at % IN_PLACE_MAX == IN_PLACE_MAX - 1 {
            tokio::task::yield_now().await;
        }
        let Some(values) = row else {
            let number = at + 1;
            results.push(Err(data_error(format!("row {number} of bulk_args is no list, expected a list of values"))));
            continue;
        };
        let statement = Statement { parameters: &values, ..statement.clone() };
        results.push(match run::run(engine, &statement).await {
            Ok((StatementResult::Count(count), _)) => Ok(count),
            Ok((StatementResult::Rows(_), _)) => {
                Err(data_error("the statement has rows, expected one that changes something"))
            }
            Err(error) => Err(error),
        });
    }
    Ok(())
}
