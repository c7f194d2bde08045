//! The execution of one statement, for both protocols.

use std::{borrow::Cow, sync::Arc};

use filbert_data::Value;
use filbert_grid::Reservation;
use filbert_grid::query::{
    ColumnMeta, Command, Description, ExpectedResult, ParameterType, Statement, StatementResult, TransactionState,
};
use tokio::sync::oneshot;

use crate::{
    error::{Outcome, PgError, sqlstate},
    memory::refused,
    portals::{Prepared, kept_bytes},
    rows::Rows,
    session::Session,
    statement::lexer,
    types::PgType,
};

/// The number of copies of a statement's text while the engine works on it: the engine's own text,
/// and the texts in the syntax tree.
const COPIES_OF_TEXT: usize = 2;

/// The result of a statement.
pub(crate) enum Started {
    Count(u64),
    Rows(Rows),
}

/// The facts about a statement that are known before it runs.
#[derive(Clone, Copy, Default)]
pub(crate) struct Known<'k> {
    /// The types of parameters that the client declared.
    pub(crate) types: &'k [Option<ParameterType>],
    /// The columns that were described to the client.
    pub(crate) columns: Option<&'k Arc<[ColumnMeta]>>,
}

/// The tag in `CommandComplete` of a statement that changed or returned `count` rows.
pub(crate) fn tag(command: &Command, count: u64) -> Cow<'static, str> {
    match command {
        Command::Empty => Cow::Borrowed(""),
        Command::Select => Cow::Owned(format!("SELECT {count}")),
        Command::Insert => Cow::Owned(format!("INSERT 0 {count}")),
        Command::Update => Cow::Owned(format!("UPDATE {count}")),
        Command::Delete => Cow::Owned(format!("DELETE {count}")),
        Command::CopyIn(_) | Command::CopyOut(_) => Cow::Owned(format!("COPY {count}")),
        Command::Other(tag) => Cow::Borrowed(tag),
    }
}

/// The command of a statement, if its first word is enough to know it.
pub(crate) fn command_of_word(word: &str, has_rows: bool) -> Option<Command> {
    match word {
        "select" | "values" | "table" | "with" if has_rows => Some(Command::Select),
        "insert" => Some(Command::Insert),
        "update" => Some(Command::Update),
        "delete" => Some(Command::Delete),
        _ => None,
    }
}

