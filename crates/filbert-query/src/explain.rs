//! `EXPLAIN` and `EXPLAIN ANALYZE`: plans as lines of text.

use std::sync::Arc;
use std::time::Instant;

use datafusion::execution::session_state::SessionState;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use filbert_data::Value;
use filbert_dialect::Parsed;
use filbert_functions::error::of_datafusion;
use filbert_grid::ReadView;
use filbert_grid::query::{Dialect, SqlError};
use futures::StreamExt;

use crate::short::ShortQuery;

/// The name of the column with the lines.
pub(crate) fn column(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => "QUERY PLAN",
        Dialect::Hazelcast | Dialect::Crate => "rel",
    }
}

/// Explains a DataFusion plan. With `analyze` the plan runs to its end, and the lines show the rows
/// and the time of each step.
pub(crate) async fn plan(
    physical: &Arc<dyn ExecutionPlan>,
    state: &SessionState,
    analyze: bool,
) -> Result<Vec<String>, SqlError> {
    if !analyze {
        let text = DisplayableExecutionPlan::new(physical.as_ref()).indent(false).to_string();
        return Ok(text.lines().map(str::to_owned).collect());
    }
    let start = Instant::now();
    let mut stream = execute_stream(physical.clone(), state.task_ctx()).map_err(|error| of_datafusion(&error))?;
    let mut rows = 0;
    while let Some(batch) = stream.next().await {
        rows += batch.map_err(|error| of_datafusion(&error))?.num_rows();
    }
    let text = DisplayableExecutionPlan::with_metrics(physical.as_ref()).indent(false).to_string();
    let mut lines = vec![total(rows, start)];
    lines.extend(text.lines().map(str::to_owned));
    Ok(lines)
}

/// Explains a short plan. With `analyze` the plan runs.
pub(crate) async fn short(
    short: &ShortQuery,
    parameters: &[Value<'_>],
    analyze: bool,
    view: &ReadView,
) -> Result<Vec<String>, SqlError> {
    if !analyze {
        return Ok(vec![short.describe()]);
    }
    let start = Instant::now();
    let (rows, counts) = short.run_counted(parameters, view).await?;
    let line = format!(
        "{}, metrics=[rows_read={}, partitions_read={}, output_rows={rows}, elapsed={:?}]",
        short.describe(),
        counts.rows_read,
        counts.partitions,
        start.elapsed()
    );
    Ok(vec![total(rows, start), line])
}

/// Explains a statement that changes something. The statement does not run.
pub(crate) fn change(parsed: &Parsed) -> String {
    match parsed {
        Parsed::Insert(insert) if insert.sink => format!("Sink: map={}", insert.table),
        Parsed::Insert(insert) => format!("Insert: map={}", insert.table),
        Parsed::Update(update) => format!("Update: map={}, entry by entry as its condition finds them", update.table),
        Parsed::Delete(delete) => format!("Delete: map={}, entry by entry as its condition finds them", delete.table),
        _ => "a statement about the catalog, done at once".to_owned(),
    }
}

fn total(rows: usize, start: Instant) -> String {
    format!("{rows} rows in {:?}", start.elapsed())
}
