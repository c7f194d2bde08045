//! The execution of one statement, for both protocols.

use std::{borrow::Cow, sync::Arc};

use filbert_data::Value;
use filbert_grid::Reservation;
use filbert_grid::query::{
    Command, Description, ExpectedResult, ParameterType, Statement, StatementResult, TransactionState,
};
use tokio::sync::oneshot;

use crate::{
    error::{Outcome, PgError, sqlstate},
    memory::refused,
    portals::kept_bytes,
    rows::Rows,
    session::Session,
    statement::lexer,
};

/// The number of copies of a statement's text while the engine works on it: the engine's own text,
/// and the texts in the syntax tree.
const COPIES_OF_TEXT: usize = 2;

/// The result of a statement.
pub(crate) enum Started {
    Count(u64),
    Rows(Rows),
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
    /// Builds the statement for the engine. `types` are the parameter types that the client
    /// declared.
    pub(crate) fn statement<'s>(
        &'s self,
        text: &'s str,
        parameters: &'s [Value<'s>],
        types: &'s [Option<ParameterType>],
    ) -> Statement<'s> {
        let timeout_ms = self.statement_timeout_ms;
        Statement { text, parameters, types, session: Some(&self.state), timeout_ms, expected: ExpectedResult::Any }
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
        types: &[Option<ParameterType>],
    ) -> Outcome<Option<Started>> {
        let result = self.engine()?.execute_short(&self.statement(text, parameters, types));
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
        types: &[Option<ParameterType>],
    ) -> Outcome<Started> {
        let engine = self.engine()?;
        let reservation = self.reserve_for_execution(text, parameters)?;
        let (sender, receiver) = oneshot::channel();
        // The receiver is gone if the client disconnected. The dropped cursor then ends the query.
        let reply = Box::new(move |result| drop(sender.send(result)));
        let running = engine.execute(&self.statement(text, parameters, types), reply);
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
    pub(crate) async fn start(
        &mut self,
        text: &str,
        parameters: &[Value<'_>],
        types: &[Option<ParameterType>],
    ) -> Outcome<Started> {
        match self.start_short(text, parameters, types)? {
            Some(started) => Ok(started),
            None => self.start_long(text, parameters, types).await,
        }
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
        engine.describe(&self.statement(text, &[], types), types, reply);
        let described = self.wait(receiver).await?;
        if self.slot().is_cancelled() {
            return Err(PgError::cancelled().into());
        }
        Ok(described?)
    }
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
