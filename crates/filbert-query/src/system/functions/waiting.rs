//! Functions that wait: for an advisory lock, or for a time. A wait holds no thread, and ends with
//! its statement.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, StringViewArray};
use arrow_schema::DataType;
use async_trait::async_trait;
use datafusion::arrow::compute::cast;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use filbert_functions::context::StatementContext;
use filbert_functions::error::carried;
use filbert_functions::native::failed;
use filbert_grid::query::{SqlError, SqlErrorCode};

use super::advisory;
use crate::session::lock_timeout_ms;

/// What a function waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// An advisory lock.
    Lock { is_shared: bool, is_of_transaction: bool },
    /// A number of seconds.
    Time,
}

impl Wait {
    fn arguments_max(self) -> usize {
        match self {
            Wait::Lock { .. } => 2,
            Wait::Time => 1,
        }
    }

    /// The type that arguments are cast to.
    fn taken(self) -> DataType {
        match self {
            Wait::Lock { .. } => DataType::Int64,
            Wait::Time => DataType::Float64,
        }
    }
}

/// The functions.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let lock = |is_shared, is_of_transaction| Wait::Lock { is_shared, is_of_transaction };
    let all = [
        ("pg_advisory_lock", lock(false, false)),
        ("pg_advisory_lock_shared", lock(true, false)),
        ("pg_advisory_xact_lock", lock(false, true)),
        ("pg_advisory_xact_lock_shared", lock(true, true)),
        ("pg_sleep", Wait::Time),
    ];
    let udf = |(name, wait): (&'static str, Wait)| {
        // Asynchronous functions have no types of their own for arguments: `return_type` checks
        // them.
        let counts = (1..=wait.arguments_max()).map(TypeSignature::Any).collect();
        let signature = Signature::one_of(counts, Volatility::Volatile);
        AsyncScalarUDF::new(Arc::new(Waiting { name, wait, signature })).into_scalar_udf()
    };
    all.into_iter().map(udf).collect()
}

#[derive(Debug)]
struct Waiting {
    name: &'static str,
    wait: Wait,
    signature: Signature,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Waiting {}

impl Hash for Waiting {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Waiting {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let fits = |found: &DataType| match found {
            DataType::Null | DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => true,
            found => found.is_integer() || self.wait == Wait::Time && found.is_numeric(),
        };
        match types.iter().all(fits) {
            true => Ok(DataType::Utf8View),
            false => Err(filbert_functions::native::wrong_arguments(self.name, types)),
        }
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(failed("a function that waits stands in SELECT lists and conditions only"))
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for Waiting {
    async fn invoke_async_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = args.args.iter().map(|value| Ok(cast(&value.to_array(args.number_rows)?, &self.wait.taken())?));
        let arrays: Vec<ArrayRef> = arrays.collect::<Result<_>>()?;
        let mut results = Vec::with_capacity(args.number_rows);
        for row in 0..args.number_rows {
            // As in PostgreSQL, a call with a null does nothing.
            let is_null = arrays.iter().any(|array| array.is_null(row));
            if !is_null {
                self.wait(&arrays, row, &args.config_options).await?;
            }
            results.push((!is_null).then_some(""));
        }
        Ok(ColumnarValue::Array(Arc::new(StringViewArray::from(results))))
    }
}

impl Waiting {
    async fn wait(&self, arrays: &[ArrayRef], row: usize, options: &ConfigOptions) -> Result<()> {
        match self.wait {
            Wait::Time => {
                let seconds = arrays.first().map_or(0.0, |array| array.as_primitive::<Float64Type>().value(row));
                // Beyond what a duration holds, the wait lasts until the statement ends.
                let time = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
                tokio::time::sleep(time).await;
                Ok(())
            }
            Wait::Lock { is_shared, is_of_transaction } => {
                let number = |array: &ArrayRef| array.as_primitive::<Int64Type>().value(row);
                let (first, second) = (arrays.first().map_or(0, number), arrays.get(1).map(number));
                let key = advisory::key(first, second)?;
                let session = StatementContext::of(options).and_then(StatementContext::session);
                let session = session.ok_or_else(|| failed("there is no session to lock anything for"))?;
                let (sender, granted) = tokio::sync::oneshot::channel();
                let wake = Box::new(move || {
                    // Nobody listens if the statement has ended.
                    let _ended = sender.send(());
                });
                let locks = advisory::locks(options)?;
                let wait = session.advisory_lock(locks, key, is_shared, is_of_transaction, wake).map_err(carried)?;
                let Some(wait) = wait else { return Ok(()) };
                match lock_timeout_ms(session).map(Duration::from_millis) {
                    None => drop(granted.await),
                    Some(timeout) => drop(tokio::time::timeout(timeout, granted).await.map_err(|_| {
                        let text = "canceling statement due to lock timeout";
                        carried(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("55P03"))
                    })?),
                }
                wait.take();
                Ok(())
            }
        }
    }
}