impl Session {
    /// Builds the statement for the engine.
    pub(crate) fn statement<'s>(
        &'s self,
        text: &'s str,
        parameters: &'s [Value<'s>],
        known: Known<'s>,
    ) -> Statement<'s> {
        Statement {
            text,
            parameters,
            types: known.types,
            session: Some(&self.state),
            timeout_ms: self.statement_timeout_ms,
            expected: ExpectedResult::Any,
            described: known.columns,
        }
    }

    /// Refuses statements in a failed transaction, except statements that can end it.
    ///
    /// # Errors
    /// SQLSTATE 25P02.
    pub(crate) fn check_transaction(&self, text: &str) -> Result<(), Box<PgError>> {
        if self.state.transaction() != TransactionState::Failed {
            return Ok(());
        }
        match lexer::first_word(text).as_str() {
            "rollback" | "abort" | "commit" | "end" => Ok(()),
            _ => {
                let message = "current transaction is aborted, commands ignored until end of transaction block";
                Err(PgError::new(sqlstate::FAILED_TRANSACTION, message))
            }
        }
    }

    /// The command tag at the end of a statement. `COMMIT` of a failed transaction is reported as
    /// `ROLLBACK`, since nothing was committed.
    pub(crate) fn end_tag(before: TransactionState, command: &Command, count: u64) -> Cow<'static, str> {
        match command {
            Command::Other("COMMIT") if before == TransactionState::Failed => Cow::Borrowed("ROLLBACK"),
            command => tag(command, count),
        }
    }

    /// Runs a statement in place if it is a short one. Returns `None` otherwise.
    pub(crate) fn start_short(
        &self,
        text: &str,
        parameters: &[Value<'_>],
        known: Known<'_>,
    ) -> Outcome<Option<Started>> {
        let result = self.engine()?.execute_short(&self.statement(text, parameters, known));
        Ok(match result.transpose()? {
            None => None,
            Some(StatementResult::Count(count)) => Some(Started::Count(count)),
            Some(StatementResult::Rows(cursor)) => Some(Started::Rows(Rows::new(cursor, None))),
        })
    }

    /// Reserves memory for the engine's copies of a statement's text and values, for the time that
    /// it works on them.
    fn reserve_for_execution(&self, text: &str, parameters: &[Value<'_>]) -> Result<Reservation, Box<PgError>> {
        let values: usize = parameters.iter().map(kept_bytes).sum();
        let mut reservation = self.shared.budget.empty();
        reservation.follow(COPIES_OF_TEXT * text.len() + values).map_err(|exhausted| refused(&exhausted))?;
        Ok(reservation)
    }

    /// Runs a statement on the engine's threads.
    pub(crate) async fn start_long(
        &mut self,
        text: &str,
        parameters: &[Value<'_>],
        known: Known<'_>,
    ) -> Outcome<Started> {
        let engine = self.engine()?;
        let reservation = self.reserve_for_execution(text, parameters)?;
        let (sender, receiver) = oneshot::channel();
        // The receiver is gone if the client disconnected. The dropped cursor then ends the query.
        let reply = Box::new(move |result| drop(sender.send(result)));
        let running = engine.execute(&self.statement(text, parameters, known), reply);
        self.slot().set_running(running.clone());
        let result = self.wait(receiver).await;
        if result.is_err() {
            running.cancel();
        }
        Ok(match result?? {
            StatementResult::Count(count) => Started::Count(count),
            StatementResult::Rows(cursor) => Started::Rows(Rows::new(cursor, Some((running, reservation)))),
        })
    }

    /// Runs a statement.
    pub(crate) async fn start(&mut self, text: &str, parameters: &[Value<'_>], known: Known<'_>) -> Outcome<Started> {
        match self.start_short(text, parameters, known)? {
            Some(started) => Ok(started),
            None => self.start_long(text, parameters, known).await,
        }
    }

    /// Runs a prepared statement. Its rows have the columns that were described to the client, or
    /// columns that can be sent as these.
    ///
    /// # Errors
    /// SQLSTATE 0A000 if the columns have changed since the statement was prepared. Nothing was
    /// changed then.
    pub(crate) async fn start_prepared(&mut self, prepared: &Prepared, parameters: &[Value<'_>]) -> Outcome<Started> {
        let known = Known { types: &prepared.declared, columns: prepared.columns.as_ref() };
        let started = self.start(&prepared.text, parameters, known).await?;
        if let (Started::Rows(rows), Some(described)) = (&started, &prepared.columns) {
            check_columns(rows, described)?;
        }
        Ok(started)
    }

    /// Asks the engine for the description of a statement.
    pub(crate) async fn describe_text(
        &mut self,
        text: &str,
        types: &[Option<ParameterType>],
    ) -> Outcome<Arc<Description>> {
        let engine = self.engine()?;
        let _reservation = self.reserve_for_execution(text, &[])?;
        let (sender, receiver) = oneshot::channel();
        let reply = Box::new(move |result| drop(sender.send(result)));
        let running = engine.describe(&self.statement(text, &[], Known { types, columns: None }), types, reply);
        self.slot().set_running(running.clone());
        let described = self.wait(receiver).await;
        if described.is_err() {
            running.cancel();
        }
        let described = described?;
        if self.slot().is_cancelled() {
            return Err(PgError::cancelled().into());
        }
        Ok(described?)
    }
}

/// Checks that rows have the described columns, or columns that can be sent as these: numbers as
/// other numbers, any type as text.
fn check_columns(rows: &Rows, described: &[ColumnMeta]) -> Result<(), Box<PgError>> {
    let fits = |described: PgType, found: PgType| {
        described == found || described == PgType::TEXT || (described.is_number() && found.is_number())
    };
    let mut columns = described.iter().zip(rows.columns.iter());
    let all_fit = columns.all(|(described, found)| fits(PgType::of_column(described), PgType::of_column(found)));
    if all_fit && described.len() == rows.columns.len() {
        return Ok(());
    }
    Err(PgError::new(sqlstate::FEATURE_NOT_SUPPORTED, "cached plan must not change result type"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_those_of_postgresql() {
        for (command, expected) in [
            (Command::Select, "SELECT 3"),
            (Command::Insert, "INSERT 0 3"),
            (Command::Delete, "DELETE 3"),
            (Command::Other("CREATE TABLE"), "CREATE TABLE"),
        ] {
            assert_eq!(tag(&command, 3), expected);
        }
        let end = Command::Other("COMMIT");
        assert_eq!(Session::end_tag(TransactionState::Failed, &end, 0), "ROLLBACK");
        assert_eq!(Session::end_tag(TransactionState::Open, &end, 0), "COMMIT");
    }
}
