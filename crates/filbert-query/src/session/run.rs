//! Runs statements about the session.

use std::sync::Arc;

use arrow_array::{RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema};
use filbert_data::{FieldType, Value};
use filbert_dialect::{Job, SessionCommand};
use filbert_grid::query::{ColumnMeta, Dialect, Session, SqlError, SqlErrorCode, StatementResult, TransactionState};

use super::settings::{self, SETTINGS, shown_name};
use super::transaction;
use crate::cursor::ReadyRows;

/// The command tag that PostgreSQL reports for a completed statement.
pub(crate) fn tag(command: &SessionCommand) -> &'static str {
    match command {
        SessionCommand::Set { value: Some(_), .. } | SessionCommand::SetGlobal => "SET",
        SessionCommand::Set { value: None, .. } | SessionCommand::ResetAll => "RESET",
        SessionCommand::Show(_) | SessionCommand::ShowAll => "SHOW",
        SessionCommand::Ask(_) => "SHOW",
        SessionCommand::SetTransaction(_) | SessionCommand::SetTransactions(_) | SessionCommand::SetUser { .. } => {
            "SET"
        }
        SessionCommand::Begin { tag, .. } | SessionCommand::Accepted(tag) | SessionCommand::Unserved(tag) => tag,
        SessionCommand::Commit { .. } => "COMMIT",
        SessionCommand::Rollback { .. } | SessionCommand::RollbackTo(_) => "ROLLBACK",
        SessionCommand::Savepoint(_) => "SAVEPOINT",
        SessionCommand::Release(_) => "RELEASE",
        SessionCommand::Discard { all: true } => "DISCARD ALL",
        SessionCommand::Discard { all: false } => "DISCARD",
        SessionCommand::Kill(_) => "KILL",
    }
}

/// The columns of a statement that shows settings.
pub(crate) fn value_columns(command: &SessionCommand) -> Option<Arc<[ColumnMeta]>> {
    let column = |name: &str| ColumnMeta {
        name: name.to_owned(),
        field_type: FieldType::Varchar,
        nullable: true,
        pg_type: None,
        length: None,
    };
    match command {
        SessionCommand::Show(name) => Some(Arc::from([column(shown_name(name))])),
        SessionCommand::ShowAll => Some(["name", "setting", "description"].map(column).into()),
        _ => None,
    }
}

/// Runs a statement; `kill` ends jobs and returns their number.
///
/// # Errors
/// A setting does not exist or does not accept the value, there is no session, or no transaction
/// where one is required.
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
    match command {
        SessionCommand::Set { name, value, local } => set(session, dialect, name, value.as_deref(), *local)?,
        SessionCommand::Discard { all: true } if session.transaction() != TransactionState::Idle => {
            let text = "DISCARD ALL cannot run inside a transaction block";
            return Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("25001"));
        }
        SessionCommand::ResetAll => session.reset(),
        SessionCommand::Discard { all: true } => {
            session.reset();
            session.advisory_unlock_all();
        }
        SessionCommand::SetGlobal | SessionCommand::Accepted(_) | SessionCommand::Discard { all: false } => {}
        SessionCommand::Unserved(words) => {
            let text = format!("{words} is not served: sessions send each other no notifications");
            return Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("0A000"));
        }
        SessionCommand::SetUser { words, name } if name != session.user() => {
            let text = format!("{words} is not served: a session stays its user's");
            return Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("0A000"));
        }
        SessionCommand::SetUser { .. } => {}
        SessionCommand::Show(name) => {
            let value = settings::value_of(Some(session), dialect, name).ok_or_else(|| settings::unknown(name))?;
            return shown(command, vec![vec![value]]);
        }
        SessionCommand::ShowAll => return shown_all(command, session, dialect),
        // Planned as a query.
        SessionCommand::Ask(_) => {}
        SessionCommand::Begin { .. }
        | SessionCommand::SetTransaction(_)
        | SessionCommand::SetTransactions(_)
        | SessionCommand::Commit { .. }
        | SessionCommand::Rollback { .. }
        | SessionCommand::Savepoint(_)
        | SessionCommand::Release(_)
        | SessionCommand::RollbackTo(_) => transaction::run(command, session)?,
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

fn set(session: &Session, dialect: Dialect, name: &str, value: Option<&str>, local: bool) -> Result<(), SqlError> {
    let value = value.map(|value| settings::check(name, value, dialect)).transpose()?;
    let in_transaction = session.transaction() != TransactionState::Idle;
    if settings::is_of_transaction(name) {
        if in_transaction {
            let value = value.unwrap_or_else(|| settings::default_of_transaction(session, dialect, name));
            transaction::set(session, name, &value)?;
        }
        return Ok(());
    }
    match local {
        true if in_transaction => session.set_local(name, value)?,
        true => transaction::warn_outside(session, "SET LOCAL"),
        false => session.set(name, value)?,
    }
    Ok(())
}

fn shown_all(command: &SessionCommand, session: &Session, dialect: Dialect) -> Result<StatementResult, SqlError> {
    let row = |setting: &settings::Setting| {
        let value = settings::value_of(Some(session), dialect, setting.name).unwrap_or_default();
        vec![shown_name(setting.name).to_owned(), value, setting.description.to_owned()]
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
