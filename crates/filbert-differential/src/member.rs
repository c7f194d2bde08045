//! A client of a member over Hazelcast's protocol. The member is Filbert or a real Hazelcast
//! member.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use filbert_client::{Client, ClientConfig, ClientError, SqlResult, Statement, Value};
use tokio::runtime::{Builder, Runtime};

use crate::outcome::{Answer, Column, Outcome, Row};
use crate::postgres::Parameter;
use crate::server::Server;
use crate::tree::Type;

/// The client-side timeout of a statement. It is not sent to the member, because the member rejects
/// a timeout for some statements.
const STATEMENT_MAX: Duration = Duration::from_secs(20);

/// A connected client.
pub(crate) struct Member {
    runtime: Runtime,
    client: Client,
}

impl Member {
    /// Connects to a member.
    pub(crate) fn open(address: SocketAddr) -> Result<Member> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).enable_all().build().context("starting the runtime")?;
        let config = ClientConfig { addresses: vec![address.to_string()], ..ClientConfig::default() };
        let client = runtime.block_on(Client::connect(config)).with_context(|| format!("connecting to {address}"))?;
        Ok(Member { runtime, client })
    }

    fn execute(&self, text: &str, parameters: &[Parameter]) -> Outcome {
        let mut statement = Statement::new(text);
        for parameter in parameters {
            statement = statement.bind(&value(parameter));
        }
        let done = self.runtime.block_on(async {
            let result = tokio::time::timeout(STATEMENT_MAX, self.client.execute(statement)).await;
            match result {
                Ok(Ok(result)) => answered(result).await,
                Ok(Err(error)) => Err(error),
                Err(_) => Ok(Outcome::Timeout),
            }
        });
        done.unwrap_or_else(failed)
    }
}

impl Server for Member {
    fn run(&mut self, text: &str) -> Outcome {
        self.execute(text, &[])
    }

    fn prepare_and_run(&mut self, text: &str, parameters: &[Parameter], _binary: bool, times: usize) -> Vec<Outcome> {
        (0..times).map(|_| self.execute(text, parameters)).collect()
    }
}

async fn answered(result: SqlResult) -> Result<Outcome, ClientError> {
    let column = |column: &filbert_client::SqlColumn| {
        // The client does not see type numbers. A hash of the type name replaces them.
        let name = column.field_type.as_ref().map_or("null".to_owned(), |kind| format!("{kind:?}"));
        let oid = name.bytes().fold(17_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(u32::from(byte)));
        Column { name: name.clone(), oid }
    };
    let columns = result.columns().iter().map(column).collect();
    let tag = if result.update_count().is_some() { "changed" } else { "rows" }.to_owned();
    let rows = result.collect().await?;
    let rows = rows.iter().map(|row| row.values().iter().map(shown).collect::<Row>()).collect();
    Ok(Outcome::Answer(Answer { columns, rows, tag, notices: Vec::new() }))
}

fn failed(error: ClientError) -> Outcome {
    match error {
        ClientError::Sql(error) => {
            let rest = error.suggestion.clone().unwrap_or_default();
            Outcome::Failure { sqlstate: error.code.to_string(), message: error.message.clone(), rest }
        }
        ClientError::Disconnected { .. } => Outcome::Lost(error.to_string()),
        other => Outcome::Failure { sqlstate: "-1".to_owned(), message: other.to_string(), rest: String::new() },
    }
}

/// Formats a value. Numerics have no trailing zeros, because Filbert does not keep them.
fn shown(value: &Value<'_>) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Decimal(decimal) => decimal.normalized().to_plain_string(),
        Value::Text(text) | Value::Json(text) => text.to_string(),
        Value::TimestampTz(timestamp) => timestamp.to_utc().to_rfc3339(),
        Value::Boolean(truth) => truth.to_string(),
        Value::Int8(number) => number.to_string(),
        Value::Int16(number) => number.to_string(),
        Value::Int32(number) => number.to_string(),
        Value::Int64(number) => number.to_string(),
        Value::Date(date) => date.to_string(),
        Value::Time(time) => time.to_string(),
        Value::Timestamp(timestamp) => timestamp.to_string(),
        Value::Float32(number) => format!("{number:?}"),
        Value::Float64(number) => format!("{number:?}"),
        other => format!("{other:?}"),
    })
}

/// Converts a parameter to a value of its type. A text that is not a valid value stays a text.
fn value(parameter: &Parameter) -> Value<'static> {
    let Some(text) = &parameter.value else { return Value::Null };
    let kind = Type::ALL.into_iter().find(|kind| kind.oid() == parameter.oid);
    let typed = match kind {
        Some(Type::Int2) => text.parse().ok().map(Value::Int16),
        Some(Type::Int4) => text.parse().ok().map(Value::Int32),
        Some(Type::Int8) => text.parse().ok().map(Value::Int64),
        Some(Type::Numeric) => text.parse().ok().map(Value::Decimal),
        Some(Type::Real) => text.parse().ok().map(Value::Float32),
        Some(Type::Double) => text.parse().ok().map(Value::Float64),
        Some(Type::Bool) => Some(Value::Boolean(text == "t")),
        Some(Type::Date) => text.parse().ok().map(Value::Date),
        Some(Type::Time) => text.parse().ok().map(Value::Time),
        Some(Type::Timestamp) => text.replace(' ', "T").parse().ok().map(Value::Timestamp),
        _ => None,
    };
    typed.unwrap_or_else(|| Value::Text(text.clone().into()))
}
