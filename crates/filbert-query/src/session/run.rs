//! Running statements about the session.

use std::sync::Arc;

use arrow_array::{RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema};
use filbert_data::{FieldType, Value};
use filbert_grid::query::{ColumnMeta, Dialect, Session, SqlError, SqlErrorCode, StatementResult, TransactionState};

use super::settings::{self, SETTINGS};
use crate::cursor::ReadyRows;
use crate::dialect::{Job, SessionCommand};

/// The words that PostgreSQL reports when a statement is done.
pub(crate) fn tag(command: &SessionCommand) -> &'static str {
    match command {
        SessionCommand::Set { value: Some(_), .. } | SessionCommand::SetGlobal => "SET",
        SessionCommand::Set { value: None, .. } | SessionCommand::ResetAll => "RESET",
        SessionCommand::Show(_) | SessionCommand::ShowAll => "SHOW",
        SessionCommand::Ask(_) => "SHOW",
        SessionCommand::Begin { tag } | SessionCommand::Accepted(tag) => tag,
        SessionCommand::Commit { .. } => "COMMIT",
        SessionCommand::Rollback { .. } | SessionCommand::RollbackTo => "ROLLBACK",
        SessionCommand::Savepoint => "SAVEPOINT",
        SessionCommand::Release => "RELEASE",
        SessionCommand::Discard { all: true } => "DISCARD ALL",
        SessionCommand::Discard { all: false } => "DISCARD",
        SessionCommand::Kill(_) => "KILL",
    }
}

/// The columns of what a statement shows.
pub(crate) fn value_columns(command: &SessionCommand) -> Option<Arc<[ColumnMeta]>> {
    let column = |name: &str| ColumnMeta {
        name: name.to_owned(),
        field_type: FieldType::Varchar,
        nullable: true,
        pg_type: None,
    };
    match command {
        SessionCommand::Show(name) => Some(Arc::from([column(&shown_name(name))])),
        SessionCommand::ShowAll => Some(["name", "setting", "description"].map(column).into()),
        _ => None,
    }
}

/// A setting's name as PostgreSQL writes it: most are in lower case.
fn shown_name(name: &str) -> String {
    match name {
        "datestyle" => "DateStyle".to_owned(),
        "intervalstyle" => "IntervalStyle".to_owned(),
        "timezone" => "TimeZone".to_owned(),
        other => other.to_owned(),
    }
}

/// Runs a statement; `kill` ends jobs and tells how many.
///
/// # Errors
/// A setting is not there or does not take the value, there is no session, or no transaction where one has to be.
pub(crate) fn run(
    command: &SessionCommand,
    session: Option<&Arc<Session>>,
    dialect: Dialect,
    parameters: &[Value<'_>],
    kill: impl FnOnce(Option<&str>) -> Result<u64, SqlError>,
) -> Result<StatementResult, SqlError> {
    let Some(session) = session else {
        let text = "there is no session whose settings or transaction this could be about";
        return Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("25000"));
    };
    let in_transaction = session.transaction() != TransactionState::Idle;
    match command {
        SessionCommand::Set { name, value } => {
            let value = value.as_deref().map(|value| settings::check(name, value, dialect)).transpose()?;
            session.set(name, value);
        }
        SessionCommand::ResetAll | SessionCommand::Discard { all: true } => session.reset(),
        SessionCommand::SetGlobal | SessionCommand::Accepted(_) | SessionCommand::Discard { all: false } => {}
        SessionCommand::Show(name) => {
            let value = settings::value_of(Some(session), dialect, name).ok_or_else(|| settings::unknown(name))?;
            return shown(command, vec![vec![value]]);
        }
        SessionCommand::ShowAll => return shown_all(command, session, dialect),
        // Planned as the query that it is.
        SessionCommand::Ask(_) => {}
        SessionCommand::Begin { .. } => {
            // A second BEGIN begins nothing.
            if !in_transaction {
                session.set_transaction_began_us(chrono::Utc::now().timestamp_micros());
            }
            session.set_transaction(TransactionState::Open);
        }
        SessionCommand::Commit { chain } | SessionCommand::Rollback { chain } => {
            let next = if *chain && in_transaction { TransactionState::Open } else { TransactionState::Idle };
            session.set_transaction_began_us(chrono::Utc::now().timestamp_micros());
            session.set_transaction(next);
        }
        SessionCommand::Savepoint | SessionCommand::Release | SessionCommand::RollbackTo => {
            if !in_transaction {
                let text = format!("{} can only be used in transaction blocks", tag(command));
                return Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("25P01"));
            }
            if *command == SessionCommand::RollbackTo {
                session.set_transaction(TransactionState::Open);
            }
        }
        SessionCommand::Kill(job) => {
            let id = match job {
                Job::All => None,
                Job::Id(id) => Some(id.clone()),
                Job::Parameter => Some(parameters.first().map(ToString::to_string).unwrap_or_default()),
            };
            return kill(id.as_deref()).map(StatementResult::Count);
        }
    }
    Ok(StatementResult::Count(0))
}

fn shown_all(command: &SessionCommand, session: &Session, dialect: Dialect) -> Result<StatementResult, SqlError> {
    let row = |setting: &settings::Setting| {
        let value = settings::value_of(Some(session), dialect, setting.name).unwrap_or_default();
        vec![shown_name(setting.name), value, setting.description.to_owned()]
    };
    shown(command, SETTINGS.iter().map(row).collect())
}

fn shown(command: &SessionCommand, rows: Vec<Vec<String>>) -> Result<StatementResult, SqlError> {
    let columns = value_columns(command).unwrap_or_default();
    let fields: Vec<Field> = columns.iter().map(|column| Field::new(&column.name, DataType::Utf8View, true)).collect();
    let array = |at: usize| {
        let texts = rows.iter().map(|row| row.get(at).map(String::as_str));
        Arc::new(texts.collect::<StringViewArray>()) as arrow_array::ArrayRef
    };
    let arrays = (0..fields.len()).map(array).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .map_err(|error| SqlError::new(SqlErrorCode::Generic, error.to_string()))?;
    Ok(StatementResult::Rows(Box::new(ReadyRows::new(columns, batch))))
}
