//! `generate_series` and `generate_stream`: tables of generated rows with one column `v`.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::compute::cast;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use filbert_grid::query::Dialect;
use futures::stream;

use super::row::failed;
use crate::context::dialect_of_options;
use crate::error::{carried, data_error, parsing_error};

/// The number of rows of one batch.
const BATCH_ROWS: usize = 1024;
/// How often a slow stream produces rows, in milliseconds.
const TICK_MS: u64 = 10;

/// The table functions by name.
pub(super) fn functions() -> [(&'static str, Arc<dyn TableFunctionImpl>); 2] {
    [("generate_series", Arc::new(GenerateSeries)), ("generate_stream", Arc::new(GenerateStream))]
}

fn schema() -> SchemaRef {
    schema_of(DataType::Int64)
}

fn schema_of(number: DataType) -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("v", number, false)]))
}

/// The numbers of the arguments; null for omitted arguments.
fn numbers(name: &str, args: &[Expr]) -> Result<Vec<Option<i64>>> {
    let number = |argument: &Expr| match argument {
        Expr::Literal(scalar, _) => match scalar.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(number)) if scalar.is_null() || scalar.data_type().is_integer() => Ok(number),
            _ => Err(wrong(format!("{name} takes whole numbers, not {scalar}"))),
        },
        other => Err(wrong(format!("{name} takes numbers that are known when the statement is planned, not {other}"))),
    };
    args.iter().map(number).collect()
}

fn wrong(message: String) -> DataFusionError {
    carried(parsing_error(message))
}

fn table(stream: impl PartitionStream + 'static, infinite: bool) -> Result<Arc<dyn TableProvider>> {
    let table = StreamingTable::try_new(stream.schema().clone(), vec![Arc::new(stream)])?;
    Ok(Arc::new(table.with_infinite_table(infinite)))
}

fn batch(values: Vec<i64>) -> Result<RecordBatch> {
    Ok(RecordBatch::try_new(schema(), vec![Arc::new(Int64Array::from(values))])?)
}

/// Numbers as rows of a schema with one column.
fn batch_of(schema: &SchemaRef, values: Vec<i64>) -> Result<RecordBatch> {
    let numbers = Int64Array::from(values);
    let numbers = match schema.fields().first() {
        Some(field) => cast(&numbers, field.data_type())?,
        None => Arc::new(numbers),
    };
    Ok(RecordBatch::try_new(schema.clone(), vec![numbers])?)
}

#[derive(Debug)]
struct GenerateSeries;

impl TableFunctionImpl for GenerateSeries {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let numbers = numbers("generate_series", args.exprs())?;
        let (start, stop, step) = match numbers.as_slice() {
            [Some(start), Some(stop)] => (*start, *stop, 1),
            [Some(start), Some(stop), step] => (*start, *stop, step.unwrap_or(1)),
            [_, _] | [_, _, _] => return Err(wrong("generate_series: null arguments are not allowed".to_owned())),
            _ => return Err(wrong("generate_series takes start, stop and maybe step".to_owned())),
        };
        let dialect = dialect_of_options(args.session().config_options());
        if step == 0 {
            let error = data_error("step size cannot equal zero").with_sqlstate("22023");
            return Err(if dialect == Dialect::Postgres {
                carried(error)
            } else {
                failed("step cannot equal zero in generate_series")
            });
        }
        // Whole numbers that are written out have 64 bits in CrateDB's dialect.
        let may_be_narrow = dialect != Dialect::Crate;
        let is_narrow = may_be_narrow && [start, stop, step].into_iter().all(|number| i32::try_from(number).is_ok());
        let number = if is_narrow { DataType::Int32 } else { DataType::Int64 };
        table(Series { schema: schema_of(number), start, stop, step }, false)
    }
}

#[derive(Debug)]
struct Series {
    schema: SchemaRef,
    start: i64,
    stop: i64,
    step: i64,
}

impl PartitionStream for Series {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (stop, step, schema) = (self.stop, self.step, self.schema.clone());
        let within = move |at: i64| if step > 0 { at <= stop } else { at >= stop };
        let batches = stream::unfold((Some(self.start), schema), move |(next, schema)| async move {
            let mut next = next.filter(|next| within(*next));
            next?;
            let mut values = Vec::with_capacity(BATCH_ROWS);
            while let Some(at) = next
                && values.len() < BATCH_ROWS
            {
                values.push(at);
                next = at.checked_add(step).filter(|next| within(*next));
            }
            Some((batch_of(&schema, values), (next, schema)))
        });
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches))
    }
}

#[derive(Debug)]
struct GenerateStream;

impl TableFunctionImpl for GenerateStream {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let numbers = numbers("generate_stream", args.exprs())?;
        let rate = match numbers.as_slice() {
            [Some(rate)] => *rate,
            [None] => return Err(wrong("generate_stream: rate cannot be null".to_owned())),
            _ => return Err(wrong("generate_stream takes a rate".to_owned())),
        };
        let rate = u64::try_from(rate).map_err(|_| failed("rate cannot be less than zero in generate_stream"))?;
        table(Stream { schema: schema(), rate }, true)
    }
}

#[derive(Debug)]
struct Stream {
    schema: SchemaRef,
    /// Rows per second.
    rate: u64,
}

impl PartitionStream for Stream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rate = self.rate;
        let batches = stream::unfold((None, 0_u64), move |(start, made)| async move {
            if rate == 0 {
                return std::future::pending().await;
            }
            let start = start.unwrap_or_else(tokio::time::Instant::now);
            // Row n is due n/rate seconds after the first.
            let due = start + Duration::from_secs_f64(made as f64 / rate as f64);
            let tick = Duration::from_millis(if made == 0 { 0 } else { TICK_MS });
            tokio::time::sleep_until(due.max(tokio::time::Instant::now() + tick)).await;
            let elapsed = start.elapsed().as_secs_f64();
            let rows = ((elapsed * rate as f64) as u64 + 1).saturating_sub(made).clamp(1, BATCH_ROWS as u64);
            let first = i64::try_from(made).ok()?;
            let last = i64::try_from(made + rows).ok()?;
            Some((batch((first..last).collect()), (Some(start), made + rows)))
        });
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches))
    }
}
